// The questions of a case with what was said to them, and beside them what others and the judge say.

import { capital, el, plain, said } from "./dom.js";
import { word } from "./questions.js";

const SIGNS = new Map([[1, "\u2713"], [0, "\u2717"], [null, "\u2013"]]);

// The look of a label: of a claim in the answer, of a state in the list.
export const colourOf = (answer) => {
  if (!answer) return "open";
  if (answer.label === null) return "skipped";
  return answer.label ? "good" : "bad";
};

const othersOf = (question, item) => {
  const found = (item.said ?? []).filter((one) => one.metric === question.metric && one.claim === question.claim);
  if (!found.length) return [];
  return el("ul", { class: "others" }, found.map((one) => el("li", {},
    el("b", {}, one.who), `: ${word(question, one.label)}`,
    one.comment && [", ", said("q", "", one.comment)])));
};

const stateOf = (question, answer, waits) => el("span", { class: `state ${colourOf(answer)}` },
  answer ? `${SIGNS.get(answer.label)} ${word(question, answer.label)}${waits ? ", not saved yet" : ""}` : "open");

const headOf = (question) => {
  if (question.claim === null) return el("span", { class: "small" }, `Answer, ${plain(question.metric)}`);
  return el("span", { class: "small" }, `Claim ${question.number}`);
};

const textOf = (question) => (question.claim === null
  ? el("span", { class: "text" }, question.ask) : said("span", "text", question.text));

const placed = (item, question) => question.claim === null
  || item.claims.some((claim) => claim.index === question.claim && Number.isInteger(claim.start));

// `answers` hold, for each question, what was said and whether it waits to be saved.
export const drawQuestions = (item, questions, answers, focus, choose) => questions.map((question, i) => {
  const { answer, waits } = answers[i];
  const made = el("button", { type: "button", class: "question", "aria-current": i === focus ? "true" : "" },
    headOf(question), " ", stateOf(question, answer, waits), " ", textOf(question),
    answer?.comment && said("span", "small remark", answer.comment),
    !placed(item, question) && el("span", { class: "small" }, "Worded by the judge, not located in the answer."));
  made.addEventListener("click", () => choose(i));
  return el("li", {}, made, othersOf(question, item));
});

const share = (value) => value.toFixed(2);

const judgedClaims = (item, opinion) => {
  if (!opinion.claims?.length) return [];
  return el("ul", { class: "judged-claims" }, opinion.claims.map((support, i) =>
    el("li", {}, `Claim ${i + 1}: `, said("span", "", support))));
};

const judgedMetric = (item, question, opinion, mine) => {
  const known = opinion.label === 0 || opinion.label === 1;
  const differs = known && mine && mine.label !== null && mine.label !== opinion.label;
  return el("div", { class: "opinion" },
    el("h4", {}, capital(plain(question.metric))),
    el("p", {},
      known ? el("b", { class: opinion.label ? "good" : "bad" }, word(question, opinion.label)) : "No label",
      Number.isFinite(opinion.value) && `, value ${share(opinion.value)}`,
      Number.isFinite(opinion.probability) && `, P(${question.good}) ${share(opinion.probability)}`,
      differs && [" ", el("span", { class: "chip" }, `you say ${word(question, mine.label)}`)]),
    judgedClaims(item, opinion),
    opinion.reason && said("p", "small", opinion.reason));
};

// What the judge said, by metric; the server sends it when it may be seen.
export const drawJudge = (item, questions, answers) => {
  const parts = questions.flatMap((question, i) => {
    if (question.claim !== null || !Object.hasOwn(item.judged, question.metric)) return [];
    return [judgedMetric(item, question, item.judged[question.metric], answers[i].answer)];
  });
  return [
    el("h3", {}, "The judge's opinion"),
    item.judge_shown && el("p", { class: "small" }, "It was shown before the case was labelled, and that is recorded."),
    ...(parts.length ? parts : [el("p", { class: "none" }, "The judge gave no verdict on this answer.")]),
  ].filter(Boolean);
};
