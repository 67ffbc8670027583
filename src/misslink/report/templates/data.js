// The cases as data: read on demand, narrowed, searched and ordered.

const SLICE_MS = 12; // of searching at a time, so that typing and scrolling stay smooth
const SNIPPET = [50, 90]; // characters before and behind what a search found

const complete = new Promise((done) => {
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", () => done(), { once: true });
  else done();
});

const listBlock = document.getElementById("case-list");
const data = listBlock && JSON.parse(listBlock.textContent);

// Large blocks are compressed; null where the page has no such block.
const readBlock = async (id) => {
  if (!document.getElementById(id)) await complete; // the page may still be loading
  const element = document.getElementById(id);
  if (!element) return null;
  if (element.type === "application/json") return JSON.parse(element.textContent);
  const bytes = Uint8Array.from(atob(element.textContent), (sign) => sign.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};

const chunks = new Map();
const chunkOf = (id) => {
  if (!chunks.has(id)) chunks.set(id, readBlock(id));
  return chunks.get(id);
};

// Bodies stand in the order of their numbers, of which a large run's page has only some.
const placeOf = new Map(
  data?.rows.map((row) => row.number).sort((a, b) => a - b).map((number, place) => [number, place]),
);

// By claim, from where to where the answer is marked as it.
const spansOf = (marks) => {
  const spans = new Map();
  let start = 0;
  for (const mark of marks ?? []) {
    for (const claim of mark.claims ?? []) spans.set(claim, [spans.get(claim)?.[0] ?? start, mark.end]);
    start = mark.end;
  }
  return spans;
};

// A body with all that explorer.py stores elsewhere put back.
const bodyOf = async (number) => {
  const place = placeOf.get(number);
  const stored = (await chunkOf(`case-bodies-${Math.floor(place / data.chunk)}`))[place % data.chunk];
  const parts = await chunkOf("case-parts");
  const partOf = (part) => (Number.isInteger(part) ? parts[part] : part);
  const spans = spansOf(stored.marks);
  const claimAt = (claim, i) => ({
    ...claim, number: i + 1, text: claim.text ?? (stored.answer ?? "").slice(...spans.get(i + 1) ?? [0, 0]),
    quotes: partOf(claim.quotes) ?? [], needed: partOf(claim.needed) ?? [],
  });
  const textOf = async (text) => (text === undefined ? ""
    : (await chunkOf(`case-texts-${Math.floor(text / data.texts)}`))[text % data.texts]);
  const passages = (rows) => Promise.all((rows ?? []).map(async (passage, i) => ({
    ...passage, place: i + 1, rank: passage.rank ?? String(i + 1), flags: partOf(passage.flags), text: await textOf(passage.text),
  })));
  const prompt = await Promise.all((stored.prompt ?? []).map((part) => (Number.isInteger(part) ? textOf(part) : part)));
  return {
    ...stored, prompt: prompt.join(""), verdicts: (stored.verdicts ?? []).map(partOf), judges: partOf(stored.judges), fix: partOf(stored.fix),
    claims: (stored.claims ?? []).map(claimAt),
    retrieved: await passages(stored.retrieved), missed: await passages(stored.missed),
  };
};

const stateOf = (row) => {
  if (row.unexplained) return "failed";
  if (!row.failure || row.failure === "inconclusive") return row.failure ?? "";
  return data.failures.includes(row.failure) ? "failed" : "passed";
};
const ownerOf = (row) => (stateOf(row) === "failed" ? data.owners[row.failure] : "");

// What a row offers to each choice.
const OFFERED = {
  state: (row) => [stateOf(row), row.failed_to_run && "error"], owner: (row) => [ownerOf(row)],
  failure: (row) => [row.failure], retrieval: (row) => [row.retrieval], answer: (row) => [row.answered],
  correct: (row) => [row.correct], lost_at: (row) => row.lost_at ?? [], miss_type: (row) => row.miss_types ?? [],
  category: (row) => [row.category], tier: (row) => [row.tier], tag: (row) => row.tags ?? [],
  people: (row) => row.people ?? [],
  metric: (row) => (row.bad ?? []).map((place) => data.metrics[place]),
};

const fits = (row, view) =>
  CHOICES.every((key) => !view[key] || OFFERED[key](row).includes(view[key])) &&
  view.tags.every((tag) => row.tags?.includes(tag));

// By column: what rows are ordered by. Those of HIGHEST_FIRST begin with the highest.
const modeOrder = Object.keys(data?.failure_modes ?? {});
const COLUMNS = {
  mode: (row) => (row.failure ? modeOrder.indexOf(row.failure) : null),
  question: (row) => row.question.toLowerCase(),
  claims: (row) => row.unsupported,
  rank: (row) => row.best_rank ?? row.keyword_rank,
  missed: (row) => row.miss_types && data.miss_types[row.miss_types[0]],
  gold: (row) => row.number,
  latency: (row) => row.latency_s,
};
const HIGHEST_FIRST = ["claims", "latency", ...(data?.lower ?? [])];

const columnOf = (sort) => sort.replace(/^-/, "");
const descending = (sort) => HIGHEST_FIRST.includes(columnOf(sort)) !== sort.startsWith("-");

// Without a value last, whichever way; equal ones stay worst first, for sorting is stable.
const ordered = (rows, sort) => {
  const place = data.metrics.indexOf(columnOf(sort));
  const value = Object.hasOwn(COLUMNS, columnOf(sort)) ? COLUMNS[columnOf(sort)] : (row) => row.values?.[place];
  if (!sort || (place < 0 && !Object.hasOwn(COLUMNS, columnOf(sort)))) return rows;
  const sign = descending(sort) ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a) ?? null, value(b) ?? null];
    if (x === null || y === null) return (x === null) - (y === null);
    return x === y ? 0 : sign * (x < y ? -1 : 1);
  });
};

// Words and "quoted phrases" of a search, without case.
const termsOf = (text) =>
  [...text.toLowerCase().matchAll(/"([^"]+)"?|[^\s"]+/g)].map(([all, phrase]) => (phrase ?? all).trim()).filter(Boolean);

const snippetOf = (texts, term) => {
  for (const text of texts) {
    const at = text.toLowerCase().indexOf(term);
    if (at < 0) continue;
    const [start, end] = [Math.max(0, at - SNIPPET[0]), at + term.length + SNIPPET[1]];
    return `${start ? "\u2026" : ""}${text.slice(start, end)}${end < text.length ? "\u2026" : ""}`;
  }
  return "";
};

// By number, the snippets of the rows that hold every term; it yields so that it can be cut in slices.
function* scan(rows, terms, bodies, texts) {
  const holding = terms.map(() => new Set()); // by term, the texts that hold it
  for (const [at, text] of texts.entries()) {
    const folded = text.toLowerCase();
    terms.forEach((term, i) => folded.includes(term) && holding[i].add(at));
    if (at % 32 === 0) yield;
  }
  const matches = new Map();
  for (const [at, row] of rows.entries()) {
    const body = bodies[placeOf.get(row.number)] ?? {}; // a claim without a text is in the answer
    const passages = [...(body.missed ?? []), ...(body.retrieved ?? [])];
    const own = [body.answer ?? "", ...(body.claims ?? []).map((claim) => claim.text ?? ""),
      ...(body.references ?? []), row.id, ...passages.map((passage) => passage.id)];
    const folded = [row.question, ...own].join("\n").toLowerCase();
    const has = (term, i) => folded.includes(term) || passages.some((passage) => holding[i].has(passage.text));
    if (terms.every(has)) {
      const term = terms.find((one) => !row.question.toLowerCase().includes(one));
      const found = passages.filter((passage) => holding[terms.indexOf(term)]?.has(passage.text));
      matches.set(row.number, term ? snippetOf([...own, ...found.map((passage) => texts[passage.text])], term) : "");
    }
    if (at % 32 === 0) yield;
  }
  return matches;
}

const chunksOf = async (name) => {
  await complete;
  const ids = [];
  while (document.getElementById(`${name}-${ids.length}`)) ids.push(`${name}-${ids.length}`);
  return (await Promise.all(ids.map(chunkOf))).flat();
};

let searching = 0;
const endSearch = () => {
  searching += 1;
};

// Calls `then` with the snippets of the rows that match; a newer search ends this one.
const search = async (rows, terms, then) => {
  searching += 1;
  const mine = searching;
  const steps = scan(rows, terms, await chunksOf("case-bodies"), await chunksOf("case-texts"));
  const slice = () => {
    if (mine !== searching) return;
    const end = performance.now() + SLICE_MS;
    let step = steps.next();
    while (!step.done && performance.now() < end) step = steps.next();
    if (step.done) then(step.value);
    else setTimeout(slice);
  };
  slice();
};
