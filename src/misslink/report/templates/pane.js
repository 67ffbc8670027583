// The open case beside the list: its buttons, and what a click on a claim shows.

// Navigator.clipboard is missing, or refuses, for many a page that lies in a file.
const copy = async (text, told, field) => {
  try {
    await navigator.clipboard.writeText(text);
    field.hidden = true;
    told.textContent = "Copied.";
  } catch {
    field.hidden = false;
    field.value = text;
    field.focus();
    field.select();
    told.textContent = "Copy the selected text with Ctrl+C or \u2318C.";
  }
};

const commandOf = (row, body) => {
  const { head, out, reason } = data.command;
  if (!head) return { reason };
  if (body.unsafe) return { reason: "the case's id holds characters that are not safe to paste" };
  return { text: `${head} --case=${body.shell ?? row.id} --out ${out}${row.number}` };
};

const barOf = (row, body, close) => {
  const told = el("output", { class: "small" });
  const field = el("input", { class: "copied", readonly: true, "aria-label": "To copy", hidden: true });
  const button = (label, act) => {
    const made = el("button", { type: "button" }, label);
    made.addEventListener("click", act);
    return made;
  };
  const command = commandOf(row, body);
  const shut = button([el("span", { class: "when-wide" }, "Close"),
    el("span", { class: "when-narrow" }, "\u2039 Back")], close);
  shut.className = "shut";
  return el("div", { class: "case-bar" }, shut,
    button("Copy link", () => copy(`${pageAddress()}${caseAddress(row.number)}`, told, field)),
    command.text
      ? button("Copy command", () => copy(command.text, told, field))
      : el("span", { class: "small" }, `No command repeats this case: ${command.reason}.`),
    told, field);
};

const show = (target, take) => {
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target.scrollIntoView({ block: "center" });
  if (take) (target.tagName === "DETAILS" ? target.firstElementChild : target).focus({ preventScroll: true });
};

const unlit = (pane) => {
  for (const at of pane.querySelectorAll(".lit")) at.classList.remove("lit");
  for (const at of pane.querySelectorAll("[aria-current]")) at.removeAttribute("aria-current");
};

// What decides a claim: its marks, else the passages that it names, else the claim in the list.
const targetsOf = (pane, claim) => {
  const marked = [...pane.querySelectorAll("mark[data-claims]")]
    .filter((mark) => mark.dataset.claims.split(" ").includes(String(claim.number)));
  if (marked.length) return marked;
  const named = [
    ...(claim.quotes ?? []).map((one) => one.passage && `[data-passage="${one.passage}"]`),
    ...(claim.needed ?? []).map((one) => one.missed && `[data-missed="${one.missed}"]`),
  ].filter(Boolean);
  return named.map((selector) => pane.querySelector(selector));
};

// Returns whether the case has such a claim.
const showClaim = (pane, body, number, take = true) => {
  unlit(pane);
  const claim = (body.claims ?? []).find((one) => one.number === number);
  if (!claim) return false;
  const item = pane.querySelector(`[data-item="${number}"]`);
  for (const at of [item, ...pane.querySelectorAll(`[data-claim="${number}"]`)]) {
    at.classList.add("lit");
    at.setAttribute("aria-current", "true");
  }
  const targets = targetsOf(pane, claim);
  for (const target of targets) {
    target.classList.add("lit");
    target.closest("details").open = true;
  }
  show(targets[0] ?? item, take);
  return true;
};

const showItem = (pane, number) => {
  unlit(pane);
  const item = pane.querySelector(`[data-item="${number}"]`);
  item.classList.add("lit");
  show(item, true);
};

// Returns whether the case has such a passage.
const showPassage = (pane, place) => {
  unlit(pane);
  const passage = pane.querySelector(`[data-passage="${place}"]`);
  if (!passage) return false;
  passage.classList.add("lit");
  show(passage, true);
  return true;
};
