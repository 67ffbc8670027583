"""The rate people would have found, from few labels and many verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from misslink.stats.means import mean
from misslink.stats.proportions import critical, wilson
from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PredictionPowered", "prediction_powered"]

_FEWEST = 10  # labels; benchmarks/calibration_coverage.py looks at no fewer
_HALF = 0.5  # of a case with either label, see Notes
_ROUNDING = 1e-9  # weights of 1 / 0.3 and 10 / 3 are equal


@dataclass(frozen=True)
class PredictionPowered:
    """One rate in three ways.

    Parameters
    ----------
    estimate : Estimate
        Labels and verdicts together.
    labelled_only : Estimate
        From the labels alone.
    judge_only : Estimate
        From the verdicts alone, of labelled cases and others: precise, but wrong by whatever the
        judge errs.
    power : float or None
        PPI++'s lambda: how far the verdicts are trusted, 0 not at all. None: no estimate.
    worth : float or None
        How many labels alone would tell as much as these labels with the verdicts. None: no
        estimate.
    """

    estimate: Estimate
    labelled_only: Estimate
    judge_only: Estimate
    power: float | None
    worth: float | None


def prediction_powered(
    labels: Sequence[float],
    predictions: Sequence[float],
    others: Sequence[float],
    *,
    weights: Sequence[float] | None = None,
    seed: int = 0,
    level: float = 0.95,
) -> PredictionPowered:
    """Prediction-powered estimate of a mean, PPI++ with the power tuned.

    Parameters
    ----------
    labels : sequence of float
        By people, in [0, 1].
    predictions : sequence of float
        By the judge of the same cases in the same order, in [0, 1]: probabilities, values or
        calls. They need not be calibrated.
    others : sequence of float
        By the judge, of the cases without a label.
    weights : sequence of float or None
        One over the probability with which each labelled case was chosen from all cases, or
        numbers in proportion. None: all cases were equally likely to be labelled.
    seed : int
        Of the interval of `judge_only`, and of `labelled_only` without weights.
    level : float
        Of the intervals, in (0, 1).

    Returns
    -------
    PredictionPowered
        With y the labels, f the verdicts, all n + N cases and w the weights, the estimate is
        mean_w(y) + b (mean_all(f) - mean_w(f)), cut to [0, 1], b = cov_w(y, f) / var_all(f). With
        equal weights that is PPI++ at its optimal lambda = b N / (n + N), which is not cut to
        [0, 1]: verdicts that spread too little earn more than 1. Missing with fewer than 10
        labels.

    Raises
    ------
    ValueError
        Lengths differ, a number is outside [0, 1], or a weight is not positive and finite.

    Notes
    -----
    The interval is Wilson's with the number of labels that a plain share would need for the same
    variance. To that variance half a case with the label 0 and half a case with the label 1, both
    with an average verdict and the largest weight, are added: a judge that made no mistake in the
    labelled sample may still make some. The usual interval, estimate plus or minus 1.96 standard
    errors, is too narrow for 30 labels, most of all where good cases are rare.

    With unequal weights few labels may decide: half a case with each label is added at both ends
    of the verdicts, with the weight that labels have there, and the quantile is Student's, of
    Kish's effective number of labels. Each label is taken to be drawn by itself. Labels drawn from
    strata, so many from each, tell somewhat more; an interval that uses the spread within strata
    is a tenth narrower, but covers less than 90 % where a stratum has two or three labels, so it
    is not used. ``benchmarks/calibration_coverage.md`` has the tables.

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023), Prediction-powered inference.
    Angelopoulos, Duchi and Zrnic (2023), PPI++: efficient prediction-powered inference. Sarndal,
    Swensson and Wretman (1992), Model assisted survey sampling, chapter 6. Korn and Graubard
    (1998), Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data. Kish (1965), Survey sampling.

    Examples
    --------
    A judge that erred in none of 20 labels and calls 70 of all 120 cases good:

    >>> found = prediction_powered([1, 0] * 10, [1, 0] * 10, [1] * 60 + [0] * 40)
    >>> round(found.estimate.value, 4), round(found.power, 3)
    (0.5857, 0.857)
    """
    import numpy as np

    critical(level)  # refuses a level that is none
    y, f, rest = (np.array(each, dtype=float) for each in (labels, predictions, others))
    if len(y) != len(f):
        raise ValueError(f"{len(y)} labels and {len(f)} predictions are not of the same cases")
    everyone = np.concatenate([f, rest])
    outside = [x for x in np.concatenate([y, everyone]).tolist() if not 0 <= x <= 1]
    if outside:
        raise ValueError(f"labels and predictions lie between 0 and 1, not {outside[0]}")
    n, size = len(y), len(everyone)
    judge_only = mean(everyone.tolist(), seed=seed, level=level)
    w = _scaled(weights, n)
    alone = _labelled_alone(y, w, weights, size, seed, level)
    if n < _FEWEST:
        reason = f"{n} labels are too few to correct the judge by; {_FEWEST} are needed"
        missing = Estimate.missing(reason, n=n, method="ppi++")
        return PredictionPowered(missing, alone, judge_only, None, None)
    spread = float(everyone.var())
    mean_y, mean_f = float(w @ y) / n, float(w @ f) / n
    slope = float(w @ ((y - mean_y) * (f - mean_f))) / n / spread if spread else 0.0
    value = min(max(mean_y + slope * (float(everyone.mean()) - mean_f), 0.0), 1.0)
    low, high, effective = _interval(y, f, w, slope, everyone, value, level)
    estimate = Estimate(value=value, low=low, high=high, n=n, method="ppi++")
    return PredictionPowered(estimate, alone, judge_only, slope * len(rest) / size, effective)


def _scaled(weights: Sequence[float] | None, n: int) -> NDArray[np.float64]:
    """Weights with a mean of 1."""
    import numpy as np

    if weights is None:
        return np.ones(n)
    if len(weights) != n:
        raise ValueError(f"{len(weights)} weights and {n} labels are not of the same cases")
    w = np.array(weights, dtype=float)
    if not (np.isfinite(w) & (w > 0)).all():
        raise ValueError("a weight is a positive number: one over the chance of being labelled")
    scaled: NDArray[np.float64] = w / w.mean() if n else w
    return scaled


def _labelled_alone(
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    weights: Sequence[float] | None,
    size: int,
    seed: int,
    level: float,
) -> Estimate:
    import numpy as np

    n = len(y)
    if weights is None or not n:
        return mean(y.tolist(), seed=seed, level=level)
    value = min(float(w @ y) / n, 1.0)
    nothing = np.zeros(size)  # verdicts that say nothing
    low, high, _ = _interval(y, nothing[:n], w, 0.0, nothing, value, level)
    return Estimate(value=value, low=low, high=high, n=n, method="wilson, weighted")


def _interval(
    y: NDArray[np.float64],
    f: NDArray[np.float64],
    w: NDArray[np.float64],
    slope: float,
    everyone: NDArray[np.float64],
    value: float,
    level: float,
) -> tuple[float, float, float]:
    """Both ends, and the number of labels a plain share would need for them.

    What varies: which cases are labelled, each chosen by itself with its own probability, moves
    the mean of what the verdicts leave unexplained; which cases there are moves the mean label.
    """
    import numpy as np

    n, size = len(y), len(everyone)
    average = float(everyone.mean())
    labels, verdicts, heavy = _unseen(f, w, everyone)
    y, f = np.append(y, labels), np.append(f, verdicts)
    kish = n**2 / float(w @ w)
    w = np.append(w, heavy)
    chosen = np.minimum(n / (size * w), 1.0)
    cases = np.append(np.ones(n), np.full(len(labels), _HALF))
    spread, w = cases * w**2, cases * w
    total = float(w.sum())
    left = y - slope * f
    around = (left - w @ left / total) ** 2
    mean_y = float(w @ y) / total
    variance = float((spread * (1 - chosen)) @ around) / total / (total - 1)
    variance += float(w @ (y - mean_y) ** 2) / total / size
    centre = mean_y + slope * (average - float(w @ f) / total)
    edge = _HALF / total  # the estimate of a rate near 0 may fall below it
    centre = min(max(centre, edge), 1 - edge)
    effective = centre * (1 - centre) / variance
    low, high = wilson(value, effective, _quantile(n, kish, level))
    return low, high, effective


def _unseen(
    f: NDArray[np.float64], w: NDArray[np.float64], everyone: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Labels, verdicts and weights of the cases that are added by halves."""
    import numpy as np

    ends = np.array([everyone.min(), everyone.max()])
    if _alike(w) or _alike(ends):
        average = float(everyone.mean())
        return np.array([0.0, 1.0]), np.full(2, average), np.full(2, float(w.max()))
    away = np.abs(f - ends[:, np.newaxis])
    nearest = away <= away.min(axis=1, keepdims=True) + _ROUNDING
    heavy = np.where(nearest, w, 0.0).max(axis=1)
    return np.tile([0.0, 1.0], 2), np.repeat(ends, 2), np.repeat(heavy, 2)


def _alike(values: NDArray[np.float64]) -> bool:
    return float(values.max() - values.min()) <= _ROUNDING


def _quantile(n: int, effective: float, level: float) -> float:
    """The normal quantile, or Student's where some labels count for more than others."""
    if effective >= n - _ROUNDING:
        return critical(level)
    from scipy.special import stdtrit

    return float(stdtrit(max(effective - 1, 1.0), (1 + level) / 2))
