"""How well one number tells two groups apart, with an interval that knows which cases it is of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from misslink.stats.proportions import critical
from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["auroc"]

_STEPS = 60  # halvings of [0, 1]: finer than a float
_FEW = 2  # cases; fewer have no spread between them

Marked = tuple[str, float]  # the case a number is of, and the number


def auroc(higher: Sequence[Marked], lower: Sequence[Marked], *, level: float = 0.95) -> Estimate:
    """Area under the ROC curve: how often a number of one group exceeds one of the other.

    Parameters
    ----------
    higher, lower : sequence of (str, float)
        The case each number is of, and the number. Ties count half.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        In [0, 1], 0.5 where the number tells nothing; ``n`` counts the numbers of both groups.
        Missing where a group is empty. By `method`:

        ``obuchowski``
            Numbers of one case go together: the variance is that of sums over cases, on the
            logit scale. With one number a case it is DeLong's.
        ``newcombe``
            Where that variance is 0 (the groups do not overlap, or there is one case): the score
            interval of the Mann-Whitney statistic, his method 5, which has a width at 0 and 1.

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
    n, z = len(higher) + len(lower), critical(level)
    if not higher or not lower:
        return Estimate.missing("one of the two groups is empty", n=n, method="obuchowski")
    value, spread = _area(higher, lower)
    # Rounding leaves a spread of the order of 1e-17 where there is none.
    if not 0 < value < 1 or spread <= math.ulp(1):
        low, high = _newcombe(value, len(higher), len(lower), z)
        return Estimate(value=value, low=low, high=high, n=n, method="newcombe")
    centre = math.log(value / (1 - value))
    half = z * spread / (value * (1 - value))
    ends = (1 / (1 + math.exp(-min(max(end, -700), 700))) for end in (centre - half, centre + half))
    low, high = ends
    return Estimate(value=value, low=low, high=high, n=n, method="obuchowski")


def _area(higher: Sequence[Marked], lower: Sequence[Marked]) -> tuple[float, float]:
    """The area and its standard error over cases."""
    import numpy as np

    over = np.array([number for _, number in higher])
    under = np.array([number for _, number in lower])
    placed = _share_below(over, under)
    value = float(placed.mean())
    placed_under = 1 - _share_below(under, over)
    names = {name: at for at, name in enumerate(dict.fromkeys(n for n, _ in [*higher, *lower]))}
    cases = len(names)
    if cases < _FEW:
        return value, 0.0
    here = np.array([names[name] for name, _ in higher])
    there = np.array([names[name] for name, _ in lower])
    of_case = np.bincount(here, placed - value, minlength=cases) / len(over)
    of_case += np.bincount(there, placed_under - value, minlength=cases) / len(under)
    groups = [set(here.tolist()), set(there.tolist())]
    if groups[0].isdisjoint(groups[1]):  # DeLong's: each group by itself
        counts = [len(group) for group in groups]
        if min(counts) < _FEW:
            return value, 0.0
        squares = [float((of_case[list(group)] ** 2).sum()) for group in groups]
        variance = sum(s * c / (c - 1) for s, c in zip(squares, counts, strict=True))
    else:
        variance = float((of_case**2).sum()) * cases / (cases - 1)
    return value, math.sqrt(variance)


def _share_below(numbers: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each number the share of the others below it, ties counting half."""
    import numpy as np

    ordered = np.sort(others)
    below = np.searchsorted(ordered, numbers, side="left")
    upto = np.searchsorted(ordered, numbers, side="right")
    share: NDArray[np.float64] = (below + upto) / (2 * len(ordered))
    return share


def _newcombe(value: float, m: int, n: int, z: float) -> tuple[float, float]:
    """Both ends at which the value is just not too far away, found by halving."""
    star = (m + n) / 2 - 1

    def too_far(area: float) -> bool:
        bend = 1 + star * ((1 - area) / (2 - area) + area / (1 + area))
        return (value - area) ** 2 > z * z * area * (1 - area) * bend / (m * n)

    return _edge(too_far, value, 0.0), _edge(too_far, value, 1.0)


def _edge(too_far: Callable[[float], bool], inside: float, outside: float) -> float:
    for _ in range(_STEPS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if too_far(middle) else (middle, outside)
    return inside
