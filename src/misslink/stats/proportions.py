"""A share of yes-or-no cases, with the Wilson score interval."""

from __future__ import annotations

import math
from statistics import NormalDist

from misslink.types import Estimate

__all__ = ["check_counts", "critical", "proportion", "wilson"]


def proportion(successes: int, n: int, *, level: float = 0.95) -> Estimate:
    """Share of cases in which something holds.

    Parameters
    ----------
    successes : int
        Cases in which it holds, 0 to `n`.
    n : int
        All cases.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        With the Wilson score interval, which has a width even at 0 and 1; missing where `n` is 0.

    Raises
    ------
    ValueError
        The counts cannot be counts of the same cases.

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
    z = critical(level)
    if n == 0:
        return Estimate.missing("no cases", method="wilson")
    low, high = wilson(successes / n, n, z)
    return Estimate(value=successes / n, low=low, high=high, n=n, method="wilson")


def wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """Both ends of the Wilson score interval around `share` of `n` cases, `n` above 0."""
    shrink = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At 0 and 1 the end equals the share; rounding must not push it past.
    return min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share)


def critical(level: float) -> float:
    """The two-sided standard normal quantile of a level in (0, 1): 1.96 for 0.95."""
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not {level}")
    return NormalDist().inv_cdf((1 + level) / 2)


def check_counts(successes: int, n: int) -> None:
    """Raise ValueError unless 0 <= `successes` <= `n`."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} cases is no share")
