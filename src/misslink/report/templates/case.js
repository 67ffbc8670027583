// One case: its answer by claims, its passages with what decides them, what the judge said.

const SIGNS = { supported: "\u2713", unsupported: "?", contradicted: "\u2717" };
const LOUD = ["relevant", "highly relevant", "missed"];
const PREVIEW = 110; // characters, about one line

const caseAddress = (number, claim) =>
  `#${writeView({ ...emptyView(), case: number, claim: claim ?? 0 })}`;

const labelOf = (names, key) => (Object.hasOwn(names, key) ? names[key] : key);

const failureLabel = (row) => (row.failure ? labelOf(data.failure_modes, row.failure) : "Not linked");

const outcomeOf = (row) => {
  if (!row.retrieval) return "";
  const words = [labelOf(data.retrievals, row.retrieval), labelOf(data.answers, row.answer)];
  if (row.correct) words.push(row.correct === "yes" ? "correct" : "wrong");
  return words.join(", ").toLowerCase();
};

// Isolated, so that a tier turns no direction but its own.
const lineOf = (row) => [outcomeOf(row), row.tier && `tier \u2068${row.tier}\u2069`].filter(Boolean).join(", ");

const chipClass = (row) => (data.failures.includes(row.failure) ? "chip failure" : "chip");

const causeChip = (row) => el("span", { class: chipClass(row) }, failureLabel(row));

// A text cut where its marks end; `draw` makes what is marked, from its text and the mark.
const pieces = (text, marks, draw) => {
  if (!marks) return [text];
  const found = [];
  let start = 0;
  for (const [end, kind, claims, ends] of marks) {
    const piece = text.slice(start, end);
    found.push(kind ? draw(piece, kind, claims ?? []) : piece);
    found.push((ends ?? []).map((claim) => ({ ends: claim })));
    start = end;
  }
  return found.flat();
};

const answerOf = (row, body) => {
  if (body.answer_note) return el("p", { class: "none" }, body.answer_note);
  const support = new Map((body.claims ?? []).map((claim) => [claim.number, claim.support]));
  const draw = (text, kind, [claim]) =>
    el("a", {
      class: `claim ${kind}`, href: caseAddress(row.number, claim), "data-claim": claim,
      "aria-label": `${text} (claim ${claim}, ${kind})`, title: `Claim ${claim}: ${kind}`,
    }, text);
  const parts = pieces(body.answer ?? "", body.marks, draw).map((part) =>
    part.ends ? el("sup", {}, `${part.ends}${SIGNS[support.get(part.ends)] ?? ""}`) : part);
  return said("div", "said answer", parts);
};

const pointer = (one, before) => {
  const where = said("span", "where", one.where);
  return el("p", { class: "small" }, `${before} `, where, one.passage ? "" : `: ${one.words}`,
    one.quote ? [" ", said("q", "", one.quote)] : "");
};

const claimItem = (row, claim) => {
  const notes = [
    claim.probability && `P(supported) ${claim.probability}. `,
    claim.correct && `It ${claim.correct}. `,
    claim.unlocated && "Worded by the judge, not located in the answer. ",
    claim.note && said("span", "", claim.note),
  ].filter(Boolean);
  const decided = [...(claim.quotes ?? []), ...(claim.needed ?? [])];
  return el("li", { "data-item": claim.number, tabindex: -1, value: claim.number },
    el("p", {},
      el("span", { class: `support ${claim.support}` }, `${SIGNS[claim.support]} ${claim.support}`), " ",
      el("a", { class: "claim-link", href: caseAddress(row.number, claim.number),
        "data-claim": claim.number, dir: "auto" }, claim.text)),
    (claim.quotes ?? []).map((one) => pointer(one, one.passage ? "Quote at" : "Quote,")),
    (claim.needed ?? []).map((one) => pointer(one, "Missed passage,")),
    !decided.length && el("p", { class: "small" }, "No passage was shown to decide it."),
    notes.length > 0 && el("p", { class: "small" }, notes));
};

const claimsOf = (row, body) => {
  if (!body.claims) return [];
  const legend = Object.entries(SIGNS).map(([kind, sign]) => `${sign} ${kind}`).join(", ");
  return [
    el("h4", {}, "Its claims"),
    el("p", { class: "small legend-of-claims" }, `${legend}. Choose one to see what decides it.`),
    el("ol", { class: "claims" }, body.claims.map((claim) => claimItem(row, claim))),
  ];
};

const referencesOf = (body) => {
  const all = body.references ?? [];
  if (!all.length) return [];
  return [el("h4", {}, all.length === 1 ? "Reference answer" : "Reference answers"),
    all.map((text) => said("div", "said reference", text))];
};

const verdictsOf = (body) => {
  if (!body.verdicts) return [el("p", { class: "none" }, "No verdicts: this case was not judged.")];
  const heads = ["Metric", "Value", "P(good)", "Reason"];
  const people = (one) => one.people && el("p", { class: "people" }, "People: ",
    el("b", { class: one.stands === "disagree" ? "bad" : "" }, one.people),
    one.stands === "disagree" && ", against the judge");
  const line = (one) => el("tr", {},
    el("th", { scope: "row" }, el("code", { dir: "auto" }, one.metric)),
    el("td", { class: one.scored ? "right" : "right none" }, one.value,
      one.label && [" ", el("span", { class: one.label === "good" ? "good" : "bad" }, one.label)]),
    el("td", { class: "right" }, one.probability),
    said("td", "", people(one), one.reason, (one.said ?? []).map((text) => said("p", "small", text))));
  return [
    el("h4", {}, "Verdicts"),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Verdicts" },
      el("table", { class: "verdicts" },
        el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
        el("tbody", {}, body.verdicts.map(line)))),
    said("p", "small", `Judged by ${body.judges.join(", ")}`),
  ];
};

const rawsOf = (body) => [
  (body.raws ?? []).map(([metrics, raw]) =>
    el("details", { class: "raw" },
      said("summary", "", `Raw reply of the judge (${metrics})`),
      el("pre", { tabindex: 0, dir: "auto" }, raw))),
  body.raws_left_out && el("p", { class: "small" },
    "The judge's raw reply is left out of this page for its size; verdicts.jsonl in the run folder holds it."),
];

const missedDetail = (detail) => {
  const reason = detail.reason ?? "";
  const rival = (one) => said("li", "", `rank ${one.rank} `, el("code", {}, one.id),
    one.score && `, score ${one.score}`, one.cosine && `, cosine ${one.cosine}`,
    one.duplicate_of && [", says nearly the same as ", el("code", {}, one.duplicate_of)]);
  const also = detail.also ? `Also fits: ${detail.also.join("; ")}.` : "";
  const far = detail.distance ? `${detail.distance}. ` : "";
  return el("div", { class: "measured" },
    reason && said("p", "", `${reason[0].toUpperCase()}${reason.slice(1)}${/[.!?]$/.test(reason) ? "" : "."}`),
    (far || also) && el("p", { class: "small" }, far, also),
    (detail.measured || detail.above) && el("details", {}, el("summary", {}, "All measurements"),
      detail.measured && el("dl", { class: "small-facts" }, detail.measured.map(([label, value]) =>
        el("div", {}, said("dt", "", label), said("dd", "", value)))),
      detail.above && [el("p", { class: "small" }, "What stood above it:"),
        el("ol", { class: "rivals" }, detail.above.map(rival))]));
};

const passageOf = (row, passage, place, missed) => {
  const text = passageText(passage);
  const line = text.slice(0, 4 * PREVIEW).split(/\s+/).join(" ").trim();
  const draw = (piece, kind, claims) =>
    el("mark", { class: kind, "data-claims": claims.join(" "), tabindex: claims.length ? -1 : "" }, piece);
  const parts = pieces(text, passage.marks, draw).map((part) => part.ends
    ? el("a", { class: "back", href: caseAddress(row.number, part.ends), "data-item-of": part.ends,
      "aria-label": `Back to claim ${part.ends}` }, el("sup", {}, part.ends))
    : part);
  const kinds = `passage${passage.relevant ? " relevant" : ""}${missed ? " missed" : ""}`;
  return el("details", {
    class: kinds, [missed ? "data-missed" : "data-passage"]: place,
    open: Boolean(passage.marks || passage.relevant || missed),
  },
  el("summary", {},
    el("span", { class: "rank" }, passage.rank), " ",
    el("code", { class: "id", dir: "auto" }, passage.id), " ",
    passage.flags.map((flag) => [el("span", { class: LOUD.includes(flag) ? "flag loud" : "flag" }, flag), " "]),
    passage.score && el("span", { class: "flag" }, `score ${passage.score}`),
    said("span", "preview", line.length > PREVIEW ? `${line.slice(0, PREVIEW - 1)}\u2026` : line)),
  text ? said("div", "said", parts) : el("p", { class: "none" }, "Its text is not known."),
  (passage.details ?? []).map(missedDetail));
};

const passagesOf = (row, body) => [
  body.missed && [el("h4", {}, "Missed passages"),
    body.missed.map((passage, i) => passageOf(row, passage, i + 1, true))],
  el("h4", {}, "Retrieved passages"),
  body.retrieved
    ? body.retrieved.map((passage, i) => passageOf(row, passage, i + 1, false))
    : el("p", { class: "none" }, "Nothing was retrieved."),
];

const whyOf = (row, body) => [
  body.evidence && el("ul", { class: "evidence" }, body.evidence.map((one) => said("li", "",
    el("b", { class: one.failure && "bad" }, one.label),
    one.primary && body.basis && [" ", el("span", { class: "confirmed" }, body.basis)],
    !one.primary && [" ", el("span", { class: "small" }, "also")], `: ${one.words}`))),
  body.reason && said("p", "reason", body.reason,
    body.basis && !body.evidence && [" ", el("span", { class: "confirmed" }, body.basis)]),
  (body.replays ?? []).map((text) => said("p", "small", `Replay: ${text}`)),
  body.error && said("p", "error", el("b", {}, "The app raised"), ` ${body.error}`),
];

const metaOf = (row) => {
  const parts = [row.category, row.tier && `tier ${row.tier}`, ...(row.tags ?? []),
    row.latency !== undefined && `${row.latency.toFixed(1)} s`].filter(Boolean);
  return said("p", "small meta", `Case ${row.number} \u00b7 `, said("code", "", row.id),
    parts.map((part) => [" \u00b7 ", said("span", "", part)]));
};

const drawCase = (row, body) => el("article", { class: "case", "aria-labelledby": "case-title" },
  el("h3", { id: "case-title", dir: "auto" }, row.question),
  metaOf(row),
  el("div", { class: "case-verdict" },
    el("p", {}, causeChip(row), " ", (body.summary ?? [])[0] ?? el("span", { class: "outcome" }, outcomeOf(row))),
    body.summary && body.summary[1] && el("p", {}, body.summary[1]),
    body.fix && el("p", {}, el("b", { class: "good" }, `Try: ${body.fix[0]}.`), " ",
      el("a", { href: `#${body.fix[2]}` }, `${body.fix[1]} ${body.fix[1] === 1 ? "case" : "cases"} like this`))),
  whyOf(row, body),
  el("div", { class: "columns" },
    el("div", { class: "told" },
      el("h4", {}, "Answer"), answerOf(row, body), claimsOf(row, body), referencesOf(body),
      verdictsOf(body), (body.notes ?? []).map((note) => said("p", "small", `Note: ${note}`)),
      rawsOf(body)),
    el("div", { class: "shown-passages" }, passagesOf(row, body))));
