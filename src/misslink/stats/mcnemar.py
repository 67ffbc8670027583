"""Yes-or-no values of the same cases in two systems: how many turned to yes, how many to no."""

from __future__ import annotations

from dataclasses import dataclass

from misslink.stats.proportions import check_counts
from misslink.types import Estimate

__all__ = ["McNemar", "mcnemar"]

_METHOD = "clopper-pearson, as odds"


@dataclass(frozen=True)
class McNemar:
    """What became of the cases that changed.

    Parameters
    ----------
    gained, lost : int
        Cases that turned from no to yes, and from yes to no.
    p : float
        Two-sided and exact: the chance that fair coins, one a changed case, fall as unevenly.
    odds : Estimate
        gained / lost, how many turn to yes for each that turns to no; n is how many changed.
    """

    gained: int
    lost: int
    p: float
    odds: Estimate


def mcnemar(gained: int, lost: int, *, level: float = 0.95) -> McNemar:
    """Test whether as many cases turned to yes as to no.

    Parameters
    ----------
    gained, lost : int
        0 or more. Without any, p is 1 and there are no odds.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    McNemar
        The odds have the exact interval of the share that gained. They are missing where none
        lost; an end that is not bounded is None.

    Raises
    ------
    ValueError
        A count is negative.

    References
    ----------
    McNemar (1947), Note on the sampling error of the difference between correlated proportions or
    percentages. Clopper and Pearson (1934), The use of confidence or fiducial limits. Fleiss,
    Levin and Paik (2003), Statistical methods for rates and proportions, section 13.1.

    Examples
    --------
    >>> found = mcnemar(6, 1)
    >>> found.p, found.odds.value
    (0.125, 6.0)
    """
    n = gained + lost
    check_counts(gained, n)
    check_counts(lost, n)
    from scipy.special import bdtr

    # Both tails of the binomial are alike, and the middle outcome of an even n is in both.
    p = min(1.0, 2 * float(bdtr(min(gained, lost), n, 0.5))) if n else 1.0
    return McNemar(gained, lost, p, _odds(gained, lost, level))


def _odds(gained: int, lost: int, level: float) -> Estimate:
    n = gained + lost
    if not lost:
        reason = "no case turned to no, so there are no odds" if n else "no case changed"
        return Estimate.missing(reason, n=n, method=_METHOD)
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(gained, lost + 1, tail)) if gained else 0.0
    high = float(betaincinv(gained + 1, lost, 1 - tail))
    return Estimate(
        value=gained / lost, low=low / (1 - low), high=high / (1 - high), n=n, method=_METHOD
    )
