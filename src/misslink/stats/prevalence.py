"""Correct a judge's rates by human labels: Rogan-Gladen and prediction-powered inference."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from misslink.stats.classification import ConfusionMatrix, ErrorRates
from misslink.stats.intervals import (
    LEVEL,
    Floats,
    check_counts,
    critical_value,
    interval_estimate,
    mean,
    proportion,
    quantiles,
    square_and_add,
    student_quantile,
    wilson_interval,
)
from misslink.types import Estimate, Reason

_DRAWS = 20_000
_JEFFREYS = 0.5
MIN_LABELS = 10  # benchmarks/stats/calibration_coverage.py looks at no fewer
_HALF_CASE = 0.5  # of a case with either label, see the notes of prediction_powered
_ADDED = 2.0  # cases, to the labels of a stratum
_FREEDOM = 6.0  # most degrees of freedom for a label of the rarer kind
_MOST_DISPUTED = 0.48  # of the pairs; annotators by chance disagree in half of them
_TINY = 1e-300
_ROUNDING = 1e-9  # weights of 1 / 0.3 and 10 / 3 are equal

Rate = tuple[float, float]  # a share, and the number of cases that it rests on
Ends = tuple[float, float]


def rogan_gladen(
    called: int,
    n: int,
    judge: ConfusionMatrix | ErrorRates,
    *,
    among: bool = False,
    interval: Literal["delta", "posterior"] = "delta",
    seed: int = 0,
) -> Estimate:
    """Correct the share that a judge calls good by its sensitivity and specificity.

    Parameters
    ----------
    called : int
        Cases the judge calls good, of `n`.
    n : int
        All cases judged.
    judge : ConfusionMatrix or ErrorRates
        The judge against human labels, good being positive; its rates alone for weighted cases.
    among : bool
        Whether the labelled cases are among the `n`, so that their calls must not count twice:
        they count by their labels, the other cases by the corrected share. The value stays the
        same. Without it, the interval of 300 labels among 1,300 cases would cover 98%
        (``benchmarks/stats/calibration_coverage.md``).
    interval : "delta" or "posterior"
        The delta method with Lang and Reiczigel's small-sample adjustment, or the middle of
        20,000 draws of the three shares from their Jeffreys posteriors.
    seed : int
        Random seed of the draws.

    Returns
    -------
    Estimate
        (called / n - (1 - specificity)) / (sensitivity + specificity - 1), cut to [0, 1]. Unlike
        prediction-powered inference it holds if the labelled cases are richer in bad ones than
        the rest, as long as the judge errs alike. Missing without cases, if one label is absent,
        if the labels do not show (at 95%) that the judge is better than chance, or if the
        whole interval lies outside [0, 1].

    Raises
    ------
    ValueError
        The counts are not counts of the same cases, or `among` is used without a table of counts.

    References
    ----------
    Rogan and Gladen (1978), Estimating prevalence from the results of a screening test. Lang and
    Reiczigel (2014), Confidence limits for prevalence of disease adjusted for estimated
    sensitivity and specificity. Zou and Donner (2008), Construction of confidence limits about
    effect measures, for the sum of both shares.

    Examples
    --------
    >>> judge = ConfusionMatrix(90, 10, 20, 80)
    >>> round(rogan_gladen(600, 1000, judge).value, 3)  # (0.6 - 0.2) / 0.7
    0.571
    """
    check_counts(called, n)
    method = f"rogan-gladen, {interval}"
    if not n:
        return Estimate.missing(Reason(code="no_cases"), method=method)
    rates = _judge_rates(judge)
    if isinstance(rates, Reason):
        return Estimate.missing(rates, n=n, method=method)
    good = labelled = called_good = 0
    if among:
        if isinstance(judge, ErrorRates):
            raise ValueError(
                "labels among the judged cases need the table of counts, not the rates alone"
            )
        good, labelled = int(judge.positives), judge.n
        called_good = int(judge.true_positive + judge.false_positive)
    unlabelled = called - called_good, n - labelled
    check_counts(*unlabelled)
    if not unlabelled[1]:
        return proportion(good, labelled).model_copy(update={"method": method})
    if interval == "delta":
        value, ends, rest_ends = _delta_interval(unlabelled, rates, (good, labelled))
    else:
        value, ends, rest_ends = _posterior_interval(unlabelled, rates, (good, labelled), seed)
    if rest_ends[0] >= 1 or rest_ends[1] <= 0:
        few = "fewer" if rest_ends[1] <= 0 else "more"
        reason = Reason(code="labels_unlike_the_rest", side=few, n=judge.n)
        return Estimate.missing(reason, n=n, method=method)
    value, low, high = (min(max(end, 0.0), 1.0) for end in (value, *ends))
    return interval_estimate(value, low, high, n=n, method=method)


def corrected_difference(
    difference: Estimate, judge: ConfusionMatrix | ErrorRates, *, level: float = 0.95
) -> Estimate:
    """Correct the difference of two shares that the same judge calls good.

    Parameters
    ----------
    difference : Estimate
        Share called good in the second less that in the first, with its interval, such as that of
        `misslink.stats.paired_difference`.
    judge : ConfusionMatrix or ErrorRates
        The judge against human labels, good being positive.
    level : float
        Confidence level of `difference`; the 95% interval of the judge's rates is scaled to it.

    Returns
    -------
    Estimate
        difference / (sensitivity + specificity - 1), in [-1, 1], if the judge errs alike in both.
        The interval is that of a ratio, from those of the difference and of the two rates; it
        includes 0 if and only if the uncorrected one does. Missing if the difference is, if the
        judge was not measured or is not shown to be better than chance, or if the judge sees a
        larger difference than its errors allow.

    References
    ----------
    Rogan and Gladen (1978), Estimating prevalence from the results of a screening test. Donner
    and Zou (2012), Closed-form confidence intervals for functions of the normal mean and standard
    deviation; their limits are derived here for ratios of either sign.

    Examples
    --------
    >>> judge = ConfusionMatrix(90, 10, 20, 80)
    >>> raw = Estimate(value=0.07, low=0.01, high=0.13, n=200, method="bootstrap")
    >>> round(corrected_difference(raw, judge).value, 3)  # 0.07 / (0.9 + 0.8 - 1)
    0.1
    """
    method, n = "rogan-gladen, difference", difference.n
    if difference.value is None or difference.low is None or difference.high is None:
        return Estimate.missing(difference.why, n=n, method=method)
    rates, accuracy = _judge_rates(judge), judge.balanced_accuracy
    if isinstance(rates, Reason):
        return Estimate.missing(rates, n=n, method=method)
    gain, least, most = (
        2 * (end or 0.0) - 1 for end in (accuracy.value, accuracy.low, accuracy.high)
    )
    wider = critical_value(level) / critical_value()
    least, most = gain - wider * (gain - least), min(gain + wider * (most - gain), 1.0)
    if least <= 0:
        reason = Reason(code="few_labels_for_level", n=judge.n, level=level)
        return Estimate.missing(reason, n=n, method=method)
    value = difference.value / gain
    high = _ratio_end(difference.value, difference.high, gain, (least, most))
    low = -_ratio_end(-difference.value, -difference.low, gain, (least, most))
    if low >= 1 or high <= -1:
        reason = Reason(code="labels_unlike_these", n=judge.n)
        return Estimate.missing(reason, n=n, method=method)
    value, low, high = (min(max(end, -1.0), 1.0) for end in (value, low, high))
    return interval_estimate(value, low, high, n=n, method=method)


def _judge_rates(judge: ConfusionMatrix | ErrorRates) -> tuple[Rate, Rate] | Reason:
    """Sensitivity and specificity; or why they cannot correct anything."""
    accuracy, sensitivity, specificity = (
        judge.balanced_accuracy,
        judge.sensitivity,
        judge.specificity,
    )
    if accuracy.low is None or sensitivity.value is None or specificity.value is None:
        return accuracy.reason_code or Reason(code="no_labels")
    if accuracy.low <= 1 / 2:
        measured = {"accuracy": accuracy.value, "low": accuracy.low}
        return Reason(code="judge_not_above_chance", n=judge.n, **measured)
    return (sensitivity.value, sensitivity.n), (specificity.value, specificity.n)


def _ratio_end(value: float, above: float, gain: float, gains: Ends) -> float:
    """The largest r for which `value` - r `gain`, within both intervals, may still be 0.

    With a = `above` - `value` and b how far the gain may lie on the side that makes r larger, r
    solves (r gain - value)^2 = a^2 + r^2 b^2.
    """
    a = above - value
    b = gain - gains[0] if above >= 0 else gains[1] - gain
    squared = gain**2 - b**2
    root = math.sqrt(max((value * gain) ** 2 - squared * (value**2 - a**2), 0.0))
    if above >= 0:
        return (value * gain + root) / squared
    return (value**2 - a**2) / (value * gain - root)


def _delta_interval(
    unlabelled: tuple[int, int], rates: tuple[Rate, Rate], labels: tuple[int, int]
) -> tuple[float, Ends, Ends]:
    """Value and ends of all cases, and the ends of the cases without a label."""
    z = critical_value()
    size = unlabelled[1] + z * z
    share = (unlabelled[0] + z * z / 2) / size
    positives, negatives = (count + 2 for _, count in rates)
    sensitivity, specificity = ((right * count + 1) / (count + 2) for right, count in rates)
    gain = sensitivity + specificity - 1
    corrected = (share + specificity - 1) / gain
    # of the two error rates, each by its weight in the corrected share
    wrong = sensitivity * (1 - sensitivity) / positives, specificity * (1 - specificity) / negatives
    shift = 2 * z * z * (corrected * wrong[0] - (1 - corrected) * wrong[1])
    variance = share * (1 - share) / size
    variance += corrected**2 * wrong[0] + (1 - corrected) ** 2 * wrong[1]
    half = z * math.sqrt(variance) / gain
    value = _corrected_share(unlabelled, rates)
    rest_ends = corrected + shift - half, corrected + shift + half
    if not labels[1]:
        return value, rest_ends, rest_ends
    own = labels[0] / labels[1]
    ends, part = wilson_interval(own, labels[1], z), labels[1] / (labels[1] + unlabelled[1])
    rest = value, min(value, rest_ends[0]), max(value, rest_ends[1])
    labelled, others = np.multiply(part, (own, *ends)), np.multiply(1 - part, rest)
    centre, low, high = square_and_add(tuple(labelled), tuple(others))
    return centre, (low, high), rest_ends


def _posterior_interval(
    unlabelled: tuple[int, int], rates: tuple[Rate, Rate], labels: tuple[int, int], seed: int
) -> tuple[float, Ends, Ends]:
    """As `_delta_interval`, from draws."""
    generator = np.random.default_rng(seed)
    own, share, sensitivity, specificity = (
        generator.beta(hits + _JEFFREYS, count - hits + _JEFFREYS, _DRAWS)
        for hits, count in (labels, unlabelled, *((right * count, count) for right, count in rates))
    )
    gain = sensitivity + specificity - 1
    better = gain > 0
    others = (share[better] + specificity[better] - 1) / gain[better]
    part = labels[1] / (labels[1] + unlabelled[1])
    both = part * own[better] + (1 - part) * others
    centre = part * labels[0] / max(labels[1], 1) + (1 - part) * _corrected_share(unlabelled, rates)
    return centre, quantiles(both), quantiles(others)


def _corrected_share(unlabelled: tuple[int, int], rates: tuple[Rate, Rate]) -> float:
    (sensitivity, _), (specificity, _) = rates
    return (unlabelled[0] / unlabelled[1] - 1 + specificity) / (sensitivity + specificity - 1)


@dataclass(frozen=True)
class PredictionPoweredEstimate:
    """One rate in three ways.

    Parameters
    ----------
    estimate : Estimate
        From labels and verdicts together.
    labelled_only : Estimate
        From the labels alone.
    judge_only : Estimate
        From the verdicts alone: precise, but off by the judge's errors.
    power : float or None
        PPI++'s lambda, the weight of the verdicts; 0 ignores them. None: no estimate.
    worth : float or None
        How many labels alone would give the same precision. None: no estimate.
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
    strata: Sequence[Hashable] | None = None,
    clusters: Sequence[Hashable] | None = None,
    disputed: Sequence[float] | None = None,
    seed: int = 0,
) -> PredictionPoweredEstimate:
    """Return the share of good cases by labels and verdicts: post-stratified, or PPI++.

    Parameters
    ----------
    labels : sequence of float
        Human labels, in [0, 1].
    predictions : sequence of float
        The judge's probabilities, values or calls of the same cases in the same order, in [0, 1].
        They need not be calibrated.
    others : sequence of float
        The judge's predictions of the cases without a label.
    weights : sequence of float or None
        One over the probability with which each labelled case was chosen from all cases, or
        numbers in proportion. None: all cases were equally likely to be labelled.
    strata : sequence of hashable or None
        The stratum of each labelled case, if so many were drawn from each at random; cases of a
        stratum have one weight. The verdicts made the strata, so nothing more is taken from them.
    clusters : sequence of hashable or None
        The cluster of each labelled case, such as its document; cases of one may fail together.
    disputed : sequence of float or None
        Of each labelled case the share of pairs of annotators that disagree; `labels` are then
        means. Their own error is estimated from it and taken out, see `remove_label_error`.
    seed : int
        Random seed of the interval of `judge_only`, and of `labelled_only` without weights.

    Returns
    -------
    PredictionPoweredEstimate
        With y the labels, f the verdicts, all n + N cases and w the weights, the estimate is
        mean_w(y) + b (mean_all(f) - mean_w(f)), cut to [0, 1], b = cov_w(y, f) / var_all(f). With
        equal weights that is PPI++ at its optimal lambda = b N / (n + N), which is not cut to
        [0, 1]: verdicts that spread too little earn more than 1. It is 0, with equal weights,
        where the verdicts would widen the interval. With strata it is that of
        `poststratified_share`. Missing with fewer than 10 labels.

    Raises
    ------
    ValueError
        Lengths differ, a number is outside [0, 1], or a weight is not positive and finite.

    Notes
    -----
    The interval is Wilson's with the number of labels that a plain share would need for the same
    variance. To that variance half a case with the label 0 and half a case with the label 1, both
    with an average verdict and the largest weight, are added: a judge without an error in the
    labelled sample may still err. The usual interval, plus or minus 1.96 standard errors, is too
    narrow for 30 labels, most of all if good cases are rare.

    With unequal weights few labels may decide: half a case with each label is added at both ends
    of the verdicts, with the weight that labels have there, and the quantile is Student's, of
    Kish's effective number of labels. ``benchmarks/stats/calibration_coverage.md`` has the tables.

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

    >>> powered = prediction_powered([1, 0] * 10, [1, 0] * 10, [1] * 60 + [0] * 40)
    >>> round(powered.estimate.value, 4), round(powered.power, 3)
    (0.5857, 0.857)
    """
    y, f, rest = (np.array(each, dtype=float) for each in (labels, predictions, others))
    if len(y) != len(f):
        raise ValueError(f"{len(y)} labels and {len(f)} predictions are not of the same cases")
    everyone = np.concatenate([f, rest])
    outside = [x for x in np.concatenate([y, everyone]).tolist() if not 0 <= x <= 1]
    if outside:
        raise ValueError(f"labels and predictions must be between 0 and 1, not {outside[0]}")
    n, size = len(y), len(everyone)
    judge_only = mean(everyone.tolist(), seed=seed)
    w = _scaled_weights(weights, n)
    groups = (
        None if clusters is None else np.unique_inverse(list(map(str, clusters))).inverse_indices
    )
    plain = weights is None and clusters is None and disputed is None
    if disputed is not None and n:
        y = remove_label_error(y, np.array(disputed, dtype=float), w)
    if plain or not n:
        alone = mean(y.tolist(), seed=seed)
    else:
        nothing = np.zeros(size)  # verdicts without information
        alone = _powered_estimate(y, nothing[:n], w, nothing, groups)[0]
        alone = alone.model_copy(
            update={"method": "wilson" if weights is None else "wilson, weighted"}
        )
    if n < MIN_LABELS:
        reason = Reason(code="few_labels_to_correct", n=n, needed=MIN_LABELS)
        missing = Estimate.missing(reason, n=n, method="ppi++")
        return PredictionPoweredEstimate(missing, alone, judge_only, None, None)
    if strata is not None:
        at = np.unique_inverse(list(map(str, strata))).inverse_indices
        sizes = np.bincount(at, w) * size / n
        ends = poststratified_share(y, at, sizes, clusters=groups)
        value, low, high, worth = (float(end) for end in ends)
        estimate = Estimate(value=value, low=low, high=high, n=n, method="post-stratified")
        return PredictionPoweredEstimate(estimate, alone, judge_only, 0.0, worth)
    estimate, slope, worth = _powered_estimate(y, f, w, everyone, groups)
    return PredictionPoweredEstimate(estimate, alone, judge_only, slope * len(rest) / size, worth)


def _powered_estimate(
    y: Floats, f: Floats, w: Floats, everyone: Floats, clusters: NDArray[np.int64] | None
) -> tuple[Estimate, float, float]:
    """The estimate, the slope of labels on verdicts, and the number of labels it is worth."""
    n, spread = len(y), float(everyone.var())
    mean_y, mean_f = float(w @ y) / n, float(w @ f) / n
    slopes = [0.0]
    if spread:
        slopes.append(float(w @ ((y - mean_y) * (f - mean_f))) / n / spread)
    found = []
    for slope in slopes:
        value = min(max(mean_y + slope * (float(everyone.mean()) - mean_f), 0.0), 1.0)
        low, high, worth = _powered_interval(y, f, w, slope, everyone, value, clusters)
        estimate = Estimate(value=value, low=low, high=high, n=n, method="ppi++")
        found.append((estimate, slope, worth))
    if float(np.ptp(w)) > _ROUNDING:
        return found[-1]
    return max(found, key=lambda each: each[2])  # a correction that widens is none


def remove_label_error(labels: Floats, disputed: Floats, weights: Floats) -> Floats:
    """Return labels whose mean is the share that annotators without an error would give.

    Annotators who err independently and as often on good cases as on bad ones disagree in
    d = 2 e (1 - e) of their pairs, so that 1 - 2 e is the root of 1 - 2 d. Each label also carries
    what its case adds to the error's own uncertainty, so that intervals of the mean include it.

    Parameters
    ----------
    labels : array of float, shape (..., n)
        The mean label of each case.
    disputed : array of float, shape (..., n)
        Of each case the share of pairs of annotators that disagree; NaN with one annotator.
    weights : array of float, shape (..., n)

    Returns
    -------
    array of float, shape (..., n)
        In or near [0, 1]; the labels themselves where no pair disagrees.

    References
    ----------
    Hui and Walter (1980), Estimating the error rates of diagnostic tests.

    Examples
    --------
    >>> twice = np.array([1.0, 1.0, 1.0, 0.5, 0.0])
    >>> round(float(remove_label_error(twice, np.array([0.0, 0, 0, 1, 0]), np.ones(5)).mean()), 3)
    0.758
    """
    twice = ~np.isnan(disputed)
    every, pairs = (part.sum(-1, keepdims=True) for part in (weights, weights * twice))
    pairs = np.maximum(pairs, _TINY)
    told = np.where(twice, disputed, 0.0)
    share = np.minimum((weights * told).sum(-1, keepdims=True) / pairs, _MOST_DISPUTED)
    middle = (weights * labels).sum(-1, keepdims=True) / every - 0.5
    root = np.sqrt(1 - 2 * share)
    moved = twice * every / pairs * (told - share)  # by the case, in the estimated error
    return np.asarray(0.5 + (labels - 0.5) / root + middle / root**3 * moved)


def poststratified_share(
    labels: Floats,
    strata: NDArray[np.int64],
    sizes: Floats,
    *,
    clusters: NDArray[np.int64] | None = None,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return a share from labels drawn by strata: value, both ends of the interval, labels' worth.

    All arrays may have more axes in front, one sample each.

    Parameters
    ----------
    labels : array of float, shape (..., n)
    strata : array of int, shape (..., n)
        The stratum of each labelled case, from 0.
    sizes : array of float, shape (..., strata)
        Cases of each stratum, labelled or not. A stratum without a label counts nothing.
    clusters : array of int, shape (..., n), or None
        The cluster of each labelled case, from 0.

    Returns
    -------
    value, low, high, worth : array of float, shape (...)

    Notes
    -----
    The interval is Wilson's with the number of labels that a plain share would need for the same
    variance. To the labels of each stratum two cases are added that vary as all of them do, half a
    case with either label among these: a stratum without a failure in its few labels may have one.
    The quantile is Student's, with Satterthwaite's degrees of freedom, at most six for each label
    of the rarer kind. A share of all cases like these is estimated, so the spread of the cases
    themselves counts, with that of pairs of one cluster. ``benchmarks/stats/calibration_coverage.md``
    has the coverage of 216 cells.

    References
    ----------
    Cochran (1977), Sampling techniques, sections 5.4 and 5A.9. Korn and Graubard (1998),
    Confidence intervals for proportions with small expected number of positive counts estimated
    from survey data. Satterthwaite (1946).

    Examples
    --------
    A stratum of 80 cases, mostly good, and one of 20, mostly bad:

    >>> labels, strata = np.array([1.0] * 9 + [0.0] * 10 + [1.0]), np.repeat([0, 1], [9, 11])
    >>> value, low, high, _ = poststratified_share(labels, strata, np.array([80.0, 20.0]))
    >>> round(float(value), 3), round(float(low), 2), round(float(high), 2)
    (0.818, 0.65, 0.91)
    """
    from scipy.special import stdtrit

    shape, kinds, n = labels.shape[:-1], sizes.shape[-1], labels.shape[-1]
    sample = np.arange(math.prod(shape)).reshape((*shape, 1))

    def summed(values: Floats, kind: NDArray[np.int64], most: int) -> Floats:
        """Sums by kind, for each sample."""
        flat = np.bincount((sample * most + kind).ravel(), values.ravel(), sample.size * most)
        return flat.reshape((*shape, most))

    counts = summed(np.ones_like(labels), strata, kinds)
    share = np.where(counts > 0, sizes, 0.0)
    everyone = share.sum(-1)
    share = share / everyone[..., np.newaxis]
    counts = np.maximum(counts, 1.0)
    means = summed(labels, strata, kinds) / counts
    value = (share * means).sum(-1)
    within = summed((labels - np.take_along_axis(means, strata, -1)) ** 2, strata, kinds)
    weights = np.take_along_axis(share / counts, strata, -1)
    moved = weights * (labels - value[..., np.newaxis])
    edge = _HALF_CASE / (n + 1)
    centre = np.clip((n * value + _HALF_CASE) / (n + 1), edge, 1 - edge)
    halves = _HALF_CASE * (centre**2 + (1 - centre) ** 2)
    overall = (n * (moved**2 / weights).sum(-1) + halves) / (n + 1)
    spread = (within + _ADDED * overall[..., np.newaxis]) / (counts - 1 + _ADDED)
    parts = share * np.maximum(share - counts / everyone[..., np.newaxis], 0.0) * spread / counts
    drawn = parts.sum(-1)
    freedom = drawn**2 / np.maximum((parts**2 / np.maximum(counts - 1, 1.0)).sum(-1), _TINY)
    rarer = n * np.minimum(centre, 1 - centre)
    freedom = np.clip(freedom, 1.0, np.maximum(_FREEDOM * rarer, 1.0))
    variance = drawn + overall / everyone
    if clusters is not None:
        together = summed(moved, clusters, int(clusters.max()) + 1)
        variance += np.maximum((together**2).sum(-1) - (moved**2).sum(-1), 0.0)
    worth = centre * (1 - centre) / variance
    value = np.clip(value, 0.0, 1.0)
    square = stdtrit(freedom, (1 + LEVEL) / 2) ** 2 / worth
    middle = (value + square / 2) / (1 + square)
    half = np.sqrt(square * value * (1 - value) + square**2 / 4) / (1 + square)
    low, high = np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
    return value, np.minimum(low, value), np.maximum(high, value), worth


def _scaled_weights(weights: Sequence[float] | None, n: int) -> Floats:
    """Weights with a mean of 1."""
    if weights is None:
        return np.ones(n)
    if len(weights) != n:
        raise ValueError(f"{len(weights)} weights and {n} labels are not of the same cases")
    w = np.array(weights, dtype=float)
    if not (np.isfinite(w) & (w > 0)).all():
        raise ValueError(
            "a weight must be a positive number: one over the chance of being labelled"
        )
    return w / w.mean() if n else w


def _powered_interval(
    y: Floats,
    f: Floats,
    w: Floats,
    slope: float,
    everyone: Floats,
    value: float,
    clusters: NDArray[np.int64] | None,
) -> tuple[float, float, float]:
    """Both ends, and the number of labels a plain share would need for them.

    Two things vary: which cases are labelled, each chosen by itself with its own probability,
    moves the mean of what the verdicts leave unexplained; which cases there are moves the mean
    label.
    """
    n, size = len(y), len(everyone)
    average = float(everyone.mean())
    together = 0.0  # of pairs of one cluster
    if clusters is not None:
        moved = w * (y - float(w @ y) / n) / n
        pairs = float((np.bincount(clusters, moved) ** 2).sum() - moved @ moved)
        together = max(pairs, 0.0)
    labels, verdicts, heavy = _added_cases(f, w, everyone)
    y, f = np.append(y, labels), np.append(f, verdicts)
    kish = n**2 / float(w @ w)
    w = np.append(w, heavy)
    chosen = np.minimum(n / (size * w), 1.0)
    cases = np.append(np.ones(n), np.full(len(labels), _HALF_CASE))
    spread, w = cases * w**2, cases * w
    total = float(w.sum())
    unexplained = y - slope * f
    around = (unexplained - w @ unexplained / total) ** 2
    mean_y = float(w @ y) / total
    variance = float((spread * (1 - chosen)) @ around) / total / (total - 1)
    variance += float(w @ (y - mean_y) ** 2) / total / size + together
    centre = mean_y + slope * (average - float(w @ f) / total)
    edge = _HALF_CASE / total  # the estimate of a rate near 0 may fall below it
    centre = min(max(centre, edge), 1 - edge)
    effective = centre * (1 - centre) / variance
    quantile = critical_value()
    if kish < n - _ROUNDING:  # some labels count for more than others
        quantile = student_quantile(LEVEL, max(kish - 1, 1.0))
    return *wilson_interval(value, effective, quantile), effective


def _added_cases(f: Floats, w: Floats, everyone: Floats) -> tuple[Floats, Floats, Floats]:
    """Labels, verdicts and weights of the cases that are added by halves."""
    ends = np.array([everyone.min(), everyone.max()])
    if np.ptp(w) <= _ROUNDING or np.ptp(ends) <= _ROUNDING:
        average = float(everyone.mean())
        return np.array([0.0, 1.0]), np.full(2, average), np.full(2, float(w.max()))
    distance = np.abs(f - ends[:, np.newaxis])
    nearest = distance <= distance.min(axis=1, keepdims=True) + _ROUNDING
    heavy = np.where(nearest, w, 0.0).max(axis=1)
    return np.tile([0.0, 1.0], 2), np.repeat(ends, 2), np.repeat(heavy, 2)
