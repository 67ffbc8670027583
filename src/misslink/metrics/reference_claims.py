"""Claims of reference answers and how the answer compares with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from misslink.judge.judged_metric import (
    REFUSED,
    Finding,
    Subject,
    failed_finding,
    skipped_finding,
)
from misslink.judge.protocol import ExaminationWithReference, ExaminedReferenceClaim, Reply
from misslink.types import Claim, Support


def missing_reference_reason(subject: Subject) -> str | None:
    """Why the case has no usable reference answer; None: it has one."""
    if subject.expects_answer is False:
        return "the question has no answer; abstention judges it"
    if not subject.case.references:
        return "the case has no reference answer"
    return None


def claims_with_references(subject: Subject, reply: Reply) -> tuple[Claim, ...] | Finding:
    """Return the answer's claims, each compared with the references; or the finding without any.

    ``correct`` is True where a reference agrees; None means that all of them are silent.
    """
    examination = reply.parsed
    if not isinstance(examination, ExaminationWithReference):
        return skipped_finding("the judge was shown no reference answer")
    if examination.response == "declines":
        return skipped_finding("the answer declines")
    if reply.refuses("claims.*.reference"):
        return failed_finding(REFUSED)
    return subject.claims(reply) or skipped_finding("the answer makes no claim")


NumberedClaim = tuple[
    int, ExaminedReferenceClaim
]  # a reference's claim, and its place in the reply

_SUPPORT: Mapping[str, Support] = {
    "states": "supported",
    "contradicts": "contradicted",
    "omits": "unsupported",
}


def claims_by_reference(
    subject: Subject, reply: Reply
) -> tuple[ExaminationWithReference, Mapping[int, Sequence[NumberedClaim]]] | Finding:
    """What was said, and the claims of each reference by its number; or the finding without them.

    A reference that the case does not have is left out. The mapping is empty exactly where the
    answer declines and the judge said nothing of any.
    """
    examination = reply.parsed
    if not isinstance(examination, ExaminationWithReference):
        return skipped_finding("the judge was shown no reference answer")
    if reply.refuses("claims.*.reference", "reference_claims.*"):
        return failed_finding(REFUSED)
    by_number: dict[int, list[NumberedClaim]] = {}
    for place, part in enumerate(examination.reference_claims):
        if 1 <= part.reference <= len(subject.case.references):
            by_number.setdefault(part.reference, []).append((place, part))
    if not by_number and examination.response != "declines":
        return failed_finding("the judge said nothing of any reference claim")
    return examination, dict(
        sorted(by_number.items())
    )  # of equals the first counts, however it was said


def claim_recall(claims: Sequence[NumberedClaim]) -> float:
    """Share of a reference's claims, at least one, that the answer states."""
    return sum(part.answer == "states" for _, part in claims) / len(claims)


def stated_claims(claims: Sequence[NumberedClaim], reply: Reply) -> tuple[Claim, ...]:
    """Return a reference's claims as stated (supported), contradicted or omitted by the answer."""
    return tuple(
        Claim(
            text=part.text,
            support=_SUPPORT[part.answer],
            probability=reply.chance(f"reference_claims.{place}.answer", "states"),
        )
        for place, part in claims
    )
