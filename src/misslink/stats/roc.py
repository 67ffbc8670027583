"""The area under the ROC curve, and the difference of two of the same cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from misslink.stats.intervals import (
    LEVEL,
    Floats,
    critical_value,
    interval_estimate,
    student_quantile,
)
from misslink.types import Estimate, Reason

CaseScore = tuple[str, float]  # the case of a number, and the number


def auroc(
    higher: Sequence[CaseScore],
    lower: Sequence[CaseScore],
    weights: Mapping[str, float] | None = None,
) -> Estimate:
    """Return the area under the ROC curve: how often a number of one group exceeds one of the other.

    Parameters
    ----------
    higher, lower : sequence of (str, float)
        The case of each number, and the number. Ties count half.
    weights : mapping of str to float, or None
        One over the chance with which each case was drawn, or numbers in proportion.

    Returns
    -------
    Estimate
        In [0, 1], 0.5 for a number without information; ``n`` counts the numbers of both groups.
        Missing if a group is empty. By `method`:

        ``obuchowski``
            The variance is that of sums over cases, on the logit scale; with one number a case
            it is DeLong's. The quantile is Student's, with Satterthwaite's degrees of freedom
            where each case is in one group: five bad cases do not tell much of their spread.
        ``newcombe``
            If that variance is 0 (the groups do not overlap, or there is one case): the score
            interval of the Mann-Whitney statistic, method 5, which has a width at 0 and 1.

    References
    ----------
    Obuchowski (1997), Nonparametric analysis of clustered ROC curve data. DeLong, DeLong and
    Clarke-Pearson (1988). Newcombe (2006), Confidence intervals for an effect size measure based
    on the Mann-Whitney statistic, part 2.

    Examples
    --------
    >>> auroc([("a", 0.9), ("b", 0.6)], [("a", 0.1), ("b", 0.7)]).value
    0.75
    """
    n, z = len(higher) + len(lower), critical_value()
    if not higher or not lower:
        return Estimate.missing(Reason(code="empty_group"), n=n, method="obuchowski")
    area = _case_areas(higher, lower, weights or {})
    value, half = area.value, area.half_width()
    # Rounding leaves a spread of the order of 1e-17 where there is none.
    if not 0 < value < 1 or half <= math.ulp(z):
        low, high = _newcombe_interval(value, *area.effective, z)
        return Estimate(value=value, low=low, high=high, n=n, method="newcombe")
    low, high = logit_interval(value, half)
    return Estimate(value=value, low=low, high=high, n=n, method="obuchowski")


def logit_interval(value: float, half: float) -> tuple[float, float]:
    """Return both ends of a normal interval of half width `half`, taken on the logit scale."""
    centre, half = math.log(value / (1 - value)), half / (value * (1 - value))
    low, high = (
        1 / (1 + math.exp(-min(max(end, -700), 700))) for end in (centre - half, centre + half)
    )
    return low, high


def auroc_difference(
    higher: Sequence[tuple[str, float, float]],
    lower: Sequence[tuple[str, float, float]],
    weights: Mapping[str, float] | None = None,
) -> Estimate:
    """Return the AUROC of a first number less that of a second one, of the same cases.

    Parameters
    ----------
    higher, lower : sequence of (str, float, float)
        The case, and its two numbers.
    weights
        As of `auroc`.

    Returns
    -------
    Estimate
        In [-1, 1], with the normal interval of the paired areas (DeLong), Student's as of `auroc`.
        Missing if a group has fewer than two cases.
    """
    n, method = len(higher) + len(lower), "delong"
    if min(len(higher), len(lower)) < 2:
        return Estimate.missing(Reason(code="small_group"), n=n, method=method)
    first, second = (
        _case_areas(
            [(case, pair[at]) for case, *pair in higher],
            [(case, pair[at]) for case, *pair in lower],
            weights or {},
        )
        for at in (0, 1)
    )
    value, moved = first.value - second.value, first.moved - second.moved
    half = replace(first, moved=moved).half_width()
    bounds = (-1.0, 1.0)
    return interval_estimate(value, value - half, value + half, n=n, method=method, bounds=bounds)


@dataclass(frozen=True)
class _CaseAreas:
    """An area, how far each case moves it, and the cases of either group."""

    value: float
    moved: Floats
    groups: tuple[list[int], list[int]]
    effective: tuple[float, float]  # numbers of the two groups

    def half_width(self) -> float:
        """Half of the 95% interval of the area."""
        cases = len(self.moved)
        if cases < 2:
            return 0.0
        squared = self.moved**2
        if not set(self.groups[0]).isdisjoint(self.groups[1]):
            return critical_value() * math.sqrt(float(squared.sum()) * cases / (cases - 1))
        if min(map(len, self.groups)) < 2:
            return 0.0
        sizes = [len(group) for group in self.groups]  # DeLong's: each group by itself
        parts = [
            float(squared[group].sum()) * size / (size - 1)
            for group, size in zip(self.groups, sizes, strict=True)
        ]
        if not sum(parts):
            return 0.0
        freedom = sum(parts) ** 2 / sum(
            part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True)
        )
        return student_quantile(LEVEL, freedom) * math.sqrt(sum(parts))


def _case_areas(
    higher: Sequence[CaseScore], lower: Sequence[CaseScore], weights: Mapping[str, float]
) -> _CaseAreas:
    over, under = (np.array([number for _, number in side]) for side in (higher, lower))
    heavy, light = (np.array([weights.get(case, 1.0) for case, _ in s]) for s in (higher, lower))
    placed = _share_below(over, under, light)
    value = float(heavy @ placed) / float(heavy.sum())
    placed_under = 1 - _share_below(under, over, heavy)
    index = {case: i for i, case in enumerate(dict.fromkeys(c for c, _ in [*higher, *lower]))}
    at = [np.array([index[case] for case, _ in side]) for side in (higher, lower)]
    moved = np.bincount(at[0], heavy * (placed - value), minlength=len(index)) / heavy.sum()
    moved += np.bincount(at[1], light * (placed_under - value), minlength=len(index)) / light.sum()
    groups = sorted(set(at[0].tolist())), sorted(set(at[1].tolist()))
    sizes = [float(w.sum()) ** 2 / float(w @ w) for w in (heavy, light)]
    return _CaseAreas(min(max(value, 0.0), 1.0), moved, groups, (sizes[0], sizes[1]))


def _share_below(numbers: Floats, others: Floats, weights: Floats) -> Floats:
    """For each number the weighted share of the others below it, ties counting half."""
    order = np.argsort(others, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    below, upto = (sums[np.searchsorted(others[order], numbers, side=s)] for s in ("left", "right"))
    return np.asarray((below + upto) / (2 * sums[-1]))


def _newcombe_interval(value: float, m: float, n: float, z: float) -> tuple[float, float]:
    """Both ends at which the value is just not too far away, found by halving."""
    star = (m + n) / 2 - 1

    def too_far(area: float) -> bool:
        bend = 1 + star * ((1 - area) / (2 - area) + area / (1 + area))
        return (value - area) ** 2 > z * z * area * (1 - area) * bend / (m * n)

    return bisect_edge(too_far, value, 0.0), bisect_edge(too_far, value, 1.0)


def bisect_edge(
    is_outside: Callable[[float], bool], inside: float, outside: float, steps: int = 60
) -> float:
    """Return the last number inside of an edge between `inside` and `outside`, by halving."""
    for _ in range(steps):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if is_outside(middle) else (middle, outside)
    return inside
