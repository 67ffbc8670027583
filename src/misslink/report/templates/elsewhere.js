// A page of a large run holds its worst cases; how many others there are, and where they lie.

const PARTIAL = Boolean(data?.total);
// By filter, how many of all cases of the run have each value; empty where all of them are here.
const ALL = new Map(Object.entries(data?.all ?? {}).map(([key, pairs]) => [key, new Map(pairs)]));

const whereAll = () => (data.table
  ? el("a", { href: data.table, download: true }, tableName())
  : el("code", {}, "misslink report RUN --format parquet"));
const tableName = () => decodeURIComponent(data.table);

const partsOf = (view) => [
  ...CHOICES.filter((key) => view[key]).map((key) => [key, view[key]]),
  ...view.tags.map((tag) => ["tag", tag]),
];

// How many of all cases fit, of which `found` are here; null where these counts do not tell.
const totalOf = (view, found) => {
  const parts = partsOf(view);
  if (view.ids.length && !parts.length && !view.q) return view.ids.length;
  const most = Math.min(data.total, ...parts.map(([key, value]) => ALL.get(key)?.get(value) ?? 0));
  if (most === found) return found;
  return parts.length > 1 || view.ids.length || view.q ? null : most;
};

const quotedText = (text) => `'${text.replaceAll("'", "''")}'`;
const quotedName = (name) => `"${name.replaceAll('"', '""')}"`;
const MOST_NUMBERS = 20; // in a condition that a reader can still take in

// The view as a condition in SQL on the table's columns; "" where it is none.
const conditionOf = (view) => {
  if (view.q || view.people || view.lost_at || view.state || view.ids.length > MOST_NUMBERS) return "";
  const is = (column, value) => `${quotedName(column)} = ${value}`;
  const tests = ["owner", "failure", "retrieval", "answer", "category", "tier"]
    .filter((key) => view[key]).map((key) => is(key, quotedText(view[key])));
  if (view.correct) tests.push(is("correct", view.correct === "yes"));
  if (view.miss_type) tests.push(`(list_contains("missed.miss_type", ${quotedText(view.miss_type)}) OR list_contains("missed.status", ${quotedText(view.miss_type)}))`);
  if (view.metric) tests.push(is(`verdicts.${view.metric}.label`, false));
  for (const tag of view.tags) {
    const [name, ...value] = tag.split(":");
    tests.push(is(`tags.${name}`, quotedText(value.join(":"))));
  }
  if (view.ids.length) tests.push(`number in (${view.ids.join(", ")})`);
  return tests.join(" and ");
};

// Under the count: what fits and is not here.
const elsewhereOf = (view, found) => {
  if (!partsOf(view).length && !view.ids.length && !view.q) return []; // the text above the list says it
  const total = totalOf(view, found);
  if (total === found) return [found ? "All cases that fit are here." : "No case of the run fits."];
  const condition = conditionOf(view);
  return [
    total === null
      ? `Of the ${grouped(data.total - data.rows.length)} cases that are not here others may fit; all are in `
      : `${grouped(total)} of all ${grouped(data.total)} cases fit; those that are not here are in `,
    whereAll(),
    ...(condition && data.table ? [": ", userText("code", "", `select * from ${quotedText(tableName())} where ${condition}`)] : ["."]),
  ];
};

// Of a case that an address names.
const awayOf = (number) => [
  `Case ${grouped(number)} is not among the worst ${grouped(data.rows.length)}, which are here; it is number ${number} in `,
  whereAll(), ".",
];
