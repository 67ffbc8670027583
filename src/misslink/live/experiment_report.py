"""The report of a live experiment as one document."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError, known_names
from misslink.live.comparison import (
    ComparisonSettings,
    PastValue,
    adjust_with_holm,
    check_guardrail,
    compare_variants,
    difference_over_time,
    interleaving_results,
    overlap_weights,
    shadow_results,
    split_changed,
)
from misslink.live.log import LiveData, read_live
from misslink.live.metrics import (
    GUARDS,
    Guardrail,
    LiveMetric,
    PastFile,
    SortedUnits,
    guardrail,
    measure,
    metrics_of,
    sort_units,
)
from misslink.live.offline import OfflineRun, disagreements, offline_metrics, read_offline
from misslink.live.verdict import (
    anomaly_notes,
    describe_other_evidence,
    describe_sample_ratio,
    verdict,
)
from misslink.stats.experiments import (
    MIN_SEQUENTIAL_UNITS,
    TUNED_FOR,
    SampleRatioTest,
    sample_ratio_test,
)
from misslink.stats.intervals import proportion

_MANY_MOVED = 0.01


@dataclass(frozen=True)
class ReportOptions:
    """What a live report compares, and how.

    Parameters
    ----------
    control : str or None
        The variant to compare the others with. None: the experiment's.
    primary : str or None
        User metric that decides. None: the most important one that has feedback.
    guardrails : sequence of str
        As `misslink.live.metrics.guardrail` reads them: ``latency:at_most=0.2``.
    lower_is_better : sequence of str
        Custom feedback kinds where lower is better.
    pre : Path or None
        CSV or JSONL with a value of each unit from before the experiment, for CUPED. None: the
        requests from before the ramp opened.
    offline : sequence of str
        ``VARIANT=FOLDER`` of runs of misslink evaluate.
    alpha : float
        Chance of a false alarm over all looks, in (0, 1).
    tuned_for : float
        Units near which the sequential interval is narrowest.
    detect : float or None
        Smallest difference of the primary metric worth finding. None: 5% of control's value.
    k : int
        How many passages of a shadow and its request are compared.
    """

    control: str | None = None
    primary: str | None = None
    guardrails: Sequence[str] = ()
    lower_is_better: Sequence[str] = ()
    pre: Path | None = None
    offline: Sequence[str] = ()
    alpha: float = 0.05
    tuned_for: float = TUNED_FOR
    detect: float | None = None
    k: int = 5


def live_report(
    log: str | Path, experiment: str | None = None, options: ReportOptions = ReportOptions()
) -> dict[str, Any]:
    """Report on one experiment of a live log; raise InputError for a wrong log or option."""
    live = read_live(log, experiment)
    names = [variant.name for variant in live.variants]
    base, alpha = options.control or live.control, options.alpha
    if base not in names:
        raise InputError(f"--control '{base}' is no variant here; {known_names(base, names)}")
    runs = read_offline(options.offline, names)
    sorted_units = sort_units(live)
    metrics = _order_metrics(
        metrics_of(sorted_units.units, options.lower_is_better), options.primary
    )
    guards = _guards([guardrail(given) for given in options.guardrails], metrics)
    past: PastValue | None = None
    if options.pre is not None:
        past = PastFile(options.pre, live, [metric.name for metric in (*metrics, *GUARDS)])
    setting = ComparisonSettings(base, alpha, options.tuned_for, options.detect, past)
    ratio = sample_ratio_test(sorted_units.strata)
    comparisons = _comparisons(live, sorted_units, metrics, guards, setting)
    for comparison in comparisons:
        comparison["offline"] = offline_metrics(runs, base, comparison["variant"])
        comparison["disagreements"] = disagreements(
            comparison["offline"], comparison["metrics"], base, comparison["variant"]
        )
    lead = metrics[0].name if metrics else None
    lists = interleaving_results(live, alpha=alpha)
    shadows = shadow_results(live, options.k, alpha=alpha)
    words = describe_sample_ratio(ratio, sorted_units.strata)
    return {
        "experiment": live.experiment,
        "control": base,
        "alpha": alpha,
        "tuned_for": options.tuned_for,
        "fewest_units": MIN_SEQUENTIAL_UNITS,
        "primary": lead,
        **_period(live),
        "verdict": verdict(
            comparisons,
            control=base,
            primary=lead,
            is_broken=ratio.is_broken,
            ratio_words=words,
            other_evidence=describe_other_evidence(lists, shadows, alpha),
        ),
        "sample_ratio": _sample_ratio_document(ratio, words, sorted_units),
        "variants": [_variant(name, live, sorted_units, runs, 1 - alpha) for name in names],
        "comparisons": comparisons,
        "interleaving": lists,
        "shadows": shadows,
        "odd": dict(sorted_units.odd),
        "notes": [*_notes(live, sorted_units), *_chance_notes(comparisons)],
    }


def _order_metrics(metrics: list[LiveMetric], primary: str | None) -> list[LiveMetric]:
    """The metrics, the primary one first."""
    if primary is None:
        return metrics
    names = [metric.name for metric in metrics]
    if primary not in names:
        hint = known_names(primary, names) if names else "there is no feedback yet"
        raise InputError(f"--primary '{primary}' is not measured in this experiment; {hint}")
    return sorted(metrics, key=lambda metric: metric.name != primary)


def _guards(
    given: Sequence[Guardrail], metrics: Sequence[LiveMetric]
) -> list[tuple[LiveMetric, Guardrail | None]]:
    """All guardrails: those given with their margins, the usual ones without."""
    metrics_by_name = {metric.name: metric for metric in (*GUARDS, *metrics)}
    chosen: dict[str, Guardrail] = {}
    for name in given:
        if name.metric not in metrics_by_name:
            raise InputError(
                f"--guardrail names '{name.metric}'; {known_names(name.metric, list(metrics_by_name))}"
            )
        if name.metric in chosen:
            raise InputError(f"--guardrail names {name.metric} twice. Set one margin.")
        chosen[name.metric] = name
    watched = [
        metrics_by_name[name]
        for name in (*chosen, *(m.name for m in GUARDS if m.name not in chosen))
    ]
    return [(metric, chosen.get(metric.name)) for metric in watched]


def _comparisons(
    live: LiveData,
    sorted_units: SortedUnits,
    metrics: Sequence[LiveMetric],
    guards: Sequence[tuple[LiveMetric, Guardrail | None]],
    setting: ComparisonSettings,
) -> list[dict[str, Any]]:
    seen = {unit.variant for unit in sorted_units.units}
    if setting.control not in seen:
        return []
    rows = []
    tests = len(metrics) * sum(v.name != setting.control and v.name in seen for v in live.variants)
    is_weighted = split_changed(live, sorted_units.units)
    for variant in live.variants:
        name = variant.name
        if name == setting.control or name not in seen:
            continue
        weights = (
            overlap_weights(live, sorted_units.units, setting.control, name)
            if is_weighted
            else None
        )
        measured = [measure(metric, sorted_units.units, weights) for metric in metrics]
        watched = [
            (measure(metric, sorted_units.units, weights), guard) for metric, guard in guards
        ]
        rows.append(
            {
                "variant": name,
                "weighted": is_weighted,
                "metrics": {
                    metric.metric.name: compare_variants(
                        metric, sorted_units.units, name, setting, tests=tests
                    )
                    for metric in measured
                },
                "guardrails": [
                    check_guardrail(metric, sorted_units.units, name, setting, guard)
                    for metric, guard in watched
                    if guard is not None or len(metric.at)
                ],
                "over_time": difference_over_time(measured[0], sorted_units.units, name, setting)
                if measured
                else [],
            }
        )
    adjust_with_holm(rows, setting.alpha)
    return rows


def _variant(
    name: str,
    live: LiveData,
    sorted_units: SortedUnits,
    runs: Mapping[str, OfflineRun],
    level: float,
) -> dict[str, Any]:
    plan = next(variant for variant in live.variants if variant.name == name)
    units = [unit for unit in sorted_units.units if unit.variant == name]
    requests = [request for unit in units for request in unit.requests]
    with_feedback = {request.exposure for unit in units for request in unit.feedback}
    answered = sum(request.id in with_feedback for request in requests)
    return {
        "name": name,
        "planned": plan.planned,
        "shadow": plan.shadow,
        "is_control": plan.is_control,
        "units": len(units),
        "requests": len(requests),
        "fell_back": sum(request.outcome == "fell_back" for request in requests),
        "failed": sum(request.outcome == "failed" for request in requests),
        "left": sum(request.outcome == "left" for request in requests),
        "with_feedback": proportion(answered, len(requests), level=level).model_dump(),
        "offline": dict(runs[name].about) if name in runs else None,
    }


def _sample_ratio_document(
    ratio: SampleRatioTest, words: str, sorted_units: SortedUnits
) -> dict[str, Any]:
    observed: dict[str, int] = {}
    for unit in sorted_units.units:
        observed[unit.variant] = observed.get(unit.variant, 0) + 1
    return {
        "p": ratio.p,
        "p_sequential": ratio.p_sequential,
        "method": ratio.method,
        "broken": ratio.is_broken,
        "expected": dict(ratio.expected),
        "observed": {name: observed.get(name, 0) for name in ratio.expected},
        "sentence": words,
    }


def _period(live: LiveData) -> dict[str, Any]:
    times = [exposure.at for exposure in live.exposures]
    ends = (min(times), max(times)) if times else (None, None)
    first, last = (
        None if end is None else dt.datetime.fromtimestamp(end, dt.UTC).isoformat() for end in ends
    )
    return {"from": first, "to": last, "read_at": live.read_at.isoformat()}


def _chance_notes(comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where offline and live point different ways, as chance may have it."""
    return [
        f"Offline {disagreement['offline']} and live {disagreement['live']} of {comparison['variant']} point different "
        "ways, which chance may explain."
        for comparison in comparisons
        for disagreement in comparison["disagreements"]
        if not disagreement["is_clear"]
        and disagreement["live"] == next(iter(comparison["metrics"]))
    ]


def _notes(live: LiveData, sorted_units: SortedUnits) -> list[str]:
    notes = anomaly_notes(sorted_units.odd)
    if not live.exposures:
        notes.append("No request has been logged yet.")
    moved = sorted_units.odd.get("units_in_several_variants", 0)
    if moved > _MANY_MOVED * len(sorted_units.units):
        why = (
            "a ramp moves users out of control"
            if any(plan.ramp for plan in live.plans)
            else "the usual reasons are ids that change, or a changed split"
        )
        notes.append(f"More than 1% of users were in several variants: {why}.")
    if split_changed(live, sorted_units.units):
        notes.append(
            "The split or the ramp changed during the experiment. Requests are weighted so that "
            "both variants are compared over the same times."
        )
    if len({plan.salt_check for plan in live.plans}) > 1:
        notes.append(
            "The salt changed during the experiment. Users from before the change count again."
        )
    return notes
