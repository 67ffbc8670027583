"""Check and recalibrate probabilities: Brier score, calibration error, Platt and isotonic curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from misslink.stats.classification import checked_scores, stratified_folds
from misslink.stats.intervals import LEVEL, Floats, interval_estimate, mean, proportion
from misslink.stats.roc import bisect_edge
from misslink.types import Estimate, Reason

_DRAWS = 4_000
_JEFFREYS = 0.5
_METHOD = "inverted test"
_NEWTON_STEPS = 100  # at most; it needs about ten
_TOLERANCE = 1e-10  # of the gradient, per case


@dataclass(frozen=True)
class CalibrationBin:
    """One step of the reliability diagram.

    Parameters
    ----------
    low, high : float
        Probabilities from `low` to below `high` (the last bin includes its end).
    n : int
        Cases in the bin.
    predicted : float or None
        Their mean probability; None in an empty bin.
    good : Estimate
        The share of them with the label good; missing in an empty bin.
    """

    low: float
    high: float
    n: int
    predicted: float | None
    good: Estimate


def brier_score(
    labels: Sequence[bool], probabilities: Sequence[float], *, seed: int = 0
) -> Estimate:
    """Return the mean squared distance of probability and label, 0 at best.

    Parameters
    ----------
    labels : sequence of bool
        Whether each case is good by human labels; 0 and 1 are accepted.
    probabilities : sequence of float
        In [0, 1], of the same cases: the probability of a good label.
    seed : int
        Random seed of the interval, which is that of `misslink.stats.mean`.

    Returns
    -------
    Estimate
        In [0, 1]; 0.25 for a constant probability of one half. Missing without cases.

    Raises
    ------
    ValueError
        The lengths differ, a label is neither true nor false, or a probability is outside [0, 1].

    References
    ----------
    Brier (1950), Verification of forecasts expressed in terms of probability.

    Examples
    --------
    >>> round(brier_score([1, 0], [0.8, 0.4]).value, 9)
    0.1
    """
    good, chance = _checked_probabilities(labels, probabilities)
    return mean(((chance - good) ** 2).tolist(), seed=seed)


def reliability_bins(
    labels: Sequence[bool], probabilities: Sequence[float], *, bins: int = 10
) -> list[CalibrationBin]:
    """Group cases by probability, with the share of good ones and the mean probability of each bin.

    Parameters
    ----------
    labels, probabilities
        As for `brier`.
    bins : int
        How many bins of equal width, at least 1.

    Returns
    -------
    list of Bin
        From low to high, empty ones too; none without cases.

    Raises
    ------
    ValueError
        As `brier`, or fewer than 1 bin.

    Examples
    --------
    >>> [(b.n, b.good.value) for b in reliability_bins([0, 1, 1], [0.2, 0.6, 0.9], bins=2)]
    [(1, 0.0), (2, 1.0)]
    """
    good, chance = _checked_probabilities(labels, probabilities)
    if not len(good):
        return []
    edges, place = _bin_cases(chance, bins)
    grouped = []
    for number, (low, high) in enumerate(pairwise(edges)):
        inside = place == number
        n = int(inside.sum())
        predicted = float(chance[inside].mean()) if n else None
        share = proportion(int(good[inside].sum()), n)
        grouped.append(CalibrationBin(float(low), float(high), n, predicted, share))
    return grouped


def calibration_error(
    labels: Sequence[bool], probabilities: Sequence[float], *, bins: int = 10, seed: int = 0
) -> Estimate:
    """Return the expected calibration error: the mean over bins of |probability - share|.

    Parameters
    ----------
    labels, probabilities, bins
        As for `reliability_bins`.
    seed : int
        Random seed of the interval.

    Returns
    -------
    Estimate
        In [0, 1]; 0 is best. Missing without cases. Chance alone makes the value larger than the
        truth, so the value may be above the middle of its interval.

    Raises
    ------
    ValueError
        As `reliability_bins`.

    Notes
    -----
    The interval inverts a test. It scales the observed pattern of gaps up and down, and includes
    the scales at which sampling noise makes the observed error likely. The pattern is shrunk
    towards its mean by the share of variation that noise explains. A bootstrap would add its own
    noise and exclude the truth (``benchmarks/stats/calibration_coverage.md``, table ece).

    An end that would exclude the value is moved to it. For the upper end, an error smaller than
    half of all draws by chance alone counts as that half. Otherwise a judge that is right on
    average by luck would have an error of exactly 0.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian
    binning. Broecker and Smith (2007), Increasing the reliability of reliability diagrams. Kumar,
    Liang and Ma (2019), Verified uncertainty calibration. DerSimonian and Laird (1986),
    Meta-analysis in clinical trials. Cowan, Cranmer, Gross and Vitells (2011), Power-constrained
    limits.

    Examples
    --------
    >>> calibration_error([0, 1] * 20, [0.25, 0.75] * 20).value
    0.25
    """
    good, chance = _checked_probabilities(labels, probabilities)
    n = len(good)
    if not n:
        return Estimate.missing(Reason(code="no_cases"), method=_METHOD)
    place = _bin_cases(chance, bins)[1]
    counts = np.bincount(place)
    filled = counts > 0
    counts = counts[filled]
    gaps = np.bincount(place, good - chance)[filled] / counts
    shrunk = (np.bincount(place, good)[filled] + _JEFFREYS) / (counts + 2 * _JEFFREYS)
    spread = shrunk * (1 - shrunk) / counts
    share = counts / n
    value = float(np.abs(gaps) @ share)
    pattern = _gap_pattern(gaps, spread)
    pattern /= float(np.abs(pattern) @ share) or 1.0  # so that the scale is the error itself
    generator = np.random.default_rng(seed)
    noise = generator.normal(size=(_DRAWS, len(gaps))) * np.sqrt(spread)
    shares = generator.multinomial(n, share, _DRAWS) / n

    def drawn(error: float) -> Floats:
        return np.einsum("ij,ij->i", np.abs(error * pattern + noise), shares)

    seen = max(value, float(np.median(drawn(0.0))))
    low = _largest_error(lambda error: float(np.mean(drawn(error) <= value)) > (1 + LEVEL) / 2)
    high = _largest_error(lambda error: float(np.mean(drawn(error) <= seen)) > (1 - LEVEL) / 2)
    return interval_estimate(value, low, high, n=n, method=_METHOD)


def _gap_pattern(gaps: Floats, spread: Floats) -> Floats:
    """The gaps shrunk towards their mean until they differ by no more than noise leaves over.

    The variance left over is DerSimonian and Laird's.
    """
    precision = 1 / spread
    total = float(precision.sum())
    middle = float(precision @ gaps) / total
    beyond = float(precision @ (gaps - middle) ** 2) - (len(gaps) - 1)
    scale = total - float(precision @ precision) / total
    between = max(beyond, 0.0) / scale if len(gaps) > 1 else 0.0
    pattern = middle + np.sqrt(between / (between + spread)) * (gaps - middle)
    return pattern if np.abs(pattern).any() else np.ones(len(gaps))


def _largest_error(fits: Callable[[float], bool]) -> float:
    """The largest error in [0, 1] that fits, to a millionth; 0 if none does."""
    if not fits(0.0):
        return 0.0
    return 1.0 if fits(1.0) else bisect_edge(lambda error: not fits(error), 0.0, 1.0, steps=20)


def _checked_probabilities(
    labels: Sequence[bool], probabilities: Sequence[float]
) -> tuple[Floats, Floats]:
    good, chance = checked_scores(labels, probabilities)
    outside = chance[~((chance >= 0) & (chance <= 1))]
    if len(outside):
        raise ValueError(f"a probability must be between 0 and 1, not {outside[0]}")
    return good, chance


def _bin_cases(chance: Floats, bins: int) -> tuple[Floats, NDArray[np.int64]]:
    """The edges of the bins, and the bin of each case."""
    if bins < 1:
        raise ValueError(f"{bins} bins hold no case")
    edges = np.arange(bins + 1) / bins  # exactly what 0.3 is; linspace gives a little more
    return edges, np.searchsorted(edges[1:-1], chance, side="right")


@dataclass(frozen=True)
class IsotonicCurve:
    """A rising line through (score, probability) points, level beyond both ends."""

    scores: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __call__(self, scores: Sequence[float]) -> list[float]:
        """The probability of each score."""
        return np.interp(scores, self.scores, self.probabilities).tolist()


@dataclass(frozen=True)
class PlattCurve:
    """1 / (1 + exp(-(slope x score + intercept)))."""

    slope: float
    intercept: float

    def __call__(self, scores: Sequence[float]) -> list[float]:
        """The probability of each score."""
        from scipy.special import expit

        return expit(self.slope * np.array(scores) + self.intercept).tolist()


def fit_isotonic(labels: Sequence[bool], scores: Sequence[float]) -> IsotonicCurve:
    """Fit the rising step function nearest to the labels, joined by straight lines.

    Parameters
    ----------
    labels : sequence of bool
        Human labels, one a case; 0 and 1 are accepted.
    scores : sequence of float
        The judge's scores of the same cases.

    Returns
    -------
    IsotonicCurve
        Assumes only that the curve rises; needs a few hundred labels.

    Raises
    ------
    ValueError
        The lengths differ, a label is neither true nor false, a score is not finite, or one of
        the labels has no case.

    References
    ----------
    Zadrozny and Elkan (2002), Transforming classifier scores into accurate multiclass probability
    estimates.

    Examples
    --------
    >>> fit_isotonic([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])([0.1, 0.5, 0.9])
    [0.0, 0.5, 1.0]
    """
    from scipy.optimize import isotonic_regression

    good, score = _fit_data(labels, scores)
    distinct, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    shares = np.bincount(inverse, good) / counts
    fitted = isotonic_regression(shares, weights=counts.astype(float)).x
    # points inside a level stretch add nothing
    needed = np.ones(len(fitted), dtype=bool)
    needed[1:-1] = (fitted[1:-1] != fitted[:-2]) | (fitted[1:-1] != fitted[2:])
    return IsotonicCurve(tuple(distinct[needed].tolist()), tuple(fitted[needed].tolist()))


def fit_platt(labels: Sequence[bool], scores: Sequence[float]) -> PlattCurve:
    """Fit a logistic curve through the labels.

    Parameters
    ----------
    labels, scores
        As for `fit_isotonic`.

    Returns
    -------
    PlattCurve
        Two numbers, so few labels suffice. The labels are pulled in a little, as Platt proposes,
        so that scores that separate them fully do not give an infinite slope.

    Raises
    ------
    ValueError
        As `fit_isotonic`.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines. Lin, Lin and Weng (2007), A
    note on Platt's probabilistic outputs.

    Examples
    --------
    >>> curve = fit_platt([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9])
    >>> curve.slope > 0
    True
    """
    from scipy.special import expit

    good, score = _fit_data(labels, scores)
    positives, negatives = good.sum(), (1 - good).sum()
    target = np.where(good > 0, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    centre, width = score.mean(), score.std() or 1.0
    design = np.column_stack([(score - centre) / width, np.ones(len(score))])

    def loss(weights: Floats) -> float:
        line = design @ weights
        return float((np.logaddexp(0, line) - target * line).sum())

    weights = np.array([0.0, np.log((positives + 1) / (negatives + 1))])
    for _ in range(_NEWTON_STEPS):
        chance = expit(design @ weights)
        slope = design.T @ (chance - target)
        if np.abs(slope).max() <= _TOLERANCE * len(score):
            break
        bend = (design * (chance * (1 - chance))[:, None]).T @ design + 1e-12 * np.eye(2)
        step, size = np.linalg.solve(bend, slope), 1.0
        while loss(weights - size * step) > loss(weights) and size > _TOLERANCE:
            size /= 2
        weights = weights - size * step
    return PlattCurve(float(weights[0] / width), float(weights[1] - weights[0] * centre / width))


def cross_fitted_probabilities(
    labels: Sequence[bool],
    scores: Sequence[float],
    *,
    method: Literal["isotonic", "platt"] = "platt",
    folds: int = 5,
    seed: int = 0,
) -> list[float]:
    """Return the probability of each case by a fit on the other folds.

    Parameters
    ----------
    labels, scores
        As for `fit_isotonic`.
    method : "isotonic" or "platt"
    folds : int
        At least 2; fewer if the rarer label has fewer cases.
    seed : int
        Random seed of the folds.

    Returns
    -------
    list of float
        In the order of the cases.

    Raises
    ------
    ValueError
        As `fit_isotonic`, and with fewer than 2 cases of either label.

    Examples
    --------
    >>> len(cross_fitted_probabilities([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]))
    4
    """
    good, score = _fit_data(labels, scores)
    fold = stratified_folds(good.tolist(), folds, seed=seed)
    probabilities = np.empty(len(good))
    for number in range(int(fold.max()) + 1):
        test = fold == number
        others = good[~test].tolist(), score[~test].tolist()
        curve = fit_isotonic(*others) if method == "isotonic" else fit_platt(*others)
        probabilities[test] = curve(score[test].tolist())
    return probabilities.tolist()


def _fit_data(labels: Sequence[bool], scores: Sequence[float]) -> tuple[Floats, Floats]:
    good, score = checked_scores(labels, scores)
    if len(np.unique(good)) <= 1:
        raise ValueError("all labels are equal: there is nothing to fit")
    return good, score
