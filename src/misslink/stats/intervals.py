"""Intervals of shares, means and medians."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from misslink.types import Estimate, Reason

Floats = NDArray[np.float64]

LEVEL = 0.95  # of confidence, where no other is given
DRAWS = 10_000  # resamples behind an interval
NORMAL_FROM = (
    2_000  # distinct values or clusters from which the normal interval has the same digits
)
_FEW_FLIPS = 60
_MAX_CELLS = 2_000_000  # numbers drawn at a time, which bounds the memory
_MAX_PRODUCT = 200_000  # multiplications of one product
_ROUNDING = 1e-9  # an nDCG of 1.0000000000000002 is 1


def interval_estimate(
    value: float,
    low: float,
    high: float,
    *,
    n: int,
    method: str,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Return an Estimate whose interval is cut to `bounds` and widened to contain the value."""
    low, high = max(float(low), bounds[0]), min(float(high), bounds[1])
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n, method=method)


def without_interval(value: float, reason: Reason, *, n: int, method: str) -> Estimate:
    """Return an Estimate with a value but no interval."""
    return Estimate.partial(value, None, None, reason, n=n, method=method)


def check_counts(successes: int, n: int) -> None:
    """Raise ValueError unless 0 <= `successes` <= `n`."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} cases is not a share")


def critical_value(level: float = LEVEL) -> float:
    """Return the two-sided standard normal quantile of a level in (0, 1): 1.96 for 0.95."""
    if not 0 < level < 1:
        raise ValueError(f"a confidence level is between 0 and 1, not {level}")
    return NormalDist().inv_cdf((1 + level) / 2)


def student_quantile(level: float, freedom: float) -> float:
    """Return the two-sided quantile of Student's t, wider than `critical_value`."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def square_and_add(*parts: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return value, low and high of the sum of independent parts, each a value, low and high.

    References
    ----------
    Zou and Donner (2008), Construction of confidence limits about effect measures.
    """
    value = sum(part for part, _, _ in parts)
    low = value - math.hypot(*(part - end for part, end, _ in parts))
    return value, low, value + math.hypot(*(end - part for part, _, end in parts))


def wilson_interval(share: float, n: float, z: float) -> tuple[float, float]:
    """Return both ends of the Wilson score interval around `share` of `n` cases, `n` above 0."""
    shrink = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At 0 and 1 the end equals the share; rounding must not push it past.
    return min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share)


def proportion(successes: int, n: int, *, level: float = 0.95) -> Estimate:
    """Return the share of cases in which something holds, with the Wilson score interval.

    Parameters
    ----------
    successes : int
        Cases in which it holds, 0 to `n`.
    n : int
        All cases.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    Estimate
        The interval has a width even at 0 and 1. Missing if `n` is 0.

    Raises
    ------
    ValueError
        `successes` is not between 0 and `n`.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical inference.
    Brown, Cai and DasGupta (2001), Interval estimation for a binomial proportion.

    Examples
    --------
    >>> estimate = proportion(8, 10)
    >>> round(estimate.low, 3), estimate.value, round(estimate.high, 3)
    (0.49, 0.8, 0.943)
    """
    check_counts(successes, n)
    z = critical_value(level)
    if n == 0:
        return Estimate.missing(Reason(code="no_cases"), method="wilson")
    low, high = wilson_interval(successes / n, n, z)
    return Estimate(value=successes / n, low=low, high=high, n=n, method="wilson")


def mean(
    values: Sequence[float],
    *,
    seed: int = 0,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    level: float = 0.95,
) -> Estimate:
    """Return the mean of one number per case with an interval; the order does not matter.

    Parameters
    ----------
    values : sequence of float, one a case
        Within `bounds`. The caller leaves missing values out.
    seed : int
        Random seed of the bootstrap.
    bounds : pair of float or None
        Smallest and largest possible value. None: not bounded.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    Estimate
        Missing without values. By `method`:

        ``wilson``
            Every value is one of the bounds: the score interval of a share.
        ``wilson bound``
            One value, or equal values: the interval of a yes-or-no variable with this mean, the
            widest that the bounds allow.
        ``bootstrap``
            With bounds: Bayesian bootstrap in which each bound counts as half a case (a Dirichlet
            process; for yes-or-no values it is the Jeffreys interval). It covers 92% and more
            from 5 cases on; the percentile bootstrap covers 65% for 30 cases that are almost all
            1 (``benchmarks/stats/interval_coverage.py``). Without bounds: percentile bootstrap, widened
            as Student's t is.
        ``normal``
            More than 2,000 distinct values: a normal interval with ends moved by the skewness.

        Without bounds, one value or equal values have no interval.

    Raises
    ------
    ValueError
        A value is not a finite number within `bounds`.

    References
    ----------
    Rubin (1981), The Bayesian bootstrap. Ferguson (1973), A Bayesian analysis of some
    nonparametric problems. Hesterberg (2015), What teachers should know about the bootstrap.
    Cornish and Fisher (1938), Moments and cumulants in the specification of distributions.

    Examples
    --------
    >>> mean([1, 1, 0, 1]).method, mean([1, 0.5, 0.75]).value
    ('wilson', 0.75)
    """
    z = critical_value(level)
    if not values:
        return Estimate.missing(Reason(code="no_values"))
    ordered = sorted(map(float, values))
    if not all(map(math.isfinite, ordered)):
        raise ValueError("mean needs finite numbers; leave missing values out")
    if bounds is None:
        return _unbounded_mean(ordered, seed, level)
    least, most = bounds
    scaled = [(value - least) / (most - least) for value in ordered]
    if scaled[0] < -_ROUNDING or scaled[-1] > 1 + _ROUNDING:
        raise ValueError(f"values from {ordered[0]} to {ordered[-1]} are not within {bounds}")
    scaled = [min(max(value, 0.0), 1.0) for value in scaled]
    value, low, high, method = _bounded_mean(scaled, seed, level, z)
    low, value, high = (least + (most - least) * number for number in (low, value, high))
    return Estimate(value=value, low=low, high=high, n=len(values), method=method)


def _bounded_mean(
    ordered: list[float], seed: int, level: float, z: float
) -> tuple[float, float, float, str]:
    """Mean, both ends and method, of sorted values in [0, 1]."""
    n = len(ordered)
    centre = min(math.fsum(ordered) / n, 1.0)
    if set(ordered) <= {0.0, 1.0}:
        return centre, *wilson_interval(centre, n, z), "wilson"
    if ordered[0] == ordered[-1]:
        return centre, *wilson_interval(centre, n, z), "wilson bound"
    distinct, counts = np.unique(np.array([0.0, *ordered, 1.0]), return_counts=True)
    weights = counts.astype(float)
    weights[[0, -1]] -= 0.5  # the added bounds count half a case each
    if len(distinct) > NORMAL_FROM:
        middle = float(weights @ distinct) / (n + 1)
        spread = float(weights @ (distinct - middle) ** 2) / (n + 1)
        third = float(weights @ (distinct - middle) ** 3) / (n + 1)
        deviation = math.sqrt(spread / (n + 2))  # the posterior's own
        skewness = 2 * third * math.sqrt(n + 2) / (n + 3) / spread**1.5
        low, high = (middle + deviation * end for end in _skewed_ends(z, skewness))
        method = "normal"
    else:
        low, high = _posterior_ends(tuple(distinct.tolist()), tuple(weights.tolist()), seed, level)
        method = "bootstrap"
    return centre, max(min(low, centre), 0.0), min(max(high, centre), 1.0), method


@lru_cache(maxsize=128)  # summary, page and charts ask for the same means
def _posterior_ends(
    distinct: tuple[float, ...], weights: tuple[float, ...], seed: int, level: float
) -> tuple[float, float]:
    generator = np.random.default_rng(seed)

    def draw(draws: int) -> Floats:
        mass = generator.standard_gamma(weights, (draws, len(distinct)))
        return weighted_sums(mass, np.array(distinct)) / mass.sum(axis=1)

    return quantiles(draw_in_chunks(draw, len(distinct)), level)


def _unbounded_mean(ordered: list[float], seed: int, level: float) -> Estimate:
    n = len(ordered)
    centre = math.fsum(ordered) / n
    if ordered[0] == ordered[-1]:
        reason = Reason(code="one_value") if n == 1 else Reason(code="equal_values")
        return without_interval(centre, reason, n=n, method="bootstrap")
    distinct, counts = np.unique(np.array(ordered), return_counts=True)
    # Moments around the mean: a tiny spread on a large value must not drown in rounding.
    around = distinct - centre
    # Hesterberg (2015): a resample's variance is short by (n - 1) / n, and the quantile is t's.
    tail = student_tail(level, math.sqrt(n / (n - 1)), n - 1)
    if len(distinct) > NORMAL_FROM:
        spread = float(counts @ around**2) / n
        skewness = float(counts @ around**3) / n / spread**1.5 / math.sqrt(n)
        ends = _skewed_ends(critical_value(1 - 2 * tail), skewness)
        low, high = (math.sqrt(spread / n) * end for end in ends)
        method = "normal"
    else:
        generator = np.random.default_rng(seed)

        def draw(draws: int) -> Floats:
            return generator.multinomial(n, counts / n, draws) @ around / n

        low, high = quantiles(draw_in_chunks(draw, len(distinct)), 1 - 2 * tail)
        method = "bootstrap"
    return interval_estimate(
        centre, centre + min(low, 0), centre + max(high, 0), n=n, method=method
    )


def _skewed_ends(z: float, skewness: float) -> tuple[float, float]:
    """Both ends, in standard deviations, of a nearly normal distribution (Cornish-Fisher)."""
    lean = (z * z - 1) / 6 * skewness
    return lean - z, lean + z


def student_tail(level: float, spread: float, freedom: float) -> float:
    """Return the normal tail beyond Student's quantile times `spread`, to widen a bootstrap."""
    from scipy.special import ndtr

    return float(ndtr(-spread * student_quantile(level, freedom)))


def draw_in_chunks(draw: Callable[[int], Floats], width: int, draws: int = DRAWS) -> Floats:
    """Concatenate `draws` results of `draw(size)`; each result needs `width` numbers."""
    chunk = max(1, _MAX_CELLS // width)
    return np.concatenate([draw(min(chunk, draws - start)) for start in range(0, draws, chunk)])


def weighted_sums(weights: Floats, columns: Floats) -> Floats:
    """Return ``weights @ columns``, in products too small for the threads of BLAS, which cost more here."""
    rows = max(1, _MAX_PRODUCT // max(1, columns.size))
    return np.concatenate(
        [weights[start : start + rows] @ columns for start in range(0, len(weights), rows)]
    )


def quantiles(drawn: Floats, level: float = LEVEL) -> tuple[float, float]:
    """Return both ends of the middle `level` of the drawn numbers."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def median(values: Sequence[float]) -> Estimate:
    """Return the median with a distribution-free interval between two order statistics.

    Parameters
    ----------
    values : sequence of float

    Returns
    -------
    Estimate
        Covers at least 95% for every distribution. Missing without values; fewer than 6
        values have no interval.

    References
    ----------
    Conover (1999), Practical nonparametric statistics, section 3.2.

    Examples
    --------
    >>> estimate = median([1, 2, 3, 4, 5, 6, 7])
    >>> estimate.low, estimate.value, estimate.high
    (1.0, 4.0, 7.0)
    """
    method = "order statistics"
    if not values:
        return Estimate.missing(Reason(code="no_values"), method=method)
    ordered = sorted(map(float, values))
    n = len(ordered)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    cut = 0  # how many values are cut from each side
    while 2 * _at_most_heads(cut, n) <= 1 - LEVEL:
        cut += 1
    if not cut:
        return without_interval(middle, Reason(code="few_values", n=n), n=n, method=method)
    return Estimate(value=middle, low=ordered[cut - 1], high=ordered[n - cut], n=n, method=method)


def quartiles(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the first and the third quartile; None without values."""
    if not values:
        return None
    low, high = np.quantile(values, [0.25, 0.75])
    return float(low), float(high)


def _at_most_heads(count: int, n: int) -> float:
    """Chance of at most `count` heads of `n`; where these are few without the import of SciPy."""
    if n <= _FEW_FLIPS:
        return sum(math.comb(n, heads) for heads in range(count + 1)) / 2**n
    from scipy.special import bdtr

    return float(bdtr(count, n, 0.5))
