// What is asked of one case, what was said to it, and what follows from that.

// Of a claim it is always asked the same; of an answer, what its metric asks.
export const CLAIM = { ask: "Is this claim supported by the passages?", good: "supported", bad: "not supported" };

// What a label is of: one question of a case.
export const keyOf = ({ metric, claim }) => JSON.stringify([metric, claim]);

// The last label of each question among those given.
export const byQuestion = (labels) => new Map(labels.map((one) => [keyOf(one), one]));

// The questions of a case in the order in which they are asked: a metric's claims, then its answer.
// `needed`: the case is done only with an answer to it; claims are offered beside.
export const questionsOf = (item, metrics) => {
  const asked = new Set(item.asked.map(keyOf));
  const all = metrics.filter((metric) => item.metrics.includes(metric.name)).flatMap((metric) => {
    const keys = { metric: metric.name, grades: metric.grades ?? null };
    const claims = metric.per_claim ? item.claims : [];
    return [
      ...claims.map((claim, i) => ({ ...keys, ...CLAIM, claim: claim.index, text: claim.text, number: i + 1 })),
      { ...keys, ask: metric.ask, good: metric.good, bad: metric.bad, claim: null, claims: claims.length },
    ];
  }).map((question) => ({ ...question, key: keyOf(question), needed: asked.has(keyOf(question)) }));
  // Who adjudicates is asked what the others disagree on, and no more.
  return item.said === null ? all : all.filter((question) => question.needed);
};

// The labels that may be said, with their words and keys: grades of a scale, or good and bad.
// A key is of the question that is shown, whatever its metric.
export const choicesOf = (question) => (question.grades
  ? question.grades.map(({ label, word: text, key }) => ({ label, text, key }))
  : [{ label: 1, text: question.good, key: "1" }, { label: 0, text: question.bad, key: "2" }]);

export const word = (question, label) => {
  if (label === null) return "skipped";
  if (question.grades) return question.grades.find((one) => one.label === label)?.word ?? String(label);
  return label ? question.good : question.bad;
};

const claimLabels = (question, questions, answerOf) => questions
  .filter((one) => one.metric === question.metric && one.claim !== null)
  .map((one) => answerOf(one));

// What an answer is where all of its claims are labelled: bad by any one, good by all; a claim
// that was skipped leaves it open. Null where nothing follows.
export const following = (question, questions, answerOf) => {
  if (question.claim !== null || !question.claims) return null;
  const labels = claimLabels(question, questions, answerOf);
  if (labels.length < question.claims || labels.some((one) => one === null)) return null;
  if (labels.some((one) => one.label === 0)) return 0;
  return labels.every((one) => one.label === 1) ? 1 : null;
};

// The answer whose label contradicts those of its claims, of one metric; or null.
export const contradicted = (metric, questions, answerOf) => {
  const question = questions.find((one) => one.metric === metric && one.claim === null);
  const label = question && answerOf(question)?.label;
  if (label !== 0 && label !== 1) return null;
  const unsupported = claimLabels(question, questions, answerOf).some((one) => one?.label === 0);
  const differs = label === 1 ? unsupported : following(question, questions, answerOf) === 1;
  return differs ? question : null;
};
