"""Correct shares of good answers for the judge's errors, in gates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from misslink.calibration.corrected_prevalence import (
    CorrectedDifference,
    corrected_share_difference,
    judge_mismatch,
)
from misslink.calibration.stored_calibration import (
    PREDICTION_POWERED,
    ROGAN_GLADEN,
    CorrectedRate,
    corrected_shares,
    label_count,
    own_calibrations,
    read_estimate,
)
from misslink.compare.compare_runs import is_binary
from misslink.compare.run_metrics import MetricValue, link_summary, manifest_int
from misslink.documents import calibrations_of
from misslink.gate.baseline_diff import BaselineDiff
from misslink.gate.criteria import Gate, ShipCriteria
from misslink.gate.outcome import MetricChange
from misslink.metrics import GOOD_SHARES
from misslink.render.format import format_values
from misslink.render.reasons import count_labels
from misslink.types import Estimate, Run

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


def corrected_share(run: Run, whole: Run, value: MetricValue) -> CorrectedRate | None:
    """Return the corrected share of a metric of `run`, which is `whole` or a selection of it."""
    if linked := _corrected_link_risk(run, value.name):
        return linked
    if value.name not in _calibrated_metrics(whole) or not is_good_share(value):
        return None
    ids = None if run is whole else frozenset(case.id for case in run.cases)
    return corrected_shares(whole, ids).get(value.name)


def is_good_share(value: MetricValue) -> bool:
    """Whether a metric is a share of good answers, not a mean of values between 0 and 1."""
    if value.name in GOOD_SHARES.values():
        return True
    values = [x for x in (value.of_case or {}).values() if x is not None]
    return is_binary([(x, x) for x in values]) and not value.lower_is_better


def require_correction(run: Run, criteria: ShipCriteria, gate: Gate, value: MetricValue) -> None:
    """Raise InputError if a gate needs a corrected number that the run does not have."""
    calibrated = _calibrated_metrics(run)
    share = GOOD_SHARES.get(value.name)
    if gate.estimate != "corrected":
        return
    if _corrected_link_risk(run, value.name):
        path = value.name.replace(".", ".corrected.", 1)
        problem = f"the corrected {value.name} is another metric; write  metric: {path}"
    elif not calibrated:
        problem = f"estimate: corrected needs a calibration; {_CALIBRATE_HINT}"
    elif value.name in calibrated and is_good_share(value):
        metric = calibrated[value.name]
        why = judge_mismatch(run, run, metric, calibrations_of(run)[metric])
        if why is None:
            return
        problem = f"{why}; {_CALIBRATE_HINT}"
    elif share in calibrated:
        problem = (
            f"{value.name} is a mean and is not corrected; write  metric: {share}  for the share "
            "of answers that are good"
        )
    else:
        names = ", ".join(sorted(calibrated))
        problem = f"{value.name} is not calibrated, only {names}; {_CALIBRATE_HINT}"
    raise criteria.error(gate, problem)


def corrected_change(
    diff: BaselineDiff,
    gate: Gate,
    value: MetricValue,
    earlier: MetricValue | None,
    change: MetricChange | None,
    run: Run,
) -> tuple[MetricValue | None, MetricChange | None]:
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
                f"the calibration does not correct the baseline: {why}; judge the baseline again, "
                "or remove estimate: corrected",
            )
        return None, None
    ids = diff.both & {case.id for case in run.cases}
    seed = manifest_int(diff.run, "seed", 0)

    def compare(level: float) -> CorrectedDifference:  # run first: a share of good answers falls
        runs = diff.run, before
        return corrected_share_difference(*runs, metric, document, ids, seed=seed, level=level)

    both = compare(change.level if change else 0.95)
    after, share, loss = both.a, both.b, both.difference
    if change is None or loss.value is None or after.value is None or share.value is None:
        reason = loss.reason or share.reason or after.reason or "it is not measured"
        return replace(earlier, estimate=Estimate.missing(reason, n=share.n)), None
    corrected = replace(
        change,
        drop=loss.value,
        loss_at=lambda level: compare(level).difference,
        means=(share.value, after.value),
    )
    return replace(earlier, estimate=share), corrected


def corrected_notes(run: Run, gate: Gate, share: CorrectedRate | None) -> Iterator[str]:
    """Yield the judge's own number beside a corrected one, or the corrected beside the judge's."""
    if share is None:
        return
    labels = count_labels(share.labels)
    if gate.estimate == "corrected":
        if calibrations_of(run)[share.metric].verdict == "do not use":
            yield (
                f"Warning: its calibration of {share.metric} says not to use this judge, so do not "
                "rely on the corrected share; misslink calibrate gives the reasons."
            )
        if share.raw.value is not None:
            yield (
                f"By the judge alone it is {format_share_interval(share.name, share.raw)}; corrected "
                f"by {labels}."
            )
    elif share.estimate.value is not None:
        interval = format_share_interval(share.name, share.estimate)
        yield f"Corrected for the judge's errors it is {interval}, by {labels}."
    else:
        yield f"It could not be corrected for the judge's errors: {share.estimate.reason}."


def format_share_interval(name: str, share: Estimate) -> str:
    """Format a share with its interval, such as '74% [67, 81]'."""
    if share.value is None:
        return "not known"
    if share.low is None or share.high is None:
        return format_values(name, share.value)[0]
    ends = (share.value, share.low, share.high)
    value, low, high = (format_values(name, number)[0] for number in ends)
    return f"{value} [{low.removesuffix('%')}, {high.removesuffix('%')}]"


def _calibrated_metrics(run: Run) -> dict[str, str]:
    """The calibrated metrics of a run, by the name of their share of good answers."""
    return {GOOD_SHARES.get(metric, metric): metric for metric in calibrations_of(run)}


def _corrected_link_risk(run: Run, name: str) -> CorrectedRate | None:
    """A risk of the link corrected for the judge's errors; None if it was not corrected."""
    namespace, _, key = name.partition(".")
    if namespace not in _LINK_METRICS or key not in _LINK_RISKS:
        return None
    link = link_summary(run)[namespace]
    estimate, raw = read_estimate(link["corrected"][key]), read_estimate(link[key])
    metric = _LINK_METRICS[namespace]
    if estimate is None or raw is None or metric not in calibrations_of(run):
        return None
    own = metric in own_calibrations(run)
    method = PREDICTION_POWERED if own else ROGAN_GLADEN
    labels = label_count(calibrations_of(run)[metric])
    whose = "this run's verdicts" if own else "another run"
    note = f"At each exposure by itself, from {labels:,} labels of {whose}."
    return CorrectedRate(name, metric, raw, estimate, method, labels, own=own, note=note)
