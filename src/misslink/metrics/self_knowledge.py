"""Self-knowledge: the share of correct claims that no passage supports."""

from __future__ import annotations

from typing import Literal

from misslink.judge.judged_metric import Finding, Subject
from misslink.judge.protocol import Ask, Reply
from misslink.metrics.reference_claims import claims_with_references, missing_reference_reason
from misslink.registry import judged_metrics


class SelfKnowledge:
    """Share of the answer's claims that a reference agrees with and no passage supports.

    With n claims, s of them correct and unsupported or contradicted by the passages, it is s / n.
    Lower is better: such a claim comes from the model's memory, so the next one may be wrong.
    ``claims`` of the verdict are these, and the label is good when there is none. An answer written
    without any passage has a value too: all its correct claims count.

    Skipped without a reference answer, and for an answer that declines or makes no claim.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (self-knowledge).
    """

    name = "self_knowledge"
    level: Literal[2, 3] = 2
    better: Literal["high", "low"] = "low"

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, with the references."""
        return missing_reference_reason(subject) or subject.grounded

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the correct claims that rest on no passage."""
        claims = claims_with_references(subject, reply)
        if isinstance(claims, Finding):
            return claims
        own = tuple(c for c in claims if c.correct is True and c.support != "supported")
        return Finding("scored", value=len(own) / len(claims), label=not own, claims=own)


judged_metrics.register(SelfKnowledge.name)(SelfKnowledge())
