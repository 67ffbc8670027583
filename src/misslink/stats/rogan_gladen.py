"""The share of good cases that people would have found, from a judge whose errors are known."""

from __future__ import annotations

import math
from typing import Literal

from misslink.stats.confusion import Confusion
from misslink.stats.proportions import check_counts, critical
from misslink.types import Estimate

__all__ = ["rogan_gladen"]

_DRAWS = 20_000
_JEFFREYS = 0.5


def rogan_gladen(
    called: int,
    n: int,
    judge: Confusion,
    *,
    interval: Literal["delta", "posterior"] = "delta",
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Correct the share that a judge calls good by its sensitivity and specificity.

    Parameters
    ----------
    called : int
        Cases the judge calls good, of `n`.
    n : int
        All cases judged.
    judge : Confusion
        The judge against people on the labelled cases, good being positive.
    interval : "delta" or "posterior"
        By the delta method with Lang and Reiczigel's small-sample adjustment, or the middle of
        20,000 draws of the three shares from their Jeffreys posteriors.
    seed : int
        Of the draws.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        (called / n - (1 - specificity)) / (sensitivity + specificity - 1), cut to [0, 1]. Unlike
        prediction-powered inference it stands where the labelled cases are richer in bad ones
        than the rest, as long as the judge errs alike. Missing without cases, where one label is
        absent, where the labels do not show (at `level`) that the judge is better than chance, or
        where the whole interval lies outside [0, 1].

    Raises
    ------
    ValueError
        The counts cannot be counts of the same cases.

    References
    ----------
    Rogan and Gladen (1978), Estimating prevalence from the results of a screening test. Lang and
    Reiczigel (2014), Confidence limits for prevalence of disease adjusted for estimated
    sensitivity and specificity.

    Examples
    --------
    >>> judge = Confusion(true_positive=90, false_negative=10, false_positive=20, true_negative=80)
    >>> round(rogan_gladen(600, 1000, judge).value, 3)  # (0.6 - 0.2) / 0.7
    0.571
    """
    check_counts(called, n)
    method, z = f"rogan-gladen, {interval}", critical(level)
    better = judge.balanced_accuracy
    if not n:
        return Estimate.missing("no cases", method=method)
    if better.value is None or better.low is None:
        return Estimate.missing(better.reason or "no labels", n=n, method=method)
    if better.low <= 1 / 2:
        reason = (
            f"{judge.n} labels do not show that the judge is better than chance: its balanced "
            f"accuracy is {better.value:.2f}, and could be {better.low:.2f}"
        )
        return Estimate.missing(reason, n=n, method=method)
    sensitivity = judge.true_positive / judge.positives
    specificity = judge.true_negative / judge.negatives
    value = (called / n - 1 + specificity) / (sensitivity + specificity - 1)
    ends = _delta if interval == "delta" else _posterior
    low, high = ends(called, n, judge, z if interval == "delta" else level, seed)
    if low >= 1 or high <= 0:
        few = "fewer" if high <= 0 else "more"
        reason = (
            f"the judge calls {few} cases good than its errors on the {judge.n} labelled cases "
            "allow: the labelled cases are unlike the rest"
        )
        return Estimate.missing(reason, n=n, method=method)
    value, low, high = (min(max(end, 0.0), 1.0) for end in (value, low, high))
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n, method=method)


def _delta(called: int, n: int, judge: Confusion, z: float, _: int) -> tuple[float, float]:
    size = n + z * z
    share = (called + z * z / 2) / size
    positives, negatives = judge.positives + 2, judge.negatives + 2
    sensitivity = (judge.true_positive + 1) / positives
    specificity = (judge.true_negative + 1) / negatives
    gain = sensitivity + specificity - 1
    corrected = (share + specificity - 1) / gain
    # of the two error rates, each by its weight in the corrected share
    wrong = sensitivity * (1 - sensitivity) / positives, specificity * (1 - specificity) / negatives
    shift = 2 * z * z * (corrected * wrong[0] - (1 - corrected) * wrong[1])
    variance = share * (1 - share) / size
    variance += corrected**2 * wrong[0] + (1 - corrected) ** 2 * wrong[1]
    half = z * math.sqrt(variance) / gain
    return corrected + shift - half, corrected + shift + half


def _posterior(
    called: int, n: int, judge: Confusion, level: float, seed: int
) -> tuple[float, float]:
    import numpy as np

    generator = np.random.default_rng(seed)
    share, sensitivity, specificity = (
        generator.beta(hits + _JEFFREYS, of - hits + _JEFFREYS, _DRAWS)
        for hits, of in (
            (called, n),
            (judge.true_positive, judge.positives),
            (judge.true_negative, judge.negatives),
        )
    )
    gain = sensitivity + specificity - 1
    better = gain > 0
    drawn = (share[better] + specificity[better] - 1) / gain[better]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
