"""Correctness: does the answer say what a reference answer says?"""

from __future__ import annotations

from typing import Literal

from misslink.judging.examination import ExaminationWithReference
from misslink.judging.metric import Finding, Subject, failed, skipped
from misslink.judging.protocol import Ask, Reply
from misslink.registry import judged_metrics
from misslink.types import Claim, Support

__all__ = ["Correctness"]

_SUPPORT: dict[str, Support] = {
    "states": "supported",
    "contradicts": "contradicted",
    "omits": "unsupported",
}


class Correctness:
    """F1 of claim precision and claim recall against the best reference answer.

    Precision is the share of the answer's claims that the references agree with, recall the share
    of a reference's claims that the answer states; both stand in ``parts``. The label is good when
    the answer states at least half of the best reference's claims and contradicts none: a long
    answer that is right is right, however low its precision. An answer that declines is wrong.
    An answer without a claim ("Yes.") has no precision, and its recall is its value.
    ``claims`` of the verdict are the reference's, held against the answer: stated (supported),
    contradicted, or omitted (unsupported).

    Source: Ru et al., RAGChecker, NeurIPS 2024 (overall precision, recall and F1 over claims).
    """

    name = "correctness"
    level: Literal[2, 3] = 3

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, with the references."""
        if subject.case.expects_answer is False:
            return "the question has no answer; abstention judges it"
        if not subject.case.references:
            return "the case has no reference answer"
        return subject.examination

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Compute precision, recall and F1 over claims."""
        said = reply.parsed
        if not isinstance(said, ExaminationWithReference):
            return skipped("the judge was shown no reference answer")
        by_reference: dict[int, list[bool]] = {}
        for part in said.reference_claims:
            if 1 <= part.reference <= len(subject.case.references):
                stated = by_reference.setdefault(part.reference, [])
                stated.append(part.answer == "states")
        if said.response == "declines":
            parts = {"precision": None, "recall": 0.0}
            return Finding("scored", 0.0, label=False, parts=parts, reason="the answer declines")
        if not by_reference:
            return failed("the judge said nothing of any reference claim")
        recalls = {number: sum(part) / len(part) for number, part in by_reference.items()}
        best = max(recalls, key=lambda number: recalls[number])
        recall = recalls[best]
        claims = subject.claims(reply)
        agreed = sum(claim.correct is True for claim in claims)
        precision = agreed / len(claims) if claims else None
        total = (precision or 0.0) + recall
        stated_of_best = [p for p in said.reference_claims if p.reference == best]
        contradicted = any(part.answer == "contradicts" for part in stated_of_best)
        if len(subject.case.references) == 1:
            # Of several references a claim may contradict one and still be right by another.
            contradicted |= any(claim.correct is False for claim in claims)
        return Finding(
            "scored",
            value=recall if precision is None else 2 * precision * recall / (total or 1.0),
            label=recall >= 0.5 and not contradicted,  # noqa: PLR2004 (half, see above)
            parts={"precision": precision, "recall": recall},
            claims=tuple(
                Claim(text=part.text, support=_SUPPORT[part.answer]) for part in stated_of_best
            ),
            reason="it contradicts the reference" if contradicted else None,
        )


judged_metrics.register(Correctness.name)(Correctness())
