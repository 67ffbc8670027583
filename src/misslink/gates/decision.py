"""Decide every gate of a criteria file for a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from misslink.calibration.advice import TOO_FEW
from misslink.calibration.corrected_prevalence import corrected_share_difference, judge_mismatch
from misslink.calibration.stored_calibration import (
    PREDICTION_POWERED,
    ROGAN_GLADEN,
    CorrectedRate,
    corrected_shares,
    current_calibrations,
    label_count,
    read_estimate,
)
from misslink.comparison import missing_values, run_metrics
from misslink.comparison.compare_runs import is_binary
from misslink.documents import calibration_of, calibrations_of, manifest_of
from misslink.errors import InputError, did_you_mean
from misslink.gates import baseline_diff
from misslink.gates.criteria import (
    Gate,
    NewFailures,
    ShipCriteria,
    matches_filter,
    no_case_reason,
    reject_unknown_slice,
    select_gate_cases,
)
from misslink.gates.outcome import GateDecision, GateOutcome, MetricChange
from misslink.io.manifest import display_path
from misslink.io.storage import redact_url
from misslink.metrics import GOOD_SHARES
from misslink.render.format import metric_candidates, metric_cutoff
from misslink.render.reasons import describe_note
from misslink.render.retrieval_sentences import describe_ndcg_use
from misslink.retrieval import score_cases
from misslink.retrieval.metric_advice import ndcg_reasons
from misslink.types import Estimate, Reason, Run

_TWO_SIDED = frozenset({"link.answers.declined"})  # good where there is no answer to give
_UNPROVEN = frozenset({"do not use", TOO_FEW})
_MAX_WORST = 20  # cases listed where no change tells which are to blame
_LINK_METRICS = {"link": "faithfulness", "link_correctness": "correctness"}
_LINK_RISKS = frozenset(
    (
        *("attributable_fraction", "risk_difference", "risk_ratio"),
        *("risk_given_none", "risk_given_some", "risk_given_all"),
    )
)
_CALIBRATE_HINT = (
    "compare the judge with human labels:  misslink calibrate RUN --labels FILE, or evaluate with "
    "--labels or --calibration"
)


def decide_gates(
    run: Run,
    criteria: ShipCriteria,
    baseline: baseline_diff.GateBaseline | None = None,
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
    metrics: dict[str, run_metrics.MetricValue] = {}
    by_metric: dict[str, run_metrics.MetricValue] = {}  # gates on several slices share one
    for gate in criteria.gates:  # mistakes in the file are reported before any gate is decided
        reject_unknown_slice(criteria, gate, run)
        if gate.new_failures is None:
            value = by_metric.get(gate.metric or "") or _gate_value(run, criteria, gate)
            metrics[gate.name] = value
            if gate.metric:  # not a name that is read as one
                by_metric[gate.metric] = value
            _check_direction(run, criteria, gate, metrics[gate.name])
            _require_correction(run, criteria, gate, metrics[gate.name])
        needs_baseline = gate.new_failures or gate.regression_max is not None
        if needs_baseline and baseline is None and not allow_missing_baseline:
            raise criteria.error(
                gate,
                "it needs a baseline, and there is none; add --baseline with a run folder or a "
                "summary.json, or --allow-missing-baseline for a first run",
            )
    if baseline is not None:
        baseline_diff.reject_same_run(run, folder, baseline)
    diff = baseline_diff.diff_against_baseline(run, criteria, baseline)
    measured = baseline_diff.apply_holm(
        [
            _decide_new_failures(diff, gate, gate.new_failures)
            if gate.new_failures
            else _measure_gate(diff, gate, metrics[gate.name])
            for gate in criteria.gates
        ]
    )
    outcomes = tuple(outcome if outcome.reasons else _decide(outcome) for outcome in measured)
    gameable = map(describe_note, _gameable_notes(outcomes))
    notes = (*diff.notes, *gameable, *_ndcg_notes(run, outcomes))
    places = {"run": display_path(redact_url(folder))} if folder is not None else {}
    if baseline is not None:
        places["baseline"] = display_path(redact_url(baseline.path))
    return GateDecision(
        criteria,
        run,
        diff.baseline_run,
        outcomes,
        diff.scope,
        notes,
        places,
        diff.both,
        diff.comparable,
    )


def _gate_value(run: Run, criteria: ShipCriteria, gate: Gate) -> run_metrics.MetricValue:
    """The metric of a gate over the whole run; its name is read if it gives no metric."""
    problem = "its name is not a metric"
    for name in [gate.metric] if gate.metric else metric_candidates(gate.name):
        try:
            return run_metrics.metric_value(run, name)
        except InputError as unknown:
            problem = str(unknown) if gate.metric else problem
    hint = _nearest_metric(run, gate.metric or gate.name)
    if not gate.metric:
        problem += f"; {hint} Add  metric: NAME" if hint else "; add  metric: NAME"
    elif hint and "did you mean" not in problem:
        problem = f"{problem.partition(';')[0]}; {hint}"
    raise criteria.error(gate, problem)


def _nearest_metric(run: Run, name: str) -> str:
    """The suggestion for a name that is no metric; of a rank metric, at the same cutoff."""
    metric, known = metric_candidates(name)[-1], run_metrics.known_metric_names(run)
    _, at, cutoff = metric.partition("@")
    bases = [other.partition("@")[0] for other in known if at and "@" in other]
    return did_you_mean(metric, [*(f"{base}@{cutoff}" for base in bases), *known])


def _check_direction(
    run: Run, criteria: ShipCriteria, gate: Gate, value: run_metrics.MetricValue
) -> None:
    """Raise for a limit that a worse run meets more easily, unless it has both limits."""
    floor, ceiling = gate.threshold is not None, gate.at_most is not None
    problem = ""
    if gate.regression_max is not None and not run_metrics.has_direction(run, value.name):
        problem = (
            f"it is not known whether a higher {value.name} is worse; give a threshold "
            "or at_most instead of regression_max"
        )
    elif floor and not ceiling and value.lower_is_better and value.name not in _TWO_SIDED:
        problem = f"{value.name} is good when low; write at_most instead of threshold"
    elif (
        ceiling
        and not floor
        and not value.lower_is_better
        and run_metrics.is_registered_metric(run, value.name)
    ):
        problem = f"{value.name} is good when high; write threshold instead of at_most"
    if problem:
        raise criteria.error(gate, problem)


def _gameable_notes(outcomes: Sequence[GateOutcome]) -> Iterator[Reason]:
    """Warn if one passage high in the ranking is enough for every gate on retrieval."""
    names = [outcome.metric for outcome in outcomes if run_metrics.is_rank_metric(outcome.metric)]
    has_other = any(
        outcome.metric.startswith("link.retrieval.")
        or (outcome.gate.new_failures and outcome.gate.new_failures.retrieval)
        for outcome in outcomes
    )
    if names and not has_other and {name.partition("@")[0] for name in names} <= {"hit", "mrr"}:
        yield Reason(code="retrieval_is_gameable", metrics=list(dict.fromkeys(names)))


def _ndcg_notes(run: Run, outcomes: Sequence[GateOutcome]) -> Iterator[str]:
    """Say why to look at ndcg@10, if no gate does and one is on another metric of retrieval."""
    bases = {
        outcome.metric.partition("@")[0]
        for outcome in outcomes
        if run_metrics.is_rank_metric(outcome.metric)
    }
    if bases and "ndcg" not in bases:
        recall = score_cases(run.cases, run.traces, ["recall@5"])["recall@5"]
        passed = {link.case_id: not link.failed for link in run.outcomes if link.failed is not None}
        if advice := describe_ndcg_use(ndcg_reasons(run.cases, recall, passed)):
            yield advice


def _measure_gate(
    diff: baseline_diff.BaselineDiff, gate: Gate, whole: run_metrics.MetricValue
) -> GateOutcome:
    """The numbers of a gate, and a reason if they do not decide it."""
    run, metric = select_gate_cases(diff.run, gate), whole.name
    value = whole if run is diff.run else run_metrics.metric_value(run, metric)
    share = _corrected_share(run, diff.run, value)
    earlier = baseline_diff.baseline_value(diff, gate, value)
    shared = run
    if diff.scope and diff.shared is not None:
        shared = select_gate_cases(diff.shared_run, gate)
    now = value if shared is run else run_metrics.metric_value(shared, metric)
    change = baseline_diff.metric_change(diff, gate, now, earlier, shared)
    if share is not None and gate.estimate == "corrected":
        value = replace(value, estimate=share.estimate)
        earlier, change = _corrected_change(diff, gate, value, earlier, change, run)
    judged = missing_values.judged_metrics_behind(run, metric)
    outcome = GateOutcome(
        gate=gate,
        metric=metric,
        passed=False,
        estimate=value.estimate,
        reasons=(),
        baseline=None if earlier is None else earlier.estimate,
        change=change,
        notes=(
            *(diff.judged_otherwise if judged else ()),
            *map(describe_note, _gate_notes(diff, gate, value, run)),
            *map(describe_note, _corrected_notes(diff.run, gate, share)),
        ),
        cases=((*change.unmeasured, *change.worse) if change else ()) or _worst_cases(value),
        lower_is_better=value.lower_is_better,
        numbers_alone=diff.baseline is not None and diff.baseline_run is None,
        corrected=share,
    )
    before = diff.baseline_run
    reason: Reason | None = None
    if not run.cases:
        reason = no_case_reason(gate)
    elif value.estimate.value is None:
        reason = Reason(
            code="not_computed",
            metric=metric,
            corrected=outcome.is_corrected,
            why=value.estimate.reason,
        )
    elif metric.startswith("trust.") and (unproven := _unproven_judge(run)):
        reason = unproven
    elif unjudged := missing_values.unjudged_cases(run, judged):
        reason = missing_values.unfinished_judging(unjudged, metric)
    elif gate.regression_max is not None and (unlike := diff.unlike(metric)):
        reason = unlike
    elif gate.regression_max is not None and shared.cases and now.estimate.value is None:
        reason = Reason(code="not_of_shared", metric=metric, why=now.estimate.reason)
    elif before is not None and gate.regression_max is not None:
        judged = missing_values.judged_metrics_behind(before, metric)
        unjudged = (
            missing_values.unjudged_cases(select_gate_cases(before, gate), judged) & diff.both
        )
        if unjudged:
            unknown = f"how far {metric} changed"
            reason = missing_values.unfinished_judging(unjudged, unknown, "the baseline")
    return outcome if reason is None else replace(outcome, reasons=(reason,))


def _unproven_judge(run: Run) -> Reason | None:
    """Why the run's calibration shows no trust in its judge, whatever its rates are."""
    calibration = calibration_of(run)
    if calibration is None or calibration.verdict not in _UNPROVEN:
        return None
    why = next(iter(calibration.reasons), "").rstrip(".")
    why = f"{why[:1].lower()}{why[1:]}"
    return Reason(code="judge_unproven", verdict=calibration.verdict, why=why)


def _decide(outcome: GateOutcome) -> GateOutcome:
    n, needed = _measured_cases(outcome), outcome.gate.min_cases
    too_few = [*baseline_diff.pair_count_problems(outcome)]
    if needed is not None and n < needed:
        reason = Reason(code="too_few_cases", metric=outcome.metric, n=n, needed=needed)
        too_few.insert(0, reason)
    problems = [*too_few, *_limit_problems(outcome), *baseline_diff.regression_problems(outcome)]
    if problems and len(problems) == len(too_few):  # no question is to blame
        outcome = replace(outcome, cases=())
    return replace(outcome, passed=not problems, reasons=tuple(problems or [_met(outcome)]))


def _measured_cases(outcome: GateOutcome) -> int:
    """The number of cases with a value; the n of a corrected share may be of its labels."""
    share = outcome.corrected if outcome.gate.estimate == "corrected" else None
    return outcome.estimate.n if share is None else share.raw.n


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
        elif sign * (number - limit) < -run_metrics.ROUNDING_TOLERANCE:
            code = "below_floor" if sign > 0 else "above_ceiling"
            shown_end = end if by_end else None
            numbers = {"value": number, "limit": limit, "n": _measured_cases(outcome)}
            yield Reason(code=code, **about, **numbers, end=shown_end)


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
        change=baseline_diff.allowed_change(outcome) or unchecked,
    )


def _worst_cases(value: run_metrics.MetricValue) -> tuple[str, ...]:
    """Cases that worsen the metric, the worst first."""
    best, sign = (0.0, -1.0) if value.lower_is_better else (1.0, 1.0)
    values = (value.of_case or {}).items()
    off = {name: sign * x for name, x in values if x is not None and x != best}
    return tuple(sorted(off, key=lambda name: off[name])[:_MAX_WORST])


def _gate_notes(
    diff: baseline_diff.BaselineDiff, gate: Gate, value: run_metrics.MetricValue, run: Run
) -> Iterator[Reason]:
    metrics = missing_values.judged_metrics_behind(run, value.name)
    if failed := sum(v.status == "failed" and v.metric in metrics for v in run.scores):
        yield Reason(code="verdicts_failed", n=failed)
    yield from missing_values.unmeasured_notes(run, value)
    unexplained = sum(link.unexplained for link in run.outcomes)
    of_mode = value.name.startswith(("link.failures.", "link.owners."))
    if unexplained and of_mode and value.name != "link.failures.passed":
        yield Reason(code="unexplained_failures", n=unexplained, metric=value.name)
    k = metric_cutoff(value.name) if run_metrics.is_rank_metric(value.name) else None
    most = max((len(trace.retrieved) for trace in run.traces), default=0)
    if k is not None and 0 < most < k:
        yield Reason(code="few_retrieved", metric=value.name, k=k, most=most)
    if gate.regression_test == "paired" and diff.both and value.of_case is None:
        yield Reason(code="no_mean_over_questions", metric=value.name)


def _corrected_share(run: Run, whole: Run, value: run_metrics.MetricValue) -> CorrectedRate | None:
    """The corrected share of a metric of `run`, which is `whole` or a selection of it."""
    if linked := _corrected_link_risk(run, value.name):
        return linked
    if value.name not in _calibrated_metrics(whole) or not _is_good_share(value):
        return None
    ids = None if run is whole else frozenset(case.id for case in run.cases)
    return corrected_shares(whole, ids).get(value.name)


def _is_good_share(value: run_metrics.MetricValue) -> bool:
    """Whether a metric is a share of good answers, not a mean of values between 0 and 1."""
    if value.name in GOOD_SHARES.values():
        return True
    values = [x for x in (value.of_case or {}).values() if x is not None]
    return is_binary([(x, x) for x in values]) and not value.lower_is_better


def _require_correction(
    run: Run, criteria: ShipCriteria, gate: Gate, value: run_metrics.MetricValue
) -> None:
    """Raise if a gate needs a corrected number that the run does not have."""
    calibrated = _calibrated_metrics(run)
    share = GOOD_SHARES.get(value.name)
    if gate.estimate != "corrected":
        return
    if _corrected_link_risk(run, value.name):
        path = value.name.replace(".", ".corrected.", 1)
        problem = f"the corrected {value.name} is another metric; write  metric: {path}"
    elif not calibrated:
        problem = f"estimate: corrected needs a calibration; {_CALIBRATE_HINT}"
    elif value.name in calibrated and _is_good_share(value):
        metric = calibrated[value.name]
        why = judge_mismatch(run, run, metric, calibrations_of(run)[metric])
        if why is None:
            return
        problem = f"{why!s}; {_CALIBRATE_HINT}"
    elif share in calibrated:
        problem = (
            f"{value.name} is a mean and is not corrected; write  metric: {share}  for the share "
            "of answers that are good"
        )
    else:
        names = ", ".join(sorted(calibrated))
        problem = f"{value.name} is not calibrated, only {names}; {_CALIBRATE_HINT}"
    raise criteria.error(gate, problem)


def _corrected_change(
    diff: baseline_diff.BaselineDiff,
    gate: Gate,
    value: run_metrics.MetricValue,
    earlier: run_metrics.MetricValue | None,
    change: MetricChange | None,
    run: Run,
) -> tuple[run_metrics.MetricValue | None, MetricChange | None]:
    """Correct the baseline and the change by the calibration of the run."""
    needed, before = gate.regression_max is not None, diff.baseline_run
    if earlier is None:
        return None, None
    if before is None:
        if needed:
            raise diff.missing_error(gate, f"{value.name} that could be corrected")
        return None, None
    metric = _calibrated_metrics(diff.run)[value.name]
    document = calibrations_of(diff.run)[metric]
    if why := judge_mismatch(before, diff.run, metric, document):
        if needed:
            raise diff.criteria.error(
                gate,
                f"the calibration does not correct the baseline: {why!s}; judge the baseline again, "
                "or remove estimate: corrected",
            )
        return None, None
    ids = diff.both & {case.id for case in run.cases}
    seed = manifest_of(diff.run).seed or 0

    def compare(level: float) -> Any:  # run first: a share of good answers falls
        runs = diff.run, before
        return corrected_share_difference(*runs, metric, document, ids, seed=seed, level=level)

    both = compare(change.level if change else 0.95)
    after, share, loss = both.a, both.b, both.difference
    if change is None or loss.value is None or after.value is None or share.value is None:
        reason = loss.reason or share.reason or after.reason or ""
        return replace(earlier, estimate=Estimate.missing(reason, n=share.n)), None
    corrected = replace(
        change,
        drop=loss.value,
        loss_at=lambda level: compare(level).difference,
        means=(share.value, after.value),
    )
    return replace(earlier, estimate=share), corrected


def _corrected_notes(run: Run, gate: Gate, share: CorrectedRate | None) -> Iterator[Reason]:
    """Yield the judge's own number beside a corrected one, or the corrected beside the judge's."""
    if share is None:
        return
    about: dict[str, Any] = {"metric": share.name, "labels": share.labels}
    if gate.estimate == "corrected":
        if (verdict := calibrations_of(run)[share.metric].verdict) in _UNPROVEN:
            yield Reason(code="calibration_warns", metric=share.metric, verdict=verdict)
        if share.raw.value is not None:
            yield Reason(code="raw_share", **about, raw=share.raw.model_dump())
    elif share.estimate.value is not None:
        yield Reason(code="corrected_share", **about, corrected=share.estimate.model_dump())
    else:
        yield Reason(code="share_not_corrected", why=share.estimate.reason)


def _calibrated_metrics(run: Run) -> dict[str, str]:
    """The calibrated metrics of a run, by the name of their share of good answers."""
    return {GOOD_SHARES.get(metric, metric): metric for metric in calibrations_of(run)}


def _corrected_link_risk(run: Run, name: str) -> CorrectedRate | None:
    """A risk of the link corrected for the judge's errors; None if it was not corrected."""
    namespace, _, key = name.partition(".")
    if namespace not in _LINK_METRICS or key not in _LINK_RISKS:
        return None
    link = run_metrics.link_summary(run)[namespace]
    estimate, raw = read_estimate(link["corrected"][key]), read_estimate(link[key])
    metric = _LINK_METRICS[namespace]
    if estimate is None or raw is None or metric not in calibrations_of(run):
        return None
    own = metric in current_calibrations(run)
    method = PREDICTION_POWERED if own else ROGAN_GLADEN
    labels = label_count(calibrations_of(run)[metric])
    note = describe_note(Reason(code="corrected_by_exposure", labels=labels, own=own))
    return CorrectedRate(name, metric, raw, estimate, method, labels, own=own, note=note)


def _decide_new_failures(
    diff: baseline_diff.BaselineDiff, gate: Gate, spec: NewFailures
) -> GateOutcome:
    """Count the cases with a failure mode, or retrieval outcome, that they did not have before.

    A case that the baseline does not have is new. A case that is inconclusive now and did not fail
    before may have failed: the gate passes only if so many are allowed.

    Raises
    ------
    InputError
        The baseline has no cases.
    """
    baseline, run = diff.baseline_run, diff.run
    if diff.baseline is None:
        reason = Reason(code="no_baseline")
        missing: Any = {"estimate": Estimate.missing(reason), "reasons": (reason,)}
        return GateOutcome(gate, "new_failures", passed=True, lower_is_better=True, **missing)
    if baseline is None:
        raise diff.criteria.error(
            gate, "it counts cases, and a summary.json has none; name a run folder as --baseline"
        )
    axis, failing = "failures", frozenset({spec.failure or "failed"})
    outcome_of = (
        run_metrics.LINK_AXES[axis][1]
        if spec.failure
        else lambda link: run_metrics.LINK_STATES[link.failed]
    )
    if spec.retrieval is not None:
        axis, failing = "retrieval", frozenset({spec.retrieval})
        outcome_of = run_metrics.LINK_AXES[axis][1]
    selected = {case.id for case in run.cases if matches_filter(case, spec)}
    by_labels = axis == "failures" and diff.shared is not None
    relabelled = diff.shared.relabelled if by_labels and diff.shared else frozenset[str]()
    selected -= relabelled  # whether these failed by the same labels is not known
    now = {link.case_id: outcome_of(link) for link in run.outcomes if link.case_id in selected}
    earlier = {
        link.case_id: outcome_of(link) for link in baseline.outcomes if link.case_id in diff.both
    }
    known = {name for name, value in now.items() if value not in run_metrics.UNKNOWN_OUTCOMES}
    new = tuple(
        name
        for name, value in now.items()
        if name in known and value in failing and earlier.get(name) not in failing
    )
    unknown = tuple(
        name
        for name in now
        if name not in known
        and earlier.get(name, "inconclusive") not in {*run_metrics.UNKNOWN_OUTCOMES, *failing}
    )
    about = {"allowed": spec.at_most, "failure": spec.failure, "retrieval": spec.retrieval}
    estimate = Estimate(
        value=float(len(new)),
        low=None,
        high=None,
        n=len(known),
        method="count",
        reason=str(Reason(code="count_without_interval")),
    )
    outcome = GateOutcome(
        gate=gate,
        metric="new_failures",
        passed=len(new) + len(unknown) <= spec.at_most,
        estimate=estimate,
        reasons=(Reason(code="new_failures", n=len(new), **about),),
        notes=(
            *map(describe_note, _case_notes(diff, new, len(now) - len(known))),
            *(diff.judged_otherwise if axis == "failures" else ()),
        ),
        cases=(*new, *unknown),
        lower_is_better=True,
    )
    if not selected and not relabelled:
        return replace(outcome, passed=False, reasons=(no_case_reason(spec),))
    if unlike := diff.unlike(f"link.{axis}.passed"):
        return replace(outcome, passed=False, cases=(), reasons=(unlike,))
    metrics = missing_values.judged_metrics_behind(run, f"link.{axis}")
    if unjudged := missing_values.unjudged_cases(select_gate_cases(run, spec), metrics):
        reason = missing_values.unfinished_judging(unjudged, "who fails")
        return replace(outcome, passed=False, reasons=(reason,))
    unjudged = missing_values.unjudged_cases(baseline, metrics)
    unsettled = [n for n in new if n in unjudged and earlier.get(n) in run_metrics.UNKNOWN_OUTCOMES]
    if unsettled:
        reason = missing_values.unfinished_judging(unsettled, "who failed before", "the baseline")
        certain = len(new) - len(unsettled) + len(unknown)
        if certain <= spec.at_most < certain + len(unsettled):
            return replace(outcome, reasons=(reason,))
        outcome = replace(outcome, notes=(*outcome.notes, describe_note(reason)))
    if not known:
        reason = Reason(code="outcomes_unknown", axis=axis)
        return replace(outcome, passed=False, reasons=(reason,))
    if unknown:
        causes = missing_values.unmeasured_cases(run)
        missing = dict(Counter(causes[name] for name in unknown if name in causes))
        reason = Reason(code="inconclusive_now", n=len(unknown), axis=axis, reasons=missing)
        return replace(outcome, reasons=(*outcome.reasons, reason))
    return outcome


def _case_notes(
    diff: baseline_diff.BaselineDiff, new: tuple[str, ...], inconclusive: int
) -> Iterator[Reason]:
    if added := sum(name not in diff.both for name in new):
        yield Reason(code="not_in_baseline", n=added)
    if inconclusive:
        yield Reason(code="inconclusive_not_counted", n=inconclusive)
