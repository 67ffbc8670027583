"""Correctness: does the answer say what a reference answer says?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from misslink.answer.reference_claims import (
    Numbered,
    by_reference,
    recall,
    stated_claims,
)
from misslink.judging.metric import Finding, Subject
from misslink.judging.protocol import Ask, Reply
from misslink.judging.references import lacks_references
from misslink.registry import judged_metrics

__all__ = ["Correctness"]

_HALF = 0.5


class Correctness:
    """F1 of claim precision and claim recall against the best reference answer.

    Precision is the share of the answer's claims that the references agree with, recall the share
    of a reference's claims that the answer states; both stand in ``parts``. The label is good when
    the answer states at least half of the best reference's claims and contradicts none: a long
    answer that is right is right, however low its precision. The best reference is one by which
    the answer is right, and among equals the one of which it states most. An answer that declines
    is wrong. An answer without a claim ("Yes.") has no precision, and its recall is its value.
    ``claims`` of the verdict are the reference's, held against the answer: stated (supported),
    contradicted, or omitted (unsupported). Skipped without a reference answer, and where the
    question has no answer.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (overall precision, recall and F1 over claims).
    """

    name = "correctness"
    level: Literal[2, 3] = 3

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, with the references."""
        return lacks_references(subject) or subject.examination

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Compute precision, recall and F1 over claims."""
        found = by_reference(subject, reply)
        if isinstance(found, Finding):
            return found
        said, claims_of = found
        if said.response == "declines":
            parts = {"precision": None, "recall": 0.0}
            return Finding("scored", 0.0, label=False, parts=parts, reason="the answer declines")
        claims = subject.claims(reply)
        # Of several references a claim may contradict one and still be right by another.
        alone = len(subject.case.references) == 1
        denied = alone and any(claim.correct is False for claim in claims)
        best = max(claims_of.values(), key=lambda each: (_right(each) and not denied, recall(each)))
        stated, contradicted = recall(best), denied or _contradicts(best)
        precision = sum(c.correct is True for c in claims) / len(claims) if claims else None
        total = (precision or 0.0) + stated
        return Finding(
            "scored",
            value=stated if precision is None else 2 * precision * stated / (total or 1.0),
            label=stated >= _HALF and not contradicted,
            parts={"precision": precision, "recall": stated},
            claims=stated_claims(best, reply),
            reason="it contradicts the reference" if contradicted else None,
        )


def _right(claims: Sequence[Numbered]) -> bool:
    return recall(claims) >= _HALF and not _contradicts(claims)


def _contradicts(claims: Sequence[Numbered]) -> bool:
    return any(part.answer == "contradicts" for _, part in claims)


judged_metrics.register(Correctness.name)(Correctness())
