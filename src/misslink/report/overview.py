"""The run in numbers: levels, metrics, slices, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from misslink.document_model import NOT_COMPUTED
from misslink.documents import Coverage, OwnerReliability, Summary, manifest_of, summary_of
from misslink.metrics import SOURCE_METRICS
from misslink.parts import light_items
from misslink.render.format import (
    FormattedEstimate,
    format_cost,
    format_estimate,
    format_number,
    pluralize,
    shorten,
)
from misslink.report.links import number_cases, view_fragment
from misslink.selftests.document import selftest_of
from misslink.types import Case, Estimate, Run, Usage

_MAX_SLOW_CASES = 5
_QUESTION_LENGTH = 120
_UNKNOWN = "not known"
_TAIL_SHARE, _TAIL_MIN_TIMES = 0.95, 20  # with fewer times, one in twenty is less than one
_TOKENS = (("prompt_tokens", "Prompt tokens"), ("completion_tokens", "Written tokens"))


@dataclass(frozen=True)
class UsageView:
    """What judge and app cost, as facts, and the slowest cases: number, question, time."""

    judge: tuple[tuple[str, str], ...]
    app: tuple[tuple[str, str], ...]
    slowest: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True)
class CorrectedShareView:
    """A share of good cases as the judge has it and as people's labels correct it."""

    name: str
    metric: str
    of: str
    corrected: FormattedEstimate
    labels: int
    how: str
    hint: str


@dataclass(frozen=True)
class MetricView:
    """A metric of a level; ``why`` says what was not scored, ``truth`` what labels make of it."""

    shown: FormattedEstimate
    coverage: Coverage | None
    why: tuple[str, ...]
    low_is_good: bool
    truth: CorrectedShareView | None


@dataclass(frozen=True)
class MetricLevel:
    """One of the three levels, with every metric of the summary."""

    title: str
    question: str
    metrics: tuple[MetricView, ...]
    warning: str


@dataclass(frozen=True)
class GroupRow:
    """A group of cases; ``small`` where it has few."""

    name: str
    n: int
    small: bool
    metrics: tuple[FormattedEstimate, ...]
    fragment: str


@dataclass(frozen=True)
class GroupTable:
    """The groups of one dimension, by the metrics that they have."""

    dimension: str
    metrics: tuple[str, ...]
    groups: tuple[GroupRow, ...]


def read_usage(run: Run) -> UsageView | None:
    """Read the usage of a run; None if nothing is known of it."""
    judge = tuple(_judge_rows(run))
    latencies, tokens = dict[str, float](), list[Usage]()
    for trace in light_items(run.traces):
        if trace.latency_s is not None:
            latencies[trace.case_id] = trace.latency_s
        tokens += [trace.usage] if trace.usage else []
    if not (judge or latencies or tokens):
        return None
    app = (*_latency_rows(list(latencies.values())), *_token_rows(tokens, "answers"))
    numbers = number_cases(run.cases)
    slowest = sorted(
        ((latency, case_id) for case_id, latency in latencies.items() if case_id in numbers),
        key=lambda slow: -slow[0],
    )
    return UsageView(
        judge=judge,
        app=app,
        slowest=tuple(
            (
                numbers[case_id],
                shorten(run.cases[numbers[case_id] - 1].question, _QUESTION_LENGTH),
                format_seconds(latency),
            )
            for latency, case_id in slowest[:_MAX_SLOW_CASES]
        ),
    )


def format_seconds(value: float) -> str:
    """Write a duration with three significant digits.

    Examples
    --------
    >>> format_seconds(0.01735), format_seconds(2.5), format_seconds(75.0), format_seconds(0.0)
    ('17.4 ms', '2.5 s', '75 s', '0 s')
    """
    return f"{format_number(1000 * value)} ms" if 0 < value < 1 else f"{format_number(value)} s"


def _judge_rows(run: Run) -> Iterator[tuple[str, str]]:
    usage, manifest = summary_of(run).usage, manifest_of(run)
    if manifest.judge == "none" or not usage:
        return
    calls = usage.calls
    is_heuristic = manifest.judge.startswith("heuristic")
    yield "Asked of the judge", pluralize(calls, "question")
    yield "From the cache, free", pluralize(usage.from_cache, "reply", "replies")
    if usage.not_asked:
        yield "Not asked", f"{pluralize(usage.not_asked, 'question')}: budget or time was used up"
    for name, label in _TOKENS if calls and not is_heuristic else ():
        spent = getattr(usage, name)
        none = f"{_UNKNOWN}: the judge reported none"
        yield label, none if spent is None else format_number(spent)
    if usage.cost is not None:
        yield "Cost", format_cost(usage.cost)
    elif is_heuristic:
        yield "Cost", "nothing: the heuristic judge runs on this machine"
    elif not calls:
        yield "Cost", "nothing: no question was paid for in this run"
    else:
        priced = manifest.judging.price_in is not None
        why = "the judge did not report its tokens" if priced else "no prices were given"
        yield "Cost", f"{_UNKNOWN}: {why}"
    spent_tokens = [score.usage for score in run.scores if score.usage is not None]
    yield from _token_rows(spent_tokens, "all verdicts, whenever paid for")


def _latency_rows(latencies: Sequence[float]) -> Iterator[tuple[str, str]]:
    if not latencies:
        yield "Time per answer", f"{_UNKNOWN}: no trace has a latency"
        return
    import numpy as np

    from misslink.stats.intervals import median

    middle = median(latencies)
    value, low, high = (
        _UNKNOWN if end is None else format_seconds(end)
        for end in (middle.value, middle.low, middle.high)
    )
    interval = f"[{low}, {high}]" if middle.low is not None else f"({middle.reason})"
    yield "Time per answer, median", f"{value} {interval}, n = {middle.n:,}"
    n = len(latencies)
    if n < _TAIL_MIN_TIMES:
        tail = f"{_UNKNOWN}: {pluralize(n, 'time')}, and it takes {_TAIL_MIN_TIMES}"
    else:  # a measured time, never one between two
        slow = float(np.quantile(latencies, _TAIL_SHARE, method="inverted_cdf"))
        tail = f"{format_seconds(slow)}, n = {n:,}"
    yield "95% take at most", tail


def _token_rows(usages: Sequence[Usage], source: str) -> Iterator[tuple[str, str]]:
    for name, label in _TOKENS:
        counts = [count for usage in usages if (count := getattr(usage, name)) is not None]
        if counts:
            yield f"{label}, {source}", f"{sum(counts):,} (n = {len(counts):,})"


_SHARE_NOUNS = {"fully_faithful": "faithful answers", "correct": "correct answers"}
_MIN_JUDGED_SHARE = 0.9  # of the first k passages; below it rank metrics depend on the labels
_SMALL_GROUP = 10  # groups with fewer cases are marked
_GROUP_FIELDS = ("category", "tier")  # group cases beside their tags
_LEVEL_TITLES = {
    "retrieval": ("1. Retrieval", "Did the relevant passages reach the prompt?"),
    "generation": ("2. Generation", "Is the answer supported by the passages in the prompt?"),
    "answer": ("3. Answer", "Is the answer correct?"),
}


def corrected_shares(run: Run) -> dict[str, CorrectedShareView]:
    """Return every share that human labels correct, by its name.

    Labels of the run's own verdicts are used together with all of these; a calibration from another
    run gives only the judge's error rates.
    """
    from misslink.calibration import stored_calibration  # imports numpy

    return {
        name: CorrectedShareView(
            name=name,
            metric=share.metric,
            of=_SHARE_NOUNS.get(name, f"cases that are good by {share.metric}"),
            corrected=format_estimate("share", share.estimate),
            labels=share.labels,
            how=share.note,
            hint=_impossible_share_hint(share.raw, share.estimate),
        )
        for name, share in stored_calibration.corrected_shares(run).items()
    }


def _impossible_share_hint(judged: Estimate, corrected: Estimate) -> str:
    if judged.value is None or corrected.low is None or corrected.high is None:
        return ""
    share = format_estimate("share", judged).value
    if judged.value > corrected.high:
        return f"The judge's {share} lies above this interval: it is too kind."
    if judged.value < corrected.low:
        return f"The judge's {share} lies below this interval: it is too strict."
    return ""


def metric_levels(run: Run) -> tuple[MetricLevel, ...]:
    """Return the three levels with every metric of the summary."""
    summary, shares = summary_of(run), corrected_shares(run)
    estimates = {
        "retrieval": summary.retrieval,
        "generation": summary.generation,
        "answer": summary.answer,
    }
    unscored: dict[str, Counter[str]] = {}
    for verdict in run.scores:
        if verdict.status != "scored":
            reasons = unscored.setdefault(verdict.metric, Counter())
            reasons[f"{verdict.status}: {verdict.reason}"] += 1
    levels = []
    for key, (title, question) in _LEVEL_TITLES.items():
        metrics = tuple(
            MetricView(
                shown=_shown_estimate(name, estimate, shares),
                coverage=summary.coverage.get(SOURCE_METRICS.get(name, name)),
                why=tuple(
                    f"{count} {reason}"
                    for reason, count in unscored.get(name, Counter()).most_common(3)
                ),
                low_is_good=name in summary.lower_is_better,
                truth=_corrected_share(summary, name, shares),
            )
            for name, estimate in estimates[key].items()
        )
        warning = coverage_warning(run) if key == "retrieval" else ""
        levels.append(MetricLevel(title, question, metrics, warning))
    return tuple(levels)


# What the first screen and the terminal print of each level, as readers of other tools look for it.
_KEY_METRICS = {
    "Retrieval": (("recall@{k}", "recall@{k}"), ("mrr", "mrr")),  # at the run's cutoff
    "Generation": (("fully_faithful", "fully faithful"), ("answer_relevance", "relevance")),
    "Answer": (("correct", "correct"),),
}


@dataclass(frozen=True)
class LevelLine:
    """One of the three levels in one line: its key metrics, or why there are none.

    A metric has its label, and a note on the labels by which it is corrected.
    """

    level: str
    metrics: tuple[tuple[str, FormattedEstimate, str], ...]
    reason: str = ""

    @property
    def unit(self) -> str:
        """What its metrics are means over."""
        return "question" if self.level == "Retrieval" else "answer"

    @property
    def text(self) -> str:
        """Such as "recall@5 49% [36, 61]; mrr 0.47 [0.35, 0.58]; n = 46"."""
        if not self.metrics:
            return f"not measured: {self.reason}"
        shared = len({shown.n for _, shown, _ in self.metrics}) == 1
        shared = shared and not any(
            shown.value.endswith(f" of {shown.n}") for _, shown, _ in self.metrics
        )
        texts = [
            f"{label} {shown.brief if shared else shown.text}{note and ' '}{note}"
            for label, shown, note in self.metrics
        ]
        return "; ".join([*texts, f"n = {self.metrics[0][1].n:,}"] if shared else texts)


def level_lines(run: Run) -> tuple[LevelLine, ...]:
    """Return the three levels in one line each; none of a run that measured nothing."""
    summary, shares = summary_of(run), corrected_shares(run)
    estimates = {**summary.retrieval, **summary.generation, **summary.answer}
    judged = summary.generation or summary.answer
    unknown = NOT_COMPUTED.reason or "" if judged else "no judge was used"
    lines = []
    for level, names in _KEY_METRICS.items():
        shown, reasons = [], []
        for key, words in names:
            name, label = (text.format(k=summary.k) for text in (key, words))
            estimate = _shown_estimate(name, estimates.get(name, NOT_COMPUTED), shares)
            corrected = name in shares and shares[name].corrected.measured
            note = f"by {pluralize(shares[name].labels, 'label')}" if corrected else ""
            if estimate.measured:
                shown.append((label, estimate, note))
            elif name in estimates:
                reasons.append(estimate.reason)
        reason = "" if shown else next(iter(reasons), unknown)
        lines.append(LevelLine(level, tuple(shown), reason))
    return tuple(lines) if any(line.metrics for line in lines) else ()


def _shown_estimate(
    name: str, estimate: Estimate, shares: Mapping[str, CorrectedShareView]
) -> FormattedEstimate:
    """The share as annotators' labels correct it, where they do: one number stands for one fact."""
    truth = shares.get(name)
    if truth is None or not truth.corrected.measured:
        return format_estimate(name, estimate)
    return replace(truth.corrected, name=name)


def read_reliability(run: Run) -> OwnerReliability | None:
    """Return how often named owners are right: by a selftest of the run's judge, else as stored."""
    stored, tested = summary_of(run).link.reliability, selftest_of(run)
    if tested is None or tested.judge != manifest_of(run).judge or tested.owner_right.value is None:
        return stored
    given = stored.given if stored else ()
    return OwnerReliability(
        given=given,
        judge=tested.judge,
        owner_right=tested.owner_right,
        named=NOT_COMPUTED,
        source="selftest",
    )


@dataclass(frozen=True)
class ReliabilityLine:
    """How often named owners are right: in one line, and with all figures."""

    brief: str
    text: str


def describe_reliability(run: Run) -> ReliabilityLine | None:
    """Describe how often the named owners are right, as measured for what this run has; None if not."""
    measured = read_reliability(run)
    if measured is None or measured.owner_right.value is None:
        return None
    right, tens = format_estimate("share", measured.owner_right), _describe_tens(measured)
    text = f"Of the named owners, {right.value} {right.interval} are right (n = {right.n:,}), measured on"
    if measured.source == "selftest":
        return ReliabilityLine(
            f"Of 10 faults planted into this app, {tens} get the right owner; natural ones may differ.",
            f"{text} faults planted into this app. Natural ones may be easier or harder.",
        )
    *others, last = measured.given or ("",)
    given = f" with {', '.join(others)}{' and ' if others else ''}{last}" if last else ""
    return ReliabilityLine(
        f"Of 10 owners named for planted failures, {tens} are right.",
        f"{text} planted failures of other apps{given}.",
    )


def _describe_tens(measured: OwnerReliability) -> str:
    """The interval in tenths, such as "7 to 8"."""
    share = measured.owner_right
    ends = (share.value if end is None else end for end in (share.low, share.high))
    low, high = (round(10 * (end or 0)) for end in ends)
    return f"{low}" if low == high else f"{low} to {high}"


def coverage_warning(run: Run) -> str:
    """Warn if few of the first passages have labels, so that rank metrics rest on few; else ""."""
    for name, share in summary_of(run).judged.items():
        if share.value is not None and share.value < _MIN_JUDGED_SHARE:
            return (
                f"The gold set grades only {format_estimate(name, share).brief} of the first "
                f"{name.partition('@')[2]} passages. The others count as not relevant; misslink "
                "retrieval --bounds shows the possible range."
            )
    return ""


def group_tables(run: Run) -> tuple[GroupTable, ...]:
    """Return groups by category, tier and each tag, the lowest numbers first, small groups last."""
    tables = []
    for dimension, groups in summary_of(run).slices.items():
        names = tuple(dict.fromkeys(name for group in groups.values() for name in group.metrics))
        rows, fragment_of = [], _group_fragments(run.cases, dimension)
        for name, group in groups.items():
            measured = [one.value for one in group.metrics.values() if one.value is not None]
            mean = sum(measured) / len(measured) if measured else 2.0  # nothing measured comes last
            metrics = tuple(
                format_estimate(metric, group.metrics.get(metric, NOT_COMPUTED)) for metric in names
            )
            small = group.n < _SMALL_GROUP
            row = GroupRow(name, group.n, small, metrics, fragment_of(name))
            rows.append(((small, mean, name), row))
        if rows:
            rows.sort(key=lambda row: row[0])
            tables.append(GroupTable(dimension, names, tuple(row for _, row in rows)))
    return tuple(tables)


def _corrected_share(
    summary: Summary, name: str, shares: Mapping[str, CorrectedShareView]
) -> CorrectedShareView | None:
    """The corrected share of the number `name`, else of the metric as a whole."""
    if name in shares:
        return shares[name]
    whole = next((share for share in shares.values() if share.metric == name), None)
    shown = {*summary.generation, *summary.answer}
    return None if whole is None or whole.name in shown else whole


def _group_fragments(cases: Sequence[Case], dimension: str) -> Callable[[str], str]:
    """The cases of a group by its name; a tag may have the name of a field that no case has."""
    is_tag = any(dimension in case.tags for case in cases)
    unused = dimension in _GROUP_FIELDS and all(getattr(case, dimension) is None for case in cases)
    if dimension in _GROUP_FIELDS and not (is_tag and unused):
        return lambda name: view_fragment(**{dimension: name})
    return lambda name: view_fragment(tag=f"{dimension}:{name}")
