"""A judge's yes and no against people's: the 2 x 2 table and every rate that is read from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from misslink.stats.kappa import cohen_kappa, gwet_ac1
from misslink.stats.proportions import critical, proportion, wilson
from misslink.types import Estimate

__all__ = ["Confusion", "ErrorRates", "confusion"]


@dataclass(frozen=True)
class ErrorRates:
    """How a judge errs, where it is known by its two rates and not by a table of counts.

    Parameters
    ----------
    sensitivity, specificity : Estimate
        Of the judge against people, in [0, 1], each with the number of cases that it rests on;
        for weighted cases the effective one.
    labels : int or None
        Labelled cases of both kinds. None: as many as the two rates rest on.

    Examples
    --------
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
        """As `Confusion.balanced_accuracy`."""
        values, below_each, above_each = [], [], []
        for share in (self.sensitivity, self.specificity):
            if share.value is None or share.low is None or share.high is None:
                return Estimate.missing(share.reason or "", n=self.n, method="wilson mover")
            values.append(share.value)
            below_each.append(share.value - share.low)
            above_each.append(share.high - share.value)
        value = sum(values) / 2
        below, above = math.hypot(*below_each) / 2, math.hypot(*above_each) / 2
        return Estimate(
            value=value,
            low=max(value - below, 0.0),
            high=min(value + above, 1.0),
            n=self.n,
            method="wilson mover",
        )


@dataclass(frozen=True)
class Confusion:
    """Counts of cases by what people said (true is right) and what the judge called them.

    Parameters
    ----------
    true_positive, false_negative : int
        Cases that people call positive, by whether the judge does.
    false_positive, true_negative : int
        Cases that people call negative, by whether the judge calls them positive.

    Raises
    ------
    ValueError
        A count is negative.

    Examples
    --------
    >>> found = Confusion(true_positive=40, false_negative=10, false_positive=20, true_negative=30)
    >>> found.sensitivity.value, found.specificity.value, round(found.f1.value, 3)
    (0.8, 0.6, 0.727)
    """

    true_positive: int
    false_negative: int
    false_positive: int
    true_negative: int

    def __post_init__(self) -> None:
        if min(self._cells) < 0:
            raise ValueError(f"a count is negative: {self._cells}")

    @property
    def n(self) -> int:
        """All cases."""
        return sum(self._cells)

    @property
    def positives(self) -> int:
        """Cases that people call positive."""
        return self.true_positive + self.false_negative

    @property
    def negatives(self) -> int:
        """Cases that people call negative."""
        return self.false_positive + self.true_negative

    @property
    def turned(self) -> Confusion:
        """The same cases with the negative label as the one to be found."""
        return Confusion(
            true_positive=self.true_negative,
            false_negative=self.false_positive,
            false_positive=self.false_negative,
            true_negative=self.true_positive,
        )

    @property
    def accuracy(self) -> Estimate:
        """Share of cases that the judge calls as people do; Wilson interval."""
        return proportion(self.true_positive + self.true_negative, self.n)

    @property
    def sensitivity(self) -> Estimate:
        """Share of the positive cases that the judge calls positive, also named recall; Wilson."""
        return _share(self.true_positive, self.positives, "no case has the positive label")

    @property
    def specificity(self) -> Estimate:
        """Share of the negative cases that the judge calls negative; Wilson."""
        return _share(self.true_negative, self.negatives, "no case has the negative label")

    @property
    def precision(self) -> Estimate:
        """Share of the cases called positive that are; Wilson."""
        called = self.true_positive + self.false_positive
        return _share(self.true_positive, called, "the judge calls no case positive")

    @property
    def f1(self) -> Estimate:
        """Harmonic mean of precision and sensitivity, 2 TP / (2 TP + FP + FN).

        Missing where no case is or is called positive, and where all positive labels are absent:
        F1 would then be 0 whatever the judge does. Its interval is the Wilson one, exactly
        carried over: given how many cases are positive by either, TP of them is a binomial share
        J, and F1 = 2 J / (1 + J) (Hand, Christen and Kirielle 2021, F*: an interpretable
        transformation of the F-measure).
        """
        either = self.true_positive + self.false_positive + self.false_negative
        if not self.positives:
            return Estimate.missing("no case has the positive label", n=self.n, method="wilson f1")
        share = self.true_positive / either
        low, high = (2 * j / (1 + j) for j in wilson(share, either, critical(0.95)))
        value = 2 * share / (1 + share)
        return Estimate(
            value=value, low=min(low, value), high=max(high, value), n=self.n, method="wilson f1"
        )

    @property
    def balanced_accuracy(self) -> Estimate:
        """Mean of sensitivity and specificity, 0.5 for a judge that says nothing.

        Missing where one label has no case. The interval adds the two Wilson intervals in
        squares (Zou and Donner 2008, Construction of confidence limits about effect measures).
        """
        return ErrorRates(self.sensitivity, self.specificity, self.n).balanced_accuracy

    @property
    def kappa(self) -> Estimate:
        """Cohen's kappa of judge and people."""
        return cohen_kappa(self._table)

    @property
    def gwet_ac1(self) -> Estimate:
        """Gwet's AC1 of judge and people."""
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
    def _cells(self) -> tuple[int, int, int, int]:
        return self.true_positive, self.false_negative, self.false_positive, self.true_negative

    @property
    def _table(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return (
            (self.true_negative, self.false_positive),
            (self.false_negative, self.true_positive),
        )


def confusion(labels: Sequence[bool], predictions: Sequence[bool]) -> Confusion:
    """Count a judge's calls against people's labels.

    Parameters
    ----------
    labels : sequence of bool
        By people, one a case; truth values such as 0 and 1 do.
    predictions : sequence of bool
        By the judge, for the same cases in the same order.

    Returns
    -------
    Confusion
        All zero where there are no cases; its rates are then missing.

    Raises
    ------
    ValueError
        The lengths differ, or a value is neither true nor false.

    Examples
    --------
    >>> confusion([1, 1, 0], [1, 0, 0]).turned.precision.value
    0.5
    """
    if len(labels) != len(predictions):
        raise ValueError(f"{len(labels)} labels and {len(predictions)} predictions do not pair up")
    cells = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for label, prediction in zip(labels, predictions, strict=True):
        if label not in {0, 1} or prediction not in {0, 1}:
            raise ValueError(f"a label and a prediction are 0 or 1, not {label!r}, {prediction!r}")
        cells[bool(label), bool(prediction)] += 1
    return Confusion(*cells.values())


def _share(successes: int, n: int, without: str) -> Estimate:
    return proportion(successes, n) if n else Estimate.missing(without, method="wilson")
