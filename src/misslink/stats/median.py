"""The median of what was measured, with an interval that assumes no shape."""

from __future__ import annotations

from collections.abc import Sequence

from misslink.types import Estimate

__all__ = ["median", "quartiles"]

_METHOD = "order statistics"


def median(values: Sequence[float], *, level: float = 0.95) -> Estimate:
    """Median, between two of the values themselves.

    Parameters
    ----------
    values : sequence of float
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        Its ends are order statistics that the binomial distribution chooses, so it covers at
        least `level` whatever the distribution. Missing where there are no values; of fewer than
        6 (at 95 %) no two values are far enough apart, and both ends are None.

    References
    ----------
    Conover (1999), Practical nonparametric statistics, section 3.2.

    Examples
    --------
    >>> found = median([1, 2, 3, 4, 5, 6, 7])
    >>> found.low, found.value, found.high
    (1.0, 4.0, 7.0)
    """
    from scipy.special import bdtr

    if not values:
        return Estimate.missing("no values", method=_METHOD)
    ordered = sorted(map(float, values))
    n = len(ordered)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    # The greatest number of values that may be cut from each side.
    cut = 0
    while 2 * float(bdtr(cut, n, 0.5)) <= 1 - level:
        cut += 1
    if not cut:
        reason = f"{n} values are too few for an interval"
        return Estimate(value=middle, low=None, high=None, n=n, method=_METHOD, reason=reason)
    return Estimate(value=middle, low=ordered[cut - 1], high=ordered[n - cut], n=n, method=_METHOD)


def quartiles(values: Sequence[float]) -> tuple[float, float] | None:
    """The quarter and the three-quarter point; None without values."""
    import numpy as np

    if not values:
        return None
    low, high = np.quantile(values, [0.25, 0.75])
    return float(low), float(high)
