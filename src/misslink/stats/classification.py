"""Measures of a binary judge: confusion matrix, average precision and thresholds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from misslink.stats.agreement import cohen_kappa, gwet_ac1
from misslink.stats.intervals import (
    Floats,
    critical_value,
    interval_estimate,
    square_and_add,
    wilson_interval,
)
from misslink.stats.roc import logit_interval
from misslink.types import Estimate, Reason

ThresholdAim = Literal["f1", "precision", "sensitivity"]


@dataclass(frozen=True)
class ErrorRates:
    """The errors of a judge, known by two rates and not by a table of counts.

    Parameters
    ----------
    sensitivity, specificity : Estimate
        Against human labels, in [0, 1], each with its number of cases; for weighted cases the
        effective number.
    labels : int or None
        Labelled cases of both kinds. None: the sum of the cases of the two rates.

    Examples
    --------
    >>> from misslink.stats import proportion
    >>> rates = ErrorRates(proportion(18, 20), proportion(12, 20))
    >>> rates.n, rates.balanced_accuracy.value
    (40, 0.75)
    """

    sensitivity: Estimate
    specificity: Estimate
    labels: int | None = None

    @property
    def n(self) -> int:
        """Labelled cases of both kinds."""
        return self.sensitivity.n + self.specificity.n if self.labels is None else self.labels

    @property
    def balanced_accuracy(self) -> Estimate:
        """As `ConfusionMatrix.balanced_accuracy`."""
        halves = []
        for share in (self.sensitivity, self.specificity):
            if share.value is None or share.low is None or share.high is None:
                return Estimate.missing(share.why, n=self.n, method="wilson mover")
            halves.append((share.value / 2, share.low / 2, share.high / 2))
        ends = square_and_add(*halves)
        return interval_estimate(*ends, n=self.n, method="wilson mover", bounds=(0.0, 1.0))


@dataclass(frozen=True)
class ConfusionMatrix:
    """Counts of cases by human label (true is correct) and by the judge's call.

    Parameters
    ----------
    true_positive, false_negative : float
        Cases with a positive label, by whether the judge calls them positive. Of a weighted sample
        effective cases, see `confusion_matrix`.
    false_positive, true_negative : float
        Cases with a negative label, by whether the judge calls them positive.

    Raises
    ------
    ValueError
        A count is negative.

    Examples
    --------
    >>> matrix = ConfusionMatrix(40, 10, 20, 30)
    >>> matrix.sensitivity.value, matrix.specificity.value, round(matrix.f1.value, 3)
    (0.8, 0.6, 0.727)
    """

    true_positive: float
    false_negative: float
    false_positive: float
    true_negative: float

    def __post_init__(self) -> None:
        if min(self._cells) < 0:
            raise ValueError(f"a count is negative: {self._cells}")

    @property
    def n(self) -> int:
        """All cases."""
        return round(sum(self._cells))

    @property
    def positives(self) -> float:
        """Cases with a positive label."""
        return self.true_positive + self.false_negative

    @property
    def negatives(self) -> float:
        """Cases with a negative label."""
        return self.false_positive + self.true_negative

    @property
    def turned(self) -> ConfusionMatrix:
        """The same cases with the negative label as the one to be found."""
        return ConfusionMatrix(*reversed(self._cells))

    @property
    def accuracy(self) -> Estimate:
        """Share of cases in which judge and label agree; Wilson interval."""
        return _labelled_share(
            self.true_positive + self.true_negative, sum(self._cells), Reason(code="no_cases")
        )

    @property
    def sensitivity(self) -> Estimate:
        """Share of the positive cases that the judge calls positive (recall); Wilson."""
        return _labelled_share(self.true_positive, self.positives, Reason(code="no_positive_label"))

    @property
    def specificity(self) -> Estimate:
        """Share of the negative cases that the judge calls negative; Wilson."""
        return _labelled_share(self.true_negative, self.negatives, Reason(code="no_negative_label"))

    @property
    def precision(self) -> Estimate:
        """Share of the cases called positive that are positive; Wilson."""
        called = self.true_positive + self.false_positive
        return _labelled_share(self.true_positive, called, Reason(code="no_positive_call"))

    @property
    def f1(self) -> Estimate:
        """Harmonic mean of precision and sensitivity, 2 TP / (2 TP + FP + FN).

        Missing without a positive label: F1 would then be 0 for every judge. Its interval is
        Wilson's, carried over exactly: of the cases that are positive by either, TP is a binomial
        share J, and F1 = 2 J / (1 + J) (Hand, Christen and Kirielle 2021, F*: an interpretable
        transformation of the F-measure).
        """
        either = self.true_positive + self.false_positive + self.false_negative
        if not self.positives:
            return Estimate.missing(Reason(code="no_positive_label"), n=self.n, method="wilson f1")
        share = self.true_positive / either
        low, high = (2 * j / (1 + j) for j in wilson_interval(share, either, critical_value()))
        return interval_estimate(2 * share / (1 + share), low, high, n=self.n, method="wilson f1")

    @property
    def balanced_accuracy(self) -> Estimate:
        """Mean of sensitivity and specificity, 0.5 for a judge without information.

        Missing if one label has no case. The interval adds the two Wilson intervals in squares
        (Zou and Donner 2008, Construction of confidence limits about effect measures).
        """
        return ErrorRates(self.sensitivity, self.specificity, self.n).balanced_accuracy

    @property
    def kappa(self) -> Estimate:
        """Cohen's kappa of judge and labels."""
        return cohen_kappa(self._table)

    @property
    def gwet_ac1(self) -> Estimate:
        """Gwet's AC1 of judge and labels."""
        return gwet_ac1(self._table)

    def estimates(self) -> dict[str, Estimate]:
        """All of them by name, as ``misslink calibrate --json`` prints them."""
        return {
            "kappa": self.kappa,
            "gwet_ac1": self.gwet_ac1,
            "accuracy": self.accuracy,
            "sensitivity": self.sensitivity,
            "specificity": self.specificity,
            "precision": self.precision,
            "recall": self.sensitivity,
            "f1": self.f1,
            "balanced_accuracy": self.balanced_accuracy,
        }

    @property
    def _cells(self) -> tuple[float, float, float, float]:
        return self.true_positive, self.false_negative, self.false_positive, self.true_negative

    @property
    def _table(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return (
            (self.true_negative, self.false_positive),
            (self.false_negative, self.true_positive),
        )


def _labelled_share(successes: float, n: float, reason: Reason) -> Estimate:
    if not n:
        return Estimate.missing(reason, method="wilson")
    share = min(successes / n, 1.0)
    ends = wilson_interval(share, n, critical_value())
    return interval_estimate(share, *ends, n=max(round(n), 1), method="wilson")


def confusion_matrix(
    labels: Sequence[bool],
    predictions: Sequence[bool],
    weights: Sequence[float] | None = None,
) -> ConfusionMatrix:
    """Count a judge's calls against human labels.

    Parameters
    ----------
    labels : sequence of bool
        Human labels, one a case; 0 and 1 are accepted.
    predictions : sequence of bool
        The judge's calls of the same cases in the same order.
    weights : sequence of float or None
        One over the chance with which each case was drawn, or numbers in proportion.

    Returns
    -------
    ConfusionMatrix
        All zero without cases; its rates are then missing. With weights the cells add up to Kish's
        effective number of cases, (sum of weights)^2 / sum of squared weights.

    Raises
    ------
    ValueError
        The lengths differ, or a value is neither true nor false.

    Examples
    --------
    >>> confusion_matrix([1, 1, 0], [1, 0, 0]).turned.precision.value
    0.5
    """
    if len(labels) != len(predictions):
        raise ValueError(f"{len(labels)} labels and {len(predictions)} predictions do not pair up")
    cells: Counter[tuple[bool, ...]] = Counter(zip(labels, predictions, strict=True))
    weighted: dict[tuple[bool, ...], float] = dict(cells)
    if weights is not None and cells:
        scale = sum(weights) / sum(weight**2 for weight in weights)
        weighted = dict.fromkeys(cells, 0.0)
        for label, prediction, weight in zip(labels, predictions, weights, strict=True):
            weighted[label, prediction] += weight * scale
    for label, prediction in cells:
        if label not in {0, 1} or prediction not in {0, 1}:
            raise ValueError(f"label and prediction must be 0 or 1, not {label!r}, {prediction!r}")
    return ConfusionMatrix(*(weighted.get(pair, 0) for pair in product((True, False), repeat=2)))


def checked_scores(labels: Sequence[bool], scores: Sequence[float]) -> tuple[Floats, Floats]:
    """Return labels (0 or 1) and scores as arrays; raise ValueError if they are not that."""
    if len(labels) != len(scores):
        raise ValueError(f"{len(labels)} labels and {len(scores)} scores do not pair up")
    good, score = np.array(labels, dtype=float), np.array(scores, dtype=float)
    if not np.isin(good, (0, 1)).all() or not np.isfinite(score).all():
        raise ValueError("labels must be 0 or 1 and scores finite numbers")
    return good, score


def average_precision(labels: Sequence[bool], scores: Sequence[float]) -> Estimate:
    """Return the mean over the positive cases of the precision at their score.

    Parameters
    ----------
    labels : sequence of bool
        Whether each case is positive; 0 and 1 are accepted.
    scores : sequence of float
        Of the same cases in the same order; higher means more likely positive.

    Returns
    -------
    Estimate
        In (0, 1]; scores without information give the share of positive cases. Missing without a
        positive or without a negative case.

    Raises
    ------
    ValueError
        The lengths differ, a label is neither true nor false, or a score is not finite.

    Notes
    -----
    The interval is made on the logit scale from the infinitesimal jackknife's standard error,
    but never from a smaller one than a binomial share of the positive cases would have (Boyd,
    Eng and Page). If no negative case comes before a positive one it is Wilson's, of the
    positive cases. ``benchmarks/stats/calibration_coverage.py`` compares each alone.

    References
    ----------
    Boyd, Eng and Page (2013), Area under the precision-recall curve: point estimates and
    confidence intervals. Efron (1981), Nonparametric estimates of standard error.

    Examples
    --------
    >>> round(average_precision([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1]).value, 3)  # (1 + 2/3) / 2
    0.833
    """
    z, method = critical_value(), "logit, jackknife"
    good, score = checked_scores(labels, scores)
    n, positives = len(good), int(good.sum())
    if positives in {0, n}:
        reason = Reason(code="no_negative_label" if positives else "no_positive_label")
        return Estimate.missing(reason, n=n, method=method)
    value, influence = _average_precision_influence(good, score)
    variance = max(float(influence @ influence) / n / (n - 1), value * (1 - value) / positives)
    if value >= 1:
        low, high = wilson_interval(1.0, positives, z)
        return Estimate(value=1.0, low=low, high=high, n=n, method="wilson")
    low, high = logit_interval(value, z * math.sqrt(variance))
    return Estimate(value=value, low=low, high=high, n=n, method=method)


def _average_precision_influence(good: Floats, score: Floats) -> tuple[float, Floats]:
    """Average precision, and how much each case would move it with more weight.

    Giving a case more weight adds its own precision if it is positive, and moves the precision at
    every score up to its own.
    """
    order = np.argsort(-score, kind="stable")
    ordered, y = -score[order], good[order]
    last = np.searchsorted(ordered, ordered, side="right") - 1  # of those tied with it
    reached = last + 1.0
    precision = np.cumsum(y)[last] / reached
    positives = y.sum()
    value = float((y * precision).sum() / positives)
    first = np.searchsorted(ordered, ordered, side="left")

    def sum_from_here(terms: Floats) -> Floats:
        """Sums over the positive cases with this score or a lower one."""
        sums = np.concatenate([[0.0], np.cumsum(terms)])
        return sums[-1] - sums[first]

    moved = y * sum_from_here(y / reached) - sum_from_here(y * precision / reached)
    return value, (y * (precision - value) + moved) * len(y) / positives


def stratified_folds(labels: Sequence[bool], folds: int = 5, *, seed: int = 0) -> NDArray[np.int64]:
    """Assign the cases of each label to folds, as evenly as possible.

    Parameters
    ----------
    labels : sequence of bool
        One a case; 0 and 1 are accepted.
    folds : int
        At least 2; fewer are made if the rarer label has fewer cases.
    seed : int
        Random seed of the shuffle.

    Returns
    -------
    array of int
        The fold of each case, from 0. Every fold leaves both labels to fit on.

    Raises
    ------
    ValueError
        Fewer than 2 folds, or fewer than 2 cases of either label.

    Examples
    --------
    >>> sorted(stratified_folds([1, 1, 0, 0], 2).tolist())
    [0, 0, 1, 1]
    """
    good = np.array(labels, dtype=bool)
    rarer = int(min(good.sum(), (~good).sum()))
    if folds < 2:
        raise ValueError(f"{folds} folds leave nothing to fit on")
    if rarer < 2:
        raise ValueError(
            f"the rarer label has {rarer} cases; fitting and measuring needs 2 or more"
        )
    folds = min(folds, rarer)
    generator = np.random.default_rng(seed)
    fold = np.empty(len(good), dtype=np.int64)
    dealt = 0  # the second label starts where the first ended, so that folds are of one size
    for side in (good, ~good):
        cases = generator.permutation(np.flatnonzero(side))
        fold[cases] = (dealt + np.arange(len(cases))) % folds
        dealt += len(cases)
    return fold


@dataclass(frozen=True)
class NestedThreshold:
    """A threshold with its cross-fitted performance.

    Parameters
    ----------
    threshold : float or None
        Fitted on all cases, for later use. None: no threshold reaches the target.
    of_folds : tuple of (float or None)
        Fitted without the cases of each fold; their spread shows how sure it is.
    measured : ConfusionMatrix
        Each case called by the threshold that was fitted without it; folds whose threshold is
        None are left out.
    """

    threshold: float | None
    of_folds: tuple[float | None, ...]
    measured: ConfusionMatrix


def best_threshold(
    labels: Sequence[bool],
    scores: Sequence[float],
    *,
    aim: ThresholdAim = "f1",
    target: float | None = None,
    find: bool = True,
) -> float | None:
    """Return the threshold at which calling cases with that score or more good does best.

    Parameters
    ----------
    labels : sequence of bool
        Human labels, one a case: whether it is good. 0 and 1 are accepted.
    scores : sequence of float
        The judge's scores of the same cases.
    aim : "f1", "precision" or "sensitivity"
        The largest F1; or the largest sensitivity with at least the `target` precision; or the
        largest precision with at least the `target` sensitivity.
    target : float or None
        In (0, 1], for the last two only.
    find : bool
        The label that the aim is about: True for good cases, False for bad ones (score below the
        threshold).

    Returns
    -------
    float or None
        One of the scores, or the next float above the largest (all cases bad). The lowest of
        equally good ones. None if no threshold reaches the target, or no case has the label that
        is to be found.

    Raises
    ------
    ValueError
        The lengths differ, a label is neither true nor false, a score is not finite, or `target`
        does not fit `aim`.

    Examples
    --------
    >>> best_threshold([0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.9])
    0.3
    >>> best_threshold([0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.9], aim="precision", target=1.0)
    0.6
    """
    if (aim == "f1") != (target is None) or (target is not None and not 0 < target <= 1):
        raise ValueError(f"a {aim} target of {target} is not valid: F1 takes none, others (0, 1]")
    good, score = checked_scores(labels, scores)
    sought = good if find else 1 - good
    total = sought.sum()
    if not total:
        return None
    candidates = np.unique(score)
    candidates = np.append(candidates, np.nextafter(candidates[-1], math.inf))
    order = np.argsort(score, kind="stable")
    below = np.searchsorted(score[order], candidates, side="left")
    sought_below = np.concatenate([[0.0], np.cumsum(sought[order])])[below]
    called = len(score) - below if find else below
    hits = total - sought_below if find else sought_below
    precision = np.divide(hits, called, out=np.zeros(len(called)), where=called > 0)
    sensitivity = hits / total
    if target is None:
        return float(candidates[np.argmax(2 * hits / (called + total))])
    rates = (precision, sensitivity) if aim == "precision" else (sensitivity, precision)
    reached = np.flatnonzero((rates[0] >= target) & (called > 0))
    return float(candidates[reached[np.argmax(rates[1][reached])]]) if len(reached) else None


def nested_threshold(
    labels: Sequence[bool],
    scores: Sequence[float],
    *,
    aim: ThresholdAim = "f1",
    target: float | None = None,
    find: bool = True,
    folds: int = 5,
    seed: int = 0,
) -> NestedThreshold:
    """Fit a threshold on all folds but one and measure it there, for each fold in turn.

    Parameters
    ----------
    labels, scores, aim, target, find
        As for `best_threshold`.
    folds : int
        At least 2; fewer if the rarer label has fewer cases.
    seed : int
        Random seed of the folds.

    Returns
    -------
    NestedThreshold
        Its `measured` counts good as positive; ``measured.turned`` is about bad cases.

    Raises
    ------
    ValueError
        As `best_threshold`, and with fewer than 2 cases of either label.

    Notes
    -----
    The interval of a rate read from `measured` treats the thresholds of the folds as one; with a
    hundred labels and more ``benchmarks/stats/calibration_coverage.py`` finds no harm in that.

    References
    ----------
    Varma and Simon (2006), Bias in error estimation when using cross-validation for model
    selection.

    Examples
    --------
    >>> nested = nested_threshold([0, 0, 0, 1, 1, 1], [1, 2, 3, 4, 5, 6], folds=3)
    >>> nested.threshold, nested.measured.n
    (4.0, 6)
    """
    threshold = best_threshold(labels, scores, aim=aim, target=target, find=find)
    fold = stratified_folds(labels, folds, seed=seed)
    good, score = np.array(labels, dtype=bool), np.array(scores, dtype=float)
    of_folds: list[float | None] = []
    measured: list[bool] = []
    called: list[bool] = []
    for number in range(int(fold.max()) + 1):
        test = fold == number
        cut = best_threshold(
            good[~test].tolist(), score[~test].tolist(), aim=aim, target=target, find=find
        )
        of_folds.append(cut)
        if cut is not None:
            measured += good[test].tolist()
            called += (score[test] >= cut).tolist()
    return NestedThreshold(threshold, tuple(of_folds), confusion_matrix(measured, called))
