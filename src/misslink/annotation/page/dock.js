// The bar at the foot: the question in focus, its buttons with their keys, its comment.

import { at, capital, el, plain } from "./dom.js";
import { CLAIM, choicesOf } from "./questions.js";

// A touch screen and a screen reader get the words, the keyboard its keys.
const put = (id, label, key) => {
  const made = at(id);
  made.querySelector("span").textContent = label;
  if (key === undefined) return made;
  made.querySelector("kbd").textContent = key;
  if (key) made.setAttribute("aria-keyshortcuts", key);
  else made.removeAttribute("aria-keyshortcuts");
  return made;
};

const titleOf = (question) => {
  if (question.claim === null) return question.ask;
  return `Claim ${question.number}: is it supported by the passages?`;
};

// `place` says which question of the case it is; `step` is what Enter does, or null.
export const drawDock = (question, answer, place, step) => {
  at("dock").hidden = !question;
  if (!question) return;
  at("ask").textContent = titleOf(question);
  at("claim").textContent = question.claim === null ? "" : question.text;
  at("claim").hidden = question.claim === null;
  at("place").textContent = place;
  at("place").hidden = !place;
  at("offer").hidden = step === null;
  if (at("offer").textContent !== (step?.why ?? "")) at("offer").textContent = step?.why ?? ""; // else it is read aloud again
  at("enter").hidden = step === null;
  if (step) put("enter", step.text);
  const choices = choicesOf(question);
  const pressed = [["skip", null]];
  for (const id of ["bad", "good", "high"]) at(id).hidden = true;
  if (question.grades && at("bad").previousElementSibling) at("good").before(at("bad")); // lowest first
  for (const { label, text, key } of choices) {
    const id = buttonOf(label);
    put(id, capital(text), key).hidden = false;
    pressed.push([id, label]);
  }
  for (const [id, label] of pressed) at(id).setAttribute("aria-pressed", String(Boolean(answer) && answer.label === label));
};

// Grades stand from the lowest to the highest, good before bad.
const buttonOf = (label) => ["bad", "good", "high"][label];

// The comment of the question in focus; `open` is whether its field is asked for.
export const drawComment = (text, open) => {
  at("comment").value = text;
  at("comment-row").hidden = !open && !text;
  at("write").setAttribute("aria-expanded", String(!at("comment-row").hidden));
};

export const drawOpinion = (item, open) => {
  at("opinion").setAttribute("aria-expanded", String(item.judged !== null && open));
};

// The keys of each metric that this run asks about.
export const drawKeys = (metrics) => at("metric-keys").replaceChildren(...(metrics.some((metric) => metric.grades)
  ? gradeKeys(metrics) : labelKeys(metrics)));

const gradeKeys = (metrics) => metrics.flatMap((metric) => metric.grades.map((grade) => el("div", {},
  el("dt", {}, el("kbd", {}, grade.key)), el("dd", {}, `${grade.word}: ${grade.means}`))));

const labelKeys = (metrics) => [
  ...(metrics.some((metric) => metric.per_claim) ? [["claim", CLAIM.good, CLAIM.bad]] : []),
  ...metrics.map((metric) => [plain(metric.name), metric.good, metric.bad]),
].map(([name, good, bad]) => el("div", {},
  el("dt", {}, el("kbd", {}, "1"), " ", el("kbd", {}, "2")),
  el("dd", {}, `${name}: ${good}, ${bad}`)));
