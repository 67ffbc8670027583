// The keyboard: one key, one act. What is typed into a field, or goes with Alt or Meta, is not ours.

const TYPED = "input, textarea, select";
const PRESSED = "button, a, summary, input";

const nameOf = (event) => {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return event.ctrlKey || event.metaKey ? `Control+${key}` : key;
};

// `acts` maps names of keys to what they do; `labels(key)` says a label if the key is one of its own.
export const listen = (acts, labels) => addEventListener("keydown", (event) => {
  const target = event.target instanceof Element ? event.target : document.body;
  if (event.altKey || event.defaultPrevented || event.isComposing) return;
  if (document.querySelector("dialog[open]")) return;
  if (target.closest(TYPED)) return;
  const key = nameOf(event);
  if (key === "Enter" && target.closest(PRESSED)) return; // it presses what has the focus
  if (event.repeat && !["ArrowDown", "ArrowUp", "j", "k"].includes(key)) return; // held down: once
  const act = Object.hasOwn(acts, key) ? acts[key] : labels(key);
  if (!act) return;
  event.preventDefault();
  act();
});
