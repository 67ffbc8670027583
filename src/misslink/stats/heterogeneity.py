"""Whether strata tell the same risk difference, also where they are small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from misslink.stats.mantel_haenszel import Table, comparable, pooled_difference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["heterogeneity"]

_DRAWS = 5_000  # a p-value of 0.05 then has a standard error of 0.003
_FEWEST = 2  # one stratum agrees with itself
_HALVINGS = 50  # to the last digit of a double, nearly
_ROUNDING = 1e-9


def heterogeneity(strata: Sequence[Table], *, seed: int = 0, draws: int = _DRAWS) -> float | None:
    """P-value of the test that one risk difference holds in all strata.

    Parameters
    ----------
    strata : sequence of (miss_bad, miss_good, hit_bad, hit_good)
        Those without a miss or without a hit contribute nothing.
    seed : int
    draws : int
        Of the parametric bootstrap, at least 1.

    Returns
    -------
    float or None
        In (0, 1]. None: fewer than two strata can be compared.

    Raises
    ------
    ValueError
        A count is negative.

    Notes
    -----
    The difference and not the ratio: it exists in every stratum, also where no hit is bad, and it
    is what counts answers. The statistic is Cochran's Q around the Mantel-Haenszel difference,
    each stratum's variance taken with one case more in each cell (Agresti and Caffo). Its chi
    squared law fails in small strata, so it is held against the same statistic of tables drawn
    from the strata's own risks as they are likeliest if the difference is the same everywhere.
    ``benchmarks/interval_coverage.py`` shows how often either errs.

    References
    ----------
    Cochran (1954), The combination of estimates from different experiments. Lipsitz, Dear, Laird
    and Molenberghs (1998), Tests for homogeneity of the risk difference when data are sparse.
    Efron and Tibshirani (1993), An introduction to the bootstrap, chapter 16.

    Examples
    --------
    >>> heterogeneity([(9, 1, 2, 18), (1, 9, 12, 8)]) < 0.001
    True
    """
    import numpy as np

    usable = comparable(strata)
    if len(usable) < _FEWEST:
        return None
    cells = np.array(usable, dtype=float)
    misses, hits = cells[:, :2].sum(axis=1), cells[:, 2:].sum(axis=1)
    after_hit, after_miss = _risks_if_same(cells)
    generator = np.random.default_rng(seed)
    a = generator.binomial(misses.astype(int), after_miss, (draws, len(usable)))
    b = generator.binomial(hits.astype(int), after_hit, (draws, len(usable)))
    drawn = np.stack([a, misses - a, b, hits - b], axis=-1)
    observed = float(cochran_q(cells)) * (1 - _ROUNDING)
    return (int((cochran_q(drawn) >= observed).sum()) + 1) / (draws + 1)


def cochran_q(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared distances of the strata from the pooled difference, over their variances."""
    import numpy as np

    a, b = cells[..., 0], cells[..., 2]
    misses, hits = a + cells[..., 1], b + cells[..., 3]
    p, q = (a + 1) / (misses + 2), (b + 1) / (hits + 2)
    variance = p * (1 - p) / (misses + 2) + q * (1 - q) / (hits + 2)
    away = a / misses - b / hits - pooled_difference(cells)[..., np.newaxis]
    total: NDArray[np.float64] = (away**2 / variance).sum(axis=-1)
    return total


def _risks_if_same(
    cells: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each stratum's likeliest risks after a hit and a miss, the pooled difference apart.

    The likelihood is concave in the risk after a hit, so its slope is halved down to its root.
    """
    import numpy as np

    apart = float(pooled_difference(cells))
    miss_bad, miss_good, hit_bad, hit_good = cells.T
    low = np.full(len(cells), max(0.0, -apart))
    high = np.full(len(cells), min(1.0, 1.0 - apart))
    for _ in range(_HALVINGS):
        risk = (low + high) / 2
        other = np.clip(risk + apart, 0, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            rises = _over(hit_bad, risk) + _over(miss_bad, other)
            falls = _over(hit_good, 1 - risk) + _over(miss_good, 1 - other)
        up = rises > falls
        low, high = np.where(up, risk, low), np.where(up, high, risk)
    risk = (low + high) / 2
    return np.clip(risk, 0, 1), np.clip(risk + apart, 0, 1)


def _over(count: NDArray[np.float64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """How steep the likelihood of `count` cases is; no cases have none."""
    import numpy as np

    slope: NDArray[np.float64] = np.where(count > 0, count / chance, 0.0)
    return slope
