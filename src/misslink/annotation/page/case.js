// One case as it is read: its question, its references, its answer by claims, its passages.

import { el, plural, said } from "./dom.js";
import { bySpans, byWords, contentWords, wordsOf } from "./words.js";

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
  (item.history ?? []).map(({ role, content }) => said("p", "said", `${role}: ${content}`)),
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

// A passage of a pool, with its question: of where it comes from nothing is known here.
export const drawPassage = (item, number, total) => el("article", { class: "case", "aria-labelledby": "title" },
  el("p", { class: "small meta" }, `Passage ${number} of ${total}`),
  el("h2", { id: "title", tabindex: -1, dir: "auto" }, item.question),
  el("div", { class: "graded" },
    el("h3", {}, "Passage"),
    item.answer ? said("div", "said answer") : el("p", { class: "none answer" }, "It has no text."),
    el("h3", {}, "To label"),
    el("ol", { class: "questions" }),
    el("section", { id: "judge", hidden: true })));

// Draw the answer with its claims marked where they stand; a click on one goes to its question.
// Returns how to colour a claim again: only what stands over it is touched.
export const drawAnswer = (place, item, choose) => {
  const spans = item.claims.map((claim, i) => ({ ...claim, number: i + 1 }));
  const pieces = new Map(spans.map((claim) => [claim.index, []]));
  place.replaceChildren(...bySpans(item.answer ?? "", spans).flatMap(({ text, over, ends }) => {
    if (!over.length) return [text];
    const made = el("mark", {}, text);
    const piece = { made, over, lit: over.at(-1) };
    made.addEventListener("click", () => choose(piece.lit.index));
    for (const claim of over) pieces.get(claim.index).push(piece);
    return [made, ...ends.map((claim) => el("sup", {}, claim.number))];
  }));
  return (index, focus, colourOf) => {
    for (const piece of pieces.get(index) ?? []) {
      piece.lit = piece.over.find((claim) => claim.index === focus) ?? piece.over.at(-1);
      piece.made.className = `claim ${colourOf(piece.lit.index)}${piece.lit.index === focus ? " lit" : ""}`;
    }
  };
};

// Returns how to mark the words of a claim in every passage, and say how many of them it holds.
export const markerOf = (desk, item) => {
  const drawn = [...desk.querySelectorAll(".passage")].map((one, i) => {
    const text = item.passages[i].text ?? "";
    const places = wordsOf(text);
    return {
      text, places, held: new Set(places.map(([, , word]) => word)), marked: "",
      said: one.querySelector(".said"), found: one.querySelector(".found"),
    };
  });
  return (claim) => {
    const words = claim ? contentWords(claim.text) : new Set();
    for (const one of drawn) {
      const found = [...words].filter((word) => one.held.has(word));
      const marked = found.join(" ");
      if (marked !== one.marked) {
        one.said?.replaceChildren(...byWords(one.text, one.places, new Set(found))
          .map(([text, hit]) => (hit ? el("mark", {}, text) : text)));
        one.marked = marked;
      }
      one.found.textContent = words.size ? `${found.length} of ${plural(words.size, "word")} of the claim` : "";
    }
  };
};
