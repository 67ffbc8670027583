"""A case's claims and passages: every claim points at its quote or at what it needed."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from misslink.report.glossary import RELATIONS, SUBTYPES
from misslink.report.missed import MissDetail, distance_words, miss_details
from misslink.report.spans import Piece, Span, pieces, place
from misslink.report.wording import decimal
from misslink.types import Claim, ClaimLink, Link, Missed, Passage, Trace

__all__ = ["ClaimRow", "PassageRow", "Pointer", "Spots"]


@dataclass(frozen=True)
class Pointer:
    """From a claim to what decides it.

    ``passage`` and ``missed`` are places in the case's lists of passages, from 1, and 0 where it
    is in neither; ``quote`` is told only where it is not marked there.
    """

    where: str
    words: str
    quote: str = ""
    passage: int = 0
    missed: int = 0


@dataclass(frozen=True)
class ClaimRow:
    """A claim, its support, and where its quotes and the passages it needed stand."""

    number: int
    text: str
    support: str
    probability: str
    located: bool
    correct: str
    note: str
    quotes: tuple[Pointer, ...]
    needed: tuple[Pointer, ...]


@dataclass(frozen=True)
class PassageRow:
    """A passage, retrieved or missed; ``flags`` are words, the first of them the strongest.

    ``pieces`` mark its text, ``details`` are what was measured of a missed one.
    """

    id: str
    rank: str
    score: str
    relevant: bool
    flags: tuple[str, ...]
    text: str
    pieces: tuple[Piece, ...]
    details: tuple[MissDetail, ...] = ()


class Spots:
    """The places of one case that a claim can point to, collected while its claims are read."""

    def __init__(self, trace: Trace | None, link: Link | None) -> None:
        self._trace = trace
        self._links = link.claims if link else ()
        self._missed: dict[str, list[Missed]] = {}  # one passage can carry several evidences
        for missed in link.missed if link else ():
            self._missed.setdefault(missed.passage_id, []).append(missed)
        retrieved = trace.retrieved if trace else ()
        self._passages = {passage.id: passage for passage in retrieved}
        self._places = {passage.id: number for number, passage in enumerate(retrieved, 1)}
        self._missed_places = {name: number for number, name in enumerate(self._missed, 1)}
        deeper = {passage.id: passage.text for passage in (trace.deeper if trace else ())}
        self._texts = {
            name: ones[0].text or deeper.get(name) or ones[0].evidence or ""
            for name, ones in self._missed.items()
        }
        self._quotes: dict[str, list[Span]] = {}
        self._needed: dict[str, list[Span]] = {}

    def claim(self, index: int, claim: Claim) -> ClaimRow:
        """Read a claim, and remember the quotes it marks."""
        answer = (self._trace.answer or "") if self._trace else ""
        correct = {True: "agrees with the reference", False: "contradicts the reference", None: ""}
        return ClaimRow(
            number=index + 1,
            text=claim.text,
            support=claim.support,
            probability="" if claim.probability is None else decimal(claim.probability),
            located=_fits(claim, answer),
            correct=correct[claim.correct],
            note=claim.note or "",
            quotes=tuple(self._quote(index, i, claim) for i in range(len(claim.evidence))),
            needed=tuple(self._need(link) for link in self._links if link.index == index),
        )

    def retrieved(self, passage: Passage, relevant: AbstractSet[str]) -> PassageRow:
        """A retrieved passage, after all claims were read."""
        is_relevant = passage.id in relevant
        flags = [_reached(passage, self._trace)]
        if is_relevant:
            flags.insert(0, "relevant")
        return PassageRow(
            id=passage.id,
            rank=f"{passage.rank}",
            score="" if passage.score is None else decimal(passage.score, 3),
            relevant=is_relevant,
            flags=tuple(flags),
            text=passage.text,
            pieces=pieces(passage.text, self._quotes.get(passage.id, [])),
        )

    def missed(self) -> tuple[PassageRow, ...]:
        """All missed passages, after all claims were read."""
        return tuple(map(self._missed_row, self._missed))

    def _missed_row(self, name: str) -> PassageRow:
        ones, text = self._missed[name], self._texts[name]
        first = ones[0]
        flags = ["highly relevant" if max(one.grade for one in ones) > 1 else "relevant", "missed"]
        flags += dict.fromkeys(SUBTYPES[one.subtype] for one in ones if one.subtype)
        spots = [place(text, None, None, one.evidence) for one in ones if one.evidence]
        spans = [Span(*spot, "evidence") for spot in spots if spot is not None]
        return PassageRow(
            id=name,
            rank=self._rank(first),
            score="" if first.score is None else decimal(first.score, 3),
            relevant=True,
            flags=tuple(flags),
            text=text,
            pieces=pieces(text, spans + self._needed.get(name, [])),
            details=miss_details(ones),
        )

    def _quote(self, index: int, which: int, claim: Claim) -> Pointer:
        evidence = claim.evidence[which]
        passage = self._passages.get(evidence.passage_id)
        if passage is None:
            return Pointer(evidence.passage_id, "a passage that was not retrieved", evidence.quote)
        spot = place(passage.text, evidence.start, evidence.end, evidence.quote)
        where = f"rank {passage.rank}"
        if spot is None:
            return Pointer(where, "quote not found in the passage", evidence.quote)
        spans = self._quotes.setdefault(evidence.passage_id, [])
        spans.append(Span(*spot, "quote", index + 1))
        return Pointer(where, "quoted from", passage=self._places[passage.id])

    def _need(self, link: ClaimLink) -> Pointer:
        missed = self._missed.get(link.passage_id)
        words = _relation(link)
        if missed is None:
            return Pointer(f"missed passage {link.passage_id}", words, link.quote or "")
        spot = place(self._texts[link.passage_id], None, None, link.quote or "")
        if spot is not None:
            spans = self._needed.setdefault(link.passage_id, [])
            spans.append(Span(*spot, "needed", link.index + 1))
        far = distance_words(link.distance if link.distance is not None else missed[0].distance)
        where = f"{self._rank(missed[0])}, {far}" if far else self._rank(missed[0])
        quote = link.quote or "" if spot is None else ""
        return Pointer(where, words, quote, missed=self._missed_places[link.passage_id])

    def _rank(self, missed: Missed) -> str:
        passage = self._passages.get(missed.passage_id)
        if passage is not None:
            if self._trace is None or self._trace.prompted is None:
                return f"rank {passage.rank}, beyond the first k"
            return f"rank {passage.rank}, retrieved but not in the prompt"
        if missed.true_rank is not None:
            asked = f" of {missed.depth} asked" if missed.depth else ""
            return f"rank {missed.true_rank}{asked}"
        if missed.depth:
            return f"not within the first {missed.depth}"
        return "rank not known, the retriever was not asked deeper"


def _relation(link: ClaimLink) -> str:
    """What the passage would have said of the claim, by whom, and how sure that is."""
    said = RELATIONS[link.relation]
    if link.by:
        said += f", says {link.by}"
    if link.probability is not None:
        said += f", P(supports) {decimal(link.probability)}"
    return said


def _fits(claim: Claim, answer: str) -> bool:
    start, end = claim.start, claim.end
    return start is not None and end is not None and 0 <= start < end <= len(answer)


def _reached(passage: Passage, trace: Trace | None) -> str:
    if trace is None or trace.prompted is None:
        return "prompt not seen"
    return "in the prompt" if passage.id in trace.prompted else "not in the prompt"
