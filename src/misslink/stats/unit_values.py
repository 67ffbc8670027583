"""Units as the unit of analysis: one number for each, whose mean is the metric of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from misslink.stats.proportions import critical, wilson
from misslink.types import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["mean_of_units", "unit_values", "welch"]

_FEWEST = 2  # one unit does not say how units differ


def unit_values(
    numerators: Sequence[float] | NDArray[Any],
    denominators: Sequence[float] | NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Turn a ratio over units into one number a unit (the delta method).

    Parameters
    ----------
    numerators : sequence of float, one a unit
        Such as thumbs up.
    denominators : sequence of float, one a unit, or None
        Such as requests, from 0; a unit of 0 has no say. None: 1 each, and the metric is a mean.

    Returns
    -------
    array of float, one a unit
        Their mean is sum(numerators) / sum(denominators), and their variance divided by how many
        they are is the ratio's variance: R + (numerator - R * denominator) / mean denominator, each
        deviation as the jackknife has it, so that one unit of very many requests is not taken
        for a consensus. Empty where all denominators are 0.

    Raises
    ------
    ValueError
        The lengths differ, a number is not finite, or a denominator is below 0.

    References
    ----------
    Deng, Knoblich and Lu (2018), Applying the delta method in metric analytics: a practical guide
    with novel ideas. Miller (1974), The jackknife: a review (ratios).

    Examples
    --------
    >>> unit_values([1, 3], [2, 2]).tolist(), round(float(unit_values([1, 0, 1]).mean()), 3)
    ([0.5, 1.5], 0.667)
    """
    import numpy as np

    above = np.asarray(numerators, dtype=np.float64)
    below = np.ones_like(above) if denominators is None else np.asarray(denominators, np.float64)
    if above.shape != below.shape:
        raise ValueError(f"{len(above)} numerators and {len(below)} denominators are no units")
    if not (np.isfinite(above).all() and np.isfinite(below).all() and (below >= 0).all()):
        raise ValueError("units are counted in finite numbers, denominators from 0")
    total = float(below.sum())
    if not total:
        return np.empty(0)
    ratio = float(above.sum()) / total
    count = len(below)
    pull = (above - ratio * below) * (count / total)
    # A unit that holds much of the total draws the ratio towards itself and hides how far it is
    # off; held against the others it shows. Of equal denominators this changes nothing.
    others = 1 - below / total
    pull *= np.divide(1 - 1 / count, others, out=np.ones_like(others), where=others > 0)
    values: NDArray[Any] = ratio + pull - pull.mean()
    return values


def mean_of_units(
    values: NDArray[Any], *, level: float = 0.95, bounds: tuple[float, float] | None = None
) -> Estimate:
    """Mean of `unit_values` with Student's interval, its ends within `bounds`.

    Missing where there are no units. One unit or equal ones have no spread to go by: what is
    bounded then has Wilson's interval (``wilson bound``), anything else none.
    """
    count = len(values)
    if not count:
        return Estimate.missing("no unit has a value", method="delta")
    centre = float(values.mean())
    half = _half(values, level)
    if half is None and bounds is not None and math.isfinite(bounds[1] - bounds[0]):
        least, wide = bounds[0], bounds[1] - bounds[0]
        inside = min(max((centre - least) / wide, 0.0), 1.0)
        ends = wilson(inside, count, critical(level))
        low, high = (least + wide * end for end in ends)
        return Estimate(
            value=centre,
            low=min(low, centre),
            high=max(high, centre),
            n=count,
            method="wilson bound",
        )
    if half is None:
        return _bare(centre, count, "units are too few or all alike")
    least, most = bounds or (-math.inf, math.inf)
    return Estimate(
        value=centre,
        low=min(max(centre - half, least), centre),
        high=max(min(centre + half, most), centre),
        n=count,
        method="delta",
    )


def welch(
    control: NDArray[Any], variant: NDArray[Any], *, level: float = 0.95
) -> tuple[Estimate, float | None]:
    """Difference of two means of units, variant minus control, for one look at a fixed size.

    Parameters
    ----------
    control, variant : array of float
        As `unit_values` gives them.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate, float or None
        By Welch's test, and its p-value. It holds for one look, planned beforehand: for looking
        early see `misslink.stats.sequential`. Missing where a side has no unit; without an
        interval and a p-value where one has a single unit, or all are alike in both.

    References
    ----------
    Welch (1947), The generalization of Student's problem when several different population
    variances are involved.
    """
    count = len(control) + len(variant)
    if not len(control) or not len(variant):
        return Estimate.missing("a variant has no unit with a value", n=count, method="welch"), None
    difference = float(variant.mean() - control.mean())
    if min(len(control), len(variant)) < _FEWEST:
        return _bare(difference, count, "one unit does not say how units differ", "welch"), None
    parts = [float(side.var(ddof=1)) / len(side) for side in (control, variant)]
    error = math.sqrt(sum(parts))
    if not error:
        return _bare(difference, count, "all units are alike", "welch"), None
    from scipy.special import stdtr, stdtrit

    sizes = (len(control), len(variant))
    spread = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    freedom = sum(parts) ** 2 / spread
    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    p = min(1.0, 2 * float(stdtr(freedom, -abs(difference) / error)))
    low, high = difference - half, difference + half
    return Estimate(value=difference, low=low, high=high, n=count, method="welch"), p


def _half(values: NDArray[Any], level: float) -> float | None:
    if len(values) < _FEWEST:
        return None
    from scipy.special import stdtrit

    error = math.sqrt(float(values.var(ddof=1)) / len(values))
    return float(stdtrit(len(values) - 1, (1 + level) / 2)) * error or None


def _bare(value: float, count: int, reason: str, method: str = "delta") -> Estimate:
    return Estimate(value=value, low=None, high=None, n=count, method=method, reason=reason)
