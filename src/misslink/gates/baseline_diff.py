"""A run beside its baseline, and whether a change for the worse is allowed."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from misslink.calibration.labelled_failures import judged_run
from misslink.comparison.missing_values import judged_metrics_behind, newly_unmeasured
from misslink.comparison.pairing import (
    NamedRun,
    case_clusters,
    config_differences,
    pair_cases,
)
from misslink.comparison.run_metrics import (
    ROUNDING_TOLERANCE,
    UNKNOWN_OUTCOMES,
    MetricValue,
    MissingPathError,
    find_estimate,
    is_rank_metric,
    metric_value,
)
from misslink.comparison.shared_part import SharedPart, metrics_by_labels, share_cases
from misslink.documents import METRIC_LEVELS, JudgeEpoch, manifest_of
from misslink.errors import InputError
from misslink.gates.criteria import Gate, ShipCriteria, describe_filter, select_gate_cases
from misslink.gates.outcome import GateOutcome, MetricChange
from misslink.io import read_complete_run
from misslink.io.jsonl import read_text
from misslink.io.manifest import display_path
from misslink.io.score_tables import is_score_table, read_scored_run
from misslink.io.storage import as_url, redact_url
from misslink.render.format import metric_bounds
from misslink.render.reasons import describe_note
from misslink.stats import paired_difference, proportion
from misslink.stats.run_comparison import SIGNIFICANCE_LEVEL, paired_test
from misslink.types import Estimate, Reason, Run

_LINK_COUNTS = ("failures", "retrieval", "answers")
_OF_APP = frozenset({"latency", "errors", "usage"})  # neither labels nor a judge decide them
_WITHOUT_JUDGE = _OF_APP | {"diagnosis", "judged", "whatif"}


@dataclass(frozen=True)
class GateBaseline:
    """An earlier run, or (`run` is None) the numbers of its summary alone."""

    path: Path
    run: Run | None
    summary: Mapping[str, Any]


def read_baseline(source: Any) -> GateBaseline:
    """Return a run as a baseline.

    Parameters
    ----------
    source : Run, path, data frame or list of mappings
        A run, its folder, its ``summary.json``, or a score table.

    Raises
    ------
    InputError
        It is anything else.
    """
    if isinstance(source, Run):
        return GateBaseline(Path("run in memory"), judged_run(source), source.summary)
    if not isinstance(source, str | Path):
        run = read_scored_run(source)
        return GateBaseline(Path("table in memory"), run, run.summary)
    path = Path(source)
    if path.is_dir() or as_url(path):
        run = read_complete_run(path, anywhere=True)
        return GateBaseline(path, run, run.summary)
    summary = _read_summary(path) if path.suffix == ".json" else None
    if summary is not None:
        return GateBaseline(path, None, summary)
    if path.name == "summary.json" or not is_score_table(path):
        raise InputError(
            "this is not a baseline; name a run folder, its summary.json or a score table",
            path=path,
        )
    run = read_scored_run(path)
    return GateBaseline(path, run, run.summary)


def _read_summary(path: Path) -> dict[str, Any] | None:
    """The summary of a run; None where the file is none."""
    try:
        summary = json.loads(read_text(path))
    except (ValueError, RecursionError):
        return None
    levels = (*METRIC_LEVELS, "link")
    is_one = isinstance(summary, dict) and all(isinstance(summary.get(x), dict) for x in levels)
    return summary if is_one else None


def summary_estimate(summary: Mapping[str, Any], name: str) -> Estimate:
    """Return a metric from a summary alone; raise MissingPathError if it does not have it."""
    cases = summary.get("cases")
    n = cases if isinstance(cases, int) and not isinstance(cases, bool) and cases >= 0 else 0
    for level in METRIC_LEVELS:
        if name in summary[level]:
            return find_estimate(summary[level], name, n=n)
    namespace, _, metric_path = name.partition(".")
    group, _, outcome = metric_path.partition(".")
    if namespace == "link" and group in _LINK_COUNTS and outcome:
        counts = _outcome_counts(summary["link"].get(group))
        if outcome not in UNKNOWN_OUTCOMES:
            counts = {key: count for key, count in counts.items() if key not in UNKNOWN_OUTCOMES}
        part, total = counts.get(outcome, 0), sum(counts.values())
    elif namespace == "coverage" and "." not in metric_path:
        coverage = summary.get("coverage")
        counts = _outcome_counts(coverage.get(metric_path) if isinstance(coverage, dict) else None)
        part = counts.get("scored", 0)
        total = part + counts.get("failed", 0)
    else:
        return find_estimate(summary, name, n=n)
    return (
        proportion(part, total)
        if total
        else Estimate.missing(Reason(code="no_such_cases", metric=name))
    )


def _outcome_counts(counts: Any) -> dict[str, int]:
    if not isinstance(counts, dict) or any(
        not isinstance(count, int) or isinstance(count, bool) or count < 0
        for count in counts.values()
    ):
        raise MissingPathError
    return counts


def reject_same_run(run: Run, folder: str | Path | None, baseline: GateBaseline) -> None:
    """Raise InputError if the baseline is the run's own folder or summary, or a copy of the run."""
    own = () if folder is None else (Path(folder), Path(folder) / "summary.json")
    same_path = baseline.path.resolve() in {path.resolve() for path in own}
    if same_path or (baseline.run is not None and baseline.run == run):
        raise InputError(
            "the baseline is the run itself, so nothing can be worse; name an earlier run",
            path=display_path(redact_url(baseline.path)),
        )


@dataclass(frozen=True)
class BaselineDiff:
    """A run and its baseline.

    Parameters
    ----------
    run : Run
    criteria : ShipCriteria
    baseline : GateBaseline or None
    both : frozenset of str
        Cases with the same question in both.
    scope : tuple of str
        What is compared, where that is not all.
    notes : tuple of str
        Differences that a reader must know.
    judged_otherwise : tuple of str
        Those of the notes that concern verdicts.
    shared : SharedPart or None
        The baseline and the run with the cases and labels that they are compared on. None: the
        baseline has no cases.
    comparable : dict or None
        As of `GateDecision`.
    judges : pair of str or None
        The judges of the baseline and of the run, if a verdict of one says nothing of the other.
    values : dict of str to MetricValue
        Metrics of the shared part of the baseline that were computed so far.
    """

    run: Run
    criteria: ShipCriteria
    baseline: GateBaseline | None
    both: frozenset[str] = frozenset()
    scope: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    judged_otherwise: tuple[str, ...] = ()
    shared: SharedPart | None = None
    comparable: dict[str, Any] | None = None
    judges: tuple[str, str] | None = None
    values: dict[str, MetricValue] = field(default_factory=dict)

    def missing_error(self, gate: Gate, metric: str, why: str = "") -> InputError:
        """The error of a gate whose metric the baseline does not have."""
        fix = "name its run folder" if self.baseline_run is None else "evaluate it again"
        path = "" if self.baseline is None else f" {display_path(self.baseline.path)}"
        return self.criteria.error(gate, f"the baseline{path} has no {metric}{why}; {fix}")

    @property
    def baseline_run(self) -> Run | None:
        """The baseline if it has cases: those that the run has, too, with the run's labels."""
        return None if self.shared is None else self.shared.runs[0]

    @property
    def shared_run(self) -> Run:
        """The run with the cases and verdicts that the baseline can be compared on."""
        return self.run if self.shared is None else self.shared.runs[1]

    def unlike(self, metric: str) -> Reason | None:
        """Why a metric cannot be compared with the baseline at all; None where it can."""
        if self.judges and _is_judged(metric):
            was, now = self.judges
            place = display_path(redact_url(self.baseline.path)) if self.baseline else ""
            spec = manifest_of(self.run).judging.spec or now
            told = {"was": was, "now": now, "baseline": place, "spec": spec}
            return Reason(code="judge_differs", metric=metric, **told)
        if self.shared is not None or self.comparable is None:
            return None
        if self.comparable["questions"] == 0:
            return Reason(code="questions_differ", metric=metric)
        by_labels = frozenset[str]().union(*metrics_by_labels(self.run))
        of_labels = not _is_judged(metric) or metric.startswith("link")
        of_labels = of_labels or bool(judged_metrics_behind(self.run, metric) & by_labels)
        if (
            of_labels
            and metric.partition(".")[0] not in _OF_APP
            and self.comparable["labels"] is False
        ):
            return Reason(code="labels_differ", metric=metric)
        return None


def _is_judged(metric: str) -> bool:
    """Whether a metric depends on verdicts: all but those of the ranking, the app and the usage."""
    of_slice = metric.rpartition(".metrics.")[2]
    by_labels = is_rank_metric(of_slice) or metric.startswith("link.retrieval.")
    return not by_labels and metric.partition(".")[0] not in _WITHOUT_JUDGE


def diff_against_baseline(
    run: Run, criteria: ShipCriteria, baseline: GateBaseline | None
) -> BaselineDiff:
    """Pair a run with its baseline; raise InputError if no case asks the same in both."""
    if baseline is None:
        return BaselineDiff(run, criteria, None)
    if baseline.run is None:
        return _diff_against_summary(run, criteria, baseline)
    earlier = NamedRun(f"the baseline {display_path(baseline.path)}", baseline.run)
    pairing = pair_cases([earlier, NamedRun("the run", run)])
    both = frozenset(pairing.ids)
    shared = share_cases([baseline.run, run], both)
    notes = list(pairing.notes[0])
    if pairing.left_out[0]:
        counts = {"both": len(both), "run": len(run.cases), "baseline": len(baseline.run.cases)}
        notes.insert(0, Reason(code="baseline_of_other_cases", **counts))
    differences = config_differences(run, baseline.run, ("the run", "the baseline"))
    same_judge = not any(difference.changes_judge for difference in differences)
    names = [manifest_of(x).judge or "none" for x in (baseline.run, run)]
    return BaselineDiff(
        run,
        criteria,
        baseline,
        both,
        tuple(map(describe_note, notes)),
        tuple(difference.sentence for difference in differences),
        tuple(d.sentence for d in differences if d.what not in {"misslink", "k"}),
        shared,
        {
            "judge": same_judge,
            "questions": len(both),
            "of": len(run.cases),
            "labels": not shared.relabelled,
        },
        None if same_judge else (names[0], names[1]),
    )


def _diff_against_summary(run: Run, criteria: ShipCriteria, baseline: GateBaseline) -> BaselineDiff:
    """What is known of a baseline without cases: its numbers, and hashes of what they are of."""
    now, before = run.summary, baseline.summary
    given = [
        {name: "not given" if x.get(name) is None else str(x[name])[:80] for name in ("judge", "k")}
        for x in (before, now)
    ]
    settings = [
        Reason(code="summary_setting_differs", setting=name, was=given[0][name], now=given[1][name])
        for name in ("judge", "k")
        if before.get(name) != now.get(name)
    ]
    same_judge = before.get("judge") == now.get("judge")
    epochs = [x.get("judge_epoch") for x in (before, now)]
    now_by, before_by = (JudgeEpoch.read(epoch or {}) for epoch in epochs)
    if same_judge and None not in epochs and not now_by.is_comparable(before_by):
        same_judge = False
        settings.append(Reason(code="summary_of_other_judge"))
    alike = {name: _same_hash(before, now, name) for name in ("questions", "labels")}
    scope = [Reason(code="baseline_without_cases")]
    if alike["questions"] is None:
        scope.append(Reason(code="questions_unknown"))
    if alike["questions"] is not True and (cases := before.get("cases")) != len(run.cases):
        count = cases if isinstance(cases, int) else None
        scope.append(Reason(code="summary_of_other_cases", baseline=count, run=len(run.cases)))
    notes = tuple(map(describe_note, settings))
    return BaselineDiff(
        run,
        criteria,
        baseline,
        scope=tuple(map(describe_note, scope)),
        notes=notes,
        judged_otherwise=notes,
        comparable={
            "judge": same_judge,
            "questions": alike["questions"] and len(run.cases),
            "of": len(run.cases),
            "labels": alike["labels"],
        },
        judges=None if same_judge else (given[0]["judge"], given[1]["judge"]),
    )


def _same_hash(before: Mapping[str, Any], now: Mapping[str, Any], name: str) -> bool | None:
    """Whether two summaries are of the same questions, or labels; None where one does not say."""
    hashes = [x["hashes"].get(name) for x in (before, now) if isinstance(x.get("hashes"), dict)]
    return hashes[0] == hashes[1] if len(hashes) == 2 and None not in hashes else None


def baseline_value(diff: BaselineDiff, gate: Gate, value: MetricValue) -> MetricValue | None:
    """Return the metric in the baseline; None if it has none and the gate does not need it."""
    baseline, needed = diff.baseline, gate.regression_max is not None
    before = diff.baseline_run
    if baseline is None:
        return None
    selection = describe_filter(gate)
    if before is None and selection:
        if needed:
            raise diff.missing_error(gate, value.name, f" of the cases with {selection} alone")
        return None
    try:
        if before is None:
            estimate = summary_estimate(baseline.summary, value.name)
            whole = MetricValue(value.name, estimate, None, value.lower_is_better)
        else:
            whole = diff.values.get(value.name) or metric_value(before, value.name)
            diff.values[value.name] = whole
    except (InputError, MissingPathError):  # such as a document that the baseline does not have
        if needed:
            raise diff.missing_error(gate, value.name) from None
        return None
    number = whole.estimate.value
    is_whole = before is None or not diff.scope
    if number is None and needed and value.estimate.value is not None and is_whole:
        raise diff.missing_error(gate, value.name, f" ({whole.estimate.reason})")
    if before is not None:
        return whole if not selection else metric_value(select_gate_cases(before, gate), value.name)
    least, most = metric_bounds(value.name) or (-math.inf, math.inf)
    if number is not None and not (
        least - ROUNDING_TOLERANCE <= number <= most + ROUNDING_TOLERANCE
    ):
        raise InputError(
            f"{value.name} is {number:g} in it, and must be between {least:g} and {most:g}; use "
            "the unchanged summary.json of a run",
            path=baseline.path,
        )
    return whole


def metric_change(
    diff: BaselineDiff, gate: Gate, value: MetricValue, earlier: MetricValue | None, run: Run
) -> MetricChange | None:
    """Return how far a metric of `run` changed for the worse; None if a value is missing."""
    if earlier is None or earlier.estimate.value is None or value.estimate.value is None:
        return None
    sign = 1.0 if value.lower_is_better else -1.0
    drop = sign * (value.estimate.value - earlier.estimate.value)
    before = diff.baseline_run
    missing: dict[str, str] = {}
    if before is not None:
        selected = select_gate_cases(before, gate), earlier
        missing = newly_unmeasured(run, value, selected, diff.both)
    elif earlier.estimate.method != "recorded" and earlier.estimate.n > value.estimate.n:
        missing = newly_unmeasured(run, value, None, ())
    if value.of_case is None or earlier.of_case is None:
        levels = (earlier.estimate.value, value.estimate.value) if before and diff.scope else None
        return MetricChange(drop, means=levels, unmeasured=missing, shared=levels is not None)
    pairs = {
        name: (old, new)
        for name, new in value.of_case.items()
        if name in diff.both and (old := earlier.of_case.get(name)) is not None and new is not None
    }
    before_after = [[pair[side] for pair in pairs.values()] for side in (0, 1)]
    # The difference of the two in the order in which it is a loss.
    first, then = before_after if value.lower_is_better else before_after[::-1]
    clusters = case_clusters(run, list(pairs))
    test = paired_test(first, then, clusters)
    losses = {name: sign * (new - old) for name, (old, new) in pairs.items()}
    changed = sorted(
        (name for name, loss in losses.items() if abs(loss) > ROUNDING_TOLERANCE),
        key=lambda name: -abs(losses[name]),
    )
    if gate.regression_test == "paired" and test.difference.value is not None:
        drop = test.difference.value
    means = [math.fsum(side) / len(pairs) for side in before_after if pairs]
    shared = bool(diff.scope) and gate.regression_test != "paired"
    if shared:
        means = [earlier.estimate.value, value.estimate.value]
    return MetricChange(
        drop,
        lambda level: paired_test(first, then, clusters, level=level).difference,
        p=test.p,
        worse=tuple(name for name in changed if losses[name] > 0),
        means=(means[0], means[1]) if means else None,
        unmeasured=missing,
        shared=shared,
    )


def apply_holm(outcomes: Sequence[GateOutcome]) -> list[GateOutcome]:
    """Widen the intervals of paired losses by Holm's procedure.

    Of m paired gates, those whose interval at 1 - 5%/m lies above the margin fail; the others are
    tried again by their number, until none fails. So at most 5% of runs without a loss beyond a
    margin fail any paired gate.
    """
    results = {outcome.gate.name: outcome for outcome in outcomes}
    waiting = [outcome for outcome in outcomes if outcome.paired and not outcome.reasons]
    while waiting:
        level, tried = 1 - SIGNIFICANCE_LEVEL / len(waiting), []
        for outcome in waiting:
            assert outcome.change is not None  # noqa: S101 (it is paired)
            tried.append(replace(outcome, change=replace(outcome.change, level=level)))
        results |= {outcome.gate.name: outcome for outcome in tried}
        passed = [outcome for outcome in tried if not outcome.loss_exceeds_margin]
        waiting = passed if len(passed) < len(waiting) else []
    return list(results.values())


def regression_problems(outcome: GateOutcome) -> Iterator[Reason]:
    """Yield what violates the gate's limit on regressions."""
    gate, change, earlier = outcome.gate, outcome.change, outcome.baseline
    limit, now = gate.regression_max, outcome.estimate
    if limit is None or now.value is None or earlier is None:  # a first run may have no baseline
        return
    about: dict[str, Any] = {"metric": outcome.metric, "corrected": outcome.is_corrected}
    if earlier.value is None or change is None:
        yield Reason(code="no_baseline_value", **about, why=str(earlier.reason))
        return
    if change.unmeasured:
        reasons = dict(Counter(change.unmeasured.values()))
        if outcome.numbers_alone:
            counts = {"n": now.n, "before": earlier.n}
            yield Reason(code="fewer_values", metric=outcome.metric, **counts, reasons=reasons)
        else:
            count = len(change.unmeasured)
            yield Reason(code="values_lost", metric=outcome.metric, lost=count, reasons=reasons)
    if outcome.paired:
        if any(pair_count_problems(outcome)) or not outcome.loss_exceeds_margin:
            return
    elif change.drop <= limit + ROUNDING_TOLERANCE:
        return
    # A corrected number and that of its baseline may be estimated in two ways.
    by_means = outcome.paired or outcome.is_corrected or change.shared
    before, value = (change.means if by_means else None) or (earlier.value, now.value)
    yield Reason(
        code="regressed",
        **about,
        before=before,
        value=value,
        drop=change.drop,
        n=_compared_cases(outcome),
        paired=outcome.paired,
        margin=_margin_parameters(outcome),
    )


def _compared_cases(outcome: GateOutcome) -> int:
    """The number of cases that the change is over."""
    change, earlier = outcome.change, outcome.baseline
    if outcome.paired and change and change.loss:
        return change.loss.n
    return earlier.n if earlier and change and change.shared else outcome.estimate.n


def allowed_change(outcome: GateOutcome) -> dict[str, Any] | None:
    """The change of a gate that passed, by what it was measured; None without a baseline."""
    change, earlier, now = outcome.change, outcome.baseline, outcome.estimate.value
    if earlier is None or earlier.value is None or change is None or now is None:
        return None
    margin = _margin_parameters(outcome)
    if outcome.paired and change.means is not None:
        basis, (before, value) = "pairs", change.means
    elif outcome.is_corrected and change.means and change.means[1] != now:
        # The number itself is estimated in another way, so the two show no change.
        basis, (before, value) = "error_rates", change.means
    elif change.shared and change.means is not None:
        basis, (before, value) = "shared", change.means
    else:
        basis, before, value = "value", earlier.value, now
    return {"by": basis, "before": before, "value": value, "margin": margin}


def _margin_parameters(outcome: GateOutcome) -> dict[str, Any] | None:
    """The margin beside the loss; None without a limit on regressions."""
    change, margin = outcome.change, outcome.gate.regression_max
    if change is None or margin is None:
        return None
    loss = change.loss
    return {
        "allowed": margin,
        "drop": change.drop,
        "loss": None if loss is None or loss.low is None else loss.model_dump(),
        "level": change.level,
    }


@cache
def loss_can_exceed(margin: float, pairs: int, level: float = 0.95) -> bool:
    """Whether the interval of the largest possible loss over so many pairs lies above the margin.

    >>> loss_can_exceed(0.03, 0), loss_can_exceed(0.03, 1), loss_can_exceed(0.03, 40)
    (False, False, True)
    """
    low = paired_difference([0.0] * pairs, [1.0] * pairs, level=level).difference.low
    return low is not None and low > margin


def pair_count_problems(outcome: GateOutcome) -> Iterator[Reason]:
    """Yield a problem if too few cases are paired for a paired gate."""
    change, metric = outcome.change, outcome.metric
    margin, needed = outcome.gate.regression_max, outcome.gate.min_cases
    if not outcome.paired or change is None or margin is None:
        return
    pairs = change.loss.n if change.loss else 0
    if not pairs:
        yield Reason(code="nothing_paired", metric=metric)
    elif needed is not None and pairs < needed:
        yield Reason(code="too_few_pairs", metric=metric, n=pairs, needed=needed)
    elif not loss_can_exceed(margin, pairs, change.level):
        yield Reason(code="pairs_undecided", metric=metric, n=pairs, allowed=margin)
