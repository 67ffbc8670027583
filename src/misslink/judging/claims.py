"""What a judge said of an answer's claims, checked against the texts it said it of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from misslink.judging.examination import Examination
from misslink.judging.nearly import Found, near
from misslink.judging.protocol import Reply
from misslink.judging.quotes import find_quote, verified
from misslink.text import fold, has_content, locate
from misslink.types import Claim, Passage

__all__ = ["read_claims"]

# All claims of a reply are checked in one go: the same checks in two thirds of the time.
_CLAIMS = TypeAdapter(tuple[Claim, ...])
_Fields = Mapping[str, Any]  # of a Claim or an Evidence that is to be checked
_NO_QUOTE = "the judge gave no quote for it"
_AGREEMENT = {"agrees": True, "contradicts": False}


def read_claims(
    reply: Reply, answer: str, passages: Sequence[Passage], question: str = ""
) -> tuple[Claim, ...]:
    """Turn the claims of a reply into claims with places and verified quotes.

    A quote is looked up in the passages, and every passage that holds it word for word is evidence
    (where none does, every one that nearly does), unless it speaks of something else there
    (`misslink.judging.quotes`). One that is in none supports
    nothing: the claim is unsupported and overruled, its note says why, and it has no probability,
    for that was of a word that is not believed. A claim that cannot be located in the
    answer keeps its place open and still counts; one that is located by a likeness says so.

    Parameters
    ----------
    reply : Reply
        Whose ``parsed`` is an Examination.
    answer : str
    passages : sequence of Passage
        What the judge was shown.
    question : str
        What the answer answers: "At seven." is read with it.

    Returns
    -------
    tuple of Claim
        Empty where the judge named none.
    """
    said = reply.parsed
    if not isinstance(said, Examination):
        return ()
    shown = _Shown(passages)
    claims: list[_Fields] = []
    searched_to: dict[str, int] = {}
    for index, claim in enumerate(said.claims):
        # The same sentence twice is two claims, each at its own place.
        since = searched_to.get(claim.text, 0)
        place = _place(claim.text, answer[since:])
        start, end = (since + place.start, since + place.end) if place else (None, None)
        if end is not None:
            searched_to[claim.text] = end
        support = claim.support
        notes = [_wording(place.edits)] if place and place.edits else []
        evidence: list[_Fields] = []
        trouble = None
        if support != "unsupported":
            evidence, trouble = shown.look_up(claim.quote, claim.text, question)
            if trouble:
                support = "unsupported"
                notes.insert(0, trouble)
        claims.append(
            {
                "text": claim.text,
                "start": start,
                "end": end,
                "support": support,
                "evidence": evidence,
                "probability": None
                if trouble
                else reply.chance(f"claims.{index}.support", "supported"),
                "correct": _AGREEMENT.get(getattr(claim, "reference", "")),
                "note": "; ".join(notes) or None,
                "overruled": trouble is not None,
            }
        )
    return _CLAIMS.validate_python(claims)


def _place(claim: str, answer: str) -> Found | None:
    """Where a claim stands in the answer, word for word or nearly so."""
    span = locate(claim, answer)
    return Found(*span) if span else near(claim, answer)


def _wording(edits: int) -> str:
    return f"the judge wrote it with {edits} character{'s' * (edits > 1)} changed"


class _Shown:
    """The passages that a judge was shown, read once for all of its quotes."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._texts = [passage.text for passage in passages]
        self._folded = list(map(fold, self._texts))

    def look_up(
        self, quote: str | None, claim: str, question: str
    ) -> tuple[list[_Fields], str | None]:
        """Find a quote in every passage that holds it; without any, say what is wrong with it."""
        if quote is None:
            return [], _NO_QUOTE
        plain = fold(quote)
        word_for_word = [
            passage
            for passage, folded in zip(self._passages, self._folded, strict=True)
            if plain in folded
        ]
        found: list[_Fields] = [
            {
                "passage_id": passage.id,
                "quote": passage.text[place.start : place.end],
                "start": place.start,
                "end": place.end,
                "edits": place.edits,
            }
            for passage in word_for_word or self._passages
            if (place := verified(quote, passage.text, claim, question, context=self._texts))
        ]
        if found:
            return found, None
        return [], self._what_is_wrong(quote, claim, question)

    def _what_is_wrong(self, quote: str, claim: str, question: str) -> str:
        if not has_content(quote):
            return _NO_QUOTE
        if any(find_quote(quote, text, f"{claim} {question}") for text in self._texts):
            return "the judge's quote speaks of something else"
        return "the judge's quote is in no passage"
