"""Compare each variant with control: user metrics, guardrails, shadow variants and interleaving."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError
from misslink.live.interleaving import Preference, preferences
from misslink.live.log import Exposure, LiveData
from misslink.live.metrics import Guardrail, MeasuredUnits, Unit
from misslink.stats.experiments import (
    AllocationStratum,
    SequentialTest,
    balanced_units,
    cuped,
    sample_ratio_test,
    sequential_test,
    unit_mean,
    unit_values,
    units_needed,
    welch_test,
)
from misslink.stats.intervals import proportion
from misslink.stats.paired_tests import holm
from misslink.types import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray


def split_changed(live: LiveData, units: Sequence[Unit]) -> bool:
    """Whether requests that count came under different planned splits, as a ramp's do."""
    split = _splits(live)
    first: Mapping[str, float] | None = None
    for unit in units:
        for request in unit.requests:
            if first is None:
                first = split(request)
            elif split(request) != first:
                return True
    return False


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
    split = _splits(live)
    weights: dict[str, float] = {}
    for unit in units:
        if unit.variant not in (control, variant):
            continue
        other = variant if unit.variant == control else control
        first = split(unit.requests[0])
        for request in unit.requests:
            now = split(request)
            overlap = min(first.get(unit.variant, 0.0), now.get(unit.variant, 0.0))
            other_part = min(first.get(other, 0.0), now.get(other, 0.0))
            both = overlap + other_part
            weights[request.id] = other_part / both if both else 0.0
    return weights


def _splits(live: LiveData) -> Callable[[Exposure], Mapping[str, float]]:
    splits: dict[tuple[int, float], Mapping[str, float]] = {}

    def split(exposure: Exposure) -> Mapping[str, float]:
        key = (exposure.plan, exposure.open_share)
        if key not in splits:
            splits[key] = live.planned(exposure)
        return splits[key]

    return split


_LOOKS = 60  # points of the drawing
_DAY_S = 86_400.0
_DEFAULT_EFFECT = 0.05  # of control's value: the effect that is looked for unless another is given

PastValue = Callable[[str, Unit], float | None]


@dataclass(frozen=True)
class ComparisonSettings:
    """How variants are compared.

    Parameters
    ----------
    control : str
    alpha : float
        In (0, 1).
    tuned_for : float
        Units near which the sequential interval is narrowest.
    detect : float or None
        Smallest difference of the primary metric worth finding. None: 5% of control's value.
    past : callable or None
        A covariate of a unit for a metric; None: the pre-period in the log itself.
    """

    control: str
    alpha: float
    tuned_for: float
    detect: float | None
    past: PastValue | None

    def sequential(
        self, control: NDArray[Any], variant: NDArray[Any], is_share: bool, times: float = 1.0
    ) -> SequentialTest:
        """`misslink.stats.experiments.sequential_test` by this setting."""
        return sequential_test(
            control,
            variant,
            alpha=self.alpha,
            tuned_for=self.tuned_for,
            times=times,
            is_share=is_share,
        )


def compare_variants(
    measured: MeasuredUnits,
    units: Sequence[Unit],
    variant: str,
    setting: ComparisonSettings,
    *,
    tests: int = 1,
) -> dict[str, Any]:
    """Compare one metric of a variant with control; `with_holm` adds ``p_holm`` and ``winner``."""
    import numpy as np

    names = np.array([unit.variant for unit in units])
    control, at_control = measured.values(names == setting.control)
    treated, at_treated = measured.values(names == variant)
    level = 1 - setting.alpha
    bounds = measured.metric.bounds
    fixed, p = welch_test(control, treated, level=level)
    is_share = measured.metric.unit == "share"
    raw = setting.sequential(control, treated, is_share)
    adjusted = _cuped_values(measured, units, setting, (control, at_control), (treated, at_treated))
    decisive = raw if adjusted is None else adjusted[1]
    sides = (control, treated) if adjusted is None else adjusted[2]
    return {
        "better": measured.metric.better,
        "unit": measured.metric.unit,
        "words": measured.metric.words,
        "control": unit_mean(control, level=level, bounds=bounds).model_dump(),
        "variant": unit_mean(treated, level=level, bounds=bounds).model_dump(),
        "fixed": {"difference": fixed.model_dump(), "p": p},
        "always_valid": {
            "difference": decisive.difference.model_dump(),
            "p": decisive.p,
            "unadjusted": raw.difference.model_dump(),
        },
        "cuped": None if adjusted is None else adjusted[0],
        "needed": _units_needed(sides, (control, treated), units, setting, tests),
    }


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
    measured: MeasuredUnits,
    units: Sequence[Unit],
    variant: str,
    setting: ComparisonSettings,
    guard: Guardrail | None,
) -> dict[str, Any]:
    """Test non-inferiority of a guardrail's metric with its margin; valid at any time."""
    import numpy as np

    if guard is not None and measured.metric.better != "low":
        raise InputError(
            f"of {guard.metric} more is better, so at_most is no guardrail for it; take one of "
            "latency, errors, cost or reformulations"
        )
    names = np.array([unit.variant for unit in units])
    control, _ = measured.values(names == setting.control)
    treated, _ = measured.values(names == variant)
    is_share = measured.metric.unit == "share"
    interval = setting.sequential(control, treated, is_share)
    margin, against = None if guard is None else guard.margin, interval.difference
    if guard is not None and guard.is_relative:
        against = setting.sequential(control, treated, is_share, 1 + guard.margin).difference
        margin = 0.0
    level = 1 - setting.alpha
    bounds = measured.metric.bounds
    return {
        "metric": measured.metric.name,
        "unit": measured.metric.unit,
        "words": measured.metric.words,
        "margin": None if guard is None else guard.margin,
        "is_relative": guard is not None and guard.is_relative,
        "control": unit_mean(control, level=level, bounds=bounds).model_dump(),
        "variant": unit_mean(treated, level=level, bounds=bounds).model_dump(),
        "difference": interval.difference.model_dump(),
        "status": _status(against.low, against.high, margin),
    }


def difference_over_time(
    measured: MeasuredUnits, units: Sequence[Unit], variant: str, setting: ComparisonSettings
) -> list[dict[str, Any]]:
    """The sequential interval as it stood after more and more units, without CUPED."""
    import numpy as np

    both = [unit for unit in units if unit.variant in (setting.control, variant)]
    if not both:
        return []
    names = np.array([unit.variant for unit in units])
    since = np.array([unit.since for unit in units])
    steps = np.unique(np.linspace(1, len(both), min(_LOOKS, len(both))).round().astype(int))
    rows = []
    for count in steps.tolist():
        is_last = count == len(both)
        until = math.inf if is_last else both[count - 1].since
        control, _ = measured.values((names == setting.control) & (since <= until), until)
        treated, _ = measured.values((names == variant) & (since <= until), until)
        interval = setting.sequential(control, treated, measured.metric.unit == "share")
        rows.append(
            {
                "units": count,
                "at": both[count - 1].since,
                "difference": interval.difference.model_dump(),
            }
        )
    return rows


def _cuped_values(
    measured: MeasuredUnits,
    units: Sequence[Unit],
    setting: ComparisonSettings,
    control: tuple[NDArray[Any], NDArray[Any]],
    treated: tuple[NDArray[Any], NDArray[Any]],
) -> tuple[dict[str, Any], Any, tuple[NDArray[Any], NDArray[Any]]] | None:
    """CUPED, where something of the past is known: what it did, and the difference by it."""

    def past(places: NDArray[Any]) -> list[float | None]:
        if setting.past is None:
            return [measured.before[place] for place in places]
        return [setting.past(measured.metric.name, units[place]) for place in places]

    if not len(control[0]) or not len(treated[0]):
        return None
    result = cuped(control[0], treated[0], past(control[1]), past(treated[1]))
    if result is None:
        return None
    level = 1 - setting.alpha
    fixed, p = welch_test(result.control, result.variant, level=level)
    document = {
        "theta": result.theta,
        "variance_reduction": result.reduction,
        "units_known": result.known,
        "units_missing": result.missing,
        "fixed": {"difference": fixed.model_dump(), "p": p},
    }
    valid = setting.sequential(result.control, result.variant, measured.metric.unit == "share")
    return document, valid, (result.control, result.variant)


def _units_needed(
    sides: tuple[NDArray[Any], NDArray[Any]],
    plain: tuple[NDArray[Any], NDArray[Any]],
    units: Sequence[Unit],
    setting: ComparisonSettings,
    tests: int,
) -> dict[str, Any] | None:
    """How many more units a difference worth finding takes, at the present rate and split."""
    control, treated = sides
    if min(len(control), len(treated)) < 2:
        return None
    spread = float(control.var(ddof=1)) / len(control) + float(treated.var(ddof=1)) / len(treated)
    effect = (
        _DEFAULT_EFFECT * abs(float(plain[0].mean())) if setting.detect is None else setting.detect
    )
    now = balanced_units(len(control), len(treated))
    total = None
    if spread and effect:
        total = units_needed(
            effect, math.sqrt(spread), now, alpha=setting.alpha / tests, tuned_for=setting.tuned_for
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


def _status(low: float | None, high: float | None, margin: float | None) -> str:
    if margin is None:
        return "no margin"
    if low is None or high is None:
        return "open"
    if high <= margin:
        return "holds"
    return "broken" if low > margin else "open"


ShadowPair = tuple[Exposure, Exposure]  # a request, and the shadow beside it
_FAILED = ("failed", "fell_back")


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
        ran = [exposure for exposure in shadows if exposure.outcome != "dropped"]
        pairs = [
            (requests_by_id[exposure.of], exposure)
            for exposure in ran
            if exposure.of in requests_by_id
        ]
        both = [pair for pair in pairs if pair[0].outcome != "left"]
        fine = [pair for pair in both if all(exposure.outcome == "ok" for exposure in pair)]

        def mean(
            measure: Callable[[ShadowPair], float | None],
            chosen: Sequence[ShadowPair],
            bounds: tuple[float, float] | None = None,
        ) -> dict[str, Any]:
            return _by_unit(
                ((pair[0], measure(pair)) for pair in chosen), level, bounds
            ).model_dump()

        rows.append(
            {
                "variant": variant,
                "shadows": len(shadows),
                "dropped": proportion(
                    len(shadows) - len(ran), len(shadows), level=level
                ).model_dump(),
                "without_request": len(ran) - len(pairs),
                "errors": {
                    "shadow": mean(lambda pair: _is_error(pair[1]), both, (0.0, 1.0)),
                    "served": mean(lambda pair: _is_error(pair[0]), both, (0.0, 1.0)),
                    "difference": mean(
                        lambda pair: _is_error(pair[1]) - _is_error(pair[0]), both, (-1.0, 1.0)
                    ),
                },
                "latency_s": {
                    "shadow": mean(lambda pair: pair[1].latency_s, fine),
                    "served": mean(lambda pair: pair[0].latency_s, fine),
                    "difference": mean(_latency_difference, fine),
                },
                "k": k,
                "overlap": mean(lambda pair: _overlap(pair, k), fine, (0.0, 1.0)),
            }
        )
    return rows


def interleaving_results(live: LiveData, *, alpha: float = 0.05) -> dict[str, Any] | None:
    """Return which interleaved retriever users preferred, or None without interleaved requests."""
    # A query without a known unit counts as its own unit.
    if not any(exposure.mode == "interleaved" for exposure in live.exposures):
        return None
    outcomes = preferences(live)
    names = [variant.name for variant in live.variants][:2]
    by_unit: dict[str, list[Preference]] = defaultdict(list)
    for outcome in outcomes:
        by_unit[outcome.unit or f"query {outcome.exposure}"].append(outcome)
    exposures = sum(exposure.mode == "interleaved" for exposure in live.exposures)
    without_credit = sum(not any(outcome.credit.values()) for outcome in outcomes)
    return {
        "variants": names,
        "shown": exposures,
        "left_out": exposures - len(outcomes),
        "without_credit": without_credit,
        "queries": _count_preferences(
            [outcome.winner for outcome in outcomes], names, without_credit, alpha
        ),
        "units": _count_preferences(
            [_majority(rows) for rows in by_unit.values()],
            names,
            sum(
                not any(any(outcome.credit.values()) for outcome in rows)
                for rows in by_unit.values()
            ),
            alpha,
        ),
    }


def _count_preferences(
    winners: Sequence[str | None], names: Sequence[str], silent: int, alpha: float
) -> dict[str, Any]:
    counts = Counter(winners)
    first, second = names
    wins = counts[first] + counts[second]
    if not wins:
        share = Estimate.missing("nobody preferred either", n=0, method="wilson")
    else:
        share = proportion(counts[second], wins, level=1 - alpha)
    plan: Mapping[str, float] = {first: 0.5, second: 0.5}
    ratio = sample_ratio_test([AllocationStratum(plan, {name: counts[name] for name in names})])
    return {
        "wins": {name: counts[name] for name in names},
        "ties": counts[None] - silent,
        "without_credit": silent,
        "share": share.model_dump(),
        "p": ratio.p,
        "p_sequential": ratio.p_sequential,
    }


def _majority(rows: Sequence[Preference]) -> str | None:
    counts = Counter(preference.winner for preference in rows if preference.winner is not None)
    ordered = counts.most_common()
    if not ordered or (len(ordered) > 1 and ordered[0][1] == ordered[1][1]):
        return None
    return ordered[0][0]


def _by_unit(
    rows: Iterable[tuple[Exposure, float | None]],
    level: float,
    bounds: tuple[float, float] | None,
) -> Estimate:
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for request, value in rows:
        if value is not None:
            unit = sums[request.unit or f"request {request.id}"]
            unit[0] += value
            unit[1] += 1
    above, below = zip(*sums.values(), strict=True) if sums else ((), ())
    return unit_mean(unit_values(above, below), level=level, bounds=bounds)


def _is_error(exposure: Exposure) -> float:
    return float(exposure.outcome in _FAILED)


def _latency_difference(pair: ShadowPair) -> float | None:
    served, shadow = pair[0].latency_s, pair[1].latency_s
    return None if served is None or shadow is None else shadow - served


def _overlap(pair: ShadowPair, k: int) -> float | None:
    """Share of the first k passages that both have; of the longer list where both are shorter."""
    served, shadow = pair[0].retrieved, pair[1].retrieved
    if served is None or shadow is None:
        return None
    first, second = set(served[:k]), set(shadow[:k])
    longest = max(len(first), len(second))
    return len(first & second) / longest if longest else None
