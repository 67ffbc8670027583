"""The claims and passages of one case, with their quotes marked in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

from misslink.matching import load_fit
from misslink.render.format import format_decimal, format_percent
from misslink.render.miss_sentences import MISS_LABELS
from misslink.render.reasons import LOSS_STEPS
from misslink.report.diagnosis import describe_distance, miss_details
from misslink.report.glossary import RELATIONS
from misslink.text.normalization import locate
from misslink.text.prompt_matching import hidden_spans
from misslink.types import Claim, ClaimLink, Link, Passage, RetrievalMiss, Trace

# Share of the heuristic judge's highest P(supports): its probabilities are multiplied by a cap that
# they never exceed. Of 303 such ties of benchmarks/linking/ties.py 300 of 300 are right from here on
# (Wilson: at least 98.7%), and none of 3 below.
_SURE = 0.95
# Where spans overlap the first of these gives the piece its colour.
_STRONGEST_FIRST = (
    *("contradicted", "unsupported", "supported", "needed", "quote", "evidence"),
    "unseen",
)


class TextSpan(NamedTuple):
    """A stretch of a text that means something.

    Parameters
    ----------
    start, end : int
        Character offsets.
    kind : str
        What it is: a claim's support, 'quote', 'needed', 'evidence', or 'unseen' by the model.
    number : int
        Number of the claim it belongs to, from 1; 0 for none.
    """

    start: int
    end: int
    kind: str
    number: int = 0


class TextPiece(NamedTuple):
    """Characters from ``start`` to ``end`` under the same spans; ``kind`` is "" where none are.

    ``claims`` are the numbers of those spans, that of the gravest first; ``ends`` the numbers of
    spans that end here.
    """

    start: int
    end: int
    kind: str = ""
    claims: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()


def locate_quote(
    text: str, start: int | None, end: int | None, quote: str
) -> tuple[int, int] | None:
    """Return the start and end of a quote in `text`; offsets that fit win over a search."""
    if start is not None and end is not None and 0 <= start < end <= len(text):
        return start, end
    return locate(quote, text)


def split_text(text: str, spans: Sequence[TextSpan]) -> tuple[TextPiece, ...]:
    """Cut `text` so that every piece lies wholly inside or outside of every span.

    Returns nothing where no span fits: then there is nothing to mark.

    Examples
    --------
    >>> [(p.start, p.end, p.kind) for p in split_text("ab cd", [TextSpan(3, 5, "quote", 1)])]
    [(0, 3, ''), (3, 5, 'quote')]
    """
    inside = [span for span in spans if 0 <= span.start < span.end <= len(text)]
    if not inside:
        return ()
    cuts = sorted({0, len(text)}.union(*((span.start, span.end) for span in inside)))
    text_pieces = []
    for start, end in pairwise(cuts):
        over = [span for span in inside if span.start <= start and end <= span.end]
        text_pieces.append(_merged_piece(start, end, over) if over else TextPiece(start, end))
    return tuple(text_pieces)


def _merged_piece(start: int, end: int, over: list[TextSpan]) -> TextPiece:
    """What lies under all of `over`, one or more."""
    if len(over) == 1:  # nearly always, and there are hundreds of thousands
        (span,) = over
        numbers = (span.number,) if span.number else ()
        return TextPiece(start, end, span.kind, numbers, numbers if span.end == end else ())
    over.sort(key=lambda span: _STRONGEST_FIRST.index(span.kind))
    return TextPiece(
        start,
        end,
        kind=over[0].kind,
        claims=tuple(dict.fromkeys(span.number for span in over if span.number)),
        ends=tuple(span.number for span in over if span.end == end and span.number),
    )


class ClaimPointer(NamedTuple):
    """Link from a claim to the passage that decides it.

    ``passage`` and ``missed`` are positions in the case's lists of passages, counted from 1; 0
    means not in the list. ``quote`` is empty where the passage already marks it.
    """

    where: str
    words: str
    quote: str = ""
    passage: int = 0
    missed: int = 0


@dataclass(frozen=True)
class ClaimRow:
    """A claim of the answer as the explorer shows it; ``unlocated`` where the answer lacks it."""

    number: int
    text: str
    support: str
    probability: str
    unlocated: bool
    correct: str
    wrong: bool
    note: str
    quotes: tuple[ClaimPointer, ...]
    needed: tuple[ClaimPointer, ...]


@dataclass(frozen=True)
class PassageRow:
    """A retrieved or a missed passage; ``ranks`` of a missed one, by search, where it is known."""

    id: str
    rank: str
    score: str
    relevant: bool
    flags: tuple[str, ...]
    text: str
    marks: tuple[TextPiece, ...]
    details: Sequence[Mapping[str, Any]]
    ranks: Mapping[str, int | None]


class CaseLocations:
    """The places of one case that a claim can point to, collected while its claims are read."""

    def __init__(self, trace: Trace | None, link: Link | None) -> None:
        self._trace = trace
        self._links = link.claims if link else ()
        self._missed: dict[str, list[RetrievalMiss]] = {}  # one passage can carry several evidences
        for missed in sorted(link.missed if link else (), key=_by_rank):
            self._missed.setdefault(missed.passage_id, []).append(missed)
        retrieved = trace.retrieved if trace else ()
        self._passages = {passage.id: passage for passage in retrieved}
        self._shown = trace.shown if trace else {}
        self._places = {passage.id: number for number, passage in enumerate(retrieved, 1)}
        self._missed_places = {name: number for number, name in enumerate(self._missed, 1)}
        deeper = {passage.id: passage.text for passage in (trace.deeper if trace else ())}
        self._texts = {
            name: ones[0].text or deeper.get(name) or ones[0].evidence or ""
            for name, ones in self._missed.items()
        }
        self._quotes: dict[str, list[TextSpan]] = {}
        self._needed: dict[str, list[TextSpan]] = {}

    def claim(self, index: int, claim: Claim) -> ClaimRow:
        """Read a claim, and remember the quotes it marks."""
        answer = (self._trace.answer or "") if self._trace else ""
        correct = {True: "agrees with the reference", False: "contradicts the reference", None: ""}
        return ClaimRow(
            number=index + 1,
            text=claim.text,
            support=claim.support,
            probability="" if claim.probability is None else format_decimal(claim.probability),
            unlocated=not _has_valid_offsets(claim, answer),
            correct=correct[claim.correct],
            wrong=claim.correct is False,
            note=claim.note or "",
            quotes=(
                *(self._quote(index, i, claim) for i in range(len(claim.evidence))),
                *(
                    ClaimPointer(f"message {item.passage_id}", "stated earlier", item.quote)
                    for item in claim.messages
                ),
            ),
            needed=tuple(self._need(link) for link in self._links if link.index == index),
        )

    def retrieved(self, passage: Passage, relevant: AbstractSet[str]) -> PassageRow:
        """A retrieved passage, after all claims were read; the first of ``flags`` is the strongest."""
        is_relevant = passage.id in relevant
        flags = _prompt_flags(passage, self._trace)
        if is_relevant:
            flags.insert(0, "relevant")
        return PassageRow(
            id=passage.id,
            rank=f"{passage.rank}",
            score="" if passage.score is None else format_decimal(passage.score, 3),
            relevant=is_relevant,
            flags=tuple(flags),
            text=passage.text,
            marks=split_text(
                passage.text, self._quotes.get(passage.id, []) + self._unseen(passage.id)
            ),
            details=(),
            ranks={},
        )

    def missed(self) -> tuple[PassageRow, ...]:
        """All missed passages, after all claims were read."""
        return tuple(map(self._missed_row, self._missed))

    def _missed_row(self, name: str) -> PassageRow:
        ones, text = self._missed[name], self._texts[name]
        first = ones[0]
        flags = [
            "highly relevant" if max(miss.grade for miss in ones) > 1 else "relevant",
            "missed",
        ]
        flags += dict.fromkeys(MISS_LABELS[miss.kind] for miss in ones if miss.kind)
        steps = {f"{LOSS_STEPS[miss.lost_at]}{_in_search(miss)}" for miss in ones if miss.lost_at}
        flags += sorted(steps)
        spots = [locate_quote(text, None, None, miss.evidence) for miss in ones if miss.evidence]
        spans = [TextSpan(*spot, "evidence") for spot in spots if spot is not None]
        return PassageRow(
            id=name,
            rank=self._rank(first),
            score="" if first.score is None else format_decimal(first.score, 3),
            relevant=True,
            flags=tuple(flags),
            text=text,
            marks=split_text(text, spans + self._needed.get(name, []) + self._unseen(name)),
            details=miss_details(ones),
            ranks={
                "your search": first.true_rank,
                "keywords": first.bm25_rank or _as_rank(first.measured.get("bm25_rank")),
                "meaning": _as_rank(first.measured.get("dense_rank")),
            },
        )

    def _unseen(self, name: str) -> list[TextSpan]:
        """What the prompt lacks of a passage that is there in part."""
        shown, passage = self._shown.get(name), self._passages.get(name)
        if shown is None or passage is None:
            return []
        return [TextSpan(*span, "unseen") for span in hidden_spans(passage.text, shown)]

    def _quote(self, index: int, which: int, claim: Claim) -> ClaimPointer:
        evidence = claim.evidence[which]
        passage = self._passages.get(evidence.passage_id)
        if passage is None:
            return ClaimPointer(
                evidence.passage_id, "a passage that was not retrieved", evidence.quote
            )
        start, end = evidence.start, evidence.end
        if not passage.text.startswith(self._shown.get(passage.id, "")):
            start = end = None  # they count in the shown part
        spot = locate_quote(passage.text, start, end, evidence.quote)
        where = f"rank {passage.rank}"
        if spot is None:
            return ClaimPointer(where, "quote not found in the passage", evidence.quote)
        spans = self._quotes.setdefault(evidence.passage_id, [])
        spans.append(TextSpan(*spot, "quote", index + 1))
        return ClaimPointer(where, "quoted from", passage=self._places[passage.id])

    def _need(self, link: ClaimLink) -> ClaimPointer:
        missed = self._missed.get(link.passage_id)
        words = _describe_relation(link)
        if missed is None:
            return ClaimPointer(f"missed passage {link.passage_id}", words, link.quote or "")
        spot = locate_quote(self._texts[link.passage_id], None, None, link.quote or "")
        if spot is not None:
            spans = self._needed.setdefault(link.passage_id, [])
            spans.append(TextSpan(*spot, "needed", link.index + 1))
        far = describe_distance(link.distance if link.distance is not None else missed[0].distance)
        where = f"{self._rank(missed[0])}, {far}" if far else self._rank(missed[0])
        quote = link.quote or "" if spot is None else ""
        return ClaimPointer(where, words, quote, missed=self._missed_places[link.passage_id])

    def _rank(self, missed: RetrievalMiss) -> str:
        passage = self._passages.get(missed.passage_id)
        if passage is not None:
            if missed.status == "not_indexed":
                return f"rank {passage.rank}, with another text in the index"
            if self._trace is None or self._trace.prompted is None:
                return f"rank {passage.rank}, below the cutoff"
            if passage.id in self._trace.prompted:
                return f"rank {passage.rank}, in the prompt in part"
            return f"rank {passage.rank}, retrieved but not in the prompt"
        if missed.true_rank is not None:
            depth = f" of {missed.depth:,} searched" if missed.depth else ""
            return f"rank {missed.true_rank:,}{depth}"
        if missed.depth:
            return f"not within the first {missed.depth}"
        if self._passages:
            return f"not among the {len(self._passages)} retrieved"
        return "rank not known"


def _in_search(miss: RetrievalMiss) -> str:
    return f" (search {miss.search})" if miss.search else ""


def _by_rank(missed: RetrievalMiss) -> float:
    return inf if missed.true_rank is None else missed.true_rank


def _as_rank(value: float | None) -> int | None:
    return int(value) if value else None


def _describe_relation(link: ClaimLink) -> str:
    """What the passage would have said of the claim, by whom, and how sure that is."""
    notes = [f"by {link.by}"] if link.by else []
    if link.probability is not None:
        notes.append(f"P(supports) {format_decimal(link.probability)}")
    words = RELATIONS[link.relation] if is_sure(link) else "may bear on this claim"
    return words + (f" ({', '.join(notes)})" if notes else "")


def is_sure(link: ClaimLink) -> bool:
    """Whether a missed passage may be reported to support the claim.

    A model judge's word counts; of the heuristic judge only what it is as sure of as it ever is.
    """
    if link.relation != "would_support" or not link.by.startswith("heuristic"):
        return True
    return link.probability is not None and link.probability >= _SURE * load_fit().cap


def _has_valid_offsets(claim: Claim, answer: str) -> bool:
    start, end = claim.start, claim.end
    return start is not None and end is not None and 0 <= start < end <= len(answer)


def _prompt_flags(passage: Passage, trace: Trace | None) -> list[str]:
    if trace is None or trace.prompted is None:
        return ["prompt not seen"]
    if passage.id not in trace.prompted:
        return ["not in the prompt"]
    shown = trace.shown.get(passage.id, passage.text)
    if shown == passage.text:
        return ["in the prompt"]
    hidden = sum(end - start for start, end in hidden_spans(passage.text, shown))
    share = format_percent(1 - hidden / max(1, len(passage.text)))
    return ["in the prompt", f"cut: {share} shown" if hidden else "in other words"]
