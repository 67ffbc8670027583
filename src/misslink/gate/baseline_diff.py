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

from misslink.compare.missing_values import newly_unmeasured
from misslink.compare.pairing import NamedRun, config_differences, pair_cases
from misslink.compare.run_metrics import (
    ROUNDING_TOLERANCE,
    UNKNOWN_OUTCOMES,
    MetricValue,
    MissingPathError,
    find_estimate,
    metric_value,
)
from misslink.errors import InputError
from misslink.gate.criteria import Gate, ShipCriteria, describe_filter, select_gate_cases
from misslink.gate.outcome import GateOutcome, MetricChange
from misslink.io import read_complete_run
from misslink.io.jsonl import read_text
from misslink.io.manifest import display_path
from misslink.io.storage import as_url, redact_url
from misslink.render.format import metric_bounds
from misslink.stats import paired_difference, proportion
from misslink.stats.run_comparison import SIGNIFICANCE_LEVEL
from misslink.types import Estimate, Reason, Run

_LEVELS = ("retrieval", "generation", "answer")
_LINK_COUNTS = ("failures", "retrieval", "answers")


@dataclass(frozen=True)
class GateBaseline:
    """An earlier run, or (`run` is None) the numbers of its summary alone."""

    path: Path
    run: Run | None
    summary: Mapping[str, Any]


def read_baseline(path: str | Path) -> GateBaseline:
    """Read a run folder, or the ``summary.json`` of one; raise InputError for anything else."""
    path = Path(path)
    if path.is_dir() or as_url(path):
        run = read_complete_run(path, anywhere=True)
        return GateBaseline(path, run, run.summary)
    text = read_text(path)
    try:
        summary = json.loads(text)
    except (ValueError, RecursionError):
        summary = None
    if not isinstance(summary, dict) or not all(
        isinstance(summary.get(level), dict) for level in (*_LEVELS, "link")
    ):
        raise InputError(
            "this is not a baseline; name a run folder, or its summary.json", path=path
        )
    return GateBaseline(path, None, summary)


def summary_estimate(summary: Mapping[str, Any], name: str) -> Estimate:
    """Return a metric from a summary alone; raise MissingPathError if it does not have it."""
    cases = summary.get("cases")
    n = cases if isinstance(cases, int) and not isinstance(cases, bool) and cases >= 0 else 0
    for level in _LEVELS:
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
    notes : tuple of str
        Differences that a reader must know.
    judged_otherwise : tuple of str
        Those of the notes that concern verdicts.
    values : dict of str to MetricValue
        Metrics of the whole baseline that were computed so far.
    """

    run: Run
    criteria: ShipCriteria
    baseline: GateBaseline | None
    both: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    judged_otherwise: tuple[str, ...] = ()
    values: dict[str, MetricValue] = field(default_factory=dict)

    def missing_error(self, gate: Gate, metric: str, why: str = "") -> InputError:
        """The error of a gate whose metric the baseline does not have."""
        fix = "name its run folder" if self.baseline_run is None else "evaluate it again"
        path = "" if self.baseline is None else f" {display_path(self.baseline.path)}"
        return self.criteria.error(gate, f"the baseline{path} has no {metric}{why}; {fix}")

    @property
    def baseline_run(self) -> Run | None:
        """The baseline if it has cases."""
        return None if self.baseline is None else self.baseline.run


def diff_against_baseline(
    run: Run, criteria: ShipCriteria, baseline: GateBaseline | None
) -> BaselineDiff:
    """Pair a run with its baseline; raise InputError if no case asks the same in both."""
    if baseline is None:
        return BaselineDiff(run, criteria, None)
    if baseline.run is None:
        now, before = run.summary, baseline.summary
        shown = [
            {
                name: "not given" if x.get(name) is None else str(x[name])[:80]
                for name in ("judge", "k")
            }
            for x in (now, before)
        ]
        settings = tuple(
            f"{name} was {shown[1][name]} in the baseline and is {shown[0][name]} now."
            for name in ("judge", "k")
            if before.get(name) != now.get(name)
        )
        alone = (
            "The baseline is a summary.json without cases: nothing is paired, whether it has the "
            "same questions is unknown, and the change alone decides."
        )
        notes = [alone]
        if (cases := before.get("cases")) != len(run.cases):
            count = f"{cases:,}" if isinstance(cases, int) else "an unknown number of"
            notes.append(
                f"The baseline has other cases: {count}, and the run has {len(run.cases):,}."
            )
        return BaselineDiff(run, criteria, baseline, frozenset(), (*notes, *settings), settings)
    earlier = NamedRun(f"the baseline {display_path(baseline.path)}", baseline.run)
    pairing = pair_cases([NamedRun("the run", run), earlier], "common")
    notes = [f"{note[:1].upper()}{note[1:]}." for note in pairing.notes[0]]
    if pairing.left_out[0]:
        counts = (
            f"The baseline has other cases: {len(pairing.ids):,} ask the same in both, of "
            f"{len(run.cases):,} in the run and {len(baseline.run.cases):,} in the baseline."
        )
        notes.insert(0, counts)
    differences = config_differences(run, baseline.run, ("the run", "the baseline"))
    return BaselineDiff(
        run,
        criteria,
        baseline,
        frozenset(pairing.ids),
        (*notes, *(difference.sentence for difference in differences)),
        tuple(d.sentence for d in differences if d.what not in {"misslink", "k"}),
    )


def baseline_value(diff: BaselineDiff, gate: Gate, value: MetricValue) -> MetricValue | None:
    """Return the metric in the baseline; None if it has none and the gate does not need it."""
    baseline, needed = diff.baseline, gate.regression_max is not None
    if baseline is None:
        return None
    selection = describe_filter(gate)
    if baseline.run is None and selection:
        if needed:
            raise diff.missing_error(gate, value.name, f" of the cases with {selection} alone")
        return None
    try:
        if baseline.run is None:
            estimate = summary_estimate(baseline.summary, value.name)
            whole = MetricValue(value.name, estimate, None, value.lower_is_better)
        else:
            if value.name not in diff.values:
                diff.values[value.name] = metric_value(baseline.run, value.name)
            whole = diff.values[value.name]
    except (InputError, MissingPathError):  # such as a document that the baseline does not have
        if needed:
            raise diff.missing_error(gate, value.name) from None
        return None
    number = whole.estimate.value
    if number is None and needed and value.estimate.value is not None:
        raise diff.missing_error(gate, value.name, f" ({whole.estimate.reason})")
    if baseline.run is not None:
        if not selection:
            return whole
        return metric_value(select_gate_cases(baseline.run, gate), value.name)
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
        return MetricChange(drop, unmeasured=missing)
    pairs = {
        name: (old, new)
        for name, new in value.of_case.items()
        if name in diff.both and (old := earlier.of_case.get(name)) is not None and new is not None
    }
    before_after = [[pair[side] for pair in pairs.values()] for side in (0, 1)]
    # The difference of the two in the order in which it is a loss.
    loss_order = before_after if value.lower_is_better else before_after[::-1]
    test = paired_difference(*loss_order)
    losses = {name: sign * (new - old) for name, (old, new) in pairs.items()}
    changed = sorted(
        (name for name, loss in losses.items() if abs(loss) > ROUNDING_TOLERANCE),
        key=lambda name: -abs(losses[name]),
    )
    if gate.regression_test == "paired" and test.difference.value is not None:
        drop = test.difference.value
    means = [math.fsum(side) / len(pairs) for side in before_after if pairs]
    return MetricChange(
        drop,
        lambda level: paired_difference(*loss_order, level=level).difference,
        p=test.p,
        worse=tuple(name for name in changed if losses[name] > 0),
        means=(means[0], means[1]) if means else None,
        unmeasured=missing,
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
    by_means = outcome.paired or outcome.is_corrected
    before, value = (change.means if by_means else None) or (earlier.value, now.value)
    yield Reason(
        code="regressed",
        **about,
        before=before,
        value=value,
        drop=change.drop,
        n=change.loss.n if outcome.paired and change.loss else now.n,
        paired=outcome.paired,
        margin=_margin_parameters(outcome),
    )


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
