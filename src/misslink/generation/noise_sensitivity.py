"""Noise sensitivity: how much of the answer is wrong because a passage said so?"""

from __future__ import annotations

from typing import Literal

from misslink.generation.against_references import compared_claims
from misslink.generation.relevance import passage_relevance
from misslink.judging.metric import Finding, Subject, skipped
from misslink.judging.protocol import Ask, Reply
from misslink.judging.references import lacks_references
from misslink.registry import judged_metrics

__all__ = ["NoiseSensitivity"]


class NoiseSensitivity:
    """Share of the answer's claims that are incorrect and that a passage supports. Lower is better.

    With n claims, of which w rest on a passage and no reference agrees with them, it is w / n.
    Incorrect is, as in the source, what no reference agrees with: a claim on which they are all
    silent too. ``parts['contradicted']`` counts only those that a reference contradicts, which
    says more where references are short.

    ``parts['relevant']`` and ``parts['irrelevant']`` are the shares that rest on a relevant and on
    an irrelevant passage; a claim that rests on both counts in both. Relevant is what the gold set
    lists; where it lists nothing, what the judge calls relevant. Both are None where it is not
    known of some passage that an incorrect claim rests on.

    ``claims`` of the verdict are the incorrect ones, and the label is good when there is none.
    Skipped without a reference answer, without a passage, and for an answer that declines or
    claims nothing.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (relevant and irrelevant noise sensitivity; there a
    passage is relevant when it entails a claim of the reference).
    """

    name = "noise_sensitivity"
    level: Literal[2, 3] = 2
    better: Literal["high", "low"] = "low"

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, with the references."""
        return lacks_references(subject) or subject.grounded

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the incorrect claims that rest on a passage."""
        if not subject.context:
            return skipped("no passage reached the context")
        claims = compared_claims(subject, reply)
        if isinstance(claims, Finding):
            return claims
        wrong = [c for c in claims if c.support == "supported" and c.correct is not True]
        relevance = passage_relevance(subject, reply) if wrong else {}
        rests_on = [{relevance[item.passage_id] for item in claim.evidence} for claim in wrong]
        known = not any(None in kinds for kinds in rests_on)
        total = len(claims)
        return Finding(
            "scored",
            value=len(wrong) / total,
            label=not wrong,
            claims=tuple(wrong),
            parts={
                "relevant": sum(True in kinds for kinds in rests_on) / total if known else None,
                "irrelevant": sum(False in kinds for kinds in rests_on) / total if known else None,
                "contradicted": sum(claim.correct is False for claim in wrong) / total,
            },
        )


judged_metrics.register(NoiseSensitivity.name)(NoiseSensitivity())
