// What stands where no case does: who labels, the end, and a run with nothing to label.

import { button, el, plural, said } from "./dom.js";
import { exportAddress } from "./server.js";

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

// A word as a shell reads it back unchanged.
export const quoted = (text) => (PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

const unit = (session) => (session.kind === "pool" ? "passage" : "case");

export const drawWho = (session, problem, begin) => {
  const field = el("input", {
    id: "name", type: "text", autocomplete: "off", spellcheck: "false", autocapitalize: "off", maxlength: 80, required: true,
    "aria-describedby": problem ? "name-problem name-hint" : "name-hint", "aria-invalid": problem ? "true" : "",
  });
  const form = el("form", { class: "name-form" },
    el("label", { for: "name" }, "Your name"),
    el("div", { class: "name-line" }, field, el("button", { type: "submit", class: "main" }, "Begin")),
    problem && said("p", "problem", problem));
  form.querySelector(".problem")?.setAttribute("id", "name-problem");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    begin(field.value.trim());
  });
  const known = session.annotators.map((name) =>
    button(name, () => begin(name), { class: "known-name", dir: "auto" }));
  return el("section", { class: "start", "aria-labelledby": "start-title" },
    el("h2", { id: "start-title", tabindex: -1 }, "Who labels?"),
    el("p", { class: "intro" }, `Your labels are saved in your own file beside the ${session.kind ?? "run"}. Other annotators do not see them. Use the same name to continue later.`),
    form,
    el("p", { class: "small", id: "name-hint" }, "Letters and digits of any script, hyphens, dots, underscores and blanks; it need not be your real one."),
    known.length > 0 && [el("h3", {}, "Labelled before"), el("p", { class: "known-names" }, known)]);
};

const commandOf = (session) => el("pre", { class: "command" }, el("code", {}, session.kind === "pool"
  ? `misslink goldset pool-apply ${quoted(session.run)} --out graded.jsonl` : `misslink calibrate ${quoted(session.run)}`));

// What the labels are good for.
const whyOf = (session, left) => {
  if (session.kind === "pool") {
    return left > 0
      ? "What is graded so far goes into the gold set; a question counts for recall once all of its passages are graded."
      : "Put the grades into the gold set, and see how much each retriever finds:";
  }
  return left > 0
    ? "The cases labelled so far are a random sample of the run. Compare the judge with them:"
    : "Compare the judge with these labels:";
};

// The end: all is labelled, or what is still open.
export const drawEnd = (session, annotator, { open, again }) => {
  const left = session.total - session.done;
  const settles = session.mode === "adjudicate";
  const open_ = settles ? `Settle ${plural(left, unit(session))}` : `${plural(left, unit(session))} of ${session.total} still open`;
  const title = left > 0 ? open_ : `Everything is ${settles ? "settled" : "labelled"}`;
  return el("section", { class: "start", "aria-labelledby": "start-title" },
    el("h2", { id: "start-title", tabindex: -1 }, title),
    el("p", { class: "intro" }, said("span", "", annotator),
      ` finished ${session.done} of ${plural(session.total, unit(session))}. The labels are on disk, in the ${session.kind ?? "run"} folder.`),
    el("p", { class: "choices" },
      left > 0 && button("Go to the first open one", open, { class: "main" }),
      session.total > 0 && button("Look through them again", again)),
    el("h3", {}, "What comes next"),
    el("p", {}, whyOf(session, left)),
    commandOf(session),
    el("p", { class: "small" }, "Have a second person label under another name. ",
      session.kind === "pool" ? "Their agreement shows how clear the grades are."
        : "Their agreement is the most that a judge can reach."),
    el("p", {}, "Export: ",
      el("a", { href: exportAddress("csv"), download: true }, "CSV"), " or ",
      el("a", { href: exportAddress("jsonl"), download: true }, "JSON Lines"), ", all labels in one file."));
};

export const drawNothing = (session) => el("section", { class: "start", "aria-labelledby": "start-title" },
  el("h2", { id: "start-title", tabindex: -1 }, "Nothing to label"),
  el("p", { class: "intro" }, session.mode === "adjudicate"
    ? "Those who labelled this agree wherever they labelled the same, so there is nothing to settle."
    : "No case of this run has an answer."),
  el("p", {}, whyOf(session, 0)), commandOf(session));
