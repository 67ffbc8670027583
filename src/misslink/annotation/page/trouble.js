// The banner: what stands in the way, what is not saved, and how to go on.

import { at, el, plain } from "./dom.js";
import { quoted } from "./pages.js";
import { Gone, Refused } from "./server.js";
import { CLAIM, word } from "./questions.js";

const SHOWN = 5;

const adviceOf = (problem, count) => {
  const kept = count ? " What is not saved is kept here." : "";
  if (problem instanceof Refused) return `${problem.message}.${count ? " The label below is kept here until it is saved or left out." : ""}`;
  if (problem.answered) return `${problem.message}.${kept}`;
  const port = location.port ? ` --port ${location.port}` : "";
  return `${problem.message}. Start "misslink annotate ${quoted(at("run").textContent)}${port}" again in its terminal; this page finds it by itself.${kept}`;
};

// In the words of the page; of a metric that is not asked about now, in general ones.
const lineOf = (entry, metrics) => {
  const ofClaim = entry.claim !== null;
  const what = ofClaim ? `claim ${entry.claim + 1}` : "the answer";
  const asked = metrics.find((metric) => metric.name === entry.metric) ?? { good: "good", bad: "bad" };
  const words = ofClaim ? CLAIM : asked;
  return el("li", { dir: "auto" }, `Case ${entry.at + 1}, ${what}, ${plain(entry.metric)}: `,
    word(words, entry.label), entry.comment && `, ${entry.comment}`);
};

// `problem` is null where nothing is wrong; `entries` are the labels that are not on disk.
export const drawTrouble = (problem, entries, metrics) => {
  at("banner").hidden = !problem;
  if (!problem) return;
  const advice = adviceOf(problem, entries.length);
  if (at("trouble").textContent !== advice) at("trouble").textContent = advice; // else it is read aloud again
  const more = entries.length - SHOWN;
  at("unsaved").replaceChildren(...entries.slice(0, SHOWN).map((one) => lineOf(one, metrics)),
    ...(more > 0 ? [el("li", {}, `and ${more} more`)] : []));
  at("drop").hidden = !(problem instanceof Refused && entries.length);
};

// What is no trouble with the server is a fault of this page, and is left to be seen as one.
export const expected = (problem) => problem instanceof Gone || problem instanceof Refused;
