// What every part of this script needs: elements, texts under test, and the five views.

// Texts become text nodes and attribute values, so that nothing under test is ever markup.
const el = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value || value === 0) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return made;
};

const svg = (tag, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

// Marks that turn or hide text are written out, as in text/normalization.py.
const HIDDEN_MARKS = /[\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180e\u200b\u200e-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]|(?<=[\u180b-\u180d\u180f\ufe00-\ufe0f\u{e0100}-\u{e01ef}])[\u180b-\u180d\u180f\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu;
const visible = (text) => text.replace(HIDDEN_MARKS, (mark) =>
  `[U+${mark.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);

// A text of the gold set, the app or the judge: it decides its own direction.
const userText = (tag, classes, ...children) =>
  el(tag, { class: classes, dir: "auto" }, ...children.flat(Infinity).map((child) =>
    (typeof child === "string" ? visible(child) : child)));

const grouped = (count) => count.toLocaleString("en");
const plural = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;

// An address with "=" in it selects cases; any other names a view or a place in one.
const isSelection = (hash) => hash.includes("=");

const showView = (name) => {
  for (const view of document.querySelectorAll(".view")) view.classList.toggle("closed", view.id !== name);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
};

const route = () => {
  const hash = location.hash.slice(1);
  const target = hash && !isSelection(hash) ? document.getElementById(hash) : null;
  showView(isSelection(hash) ? "cases" : target?.closest(".view")?.id ?? "summary");
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target.matches(".view")) scrollTo(0, 0);
  else target.scrollIntoView();
};

addEventListener("popstate", route); // before the explorer's own, which scrolls in the open view
route();

// A page stands at once where its address says; from then on it glides.
addEventListener("load", () => requestAnimationFrame(() => document.documentElement.classList.remove("arriving")));
