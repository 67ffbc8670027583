// The case on the desk: what is open, what of it is in focus, and the drawing of all that changes.

import { drawAnswer, drawCase, drawPassage, markerOf } from "./case.js";
import { drawComment, drawDock, drawOpinion } from "./dock.js";
import { at, capital, el, plural } from "./dom.js";
import { colourOf, drawJudge, drawQuestions } from "./labels.js";
import { byQuestion, contradicted, following, word } from "./questions.js";
import { drawTrouble } from "./trouble.js";

export const view = {
  session: null, annotator: "", outbox: null, // who labels what
  item: null, questions: [], focus: 0, opinion: false, writing: false, // the case that is open
  drafts: new Map(), // comments of questions without a label
  doubt: false, doubted: new Set(), // labels that contradict each other: asked about now, and asked about before
  turn: 0, // of opening a case: only the last one counts
  changed: "", // what the last label changed that had been said otherwise
  blocked: null, problem: null, missed: null, // labels that wait, a step that failed, and that step
};

// Only what is on disk is told in the colour of what is well.
export const tell = (text) => {
  const place = at("saved");
  if (place.textContent !== text) place.textContent = text; // else it is read aloud again
  place.classList.toggle("well", text.startsWith("Saved"));
  place.classList.toggle("ill", text.startsWith("Not "));
};

export const isPool = () => view.session?.kind === "pool";

export const draftKey = (question) => JSON.stringify([view.item.case_id, question.metric, question.claim]);
export const waiting = () => view.outbox?.entries ?? [];
export const troubled = () => drawTrouble(view.blocked ?? view.problem, waiting(), view.session?.metrics ?? []);

// Labels by question: those on disk by the item, those that wait by what the queue begins and ends with.
const kept = { item: null, saved: new Map(), of: [], waits: new Map() };

const lookUp = () => {
  const queue = waiting();
  const { at: place, case_id } = view.item;
  const of = [view.item, queue.length, queue[0], queue.at(-1)];
  if (kept.item !== view.item) Object.assign(kept, { item: view.item, saved: byQuestion(view.item.labels) });
  if (of.some((one, i) => one !== kept.of[i])) {
    const here = queue.filter((one) => one.at === place && one.case_id === case_id);
    Object.assign(kept, { of, waits: byQuestion(here) });
  }
  return kept;
};

// What this annotator said to a question: what waits to be saved counts, the latest first.
export const answerOf = ({ key }) => {
  const { saved, waits } = lookUp();
  return waits.get(key) ?? saved.get(key) ?? null;
};

const lasting = (seconds) => (seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`);

// How long this annotator takes over a case, and so over those that are left.
const paceOf = ({ done, total, seconds_per_case: pace }) => {
  if (pace === null) return "";
  const left = done < total ? `, ${lasting((total - done) * pace)} left` : "";
  return `, about ${lasting(pace)} a case${left}`;
};

const drawStanding = () => {
  const { session } = view;
  at("run").textContent = session.run;
  document.body.dataset.kind = session.kind ?? "run";
  at("standing").hidden = !view.annotator;
  at("annotator").textContent = view.annotator;
  at("change").hidden = session.mode === "adjudicate";
  at("bar").max = Math.max(session.total, 1);
  at("bar").value = session.done;
  at("notes").replaceChildren(...session.notes.map((note) => el("li", { dir: "auto" }, `${capital(note)}.`)));
  at("done").textContent = `${session.done} of ${session.total} done${paceOf(session)}`;
};

let drawn = null; // the case as it stands on the page: its rows, and what each was drawn of

// Draw a case that was opened, as far as its labels do not change it.
export const lay = () => {
  const { item, questions } = view;
  const desk = at("desk");
  desk.replaceChildren((isPool() ? drawPassage : drawCase)(item, item.at + 1, view.session.total));
  const places = new Map(questions.map((one, i) => [one.claim, i]));
  drawn = {
    rows: drawQuestions(desk.querySelector(".questions"), item, questions, choose),
    colour: drawAnswer(desk.querySelector(".answer"), item, (index) => choose(places.get(index) ?? 0)),
    mark: markerOf(desk, item), places, of: questions.map(() => null), focus: -1, judge: "",
  };
  for (const claim of item.claims) drawn.colour(claim.index, null, () => "open");
};

// Draw the rows and claims of which the answer or the focus is another than before.
const drawAnswers = () => {
  const { questions, focus } = view;
  const { waits } = lookUp();
  const changed = new Set(drawn.focus === focus ? [] : [drawn.focus, focus]);
  questions.forEach((question, i) => {
    const answer = answerOf(question);
    const wait = answer !== null && waits.get(question.key) === answer;
    const of = answer && JSON.stringify([answer.label, answer.comment ?? "", wait]);
    if (of === drawn.of[i] && drawn.focus !== -1) return;
    drawn.of[i] = of;
    drawn.rows[i].answered(answer, wait);
    changed.add(i);
  });
  drawn.rows[drawn.focus]?.made.removeAttribute("aria-current");
  drawn.rows[focus]?.made.setAttribute("aria-current", "true");
  drawn.focus = focus;
  const colourOfClaim = (index) => (drawn.places.has(index) ? colourOf(answerOf(questions[drawn.places.get(index)])) : "open");
  for (const i of changed) {
    if (questions[i] && questions[i].claim !== null) drawn.colour(questions[i].claim, questions[focus].claim, colourOfClaim);
  }
};

const drawJudged = () => {
  const { item, questions } = view;
  const shown = view.opinion && item.judged !== null;
  at("judge").hidden = !shown;
  const ofAnswer = shown ? questions.filter((one) => one.claim === null) : [];
  const judge = shown ? JSON.stringify([item.judge_shown, item.judged, ofAnswer.map((one) => answerOf(one)?.label)]) : "";
  if (judge !== drawn.judge) at("judge").replaceChildren(...(shown ? drawJudge(item, ofAnswer, answerOf) : []));
  drawn.judge = judge;
};

// All that a label changes.
export const draw = () => {
  const { item, questions, focus } = view;
  drawStanding();
  troubled();
  at("changed").hidden = !view.changed || !item;
  at("changed").textContent = view.changed;
  const question = item ? questions[focus] : null;
  if (!item) return drawDock(null);
  const held = at("desk").querySelector(".questions").contains(document.activeElement);
  drawAnswers();
  if (held) drawn.rows[focus]?.made.focus({ preventScroll: true });
  drawJudged();
  drawDock(question, answerOf(question), placeOf(), enterStep());
  return drawOpinion(item, view.opinion);
};

const openOnes = () => view.questions.filter((question) => !answerOf(question)).length;

const placeOf = () => {
  const { length } = view.questions;
  return length === 1 ? "" : `Question ${view.focus + 1} of ${length}, ${openOnes() || "none"} open`;
};

const claimsSay = (label) => (label ? "All claims are supported" : "A claim is not supported");

// What Enter does now: its act, the words of its button, and why it is offered; or null.
export const enterStep = () => {
  const question = view.questions[view.focus];
  const answer = answerOf(question);
  if (view.doubt && answer) {
    const why = `${claimsSay(!answer.label)}, but the answer is labelled ${word(question, answer.label)}. Change a label, or keep both.`;
    return { act: "keep", text: "Keep both", why };
  }
  const follows = answer ? null : following(question, view.questions, answerOf);
  if (follows !== null) {
    const taken = word(question, follows);
    return { act: "take", label: follows, text: `Take ${taken}`, why: `${claimsSay(follows)}, so ${taken} follows.` };
  }
  if (!isDone()) return null;
  const unit = isPool() ? "passage" : "case";
  const left = openOnes();
  const why = `This ${unit} is labelled${left ? `; ${plural(left, "optional question")} open` : ""}.`;
  const last = view.item.at + 1 >= view.session.total;
  return { act: "next", text: last ? "Finish" : `Next ${unit}`, why };
};

// Labels of a metric that contradict each other are asked about once a case. Returns the place of its answer, or -1.
export const doubtOf = (metric) => {
  const key = JSON.stringify([view.item.case_id, metric]);
  const answer = contradicted(metric, view.questions, answerOf);
  if (!answer || view.doubted.has(key)) return -1;
  view.doubted.add(key);
  return view.questions.indexOf(answer);
};

// Take a question into focus: its words are marked, its comment is at hand.
export const choose = (place, { doubt = false } = {}) => {
  if (!view.questions.length) return;
  view.doubt = doubt;
  view.focus = Math.min(Math.max(place, 0), view.questions.length - 1);
  const question = view.questions[view.focus];
  view.writing = false;
  draw();
  drawComment(view.drafts.get(draftKey(question)) ?? answerOf(question)?.comment ?? "", false);
  drawn.mark(question.claim === null ? null : question);
  for (const one of [".claim.lit", ".question[aria-current]"]) {
    at("desk").querySelector(one)?.scrollIntoView({ block: "nearest" });
  }
};

// The next question without an answer, else the first that the case cannot be done without; or -1.
export const nextOpen = (from) => {
  const open = (question, i) => i >= from && !answerOf(question);
  const after = view.questions.findIndex(open);
  return after >= 0 ? after : view.questions.findIndex(needed);
};

const needed = (question) => question.needed && !answerOf(question);

export const isDone = () => view.item !== null && !view.questions.some(needed);

export const firstOf = (metric, claim) => view.questions.findIndex((one) => one.metric === metric && one.claim === claim);
