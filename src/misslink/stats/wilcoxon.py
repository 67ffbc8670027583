"""Wilcoxon's signed-rank test: a paired test that reads the order of the differences alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SignedRank", "wilcoxon"]

_EXACT = 50  # differences up to which every outcome is gone through, ties and all
_DECIMALS = 12  # 0.6 - 0.4 and 0.4 - 0.2 are one size


@dataclass(frozen=True)
class SignedRank:
    """What the ranks of the differences say.

    Parameters
    ----------
    positive, negative : float
        Sums of the ranks of the differences above and below 0, ranked by their size.
    p : float or None
        Two-sided; None where `reason` says why.
    effect : float or None
        The matched-pairs rank-biserial correlation, (positive - negative) / (positive + negative).
    n : int
        Differences that are not 0; the others are dropped.
    method : {'exact', 'normal', 'none'}
    reason : str or None
    """

    positive: float
    negative: float
    p: float | None
    effect: float | None
    n: int
    method: str
    reason: str | None = None


def wilcoxon(differences: Sequence[float]) -> SignedRank:
    """Test whether the differences are symmetric around 0, by the ranks of their sizes.

    Parameters
    ----------
    differences : sequence of float, one a case
        Finite, in any order. Those of 0 are dropped, as Wilcoxon did; without any other there is
        no test.

    Returns
    -------
    SignedRank
        Sizes that are alike share the mean of their ranks. Up to 50 differences p is exact, also
        with ties: every outcome of the signs is gone through. Above it is that of the normal
        approximation with the variance corrected for ties, without a continuity correction.

    References
    ----------
    Wilcoxon (1945), Individual comparisons by ranking methods. Hollander, Wolfe and Chicken
    (2013), Nonparametric statistical methods, section 3.1. Kerby (2014), The simple difference
    formula.

    Examples
    --------
    >>> found = wilcoxon([0.5, 0.25, 1.0, -0.125, 0.75])
    >>> found.positive, found.negative, found.p
    (14.0, 1.0, 0.125)
    """
    import numpy as np
    from scipy.stats import rankdata

    rounded = np.round(np.asarray(differences, dtype=np.float64), _DECIMALS)
    if not np.isfinite(rounded).all():
        raise ValueError("differences are finite numbers; leave missing ones out")
    rounded = rounded[rounded != 0]
    n = len(rounded)
    if not n:
        return SignedRank(0.0, 0.0, None, None, 0, "none", "no case differs")
    ranks = rankdata(np.abs(rounded))
    total = n * (n + 1) / 2
    positive = float(ranks[rounded > 0].sum())
    negative = total - positive
    exact = n <= _EXACT
    p = _exactly(ranks, min(positive, negative)) if exact else _normal(ranks, positive)
    effect = (positive - negative) / total
    return SignedRank(positive, negative, p, effect, n, "exact" if exact else "normal")


def _exactly(ranks: NDArray[np.float64], smaller: float) -> float:
    """Twice the chance of a sum of positive ranks as small as this, at most 1."""
    doubled = [round(2 * rank) for rank in ranks.tolist()]  # a mean of ranks may end in a half
    ways = [1] + [0] * sum(doubled)  # in whole numbers: 2^50 outcomes and none lost
    reached = 0
    for rank in doubled:
        for at in range(reached, -1, -1):
            if ways[at]:
                ways[at + rank] += ways[at]
        reached += rank
    return min(1.0, 2.0 * sum(ways[: round(2 * smaller) + 1]) / float(2 ** len(doubled)))


def _normal(ranks: NDArray[np.float64], positive: float) -> float:
    from scipy.special import ndtr

    # The variance of a sum of independent signed ranks; of ties their mean ranks are in it.
    deviation = math.sqrt(float(ranks @ ranks) / 4)
    centre = float(ranks.sum()) / 2
    return min(1.0, 2 * float(ndtr(-abs(positive - centre) / deviation)))
