// The cases as data: read on demand, narrowed, searched and ordered.

const SLICE_MS = 12; // of searching at a time, so that typing and scrolling stay smooth

const blockOf = (id) => {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent) : null;
};

const data = blockOf("case-list");
const chunks = new Map();

// Null where it does not stand on the page, or not yet: the page may still be loading.
const chunkOf = (id) => {
  if (!chunks.has(id)) {
    const read = blockOf(id);
    if (!read) return null;
    chunks.set(id, read);
  }
  return chunks.get(id);
};

// Bodies stand in the order of their numbers, of which a large run's page has only some.
const placeOf = new Map(
  data?.rows.map((row) => row.number).sort((a, b) => a - b).map((number, place) => [number, place]),
);

const heldOf = (number) => {
  const place = placeOf.get(number);
  return chunkOf(`case-bodies-${Math.floor(place / data.chunk)}`)?.[place % data.chunk];
};

// By claim, from where to where the answer is marked as it.
const spansOf = (marks) => {
  const spans = new Map();
  let start = 0;
  for (const [end, , claims] of marks ?? []) {
    for (const claim of claims ?? []) spans.set(claim, [spans.get(claim)?.[0] ?? start, end]);
    start = end;
  }
  return spans;
};

const partOf = (part) => (Number.isInteger(part) ? chunkOf("case-parts")[part] : part);

// A body with all that explorer.py holds elsewhere put back.
const bodyOf = (number) => {
  const held = heldOf(number);
  if (!held) return held;
  const spans = spansOf(held.marks);
  const claim = (one, i) => ({
    ...one, number: i + 1, text: one.text ?? (held.answer ?? "").slice(...spans.get(i + 1) ?? [0, 0]),
    quotes: partOf(one.quotes), needed: partOf(one.needed),
  });
  const passage = (one, i) => ({ ...one, rank: one.rank ?? String(i + 1), flags: partOf(one.flags) });
  return {
    ...held, evidence: held.evidence?.map(partOf), verdicts: held.verdicts?.map(partOf),
    judges: partOf(held.judges), fix: partOf(held.fix), claims: held.claims?.map(claim),
    retrieved: held.retrieved?.map(passage), missed: held.missed?.map(passage),
  };
};

const passageText = (passage) => {
  if (passage.text === undefined) return "";
  const place = Math.floor(passage.text / data.texts);
  return chunkOf(`case-texts-${place}`)?.[passage.text % data.texts] ?? "";
};

const loaded = (then) => {
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", then, { once: true });
  else then();
};

const fits = (row, view) =>
  (!view.failure || row.failure === view.failure) &&
  (!view.retrieval || row.retrieval === view.retrieval) &&
  (!view.answer || row.answer === view.answer) &&
  (!view.correct || row.correct === view.correct) &&
  (!view.category || row.category === view.category) &&
  (!view.tier || row.tier === view.tier) &&
  (!view.miss_type || Boolean(row.miss_types?.includes(view.miss_type))) &&
  (!view.metric || Boolean(row.bad?.includes(data.metrics.indexOf(view.metric)))) &&
  (!view.people || Boolean(row.people?.includes(view.people))) &&
  view.tags.every((tag) => row.tags?.includes(tag));

// Without a value last, whichever way; equal ones stay worst first, for sorting is stable.
const byValue = (rows, value, highestFirst) =>
  [...rows].sort((a, b) => {
    const [x, y] = [value(a) ?? null, value(b) ?? null];
    if (x === null || y === null) return (x === null) - (y === null);
    return highestFirst ? y - x : x - y;
  });

const ordered = (rows, sort) => {
  if (sort === "gold") return byValue(rows, (row) => row.number, false);
  if (sort === "latency") return byValue(rows, (row) => row.latency, true);
  const place = data.metrics.indexOf(sort);
  if (place < 0) return rows;
  return byValue(rows, (row) => row.values?.[place], data.lower.includes(sort));
};

const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

// Numbers of the rows that hold every word, wherever; it yields so that it can be cut in slices.
function* scan(rows, words) {
  const holding = words.map(() => new Set()); // by word, the texts that hold it
  for (let place = 0, texts; (texts = chunkOf(`case-texts-${place}`)); place += 1) {
    for (const [at, text] of texts.entries()) {
      const folded = text.toLowerCase();
      words.forEach((word, i) => folded.includes(word) && holding[i].add(place * data.texts + at));
      if (at % 32 === 0) yield;
    }
  }
  const found = new Set();
  for (const [at, row] of rows.entries()) {
    const body = heldOf(row.number) ?? {}; // a claim without a text is in the answer
    const passages = [...(body.retrieved ?? []), ...(body.missed ?? [])];
    const own = [row.id, row.question, body.answer, ...(body.references ?? []),
      ...(body.claims ?? []).map((claim) => claim.text ?? ""), ...passages.map((passage) => passage.id)].join("\n").toLowerCase();
    const has = (word, i) =>
      own.includes(word) || passages.some((passage) => holding[i].has(passage.text));
    if (words.every(has)) found.add(row.number);
    if (at % 32 === 0) yield;
  }
  return found;
}

let searching = 0;

// Calls `then` with the numbers found, at once where that is quick; a newer search ends this one.
const search = (rows, words, then) => {
  searching += 1;
  const mine = searching;
  const steps = scan(rows, words);
  const slice = () => {
    if (mine !== searching) return;
    const end = performance.now() + SLICE_MS;
    let step = steps.next();
    while (!step.done && performance.now() < end) step = steps.next();
    if (step.done) then(step.value);
    else setTimeout(slice);
  };
  loaded(slice);
};

const endSearch = () => {
  searching += 1;
};
