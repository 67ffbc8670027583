"""Noise sensitivity: the share of wrong claims that a passage supports."""

from __future__ import annotations

from typing import Literal

from misslink.judge.judged_metric import Finding, Subject, skipped_finding
from misslink.judge.protocol import Ask, Reply
from misslink.metrics.context_relevance import context_labels
from misslink.metrics.reference_claims import claims_with_references, missing_reference_reason
from misslink.registry import judged_metrics


class NoiseSensitivity:
    """Share of the answer's claims that are incorrect and that a passage supports. Lower is better.

    With n claims, w of them supported by a passage and by no reference, it is w / n. As in the
    source, a claim is incorrect if no reference agrees with it, even if the references do not
    mention it. ``parts['contradicted']`` counts only claims that a reference contradicts; prefer it
    for short references.

    ``parts['relevant']`` and ``parts['irrelevant']`` are the shares supported by a relevant and by
    an irrelevant passage; a claim with both counts in both. The gold set says which passages are
    relevant; where it lists none, the judge does. Both are None if the relevance of a passage that
    supports an incorrect claim is unknown.

    ``claims`` of the verdict are the incorrect ones, and the label is good when there is none.
    Skipped without a reference answer, without a passage, and for an answer that declines or makes
    no claim.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (relevant and irrelevant noise sensitivity; there a
    passage is relevant when it entails a claim of the reference).
    """

    name = "noise_sensitivity"
    level: Literal[2, 3] = 2
    better: Literal["high", "low"] = "low"

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, with the references."""
        return missing_reference_reason(subject) or subject.grounded

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the incorrect claims that rest on a passage."""
        if not subject.context:
            return skipped_finding("no passage reached the context")
        claims = claims_with_references(subject, reply)
        if isinstance(claims, Finding):
            return claims
        wrong = [c for c in claims if c.support == "supported" and c.correct is not True]
        relevance = context_labels(subject, reply) if wrong else {}
        rests_on = [{relevance[item.passage_id] for item in claim.evidence} for claim in wrong]
        is_known = not any(None in kinds for kinds in rests_on)
        total = len(claims)
        return Finding(
            "scored",
            value=len(wrong) / total,
            label=not wrong,
            claims=tuple(wrong),
            parts={
                "relevant": sum(True in kinds for kinds in rests_on) / total if is_known else None,
                "irrelevant": sum(False in kinds for kinds in rests_on) / total
                if is_known
                else None,
                "contradicted": sum(claim.correct is False for claim in wrong) / total,
            },
        )


judged_metrics.register(NoiseSensitivity.name)(NoiseSensitivity())
