// The case on the desk: what is open, what of it is in focus, and the drawing of all that changes.

import { drawAnswer, markWords } from "./case.js";
import { drawComment, drawDock, drawOpinion } from "./dock.js";
import { at, capital, el } from "./dom.js";
import { colourOf, drawJudge, drawQuestions } from "./labels.js";
import { following, isAsked, saidTo } from "./questions.js";
import { drawTrouble } from "./trouble.js";

export const view = {
  session: null, annotator: "", outbox: null, // who labels what
  item: null, questions: [], focus: 0, opinion: false, writing: false, // the case that is open
  drafts: new Map(), // comments of questions without a label
  turn: 0, // of opening a case: only the last one counts
  blocked: null, problem: null, missed: null, // labels that wait, a step that failed, and that step
};

export const tell = (text) => { at("saved").textContent = text; };
export const draftKey = (question) => JSON.stringify([view.item.case_id, question.metric, question.claim]);
export const waiting = () => view.outbox?.entries ?? [];
export const answerOf = (question) => saidTo(question, view.item, waiting());
export const troubled = () => drawTrouble(view.blocked ?? view.problem, waiting());

const drawStanding = () => {
  const { session } = view;
  at("run").textContent = session.run;
  at("standing").hidden = !view.annotator;
  at("annotator").textContent = view.annotator;
  at("change").hidden = session.mode === "adjudicate";
  at("bar").max = Math.max(session.total, 1);
  at("bar").value = session.done;
  at("notes").replaceChildren(...session.notes.map((note) => el("li", { dir: "auto" }, `${capital(note)}.`)));
  at("done").textContent = `${session.done} of ${session.total} done`;
};

// All that a label changes.
export const draw = () => {
  const { item, questions, focus } = view;
  drawStanding();
  troubled();
  const question = item ? questions[focus] : null;
  if (!item) return drawDock(null);
  const answers = questions.map((one) => {
    const answer = answerOf(one);
    return { answer, waits: waiting().includes(answer) };
  });
  const desk = at("desk");
  const list = desk.querySelector(".questions");
  const held = list.contains(document.activeElement);
  list.replaceChildren(...drawQuestions(item, questions, answers, focus, choose));
  if (held) list.querySelector("[aria-current]")?.focus({ preventScroll: true });
  const ofClaim = (index) => questions.findIndex((one) => one.claim === index);
  const colour = (index) => (ofClaim(index) < 0 ? "open" : colourOf(answers[ofClaim(index)].answer));
  desk.querySelector(".answer").replaceChildren(...drawAnswer(item, question?.claim ?? null, colour,
    (index) => choose(Math.max(ofClaim(index), 0))));
  const shown = view.opinion && item.judged !== null;
  at("judge").hidden = !shown;
  at("judge").replaceChildren(...(shown ? drawJudge(item, questions, answers) : []));
  drawDock(question, answers[focus]?.answer ?? null, question ? following(question, questions, answerOf) : null);
  return drawOpinion(item, view.opinion);
};

// Take a question into focus: its words are marked, its comment is at hand.
export const choose = (place) => {
  if (!view.questions.length) return;
  view.focus = Math.min(Math.max(place, 0), view.questions.length - 1);
  const question = view.questions[view.focus];
  view.writing = false;
  draw();
  drawComment(view.drafts.get(draftKey(question)) ?? answerOf(question)?.comment ?? "", false);
  markWords(at("desk"), view.item, question.claim === null ? null : question);
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

const needed = (question) => isAsked(question, view.item) && !answerOf(question);

export const isDone = () => view.item !== null && !view.questions.some(needed);

export const firstOf = (metric, claim) => view.questions.findIndex((one) => one.metric === metric && one.claim === claim);
