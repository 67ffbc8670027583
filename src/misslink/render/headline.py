"""The sentences of a run's headline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from misslink.documents import ErrorCounts
from misslink.render.format import list_first, pluralize, shorten
from misslink.render.reasons import describe_reason
from misslink.types import Estimate, Reason

_FEW_FAIL = 0.1  # of the answers
_MOST_READ = 3  # cases to read first that are named
_MAX_REASON = 160  # characters of the most frequent error
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
    blamed : tuple of str
        The owners with most failures; several where they have equally many, unknown only alone.
    losses : mapping of (str, str) to int
        The same by owner and failure mode, or the stage or reason of a loss that says more.
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
    judged_too : int
        Those of them on which the judge's word decides beside the labels.
    by_selftest : Estimate or None
        Share that fails, corrected by the judge's errors in the run's selftest. None: not measured.
    read_first : tuple of str
        Flagged cases that nobody labelled, the surest first.
    most_frequent_error : (str, int) or None
        The reason of most errors of app and judge, and on how many cases.
    """

    cases: int
    errors: ErrorCounts
    judged: bool
    failed: Estimate
    exposure: Mapping[str, Estimate]
    why: Reason | None
    by_exposure: Reason | None
    owners: Mapping[str, int]
    blamed: tuple[str, ...]
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
    judged_too: int = 0
    by_selftest: Estimate | None = None
    read_first: tuple[str, ...] = ()
    most_frequent_error: tuple[str, int] | None = None

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


# What failed, to follow "In 22,": by failure mode or stage, and for owners of mixed failures.
_MOSTLY = 0.8  # of an owner's failures, to be named
_LOSSES = {
    "rank": "the retriever ranked a needed fact too low",
    "filter": "a filter kept a needed fact out of the search results",
    "retrieval_miss": "the retriever missed a needed fact",
    "not_indexed": "the index lacks a needed fact",
    "conflicting_sources": "the index holds a second version that says otherwise",
    "stale_passage": "the index holds an outdated text",
    "cut_in_index": "the index holds only the beginning of a text",
    "dropped_from_prompt": "a retrieved fact never reached the prompt",
    "passage_cut": "the prompt shows only a part of a retrieved passage",
    "passage_altered": "the prompt alters a retrieved passage",
    "not_searched": "the app did not search for a needed fact",
    "lost_context": "the query lost what the question or conversation names",
    "over_refused": "the generator declined although the prompt held the answer",
    "answered_nothing": "the generator answered nothing although the prompt held the answer",
    "should_have_abstained": "the generator answered although nothing held an answer",
    "contradicts_context": "the generator contradicted its prompt",
    "distracted": "the generator relied on an irrelevant passage",
    "fabricated": "the generator stated what nothing supports",
    "ignored_context": "the generator ignored passages that held the answer",
    "off_the_point": "the generator did not answer the question",
    "incomplete": "the generator left out needed facts that the prompt held",
    "gold_suspect": "the gold set may be wrong",
    "unfaithful": "the generator did not keep to its prompt",
    "withheld": "the generator left out what its prompt held",
    "not_whole": "a retrieved fact did not reach the prompt whole",
    "old_versions": "the index holds a conflicting or outdated text",
}
# Losses of one owner that are alike enough for one sentence.
_ALIKE = {
    "unfaithful": ("contradicts_context", "distracted", "fabricated", "ignored_context"),
    "withheld": ("incomplete", "off_the_point", "over_refused", "answered_nothing"),
    "not_whole": ("dropped_from_prompt", "passage_altered", "passage_cut"),
    "old_versions": ("conflicting_sources", "stale_passage"),
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
        counted = f"Errors: {kinds[0]} {'to' if silent else 'on'} {counts[kinds[0]]:,} {of}."
    else:
        counted = f"Errors on {app + judge + silent:,} {of}: {', '.join(kinds)}."
    if findings.most_frequent_error is None:
        return counted
    reason, cases = findings.most_frequent_error
    told = shorten(" ".join(reason.split()), _MAX_REASON).rstrip(".")
    if len(kinds) > 1:
        often = "mostly" if 2 * cases > app + judge + silent else "often"
        return f"Errors on {app + judge + silent:,} of {findings.cases:,}, {often}: {told}."
    often = f" ({cases:,})" if cases < app + judge else ""
    return f"{counted} Most frequent reason{often}: {told}."


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
    said = (_describe_count(findings), _describe_owners(findings), _describe_reading(findings))
    return " ".join(filter(None, said))


def _describe_count(findings: Findings) -> str:
    """How many fail: by people's labels where there are some, else by the judge."""
    corrected = findings.corrected
    undecided = findings.undecided
    more = f"; {undecided:,} could not be judged" if undecided else ""
    if findings.labels and findings.labels == findings.failed.n:
        judge = " and, where these are missing, by the judge" if findings.judged_too else ""
        return f"{_count(findings)}, by annotators' labels{judge}{more}."
    if corrected is not None and corrected.value is not None:
        labels = pluralize(findings.labels, "label")
        return f"{_expected(findings, corrected)}, corrected by {labels}."
    tested = findings.by_selftest
    expected = (
        f" {_expected(findings, tested)}, if real faults are found like planted ones."
        if tested
        else ""
    )
    return f"{_count(findings)}{more}.{expected}"


def _expected(findings: Findings, share: Estimate) -> str:
    """How many really fail, with the interval."""
    number, least, most = (
        round(findings.cases * (end or 0.0)) for end in (share.value, share.low, share.high)
    )
    return f"About {number:,} of {findings.cases:,} answers fail (between {least:,} and {most:,})"


def _describe_reading(findings: Findings) -> str:
    """Which cases to read first, where it is known how many of the flagged ones really fail."""
    known = findings.corrected or findings.by_selftest
    first = list_first(findings.read_first, _MOST_READ)
    return f"Read first: {first}." if known and first else ""


def _count(findings: Findings) -> str:
    """How many fail, by the judge alone "flagged"; of an app that does well, how many pass."""
    answers = pluralize(findings.cases, "answer")
    failed, by_people = findings.failing, findings.labels == findings.failed.n
    one, many = ("fails", "fail") if by_people else ("is flagged", "are flagged")
    if findings.does_well:
        failed, one, many = findings.failed.n - failed, "passes", "pass"
    return f"{failed:,} of {answers} {one if 1 in (failed, findings.cases) else many}"


def _describe_owners(findings: Findings) -> str:
    """Whose the failures are, by the evidence of each case; the owner with most of them."""
    failed, unknown = findings.owners, findings.owners.get("unknown", 0)
    total = sum(failed.values())
    parts = [
        f"{_in_how_many(count, total, findings)}{loss}"
        for owner in findings.blamed
        if owner in _OWNERS
        for loss, count in [_describe_loss(findings, owner)]
    ]
    text = f"{'; '.join(parts)}." if parts else ""
    if text and findings.does_well:
        text = f"{total:,} {'is' if total == 1 else 'are'} flagged: {text}"
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


def name_loss(findings: Findings, owner: str) -> tuple[str, int]:
    """Return what most failures of an owner have in common, and how many; "" where nothing is.

    A loss that most share is taken before several that are alike, and these before one of over half.
    """
    losses = Counter({code: n for (whose, code), n in findings.losses.items() if whose == owner})
    most, total = losses.most_common(1), losses.total()
    alike = ((name, sum(losses[code] for code in codes)) for name, codes in _ALIKE.items())
    named = [(name, n) for name, n in (*most, *alike) if n >= _MOSTLY * total]
    half = [(name, n) for name, n in most if 2 * n > total]
    return next(((name, n) for name, n in (*named, *half) if name in _LOSSES), ("", 0))


def _describe_loss(findings: Findings, owner: str) -> tuple[str, int]:
    """What most failures of an owner have in common, and in how many; else whose they are."""
    name, count = name_loss(findings, owner)
    total = findings.owners[owner]
    if not name:
        return _OWNERS[owner], total
    if count >= _MOSTLY * total:
        return _LOSSES[name], count
    loss = _LOSSES[name].replace("the generator", "it")
    return f"{_OWNERS[owner]}; in {count:,} of these, {loss}", total


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
