"""How large a paired difference is, in units that do not depend on the metric; the t-test beside.

A p-value says whether a difference is more than noise, an effect size whether it matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from misslink.types import Estimate

__all__ = ["PairedT", "cohens_dz", "paired_t"]

_FEWEST = 2  # one difference has no spread
_DECIMALS = 12  # 0.6 - 0.4 and 0.4 - 0.2 are one size


@dataclass(frozen=True)
class PairedT:
    """Student's paired t-test.

    Parameters
    ----------
    t, p : float or None
        The statistic, and its two-sided p-value; both None where `reason` says why.
    df : int
        Degrees of freedom, one fewer than pairs.
    reason : str or None
    """

    t: float | None
    p: float | None
    df: int
    reason: str | None = None


def paired_t(differences: Sequence[float]) -> PairedT:
    """Test whether the mean difference is 0, taking the differences for normal.

    Parameters
    ----------
    differences : sequence of float, one a case
        Finite. Fewer than two, or all alike, leave nothing to test by.

    References
    ----------
    Student (1908), The probable error of a mean.

    Examples
    --------
    >>> found = paired_t([1, 2, 3])
    >>> round(found.t, 3), round(found.p, 3), found.df
    (3.464, 0.074, 2)
    """
    n = len(differences)
    moments, reason = _moments(differences)
    if moments is None:
        return PairedT(None, None, max(n - 1, 0), reason)
    from scipy.special import stdtr

    centre, spread = moments
    t = centre / (spread / math.sqrt(n))
    return PairedT(t, min(1.0, 2 * float(stdtr(n - 1, -abs(t)))), n - 1)


def cohens_dz(differences: Sequence[float]) -> Estimate:
    """Mean difference in units of the differences' own standard deviation (n - 1).

    Parameters
    ----------
    differences : sequence of float, one a case
        Finite. Missing with fewer than two, and where all are alike.

    Returns
    -------
    Estimate
        Without an interval: that of the difference itself says how sure it is.

    References
    ----------
    Cohen (1988), Statistical power analysis for the behavioral sciences, section 2.3.5, where 0.2
    is small, 0.5 medium and 0.8 large.

    Examples
    --------
    >>> cohens_dz([1, 2, 3]).value
    2.0
    """
    n = len(differences)
    moments, reason = _moments(differences)
    if moments is None:
        return Estimate.missing(reason, n=n, method="cohen's d_z")
    centre, spread = moments
    return Estimate(
        value=centre / spread,
        low=None,
        high=None,
        n=n,
        method="cohen's d_z",
        reason="an effect size is given without an interval",
    )


def _moments(differences: Sequence[float]) -> tuple[tuple[float, float] | None, str]:
    """Mean and standard deviation, or why there is no spread to go by."""
    n = len(differences)
    if n < _FEWEST:
        return None, "fewer than two cases have a value in both"
    rounded = [round(each, _DECIMALS) for each in differences]
    if min(rounded) == max(rounded):
        same = "no case differs" if not rounded[0] else "all cases differ by the same"
        return None, f"{same}, so the differences have no spread"
    centre = math.fsum(differences) / n
    spread = math.sqrt(math.fsum((each - centre) ** 2 for each in differences) / (n - 1))
    return (centre, spread), ""
