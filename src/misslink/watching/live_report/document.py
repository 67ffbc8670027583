"""What a live log says of its variants, as one document: the ground of every face of the report."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.errors import InputError, known_names
from misslink.stats.proportions import proportion
from misslink.stats.sample_ratio import SampleRatio, sample_ratio
from misslink.stats.sequential import FEWEST, TUNED_FOR
from misslink.watching.live.log import read_live
from misslink.watching.live.records import Live
from misslink.watching.live_report.beside import interleaved, shadowed
from misslink.watching.live_report.compare import (
    Past,
    Setting,
    compared,
    guarded,
    over_time,
    with_holm,
)
from misslink.watching.live_report.metrics import (
    GUARDS,
    Guardrail,
    LiveMetric,
    guardrail,
    measure,
    metrics_of,
)
from misslink.watching.live_report.offline import Offline, disagreements, offline_of, read_offline
from misslink.watching.live_report.past import PastFile
from misslink.watching.live_report.units import Sorted, sort_out
from misslink.watching.live_report.verdict import beside_words, noted, ratio_words, verdict
from misslink.watching.live_report.weights import overlap_weights, split_changed

__all__ = ["live_report"]

_MANY_MOVED = 0.01


def live_report(
    log: str | Path,
    experiment: str | None = None,
    *,
    control: str | None = None,
    primary: str | None = None,
    guardrails: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    pre: Path | None = None,
    offline: Sequence[str] = (),
    alpha: float = 0.05,
    tuned_for: float = TUNED_FOR,
    detect: float | None = None,
    k: int = 5,
) -> dict[str, Any]:
    """Report on one experiment of a live log.

    Parameters
    ----------
    log : str or Path
    experiment : str or None
        None: the only one in it.
    control : str or None
        None: the experiment's own.
    primary : str or None
        The metric that decides. None: the first of task_done, satisfaction, reformulations and
        so on of which there is feedback.
    guardrails : sequence of str
        NAME:at_most=NUMBER each.
    lower_is_better : sequence of str
        Own kinds of feedback of which less is better.
    pre : Path or None
        A file with what was known of units before. None: the log's own pre-period, where a ramp
        began with none.
    offline : sequence of str
        VARIANT=FOLDER each.
    alpha : float
        In (0, 1).
    tuned_for : float
        Units near which the sequential interval is narrowest; to be chosen before looking.
    detect : float or None
        The difference of the primary metric worth finding. None: 5 % of control's value.
    k : int
        Passages of a shadow and of the request that are held against each other.

    Raises
    ------
    InputError
        The log, or one of the options, is wrong.
    """
    live = read_live(log, experiment)
    names = [variant.name for variant in live.variants]
    base = control or live.control
    if base not in names:
        raise InputError(f"--control '{base}' is no variant here; {known_names(base, names)}")
    runs = read_offline(offline, names)
    found = sort_out(live)
    metrics = _ordered(metrics_of(found.units, lower_is_better), primary)
    guards = _guards([guardrail(one) for one in guardrails], metrics)
    past: Past | None = None
    if pre is not None:
        past = PastFile(pre, live, [metric.name for metric in (*metrics, *GUARDS)])
    setting = Setting(base, alpha, tuned_for, detect, past)
    ratio = sample_ratio(found.strata)
    comparisons = _comparisons(live, found, metrics, guards, setting)
    for one in comparisons:
        one["offline"] = offline_of(runs, base, one["variant"])
        one["disagreements"] = disagreements(one["offline"], one["metrics"], base, one["variant"])
    lead = metrics[0].name if metrics else None
    lists = interleaved(live, alpha=alpha)
    shadows = shadowed(live, k, alpha=alpha)
    words = ratio_words(ratio, found.strata)
    return {
        "experiment": live.experiment,
        "control": base,
        "alpha": alpha,
        "tuned_for": tuned_for,
        "fewest_units": FEWEST,
        "primary": lead,
        **_period(live),
        "verdict": verdict(
            comparisons,
            control=base,
            primary=lead,
            is_broken=ratio.is_broken,
            ratio_words=words,
            beside=beside_words(lists, shadows, alpha),
        ),
        "sample_ratio": _ratio(ratio, words, found),
        "variants": [_variant(name, live, found, runs, 1 - alpha) for name in names],
        "comparisons": comparisons,
        "interleaving": lists,
        "shadows": shadows,
        "odd": dict(found.odd),
        "notes": [*_notes(live, found), *_by_chance(comparisons)],
    }


def _ordered(metrics: list[LiveMetric], primary: str | None) -> list[LiveMetric]:
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
    known = {metric.name: metric for metric in (*GUARDS, *metrics)}
    chosen: dict[str, Guardrail] = {}
    for one in given:
        if one.metric not in known:
            raise InputError(
                f"--guardrail names '{one.metric}'; {known_names(one.metric, list(known))}"
            )
        if one.metric in chosen:
            raise InputError(f"--guardrail names {one.metric} twice; give it one margin")
        chosen[one.metric] = one
    wanted = [known[name] for name in (*chosen, *(m.name for m in GUARDS if m.name not in chosen))]
    return [(metric, chosen.get(metric.name)) for metric in wanted]


def _comparisons(
    live: Live,
    found: Sorted,
    metrics: Sequence[LiveMetric],
    guards: Sequence[tuple[LiveMetric, Guardrail | None]],
    setting: Setting,
) -> list[dict[str, Any]]:
    seen = {unit.variant for unit in found.units}
    if setting.control not in seen:
        return []
    rows = []
    tests = len(metrics) * sum(v.name != setting.control and v.name in seen for v in live.variants)
    is_weighted = split_changed(live, found.units)
    for variant in live.variants:
        name = variant.name
        if name == setting.control or name not in seen:
            continue
        weights = overlap_weights(live, found.units, setting.control, name) if is_weighted else None
        measured = [measure(metric, found.units, weights) for metric in metrics]
        watched = [(measure(metric, found.units, weights), guard) for metric, guard in guards]
        rows.append(
            {
                "variant": name,
                "weighted": is_weighted,
                "metrics": {
                    one.metric.name: compared(one, found.units, name, setting, tests=tests)
                    for one in measured
                },
                "guardrails": [
                    guarded(one, found.units, name, setting, guard)
                    for one, guard in watched
                    if guard is not None or len(one.at)
                ],
                "over_time": over_time(measured[0], found.units, name, setting) if measured else [],
            }
        )
    with_holm(rows, setting.alpha)
    return rows


def _variant(
    name: str,
    live: Live,
    found: Sorted,
    runs: Mapping[str, Offline],
    level: float,
) -> dict[str, Any]:
    plan = next(variant for variant in live.variants if variant.name == name)
    units = [unit for unit in found.units if unit.variant == name]
    requests = [one for unit in units for one in unit.requests]
    said = {one.exposure for unit in units for one in unit.feedback}
    answered = sum(one.id in said for one in requests)
    return {
        "name": name,
        "planned": plan.planned,
        "shadow": plan.shadow,
        "is_control": plan.is_control,
        "units": len(units),
        "requests": len(requests),
        "fell_back": sum(one.outcome == "fell_back" for one in requests),
        "failed": sum(one.outcome == "failed" for one in requests),
        "left": sum(one.outcome == "left" for one in requests),
        "with_feedback": proportion(answered, len(requests), level=level).model_dump(),
        "offline": dict(runs[name].about) if name in runs else None,
    }


def _ratio(ratio: SampleRatio, words: str, found: Sorted) -> dict[str, Any]:
    observed: dict[str, int] = {}
    for unit in found.units:
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


def _period(live: Live) -> dict[str, Any]:
    times = [one.at for one in live.exposures]
    ends = (min(times), max(times)) if times else (None, None)
    first, last = (
        None if end is None else dt.datetime.fromtimestamp(end, dt.UTC).isoformat() for end in ends
    )
    return {"from": first, "to": last, "read_at": live.read_at.isoformat()}


def _by_chance(comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where offline and live point different ways, as chance may have it."""
    return [
        f"Offline {one['offline']} and live {one['live']} of {each['variant']} point different "
        "ways, which chance may explain."
        for each in comparisons
        for one in each["disagreements"]
        if not one["is_clear"] and one["live"] == next(iter(each["metrics"]))
    ]


def _notes(live: Live, found: Sorted) -> list[str]:
    notes = noted(found.odd)
    if not live.exposures:
        notes.append("No request has been logged yet.")
    moved = found.odd.get("units_in_several_variants", 0)
    if moved > _MANY_MOVED * len(found.units):
        why = (
            "a ramp moves units out of control"
            if any(plan.ramp for plan in live.plans)
            else "ids that change or a split that was changed are the usual causes"
        )
        notes.append(f"More than 1 % of units were in several variants: {why}.")
    if split_changed(live, found.units):
        notes.append(
            "The split or the ramp changed on the way: requests are weighted so that the figures "
            "of both variants speak of the same times."
        )
    if len({plan.salt_check for plan in live.plans}) > 1:
        notes.append(
            "The salt was changed on the way: a unit from before it counts as another afterwards."
        )
    return notes
