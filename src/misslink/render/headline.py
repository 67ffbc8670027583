"""The sentences of a run's headline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from misslink.documents import ErrorCounts
from misslink.render.format import format_percent, pluralize
from misslink.render.reasons import describe_reason
from misslink.types import Estimate, Reason

_FEW_FAIL = 0.1  # of the answers
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
        What is associated with failures: what a replay found, else `by_exposure`.
    by_exposure : Reason or None
        The same by the passages that reached the prompts. None: too few cases, or none failed.
    owners : mapping of str to int
        Failed cases by owner, 'unknown' included.
    losses : mapping of (str, str) to int
        The same by owner and failure mode, or the stage at which a needed fact was lost.
    labelled, incomplete, cut : int
        Cases with relevant passages, those of them without all in the prompt, and of these those
        that have a part of each.
    unmeasured : str or None
        Why no case is compared with its relevant passages. None: some are, or none has any.
    replayed : Reason or None
        What a replay found. None: there is none.
    not_asked : int
        Questions that were not put to the judge, and why: ``stopped_by``.
    corrected : Estimate or None
        Share that fails, corrected by people's labels. None: there are none of this run's answers.
    labels : int
        Labelled cases behind it.
    """

    cases: int
    errors: ErrorCounts
    judged: bool
    failed: Estimate
    exposure: Mapping[str, Estimate]
    why: Reason | None
    by_exposure: Reason | None
    owners: Mapping[str, int]
    losses: Mapping[tuple[str, str], int]
    labelled: int
    incomplete: int
    cut: int = 0
    replayed: Reason | None = None
    unmeasured: str | None = None
    not_asked: int = 0
    stopped_by: str | None = None
    corrected: Estimate | None = None
    labels: int = 0

    @property
    def undecided(self) -> int:
        """Cases that are neither passed nor failed."""
        return self.cases - self.failed.n

    @property
    def failing(self) -> int:
        """Decided cases that fail."""
        return round((self.failed.value or 0) * self.failed.n)

    @property
    def does_well(self) -> bool:
        """Whether so few answers fail that those that pass are counted."""
        return self.corrected is None and self.failing <= _FEW_FAIL * self.failed.n

    @property
    def blamed(self) -> tuple[str, ...]:
        """The owners with most failures; several where they have equally many, unknown only alone."""
        known = {owner: count for owner, count in self.owners.items() if owner != "unknown"}
        counts = known or self.owners
        most = max(counts.values(), default=0)
        return tuple(owner for owner, count in counts.items() if count == most)


# What failed, to follow "In 22,": by failure mode or stage, and for owners of mixed failures.
_MOSTLY = 0.8  # of an owner's failures, to be named
_LOSSES = {
    "rank": "the retriever ranked a needed fact too low",
    "filter": "a filter kept a needed fact out of the search results",
    "retrieval_miss": "the retriever missed a needed fact",
    "not_indexed": "the index lacks a needed fact",
    "conflicting_sources": "the index holds a conflicting or outdated copy",
    "dropped_from_prompt": "a retrieved fact never reached the prompt",
    "not_searched": "the app did not search for a needed fact",
    "lost_context": "the query lost what the question or conversation names",
    "over_refused": "the generator declined although the prompt held the answer",
    "should_have_abstained": "the generator answered although nothing held an answer",
    "contradicts_context": "the generator contradicted its prompt",
    "distracted": "the generator relied on an irrelevant passage",
    "fabricated": "the generator stated what nothing supports",
    "ignored_context": "the generator ignored passages that held the answer",
    "off_the_point": "the generator did not answer the question",
    "incomplete": "the generator left out needed facts that the prompt held",
    "gold_suspect": "the gold set may be wrong",
}
_OWNERS = {
    "retriever": "the retriever missed a needed fact",
    "index": "the index lacks a needed fact or holds another version of it",
    "prompt": "a needed fact was lost between search and prompt",
    "generator": "the generator is at fault",
    "gold_set": "the gold set may be wrong",
}


def describe_errors(findings: Findings) -> str:
    """Return what is missing from the run: what a cap stopped, and errors of over 2% of the cases."""
    stopped = ""
    if findings.not_asked:
        asked = pluralize(findings.not_asked, "question was", "questions were")
        why = f": {findings.stopped_by}" if findings.stopped_by else ""
        stopped = f"Not finished: {asked} not put to the judge{why}."
    return " ".join(filter(None, (stopped, _describe_failed_cases(findings))))


def _describe_failed_cases(findings: Findings) -> str:
    errors = findings.errors
    app, judge, silent = errors.app, errors.judge, errors.no_answer
    if app + judge + silent <= _MAX_ERROR_SHARE * findings.cases:
        return ""
    of = f"of {pluralize(findings.cases, 'case')}"
    counts = {"the app failed": app, "the judge failed": judge, "the app gave no answer": silent}
    kinds = [kind for kind, count in counts.items() if count]
    if len(kinds) == 1:
        return f"Errors: {kinds[0]} {'to' if silent else 'on'} {counts[kinds[0]]:,} {of}."
    return f"Errors on {app + judge + silent:,} {of}: {', '.join(kinds)}."


def describe_verdict(findings: Findings) -> str:
    """Return how many answers fail, and whose failures most of them are."""
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
    if not decided:
        return "All cases are inconclusive."
    return " ".join(filter(None, (_describe_count(findings), _describe_owners(findings))))


def _describe_count(findings: Findings) -> str:
    """How many fail: by people's labels where there are some, else by the judge."""
    corrected = findings.corrected
    if findings.labels and findings.labels == findings.failed.n:
        return f"{_count(findings)}, by annotators' labels."
    if corrected is not None and corrected.value is not None:
        share, labels = format_percent(corrected.value), pluralize(findings.labels, "label")
        return f"About {share} of {findings.cases:,} answers fail, corrected by {labels}."
    undecided = findings.undecided
    more = f"; {undecided:,} could not be judged" if undecided else ""
    return f"{_count(findings)}{more}."


def _count(findings: Findings) -> str:
    """How many fail; of an app that does well, how many pass."""
    answers = pluralize(findings.cases, "answer")
    failed, verb = findings.failing, "fail"
    if findings.does_well:
        failed, verb = findings.failed.n - failed, "passe"
    verb = f"{verb}s" if 1 in (failed, findings.cases) else verb.removesuffix("e")
    return f"{failed:,} of {answers} {verb}"


def _describe_owners(findings: Findings) -> str:
    """Whose the failures are, by the evidence of each case; the owner with most of them."""
    failed, unknown = findings.owners, findings.owners.get("unknown", 0)
    total = sum(failed.values())
    parts = [
        f"{_in_how_many(failed[owner], total, findings)}{_describe_loss(findings, owner)}"
        for owner in findings.blamed
        if owner in _OWNERS
    ]
    text = f"{'; '.join(parts)}." if parts else ""
    if text and findings.does_well:
        text = f"{total:,} {'fails' if total == 1 else 'fail'}: {text}"
    if unknown and unknown >= failed[findings.blamed[0]]:
        cause = "The cause" if unknown == total else f"The cause of {unknown:,}"
        text = f"{text} {cause} is not known."
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}"


def _in_how_many(count: int, total: int, findings: Findings) -> str:
    if total == 1:
        return ""
    if findings.does_well and count == total:
        return ""
    if findings.corrected is not None and findings.labels < findings.failed.n:
        part = "all" if count == total else f"{count:,} of the"
        return f"in {part} {total:,} found, "
    return "in all of them, " if count == total else f"in {count:,}, "


def _describe_loss(findings: Findings, owner: str) -> str:
    losses = {code: n for (whose, code), n in findings.losses.items() if whose == owner}
    code = max(losses, key=losses.__getitem__)
    named = losses[code] >= _MOSTLY * sum(losses.values())
    return _LOSSES.get(code, _OWNERS[owner]) if named else _OWNERS[owner]


def describe_association(findings: Findings) -> str:
    """Return what is associated with failures, or what a replay found; "" where nothing is."""
    if not findings.judged:
        return "No judge was used." if findings.labelled or findings.unmeasured else ""
    if findings.unmeasured:
        return f"Retrieval was not measured: {findings.unmeasured}."
    why = describe_reason(findings.why) if findings.why else ""
    return f"{why[0].upper()}{why[1:]}." if why else ""


def describe_findings(findings: Findings) -> tuple[str, ...]:
    """Return the sentences of the headline: errors, verdict, association."""
    sentences = (
        describe_errors(findings),
        describe_verdict(findings),
        describe_association(findings),
    )
    return tuple(filter(None, sentences))
