"""The sentences of a run's headline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from misslink.render.format import pluralize
from misslink.render.reasons import describe_reason
from misslink.types import Estimate, Reason

_MAX_ERROR_SHARE = 0.02  # above it the errors come first


@dataclass(frozen=True)
class Findings:
    """What a run found, in numbers.

    Parameters
    ----------
    cases : int
    errors : mapping of str to int
        Cases without a usable result: ``app``, ``judge``, ``no_answer``.
    judged : bool
        Whether any answer was judged.
    failed : Estimate
        Share of the judged cases that are not inconclusive.
    exposure : mapping of str to Estimate
        Share that failed where none, some and all relevant passages reached the prompt.
    why : Reason or None
        Whose most failures are, by what each case shows. None: too few failures.
    by_exposure : Reason or None
        Whether failures are associated with the passages that reached the prompts. None: too few
        cases, or none failed.
    lacking : int
        Failed cases without all relevant passages in the prompt.
    unsupported_claims, compared_claims : int
        Claims of those cases, and those compared with missed passages (their text is known).
    supported_by_missed, contradicted_by_missed : int
        Those that a missed passage would have supported, and those that it would have contradicted.
    labelled, incomplete, cut : int
        Cases with relevant passages, those of them without all in the prompt, and of these those
        that have a part of each.
    unmeasured : str or None
        Why no case is compared with its relevant passages. None: some are, or none has any.
    replayed : Reason or None
        What a replay found. None: there is none.
    not_asked : int
        Questions that were not put to the judge, and why: ``stopped_by``.
    """

    cases: int
    errors: Mapping[str, int]
    judged: bool
    failed: Estimate
    exposure: Mapping[str, Estimate]
    why: Reason | None
    by_exposure: Reason | None
    lacking: int
    unsupported_claims: int
    compared_claims: int
    supported_by_missed: int
    contradicted_by_missed: int
    labelled: int
    incomplete: int
    cut: int = 0
    replayed: Reason | None = None
    unmeasured: str | None = None
    not_asked: int = 0
    stopped_by: str | None = None


def describe_errors(findings: Findings) -> str:
    """Return what is missing from the run: what a cap stopped, and errors of over 2% of the cases."""
    stopped = ""
    if findings.not_asked:
        asked = pluralize(findings.not_asked, "question was", "questions were")
        why = f": {findings.stopped_by}" if findings.stopped_by else ""
        stopped = f"Not finished: {asked} not put to the judge{why}."
    return " ".join(filter(None, (stopped, _describe_failed_cases(findings))))


def _describe_failed_cases(findings: Findings) -> str:
    names = ("app", "judge", "no_answer")
    app, judge, silent = (findings.errors.get(name, 0) for name in names)
    if app + judge + silent <= _MAX_ERROR_SHARE * findings.cases:
        return ""
    of = f"of {pluralize(findings.cases, 'case')}"
    counts = {"the app failed": app, "the judge failed": judge, "the app gave no answer": silent}
    kinds = [kind for kind, count in counts.items() if count]
    if len(kinds) == 1:
        return f"Errors: {kinds[0]} {'to' if silent else 'on'} {counts[kinds[0]]:,} {of}."
    return f"Errors on {app + judge + silent:,} {of}: {', '.join(kinds)}."


def describe_verdict(findings: Findings) -> str:
    """Return how many answers fail and why, as far as the run can tell."""
    if not findings.judged:
        if findings.unmeasured:
            return f"Retrieval was not measured: {findings.unmeasured}."
        if not findings.labelled:
            return "No judge was used, and the gold set names no relevant passages."
        missed, cut = findings.incomplete - findings.cut, findings.cut
        of = f"of {pluralize(findings.labelled, 'question')}"
        parts = [f"In {missed:,} {of}, a relevant passage never reached the prompt."]
        if cut:
            more = "more" if missed else of
            parts.append(f"In {cut:,} {more}, only a part of it did.")
        return " ".join(parts if missed or not cut else parts[1:])
    decided = findings.failed.n
    failed = round((findings.failed.value or 0) * decided)
    if not decided:
        return "All cases are inconclusive."
    noun = "answer" if decided == findings.cases else "judged answer"
    verb = "fails" if 1 in (failed, decided) else "fail"
    how_many = f"{failed:,} of {pluralize(decided, noun)} {verb}."
    association = findings.by_exposure
    if association is not None and association.code == "too_few":
        association = None
    reasons = filter(None, (findings.why, findings.replayed or association))
    sentences = (describe_reason(reason) for reason in reasons)
    return " ".join((how_many, *(f"{text[0].upper()}{text[1:]}." for text in sentences)))


def describe_evidence(findings: Findings) -> str:
    """Return how many failures lacked a relevant passage, and what these passages support."""
    if not findings.judged:
        return "No judge was used." if findings.labelled or findings.unmeasured else ""
    if findings.unmeasured:
        return f"Retrieval was not measured: {findings.unmeasured}."
    if not findings.lacking:
        return ""
    failed = round((findings.failed.value or 0) * findings.failed.n)
    who = "All of them" if findings.lacking == failed else f"{findings.lacking:,} of them"
    text = f"{'It' if failed == 1 else who} lacked a relevant passage"
    unsupported, compared = findings.unsupported_claims, findings.compared_claims
    supported, contradicted = findings.supported_by_missed, findings.contradicted_by_missed
    if not unsupported or (not supported + contradicted and 0 < compared < unsupported):
        return f"{text}."
    if not compared:
        return f"{text}. The text of the missed passages is not known; --corpus FILE gives it."
    # Claims that could not be compared may be supported too.
    least = "at least " if compared < unsupported else ""
    whose = "its" if findings.lacking == 1 else "their"
    counts = {"supported": supported, "corrected": contradicted}
    found = [f"{verb} {least}{n:,}" for verb, n in counts.items() if n] or ["supported 0"]
    claims = f"{' and '.join(found)} of {whose} {pluralize(unsupported, 'unsupported claim')}"
    return f"{text}; missed passages would have {claims}."


def describe_findings(findings: Findings) -> tuple[str, ...]:
    """Return the sentences of the headline: errors, verdict, evidence."""
    sentences = (describe_errors(findings), describe_verdict(findings), describe_evidence(findings))
    return tuple(filter(None, sentences))
