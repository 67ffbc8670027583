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

    A quote is looked up in the passages, and every passage that holds it is evidence. One that is
    in none supports nothing: the claim is unsupported, and its note says why. A claim that cannot
    be located in the answer keeps its place open and still counts.

    Parameters
    ----------
    reply : Reply
        Whose ``parsed`` is an Examination.
    answer : str
    passages : sequence of Passage
        What the judge was shown.

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
            evidence, note = _look_up(claim.quote, passages)
            if not evidence:
                support = "unsupported"
        claims.append(
            Claim(
                text=claim.text,
                start=start,
                end=end,
                support=support,
                evidence=evidence,
                probability=reply.chance(f"claims.{index}.support", "supported"),
                correct=_AGREEMENT.get(getattr(claim, "reference", "")),
                note=note,
            )
        )
    return tuple(claims)


def _look_up(
    quote: str | None, passages: Sequence[Passage]
) -> tuple[tuple[Evidence, ...], str | None]:
    """Find a quote in every passage that holds it; without any, say what is wrong with it."""
    if quote is None or not content_words(quote):
        return (), "the judge gave no quote for it"
    places = ((passage, locate(quote, passage.text)) for passage in passages)
    found = tuple(
        Evidence(
            passage_id=passage.id, quote=passage.text[slice(*span)], start=span[0], end=span[1]
        )
        for passage, span in places
        if span is not None
    )
    return found, None if found else "the judge's quote is in no passage"
