// A view of the cases and its address: report/places.py writes the same fragments.

const CHOICES = ["cause", "retrieval", "answer", "correct", "subtype", "category", "tier", "metric"];

const emptyView = () => ({
  ...Object.fromEntries(CHOICES.map((key) => [key, ""])),
  tags: [], ids: [], q: "", sort: "", case: 0, claim: 0, passage: 0,
});

// What is unknown is passed over: an address may come from an older report, or from anybody.
const readView = (hash) => {
  const view = emptyView();
  for (const [key, value] of new URLSearchParams(hash)) {
    if (key === "tag" && value && !view.tags.includes(value)) view.tags.push(value);
    else if (key === "ids") view.ids = value.split(",").map(Number).filter(Number.isSafeInteger);
    else if (["case", "claim", "passage"].includes(key)) view[key] = /^\d{1,9}$/.test(value) ? Number(value) : 0;
    else if (key === "q" || key === "sort" || CHOICES.includes(key)) view[key] = value;
  }
  return view;
};

// encodeURIComponent throws on half a surrogate pair.
const encoded = (text) => encodeURIComponent(text.replace(/[\ud800-\udfff]/gu, "\ufffd"));

const writeView = (view) => {
  const parts = CHOICES.map((key) => [key, encoded(view[key])]);
  parts.push(...view.tags.map((tag) => ["tag", encoded(tag)]));
  parts.push(["ids", view.ids.join(",")], ["q", encoded(view.q)], ["sort", encoded(view.sort)]);
  parts.push(...["case", "claim"].map((key) => [key, view[key] || ""]));
  return parts.filter(([, value]) => value).map((part) => part.join("=")).join("&");
};

const pageAddress = () => location.href.split("#")[0];

// `push`: a step that Back undoes; otherwise the address of the same step.
const putAddress = (view, push) => {
  const hash = writeView(view);
  const address = hash ? `#${hash}` : pageAddress();
  try {
    if (push) history.pushState({ opened: true }, "", address);
    else history.replaceState(history.state, "", address);
  } catch {
    // Browsers refuse many changes in a short time; the next one writes it again.
  }
};
