// The fields above the list, and what they are set to.

const MOST_OPTIONS = 300; // of a tag with as many values as cases; an address can name any

const SORTS = [["", "worst first"], ["gold", "as in the gold set"], ["claims", "most unsupported claims first"],
  ["rank", "lowest rank of a missed passage first"], ["latency", "slowest first"]];
const STATES = { failed: "Failed", passed: "Passed", inconclusive: "Inconclusive", error: "Errors" };

// By choice, what its values are called; in maps, for a category may be named as any object's part.
const NAMES = new Map(Object.entries(data ? {
  state: STATES, owner: data.owner_names, failure: data.failure_modes, retrieval: data.retrievals,
  answer: data.answers, lost_at: data.stages, miss_type: data.miss_types, people: data.people,
} : {}).map(([key, names]) => [key, new Map(Object.entries(names))]));
const nameOf = (key, value) => NAMES.get(key)?.get(value) ?? visible(value);
const TITLES = {
  state: "Cases", owner: "Owner", failure: "Failure mode", retrieval: "Retrieval", answer: "Answer", correct: "Correct",
  lost_at: "Fact lost at", miss_type: "Why missed", category: "Category", tier: "Tier", metric: "Bad verdict of", tag: "Tag", people: "Annotators",
};

const counted = (rows, of) => {
  const counts = new Map();
  for (const row of rows) {
    for (const value of of(row)) if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
};

// Options in the glossary's order where it has one, else the most frequent first.
const optionsOf = (key) => {
  const here = counted(data.rows, OFFERED[key]);
  const all = PARTIAL ? ALL.get(key) : here;
  const known = [...NAMES.get(key)?.keys() ?? []].filter((value) => all.has(value));
  const others = [...all.keys()].filter((value) => !known.includes(value))
    .sort((a, b) => all.get(b) - all.get(a)).slice(0, MOST_OPTIONS);
  const count = (value) => (PARTIAL ? `${grouped(here.get(value) ?? 0)} of ${grouped(all.get(value))}` : here.get(value));
  return [...known, ...others].map((value) => [value, `${nameOf(key, value)} (${count(value)})`]);
};

const measured = () =>
  data.metrics.filter((_, place) => data.rows.some((row) => typeof row.values?.[place] === "number"));

// What a choice can be set to; a word of the glossary counts where no case has it.
const knows = (key, value) =>
  ({ correct: ["yes", "no"], metric: data.metrics, sort: ["", ...Object.keys(COLUMNS), ...measured()] })[key]
    ?.includes(key === "sort" ? columnOf(value) : value) ?? (NAMES.get(key)?.has(value) || ALL.get(key)?.has(value) || data.rows.some((row) => OFFERED[key](row).includes(value)));

// The view without what this report does not have, what that was, as the address has it, and the
// number of its case where that is one of the run and not of this page, else 0.
const straighten = (view, numbers) => {
  const astray = [...CHOICES, "sort"].filter((key) => view[key] && !knows(key, view[key]));
  const tags = view.tags.filter((tag) => !knows("tag", tag));
  const elsewhere = (number) => PARTIAL && number > 0 && number <= data.total && !numbers.has(number);
  const ids = view.ids.filter((id) => !numbers.has(id) && !elsewhere(id));
  const missing = new Set(ids);
  const away = elsewhere(view.case) ? view.case : 0;
  const without = Object.fromEntries(astray.map((key) => [key, ""]));
  const gone = view.case && !numbers.has(view.case);
  return [
    {
      ...view, ...without, tags: view.tags.filter((tag) => !tags.includes(tag)),
      ids: view.ids.filter((id) => !missing.has(id)), ...(gone ? { case: 0, claim: 0, passage: 0 } : {}),
    },
    [...(gone && !away ? [`case ${view.case}`] : []), ...ids.map((id) => `case ${id}`),
      ...astray.map((key) => `${key}=${view[key]}`), ...tags.map((tag) => `tag=${tag}`)],
    away,
  ];
};

const NAMED = 3; // of the unknown parts of an address
const LONGEST = 60; // characters of one

// Isolated, so that a name turns no direction but its own.
const describeUnknown = (names) => {
  const short = (name) => visible([...name].slice(0, LONGEST).join("")) + (name.length > LONGEST ? "\u2026" : "");
  const parts = names.slice(0, NAMED).map((name) => (/^(case|claim|passage) /.test(name) ? name : `\u2068\u201c${short(name)}\u201d\u2069`));
  const more = names.length > NAMED ? `, nor ${names.length - NAMED} more of this address,` : "";
  return names.length ? `There is no ${parts.join(", no ")}${more} in this report.` : "";
};

const fill = (select, options) =>
  select.replaceChildren(...options.map(([value, label]) => {
    const option = el("option", { dir: "auto" }, visible(label));
    option.value = value;
    return option;
  }));

// An address may hold a value that no case has: then the field names it all the same.
const setTo = (select, value, name = value) => {
  if (![...select.options].some((option) => option.value === value)) {
    const option = el("option", { dir: "auto" }, visible(name));
    option.value = value;
    select.append(option);
  }
  select.value = value;
};

// `changed` is called with what of the view is new.
const makeFilters = (at, changed) => {
  const fields = Object.fromEntries([...CHOICES, "tag", "sort", "q"].map((key) => [key, at(`by-${key}`)]));
  for (const key of [...CHOICES, "tag"]) {
    const options = optionsOf(key);
    fill(fields[key], [["", key === "tag" ? "any (choose to add)" : "any"], ...options]);
    if (!options.length) fields[key].closest("label").hidden = true;
    fields[key].addEventListener("change", () => {
      const value = fields[key].value;
      if (key !== "tag") changed({ [key]: value });
      else if (value) changed((view) => ({ tags: [...new Set([...view.tags, value])] }));
    });
  }
  fill(fields.sort, [...SORTS, ...measured().map((name) =>
    [name, `${name}, ${data.lower.includes(name) ? "highest" : "lowest"} first`])]);
  fields.sort.addEventListener("change", () => changed({ sort: fields.sort.value }));
  fields.q.addEventListener("focus", () => ["case-bodies", "case-texts"].forEach(chunksOf), { once: true });
  let typed = 0;
  fields.q.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => changed({ q: fields.q.value.trim() }), 120);
  });

  // The fields and the chips show the view, whoever set it.
  const show = (view) => {
    for (const key of CHOICES) setTo(fields[key], view[key], nameOf(key, view[key]));
    fields.tag.value = "";
    setTo(fields.sort, view.sort, `${columnOf(view.sort)}, ${descending(view.sort) ? "highest" : "lowest"} first`);
    if (fields.q.value.trim() !== view.q) fields.q.value = view.q;
    const chip = (words, without) => {
      const made = el("button", { type: "button", class: "chip", "aria-label": `Remove: ${words}` },
        userText("span", "", words), " \u00d7");
      made.addEventListener("click", () => changed(without));
      return made;
    };
    const chips = CHOICES.filter((key) => view[key]).map((key) =>
      chip(`${TITLES[key]}: ${nameOf(key, view[key])}`, { [key]: "" }));
    chips.push(...view.tags.map((tag) =>
      chip(`${TITLES.tag}: ${visible(tag)}`, (now) => ({ tags: now.tags.filter((one) => one !== tag) }))));
    if (view.ids.length) chips.push(chip(`chosen: ${plural(view.ids.length, "case")}`, { ids: [] }));
    if (view.q) chips.push(chip(`Text: ${view.q}`, { q: "" }));
    at("chosen").replaceChildren(...chips.flatMap((one) => [one, " "]));
  };
  const empty = () => {
    clearTimeout(typed);
    fields.q.value = "";
    changed({ q: "" });
  };
  return { show, empty, field: fields.q };
};
