"""A mean over cases, with an interval that needs no bell curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from misslink.stats.proportions import critical, wilson
from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["mean"]

_DRAWS = 10_000
_AT_ONCE = 2_000_000  # numbers held in memory at a time
# Distinct values from which a bell curve that leans as the values do gives the same digits: it is
# then nearer to the bootstrap's limit than 10,000 draws are (0.03 standard errors).
_MANY = 2_000
_ROUNDING = 1e-9  # an nDCG of 1.0000000000000002 is 1


def mean(
    values: Sequence[float],
    *,
    seed: int = 0,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    level: float = 0.95,
) -> Estimate:
    """Mean of one number per case; the order of the cases does not matter.

    Parameters
    ----------
    values : sequence of float, one a case
        Within `bounds`, if there are any; missing ones are left out by the caller.
    seed : int
        Of the bootstrap.
    bounds : pair of float or None
        What the values can be at least and at most. None: they are not bounded.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        Missing where there are no values. By `method`:

        ``wilson``
            Every value is one of the bounds: the score interval of a share.
        ``wilson bound``
            One value, or all alike: their spread says nothing, so that of a yes-or-no variable
            with this mean is taken, which no variable within the bounds exceeds.
        ``bootstrap``
            Within bounds: Bayesian bootstrap in which each bound counts as half a case more, the
            posterior of a Dirichlet process. For yes-or-no values it is the Jeffreys interval.
            ``benchmarks/interval_coverage.py`` shows why: over seven shapes of values it covers
            92 % and more from 5 cases on, where the percentile bootstrap covers 65 % of 30 cases
            that are almost all 1: a failure that is rare may not be in the sample yet.
            Without bounds: percentile bootstrap, widened as Student's t is for few cases.
        ``normal``
            More than 2,000 distinct values, where the bootstrap gives the same digits, slower: a
            normal interval, its ends moved by the skewness (Cornish and Fisher).

        Without bounds, one value or equal ones have no interval: both ends are None.

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
    z = critical(level)
    if not values:
        return Estimate.missing("no values")
    ordered = sorted(map(float, values))
    if not all(map(math.isfinite, ordered)):
        raise ValueError("a mean is taken of finite numbers; leave missing values out")
    if bounds is None:
        return _unbounded(ordered, seed, level)
    least, most = bounds
    scaled = [(value - least) / (most - least) for value in ordered]
    if scaled[0] < -_ROUNDING or scaled[-1] > 1 + _ROUNDING:
        raise ValueError(f"values from {ordered[0]} to {ordered[-1]} are not within {bounds}")
    scaled = [min(max(value, 0.0), 1.0) for value in scaled]
    value, low, high, method = _within_bounds(scaled, seed, level, z)
    low, value, high = (least + (most - least) * number for number in (low, value, high))
    return Estimate(value=value, low=low, high=high, n=len(values), method=method)


def _within_bounds(
    ordered: list[float], seed: int, level: float, z: float
) -> tuple[float, float, float, str]:
    """Mean, both ends and method, of sorted values in [0, 1]."""
    import numpy as np

    n = len(ordered)
    centre = min(math.fsum(ordered) / n, 1.0)
    if set(ordered) <= {0.0, 1.0}:
        return centre, *wilson(centre, n, z), "wilson"
    if ordered[0] == ordered[-1]:
        return centre, *wilson(centre, n, z), "wilson bound"
    distinct, counts = np.unique(np.array([0.0, *ordered, 1.0]), return_counts=True)
    weights = counts.astype(float)
    weights[[0, -1]] -= 0.5  # the added bounds count half a case each
    if len(distinct) > _MANY:
        middle = float(weights @ distinct) / (n + 1)
        spread = float(weights @ (distinct - middle) ** 2) / (n + 1)
        third = float(weights @ (distinct - middle) ** 3) / (n + 1)
        deviation = math.sqrt(spread / (n + 2))  # the posterior's own
        skewness = 2 * third * math.sqrt(n + 2) / (n + 3) / spread**1.5
        low, high = (middle + deviation * end for end in _leaning(z, skewness))
        method = "normal"
    else:
        generator = np.random.default_rng(seed)

        def draw(draws: int) -> NDArray[np.float64]:
            mass = generator.standard_gamma(weights, (draws, len(distinct)))
            means: NDArray[np.float64] = mass @ distinct / mass.sum(axis=1)
            return means

        low, high = _ends(draw, len(distinct), (1 - level) / 2)
        method = "bootstrap"
    return centre, max(min(low, centre), 0.0), min(max(high, centre), 1.0), method


def _unbounded(ordered: list[float], seed: int, level: float) -> Estimate:
    import numpy as np

    n = len(ordered)
    centre = math.fsum(ordered) / n
    if ordered[0] == ordered[-1]:
        reason = "one value has no interval" if n == 1 else "all values are equal"
        return Estimate(value=centre, low=None, high=None, n=n, method="bootstrap", reason=reason)
    distinct, counts = np.unique(np.array(ordered), return_counts=True)
    # Moments around the mean: a tiny spread on a large value must not drown in rounding.
    around = distinct - centre
    tail = _widened_tail(level, n)
    if len(distinct) > _MANY:
        spread = float(counts @ around**2) / n
        skewness = float(counts @ around**3) / n / spread**1.5 / math.sqrt(n)
        ends = _leaning(critical(1 - 2 * tail), skewness)
        low, high = (math.sqrt(spread / n) * end for end in ends)
        method = "normal"
    else:
        generator = np.random.default_rng(seed)

        def draw(draws: int) -> NDArray[np.float64]:
            means: NDArray[np.float64] = generator.multinomial(n, counts / n, draws) @ around / n
            return means

        low, high = _ends(draw, len(distinct), tail)
        method = "bootstrap"
    return Estimate(
        value=centre, low=centre + min(low, 0), high=centre + max(high, 0), n=n, method=method
    )


def _leaning(z: float, skewness: float) -> tuple[float, float]:
    """Both ends, in standard deviations, of a distribution that is nearly normal."""
    lean = (z * z - 1) / 6 * skewness
    return lean - z, lean + z


def _widened_tail(level: float, n: int) -> float:
    """The tail to cut so that n values, resampled, spread as Student's t says they should.

    Hesterberg (2015): a resample's variance is short by (n - 1) / n, and the quantile is t's.
    """
    from scipy.special import ndtr, stdtrit

    return float(ndtr(math.sqrt(n / (n - 1)) * stdtrit(n - 1, (1 - level) / 2)))


def _ends(
    draw: Callable[[int], NDArray[np.float64]], width: int, tail: float
) -> tuple[float, float]:
    """Both quantiles of the drawn means, drawn in chunks of bounded memory."""
    import numpy as np

    chunk = max(1, _AT_ONCE // width)
    sizes = [min(chunk, _DRAWS - start) for start in range(0, _DRAWS, chunk)]
    low, high = np.quantile(np.concatenate([draw(size) for size in sizes]), [tail, 1 - tail])
    return float(low), float(high)
