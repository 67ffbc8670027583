// Texts cut into pieces: by the places of claims, and by the words that a claim and a passage share.

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

// The text as [piece, whether it is one of the words]; whole words only.
export const byWords = (text, words) => {
  const pieces = [];
  let start = 0;
  for (const found of words.size ? text.matchAll(WORD) : []) {
    if (!words.has(folded(found[0]))) continue;
    if (found.index > start) pieces.push([text.slice(start, found.index), false]);
    pieces.push([found[0], true]);
    start = found.index + found[0].length;
  }
  if (start < text.length) pieces.push([text.slice(start), false]);
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
  return edges.slice(1).map((end, i) => ({
    text: signs.slice(edges[i], end).join(""),
    over: placed.filter((one) => one.start <= edges[i] && one.end >= end),
    ends: placed.filter((one) => one.end === end),
  }));
};
