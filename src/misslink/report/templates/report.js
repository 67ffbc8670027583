// What every part of this script needs: making elements, and links into what is folded.

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

// A text of whoever wrote the gold set, the app or the judge: it decides its own direction.
const said = (tag, classes, ...children) => el(tag, { class: classes, dir: "auto" }, ...children);

const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

// An address with "=" in it is a view of the cases; any other names a place on the page.
const isView = (hash) => hash.includes("=");

const unfold = () => {
  const hash = location.hash.slice(1);
  const target = hash && !isView(hash) ? document.getElementById(hash) : null;
  let opened = false;
  for (let at = target; at; at = at.parentElement) {
    if (at.tagName === "DETAILS" && !at.open) at.open = opened = true;
  }
  if (opened) target.scrollIntoView();
};

addEventListener("hashchange", unfold);
unfold();

// A page stands at once where its address says; from then on it glides.
addEventListener("load", () => requestAnimationFrame(() => document.documentElement.classList.remove("arriving")));
