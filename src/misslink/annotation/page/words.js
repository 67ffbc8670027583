// Texts cut into pieces: by the places of claims, and by the words that a claim and a passage share.

import { grouped } from "./dom.js";

const WORD = /[\p{L}\p{N}\p{M}_]+(?:['\u2019.-][\p{L}\p{N}\p{M}_]+)*/gu;

// English words that say nothing about where a claim comes from.
const COMMON = new Set(`a about after all also an and any are as at be because been before being between
  both but by can could did do does during each either for from further had has have having he her here
  his how if in into is it its itself just may might more most must no nor not now of off on once only
  or other our out over own same she should so some such than that the their them then there these they
  this those through to too under until up upon us very was we were what when where whether which while
  who whom whose why will with within without would you your`.split(/\s+/));

const folded = (word) => word.normalize("NFKC").toLowerCase();

// The words of a text that are worth looking for.
export const contentWords = (text) => new Set(
  (text.match(WORD) ?? []).map(folded).filter((word) => !COMMON.has(word)));

// Where the words of a text stand that may be looked for, as [start, end, word]; whole words only.
export const wordsOf = (text) => [...text.matchAll(WORD)]
  .map((found) => [found.index, found.index + found[0].length, folded(found[0])])
  .filter(([, , word]) => !COMMON.has(word));

// The text as [piece, whether it is one of the words].
export const byWords = (text, places, words) => {
  const pieces = [];
  let at = 0;
  for (const [start, end, word] of places) {
    if (!words.has(word)) continue;
    if (start > at) pieces.push([text.slice(at, start), false]);
    pieces.push([text.slice(start, end), true]);
    at = end;
  }
  if (at < text.length) pieces.push([text.slice(at), false]);
  return pieces;
};

// The text cut wherever a span begins or ends: its pieces, the spans over each, and those that end
// with it. Places are code points, as Python counts them; JavaScript's own would slip behind an emoji.
export const bySpans = (text, spans) => {
  const signs = Array.from(text);
  const placed = spans.filter(({ start, end }) => Number.isInteger(start) && Number.isInteger(end)
    && start >= 0 && start < end && end <= signs.length);
  const edges = [...new Set([0, signs.length, ...placed.flatMap((one) => [one.start, one.end])])];
  edges.sort((a, b) => a - b);
  const starts = grouped(placed, (one) => one.start);
  const stops = grouped(placed, (one) => one.end);
  let over = [];
  return edges.slice(1).map((end, i) => {
    const begun = starts.get(edges[i]) ?? [];
    if (begun.length) over = [...over, ...begun].sort((a, b) => a.number - b.number);
    const ends = stops.get(end) ?? [];
    const piece = { text: signs.slice(edges[i], end).join(""), over, ends };
    if (ends.length) over = over.filter((one) => one.end !== end);
    return piece;
  });
};
