"""How pure the top of a ranking is: average precision, with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from misslink.stats.proportions import critical, wilson
from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["average_precision"]

_METHOD = "logit, jackknife"


def average_precision(
    labels: Sequence[bool], scores: Sequence[float], *, level: float = 0.95
) -> Estimate:
    """Mean over the positive cases of the precision at their score.

    Parameters
    ----------
    labels : sequence of bool
        Whether each case is positive; truth values such as 0 and 1 do.
    scores : sequence of float
        Of the same cases in the same order; higher means more likely positive. Cases with equal
        scores are reached together.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        In (0, 1]; scores that tell nothing give the share of positive cases. Missing without a
        positive or without a negative case, where it could only be 1.

    Raises
    ------
    ValueError
        The lengths differ, a label is neither true nor false, or a score is not finite.

    Notes
    -----
    The interval is made on the logit scale from the infinitesimal jackknife's standard error,
    but never from a smaller one than a binomial share of the positive cases would have (Boyd,
    Eng and Page). Where no negative case comes before a positive one it is Wilson's, of the
    positive cases. ``benchmarks/calibration_coverage.py`` compares each alone.

    References
    ----------
    Boyd, Eng and Page (2013), Area under the precision-recall curve: point estimates and
    confidence intervals. Efron (1981), Nonparametric estimates of standard error.

    Examples
    --------
    >>> round(average_precision([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1]).value, 3)  # (1 + 2/3) / 2
    0.833
    """
    import numpy as np

    z = critical(level)
    if len(labels) != len(scores):
        raise ValueError(f"{len(labels)} labels and {len(scores)} scores do not pair up")
    good, score = np.array(labels, dtype=float), np.array(scores, dtype=float)
    if not np.isin(good, (0, 1)).all() or not np.isfinite(score).all():
        raise ValueError("labels are 0 or 1 and scores finite numbers")
    n, positives = len(good), int(good.sum())
    if positives in {0, n}:
        side = "negative" if positives else "positive"
        return Estimate.missing(f"no case has the {side} label", n=n, method=_METHOD)
    value, influence = _influence(good, score)
    variance = max(float(influence @ influence) / n / (n - 1), value * (1 - value) / positives)
    if value >= 1:
        low, high = wilson(1.0, positives, z)
        return Estimate(value=1.0, low=low, high=high, n=n, method="wilson")
    half = z * math.sqrt(variance) / (value * (1 - value))
    centre = math.log(value / (1 - value))
    low, high = (1 / (1 + math.exp(-min(max(centre + s * half, -700), 700))) for s in (-1, 1))
    return Estimate(value=value, low=low, high=high, n=n, method=_METHOD)


def _influence(
    good: NDArray[np.float64], score: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Average precision, and how much each case would move it with more weight.

    Giving a case more weight adds its own precision if it is positive, and moves the precision at
    every score up to its own.
    """
    import numpy as np

    order = np.argsort(-score, kind="stable")
    ordered, y = -score[order], good[order]
    last = np.searchsorted(ordered, ordered, side="right") - 1  # of those tied with it
    reached = last + 1.0
    precision = np.cumsum(y)[last] / reached
    positives = y.sum()
    value = float((y * precision).sum() / positives)
    # over the positive cases at its score or below: y / reached and y precision / reached
    first = np.searchsorted(ordered, ordered, side="left")

    def onward(terms: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.concatenate([[0.0], np.cumsum(terms)])
        rest: NDArray[np.float64] = sums[-1] - sums[first]
        return rest

    moved = y * onward(y / reached) - onward(y * precision / reached)
    influence = (y * (precision - value) + moved) * len(y) / positives
    return value, influence
