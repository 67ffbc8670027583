"""Two shares compared: how much likelier something is in one group than in another."""

from __future__ import annotations

import math

from misslink.stats.proportions import check_counts, critical, wilson
from misslink.types import Estimate

__all__ = ["risk_difference", "risk_ratio"]


def risk_difference(a: int, n1: int, b: int, n2: int, *, level: float = 0.95) -> Estimate:
    """How much larger the share a / n1 is than b / n2.

    Parameters
    ----------
    a, n1 : int
        Cases in which it holds, and all cases, of the first group.
    b, n2 : int
        The same of the second, independent group.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        In [-1, 1], with Newcombe's hybrid score interval; missing where a group is empty.

    Raises
    ------
    ValueError
        The counts cannot be counts of the same cases.

    References
    ----------
    Newcombe (1998), Interval estimation for the difference between independent proportions,
    method 10.

    Examples
    --------
    >>> estimate = risk_difference(12, 20, 5, 50)
    >>> round(estimate.low, 2), estimate.value, round(estimate.high, 2)
    (0.26, 0.5, 0.69)
    """
    check_counts(a, n1)
    check_counts(b, n2)
    z = critical(level)
    if not n1 or not n2:
        return Estimate.missing(_empty_group(n1, n2), n=n1 + n2, method="newcombe")
    first, second = a / n1, b / n2
    (low1, high1), (low2, high2) = wilson(first, n1, z), wilson(second, n2, z)
    difference = first - second
    return Estimate(
        value=difference,
        low=max(difference - math.hypot(first - low1, high2 - second), -1.0),
        high=min(difference + math.hypot(high1 - first, second - low2), 1.0),
        n=n1 + n2,
        method="newcombe",
    )


def risk_ratio(a: int, n1: int, b: int, n2: int, *, level: float = 0.95) -> Estimate:
    """How many times the share b / n2 the share a / n1 is.

    Parameters
    ----------
    a, n1 : int
        Cases in which it holds, and all cases, of the first group.
    b, n2 : int
        The same of the second, independent group, which is divided by.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        0 or more, with Katz's log interval. Where it holds in none of the first group or in all
        of a group, that interval has no width or none that can be trusted, so its ends are taken
        with half a case added to both outcomes of both groups (``katz +0.5``); the value stays.
        Missing where a group is empty or it holds in none of the second group.

    Raises
    ------
    ValueError
        The counts cannot be counts of the same cases.

    References
    ----------
    Katz, Baptista, Azen and Pike (1978), Obtaining confidence intervals for the risk ratio in
    cohort studies. Agresti (1999), On logit confidence intervals for the odds ratio with small
    samples, for the half cases.

    Examples
    --------
    >>> estimate = risk_ratio(12, 20, 5, 50)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (2.4, 6.0, 14.8)
    """
    check_counts(a, n1)
    check_counts(b, n2)
    z = critical(level)
    n = n1 + n2
    if not n1 or not n2:
        return Estimate.missing(_empty_group(n1, n2), n=n, method="katz")
    if not b:
        reason = f"it holds in none of the {n2} cases that are divided by, so there is no ratio"
        return Estimate.missing(reason, n=n, method="katz")
    value = a * n2 / (n1 * b)
    odd = a in (0, n1) or b == n2
    half = 0.5 if odd else 0.0
    holds1, all1, holds2, all2 = a + half, n1 + 2 * half, b + half, n2 + 2 * half
    centre = math.log((holds1 / all1) / (holds2 / all2))
    error = math.sqrt(1 / holds1 - 1 / all1 + 1 / holds2 - 1 / all2)
    low = math.exp(centre - z * error) if a else 0.0
    return Estimate(
        value=value,
        low=min(low, value),
        high=max(math.exp(centre + z * error), value),
        n=n,
        method="katz +0.5" if odd else "katz",
    )


def _empty_group(n1: int, n2: int) -> str:
    if not n1 and not n2:
        return "no cases"
    return f"no cases in the {'second' if n1 else 'first'} group"
