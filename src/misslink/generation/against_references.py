"""What the metrics share that hold claims against passages and references at once."""

from __future__ import annotations

from misslink.judging.examination import ExaminationWithReference
from misslink.judging.metric import Finding, Subject, skipped
from misslink.judging.protocol import Reply
from misslink.types import Claim

__all__ = ["compared_claims"]


def compared_claims(subject: Subject, reply: Reply) -> tuple[Claim, ...] | Finding:
    """The answer's claims, each held against the references; or the finding where there are none.

    Of these claims ``correct`` is True where a reference agrees, and None means that all of them
    are silent, not that nobody asked.
    """
    said = reply.parsed
    if not isinstance(said, ExaminationWithReference):
        return skipped("the judge was shown no reference answer")
    if said.response == "declines":
        return skipped("the answer declines")
    return subject.claims(reply) or skipped("the answer makes no claim")
