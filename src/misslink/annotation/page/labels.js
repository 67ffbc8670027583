// The questions of a case with what was said to them, and beside them what others and the judge say.

import { capital, el, grouped, plain, said } from "./dom.js";
import { keyOf, word } from "./questions.js";

const SIGNS = new Map([[2, "\u2713\u2713"], [1, "\u2713"], [0, "\u2717"], [null, "\u2013"]]);

// The look of a label: of a claim in the answer, of a state in the list.
export const colourOf = (answer) => {
  if (!answer) return "open";
  if (answer.label === null) return "skipped";
  return answer.label ? "good" : "bad";
};

const othersOf = (found) => (found.length ? el("ul", { class: "others" }, found.map(({ question, one }) => el("li", {},
  el("b", {}, one.who), `: ${word(question, one.label)}`,
  one.comment && [", ", said("q", "", one.comment)]))) : []);

const headOf = (question) => {
  if (question.grades) return el("span", { class: "small" }, capital(plain(question.metric)));
  if (question.claim === null) return el("span", { class: "small" }, `Answer, ${plain(question.metric)}`);
  return el("span", { class: "small" }, `Claim ${question.number}`);
};

const textOf = (question) => (question.claim === null
  ? el("span", { class: "text" }, question.ask) : said("span", "text", question.text));

// What each grade stands for, the same for whoever grades.
const meaningOf = (grades) => capital(`${grades.map(({ word: text, means }) => `${text}: ${means}`).join("; ")}.`);

// Draw the questions of a case. Returns each as its button, with how to write its answer again:
// what was said to it, and whether that waits to be saved.
export const drawQuestions = (list, item, questions, choose) => {
  const located = new Set(item.claims.filter((claim) => Number.isInteger(claim.start)).map((claim) => claim.index));
  const theirs = grouped(item.said ?? [], keyOf);
  const rows = questions.map((question, i) => {
    const state = el("span");
    const lost = question.claim !== null && !located.has(question.claim);
    const made = el("button", { type: "button", class: "question" },
      headOf(question), " ", state, " ", textOf(question),
      question.grades && el("span", { class: "small" }, meaningOf(question.grades)),
      lost && el("span", { class: "small" }, "Worded by the judge, not located in the answer."));
    made.addEventListener("click", () => choose(i));
    const answered = (answer, waits) => {
      state.className = `state ${colourOf(answer)}`;
      state.textContent = answer
        ? `${SIGNS.get(answer.label)} ${word(question, answer.label)}${waits ? ", not saved yet" : ""}` : "open";
      made.querySelector(".remark")?.remove();
      if (answer?.comment) made.querySelector(".text").after(said("span", "small remark", answer.comment));
    };
    const others = (theirs.get(question.key) ?? []).map((one) => ({ question, one }));
    return { made, answered, line: el("li", {}, made, othersOf(others)) };
  });
  list.replaceChildren(...rows.map((row) => row.line));
  return rows;
};

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
export const drawJudge = (item, questions, answerOf) => {
  const parts = questions.filter((question) => Object.hasOwn(item.judged, question.metric))
    .map((question) => judgedMetric(item, question, item.judged[question.metric], answerOf(question)));
  return [
    el("h3", {}, "The judge's opinion"),
    item.judge_shown && el("p", { class: "small" }, "It was shown before the case was labelled, and that is recorded."),
    ...(parts.length ? parts : [el("p", { class: "none" }, "The judge gave no verdict on this answer.")]),
  ].filter(Boolean);
};
