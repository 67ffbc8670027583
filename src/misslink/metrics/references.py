"""Judged metrics against reference answers: correctness, completeness, noise sensitivity, self-knowledge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from misslink.judge.examination import ExaminationWithReference, ExaminedReferenceClaim
from misslink.judge.judged_metric import (
    REFUSED,
    Finding,
    JudgedMetric,
    Padding,
    Subject,
    failed_finding,
    skipped_finding,
)
from misslink.judge.protocol import Reply
from misslink.metrics.context import context_labels
from misslink.registry import judged_metrics
from misslink.types import Claim, Reason, Support


def claims_with_references(subject: Subject, reply: Reply) -> tuple[Claim, ...] | Finding:
    """Return the answer's claims, each compared with the references; or the finding without any.

    ``correct`` is True where a reference agrees; None means that all of them are silent.
    """
    examination = reply.parsed
    if not isinstance(examination, ExaminationWithReference):
        return skipped_finding(Reason(code="no_reference_asked"))
    if examination.response == "declines":
        return skipped_finding(Reason(code="answer_declines"))
    if reply.refuses("claims.*.reference"):
        return failed_finding(REFUSED)
    return subject.claims(reply) or skipped_finding(Reason(code="no_claim"))


# A reference's claim, and its place in the reply.
NumberedClaim = tuple[int, ExaminedReferenceClaim]

_SUPPORT: Mapping[str, Support] = {
    "states": "supported",
    "contradicts": "contradicted",
    "omits": "unsupported",
}


def claims_by_reference(
    subject: Subject, reply: Reply
) -> tuple[ExaminationWithReference, Mapping[int, Sequence[NumberedClaim]]] | Finding:
    """Return the examination, and the claims of each reference by its number; or a finding.

    A reference that the case does not have is left out. The mapping is empty only where the answer
    declines and the judge reports no reference claim.
    """
    examination = reply.parsed
    if not isinstance(examination, ExaminationWithReference):
        return skipped_finding(Reason(code="no_reference_asked"))
    if reply.refuses("claims.*.reference", "reference_claims.*"):
        return failed_finding(REFUSED)
    by_number: dict[int, list[NumberedClaim]] = {}
    for place, part in enumerate(examination.reference_claims):
        if 1 <= part.reference <= len(subject.case.references):
            by_number.setdefault(part.reference, []).append((place, part))
    if not by_number and examination.response != "declines":
        return failed_finding(Reason(code="reference_claims_unrated"))
    # In the order of the references: of equally good ones the first counts.
    return examination, dict(sorted(by_number.items()))


def claim_recall(claims: Sequence[NumberedClaim]) -> float:
    """Share of a reference's claims, at least one, that the answer states."""
    return sum(part.answer == "states" for _, part in claims) / len(claims)


def stated_claims(claims: Sequence[NumberedClaim], reply: Reply) -> tuple[Claim, ...]:
    """Return a reference's claims as stated (supported), contradicted or omitted by the answer."""
    return tuple(
        Claim(
            text=part.text,
            support=_SUPPORT[part.answer],
            probability=reply.chance(f"reference_claims.{place}.answer", "states"),
        )
        for place, part in claims
    )


_MIN_RECALL = 0.5


class Correctness(JudgedMetric):
    """How far the answer states what the best reference states: F1 of precision and recall.

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
    level = 3
    needs_reference = True
    label_question = ("Does the answer say what the reference says?", "correct", "incorrect")
    padding = Padding("answer")  # repeating an answer makes it no more correct

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Compute precision, recall and F1 over claims."""
        reference_claims = claims_by_reference(subject, reply)
        if isinstance(reference_claims, Finding):
            return reference_claims
        examination, claims_of = reference_claims
        if examination.response == "declines":
            parts, reason = {"precision": None, "recall": 0.0}, str(Reason(code="answer_declines"))
            return Finding("scored", 0.0, label=False, parts=parts, reason=reason)
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
            reason=str(Reason(code="contradicts_reference")) if contradicted else None,
        )


def _is_correct(claims: Sequence[NumberedClaim]) -> bool:
    return claim_recall(claims) >= _MIN_RECALL and not _contradicts(claims)


def _contradicts(claims: Sequence[NumberedClaim]) -> bool:
    return any(part.answer == "contradicts" for _, part in claims)


judged_metrics.register(Correctness.name)(Correctness())


class Completeness(JudgedMetric):
    """Share of the best reference answer's claims that the answer states (claim recall).

    The best reference is the one with the highest share of stated claims. The label is good when
    the answer states all of them; its probability is that of the claim it states least probably,
    where the judge gives probabilities. An answer that declines states none. Other claims of the
    answer, right or wrong, do not matter here: see correctness. ``claims`` of the verdict are the
    reference's. Skipped without a reference answer, and where the question has no answer.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (claim recall).
    """

    name = "completeness"
    level = 3
    needs_reference = True
    label_question = (
        "Does the answer state everything that the reference says?",
        "complete",
        "incomplete",
    )
    padding = Padding("answer")

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the best reference's claims that are stated."""
        reference_claims = claims_by_reference(subject, reply)
        if isinstance(reference_claims, Finding):
            return reference_claims
        examination, claims_of = reference_claims
        best = max(claims_of.values(), key=claim_recall, default=())
        claims = stated_claims(best, reply)
        if examination.response == "declines":  # it states none, whatever the judge says of them
            claims = tuple(claim.model_copy(update={"support": "unsupported"}) for claim in claims)
            reason = str(Reason(code="answer_declines"))
            return Finding("scored", 0.0, label=False, claims=claims, reason=reason)
        omitted, count = sum(claim.support != "supported" for claim in claims), len(claims)
        chances = [claim.probability for claim in claims if claim.probability is not None]
        return Finding(
            "scored",
            value=claim_recall(best),
            label=omitted == 0,
            probability=min(chances) if len(chances) == count else None,
            claims=claims,
            reason=str(Reason(code="claims_omitted", n=omitted, of=count)) if omitted else None,
        )


judged_metrics.register(Completeness.name)(Completeness())


class NoiseSensitivity(JudgedMetric):
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
    reads_labels = True
    better = "low"
    needs_passages = True
    needs_reference = True

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the incorrect claims that rest on a passage."""
        if not subject.context:
            return skipped_finding(Reason(code="empty_prompt"))
        claims = claims_with_references(subject, reply)
        if isinstance(claims, Finding):
            return claims
        wrong = [
            claim
            for claim in claims
            if claim.support == "supported" and claim.correct is not True and not claim.messages
        ]
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


class SelfKnowledge(JudgedMetric):
    """Share of the answer's claims from the model's memory: correct, and supported by no passage.

    With n claims, s of them agreed with by a reference and unsupported or contradicted by the passages, it is s / n.
    Lower is better: such a claim comes from the model's memory, so the next one may be wrong.
    ``claims`` of the verdict are these, and the label is good when there is none. An answer written
    without any passage has a value too: all its correct claims count.

    Skipped without a reference answer, and for an answer that declines or makes no claim.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (self-knowledge).
    """

    name = "self_knowledge"
    better = "low"
    needs_passages = True
    needs_reference = True

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the correct claims that rest on no passage."""
        claims = claims_with_references(subject, reply)
        if isinstance(claims, Finding):
            return claims
        own = tuple(c for c in claims if c.correct is True and c.support != "supported")
        return Finding("scored", value=len(own) / len(claims), label=not own, claims=own)


judged_metrics.register(SelfKnowledge.name)(SelfKnowledge())
