"""Whether a risk rises or falls over ordered groups: the Cochran-Armitage test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Trend", "trend"]

_TABLES = 200_000  # gone through for the exact test; one more group multiplies their number
_ROUNDING = 1e-9
_FEWEST = 2  # one group has no order


@dataclass(frozen=True)
class Trend:
    """Test for trend: ``p`` is None where there is nothing to test, and ``reason`` says why.

    ``slope`` is that of the line through the shares, weighted by cases, per step from one group to
    the next; its sign is the direction that was tested, which the first and the last group alone
    may contradict.
    """

    p: float | None
    method: str = "cochran-armitage"
    reason: str | None = None
    slope: float | None = None


def trend(groups: Sequence[tuple[int, int]]) -> Trend:
    """Test whether the share of bad cases has a linear trend over groups in order.

    Parameters
    ----------
    groups : sequence of (bad, all cases)
        In order, a step apart; an empty group keeps its place and adds nothing.

    Returns
    -------
    Trend
        Two-sided. Given how many cases are bad and how large each group is, every way to place
        the bad ones is gone through where there are at most 200,000 tables (``cochran-armitage,
        exact``: up to some 600 bad cases in three groups); beyond that the normal law, which is
        then as good.

    Raises
    ------
    ValueError
        The counts cannot be counts of the same cases.

    References
    ----------
    Cochran (1954), Some methods for strengthening the common chi-squared tests. Armitage (1955),
    Tests for linear trends in proportions and frequencies. Agresti (2013), Categorical data
    analysis, section 5.3.5 for the exact test's conditioning.

    Examples
    --------
    >>> round(trend([(3, 4), (1, 4)]).p, 4)  # the lady tasting tea, in both directions
    0.4857
    """
    for bad, n in groups:
        if not 0 <= bad <= n:
            raise ValueError(f"{bad} of {n} cases is no share")
    filled = [(place, bad, n) for place, (bad, n) in enumerate(groups) if n]
    all_bad, cases = sum(bad for _, bad, _ in filled), sum(n for _, _, n in filled)
    if len(filled) < _FEWEST:
        return Trend(None, reason="fewer than two groups have cases")
    if all_bad in {0, cases}:
        return Trend(None, reason=f"{'all' if all_bad else 'none'} of the {cases} cases are bad")
    middle = sum(place * n for place, _, n in filled) / cases
    scores = [place - middle for place, _, _ in filled]
    score = math.fsum(s * bad for s, (_, bad, _) in zip(scores, filled, strict=True))
    observed = abs(score)
    sizes = [n for _, _, n in filled]
    spread = math.fsum(s * s * n for s, n in zip(scores, sizes, strict=True))
    slope = score / spread
    if math.prod(min(n, all_bad) + 1 for n in sizes[:-1]) <= _TABLES:
        p = _exactly(scores, sizes, all_bad, observed)
        return Trend(p, "cochran-armitage, exact", slope=slope)
    variance = all_bad * (cases - all_bad) * spread / (cases * (cases - 1))
    return Trend(math.erfc(observed / math.sqrt(2 * variance)), slope=slope)


def _exactly(scores: list[float], sizes: list[int], all_bad: int, observed: float) -> float:
    """P of a score as far from its mean, 0, over all tables with these margins."""
    import numpy as np

    placed: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    score, log = np.zeros(1), np.zeros(1)
    for each, size in zip(scores[:-1], sizes[:-1], strict=True):
        bad = np.arange(min(size, all_bad) + 1)
        placed = np.add.outer(placed, bad).ravel()
        score = np.add.outer(score, each * bad).ravel()
        log = np.add.outer(log, _log_ways(size, bad)).ravel()
    rest = all_bad - placed
    fits = (rest >= 0) & (rest <= sizes[-1])
    rest, score, log = rest[fits], score[fits], log[fits]
    score = score + scores[-1] * rest
    log = log + _log_ways(sizes[-1], rest)
    chance = np.exp(log - log.max())
    far = np.abs(score) >= observed * (1 - _ROUNDING) - _ROUNDING
    return min(float(chance[far].sum() / chance.sum()), 1.0)


def _log_ways(size: int, bad: NDArray[np.int64]) -> NDArray[np.float64]:
    from scipy.special import gammaln

    ways: NDArray[np.float64] = gammaln(size + 1) - gammaln(bad + 1) - gammaln(size - bad + 1)
    return ways
