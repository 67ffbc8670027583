"""Do higher scores go with higher labels: Spearman's rho and Kendall's tau-b."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from misslink.stats.proportions import critical
from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["kendall_tau", "spearman"]

_FEWEST = 4  # pairs for which a spread can be told
_FULL = 1 - 1e-12  # rounding leaves a perfect correlation a little short

Influence = Callable[
    ["NDArray[np.float64]", "NDArray[np.float64]"], tuple[float, "NDArray[np.float64]"]
]


def spearman(a: Sequence[float], b: Sequence[float], *, level: float = 0.95) -> Estimate:
    """Spearman's rho: the linear correlation of the ranks, tied values sharing theirs.

    Parameters
    ----------
    a, b : sequence of float, of equal length
        A number for each case, such as a judge's score and people's grade.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        In [-1, 1]. Missing with fewer than two cases or where one side is all alike. Without an
        interval (both ends None) for fewer than four cases or a perfect correlation, whose spread
        says nothing.

    Raises
    ------
    ValueError
        The lengths differ or a number is not finite.

    Notes
    -----
    The interval is that of Fisher's z with the infinitesimal jackknife's standard error, which
    knows of ties and of unequal spread where the usual 1 / sqrt(n - 3) does not, and Student's t;
    ``benchmarks/calibration_coverage.py`` compares them.

    References
    ----------
    Spearman (1904), The proof and measurement of association between two things. Efron (1981),
    Nonparametric estimates of standard error. Bonett and Wright (2000), Sample size requirements
    for estimating Pearson, Kendall and Spearman correlations.

    Examples
    --------
    >>> round(spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]).value, 9)
    0.8
    """
    return _correlation(a, b, _spearman, level, "fisher z, jackknife")


def kendall_tau(a: Sequence[float], b: Sequence[float], *, level: float = 0.95) -> Estimate:
    """Kendall's tau-b: how much more often two cases are ordered alike than opposite.

    Parameters
    ----------
    a, b : sequence of float, of equal length
        A number for each case, such as a judge's score and people's grade.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        (alike - opposite) / sqrt(pairs not tied in a x pairs not tied in b), in [-1, 1]; missing
        and with an interval as in `spearman`.

    Raises
    ------
    ValueError
        The lengths differ or a number is not finite.

    References
    ----------
    Kendall (1945), The treatment of ties in ranking problems. Efron (1981).

    Examples
    --------
    >>> round(kendall_tau([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]).value, 9)
    0.6
    """
    return _correlation(a, b, _kendall, level, "fisher z, jackknife")


def _correlation(
    a: Sequence[float], b: Sequence[float], statistic: Influence, level: float, method: str
) -> Estimate:
    import numpy as np

    critical(level)  # refuses a level that is none
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} numbers are not of the same cases")
    first, second = np.array(a, dtype=float), np.array(b, dtype=float)
    n = len(first)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a correlation is taken of finite numbers; leave missing values out")
    if n <= 1:
        return Estimate.missing("a correlation needs two cases", n=n, method=method)
    if first.min() == first.max() or second.min() == second.max():
        return Estimate.missing("all numbers of one side are equal", n=n, method=method)
    value, influence = statistic(first, second)
    value = min(max(value, -1.0), 1.0)
    reason = None
    if n < _FEWEST:
        reason = f"{n} cases have no interval"
    elif abs(value) > _FULL:
        value, reason = math.copysign(1.0, value), "a perfect correlation has no spread to go by"
    if reason:
        return Estimate(value=value, low=None, high=None, n=n, method=method, reason=reason)
    from scipy.special import stdtrit

    error = math.sqrt(float(influence @ influence) / n / (n - 3))
    half = float(stdtrit(n - 2, (1 + level) / 2)) * error / (1 - value**2)
    low, high = (math.tanh(math.atanh(value) + side * half) for side in (-1, 1))
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n, method=method)


def _spearman(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Rho, and how much a case with more weight would move it (also by moving others' ranks)."""
    ranks = [_ranks(numbers) for numbers in (a, b)]
    x, y = (each - each.mean() for each in ranks)
    both = x * y + _lifted(a, y) + _lifted(b, x)
    own_x, own_y = x * x + 2 * _lifted(a, x), y * y + 2 * _lifted(b, y)
    covariance, variance_x, variance_y = (
        float((p * q).mean()) for p, q in ((x, y), (x, x), (y, y))
    )
    scale = math.sqrt(variance_x * variance_y)
    rho = covariance / scale
    influence = both / scale - rho / 2 * (own_x / variance_x + own_y / variance_y)
    return rho, influence - influence.mean()


def _ranks(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mid-ranks in (0, 1)."""
    import numpy as np

    ordered = np.sort(numbers)
    below = np.searchsorted(ordered, numbers, side="left")
    ranks: NDArray[np.float64] = (below + np.searchsorted(ordered, numbers, side="right")) / 2
    return ranks / len(numbers)


def _lifted(numbers: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each number the mean weight of the cases above it, half of those tied with it."""
    import numpy as np

    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    below = sums[np.searchsorted(ordered, numbers, side="left")]
    upto = sums[np.searchsorted(ordered, numbers, side="right")]
    lifted: NDArray[np.float64] = (sums[-1] - (below + upto) / 2) / len(numbers)
    return lifted


def _kendall(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Tau-b, and how much a case with more weight would move it."""
    n = len(a)
    alike = _both_below(a, b) + _both_below(-a, -b)
    opposite = _both_below(a, -b) + _both_below(-a, b)
    score = (alike - opposite) / n
    untied_a, untied_b = (1 - _tied(numbers) / n for numbers in (a, b))
    mean_a, mean_b = float(untied_a.mean()), float(untied_b.mean())
    scale = math.sqrt(mean_a * mean_b)
    tau = float(score.mean()) / scale
    influence = 2 * score / scale - tau * (untied_a / mean_a + untied_b / mean_b)
    return tau, influence


def _tied(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each number how many equal it, itself included."""
    import numpy as np

    _, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    tied: NDArray[np.float64] = counts[inverse].astype(float)
    return tied


def _both_below(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each case how many others lie below it in both.

    The cases in order of `a` are split by the bits of their place in `b`, the highest first: who
    has the bit, has below it all who share the higher bits and lack this one. Of equal a the
    higher b goes first, so that they do not count.
    """
    import numpy as np

    places = np.unique(b, return_inverse=True)[1]
    order = np.lexsort((-places, a))
    below = np.zeros(len(a))
    for bit in reversed(range(int(places.max()).bit_length())):
        order = order[np.argsort(places[order] >> (bit + 1), kind="stable")]
        group = places[order] >> (bit + 1)
        has = (places[order] >> bit) & 1
        lacking = np.cumsum(1 - has)
        start = np.searchsorted(group, group, side="left")
        before = np.concatenate([[0], lacking])[start]
        below[order] += has * (lacking - before)
    return below
