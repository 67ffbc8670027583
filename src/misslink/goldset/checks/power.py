"""Check whether a gold set has enough cases for its gates."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist

from misslink.goldset.checks.protocol import CheckInputs, GateRequirement, GoldSetFinding, Severity
from misslink.io.goldset import GoldSet
from misslink.stats.intervals import critical_value
from misslink.stats.paired_tests import detectable_shift

TARGET_POWER = 0.80
_CONFIDENCE = 0.95
_MAX_VARIANCE = 0.5  # of the difference of two unrelated binary values
_MAX_CASES = 10_000_000
_MIN_CASES = 2
_TOLERANCE = 1e-6
_UNBOUNDED = "its values are not between 0 and 1, so their variance is unknown"


@dataclass(frozen=True)
class GatePower:
    """What the cases of one gate can show with 80% power at the 5% level.

    Parameters
    ----------
    gate, metric : str
    limit : {'threshold', 'at_most', 'regression_max', 'min_cases'}
    cases : int
        Cases of the gold set.
    effect : float or None
        Distance to detect: beyond the threshold, or the drop that is not allowed.
    needed : int or None
        Cases that always suffice. None: see the reason.
    at_least : int or None
        Cases that are necessary in any event; `needed` for a threshold.
    detectable : float or None
        Smallest effect that this set always detects. None: see the reason.
    reason : str or None
    """

    gate: str
    metric: str
    limit: str
    cases: int
    effect: float | None = None
    needed: int | None = None
    at_least: int | None = None
    detectable: float | None = None
    reason: str | None = None


def check_power(_gold: GoldSet, inputs: CheckInputs) -> Sequence[GoldSetFinding]:
    """Find gates for which the gold set is too small; see `gate_power`.

    Fewer cases than a gate's ``min_cases`` is an error, because it cannot pass.
    """
    powers = (power for demand in inputs.demands for power in gate_power(demand, inputs.effect))
    findings = (_power_finding(power) for power in powers)
    return [finding for finding in findings if finding is not None]


def gate_power(demand: GateRequirement, effect: float) -> list[GatePower]:
    """Return what can be detected for each limit of a gate.

    Parameters
    ----------
    demand : GateRequirement
    effect : float
        Distance from a threshold, for gates without ``regression_max``; in (0, 1).

    Returns
    -------
    list of GatePower
        For a threshold t: cases with which the 95% interval of a share of t - effect excludes t,
        see `cases_for_threshold`. For a regression: cases with which a drop of ``regression_max``
        over the same cases in both runs is distinguished from none, see `cases_for_drop`. Values
        that are not between 0 and 1 have an unbounded variance, and no numbers.
    """
    powers = []
    gate = demand.name, demand.metric
    if demand.min_cases is not None:
        needed = demand.min_cases
        powers.append(GatePower(*gate, "min_cases", demand.cases, None, needed, needed))
    for limit, value in (("threshold", demand.threshold), ("at_most", demand.at_most)):
        if value is not None:
            powers.append(_threshold_power(demand, limit, value, demand.regression_max or effect))
    if demand.regression_max is not None:
        powers.append(_regression_power(demand, demand.regression_max))
    return powers


def cases_for_threshold(threshold: float, effect: float) -> int | None:
    """Return the cases with which a share `effect` under a threshold is detected.

    Parameters
    ----------
    threshold, effect : float
        0 < effect <= threshold <= 1.

    Returns
    -------
    int or None
        ((z_0.975 sqrt(t (1 - t)) + z_0.8 sqrt(s (1 - s))) / effect)^2 with s = t - effect, at
        least 2. No mean of values between 0 and 1 needs more. None: more than ten million.

    References
    ----------
    Fleiss, Levin and Paik (2003), Statistical methods for rates and proportions, section 2.5.

    Examples
    --------
    >>> cases_for_threshold(0.85, 0.05), cases_for_threshold(0.85, 0.10)
    (430, 114)
    """
    if not 0 < effect <= threshold <= 1:
        raise ValueError(f"no share lies {effect} under {threshold}")
    share = threshold - effect
    root = critical_value(_CONFIDENCE) * math.sqrt(threshold * (1 - threshold))
    root += NormalDist().inv_cdf(TARGET_POWER) * math.sqrt(max(0.0, share * (1 - share)))
    cases = (root / effect) ** 2
    return None if cases > _MAX_CASES else max(_MIN_CASES, math.ceil(cases - _TOLERANCE))


def cases_for_drop(drop: float, variance: float) -> int | None:
    """Return the cases, the same in both runs, with which a mean drop is detected.

    Parameters
    ----------
    drop : float
        In (0, 1].
    variance : float
        Of one case's difference, from 0. For values 0 and 1 it is ``drop`` - ``drop``^2 if nothing
        but the drop changes, and at most 0.5 if the two runs are unrelated.

    Returns
    -------
    int or None
        By the power of the paired t test, at least 2. None: more than ten million.
    """
    if not 0 < drop <= 1 or variance < 0:
        raise ValueError(f"no drop of {drop} with a variance of {variance} can be planned for")
    deviation = math.sqrt(variance)

    def suffices(cases: int) -> bool:
        return detectable_shift(cases) * deviation / math.sqrt(cases) <= drop

    counts = range(_MIN_CASES, _MAX_CASES + 1)
    place = bisect_left(counts, 1, key=suffices)
    return counts[place] if place < len(counts) else None


def _threshold_power(demand: GateRequirement, limit: str, value: float, effect: float) -> GatePower:
    gate = demand.name, demand.metric, limit, demand.cases
    if not demand.share:
        return GatePower(*gate, reason=_UNBOUNDED)
    # At most 0.1 of a share is at least 0.9 of its complement.
    threshold = value if limit == "threshold" else 1 - value
    if not 0 < effect <= threshold <= 1:
        return GatePower(*gate, effect, reason=f"no value is {effect:g} beyond {value:g}")
    needed = cases_for_threshold(threshold, effect)
    return GatePower(*gate, effect, needed, needed, _detectable_effect(threshold, demand.cases))


def _detectable_effect(threshold: float, cases: int) -> float | None:
    """The smallest effect for which so many cases suffice; None without one."""

    def suffice(effect: float) -> bool:
        needed = cases_for_threshold(threshold, effect)
        return needed is not None and needed <= cases

    if not suffice(threshold):
        return None
    low, high = 0.0, threshold
    while high - low > _TOLERANCE:
        middle = (low + high) / 2
        low, high = (low, middle) if suffice(middle) else (middle, high)
    return high


def _regression_power(demand: GateRequirement, drop: float) -> GatePower:
    gate = demand.name, demand.metric, "regression_max", demand.cases
    if not demand.share:
        return GatePower(*gate, reason=_UNBOUNDED)
    if not 0 < drop <= 1:
        return GatePower(*gate, drop, reason="every drop fails the gate, however small")
    detectable = None
    if demand.cases >= _MIN_CASES:
        detectable = detectable_shift(demand.cases) * math.sqrt(_MAX_VARIANCE / demand.cases)
    return GatePower(
        *gate,
        drop,
        cases_for_drop(drop, _MAX_VARIANCE),
        cases_for_drop(drop, drop - drop * drop),
        detectable if detectable is not None and detectable <= 1 else None,
    )


def _power_finding(power: GatePower) -> GoldSetFinding | None:
    if power.needed is None or power.cases >= power.needed:
        return None
    missing = power.needed - power.cases
    severity: Severity = "warning"
    detectable = power.detectable
    seen = "nothing" if detectable is None else f"{100 * detectable:.2g} points or more"
    message = f"gate '{power.gate}' has {power.cases:,} cases; to detect a "
    points = f"{100 * (power.effect or 0):.3g} points"
    if power.limit == "min_cases":
        severity = "error"
        message = f"gate '{power.gate}' needs {power.needed:,} cases and has {power.cases:,}: it "
        message += "cannot pass"
        fix = f"add {missing:,} cases, or lower min_cases"
    elif power.limit != "regression_max":
        message += (
            f"{power.metric} {points} beyond its {power.limit} in 80% of runs it needs "
            f"{power.needed:,}, and these detect {seen}"
        )
        fix = f"add {missing:,} cases, or accept a larger effect"
    else:
        message += (
            f"loss of {points} beyond the margin of {power.metric} in 80% of runs it needs from "
            f"{power.at_least or 0:,} (nothing else changes) to {power.needed:,} (the two runs are "
            f"unrelated), and these always detect {seen}"
        )
        if power.at_least is not None and power.cases < power.at_least:
            fix = f"add {power.at_least - power.cases:,} cases, or allow a larger regression_max"
        else:
            severity = "note"
            fix = f"add {missing:,} cases to be sure, or allow a larger regression_max"
    return GoldSetFinding("power", severity, message, fix, numbers=asdict(power))
