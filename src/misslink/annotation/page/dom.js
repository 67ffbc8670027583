// Making elements: texts become text nodes and attribute values, so that nothing is ever markup.

export const at = (id) => document.getElementById(id);

export const el = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value || value === 0) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return made;
};

// A text of whoever wrote the gold set, the app, the judge or a label: it decides its own direction.
export const said = (tag, classes, ...children) => el(tag, { class: classes, dir: "auto" }, ...children);

export const button = (label, act, attributes = {}) => {
  const made = el("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
};

export const grouped = (items, keyOf) => {
  const found = new Map();
  for (const one of items) {
    const key = keyOf(one);
    if (found.has(key)) found.get(key).push(one);
    else found.set(key, [one]);
  }
  return found;
};

export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export const plain = (name) => name.replaceAll("_", " ");

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
