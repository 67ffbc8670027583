"""Shares, and differences of two, as people would have found them: a judge's, less its errors."""

from __future__ import annotations

import math
from typing import Literal

from misslink.stats.confusion import Confusion, ErrorRates
from misslink.stats.proportions import check_counts, critical, proportion, wilson
from misslink.types import Estimate

__all__ = ["corrected_difference", "rogan_gladen"]

_DRAWS = 20_000
_JEFFREYS = 0.5

Counts = tuple[int, int, int]
Ends = tuple[float, float]
Rate = tuple[float, float]  # a share, and the number of cases that it rests on


def rogan_gladen(
    called: int,
    n: int,
    judge: Confusion | ErrorRates,
    *,
    among: bool = False,
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
    judge : Confusion or ErrorRates
        The judge against people on the labelled cases, good being positive; its rates alone where
        the cases were weighted.
    among : bool
        Whether the labelled cases are among the `n`, so that their calls must not count twice:
        theirs is then the share of the labels, and the other cases' the corrected one. The value
        stays the same. Without it, the interval of 300 labels among 1,300 cases would cover 98 %
        (``benchmarks/calibration_coverage.md``).
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
        The counts cannot be counts of the same cases, or `among` goes without a table of counts.

    References
    ----------
    Rogan and Gladen (1978), Estimating prevalence from the results of a screening test. Lang and
    Reiczigel (2014), Confidence limits for prevalence of disease adjusted for estimated
    sensitivity and specificity. Zou and Donner (2008), Construction of confidence limits about
    effect measures, for the sum of both shares.

    Examples
    --------
    >>> judge = Confusion(true_positive=90, false_negative=10, false_positive=20, true_negative=80)
    >>> round(rogan_gladen(600, 1000, judge).value, 3)  # (0.6 - 0.2) / 0.7
    0.571
    """
    check_counts(called, n)
    method = f"rogan-gladen, {interval}"
    critical(level)  # refuses a level that is none
    if not n:
        return Estimate.missing("no cases", method=method)
    measured = _measured(judge)
    if isinstance(measured, str):
        return Estimate.missing(measured, n=n, method=method)
    good, labelled, called_good = _own(judge) if among else (0, 0, 0)
    rest = called - called_good, n - labelled
    check_counts(*rest)
    if not rest[1]:
        found = proportion(good, labelled, level=level)
        return found.model_copy(update={"method": method})
    ends = _delta if interval == "delta" else _posterior
    value, (low, high), others = ends(rest, measured, (good, labelled), level, seed)
    if others[0] >= 1 or others[1] <= 0:
        few = "fewer" if others[1] <= 0 else "more"
        reason = (
            f"the judge calls {few} cases good than its errors on the {judge.n} labelled cases "
            "allow: the labelled cases are unlike the rest"
        )
        return Estimate.missing(reason, n=n, method=method)
    value, low, high = (min(max(end, 0.0), 1.0) for end in (value, low, high))
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n, method=method)


def corrected_difference(difference: Estimate, judge: Confusion | ErrorRates) -> Estimate:
    """Correct the difference of two shares that the same judge calls good.

    Parameters
    ----------
    difference : Estimate
        Share called good in the second less that in the first, with its interval: that of
        `misslink.stats.paired_difference` where the cases are the same.
    judge : Confusion or ErrorRates
        The judge against people on labelled cases, good being positive.

    Returns
    -------
    Estimate
        difference / (sensitivity + specificity - 1), in [-1, 1]: what the judge calls good by
        mistake cancels, and what it misses makes every difference look smaller than it is. It
        stands where the judge errs alike in both. The interval is the one of a ratio, found from
        those of the difference and of the two rates, so that it carries the labels' uncertainty;
        it holds 0 if and only if the uncorrected one does. Missing where the difference is, where
        the judge was not measured or is not shown to be better than chance, or where the judge
        sees a larger difference than its errors allow.

    References
    ----------
    Rogan and Gladen (1978), Estimating prevalence from the results of a screening test. Donner
    and Zou (2012), Closed-form confidence intervals for functions of the normal mean and standard
    deviation; their limits are worked out anew for ratios of either sign.

    Examples
    --------
    >>> judge = Confusion(true_positive=90, false_negative=10, false_positive=20, true_negative=80)
    >>> raw = Estimate(value=0.07, low=0.01, high=0.13, n=200, method="bootstrap")
    >>> round(corrected_difference(raw, judge).value, 3)  # 0.07 / (0.9 + 0.8 - 1)
    0.1
    """
    method, n = "rogan-gladen, difference", difference.n
    if difference.value is None or difference.low is None or difference.high is None:
        reason = difference.reason or "the difference has no interval"
        return Estimate.missing(reason, n=n, method=method)
    measured = _measured(judge)
    if isinstance(measured, str):
        return Estimate.missing(measured, n=n, method=method)
    better = judge.balanced_accuracy
    if better.value is None or better.low is None or better.high is None:
        return Estimate.missing(better.reason or "no labels", n=n, method=method)
    gain, least, most = (2 * end - 1 for end in (better.value, better.low, better.high))
    value = difference.value / gain
    high = _ratio_end(difference.value, difference.high, gain, (least, most))
    low = -_ratio_end(-difference.value, -difference.low, gain, (least, most))
    if low >= 1 or high <= -1:
        reason = (
            f"the judge sees a larger difference than its errors on the {judge.n} labelled cases "
            "allow: the labelled cases are unlike these"
        )
        return Estimate.missing(reason, n=n, method=method)
    value, low, high = (min(max(end, -1.0), 1.0) for end in (value, low, high))
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n, method=method)


def _measured(judge: Confusion | ErrorRates) -> tuple[Rate, Rate] | str:
    """Sensitivity and specificity; or why nothing can be corrected by them."""
    better, sensitivity, specificity = (
        judge.balanced_accuracy,
        judge.sensitivity,
        judge.specificity,
    )
    if better.low is None or sensitivity.value is None or specificity.value is None:
        return better.reason or "no labels"
    if better.low <= 1 / 2:
        return (
            f"{judge.n} labels do not show that the judge is better than chance: its balanced "
            f"accuracy is {better.value:.2f}, and could be {better.low:.2f}"
        )
    return (sensitivity.value, sensitivity.n), (specificity.value, specificity.n)


def _ratio_end(value: float, above: float, gain: float, gains: tuple[float, float]) -> float:
    """The largest r for which `value` - r `gain`, with what both could be, may still be 0.

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


def _own(judge: Confusion | ErrorRates) -> Counts:
    """Of the labelled cases: good by people, all, and good by the judge."""
    if isinstance(judge, ErrorRates):
        raise ValueError(  # noqa: TRY004 -- which rates go with it is a matter of values
            "labelled cases among the judged ones are told by their table of counts"
        )
    return judge.positives, judge.n, judge.true_positive + judge.false_positive


def _delta(
    rest: tuple[int, int],
    judge: tuple[Rate, Rate],
    labels: tuple[int, int],
    level: float,
    _: int,
) -> tuple[float, Ends, Ends]:
    z = critical(level)
    size = rest[1] + z * z
    share = (rest[0] + z * z / 2) / size
    positives, negatives = (of + 2 for _, of in judge)
    sensitivity, specificity = ((right * of + 1) / (of + 2) for right, of in judge)
    gain = sensitivity + specificity - 1
    corrected = (share + specificity - 1) / gain
    # of the two error rates, each by its weight in the corrected share
    wrong = sensitivity * (1 - sensitivity) / positives, specificity * (1 - specificity) / negatives
    shift = 2 * z * z * (corrected * wrong[0] - (1 - corrected) * wrong[1])
    variance = share * (1 - share) / size
    variance += corrected**2 * wrong[0] + (1 - corrected) ** 2 * wrong[1]
    half = z * math.sqrt(variance) / gain
    value = _corrected(rest, judge)
    others = corrected + shift - half, corrected + shift + half
    if not labels[1]:
        return value, others, others
    own = labels[0] / labels[1]
    ends, part = wilson(own, labels[1], z), labels[1] / (labels[1] + rest[1])
    centre = part * own + (1 - part) * value
    low = math.hypot(part * (own - ends[0]), (1 - part) * max(value - others[0], 0.0))
    high = math.hypot(part * (ends[1] - own), (1 - part) * max(others[1] - value, 0.0))
    return centre, (centre - low, centre + high), others


def _posterior(
    rest: tuple[int, int],
    judge: tuple[Rate, Rate],
    labels: tuple[int, int],
    level: float,
    seed: int,
) -> tuple[float, Ends, Ends]:
    import numpy as np

    generator = np.random.default_rng(seed)
    own, share, sensitivity, specificity = (
        generator.beta(hits + _JEFFREYS, of - hits + _JEFFREYS, _DRAWS)
        for hits, of in (labels, rest, *((right * of, of) for right, of in judge))
    )
    gain = sensitivity + specificity - 1
    better = gain > 0
    others = (share[better] + specificity[better] - 1) / gain[better]
    part = labels[1] / (labels[1] + rest[1])
    both = part * own[better] + (1 - part) * others
    (low, high), (least, most) = (
        np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]) for drawn in (both, others)
    )
    centre = part * labels[0] / max(labels[1], 1) + (1 - part) * _corrected(rest, judge)
    return centre, (float(low), float(high)), (float(least), float(most))


def _corrected(rest: tuple[int, int], judge: tuple[Rate, Rate]) -> float:
    (sensitivity, _), (specificity, _) = judge
    return (rest[0] / rest[1] - 1 + specificity) / (sensitivity + specificity - 1)
