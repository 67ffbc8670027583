"""The report of a live experiment as one document: variants, shadows and interleaving compared."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError, known_names
from misslink.live.interleaving import interleaving_results
from misslink.live.log import Exposure, LiveData, read_live
from misslink.live.metrics import (
    GUARDS,
    Guardrail,
    LiveMetric,
    MeasuredUnits,
    SortedUnits,
    Unit,
    guardrail,
    measure,
    metrics_of,
    read_past,
    sort_units,
)
from misslink.live.offline import OfflineRun, disagreements, offline_metrics, read_offline
from misslink.live.verdict import (
    anomaly_notes,
    describe_other_evidence,
    describe_sample_ratio,
    verdict,
)
from misslink.stats import experiments
from misslink.stats.intervals import proportion
from misslink.stats.paired_tests import holm
from misslink.types import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MANY_MOVED = 0.01
_Pair = tuple[Exposure, Exposure]  # a request, and its shadow


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
    tuned_for: float = experiments.TUNED_FOR
    detect: float | None = None
    k: int = 5


def live_report(
    log: str | Path, experiment: str | None = None, options: ReportOptions = ReportOptions()
) -> dict[str, object]:
    """Report on one experiment of a live log; raise InputError for a wrong log or option."""
    live = read_live(log, experiment)
    names = [variant.name for variant in live.variants]
    base, alpha = options.control or live.control, options.alpha
    if base not in names:
        raise InputError(f"--control '{base}' is not a variant here; {known_names(base, names)}")
    runs = read_offline(options.offline, names)
    sorted_units = sort_units(live)
    metrics = metrics_of(sorted_units.units, options.lower_is_better)
    if options.primary is not None:
        measured = [metric.name for metric in metrics]
        if options.primary not in measured:
            hint = (
                known_names(options.primary, measured) if measured else "there is no feedback yet"
            )
            raise InputError(
                f"--primary '{options.primary}' is not measured in this experiment; {hint}"
            )
        metrics.sort(key=lambda metric: metric.name != options.primary)
    guards = _guards([guardrail(given) for given in options.guardrails], metrics)
    past = None
    if options.pre is not None:
        past = read_past(options.pre, live, [metric.name for metric in (*metrics, *GUARDS)])
    ratio = experiments.sample_ratio_test(sorted_units.strata)
    comparisons = _comparisons(
        live, sorted_units.units, metrics, guards, past, replace(options, control=base)
    )
    for comparison in comparisons:
        comparison["offline"] = offline_metrics(runs, base, comparison["variant"])
        comparison["disagreements"] = disagreements(
            comparison["offline"], comparison["metrics"], base, comparison["variant"]
        )
    lead = metrics[0].name if metrics else None
    lists = interleaving_results(live, alpha=alpha)
    shadows = shadow_results(live, options.k, alpha=alpha)
    words = describe_sample_ratio(ratio, sorted_units.strata)
    observed = Counter(unit.variant for unit in sorted_units.units)
    times = [exposure.at for exposure in live.exposures]
    first, last = (
        dt.datetime.fromtimestamp(end(times), dt.UTC).isoformat() if times else None
        for end in (min, max)
    )
    return {
        "experiment": live.experiment,
        "control": base,
        "alpha": alpha,
        "tuned_for": options.tuned_for,
        "fewest_units": experiments.MIN_SEQUENTIAL_UNITS,
        "primary": lead,
        "from": first,
        "to": last,
        "read_at": live.read_at.isoformat(),
        "verdict": verdict(
            comparisons,
            control=base,
            primary=lead,
            is_broken=ratio.is_broken,
            ratio_words=words,
            other_evidence=describe_other_evidence(lists, shadows, alpha),
        ),
        "sample_ratio": {
            "p": ratio.p,
            "p_sequential": ratio.p_sequential,
            "method": ratio.method,
            "broken": ratio.is_broken,
            "expected": dict(ratio.expected),
            "observed": {name: observed[name] for name in ratio.expected},
            "sentence": words,
        },
        "variants": [_variant(name, live, sorted_units, runs, 1 - alpha) for name in names],
        "comparisons": comparisons,
        "interleaving": lists,
        "shadows": shadows,
        "odd": dict(sorted_units.odd),
        "notes": _notes(live, sorted_units, comparisons),
    }


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
    units: Sequence[Unit],
    metrics: Sequence[LiveMetric],
    guards: Sequence[tuple[LiveMetric, Guardrail | None]],
    past: Mapping[str, Mapping[str, float]] | None,
    options: ReportOptions,
) -> list[dict[str, Any]]:
    control, seen = str(options.control), {unit.variant for unit in units}
    if control not in seen:
        return []
    rows = []
    treatments = [variant.name for variant in live.variants if variant.name in seen - {control}]
    is_weighted = split_changed(live, units)
    for name in treatments:
        weights = overlap_weights(live, units, control, name) if is_weighted else None
        measured = [measure(metric, units, weights, past) for metric in metrics]
        tests = len(metrics) * len(treatments)
        watched = [(measure(metric, units, weights), guard) for metric, guard in guards]
        rows.append(
            {
                "variant": name,
                "weighted": is_weighted,
                "metrics": {
                    result.metric.name: compare_variants(result, name, options, tests=tests)
                    for result in measured
                },
                "guardrails": [
                    check_guardrail(result, name, options, guard)
                    for result, guard in watched
                    if guard is not None or len(result.at)
                ],
                "over_time": difference_over_time(measured[0], name, options) if measured else [],
            }
        )
    adjust_with_holm(rows, options.alpha)
    return rows


def _variant(
    name: str,
    live: LiveData,
    sorted_units: SortedUnits,
    runs: Mapping[str, OfflineRun],
    level: float,
) -> dict[str, object]:
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
        "offline": runs[name].document() if name in runs else None,
    }


def _notes(
    live: LiveData, sorted_units: SortedUnits, comparisons: Sequence[Mapping[str, Any]]
) -> list[str]:
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
    for comparison in comparisons:
        primary = next(iter(comparison["metrics"]), None)
        notes += [
            f"Offline {disagreement['offline']} and live {primary} of {comparison['variant']} point "
            "different ways, which chance may explain."
            for disagreement in comparison["disagreements"]
            if not disagreement["is_clear"] and disagreement["live"] == primary
        ]
    return notes


def split_changed(live: LiveData, units: Sequence[Unit]) -> bool:
    """Whether requests that count came under different planned splits, as a ramp's do."""
    splits = list(_planned_splits(live, units).values())
    return any(split != splits[0] for split in splits)


def overlap_weights(
    live: LiveData, units: Sequence[Unit], control: str, variant: str
) -> dict[str, float]:
    """Weigh each request by how likely its like was to come to the other variant.

    While a ramp grows, control's requests are early ones and the variant's late ones, so that a
    trend over time would look like a difference. Of units that first came under one split and
    asked under another, a variant holds the smaller of its two shares, since the hash moves units
    only towards what grew, and each counts only where it was first. Weighted by the other
    variant's part, both sides have the same mix of first and present splits.

    Parameters
    ----------
    live : Live
    units : sequence of Unit
    control, variant : str

    Returns
    -------
    dict
        Exposure -> weight, in [0, 1]. The same for all of a variant while the split is the same.

    References
    ----------
    Li, Morgan and Zaslavsky (2018), Balancing covariates via propensity score weighting (overlap
    weights).
    """
    splits = _planned_splits(live, units)
    weights: dict[str, float] = {}
    for unit in units:
        if unit.variant not in (control, variant):
            continue
        other = variant if unit.variant == control else control
        first = splits[_split_key(unit.requests[0])]
        for request in unit.requests:
            now = splits[_split_key(request)]
            overlap = min(first.get(unit.variant, 0.0), now.get(unit.variant, 0.0))
            other_part = min(first.get(other, 0.0), now.get(other, 0.0))
            both = overlap + other_part
            weights[request.id] = other_part / both if both else 0.0
    return weights


def _planned_splits(
    live: LiveData, units: Sequence[Unit]
) -> dict[tuple[int, float], dict[str, float]]:
    requests = {_split_key(request): request for unit in units for request in unit.requests}
    return {key: live.planned(request) for key, request in requests.items()}


def _split_key(request: Exposure) -> tuple[int, float]:
    return request.plan, request.open_share


_LOOKS = 60  # points of the drawing
_DAY_S = 86_400.0
_DEFAULT_EFFECT = 0.05  # of control's value: the effect that is looked for unless another is given


def compare_variants(
    measured: MeasuredUnits, variant: str, options: ReportOptions, *, tests: int = 1
) -> dict[str, object]:
    """Compare one metric of a variant with control, adjusted by the past where that is known.

    `adjust_with_holm` adds ``p_holm`` and ``winner``.
    """
    (control, at_control), (treated, at_treated) = (
        measured.values(str(options.control)),
        measured.values(variant),
    )
    raw, sequential_p = _sequential_test(measured, control, treated, options)
    fixed, p = experiments.welch_test(control, treated, level=1 - options.alpha)
    before = [[measured.before[place] for place in places] for places in (at_control, at_treated)]
    difference, sides, explained = raw, (control, treated), None
    if len(control) and len(treated) and (result := experiments.cuped(control, treated, *before)):
        sides = result.control, result.variant
        difference, sequential_p = _sequential_test(measured, *sides, options)
        adjusted, adjusted_p = experiments.welch_test(*sides, level=1 - options.alpha)
        explained = {
            "theta": result.theta,
            "variance_reduction": result.reduction,
            "units_known": result.known,
            "units_missing": result.missing,
            "fixed": {"difference": adjusted.model_dump(), "p": adjusted_p},
        }
    return {
        "better": measured.metric.better,
        **_variant_means(measured, control, treated, options),
        "fixed": {"difference": fixed.model_dump(), "p": p},
        "always_valid": {
            "difference": difference.model_dump(),
            "p": sequential_p,
            "unadjusted": raw.model_dump(),
        },
        "cuped": explained,
        "needed": _units_needed(sides, control, measured.units, options, tests),
    }


def _sequential_test(
    measured: MeasuredUnits,
    control: NDArray[Any],
    variant: NDArray[Any],
    options: ReportOptions,
    times: float = 1.0,
) -> tuple[Estimate, float | None]:
    return experiments.sequential_test(
        control,
        variant,
        alpha=options.alpha,
        tuned_for=options.tuned_for,
        times=times,
        is_share=measured.metric.unit == "share",
    )


def _variant_means(
    measured: MeasuredUnits, control: NDArray[Any], treated: NDArray[Any], options: ReportOptions
) -> dict[str, object]:
    metric = measured.metric
    means = {
        name: experiments.unit_mean(
            values, level=1 - options.alpha, bounds=metric.bounds
        ).model_dump()
        for name, values in (("control", control), ("variant", treated))
    }
    return {"unit": metric.unit, "words": metric.words, **means}


def adjust_with_holm(comparisons: Sequence[dict[str, Any]], alpha: float) -> None:
    """Enter ``p_holm`` and ``winner`` into metrics, corrected over all of them."""
    metrics = [metric for comparison in comparisons for metric in comparison["metrics"].values()]
    corrected = holm([metric["always_valid"]["p"] for metric in metrics])
    for metric, p in zip(metrics, corrected, strict=True):
        metric["p_holm"] = p
        metric["winner"] = None
        if p is not None and p <= alpha:
            is_more = metric["always_valid"]["difference"]["value"] > 0
            metric["winner"] = "variant" if is_more == (metric["better"] == "high") else "control"


def check_guardrail(
    measured: MeasuredUnits, variant: str, options: ReportOptions, guard: Guardrail | None
) -> dict[str, object]:
    """Test non-inferiority of a guardrail's metric with its margin; valid at any time."""
    if guard is not None and measured.metric.better != "low":
        raise InputError(
            f"a higher {guard.metric} is better, so at_most cannot limit it; use latency, errors, "
            "cost or reformulations"
        )
    (control, _), (treated, _) = measured.values(str(options.control)), measured.values(variant)
    difference, _ = _sequential_test(measured, control, treated, options)
    margin = None if guard is None else guard.margin
    status = "no margin"
    if guard is not None:
        limit, against = guard.margin, difference
        if guard.is_relative:
            times, limit = 1 + guard.margin, 0.0
            against, _ = _sequential_test(measured, control, treated, options, times)
        status = "open"
        if against.high is not None and against.high <= limit:
            status = "holds"
        elif against.low is not None and against.low > limit:
            status = "broken"
    return {
        "metric": measured.metric.name,
        **_variant_means(measured, control, treated, options),
        "margin": margin,
        "is_relative": guard is not None and guard.is_relative,
        "difference": difference.model_dump(),
        "status": status,
    }


def difference_over_time(
    measured: MeasuredUnits, variant: str, options: ReportOptions
) -> list[dict[str, Any]]:
    """The sequential interval as it stood after more and more units, without CUPED."""
    import numpy as np

    names = (str(options.control), variant)
    since = [unit.since for unit in measured.units if unit.variant in names]
    rows = []
    for count in np.unique(np.linspace(1, len(since), min(_LOOKS, len(since))).round().astype(int)):
        until = math.inf if count == len(since) else since[count - 1]
        control, treated = (measured.values(name, until)[0] for name in names)
        difference, _ = _sequential_test(measured, control, treated, options)
        rows.append(
            {"units": int(count), "at": since[count - 1], "difference": difference.model_dump()}
        )
    return rows


def _units_needed(
    sides: tuple[NDArray[Any], NDArray[Any]],
    plain_control: NDArray[Any],
    units: Sequence[Unit],
    options: ReportOptions,
    tests: int,
) -> dict[str, Any] | None:
    """How many more units a difference worth finding takes, at the present rate and split."""
    control, treated = sides
    if min(len(control), len(treated)) < 2:
        return None
    spread = float(control.var(ddof=1)) / len(control) + float(treated.var(ddof=1)) / len(treated)
    effect = options.detect
    if effect is None:
        effect = _DEFAULT_EFFECT * abs(float(plain_control.mean()))
    now = experiments.balanced_units(len(control), len(treated))
    total = None
    if spread and effect:
        total = experiments.units_needed(
            effect, math.sqrt(spread), now, alpha=options.alpha / tests, tuned_for=options.tuned_for
        )
    if total is None:
        return None
    count = len(control) + len(treated)
    more = max(0, math.ceil(count * (total / now - 1)))
    days = (units[-1].since - units[0].since) / _DAY_S
    return {
        "effect": effect,
        "units_now": count,
        "more_units": more,
        "more_days": more * days / count if days > 0 else None,
    }


def shadow_results(live: LiveData, k: int, *, alpha: float = 0.05) -> list[dict[str, Any]]:
    """Compare each shadow with the requests it shadowed; intervals cluster requests by unit."""
    level = 1 - alpha
    requests_by_id = {
        exposure.id: exposure for exposure in live.exposures if exposure.mode != "shadow"
    }
    shadows_by_variant: dict[str, list[Exposure]] = defaultdict(list)
    for exposure in live.exposures:
        if exposure.mode == "shadow" and exposure.variant is not None:
            shadows_by_variant[exposure.variant].append(exposure)
    rows = []
    for variant, shadows in sorted(shadows_by_variant.items()):
        ran = [shadow for shadow in shadows if shadow.outcome != "dropped"]
        pairs = [(requests_by_id[each.of], each) for each in ran if each.of in requests_by_id]
        both = [pair for pair in pairs if pair[0].outcome != "left"]
        fine = [pair for pair in both if all(exposure.outcome == "ok" for exposure in pair)]
        rows.append(
            {
                "variant": variant,
                "shadows": len(shadows),
                "dropped": proportion(
                    len(shadows) - len(ran), len(shadows), level=level
                ).model_dump(),
                "without_request": len(ran) - len(pairs),
                "errors": _compare_pairs(both, _is_error, level, (0.0, 1.0), (-1.0, 1.0)),
                "latency_s": _compare_pairs(fine, lambda exposure: exposure.latency_s, level),
                "k": k,
                "overlap": _mean_by_unit(fine, lambda pair: _overlap(pair, k), level, (0.0, 1.0)),
            }
        )
    return rows


def _compare_pairs(
    pairs: Sequence[_Pair],
    value_of: Callable[[Exposure], float | None],
    level: float,
    bounds: tuple[float, float] | None = None,
    difference_bounds: tuple[float, float] | None = None,
) -> dict[str, object]:
    """The mean of shadows, of the requests that were served, and of their differences."""

    def difference(pair: _Pair) -> float | None:
        served, shadow = map(value_of, pair)
        return None if served is None or shadow is None else shadow - served

    return {
        "shadow": _mean_by_unit(pairs, lambda pair: value_of(pair[1]), level, bounds),
        "served": _mean_by_unit(pairs, lambda pair: value_of(pair[0]), level, bounds),
        "difference": _mean_by_unit(pairs, difference, level, difference_bounds),
    }


def _mean_by_unit(
    pairs: Sequence[_Pair],
    value_of: Callable[[_Pair], float | None],
    level: float,
    bounds: tuple[float, float] | None = None,
) -> dict[str, object]:
    values: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        if (value := value_of(pair)) is not None:
            values[pair[0].unit or f"request {pair[0].id}"].append(value)
    means = experiments.unit_values([*map(sum, values.values())], [*map(len, values.values())])
    return experiments.unit_mean(means, level=level, bounds=bounds).model_dump()


def _is_error(exposure: Exposure) -> float:
    return float(exposure.outcome in ("failed", "fell_back"))


def _overlap(pair: _Pair, k: int) -> float | None:
    """Share of the first k passages that both have; of the longer list where both are shorter."""
    served, shadow = pair[0].retrieved, pair[1].retrieved
    if served is None or shadow is None:
        return None
    first, second = set(served[:k]), set(shadow[:k])
    longest = max(len(first), len(second))
    return len(first & second) / longest if longest else None
