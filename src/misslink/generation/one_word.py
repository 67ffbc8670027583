"""What a judge's one word on an answer is worth: "no" is taken, "yes" needs quotes."""

from __future__ import annotations

from misslink.judging.embedded import hold
from misslink.judging.embedded.abstention import claim_spans, declines
from misslink.judging.embedded.fitted import load_fit
from misslink.judging.embedded.lexical import Context
from misslink.judging.examination import LabelAlone
from misslink.judging.metric import ONE_WORD, Finding, Subject, failed, skipped
from misslink.types import Claim, Evidence

__all__ = ["read_one_word"]


def read_one_word(subject: Subject, said: LabelAlone, chance: float | None) -> Finding:
    """Read "yes, the passages state it all" or "no" as a finding of faithfulness.

    Parameters
    ----------
    subject : Subject
    said : LabelAlone
    chance : float or None
        P(yes), where the judge gives it.

    Returns
    -------
    Finding
        For "no" the value is P(yes), else 0. For "yes" it is 1 where the embedded judge finds
        every sentence that states something in a passage, and the finding failed otherwise. An
        answer that declines, by the embedded judge's rules, is skipped.
    """
    if declines(subject.answer):
        return skipped("the answer declines")
    if said.supported == "no":
        value = 0.0 if chance is None else chance
        return Finding("scored", value=value, label=False, probability=chance, reason=ONE_WORD)
    claims = _quoted(subject)
    if not claims:
        return failed("the judge said yes in one word and no quote backs it")
    return Finding(
        "scored",
        value=1.0,
        label=True,
        probability=chance,
        claims=claims,
        reason=f"{ONE_WORD}; the quotes are the embedded judge's",
    )


def _quoted(subject: Subject) -> tuple[Claim, ...]:
    """The answer's sentences with their quotes; empty where one of them has none."""
    answer, fit = subject.answer, load_fit("embedded")
    spans = claim_spans(answer)
    context = Context([passage.text for passage in subject.context], subject.case.question)
    held = hold([answer[start:end] for start, end in spans], context, fit)
    claims = []
    for (start, end), (match, probability) in zip(spans, held, strict=True):
        best = match.best
        if best is None or match.conflict is not None or probability < fit.cut:
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
