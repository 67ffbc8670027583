// A selection of cases and its address: report/links.py writes the same fragments.

const CHOICES = [
  "state", "owner", "failure", "retrieval", "answer", "correct", "lost_at", "miss_type", "category", "tier", "metric", "people",
];

const emptyView = () => ({
  ...Object.fromEntries(CHOICES.map((key) => [key, ""])),
  tags: [], ids: [], q: "", sort: "", case: 0, claim: 0, passage: 0,
});

// A case is named by its number in the gold set, else by its id.
const caseOf = (value, number) =>
  (data.rows.find((row) => row.number === number) ?? data.rows.find((row) => row.id === value))?.number ?? number;

// An address may come from another report, or from anybody: `strange` is what no report knows.
const readView = (hash) => {
  const [view, strange] = [emptyView(), []];
  const number = (value) => (/^\d{1,9}$/.test(value) ? Number(value) : 0);
  for (const [key, value] of new URLSearchParams(hash)) {
    if (!value) continue;
    if (key === "tag") view.tags = [...new Set([...view.tags, value])];
    else if (key === "ids") {
      const parts = [...new Set(value.split(","))];
      view.ids = parts.map(number).filter(Boolean);
      strange.push(...parts.filter((part) => part && !number(part)).map((part) => `${key}=${part}`));
    } else if (["case", "claim", "passage"].includes(key)) {
      view[key] = key === "case" ? caseOf(value, number(value)) : number(value);
      if (!view[key]) strange.push(`${key}=${value}`);
    } else if (key === "q" || key === "sort" || CHOICES.includes(key)) view[key] = value;
    else strange.push(`${key}=${value}`);
  }
  return [view, strange];
};

// encodeURIComponent throws on half a surrogate pair.
const encoded = (text) => encodeURIComponent(text.replace(/[\ud800-\udfff]/gu, "\ufffd"));

const writeView = (view) => {
  const parts = CHOICES.map((key) => [key, encoded(view[key])]);
  parts.push(...view.tags.map((tag) => ["tag", encoded(tag)]));
  parts.push(["ids", view.ids.join(",")], ["q", encoded(view.q)], ["sort", encoded(view.sort)]);
  parts.push(...["case", "claim", "passage"].map((key) => [key, view[key] || ""]));
  return parts.filter(([, value]) => value).map((part) => part.join("=")).join("&") || "cases";
};

const pageAddress = () => location.href.split("#")[0];

// `push`: a step that Back undoes; otherwise the address of the same step.
const putAddress = (view, push) => {
  try {
    if (push) history.pushState({ opened: true }, "", `#${writeView(view)}`);
    else history.replaceState(history.state, "", `#${writeView(view)}`);
  } catch {
    // Browsers refuse many changes in a short time; the next one writes it again.
  }
};
