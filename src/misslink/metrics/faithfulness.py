"""Faithfulness: is every claim of the answer supported by the passages?"""

from __future__ import annotations

from misslink.judge import judged_metric
from misslink.judge.protocol import Reply
from misslink.registry import judged_metrics
from misslink.types import Reason


class Faithfulness(judged_metric.JudgedMetric):
    """Share of the answer's claims that the passages support, by quotes found in them.

    With n claims, s of them supported, it is s / n. The label is good if no claim is unsupported or
    contradicted. Its probability is that of the least probable claim, if the judge gives
    probabilities and all of its quotes passed the checks. ``parts`` has the share of weak quotes, which
    exist and do not decide their claim, if there are any. Skipped if the answer declines or makes no
    claim.

    Source: Es et al., RAGAS, EACL 2024 (claims and share). misslink also checks the quotes.
    """

    name = "faithfulness"
    needs_passages = True
    label_question = ("Is every claim supported by the passages?", "faithful", "unfaithful")
    padding = judged_metric.Padding("passages")  # every added sentence is verbatim in a passage

    def read(self, subject: judged_metric.Subject, reply: Reply) -> judged_metric.Finding:
        """Count the supported claims."""
        if judged_metric.parsed_examination(reply).response == "declines":
            return judged_metric.skipped_finding(Reason(code="answer_declines"))
        claims = subject.claims(reply)
        if not claims:
            return judged_metric.skipped_finding(Reason(code="no_claim"))
        supported = sum(claim.support == "supported" for claim in claims)
        weak = sum(claim.weak for claim in claims)
        probabilities = [c.probability for c in claims if c.probability is not None]
        return judged_metric.Finding(
            "scored",
            value=supported / len(claims),
            label=supported == len(claims),
            probability=min(probabilities) if len(probabilities) == len(claims) else None,
            parts={"weak_quotes": weak / len(claims)} if weak else None,
            claims=claims,
            reason=subject.coverage(reply).note,
        )


judged_metrics.register(Faithfulness.name)(Faithfulness())
