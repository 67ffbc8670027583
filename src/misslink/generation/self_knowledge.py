"""Self-knowledge: how much of the answer is right although no passage said so?"""

from __future__ import annotations

from typing import Literal

from misslink.generation.against_references import compared_claims
from misslink.judging.metric import Finding, Subject
from misslink.judging.protocol import Ask, Reply
from misslink.judging.references import lacks_references
from misslink.registry import judged_metrics

__all__ = ["SelfKnowledge"]


class SelfKnowledge:
    """Share of the answer's claims that a reference agrees with and no passage supports.

    With n claims, of which s are correct and unsupported or contradicted by the passages, it is
    s / n. Lower is better: such a claim came from the model and not from the corpus, and nobody
    can rely on the next one. ``claims`` of the verdict are these, and the label is good when there
    is none. An answer written without any passage has a value too: what is correct in it is all
    the model's own.

    Skipped without a reference answer, and for an answer that declines or claims nothing.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (self-knowledge).
    """

    name = "self_knowledge"
    level: Literal[2, 3] = 2
    better: Literal["high", "low"] = "low"

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, with the references."""
        return lacks_references(subject) or subject.grounded

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the correct claims that rest on no passage."""
        claims = compared_claims(subject, reply)
        if isinstance(claims, Finding):
            return claims
        own = tuple(c for c in claims if c.correct is True and c.support != "supported")
        return Finding("scored", value=len(own) / len(claims), label=not own, claims=own)


judged_metrics.register(SelfKnowledge.name)(SelfKnowledge())
