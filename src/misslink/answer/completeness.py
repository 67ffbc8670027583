"""Completeness: does the answer say everything that a reference answer says?"""

from __future__ import annotations

from typing import Literal

from misslink.answer.reference_claims import (
    by_reference,
    recall,
    stated_claims,
)
from misslink.judging.metric import Finding, Subject
from misslink.judging.protocol import Ask, Reply
from misslink.judging.references import lacks_references
from misslink.registry import judged_metrics

__all__ = ["Completeness"]


class Completeness:
    """Share of the best reference answer's claims that the answer states (claim recall).

    The best reference is the one of which it states most. The label is good when it states all;
    its probability is that of the claim it states least probably, where the judge gives
    probabilities. An answer that declines states none. What the answer says beside, right or
    wrong, does not matter here: see correctness. ``claims`` of the verdict are the reference's.
    Skipped without a reference answer, and where the question has no answer.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (claim recall).
    """

    name = "completeness"
    level: Literal[2, 3] = 3

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, with the references."""
        return lacks_references(subject) or subject.examination

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the best reference's claims that are stated."""
        found = by_reference(subject, reply)
        if isinstance(found, Finding):
            return found
        said, claims_of = found
        if said.response == "declines":
            return Finding("scored", 0.0, label=False, reason="the answer declines")
        best = max(claims_of.values(), key=recall)
        claims = stated_claims(best, reply)
        omitted = sum(claim.support != "supported" for claim in claims)
        chances = [claim.probability for claim in claims if claim.probability is not None]
        return Finding(
            "scored",
            value=recall(best),
            label=omitted == 0,
            probability=min(chances) if len(chances) == len(claims) else None,
            claims=claims,
            reason=f"{omitted} of {len(claims)} reference claims not stated" if omitted else None,
        )


judged_metrics.register(Completeness.name)(Completeness())
