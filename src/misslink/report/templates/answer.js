// An answer as markdown: blocks and inline marks of the text, cut where claims begin and end.

// A text cut where its marks end; `draw` makes what is marked, from its text and the mark.
const markedPieces = (text, marks, draw, from = 0, to = text.length) => {
  const pieces = [];
  let start = 0;
  for (const mark of marks ?? [{ end: text.length }]) {
    const [first, last] = [Math.max(start, from), Math.min(mark.end, to)];
    const part = text.slice(first, last);
    if (first < last) pieces.push(mark.kind ? draw(part, mark.kind, mark.claims ?? []) : part);
    if (mark.end > from && mark.end <= to) pieces.push(...(mark.ends ?? []).map((claim) => ({ ends: claim })));
    start = mark.end;
  }
  return pieces;
};

// `code`, **strong**, *emphasis* and [text](address); underscores are names as often as emphasis.
const INLINE = /`([^`\n]+)`|\*\*(?=\S)([^\n]+?)\*\*|(?<![\w*])\*(?=[^\s*])([^*\n]+?)\*(?![\w*])|\[([^\]\n]+)\]\([^)\s]+\)/g;
const INLINE_TAGS = ["code", "strong", "em", "span"];

const inlineMarkdown = (text, from, to, draw) => {
  const parts = [];
  let start = from;
  for (const match of text.slice(from, to).matchAll(INLINE)) {
    const group = match.slice(1).findIndex((part) => part !== undefined);
    const at = from + match.index;
    const inner = at + [1, 2, 1, 1][group];
    const address = group === 3 ? draw(inner + match[4].length + 1, at + match[0].length) : "";
    parts.push(draw(start, at), el(INLINE_TAGS[group], {}, draw(inner, inner + match[group + 1].length)), address);
    start = at + match[0].length;
  }
  return [...parts, draw(start, to)];
};

// Lines of a kind make one block: a fence, a heading, a list, a quotation, or a paragraph.
const BLOCKS = [
  ["ul", /^\s*[-*+]\s+/], ["ol", /^\s*\d+[.)]\s+/], ["blockquote", /^\s*>\s?/], ["h", /^#{1,6}\s+/],
];

const answerMarkdown = (text, draw) => {
  const blocks = [];
  let at = 0;
  let fence = null;
  let open = null; // the block that the next line may continue
  for (const line of text.split("\n")) {
    const [from, to] = [at, at + line.length];
    at = to + 1;
    if (/^\s*```/.test(line)) {
      if (fence) blocks.push(el("pre", { tabindex: 0 }, draw(fence[0], Math.max(fence[0], from - 1))));
      fence = fence ? null : [at];
      open = null;
      continue;
    }
    if (fence) continue;
    if (!line.trim()) {
      open = null;
      continue;
    }
    const [kind, mark] = BLOCKS.find(([, sign]) => sign.test(line)) ?? ["p"];
    const start = from + (mark ? line.match(mark)[0].length : 0);
    const content = inlineMarkdown(text, start, to, draw);
    if (open?.kind === kind && kind !== "h") {
      if (kind === "ul" || kind === "ol") open.block.append(el("li", {}, content));
      else open.block.append("\n", ...content.flat(Infinity));
      continue;
    }
    const block = kind === "ul" || kind === "ol"
      ? el(kind, kind === "ol" ? { start: parseInt(line, 10) } : {}, el("li", {}, content))
      : el(kind === "h" ? "p" : kind, kind === "h" ? { class: "strong" } : {}, content);
    blocks.push(block);
    open = { kind, block };
  }
  if (fence) blocks.push(el("pre", { tabindex: 0 }, draw(fence[0], text.length)));
  return blocks;
};
