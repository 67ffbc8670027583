"""Correctness: does the answer agree with a reference answer?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from misslink.judge.judged_metric import Finding, Subject
from misslink.judge.protocol import Ask, Reply
from misslink.metrics.reference_claims import (
    NumberedClaim,
    claim_recall,
    claims_by_reference,
    missing_reference_reason,
    stated_claims,
)
from misslink.registry import judged_metrics

_MIN_RECALL = 0.5


class Correctness:
    """F1 of claim precision and claim recall against the best reference answer.

    Precision is the share of the answer's claims that the references agree with, recall the share
    of a reference's claims that the answer states; ``parts`` holds both. The label is good when the
    answer states at least half of the best reference's claims and contradicts none: a long answer
    that is right is right, however low its precision. The best reference is one by which the answer
    is right, and among equals the one with the highest recall. An answer that declines is wrong. An
    answer without a claim ("Yes.") has no precision, and its recall is its value. ``claims`` of the
    verdict are the reference's: stated by the answer (supported), contradicted, or omitted
    (unsupported). Skipped without a reference answer, and where the question has no answer.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (overall precision, recall and F1 over claims).
    """

    name = "correctness"
    level: Literal[2, 3] = 3

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, with the references."""
        return missing_reference_reason(subject) or subject.examination

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Compute precision, recall and F1 over claims."""
        reference_claims = claims_by_reference(subject, reply)
        if isinstance(reference_claims, Finding):
            return reference_claims
        examination, claims_of = reference_claims
        if examination.response == "declines":
            parts = {"precision": None, "recall": 0.0}
            return Finding("scored", 0.0, label=False, parts=parts, reason="the answer declines")
        claims = subject.claims(reply)
        # Of several references a claim may contradict one and still be right by another.
        alone = len(subject.case.references) == 1
        denied = alone and any(claim.correct is False for claim in claims)
        best = max(
            claims_of.values(),
            key=lambda claims: (_is_correct(claims) and not denied, claim_recall(claims)),
        )
        stated, contradicted = claim_recall(best), denied or _contradicts(best)
        precision = sum(c.correct is True for c in claims) / len(claims) if claims else None
        total = (precision or 0.0) + stated
        return Finding(
            "scored",
            value=stated if precision is None else 2 * precision * stated / (total or 1.0),
            label=stated >= _MIN_RECALL and not contradicted,
            parts={"precision": precision, "recall": stated},
            claims=stated_claims(best, reply),
            reason="it contradicts the reference" if contradicted else None,
        )


def _is_correct(claims: Sequence[NumberedClaim]) -> bool:
    return claim_recall(claims) >= _MIN_RECALL and not _contradicts(claims)


def _contradicts(claims: Sequence[NumberedClaim]) -> bool:
    return any(part.answer == "contradicts" for _, part in claims)


judged_metrics.register(Correctness.name)(Correctness())
