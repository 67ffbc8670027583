"""Faithfulness: is every claim of the answer supported by the passages?"""

from __future__ import annotations

from misslink.judge import judged_metric
from misslink.judge.examination import LabelAlone
from misslink.judge.protocol import Reply
from misslink.matching import Passages, claim_spans, declines
from misslink.registry import judged_metrics
from misslink.types import Claim, Evidence, Reason


def read_one_word(
    subject: judged_metric.Subject, word: LabelAlone, chance: float | None
) -> judged_metric.Finding:
    """Read "yes, the passages state it all" or "no" as a finding of faithfulness.

    Parameters
    ----------
    subject : Subject
    word : LabelAlone
    chance : float or None
        P(yes), where the judge gives it.

    Returns
    -------
    Finding
        For "no" the value is P(yes), else 0. For "yes" it is 1 where the heuristic judge finds
        every sentence that states something in a passage, and the finding failed otherwise. An
        answer that declines, by the heuristic judge's rules, is skipped.
    """
    if declines(subject.answer):
        return judged_metric.skipped_finding(Reason(code="answer_declines"))
    if word.supported == "no":
        value = 0.0 if chance is None else chance
        return judged_metric.Finding(
            "scored", value=value, label=False, probability=chance, reason=judged_metric.ONE_WORD
        )
    claims = _quoted_claims(subject)
    if not claims:
        return judged_metric.failed_finding(Reason(code="yes_without_quote"))
    return judged_metric.Finding(
        "scored",
        value=1.0,
        label=True,
        probability=chance,
        claims=claims,
        reason=f"{judged_metric.ONE_WORD}; {Reason(code='quotes_by_heuristic')}",
    )


def _quoted_claims(subject: judged_metric.Subject) -> tuple[Claim, ...]:
    """The answer's sentences with their quotes; empty where one of them has none."""
    answer = subject.answer
    spans = claim_spans(answer)
    passages = Passages.of(tuple(p.text for p in subject.context), subject.question)
    claims = []
    for start, end in spans:
        match = passages.match(answer[start:end])
        best = match.best
        if best is None or match.quote is None:
            return ()
        quote = Evidence(
            passage_id=subject.context[best.passage].id,
            quote=best.text,
            start=best.start,
            end=best.end,
        )
        claims.append(
            Claim(
                text=answer[start:end], start=start, end=end, support="supported", evidence=(quote,)
            )
        )
    return tuple(claims)


class Faithfulness(judged_metric.JudgedMetric):
    """Share of the answer's claims that the passages support, by quotes found in them.

    With n claims, s of them supported, it is s / n. The label is good if no claim is unsupported or
    contradicted. Its probability is that of the least probable claim, if the judge gives
    probabilities and all of its quotes passed the checks. ``parts`` has the share of weak quotes, which
    exist and do not decide their claim, if there are any. Skipped if the answer declines or makes no
    claim.

    If a judge can give one word only, there are no claims: "no" has the value P(yes), or 0 if it is
    not known. A "yes" has no quote, so it counts only if the heuristic judge finds every sentence of
    the answer in the passages. Those sentences are then the claims.

    Source: Es et al., RAGAS, EACL 2024 (claims and share). misslink also checks the quotes.
    """

    name = "faithfulness"
    reads_one_word = True
    needs_passages = True
    label_question = ("Is every claim supported by the passages?", "faithful", "unfaithful")
    padding = judged_metric.Padding("passages")  # every added sentence is verbatim in a passage

    def read(self, subject: judged_metric.Subject, reply: Reply) -> judged_metric.Finding:
        """Count the supported claims."""
        if isinstance(reply.parsed, LabelAlone):
            return read_one_word(subject, reply.parsed, reply.chance("supported", "yes"))
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
