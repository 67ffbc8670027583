"""Whether labels survive when the index is rebuilt with other chunks.

    python benchmarks/goldset/rechunking.py            # 20 re-chunkings, seconds
    python benchmarks/goldset/rechunking.py --write    # the table replaces rechunking.md

Documents are invented. Labels are ids of the first chunks, and the same labels as spans of the
documents. Each re-chunking merges, splits, overlaps or renames the chunks. Two things are counted:
the share of labelled spans in the same retrieved text, with and without re-chunking, and what
`goldset check --before --fix` makes of the ids. The documents decide what is right, by offsets.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from misslink.goldset.anchoring import anchor_goldset
from misslink.goldset.checks import check_goldset
from misslink.goldset.checks.passage_search import PassageSearch
from misslink.goldset.checks.protocol import CheckInputs, accepted_proposals, apply_proposals
from misslink.io.goldset import read_goldset
from misslink.retrieval.matching import case_needs, match_needs
from misslink.types import Case, Passage

PAGE = Path(__file__).with_suffix(".md")
DOCUMENTS, SENTENCES, CASES, REPEATS = 12, 30, 36, 20
WORDS = [
    "harbor",
    "ferry",
    "ticket",
    "storm",
    "lamp",
    "crew",
    "deck",
    "rope",
    "engine",
    "chart",
    "signal",
    "winter",
    "bridge",
    "island",
    "captain",
    "market",
    "letter",
    "garden",
    "river",
    "stone",
    "window",
    "copper",
    "pilot",
    "anchor",
]
KINDS = ("merged", "split", "overlapping", "other ids", "cut anywhere")

INTRODUCTION = (
    f"{REPEATS} re-chunkings of {DOCUMENTS} invented documents, with {CASES} cases each "
    "(`python benchmarks/goldset/rechunking.py --write`). The same retrieved text is scored before and "
    "after.\n\n"
    "- *same share*: cases of which the share of labelled spans is equal to the last digit\n"
    "- *repaired*: labels that a new chunk contains whole, and that `goldset check --before --fix` "
    "gives to such chunks alone\n"
    "- *joined*: split labels that get all the chunks that make them up\n"
    "- *wrong*: sets of chunks without the label's text"
)


@dataclass(frozen=True)
class Chunk:
    """A stretch of a document."""

    id: str
    document: str
    start: int
    end: int


def invented_documents(seed: int) -> dict[str, str]:
    """Documents of sentences with numbers; some sentences stand in several places."""
    draw = random.Random(seed)  # noqa: S311
    shared = [_sentence(draw) for _ in range(5)]
    return {
        f"guide-{number}.md": " ".join(
            draw.choice(shared) if draw.random() < 0.05 else _sentence(draw)
            for _ in range(SENTENCES)
        )
        for number in range(DOCUMENTS)
    }


def _sentence(draw: random.Random) -> str:
    words = draw.choices(WORDS, k=draw.randint(5, 14))
    return f"The {' '.join(words)} is {draw.randint(2, 999)}."


def first_chunks(documents: dict[str, str]) -> list[Chunk]:
    """Two sentences a chunk."""
    chunks = []
    for name, text in documents.items():
        ends = [i + 1 for i, sign in enumerate(text) if sign == "."]
        bounds = [0, *ends[1::2]]
        for number, (start, end) in enumerate(pairwise(bounds)):
            begin = start + (text[start] == " ")
            chunks.append(Chunk(f"{name}#{number}", name, begin, end))
    return chunks


def rechunk(
    documents: dict[str, str], chunks: Sequence[Chunk], kind: str, seed: int
) -> list[Chunk]:
    """All documents in other chunks; ids are unlike, or the old ones used again."""
    draw = random.Random(f"{kind} {seed}")  # noqa: S311
    cut: list[Chunk] = []
    for name, text in documents.items():
        own = [chunk for chunk in chunks if chunk.document == name]
        if kind == "other ids":
            spans = [(chunk.start, chunk.end) for chunk in own]
        elif kind == "merged":
            size = draw.randint(2, 4)
            groups = [own[i : i + size] for i in range(0, len(own), size)]
            spans = [(group[0].start, group[-1].end) for group in groups]
        else:
            size = draw.randint(30, 90) if kind == "split" else draw.randint(120, 400)
            step = int(size * draw.uniform(0.6, 0.9)) if kind == "overlapping" else size
            starts = range(0, len(text), step)
            spans = [
                (a, min(len(text), a + size))
                for a in starts
                if a == 0 or a + size - step < len(text)
            ]
            if kind != "cut anywhere":  # at blanks, as splitters do
                spans = [(_blank(text, a), _blank(text, b)) for a, b in spans]
        reuse = draw.random() < 0.5 and kind != "other ids"
        for number, (start, end) in enumerate(spans):
            identity = f"{name}#{number}" if reuse else f"{draw.getrandbits(48):012x}"
            if text[start:end].strip():
                cut.append(Chunk(identity, name, start, end))
    return cut


def _blank(text: str, at: int) -> int:
    while 0 < at < len(text) and text[at] != " ":
        at += 1
    return at


def passages(documents: dict[str, str], chunks: Sequence[Chunk]) -> list[Passage]:
    """Chunks as a store returns them: stripped, with their document's name."""
    return [
        Passage(
            id=chunk.id,
            rank=rank,
            text=documents[chunk.document][chunk.start : chunk.end].strip(),
            metadata={"source": chunk.document},
        )
        for rank, chunk in enumerate(chunks, 1)
    ]


def labelled_cases(chunks: Sequence[Chunk], seed: int) -> list[Case]:
    """Cases that need one to three chunks."""
    draw = random.Random(seed)  # noqa: S311
    return [
        Case(
            id=f"q{number}",
            question=f"Question {number}?",
            relevant={chunk.id: 1 for chunk in draw.sample(chunks, draw.randint(1, 3))},
        )
        for number in range(CASES)
    ]


def carried_over(
    documents: dict[str, str], chunks: Sequence[Chunk], text: set[tuple[str, int]]
) -> list[Passage]:
    """The retrieved text in other chunks: what of each chunk was retrieved."""
    pieces: list[Chunk] = []
    for number, chunk in enumerate(chunks):
        start = None
        for at in range(chunk.start, chunk.end + 1):
            inside = at < chunk.end and (chunk.document, at) in text
            if inside and start is None:
                start = at
            elif not inside and start is not None:
                pieces.append(Chunk(f"{chunk.id}/{number}.{start}x", chunk.document, start, at))
                start = None
    return [p for p in passages(documents, pieces) if p.text]


def share(case: Case, retrieved: Sequence[Passage]) -> float:
    """Share of the labelled spans in the retrieved text."""
    (needs,) = case_needs(case, retrieved)
    return len(match_needs(needs, retrieved)) / len(needs)


def measured(seed: int, kind: str) -> dict[str, int]:
    """Counts of one re-chunking."""
    documents = invented_documents(seed)
    chunks = first_chunks(documents)
    cases = labelled_cases(chunks, seed)
    gold = read_goldset(cases)
    whole = [Passage(id=name, text=text, rank=1) for name, text in documents.items()]
    old = passages(documents, chunks)
    anchored = anchor_goldset(gold, whole, old)
    new_chunks = rechunk(documents, chunks, kind, seed)
    new = passages(documents, new_chunks)
    counts = {
        "cases": len(cases),
        "anchored": sum(bool(case.spans) for case in anchored.cases),
        "same share": 0,
    }
    draw = random.Random(seed + 1)  # noqa: S311
    for case in anchored.cases:
        labels = {c.id: c for c in chunks if c.id in gold_ids(cases, case.id)}
        some = [c for c in labels.values() if draw.random() < 0.6]
        ranked = [*some, *draw.sample(chunks, 4)]
        text = {(c.document, at) for c in ranked for at in range(c.start, c.end)}
        before = share(case, carried_over(documents, chunks, text))
        after = share(case, carried_over(documents, new_chunks, text))
        counts["same share"] += before == after
    return counts | dict(_repairs(documents, chunks, new_chunks, cases, old, new))


def gold_ids(cases: Sequence[Case], case_id: str) -> set[str]:
    """The labelled ids of a case."""
    return set(next(case.relevant for case in cases if case.id == case_id))


def _repairs(
    documents: dict[str, str],
    chunks: Sequence[Chunk],
    new_chunks: Sequence[Chunk],
    cases: Sequence[Case],
    old: Sequence[Passage],
    new: Sequence[Passage],
) -> Iterator[tuple[str, int]]:
    inputs = CheckInputs(corpus=PassageSearch(new), before=PassageSearch(old))
    gold = read_goldset(list(cases))
    proposals = accepted_proposals(check_goldset(gold, inputs), 0.9)
    fixed = {case.id: case for case in apply_proposals(cases, proposals)}
    taken = {(proposal.case_id, proposal.before): proposal for proposal in proposals}
    places = {chunk.id: chunk for chunk in chunks}
    by_id = {chunk.id: chunk for chunk in new_chunks}
    contained = repaired = split = joined = wrong = 0
    for case in cases:
        for name in case.relevant:
            label, text = places[name], documents[places[name].document]
            quote = text[label.start : label.end]
            holders = {c.id for c in new_chunks if quote in documents[c.document][c.start : c.end]}
            proposal = taken.get((case.id, name))
            sets = proposal.sets if proposal else ()
            kept = name in holders and (name in fixed[case.id].relevant)
            # Every set must have the whole label, in text of its chunks, in one document.
            wrong += sum(not _covers(documents, [by_id[i] for i in ids], quote) for ids in sets)
            wrong += bool(proposal) and not sets
            if holders:
                contained += 1
                repaired += kept or (bool(sets) and all({*ids} <= holders for ids in sets))
            else:
                split += 1
                joined += bool(sets)
    yield from {
        "contained": contained, "repaired": repaired, "split": split, "joined": joined, "wrong": wrong,
    }.items()  # fmt: skip


def _covers(documents: dict[str, str], chunks: Sequence[Chunk], quote: str) -> bool:
    text = documents[chunks[0].document]
    covered = {at for chunk in chunks for at in range(chunk.start, chunk.end)}
    at = text.find(quote)
    while at >= 0:
        if all(i in covered or text[i] == " " for i in range(at, at + len(quote))):
            return len({chunk.document for chunk in chunks}) == 1
        at = text.find(quote, at + 1)
    return False


def rows() -> list[tuple[str, dict[str, int]]]:
    """The counts of each kind of re-chunking."""
    found = []
    for kind in KINDS:
        total: dict[str, int] = {}
        for seed in range(REPEATS // len(KINDS)):
            for name, count in measured(seed, kind).items():
                total[name] = total.get(name, 0) + count
        found.append((kind, total))
    return found


def main() -> None:
    table = rows()
    lines = [
        "# Labels after re-chunking",
        "",
        INTRODUCTION,
        "",
        "| chunks | cases | anchored | same share | contained | repaired | split | joined | wrong |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [f"| {kind} | {' | '.join(map(str, counts.values()))} |" for kind, counts in table]
    text = "\n".join(lines) + "\n"
    print(text)
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
