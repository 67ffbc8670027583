// What is asked of one case, what was said to it, and what follows from that.

// Of a claim it is always asked the same; of an answer, what its metric asks.
export const CLAIM = { ask: "Is this claim supported by the passages?", good: "supported", bad: "not supported" };

const same = (one, other) => one.metric === other.metric && one.claim === other.claim;

// Whether the case is done only with an answer to this question; claims are offered beside.
export const isAsked = (question, item) => item.asked.some((one) => same(one, question));

// The questions of a case in the order in which they are asked: a metric's claims, then its answer.
export const questionsOf = (item, metrics) => metrics
  .filter((metric) => item.metrics.includes(metric.name))
  .flatMap((metric) => {
    const keys = { metric: metric.name, good_key: metric.key_good, bad_key: metric.key_bad };
    const claims = metric.per_claim ? item.claims : [];
    const all = [
      ...claims.map((claim, i) => ({ ...keys, ...CLAIM, claim: claim.index, text: claim.text, number: i + 1 })),
      { ...keys, ask: metric.ask, good: metric.good, bad: metric.bad, claim: null, claims: claims.length },
    ];
    // Who adjudicates is asked what the others disagree on, and no more.
    return item.said === null ? all : all.filter((question) => isAsked(question, item));
  });

// What this annotator said to a question: what waits to be saved counts, the latest first.
export const saidTo = (question, item, waiting) =>
  waiting.findLast((one) => one.at === item.at && one.case_id === item.case_id && same(one, question))
  ?? item.labels.findLast((one) => same(one, question)) ?? null;

export const word = (question, label) => {
  if (label === null) return "skipped";
  return label ? question.good : question.bad;
};

// What an answer is where all of its claims are labelled: bad by any one, good by all; a claim
// that was skipped leaves it open. Null where nothing follows.
export const following = (question, questions, answerOf) => {
  if (question.claim !== null || !question.claims) return null;
  const labels = questions
    .filter((one) => one.metric === question.metric && one.claim !== null)
    .map((one) => answerOf(one));
  if (labels.length < question.claims || labels.some((one) => one === null)) return null;
  if (labels.some((one) => one.label === 0)) return 0;
  return labels.every((one) => one.label === 1) ? 1 : null;
};
