// Labels on their way to the disk: kept in this browser until the server says that it has them.

import * as server from "./server.js";

const PREFIX = "misslink unsaved";

// A browser may forbid storage to a page; the labels are then kept as long as the page is open.
const stored = (act) => {
  try {
    return act(localStorage);
  } catch {
    return null;
  }
};

// Another run may be served at this address by now, or the same one evaluated anew.
const confirm = async (run, annotator, entry) => {
  const session = await server.session(annotator);
  if (session.run !== run) throw new server.Refused(`another run, ${session.run}, is served here now`);
  const item = await server.item(annotator, entry.at);
  if (item.case_id !== entry.case_id || item.answer !== entry.answer) {
    throw new server.Refused("this label is of an answer that the run no longer holds");
  }
};

// What it calls: `saving()` before a label is sent, `saved(reply, entry)` when it is on disk,
// `failed(problem)` when it could not be saved, `emptied()` when the last one was left out.
export const outboxOf = (run, annotator, { saving, saved, failed, emptied }) => {
  const prefix = [PREFIX, run, annotator, ""].map(encodeURIComponent).join("|");
  const entries = [];
  let running = null;

  const keep = (entry) => stored((storage) => storage.setItem(prefix + entry.key, JSON.stringify(entry)));
  const forget = (entry) => stored((storage) => storage.removeItem(prefix + entry.key));

  const send = async (entry) => {
    const { case_id, answer, key, tried, was, ...content } = entry;
    if (tried) await confirm(run, annotator, entry);
    return server.label({ annotator, ...content });
  };

  const work = async () => {
    while (entries.length) {
      const [entry] = entries;
      saving();
      try {
        const reply = await send(entry);
        entries.shift();
        forget(entry);
        saved(reply, entry);
      } catch (problem) {
        if (!(problem instanceof server.Gone || problem instanceof server.Refused)) throw problem;
        entry.tried = true; // it may be on disk, though no answer came
        keep(entry);
        failed(problem);
        return false;
      }
    }
    return true;
  };

  // Returns whether everything is on disk.
  const flush = () => {
    running ??= work().finally(() => { running = null; });
    return running;
  };

  const add = (entry) => {
    const numbered = { ...entry, key: `${Date.now()}-${crypto.randomUUID()}` };
    entries.push(numbered);
    keep(numbered);
    return flush();
  };

  // What an earlier page could not save, oldest first.
  const adopt = () => {
    const keys = stored((storage) => Object.keys(storage).filter((key) => key.startsWith(prefix))) ?? [];
    for (const key of keys.sort()) {
      const entry = stored((storage) => JSON.parse(storage.getItem(key)));
      if (entry?.key) entries.push({ ...entry, tried: true });
    }
    return entries.length ? flush() : Promise.resolve(true);
  };

  // Leave out the one that is refused.
  const drop = () => {
    const entry = entries.shift();
    if (entry) forget(entry);
    if (!entries.length) emptied();
    return flush();
  };

  // Take back the last one if it was not sent yet.
  const takeBack = () => {
    const last = entries.at(-1);
    if (!last || last.tried || (running && entries.length === 1)) return null;
    forget(entries.pop());
    if (!entries.length) emptied();
    return last;
  };

  return { entries, add, adopt, drop, flush, takeBack };
};
