// The cases of a comparison: chosen by what changed, searched, and walked through by keys.

const at = (id) => document.getElementById(id);
const KEYS = ["change", "failure", "metric"].filter((key) => at(`by-${key}`));
const cases = [...document.querySelectorAll(".change")].map((element) => ({
  element, summary: element.firstElementChild, data: JSON.parse(element.dataset.view), text: null,
}));
const fields = Object.fromEntries([...KEYS, "q"].map((key) => [key, at(`by-${key}`)]));
let shown = cases;

// Words, and phrases in quotes: a case must hold all of them.
const wordsOf = (text) => [...text.toLowerCase().matchAll(/"([^"]+)"|(\S+)/g)].map((found) => found[1] ?? found[2]);

const textOf = (one) => (one.text ??= one.element.textContent.toLowerCase());

const narrow = () => {
  const words = wordsOf(fields.q.value);
  shown = cases.filter((one) =>
    KEYS.every((key) => !fields[key].value || [one.data[key]].flat().includes(fields[key].value)) &&
    words.every((word) => textOf(one).includes(word)));
  const fits = new Set(shown);
  for (const one of cases) one.element.hidden = !fits.has(one);
  at("shown").textContent = `${shown.length.toLocaleString("en")} of ${plural(cases.length, "case")}`;
};

const changed = () => {
  narrow();
  const view = new URLSearchParams(Object.entries(fields).map(([key, field]) => [key, field.value]).filter(([, value]) => value));
  try {
    history.replaceState(null, "", String(view) ? `#${view}` : location.href.split("#")[0]);
  } catch {
    // Browsers refuse many changes in a short time; the next one writes it again.
  }
};

// An address with "=" chooses cases; any other opens one.
const follow = () => {
  const hash = location.hash.slice(1);
  if (!hash.includes("=")) return;
  const view = new URLSearchParams(hash);
  for (const [key, field] of Object.entries(fields)) {
    const value = view.get(key) ?? "";
    const known = key === "q" || [...field.options].some((option) => option.value === value);
    field.value = known ? value : "";
  }
  narrow();
  at("cases").scrollIntoView();
};

const step = (by) => {
  const place = shown.findIndex((one) => one.summary === document.activeElement);
  const next = shown[place < 0 ? 0 : Math.max(0, Math.min(shown.length - 1, place + by))];
  next?.summary.focus();
  next?.summary.scrollIntoView({ block: "nearest" });
};

const close = () => {
  const open = document.activeElement.closest(".change[open]");
  if (open) open.open = false;
  open?.firstElementChild.focus();
  return Boolean(open);
};

const acts = {
  j: () => step(1), k: () => step(-1), Escape: close, "?": () => at("keys-shown").showModal(),
  "/": () => fields.q.focus(),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, select, dialog") || !Object.hasOwn(acts, event.key)) return;
  if (acts[event.key]() !== false) event.preventDefault();
});
fields.q.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  event.preventDefault();
  if (!fields.q.value) fields.q.blur();
  fields.q.value = "";
  changed();
});
for (const field of Object.values(fields)) field.addEventListener("input", changed);
at("show-keys").addEventListener("click", () => at("keys-shown").showModal());
at("hide-keys").addEventListener("click", () => at("keys-shown").close());
addEventListener("hashchange", follow);
// A second click on the same link changes no address.
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link && link.getAttribute("href") === location.hash) follow();
});
at("filters").hidden = false;
narrow();
follow();
