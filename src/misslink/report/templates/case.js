// One case: its verdict, its answer by claims, what was missed, and what the prompt held.

const SIGNS = { supported: "\u2713", unsupported: "?", contradicted: "\u2717" };
const LOUD = ["relevant", "highly relevant", "missed"];
const TITLED = ["missed", "in the prompt", "not in the prompt", "prompt not seen"]; // the title of the list says it
const PREVIEW = 110; // characters, about one line

const caseAddress = (number, claim) =>
  `#${writeView({ ...emptyView(), case: number, claim: claim ?? 0 })}`;

const labelOf = (names, key) => (Object.hasOwn(names, key) ? names[key] : key);
const failureLabel = (row) => (row.failure ? labelOf(data.failure_modes, row.failure) : "Not judged");
const chipClass = (row) => (stateOf(row) === "failed" ? "chip failure" : "chip");
const capitalized = (text) => text.slice(0, 1).toUpperCase() + text.slice(1) + (/[a-z)]$/.test(text) ? "." : "");
const folded = (label, ...content) => el("details", {}, el("summary", {}, label), ...content);

const outcomeOf = (row) => {
  if (!row.retrieval) return "";
  const words = [labelOf(data.retrievals, row.retrieval), labelOf(data.answers, row.answered)];
  if (row.correct) words.push(row.correct === "yes" ? "correct" : "wrong");
  return words.join(", ").toLowerCase();
};

const answerOf = (row, body) => {
  if (body.answer_note) return el("p", { class: "none" }, body.answer_note);
  const support = new Map(body.claims.map((claim) => [claim.number, claim.support]));
  const draw = (text, kind, [claim]) =>
    el("a", {
      class: `claim ${kind}`, href: caseAddress(row.number, claim), "data-claim": claim,
      "aria-label": `${visible(text)} (claim ${claim}, ${kind})`, title: `Claim ${claim}: ${kind}`,
    }, visible(text));
  const cut = (from, to) => markedPieces(body.answer, body.marks, draw, from, to).map((part) => {
    if (typeof part === "string") return visible(part);
    return part.ends ? el("sup", {}, `${part.ends}${SIGNS[support.get(part.ends)] ?? ""}`) : part;
  });
  return [
    el("div", { class: "answer", dir: "auto" }, answerMarkdown(body.answer, cut)),
    el("pre", { class: "answer-text", dir: "auto", tabindex: 0, hidden: true }, body.answer),
    el("button", { type: "button", class: "plain", "data-toggle": "raw", "aria-pressed": "false" }, "Raw text"),
  ];
};

// `quoteIn` returns the text that a passage marks for the claim.
const pointerOf = (pointer, label, quoteIn) => {
  const [kind, place] = pointer.missed ? ["missed", pointer.missed] : ["passage", pointer.passage];
  const quote = pointer.quote || (place && quoteIn(kind, place));
  return el("p", {}, `${label} `, userText("span", "", pointer.where), `: ${pointer.words}`, quote && [" ", userText("q", "", quote)],
    place > 0 && [" ", el("button", { type: "button", class: "plain", [`data-show-${kind}`]: place }, "Show")]);
};

// What decides a claim, in full.
const findingOf = (claim, quoteIn) => [
  el("p", {}, el("b", {}, `Claim ${claim.number}`), " ",
    el("span", { class: `support ${claim.support}` }, `${SIGNS[claim.support]} ${claim.support}`), " by the prompt",
    claim.probability && `, P(supported) ${claim.probability}`, claim.correct && `; ${claim.correct}`, "."),
  claim.unlocated && userText("p", "", claim.text),
  claim.needed.map((pointer) => pointerOf(pointer, "Missed passage,", quoteIn)),
  claim.quotes.map((pointer) => pointerOf(pointer, "Passage,", quoteIn)),
  !claim.quotes.length && !claim.needed.length && el("p", {}, "No passage in the prompt supports it."),
  claim.note && userText("p", "", claim.note),
];

const claimsOf = (row, body) => body.claims.length > 0 && folded(
  `All claims: ${body.claims.length}`,
  el("ol", { class: "claims" }, body.claims.map((claim) => el("li", { "data-item": claim.number, tabindex: -1 },
    el("span", { class: `support ${claim.support}` }, `${SIGNS[claim.support]} ${claim.support}`), " ",
    el("a", { class: "claim-link", href: caseAddress(row.number, claim.number), "data-claim": claim.number, dir: "auto" },
      visible(claim.text))))));

const verdictsOf = (body) => {
  if (!body.verdicts.length) return el("p", { class: "none" }, "No verdicts: this case was not judged.");
  const people = (verdict) => verdict.people && el("p", { class: "people" }, "Annotators: ",
    el("b", { class: verdict.stands === "disagree" ? "bad" : "" }, verdict.people),
    verdict.stands === "disagree" && ", the judge disagrees");
  const line = (verdict) => el("tr", {},
    el("th", { scope: "row" }, el("code", { dir: "auto" }, visible(verdict.metric))),
    el("td", { class: verdict.scored ? "right" : "right none" }, verdict.value,
      verdict.label && [" ", el("span", { class: verdict.label === "good" ? "good" : "bad" }, verdict.label)]),
    el("td", { class: "right" }, verdict.probability),
    userText("td", "", people(verdict), verdict.reason, (verdict.details ?? []).map((text) => userText("p", "small", text))));
  const count = (test) => body.verdicts.filter(test).length;
  const counts = [["bad", count((verdict) => verdict.label === "bad")], ["good", count((verdict) => verdict.label === "good")],
    ["not scored", count((verdict) => !verdict.scored)]].filter(([, n]) => n).map(([word, n]) => `${n} ${word}`);
  const heads = ["Metric", "Value", "P(good)", "Reason"].map((head) => el("th", { scope: "col" }, head));
  return folded(`All verdicts: ${counts.join(", ") || body.verdicts.length}`,
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Verdicts" },
      el("table", { class: "verdicts" }, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, body.verdicts.map(line)))),
    userText("p", "small", `Judged by ${body.judges.join(", ")}`),
    (body.raws ?? []).map((raw) => folded(visible(`Raw reply of the judge (${raw.name})`),
      el("pre", { tabindex: 0, dir: "auto" }, visible(raw.text)))),
    body.raws_left_out && el("p", { class: "small" },
      "The judge's raw reply is left out of this page for its size; verdicts.jsonl in the run folder has it."));
};

// Ranks by three searches, on a logarithmic axis, against the number of passages in the prompt.
const ranksOf = (ranks) => {
  const most = Math.max(data.k * 4, ...Object.values(ranks));
  const at = (rank) => `${(4 + (92 * Math.log(rank)) / Math.log(most)).toFixed(1)}%`;
  const line = ([search, rank]) => {
    const drawing = svg("svg", { width: "100%", height: 18, "aria-hidden": "true" });
    const cut = at(data.k + 0.5);
    drawing.append(svg("line", { class: "axis", x1: 0, x2: "100%", y1: 9, y2: 9 }),
      svg("line", { class: "cut", x1: cut, x2: cut, y1: 0, y2: 18 }),
      svg("circle", { class: rank > data.k ? "dot out" : "dot", cx: at(rank), cy: 9, r: 5 }));
    return [el("dt", {}, search), el("dd", {}, drawing), el("dd", { class: "right" }, grouped(rank))];
  };
  const lines = Object.entries(ranks).flatMap(line);
  return lines.length > 0 && [el("dl", { class: "ranks" }, lines),
    el("p", { class: "small" }, `Rank by each search; the dashed line is the cutoff, ${data.k}.`)];
};

const measurementsOf = (detail) => {
  const rival = (one) => userText("li", "", `rank ${one.rank} `, el("code", {}, visible(one.id)),
    one.score && `, score ${one.score}`, one.cosine && `, cosine ${one.cosine}`,
    one.duplicate_of && [", a near-duplicate of ", el("code", {}, visible(one.duplicate_of))]);
  return [
    detail.reason && userText("p", "reason", `${detail.reason}.`),
    detail.also && el("p", {}, `Also fits: ${detail.also.join("; ")}.`),
    detail.measured && el("dl", { class: "small-facts" }, Object.entries(detail.measured).map(([label, value]) =>
      el("div", {}, userText("dt", "", label), userText("dd", "", value)))),
    detail.above && [el("p", {}, "Ranked above it:"), el("ol", {}, detail.above.map(rival))],
  ];
};

const passageOf = (row, passage, missed) => {
  const line = passage.text.slice(0, 4 * PREVIEW).split(/\s+/).join(" ").trim();
  // The cut is drawn where the shown text ends or begins again; the rest stays readable.
  let cut = false;
  const draw = (piece, kind, claims) => {
    const begins = kind === "unseen" && !cut;
    cut = kind === "unseen";
    return cut ? el("span", { class: "unseen" }, begins && el("span", { class: "cut-mark" }, "not in the prompt:"), " ", visible(piece))
      : el("mark", { class: kind, "data-claims": claims.join(" ") }, visible(piece));
  };
  const pieces = markedPieces(passage.text, passage.marks, draw);
  const parts = pieces.map((part) => part.ends ? el("sup", {}, String(part.ends)) : part);
  return el("details", {
    class: `passage${passage.relevant ? " relevant" : ""}${missed ? " missed" : ""}`,
    [missed ? "data-missed" : "data-passage"]: passage.place,
    open: Boolean(passage.marks || passage.relevant || missed),
  },
  el("summary", {},
    el("span", { class: "rank" }, passage.rank), " ",
    el("code", { class: "id", dir: "auto" }, visible(passage.id)), " ",
    passage.flags.filter((flag) => !TITLED.includes(flag)).map((flag) => [el("span", { class: LOUD.includes(flag) ? "flag loud" : "flag" }, flag), " "]),
    passage.score && el("span", { class: "flag" }, `score ${passage.score}`),
    userText("span", "preview", line.length > PREVIEW ? `${line.slice(0, PREVIEW - 1)}\u2026` : line)),
  passage.text ? userText("div", "passage-text", parts) : el("p", { class: "none" }, "Its text is not known."),
  missed && ranksOf(passage.ranks ?? {}),
  passage.details && folded("All measurements", passage.details.map(measurementsOf)));
};

const passagesOf = (row, body) => {
  const [inside, outside] = [[], []];
  for (const passage of body.retrieved) (passage.flags.includes("not in the prompt") ? outside : inside).push(passage);
  const unseen = inside.some((passage) => passage.flags.includes("prompt not seen"));
  const below = unseen ? inside.splice(data.k) : [];
  const list = (title, passages, missed) => passages.length > 0 && [
    el("h4", {}, `${title}: ${plural(passages.length, "passage")}`),
    passages.map((passage) => passageOf(row, passage, missed))];
  return [
    list("Missed", body.missed, true),
    list(unseen ? "Retrieved within the cutoff; the prompt was not seen" : "In the prompt", inside, false),
    !body.retrieved.length && el("p", { class: "none" }, "Nothing was retrieved."),
    below.length > 0 && folded(`Below the cutoff: ${plural(below.length, "passage")}`,
      below.map((passage) => passageOf(row, passage, false))),
    outside.length > 0 && folded(`Retrieved, not in the prompt: ${plural(outside.length, "passage")}`,
      outside.map((passage) => passageOf(row, passage, false))),
    body.prompt && folded("The prompt itself", el("pre", { tabindex: 0, dir: "auto" }, visible(body.prompt))),
    body.calls && folded(`Searches: ${body.calls.length}`, el("ol", {}, body.calls.map((call) =>
      userText("li", "", call.query ?? "", " ", el("span", { class: "small" }, [call.tool, plural(call.passages, "passage"), call.found].filter(Boolean).join(", ")))))),
  ];
};

const fixOf = (fix) => el("p", {}, el("b", { class: "good" }, `Try: ${fix.label}.`), " ",
  el("a", { href: `#${fix.fragment}` }, `${plural(fix.cases, "case")} like this`));

const verdictOf = (row, body) => el("div", { class: `case-verdict ${stateOf(row)}` },
  userText("p", "", el("b", { class: chipClass(row).includes("failure") && "bad" }, `${failureLabel(row)}.`), " ",
    body.basis && [el("span", { class: "confirmed" }, body.basis), " "],
    capitalized(body.summary ? body.summary[0] : body.reason)),
  body.summary && body.summary[1] && el("p", {}, body.summary[1]),
  body.fix && fixOf(body.fix),
  body.also && userText("p", "small", "Also true: ", body.also.map((mode) => `${mode.name}${mode.text ? ` (${mode.text})` : ""}`).join("; ")),
  body.error && userText("p", "", el("b", {}, "The app failed:"), ` ${body.error}`));

// Where each needed fact was lost: a row of stages, the lost one with a cross and the owner's color.
const STAGES = ["index", "search", "filter", "rank", "prompt", "answer"];
const needOf = (need) => {
  const lost = STAGES.indexOf(need.stage);
  const arrived = need.stage === "arrived" || need.stage === "data";
  const owner = data.stage_owners[need.stage] ?? "";
  const state = (place) => (arrived || (lost >= 0 && place < lost) ? "through" : place === lost ? "lost" : "gone");
  return el("li", { class: `need ${owner || "arrived"}` },
    el("div", {}, userText("q", "", need.text), el("span", { class: "small" }, need.source,
      need.passage && [", ", userText("code", "", need.passage)])),
    el("div", {},
      el("ol", { class: "stops", "aria-hidden": "true" }, STAGES.map((stage, place) => el("li", { class: state(place) }, stage))),
      el("p", { class: "small" }, el("b", {}, need.what), `: ${need.how}.`,
        owner && owner !== "unknown" && ` Owner: ${data.owner_names[owner]}.`)));
};
const needsOf = (body) => body.needs && el("section", { class: "needs", "aria-labelledby": "needs" },
  el("h4", { id: "needs" }, body.needs.length > 1 ? "Where each needed fact was lost" : "Where the needed fact was lost"),
  el("ol", {}, body.needs.map(needOf)));

const metaOf = (row) => {
  const parts = [row.category, row.tier && `tier ${row.tier}`, ...(row.tags ?? []), outcomeOf(row),
    row.latency_s && `${row.latency_s < 0.1 ? "under 0.1" : row.latency_s.toFixed(1)} s`].filter(Boolean);
  return userText("p", "small meta", `Case ${grouped(row.number)} \u00b7 `, userText("code", "", row.id),
    parts.map((part) => [" \u00b7 ", userText("span", "", part)]));
};

// The messages before the question, and the question as it is understood without them.
const dialogueOf = (body) => [
  body.history && el("ol", { class: "dialogue", "aria-label": "Earlier messages" }, body.history.map((message, i) =>
    el("li", { class: message.name, id: `message-${i + 1}` }, el("b", {}, message.name), " ", userText("span", "", message.text ?? "")))),
  body.standalone && userText("p", "small", `Standalone question (${body.standalone.name}): `, userText("q", "", body.standalone.text))];

const drawCase = (row, body) => {
  const bad = body.claims.filter((claim) => claim.support !== "supported").length;
  const references = body.references ?? [];
  const problem = body.unsafe ? "the case's id has characters that are not safe to paste" : data.command.reason;
  return el("article", { class: "case", "aria-labelledby": "case-title" },
    metaOf(row),
    el("h3", { id: "case-title", dir: "auto" }, visible(row.question)),
    dialogueOf(body),
    verdictOf(row, body),
    needsOf(body),
    el("div", { class: "columns" },
      el("div", {},
        el("h4", {}, !body.claims.length ? "Answer" : bad ? `Answer: ${bad} of ${plural(body.claims.length, "claim")} unsupported`
          : `Answer: ${plural(body.claims.length, "claim")}, all supported by the prompt`),
        answerOf(row, body),
        body.claims.length > 0 && el("div", { class: "finding", id: "finding", "aria-live": "polite" }),
        claimsOf(row, body),
        references.length > 0 && el("h4", {}, "Reference answer"),
        references.length > 0 && userText("div", "reference", references[0])),
      el("div", {}, passagesOf(row, body))),
    el("div", { class: "folds" },
      references.length > 1 && folded(plural(references.length - 1, "more reference answer"),
        references.slice(1).map((text) => userText("div", "reference", text))),
      verdictsOf(body),
      ((body.summary && body.reason) || body.replays || body.notes || problem) && folded("Evidence and notes",
        body.summary && body.reason && userText("p", "reason", body.reason),
        (body.replays ?? []).map((text) => userText("p", "", `Replay: ${text}`)),
        (body.notes ?? []).map((note) => userText("p", "", note)),
        problem && userText("p", "", `No command repeats this case: ${problem}.`))));
};

// What a passage marks for a claim.
const markedQuote = (body, number) => (kind, place) => {
  const passage = (kind === "missed" ? body.missed : body.retrieved)[place - 1];
  const mark = (text, _, claims) => (claims.includes(number) ? { quote: text } : text);
  return passage && markedPieces(passage.text, passage.marks, mark).map((part) => part.quote ?? "").join("");
};

// A failed case on paper: its verdict, its answer, and what decides each claim.
const paperCase = (row, body) => el("article", { class: "paper-case" },
  metaOf(row),
  userText("h3", "", row.question),
  verdictOf(row, body),
  userText("p", "answer-text", body.answer_note ?? visible(body.answer ?? "")),
  el("ul", {}, body.claims.map((claim) => el("li", {}, findingOf({ ...claim, unlocated: true }, markedQuote(body, claim.number))))));
