"""Completeness: does the answer state every claim of a reference answer?"""

from __future__ import annotations

from typing import Literal

from misslink.judge.judged_metric import Finding, Subject
from misslink.judge.protocol import Ask, Reply
from misslink.metrics.reference_claims import (
    claim_recall,
    claims_by_reference,
    missing_reference_reason,
    stated_claims,
)
from misslink.registry import judged_metrics


class Completeness:
    """Share of the best reference answer's claims that the answer states (claim recall).

    The best reference is the one with the highest share of stated claims. The label is good when
    the answer states all of them; its probability is that of the claim it states least probably,
    where the judge gives probabilities. An answer that declines states none. Other claims of the
    answer, right or wrong, do not matter here: see correctness. ``claims`` of the verdict are the
    reference's. Skipped without a reference answer, and where the question has no answer.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (claim recall).
    """

    name = "completeness"
    level: Literal[2, 3] = 3

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, with the references."""
        return missing_reference_reason(subject) or subject.examination

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the best reference's claims that are stated."""
        reference_claims = claims_by_reference(subject, reply)
        if isinstance(reference_claims, Finding):
            return reference_claims
        examination, claims_of = reference_claims
        if examination.response == "declines":
            return Finding("scored", 0.0, label=False, reason="the answer declines")
        best = max(claims_of.values(), key=claim_recall)
        claims = stated_claims(best, reply)
        omitted = sum(claim.support != "supported" for claim in claims)
        chances = [claim.probability for claim in claims if claim.probability is not None]
        return Finding(
            "scored",
            value=claim_recall(best),
            label=omitted == 0,
            probability=min(chances) if len(chances) == len(claims) else None,
            claims=claims,
            reason=f"{omitted} of {len(claims)} reference claims not stated" if omitted else None,
        )


judged_metrics.register(Completeness.name)(Completeness())
