"""What a judge said of an answer's claims, checked against the texts it said it of."""

from __future__ import annotations

from collections.abc import Sequence

from misslink.judging.examination import Examination
from misslink.judging.protocol import Reply
from misslink.text import content_words, locate
from misslink.types import Claim, Evidence, Passage

__all__ = ["read_claims"]

_AGREEMENT = {"agrees": True, "contradicts": False}


def read_claims(reply: Reply, answer: str, passages: Sequence[Passage]) -> tuple[Claim, ...]:
    """Turn the claims of a reply into claims with places and verified quotes.

    A quote is looked up in the passage it is said to be from, then in the others. One that is in
    none supports nothing: the claim is unsupported, and its note says why. A claim that cannot be
    located in the answer keeps its place open and still counts.

    Parameters
    ----------
    reply : Reply
        Whose ``parsed`` is an Examination.
    answer : str
    passages : sequence of Passage
        In the order in which the judge numbered them, from 1.

    Returns
    -------
    tuple of Claim
        Empty where the judge named none.
    """
    said = reply.parsed
    if not isinstance(said, Examination):
        return ()
    claims = []
    searched_to: dict[str, int] = {}
    for index, claim in enumerate(said.claims):
        # The same sentence twice is two claims, each at its own place.
        since = searched_to.get(claim.text, 0)
        span = locate(claim.text, answer[since:]) if claim.text else None
        start, end = (since + span[0], since + span[1]) if span else (None, None)
        if end is not None:
            searched_to[claim.text] = end
        support = claim.support
        note = None
        evidence: tuple[Evidence, ...] = ()
        if support != "unsupported":
            found, note = _look_up(claim.quote, claim.passage, passages)
            if found is None:
                support = "unsupported"
            else:
                evidence = (found,)
        claims.append(
            Claim(
                text=claim.text,
                start=start,
                end=end,
                support=support,
                evidence=evidence,
                probability=reply.probabilities.get(f"claims.{index}"),
                correct=_AGREEMENT.get(getattr(claim, "reference", "")),
                note=note,
            )
        )
    return tuple(claims)


def _look_up(
    quote: str | None, number: int | None, passages: Sequence[Passage]
) -> tuple[Evidence | None, str | None]:
    """Find a quote; return it with its place, or None, and a note where the judge was off."""
    if quote is None or not content_words(quote):
        return None, "the judge gave no quote for it"
    named = passages[number - 1] if number and 1 <= number <= len(passages) else None
    for passage in [*([named] if named else []), *passages]:
        span = locate(quote, passage.text)
        if span is None:
            continue
        start, end = span
        exact = passage.text[start:end]
        note = None if passage is named else "the judge named another passage for this quote"
        found = Evidence(passage_id=passage.id, quote=exact, start=start, end=end)
        return found, note
    return None, "the judge's quote is in no passage"
