// Coming back to the page: another one under the same name may have labelled meanwhile.

import { attempt, refuseOther, retry } from "./away.js";
import { answerOf, draw, view, waiting } from "./desk.js";
import { drawComment } from "./dock.js";
import { at } from "./dom.js";
import * as server from "./server.js";

const commentOf = () => answerOf(view.questions[view.focus])?.comment ?? "";

// Ask for the open case again; what is said here meanwhile is newer and stays.
export const freshen = async () => {
  const { item: before, annotator } = view;
  if (!before || waiting().length) return;
  const session = await server.session(annotator);
  refuseOther(session);
  const item = await server.item(annotator, before.at);
  if (view.item !== before || view.annotator !== annotator || waiting().length) return;
  const field = at("comment");
  const untouched = document.activeElement !== field && field.value.trim() === commentOf();
  Object.assign(view, { session, item });
  draw();
  if (untouched) drawComment(commentOf(), view.writing);
};

let busy = false;
const returned = async () => {
  if (document.hidden || busy || !view.item) return;
  busy = true;
  try {
    await (view.blocked || view.problem ? retry() : attempt(freshen));
  } finally {
    busy = false;
  }
};

export const freshenOnReturn = () => {
  addEventListener("focus", returned);
  document.addEventListener("visibilitychange", returned);
};
