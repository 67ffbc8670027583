"""Risks of two groups compared within strata, and pooled over them: Mantel and Haenszel's way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from misslink.stats.attributable import DRAWS, PRIOR
from misslink.stats.proportions import critical
from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Pooled", "Table", "comparable", "mantel_haenszel", "pooled_attributable_limits"]

Z_95 = critical(0.95)
Table = tuple[int, int, int, int]  # miss_bad, miss_good, hit_bad, hit_good


@dataclass(frozen=True)
class Pooled:
    """What is left of an association when cases are only compared within their stratum.

    Parameters
    ----------
    risk_difference, risk_ratio, attributable_fraction : Estimate
        n is the number of cases in the strata that are used.
    used, left_out : int
        Strata with both misses and hits, and strata without, which say nothing.
    """

    risk_difference: Estimate
    risk_ratio: Estimate
    attributable_fraction: Estimate
    used: int
    left_out: int


def comparable(strata: Sequence[Table]) -> list[Table]:
    """Return the strata with both a miss and a hit, which alone can be compared within.

    Raises
    ------
    ValueError
        A count is negative.
    """
    for table in strata:
        if min(table) < 0:
            raise ValueError(f"a count is negative: {table}")
    return [table for table in strata if table[0] + table[1] and table[2] + table[3]]


def mantel_haenszel(strata: Sequence[Table], *, seed: int = 0, level: float = 0.95) -> Pooled:
    """Pool the risk difference, the risk ratio and the attributable fraction over strata.

    Parameters
    ----------
    strata : sequence of (miss_bad, miss_good, hit_bad, hit_good)
        Counts of cases; a stratum without a miss or without a hit contributes nothing.
    seed : int
        Of the interval of the attributable fraction.
    level : float
        Of the intervals, in (0, 1).

    Returns
    -------
    Pooled
        With n1 misses, n0 hits and n cases in a stratum, each weighs n1 n0 / n.

        Difference: Klingenberg's interval, which inverts the test with the variance of Sato,
        Greenland and Robins; it holds for few large and for many small strata. Where no stratum
        has both good and bad answers, its ends are taken with one case more in each cell, spread
        over the strata by their size (``klingenberg +1``).
        Ratio: the log interval of Greenland and Robins; with half a case more in each cell,
        spread likewise, where Katz's interval of all cases would have none to trust. For one
        stratum it is Katz's. Missing where no hit is bad.
        Fraction: share of the bad answers that follow a miss x (1 - 1 / pooled ratio), Miettinen's
        formula. The interval is drawn as that of `attributable_fraction`, from the Dirichlet
        posterior of all cells, its prior spread over the strata by their size.
        ``benchmarks/interval_coverage.py`` measures all three.

    Raises
    ------
    ValueError
        A count is negative.

    References
    ----------
    Mantel and Haenszel (1959). Greenland and Robins (1985), Estimation of a common effect
    parameter from sparse follow-up data. Sato (1989), On the variance estimator for the
    Mantel-Haenszel risk difference. Klingenberg (2014), A new and improved confidence interval
    for the Mantel-Haenszel risk difference. Miettinen (1974), Proportion of disease caused or
    prevented by a given exposure, trait or intervention.

    Examples
    --------
    >>> found = mantel_haenszel([(8, 98, 5, 115), (22, 76, 16, 69)])
    >>> round(found.risk_difference.value, 3), round(found.risk_ratio.value, 2)
    (0.035, 1.33)
    """
    import numpy as np

    z = critical(level)
    usable = comparable(strata)
    left_out = len(strata) - len(usable)
    if not usable:
        nothing = Estimate.missing(
            "no stratum has both misses and hits" if strata else "no strata",
            method="mantel-haenszel",
        )
        return Pooled(nothing, nothing, nothing, 0, left_out)
    cells = np.array(usable, dtype=float)
    return Pooled(
        risk_difference=risk_difference_over(cells, z),
        risk_ratio=risk_ratio_over(cells, z),
        attributable_fraction=_fraction(cells, seed, level),
        used=len(usable),
        left_out=left_out,
    )


def risk_difference_over(cells: NDArray[np.float64], z: float = Z_95) -> Estimate:
    """Pooled difference of comparable strata, shape (strata, 4), with Klingenberg's interval."""
    value = float(pooled_difference(cells))
    good_and_bad = (cells[:, [0, 2]].sum(axis=1) > 0) & (cells[:, [1, 3]].sum(axis=1) > 0)
    silent = not good_and_bad.any()
    a, b, misses, hits, n = _columns(_more(cells, 1.0) if silent else cells)
    weight = (misses * hits / n).sum()
    slope = (misses**2 * b - hits**2 * a + misses * hits * (hits - misses) / 2) / n**2
    level_ = (a * (hits - b) + b * (misses - a)) / (2 * n)
    centre = float(pooled_difference(_more(cells, 1.0))) if silent else value
    middle = centre + z**2 * slope.sum() / (2 * weight**2)
    half = math.sqrt(max(middle**2 - centre**2 + z**2 * level_.sum() / weight**2, 0.0))
    return Estimate(
        value=value,
        low=max(min(float(middle) - half, value), -1.0),
        high=min(max(float(middle) + half, value), 1.0),
        n=int(cells.sum()),
        method="klingenberg +1" if silent else "klingenberg",
    )


def risk_ratio_over(cells: NDArray[np.float64], z: float = Z_95) -> Estimate:
    """Pooled ratio of comparable strata, shape (strata, 4), with Greenland and Robins' interval."""
    a, b, misses, hits, n = _columns(cells)
    above, below = float((a * hits / n).sum()), float((b * misses / n).sum())
    method = "greenland-robins"
    if not below:
        reason = "no hit is bad in the strata that are compared, so there is no ratio"
        return Estimate.missing(reason, n=int(n.sum()), method=method)
    value = above / below
    odd = not above or (a == misses).all() or (b == hits).all()
    if odd:
        a, b, misses, hits, n = _columns(_more(cells, 0.5))
        method += " +0.5"
    numerator, denominator = (a * hits / n).sum(), (b * misses / n).sum()
    spread = ((misses * hits * (a + b) - a * b * n) / n**2).sum()
    error = z * math.sqrt(spread / (numerator * denominator))
    centre = math.log(numerator / denominator)
    low = math.exp(centre - error) if above else 0.0
    return Estimate(
        value=value,
        low=min(low, value),
        high=max(math.exp(centre + error), value),
        n=int(cells.sum()),
        method=method,
    )


def _fraction(cells: NDArray[np.float64], seed: int, level: float) -> Estimate:
    import numpy as np

    n, method = int(cells.sum()), "dirichlet mantel-haenszel"
    if not cells[:, [0, 2]].any():
        return Estimate.missing("no bad answer to attribute", n=n, method=method)
    value = float(pooled_fraction(cells))
    low, high = pooled_attributable_limits(
        cells[np.newaxis], np.random.default_rng(seed), level=level, draws=DRAWS
    )[0]
    return Estimate(
        value=value, low=min(float(low), value), high=max(float(high), value), n=n, method=method
    )


def pooled_difference(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mantel-Haenszel risk difference of tables of shape (..., strata, 4)."""
    a, b, misses, hits, n = _columns(cells)
    weight = (misses * hits / n).sum(axis=-1)
    pooled: NDArray[np.float64] = ((a * hits - b * misses) / n).sum(axis=-1) / weight
    return pooled


def pooled_fraction(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Miettinen's attributable fraction of tables of shape (..., strata, 4) with a bad answer.

    Where no miss is bad, its limit as the pooled ratio goes to 0.
    """
    import numpy as np

    a, b, misses, hits, n = _columns(cells)
    above, below = (a * hits / n).sum(axis=-1), (b * misses / n).sum(axis=-1)
    expected = (misses * b / hits).sum(axis=-1)  # bad misses, if they went as the hits
    after_miss = a.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.where(above > 0, after_miss * below / above, expected)
    fraction: NDArray[np.float64] = (after_miss - expected) / (after_miss + b.sum(axis=-1))
    return fraction


def pooled_attributable_limits(
    tables: NDArray[np.float64],
    generator: np.random.Generator,
    *,
    level: float,
    draws: int,
    prior: float = PRIOR,
) -> NDArray[np.float64]:
    """Both ends of the pooled fraction for many sets of strata at once.

    Parameters
    ----------
    tables : array, shape (sets, strata, 4)
    generator : numpy Generator
    level : float
    draws : int
        From the posterior, for each set.
    prior : float
        Cases added to each cell of the strata together.

    Returns
    -------
    array of float, shape (sets, 2)
    """
    import numpy as np

    shapes = _more(tables, prior)[:, np.newaxis]
    # Undivided gammas will do: the fraction of a table and of a multiple of it are one.
    cells = generator.standard_gamma(shapes, (len(tables), draws, *tables.shape[1:]))
    cells = np.maximum(cells, np.finfo(float).tiny)  # a tiny shape can draw 0, and 0 / 0 is nothing
    tails = [(1 - level) / 2, (1 + level) / 2]
    ends: NDArray[np.float64] = np.quantile(pooled_fraction(cells), tails, axis=1).T
    return ends


def _columns(cells: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Bad misses, bad hits, misses, hits and cases of each stratum."""
    a, b = cells[..., 0], cells[..., 2]
    misses, hits = a + cells[..., 1], b + cells[..., 3]
    return a, b, misses, hits, misses + hits


def _more(cells: NDArray[np.float64], extra: float) -> NDArray[np.float64]:
    """Add `extra` cases to each of the four cells, spread over the strata by their size."""
    sizes = cells.sum(axis=-1, keepdims=True)
    more: NDArray[np.float64] = cells + extra * sizes / sizes.sum(axis=-2, keepdims=True)
    return more
