"""Whether a gold set has enough cases for what a gate is to see."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist

from misslink.files.goldset import GoldSet
from misslink.goldset.checking.finding import Finding
from misslink.goldset.checking.grounds import Demand, Grounds
from misslink.stats.paired import detectable_shift
from misslink.stats.proportions import critical

__all__ = ["POWER", "Power", "cases_for_drop", "cases_for_threshold", "power", "power_of"]

POWER = 0.80
_LEVEL = 0.95
_UNRELATED = 0.5  # variance of the difference of two yes-or-no values that nothing ties, at most
_MOST = 10_000_000  # cases; nobody writes more
_FEWEST = 2
_CLOSE = 1e-6


@dataclass(frozen=True)
class Power:
    """What the cases of one gate can show with 80 % power, at the 5 % level.

    Parameters
    ----------
    gate, metric : str
    limit : {'threshold', 'at_most', 'regression_max', 'min_cases'}
    cases : int
        That the gold set has.
    effect : float or None
        What is to be seen: points beyond the threshold, or the drop that is not allowed.
    needed : int or None
        Cases that surely suffice. None: there is a reason.
    at_least : int or None
        Cases without which it cannot be seen in any event; `needed` for a threshold.
    detectable : float or None
        The least that this set surely shows. None: there is a reason.
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


def power(gold: GoldSet, grounds: Grounds) -> Sequence[Finding]:
    """Find gates that the gold set is too small for.

    See `power_of`. Fewer cases than a gate's own ``min_cases`` is an error, since it cannot pass.
    """
    del gold  # how many cases each gate is about is counted already
    found = (_told(one) for demand in grounds.demands for one in power_of(demand, grounds.effect))
    return [finding for finding in found if finding is not None]


def power_of(demand: Demand, effect: float) -> list[Power]:
    """What can be seen of each limit of a gate.

    Parameters
    ----------
    demand : Demand
    effect : float
        Points beyond a threshold, where the gate has no ``regression_max``; in (0, 1).

    Returns
    -------
    list of Power
        A threshold t: so many cases that the 95 % interval of a share of t - effect leaves out t,
        as in `cases_for_threshold`. A regression: that a drop of ``regression_max`` is told from
        none over the same cases in both runs, as in `cases_for_drop`. Where values are not between
        0 and 1 their spread has no limit, and the numbers are missing.
    """
    one = demand.name, demand.metric
    found = []
    if demand.min_cases is not None:
        missing = Power(*one, "min_cases", demand.cases, None, demand.min_cases, demand.min_cases)
        found.append(missing)
    for limit, value in (("threshold", demand.threshold), ("at_most", demand.at_most)):
        if value is not None:
            found.append(_of_threshold(demand, limit, value, demand.regression_max or effect))
    if demand.regression_max is not None:
        found.append(_of_drop(demand, demand.regression_max))
    return found


def cases_for_threshold(threshold: float, effect: float) -> int | None:
    """Cases with which a share `effect` under a threshold is seen to be under it.

    Parameters
    ----------
    threshold, effect : float
        0 < effect <= threshold <= 1.

    Returns
    -------
    int or None
        ((z_0.975 sqrt(t (1 - t)) + z_0.8 sqrt(s (1 - s))) / effect)^2 with s = t - effect. No
        mean of values between 0 and 1 needs more. At least 2. None: more than ten million.

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
    root = critical(_LEVEL) * math.sqrt(threshold * (1 - threshold))
    root += NormalDist().inv_cdf(POWER) * math.sqrt(max(0.0, share * (1 - share)))
    wanted = (root / effect) ** 2
    return None if wanted > _MOST else max(_FEWEST, math.ceil(wanted - _CLOSE))


def cases_for_drop(drop: float, variance: float) -> int | None:
    """Cases, the same in both runs, with which a mean drop is told from none.

    Parameters
    ----------
    drop : float
        In (0, 1].
    variance : float
        Of one case's difference, from 0. Between two values that are 0 or 1 it is ``drop`` -
        ``drop``^2 where nothing but the drop changes, and 0.5 at most where the two runs have
        nothing in common.

    Returns
    -------
    int or None
        By the power of the paired t test. At least 2. None: more than ten million.
    """
    if not 0 < drop <= 1 or variance < 0:
        raise ValueError(f"no drop of {drop} with a variance of {variance} can be planned for")
    spread = math.sqrt(variance)

    def seen(cases: int) -> bool:
        return detectable_shift(cases) * spread / math.sqrt(cases) <= drop

    return _fewest(seen)


def _fewest(enough: Callable[[int], bool]) -> int | None:
    if enough(_FEWEST):
        return _FEWEST
    low, high = _FEWEST, 2 * _FEWEST
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _of_threshold(demand: Demand, limit: str, value: float, effect: float) -> Power:
    one = demand.name, demand.metric, limit, demand.cases
    if not demand.share:
        return Power(*one, reason="its values are not between 0 and 1, so their spread is unknown")
    # At most 0.1 of a share is at least 0.9 of its contrary.
    threshold = value if limit == "threshold" else 1 - value
    if not 0 < effect <= threshold <= 1:
        return Power(*one, effect, reason=f"no value lies {effect:g} beyond {value:g}")
    needed = cases_for_threshold(threshold, effect)
    return Power(*one, effect, needed, needed, _shortfall(threshold, demand.cases))


def _shortfall(threshold: float, cases: int) -> float | None:
    """The least effect for which so many cases suffice; None where none is large enough."""

    def suffice(effect: float) -> bool:
        needed = cases_for_threshold(threshold, effect)
        return needed is not None and needed <= cases

    if not suffice(threshold):
        return None
    low, high = 0.0, threshold
    while high - low > _CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if suffice(middle) else (middle, high)
    return high


def _of_drop(demand: Demand, drop: float) -> Power:
    one = demand.name, demand.metric, "regression_max", demand.cases
    if not demand.share:
        return Power(*one, reason="its values are not between 0 and 1, so their spread is unknown")
    if not 0 < drop <= 1:
        return Power(*one, drop, reason="any drop at all fails the gate, and none is too small")
    seen = None
    if demand.cases >= _FEWEST:
        seen = detectable_shift(demand.cases) * math.sqrt(_UNRELATED / demand.cases)
    return Power(
        *one,
        drop,
        cases_for_drop(drop, _UNRELATED),
        cases_for_drop(drop, drop - drop * drop),
        seen if seen is not None and seen <= 1 else None,
    )


def _told(one: Power) -> Finding | None:
    if one.needed is None or one.cases >= one.needed:
        return None
    gate = f"gate '{one.gate}'"
    if one.limit == "min_cases":
        return Finding(
            "power",
            "error",
            f"{gate} wants {one.needed:,} cases and there are {one.cases:,}: it cannot pass",
            f"add {one.needed - one.cases:,} cases, or lower min_cases",
            numbers=asdict(one),
        )
    points = f"{100 * (one.effect or 0):.3g} points"
    seen = "nothing" if one.detectable is None else f"{100 * one.detectable:.2g} points or more"
    if one.limit != "regression_max":
        return Finding(
            "power",
            "warning",
            f"{gate} has {one.cases:,} cases; to see a {one.metric} {points} beyond its "
            f"{one.limit} in 80 % of runs it takes {one.needed:,}, and these show {seen}",
            f"add {one.needed - one.cases:,} cases, or expect to see less",
            numbers=asdict(one),
        )
    never = one.at_least is not None and one.cases < one.at_least
    return Finding(
        "power",
        "warning" if never else "note",
        f"{gate} has {one.cases:,} cases; to see a drop of {points} in {one.metric} in 80 % of "
        f"runs it takes from {one.at_least or 0:,} (nothing else changes) to {one.needed:,} (the "
        f"two runs have nothing in common), and these surely show {seen}",
        f"add {(one.at_least if never and one.at_least else one.needed) - one.cases:,} cases"
        + ("" if never else " to be sure")
        + ", or allow a larger regression_max",
        numbers=asdict(one),
    )
