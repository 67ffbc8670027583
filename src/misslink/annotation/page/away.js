// While the server is away: what failed is told, and done once it answers again.

import { troubled, view, waiting } from "./desk.js";
import * as server from "./server.js";
import { expected } from "./trouble.js";

const RETRY = 3_000; // milliseconds

// Do a whole step that needs the server; where that fails it is told, and `again` is done once it
// answers: the step itself, unless doing it twice would be another.
export const attempt = async (step, again = step) => {
  try {
    await step();
    view.problem = view.missed = null;
  } catch (problem) {
    if (!expected(problem)) throw problem;
    [view.problem, view.missed] = [problem, again];
  }
  troubled();
  seek();
};

// Save what is not saved, then do what was missed.
export const retry = async () => {
  const { missed } = view;
  if (view.outbox && !(await view.outbox.flush())) return;
  if (missed) await attempt(missed);
  else troubled();
};

export const refuseOther = (session) => {
  if (view.session && session.run !== view.session.run) {
    throw new server.Refused(`another run, ${session.run}, is served here now`);
  }
};

const look = async () => {
  try {
    const session = await server.session("");
    if (!waiting().length) refuseOther(session); // else the outbox says it, with what it holds
  } catch (problem) {
    if (!expected(problem)) throw problem;
    if (problem instanceof server.Refused) {
      view.problem = problem;
      troubled();
    }
    return;
  }
  await retry();
};

// Look for the server every few seconds, as long as it is away.
let timer = null;
export const seek = () => {
  if (timer !== null || !((view.blocked ?? view.problem) instanceof server.Gone)) return;
  timer = setTimeout(() => look().finally(() => {
    timer = null;
    seek();
  }), RETRY);
};
