// The page for labelling: one case at a time; the server and the outbox hold what is true.

import { putAddress, readAddress } from "./address.js";
import { attempt, retry, seek } from "./away.js";
import { answerOf, choose, doubtOf, draftKey, draw, enterStep, firstOf, isPool, lay, nextOpen, tell, view, waiting } from "./desk.js";
import { drawComment, drawKeys } from "./dock.js";
import { at, capital, plain } from "./dom.js";
import { freshen, freshenOnReturn } from "./fresh.js";
import { listen } from "./keys.js";
import { outboxOf } from "./outbox.js";
import { drawEnd, drawNothing, drawWho } from "./pages.js";
import { choicesOf, questionsOf, word } from "./questions.js";
import * as server from "./server.js";

const ADJUDICATED = "adjudicated";

const standAlone = (made, place, push) => {
  view.turn += 1;
  view.item = null;
  at("desk").replaceChildren(made);
  draw();
  putAddress(view.annotator, place, push);
  document.getElementById("start-title").focus({ preventScroll: true });
  scrollTo(0, 0);
};

const progressOf = ({ done, total, seconds_per_case }) => ({ done, total, seconds_per_case });

const showEnd = async (push = true) => {
  view.session = await server.session(view.annotator);
  standAlone(drawEnd(view.session, view.annotator, {
    open: () => open(view.session.open ?? 0), again: () => open(0),
  }), "end", push);
};

// Open a case; `undone` is the label that was taken back there.
const showCase = async (place, { push = true, undone = null } = {}) => {
  if (place >= view.session.total) return showEnd(push);
  view.turn += 1;
  const { turn } = view;
  const item = await server.item(view.annotator, Math.max(place, 0));
  if (turn !== view.turn) return undefined; // another one was asked for meanwhile
  Object.assign(view, { item, questions: questionsOf(item, view.session.metrics), opinion: false, changed: "" });
  lay();
  const back = undone ? firstOf(undone.metric, undone.claim ?? null) : -1;
  choose(back >= 0 ? back : Math.max(nextOpen(0), 0));
  putAddress(view.annotator, item.at, push);
  document.getElementById("title").focus({ preventScroll: true });
  return scrollTo(0, 0);
};

const open = (place, options) => attempt(() => showCase(place, options));

const step = (by) => {
  if (view.item) open(view.item.at + by);
  else if (by < 0 && view.session?.total) open(view.session.total - 1);
};

// Said when a label takes another's place.
const changeOf = (question, from, to) =>
  `${question.claim === null ? plain(question.metric) : `claim ${question.number}`} changed from ${word(question, from)} to ${word(question, to)}`;

const send = (question, label, comment) => {
  const was = answerOf(question)?.label;
  view.changed = was === undefined || was === label ? "" : `${capital(changeOf(question, was, label))}; u undoes it.`;
  const { at: place, case_id, answer } = view.item;
  view.drafts.delete(draftKey(question));
  view.outbox.add({ at: place, case_id, answer, metric: question.metric, claim: question.claim, label, comment, was });
};

const moveOn = () => {
  const next = nextOpen(view.focus);
  choose(next >= 0 ? next : view.focus);
};

// Say a label of the question that is shown: it goes to the server at once, and the next open question comes into focus.
const say = (label) => {
  const question = view.item && view.questions[view.focus];
  if (!question) return;
  const comment = at("comment").value.trim();
  const before = answerOf(question);
  if (!before || before.label !== label || (before.comment ?? "") !== comment) send(question, label, comment);
  else view.changed = "";
  const doubted = doubtOf(question.metric);
  if (doubted >= 0) choose(doubted, { doubt: true });
  else moveOn();
};

const onward = () => {
  if (!view.item || !view.questions.length) return;
  const offered = enterStep();
  if (offered?.act === "keep") moveOn();
  else if (offered?.act === "take") say(offered.label);
  else if (offered) step(1);
};

const undo = async () => {
  const back = waiting().length ? view.outbox.takeBack() : null;
  if (back) return open(back.at, { undone: back });
  if (view.outbox && !(await view.outbox.flush())) return tell("Not undone: something before it is not saved yet");
  return attempt(async () => {
    let reply;
    try {
      reply = await server.undo(view.annotator);
    } catch (problem) {
      tell(problem instanceof server.Refused ? problem.message : "Not undone, as far as is known");
      if (problem instanceof server.Refused) return undefined;
      throw problem;
    }
    Object.assign(view.session, progressOf(reply));
    await showCase(reply.at, { undone: reply.undone });
    return tell("Undone");
  }, freshen); // done twice, it might take back two labels
};

// The judge's opinion: free once the case is labelled, before that only after a warning.
const opinion = async () => {
  if (!view.item || isPool()) return undefined; // nobody is shown what a judge said of a pool
  if (waiting().length) await view.outbox.flush(); // what is on its way may finish the case
  if (view.item.judged === null) return at("warned").showModal();
  view.opinion = !view.opinion;
  draw();
  if (view.opinion) at("judge").scrollIntoView({ block: "nearest" });
  return undefined;
};

const reveal = () => attempt(async () => {
  at("warned").close();
  const item = await server.reveal(view.annotator, view.item.at);
  if (item.at !== view.item?.at) return;
  Object.assign(view, { item, opinion: true });
  draw();
  at("judge").scrollIntoView({ block: "nearest" });
  tell("Recorded: the judge's opinion was shown");
});

const write = () => {
  if (!view.item) return;
  view.writing = !view.writing;
  drawComment(at("comment").value, view.writing);
  if (view.writing) at("comment").focus();
};

// A comment goes with its label; without one it waits for it.
const commented = () => {
  const question = view.item && view.questions[view.focus];
  if (!question) return;
  const comment = at("comment").value.trim();
  const answer = answerOf(question);
  if (!answer) return view.drafts.set(draftKey(question), comment);
  if ((answer.comment ?? "") !== comment) send(question, answer.label, comment);
  draw();
};

const leaveComment = () => {
  at("comment").blur();
  view.writing = false;
  drawComment(at("comment").value, false);
  document.getElementById("title")?.focus({ preventScroll: true });
};

const foldAll = () => {
  const all = [...document.querySelectorAll(".passage")];
  const closed = all.some((one) => !one.open);
  for (const one of all) one.open = closed;
};

const saved = (reply, entry) => {
  const question = view.questions.find((one) => one.metric === entry.metric && one.claim === entry.claim);
  if (reply.case_id === view.item?.case_id) view.item = reply;
  Object.assign(view.session, progressOf(reply));
  view.blocked = null;
  const whole = isPool() ? "passage" : "answer";
  const what = entry.claim === null ? whole : `claim ${entry.claim + 1}`;
  const changed = question && ![undefined, entry.label].includes(entry.was);
  const said = changed ? `${changeOf(question, entry.was, entry.label)}, u undoes it`
    : question && `${what} ${word(question, entry.label)}`;
  tell(said ? `Saved: ${said}` : "Saved");
  draw();
};

const saving = () => {
  if (!view.blocked) tell("Saving\u2026"); // what is tried again is not told every time
  draw();
};

const failed = (problem) => {
  view.blocked = problem;
  tell("Not saved");
  draw();
  seek();
};

const emptied = () => {
  view.blocked = null;
  tell("");
  draw();
};

const who = (problem = "") => {
  Object.assign(view, { annotator: "", item: null });
  at("desk").replaceChildren(drawWho(view.session, problem, begin));
  draw();
  at("name").focus();
};

// Begin, or go on where this annotator stopped.
const resume = async (name, from = { at: null, end: false }) => {
  let session;
  try {
    session = await server.session(name);
  } catch (problem) {
    if (!(problem instanceof server.Refused)) throw problem;
    return who(problem.message);
  }
  const { annotator } = session; // in its one way of writing it
  Object.assign(view, { session, annotator, outbox: outboxOf(session.run, annotator, { saving, saved, failed, emptied }) });
  drawKeys(session.metrics);
  await view.outbox.adopt();
  if (!session.total) return standAlone(drawNothing(session), null, false);
  if (from.end) return showEnd(false);
  return showCase(from.at ?? session.open ?? session.total, { push: false });
};

const begin = (name) => attempt(() => resume(name));

const start = () => attempt(async () => {
  const from = readAddress();
  view.session = await server.session("");
  const name = view.session.mode === "adjudicate" ? ADJUDICATED : from.annotator;
  if (name) await resume(name, from);
  else who();
});

// An address that somebody wrote, or the way back.
const follow = () => {
  const from = readAddress();
  if (from.annotator !== view.annotator) return start();
  if (from.end) return attempt(() => showEnd(false));
  return open(from.at ?? view.session.open ?? 0, { push: false });
};

const acts = {
  j: () => choose(view.focus + 1), k: () => choose(view.focus - 1),
  ArrowDown: () => choose(view.focus + 1), ArrowUp: () => choose(view.focus - 1),
  n: () => step(1), p: () => step(-1), s: () => say(null), u: undo, "Control+z": undo,
  c: write, o: opinion, e: foldAll, Enter: onward, "?": () => at("keys").showModal(),
};

// A label's key is of the question that is shown.
const labelKey = (key) => {
  const shown = view.item && view.questions[view.focus];
  const chosen = shown && choicesOf(shown).find((one) => one.key === key);
  return chosen ? () => say(chosen.label) : null;
};

const pressed = {
  good: () => say(1), bad: () => say(0), high: () => say(2), skip: () => say(null), enter: onward,
  previous: () => step(-1), next: () => step(1), undo, write, opinion, help: () => at("keys").showModal(),
  retry, drop: () => view.outbox.drop(), change: () => who(),
  reveal, "keep-hidden": () => at("warned").close(), "hide-keys": () => at("keys").close(),
};
for (const [id, act] of Object.entries(pressed)) at(id).addEventListener("click", act);
at("comment").addEventListener("change", commented);
at("comment").addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === "Escape") leaveComment();
});
addEventListener("hashchange", follow);
freshenOnReturn();
addEventListener("beforeunload", (event) => {
  if (waiting().length || [...view.drafts.values()].some(Boolean)) event.preventDefault();
});
for (const format of ["csv", "jsonl"]) at(format).href = server.exportAddress(format);
listen(acts, labelKey);
start();
