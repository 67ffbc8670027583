// One case as it is read: its question, its references, its answer by claims, its passages.

import { el, plural, said } from "./dom.js";
import { bySpans, byWords, contentWords } from "./words.js";

const LONG = 1200; // characters of a passage; a longer one is folded at first
const PREVIEW = 140; // characters, about one line

const passageOf = (passage) => {
  const text = passage.text ?? "";
  const line = text.slice(0, 4 * PREVIEW).split(/\s+/).join(" ").trim();
  const preview = Array.from(line).slice(0, PREVIEW).join("");
  return el("details", { class: "passage", open: text.length <= LONG },
    el("summary", {},
      el("span", { class: "rank" }, passage.rank), " ", el("code", { class: "id", dir: "auto" }, passage.id), " ",
      text.length > LONG && el("span", { class: "flag" }, `${text.length.toLocaleString("en")} characters`), " ",
      el("span", { class: "found" }),
      said("span", "preview", preview, preview.length < line.length ? "\u2026" : "")),
    text ? said("div", "said", text) : el("p", { class: "none" }, "Its text is not known."));
};

const passagesOf = (item) => el("section", { class: "passages", "aria-labelledby": "passages-title" },
  el("h3", { id: "passages-title" }, "Passages"),
  item.passages.length
    ? item.passages.map(passageOf)
    : el("p", { class: "none" }, "Nothing was retrieved."));

const referencesOf = (item) => (item.references.length ? [
  el("h3", {}, item.references.length === 1 ? "Reference answer" : "Reference answers"),
  item.references.map((text) => said("div", "said reference", text)),
] : []);

// The parts of a case that its labels do not change.
export const drawCase = (item, number, total) => el("article", { class: "case", "aria-labelledby": "title" },
  el("p", { class: "small meta" }, `Case ${number} of ${total} \u00b7 `, el("code", { dir: "auto" }, item.case_id)),
  el("h2", { id: "title", tabindex: -1, dir: "auto" }, item.question),
  el("div", { class: "columns" },
    el("div", { class: "told" },
      referencesOf(item),
      el("h3", {}, "Answer"),
      said("div", "said answer"),
      el("h3", {}, "To label"),
      el("ol", { class: "questions" }),
      el("section", { class: "judge", id: "judge", "aria-label": "The judge's opinion", tabindex: -1, hidden: true })),
    passagesOf(item)));

// The answer with its claims marked where they stand; a click on one goes to its question.
export const drawAnswer = (item, focus, colourOf, choose) => {
  const spans = item.claims.map((claim, i) => ({ ...claim, number: i + 1 }));
  return bySpans(item.answer ?? "", spans).map(({ text, over, ends }) => {
    if (!over.length) return text;
    const lit = over.find((claim) => claim.index === focus) ?? over.at(-1);
    const made = el("mark", { class: `claim ${colourOf(lit.index)}${lit.index === focus ? " lit" : ""}` }, text);
    made.addEventListener("click", () => choose(lit.index));
    return [made, ends.map((claim) => el("sup", {}, claim.number))];
  }).flat(Infinity);
};

// Mark the words of the claim in focus in every passage, and say how many of them it holds.
export const markWords = (desk, item, claim) => {
  const words = claim ? contentWords(claim.text) : new Set();
  const drawn = desk.querySelectorAll(".passage");
  item.passages.forEach((passage, i) => {
    const pieces = byWords(passage.text ?? "", words);
    const held = contentWords(passage.text ?? "");
    const found = [...words].filter((word) => held.has(word)).length;
    drawn[i].querySelector(".said")?.replaceChildren(
      ...pieces.map(([text, hit]) => (hit ? el("mark", {}, text) : text)));
    drawn[i].querySelector(".found").textContent = words.size
      ? `${found} of ${plural(words.size, "word")} of the claim` : "";
  });
};
