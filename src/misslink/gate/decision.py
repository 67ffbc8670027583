"""Decide every gate of a criteria file for a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from misslink.compare.missing_values import (
    judged_metrics_behind,
    unfinished_judging,
    unjudged_cases,
    unmeasured_notes,
)
from misslink.compare.run_metrics import (
    ROUNDING_TOLERANCE,
    MetricValue,
    has_direction,
    is_rank_metric,
    is_registered_metric,
    known_metric_names,
    metric_value,
)
from misslink.errors import InputError, did_you_mean
from misslink.gate.baseline_diff import (
    BaselineDiff,
    GateBaseline,
    allowed_change,
    apply_holm,
    baseline_value,
    diff_against_baseline,
    metric_change,
    pair_count_problems,
    regression_problems,
    reject_same_run,
)
from misslink.gate.corrected_shares import (
    corrected_change,
    corrected_notes,
    corrected_share,
    require_correction,
)
from misslink.gate.criteria import Gate, ShipCriteria, no_case_reason, select_gate_cases
from misslink.gate.new_failures import decide_new_failures
from misslink.gate.outcome import GateDecision, GateOutcome
from misslink.io.manifest import display_path
from misslink.io.storage import redact_url
from misslink.render.format import (
    metric_candidates,
    metric_cutoff,
)
from misslink.types import Reason, Run

_TWO_SIDED = frozenset({"link.answers.declined"})  # good where there is no answer to give
_MAX_WORST = 20  # cases listed where no change tells which are to blame


def decide_gates(
    run: Run,
    criteria: ShipCriteria,
    baseline: GateBaseline | None = None,
    *,
    folder: str | Path | None = None,
    allow_missing_baseline: bool = False,
) -> GateDecision:
    """Decide every gate.

    Parameters
    ----------
    run : Run
        A whole run.
    criteria : ShipCriteria
    baseline : GateBaseline or None
    folder : path or None
        Where the run was read from, for messages.
    allow_missing_baseline : bool
        Without a baseline, do not check regressions and new failures.

    Raises
    ------
    InputError
        A metric is unknown, or a gate needs a baseline that is missing, is the run itself, or
        does not have the metric or the cases.
    """
    metrics: dict[str, MetricValue] = {}
    for gate in criteria.gates:  # mistakes in the file are reported before any gate is decided
        if gate.new_failures is None:
            metrics[gate.name] = _gate_value(run, criteria, gate)
            _check_direction(run, criteria, gate, metrics[gate.name])
            require_correction(run, criteria, gate, metrics[gate.name])
        needs_baseline = gate.new_failures or gate.regression_max is not None
        if needs_baseline and baseline is None and not allow_missing_baseline:
            raise criteria.error(
                gate,
                "it needs a baseline, and there is none; add --baseline with a run folder or a "
                "summary.json, or --allow-missing-baseline for a first run",
            )
    if baseline is not None:
        reject_same_run(run, folder, baseline)
    diff = diff_against_baseline(run, criteria, baseline)
    measured = apply_holm(
        [
            decide_new_failures(diff, gate, gate.new_failures)
            if gate.new_failures
            else _measure_gate(diff, gate, metrics[gate.name].name)
            for gate in criteria.gates
        ]
    )
    outcomes = tuple(outcome if outcome.reasons else _decide(outcome) for outcome in measured)
    notes = (*diff.notes, *_gameable_notes(outcomes))
    places = {"run": display_path(redact_url(folder))} if folder is not None else {}
    if baseline is not None:
        places["baseline"] = display_path(redact_url(baseline.path))
    return GateDecision(criteria, run, diff.baseline_run, outcomes, notes, places, diff.both)


def _gate_value(run: Run, criteria: ShipCriteria, gate: Gate) -> MetricValue:
    """The metric of a gate over the whole run; its name is read if it gives no metric."""
    for name in [gate.metric] if gate.metric else metric_candidates(gate.name):
        try:
            return metric_value(run, name)
        except InputError as unknown:
            if gate.metric:
                raise criteria.error(gate, str(unknown)) from None
    hint = did_you_mean(metric_candidates(gate.name)[-1], known_metric_names(run))
    raise criteria.error(
        gate, f"its name is no metric; {f'{hint} Add' if hint else 'add'}  metric: NAME"
    )


def _check_direction(run: Run, criteria: ShipCriteria, gate: Gate, value: MetricValue) -> None:
    """Raise for a limit that a worse run meets more easily, unless it has both limits."""
    floor, ceiling = gate.threshold is not None, gate.at_most is not None
    problem = ""
    if gate.regression_max is not None and not has_direction(run, value.name):
        problem = (
            f"it is not known whether a rise of {value.name} is for the worse; give a threshold "
            "or at_most instead of regression_max"
        )
    elif floor and not ceiling and value.lower_is_better and value.name not in _TWO_SIDED:
        problem = f"{value.name} is good when low; write at_most instead of threshold"
    elif (
        ceiling
        and not floor
        and not value.lower_is_better
        and is_registered_metric(run, value.name)
    ):
        problem = f"{value.name} is good when high; write threshold instead of at_most"
    if problem:
        raise criteria.error(gate, problem)


def _gameable_notes(outcomes: Sequence[GateOutcome]) -> Iterator[str]:
    """Warn if one passage high in the ranking is enough for every gate on retrieval."""
    names = [outcome.metric for outcome in outcomes if is_rank_metric(outcome.metric)]
    has_other = any(
        outcome.metric.startswith("link.retrieval.")
        or (outcome.gate.new_failures and outcome.gate.new_failures.retrieval)
        for outcome in outcomes
    )
    if names and not has_other and {name.partition("@")[0] for name in names} <= {"hit", "mrr"}:
        yield (
            f"Warning: retrieval is gated by {' and '.join(dict.fromkeys(names))} alone, for which "
            "one relevant passage is enough. Add a gate on recall@k or ndcg@k."
        )


def _measure_gate(diff: BaselineDiff, gate: Gate, metric: str) -> GateOutcome:
    """The numbers of a gate, and a reason if they do not decide it."""
    run = select_gate_cases(diff.run, gate)
    value = metric_value(run, metric)
    share = corrected_share(run, diff.run, value)
    earlier = baseline_value(diff, gate, value)
    change = metric_change(diff, gate, value, earlier, run)
    if share is not None and gate.estimate == "corrected":
        value = replace(value, estimate=share.estimate)
        earlier, change = corrected_change(diff, gate, value, earlier, change, run)
    outcome = GateOutcome(
        gate=gate,
        metric=metric,
        passed=False,
        estimate=value.estimate,
        reasons=(),
        baseline=None if earlier is None else earlier.estimate,
        change=change,
        notes=(*_gate_notes(diff, gate, value, run), *corrected_notes(diff.run, gate, share)),
        cases=((*change.unmeasured, *change.worse) if change else ()) or _worst_cases(value),
        lower_is_better=value.lower_is_better,
        numbers_alone=diff.baseline is not None and diff.baseline_run is None,
        corrected=share,
    )
    judged = judged_metrics_behind(run, metric)
    before = diff.baseline_run
    reason: Reason | None = None
    if not run.cases:
        reason = no_case_reason(gate, diff.run)
    elif value.estimate.value is None:
        reason = Reason(
            code="not_computed",
            metric=metric,
            corrected=outcome.is_corrected,
            why=value.estimate.reason,
        )
    elif unjudged := unjudged_cases(run, judged):
        reason = unfinished_judging(unjudged, metric)
    elif before is not None and gate.regression_max is not None:
        judged = judged_metrics_behind(before, metric)
        unjudged = unjudged_cases(select_gate_cases(before, gate), judged) & diff.both
        if unjudged:
            unknown = f"how far {metric} changed"
            reason = unfinished_judging(unjudged, unknown, "the baseline")
    return outcome if reason is None else replace(outcome, reasons=(reason,))


def _decide(outcome: GateOutcome) -> GateOutcome:
    too_few = [*_case_count_problem(outcome), *pair_count_problems(outcome)]
    problems = [*too_few, *_limit_problems(outcome), *regression_problems(outcome)]
    if problems and len(problems) == len(too_few):  # no question is to blame
        outcome = replace(outcome, cases=())
    return replace(outcome, passed=not problems, reasons=tuple(problems or [_met(outcome)]))


def _measured_cases(outcome: GateOutcome) -> int:
    """The number of cases with a value; the n of a corrected share may be of its labels."""
    share = outcome.corrected if outcome.gate.estimate == "corrected" else None
    return outcome.estimate.n if share is None else share.raw.n


def _case_count_problem(outcome: GateOutcome) -> Iterator[Reason]:
    n, needed = _measured_cases(outcome), outcome.gate.min_cases
    if needed is not None and n < needed:
        yield Reason(code="too_few_cases", metric=outcome.metric, n=n, needed=needed)


def _limit_problems(outcome: GateOutcome) -> Iterator[Reason]:
    """The limits that the value does not meet."""
    gate, estimate = outcome.gate, outcome.estimate
    about: dict[str, Any] = {"metric": outcome.metric, "corrected": outcome.is_corrected}
    for limit, sign, end in ((gate.threshold, 1, "low"), (gate.at_most, -1, "high")):
        if limit is None:
            continue
        by_end = gate.on == end
        number = getattr(estimate, end) if by_end else estimate.value
        if number is None:
            yield Reason(code="no_interval_end", **about, end=end, why=estimate.reason)
        elif sign * (number - limit) < -ROUNDING_TOLERANCE:
            code = "below_floor" if sign > 0 else "above_ceiling"
            shown_end = end if by_end else None
            yield Reason(code=code, **about, value=number, limit=limit, end=shown_end)


def _met(outcome: GateOutcome) -> Reason:
    labels = outcome.corrected.labels if outcome.corrected and outcome.is_corrected else None
    regression = outcome.gate.regression_max is not None
    unchecked = {"by": "no_baseline"} if regression and outcome.baseline is None else None
    return Reason(
        code="met",
        metric=outcome.metric,
        corrected=outcome.is_corrected,
        value=outcome.estimate.value,
        n=_measured_cases(outcome),
        labels=labels,
        change=allowed_change(outcome) or unchecked,
    )


def _worst_cases(value: MetricValue) -> tuple[str, ...]:
    """Cases that worsen the metric, the worst first."""
    best, sign = (0.0, -1.0) if value.lower_is_better else (1.0, 1.0)
    values = (value.of_case or {}).items()
    off = {name: sign * x for name, x in values if x is not None and x != best}
    return tuple(sorted(off, key=lambda name: off[name])[:_MAX_WORST])


def _gate_notes(diff: BaselineDiff, gate: Gate, value: MetricValue, run: Run) -> Iterator[str]:
    metrics = judged_metrics_behind(run, value.name)
    if metrics:
        yield from diff.judged_otherwise
    if failed := sum(v.status == "failed" and v.metric in metrics for v in run.verdicts):
        yield f"{failed:,} of its verdicts failed and are not counted."
    yield from unmeasured_notes(run, value)
    k = metric_cutoff(value.name) if is_rank_metric(value.name) else None
    most = max((len(trace.retrieved) for trace in run.traces), default=0)
    if k is not None and 0 < most < k:
        were = "was" if most == 1 else "were"
        yield f"{value.name} covers the first {k:,}, and only {most:,} {were} retrieved."
    if gate.regression_test == "paired" and diff.both and value.of_case is None:
        yield f"{value.name} is no mean over questions, so the change alone decides."
