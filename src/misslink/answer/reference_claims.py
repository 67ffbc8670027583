"""What the answer makes of each reference answer's claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from misslink.judging.examination import ExaminationWithReference, ReferenceSaid
from misslink.judging.metric import Finding, Subject, failed, skipped
from misslink.judging.protocol import Reply
from misslink.types import Claim, Support

__all__ = ["Numbered", "by_reference", "recall", "stated_claims"]

Numbered = tuple[int, ReferenceSaid]  # a reference's claim, and its place in the reply

_SUPPORT: Mapping[str, Support] = {
    "states": "supported",
    "contradicts": "contradicted",
    "omits": "unsupported",
}


def by_reference(
    subject: Subject, reply: Reply
) -> tuple[ExaminationWithReference, Mapping[int, Sequence[Numbered]]] | Finding:
    """What was said, and the claims of each reference by its number; or the finding without them.

    A reference that the case does not have is left out. The mapping is empty exactly where the
    answer declines and the judge said nothing of any.
    """
    said = reply.parsed
    if not isinstance(said, ExaminationWithReference):
        return skipped("the judge was shown no reference answer")
    found: dict[int, list[Numbered]] = {}
    for place, part in enumerate(said.reference_claims):
        if 1 <= part.reference <= len(subject.case.references):
            found.setdefault(part.reference, []).append((place, part))
    if not found and said.response != "declines":
        return failed("the judge said nothing of any reference claim")
    return said, dict(sorted(found.items()))  # of equals the first counts, however it was said


def recall(claims: Sequence[Numbered]) -> float:
    """Share of a reference's claims, at least one, that the answer states."""
    return sum(part.answer == "states" for _, part in claims) / len(claims)


def stated_claims(claims: Sequence[Numbered], reply: Reply) -> tuple[Claim, ...]:
    """A reference's claims held against the answer: stated (supported), contradicted or omitted."""
    return tuple(
        Claim(
            text=part.text,
            support=_SUPPORT[part.answer],
            probability=reply.chance(f"reference_claims.{place}.answer", "states"),
        )
        for place, part in claims
    )
