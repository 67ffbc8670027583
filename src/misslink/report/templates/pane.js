// The open case beside the list: its buttons, and what a click on a claim shows.

// Navigator.clipboard is missing, or refuses, for many a page that lies in a file.
const copy = async (text, output, field) => {
  try {
    await navigator.clipboard.writeText(text);
    field.hidden = true;
    output.textContent = "Copied.";
  } catch {
    field.hidden = false;
    field.value = text;
    field.focus();
    field.select();
    output.textContent = "Copy the selected text with Ctrl+C or \u2318C.";
  }
};

const actionButton = (label, act, classes = "") => {
  const button = el("button", { type: "button", class: classes }, label);
  button.addEventListener("click", act);
  return button;
};

// `turn` opens the case so many rows further on; `place` is that of the open one in the list, from 1.
const barOf = (row, body, place, count, turn, close) => {
  const output = el("output", { class: "small" });
  const field = el("input", { class: "copied", readonly: true, "aria-label": "To copy", hidden: true });
  const { head, out, annotate } = data.command;
  const id = body.shell ?? row.id;
  const copyButton = (label, text) => actionButton(label, () => copy(text, output, field));
  return el("div", { class: "case-bar" },
    actionButton([el("span", { class: "when-wide" }, "Close"), el("span", { class: "when-narrow" }, "\u2039 Back")], close, "shut"),
    place > 0 && [actionButton(el("span", { "aria-label": "Previous case" }, "\u2190"), () => turn(-1)),
      el("span", {}, `${grouped(place)} of ${grouped(count)}`),
      actionButton(el("span", { "aria-label": "Next case" }, "\u2192"), () => turn(1))],
    copyButton("Copy link", `${pageAddress()}${caseAddress(row.number)}`),
    head && !body.unsafe && copyButton("Copy command", `${head} --case=${id} --out ${out}${row.number}`),
    annotate && !body.unsafe && body.verdicts.length > 0 && copyButton("Do you agree?", `${annotate} --case=${id}`),
    output, field);
};

const unlit = (pane) => {
  for (const at of pane.querySelectorAll(".lit")) at.classList.remove("lit");
  for (const at of pane.querySelectorAll("[aria-current]")) at.removeAttribute("aria-current");
};

const reveal = (target, block = "center") => {
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target.scrollIntoView({ block });
};

// Returns whether the case has such a claim.
const showClaim = (pane, body, number, scroll = true) => {
  const claim = body.claims.find((one) => one.number === number);
  if (!claim) return false;
  unlit(pane);
  for (const at of pane.querySelectorAll(`[data-claim="${number}"]`)) {
    at.classList.add("lit");
    at.setAttribute("aria-current", "true");
  }
  for (const mark of pane.querySelectorAll("mark[data-claims]")) {
    if (mark.dataset.claims.split(" ").includes(String(number))) mark.classList.add("lit");
  }
  const finding = pane.querySelector("#finding");
  const quoteIn = (kind, place) => pane.querySelector(`[data-${kind}="${place}"] mark.lit`)?.textContent;
  const claimed = pane.querySelector(`.answer [data-claim="${number}"]`);
  const block = claimed?.closest("li, .answer > *");
  if (block) block.matches("li") ? block.append(finding) : block.after(finding); // right below the claim
  finding.replaceChildren(...el("div", {}, findingOf(claim, quoteIn)).childNodes);
  if (scroll) finding.scrollIntoView({ block: "nearest" });
  return true;
};

// Returns whether the case has such a passage.
const showPassage = (pane, place, kind = "passage") => {
  const passage = pane.querySelector(`[data-${kind}="${place}"]`);
  if (!passage) return false;
  for (const at of pane.querySelectorAll(".passage.lit")) at.classList.remove("lit");
  passage.classList.add("lit");
  reveal(passage.querySelector("mark.lit") ?? passage);
  passage.firstElementChild.focus({ preventScroll: true });
  return true;
};
