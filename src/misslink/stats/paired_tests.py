"""Paired comparisons of two systems on the same cases: tests, effect sizes and detectable differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from misslink.stats import intervals
from misslink.types import Estimate, Reason

_ROUNDING = 1e-9  # an nDCG of 1.0000000000000002 is 1
_DECIMALS = 12  # 0.6 - 0.4 and 0.4 - 0.2 are one size
_ALPHA, _POWER = 0.05, 0.80  # of the difference that could be detected
_MAX_DISTINCT_SIZES = 200  # from here on it is faster to draw the sign of each difference
_SIGNS_PER_BYTE = 8
_HALVINGS = 30  # of the range in which an end of an interval is looked for
_MAX_EXACT_RANKS = 50  # differences up to which every outcome is enumerated, ties included


@dataclass(frozen=True)
class PairedComparison:
    """How much better b is than a, case by case.

    Parameters
    ----------
    difference : Estimate
        Mean of b - a; n is the number of cases in which both have a value.
    p : float or None
        Two-sided, of the sign-flip test. None: no case has both values.
    detectable : float or None
        The mean difference that this many cases, with differences this spread, show at the 5%
        level with 80% power. None: the differences have no spread.
    groups : int or None
        Number of clusters. None: the cases are independent.
    """

    difference: Estimate
    p: float | None
    detectable: float | None
    groups: int | None = None


def paired_difference(
    a: Sequence[float | None],
    b: Sequence[float | None],
    *,
    seed: int = 0,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    level: float = 0.95,
) -> PairedComparison:
    """Compare two systems over the cases in which both have a value; the order does not matter.

    Parameters
    ----------
    a, b : sequence of float or None, of equal length
        A value for each case, in the same order of cases. None: the system has no value.
    seed : int
        Random seed of the interval and of the sign flips.
    bounds : pair of float or None
        Smallest and largest possible value. None: not bounded; equal differences then have no
        interval.
    level : float
        Confidence level of the interval, in (0, 1).

    Returns
    -------
    PairedComparison
        The interval is that of `misslink.stats.mean`, bounded by the largest difference seen, and
        includes 0 exactly if the test does not reject it (`interval_of_test`). If no case differs
        (``wilson bound``), at most as many could as Wilson's interval for none of n allows, each by
        the whole range. The test enumerates all sign flips if there are at most 10,000 outcomes
        (for yes-or-no values it is McNemar's exact test), else it draws 10,000.

    Raises
    ------
    ValueError
        The lengths differ, or a value is not finite or not within `bounds`.

    References
    ----------
    Fisher (1935), The design of experiments, section 21. Smucker, Allan and Carterette (2007), A
    comparison of statistical significance tests for information retrieval evaluation. Phipson
    and Smyth (2010), Permutation p-values should never be zero.

    Examples
    --------
    >>> comparison = paired_difference([0, 0, 1, 0, None, 0], [1, 1, 1, 1, 1, 0])
    >>> comparison.difference.value, comparison.difference.n, comparison.p
    (0.6, 5, 0.25)
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} values are not of the same cases")
    both = zip(a, b, strict=True)
    pairs = [(float(x), float(y)) for x, y in both if x is not None and y is not None]
    least, most = bounds or (-math.inf, math.inf)
    for value in (value for pair in pairs for value in pair):
        if not math.isfinite(value):
            raise ValueError("differences need finite numbers; use None for a missing value")
        if not least - _ROUNDING <= value <= most + _ROUNDING:
            raise ValueError(f"a value of {value} is not within {bounds}")
    span = most - least if bounds else None
    differences = sorted(round(y - x, _DECIMALS) for x, y in pairs)
    if not differences:
        return PairedComparison(Estimate.missing(Reason(code="no_shared_value")), None, None)
    n = len(differences)
    moments = _moments(differences)

    @cache
    def p_at(shift: float) -> float:
        shifted = [round(difference - shift, _DECIMALS) for difference in differences]
        return sign_flips(shifted, seed=seed)

    estimate = _difference_estimate(differences, span, seed, level)
    return PairedComparison(
        difference=interval_of_test(estimate, p_at, level),
        p=p_at(0.0),
        detectable=detectable_shift(n) * moments[1] / math.sqrt(n)
        if isinstance(moments, tuple)
        else None,
    )


def _difference_estimate(
    differences: list[float], span: float | None, seed: int, level: float
) -> Estimate:
    largest = max(abs(differences[0]), abs(differences[-1]))
    n = len(differences)
    if span is not None and not largest:
        _, most = intervals.wilson_interval(0.0, n, intervals.critical_value(level))
        return Estimate(value=0.0, low=-span * most, high=span * most, n=n, method="wilson bound")
    bounds: tuple[float, float] | None = (-largest, largest)
    if differences[0] == differences[-1]:
        bounds = None if span is None else (-span, span)
    estimate = intervals.mean(differences, seed=seed, bounds=bounds, level=level)
    return estimate.model_copy(update={"value": math.fsum(differences) / n})  # not scaled and back


def interval_of_test(
    estimate: Estimate, p_at: Callable[[float], float], level: float = intervals.LEVEL
) -> Estimate:
    """Return an estimate whose interval includes 0 exactly if a test does not reject 0.

    Parameters
    ----------
    estimate : Estimate
        Its interval stays where both agree on 0. Else it reaches 0, or ends at the value nearest
        to 0 that the test does not reject.
    p_at : callable
        The p-value of the test that the true value is the given one.
    level : float
        Confidence level of the interval, in (0, 1).
    """
    value, low, high = estimate.value, estimate.low, estimate.high
    if value is None or low is None or high is None:
        return estimate
    rejected = p_at(0.0) < 1 - level
    if rejected == (low > 0 or high < 0):
        return estimate
    if not rejected:
        return estimate.model_copy(update={"low": min(low, 0.0), "high": max(high, 0.0)})
    outside, end = 0.0, value
    for _ in range(_HALVINGS):
        middle = (outside + end) / 2
        outside, end = (middle, end) if p_at(middle) < 1 - level else (outside, middle)
    return estimate.model_copy(update={"low" if value > 0 else "high": end})


def sign_flips(differences: Sequence[float], *, seed: int = 0) -> float:
    """Return the p-value of the randomisation test: could each difference have had the other sign?

    Parameters
    ----------
    differences : sequence of float
        Finite, in any order. Differences of one size are interchangeable, so round sizes that are
        meant to be equal.
    seed : int
        Random seed of the flips, if they are drawn.

    Returns
    -------
    float
        1 without any difference. Exact if there are at most 10,000 outcomes, else from 10,000
        random ones, with the observed one counted among them.

    References
    ----------
    Fisher (1935), The design of experiments, section 21. Phipson and Smyth (2010), Permutation
    p-values should never be zero.

    Examples
    --------
    >>> sign_flips([0.5, 0.25, 1.0])
    0.25
    """
    sizes = sorted(Counter(abs(magnitude) for magnitude in differences if magnitude).items())
    if not sizes:
        return 1.0
    observed = abs(math.fsum(differences))
    close = observed - _ROUNDING * math.fsum(map(abs, differences))  # rounding is no smaller sum
    if math.prod(count + 1 for _, count in sizes) <= intervals.DRAWS:
        return _exact_flip_p(sizes, close)
    size, count = (np.array(column) for column in zip(*sizes, strict=True))
    generator = np.random.default_rng(seed)
    if len(sizes) < _MAX_DISTINCT_SIZES:

        def draw(draws: int) -> intervals.Floats:
            positive = generator.binomial(count, 0.5, (draws, len(sizes)))
            return (2 * positive - count) @ size

        sums = intervals.draw_in_chunks(draw, len(sizes))
    else:
        # A random byte looks up the sum of eight signed differences.
        magnitude = np.repeat(size, count)
        eights = np.pad(magnitude, (0, -len(magnitude) % _SIGNS_PER_BYTE)).reshape(
            -1, _SIGNS_PER_BYTE
        )
        bytes_ = np.arange(2**_SIGNS_PER_BYTE)
        signs = 2.0 * ((bytes_ >> np.arange(_SIGNS_PER_BYTE)[:, np.newaxis]) & 1) - 1
        sums = np.zeros(intervals.DRAWS)
        for eight in eights:
            sums += (eight @ signs)[
                generator.integers(0, len(bytes_), intervals.DRAWS, dtype=np.uint8)
            ]
    return (int((np.abs(sums) >= close).sum()) + 1) / (intervals.DRAWS + 1)


def _exact_flip_p(sizes: Sequence[tuple[float, int]], close: float) -> float:
    sums, chances = np.zeros(1), np.ones(1)
    for size, count in sizes:
        ways = [1]  # in whole numbers, so that 1/4 is 1/4
        for positive in range(count):
            ways.append(ways[-1] * (count - positive) // (positive + 1))
        sums = np.add.outer(sums, size * (2 * np.arange(count + 1) - count)).ravel()
        chances = np.outer(chances, [way / 2**count for way in ways]).ravel()
    return min(math.fsum(chances[np.abs(sums) >= close]), 1.0)


def more_failures_p(history: Sequence[tuple[int, int]], failed: Sequence[bool]) -> float:
    """Return the exact p-value of as many failures now, given how often each item failed before.

    Parameters
    ----------
    history : sequence of (int, int)
        Of each item: earlier runs, and in how many of them it failed.
    failed : sequence of bool
        Whether each item fails now.

    Returns
    -------
    float
        One-sided. If an item's runs are exchangeable, each of its failures, those of now included,
        is in the last of its m runs with a chance of 1/m; the number of items that fail now is then
        a sum of independent yes-or-no variables. With one earlier run it is McNemar's exact test.

    Examples
    --------
    >>> more_failures_p([(1, 0)] * 4, [True] * 4)
    0.0625
    """
    items = zip(history, failed, strict=True)
    chances = [(fails + now) / (runs + 1) for (runs, fails), now in items]
    tail = np.ones(1)
    for chance in filter(None, chances):
        tail = np.convolve(tail, [1 - chance, chance])
    return min(1.0, math.fsum(tail[sum(map(bool, failed)) :]))


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected for their number, in their order; a missing one stays missing.

    Parameters
    ----------
    ps : sequence of float or None
        In [0, 1]. None: no test was made, so it does not count.

    Returns
    -------
    list of float or None
        The smallest times their number, the next times one fewer and so on, never falling and at
        most 1. Rejecting below 5% then errs anywhere in at most 5% of repetitions.

    Raises
    ------
    ValueError
        A p-value is not in [0, 1].

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    tested = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    largest = 0.0
    for before, (p, place) in enumerate(tested):
        if not 0 <= p <= 1:
            raise ValueError(f"a p-value is between 0 and 1, not {p}")
        largest = max(largest, min(1.0, p * (len(tested) - before)))
        corrected[place] = largest
    return corrected


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Return p-values corrected so that of those below a level at most that share is false.

    Parameters
    ----------
    ps : sequence of float
        In [0, 1].

    Returns
    -------
    list of float
        In their order: the largest as it is, the next times their number by its rank, never rising.

    References
    ----------
    Benjamini and Hochberg (1995), Controlling the false discovery rate.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    corrected, smallest = [0.0] * len(ps), 1.0
    for rank, place in reversed(list(enumerate(sorted(range(len(ps)), key=ps.__getitem__), 1))):
        smallest = min(smallest, ps[place] * len(ps) / rank)
        corrected[place] = smallest
    return corrected


def detectable_after_holm(comparison: PairedComparison, ps: Sequence[float | None]) -> float | None:
    """Return the difference that these cases could have shown, at the level Holm's procedure left.

    Parameters
    ----------
    comparison : PairedComparison
        One of the comparisons that were made.
    ps : sequence of float or None
        The p-values of all of them, corrected by `holm`. None: no test was made.

    Returns
    -------
    float or None
        As `PairedComparison.detectable`, at 5% divided by the number of tests that are not
        rejected. None: the differences have no spread.

    Examples
    --------
    >>> comparison = paired_difference([0.5, 0.5, 0.5, 0.5], [0.5, 0.75, 0.5, 1.0])
    >>> after = detectable_after_holm(comparison, [0.5, 0.9, 1.0, None])
    >>> round(comparison.detectable, 2), round(after, 2)
    (0.51, 0.75)
    """
    if comparison.detectable is None:
        return None
    remaining = sum(p >= _ALPHA for p in ps if p is not None)
    units = comparison.difference.n if comparison.groups is None else comparison.groups
    level = _ALPHA / max(1, remaining)
    return comparison.detectable * detectable_shift(units, level) / detectable_shift(units)


def detectable_shift(units: int, level: float = _ALPHA) -> float:
    """Return how many standard errors a difference must be off 0 for a t test to have 80% power.

    Parameters
    ----------
    units : int
        Independent differences, at least 2.
    level : float
        Two-sided significance level in (0, 1).

    Examples
    --------
    >>> round(detectable_shift(1000), 2)
    2.8
    """
    from scipy.special import nctdtrinc

    return float(nctdtrinc(units - 1, 1 - _POWER, intervals.student_quantile(1 - level, units - 1)))


@dataclass(frozen=True)
class PairedTTest:
    """Student's paired t-test: statistic, two-sided p, degrees of freedom; or the reason for none."""

    t: float | None
    p: float | None
    df: int
    reason: str | None = None


def paired_t(differences: Sequence[float]) -> PairedTTest:
    """Test whether the mean difference is 0, assuming normal differences.

    Parameters
    ----------
    differences : sequence of float, one a case
        Finite. Fewer than two, or equal ones, give no test.

    References
    ----------
    Student (1908), The probable error of a mean.

    Examples
    --------
    >>> test = paired_t([1, 2, 3])
    >>> round(test.t, 3), round(test.p, 3), test.df
    (3.464, 0.074, 2)
    """
    n = len(differences)
    moments = _moments(differences)
    if isinstance(moments, Reason):
        return PairedTTest(None, None, max(n - 1, 0), str(moments))
    from scipy.special import stdtr

    centre, spread = moments
    t = centre / (spread / math.sqrt(n))
    return PairedTTest(t, min(1.0, 2 * float(stdtr(n - 1, -abs(t)))), n - 1)


def cohens_dz(differences: Sequence[float]) -> Estimate:
    """Return the mean difference in units of the differences' standard deviation (n - 1).

    Parameters
    ----------
    differences : sequence of float, one a case
        Finite. Missing with fewer than two, or if all are equal.

    Returns
    -------
    Estimate
        Without an interval: that of the difference itself shows how certain it is.

    References
    ----------
    Cohen (1988), Statistical power analysis for the behavioral sciences, section 2.3.5, where 0.2
    is small, 0.5 medium and 0.8 large.

    Examples
    --------
    >>> cohens_dz([1, 2, 3]).value
    2.0
    """
    n, method = len(differences), "cohen's d_z"
    moments = _moments(differences)
    if isinstance(moments, Reason):
        return Estimate.missing(moments, n=n, method=method)
    value, no_interval = moments[0] / moments[1], Reason(code="effect_size")
    return intervals.without_interval(value, no_interval, n=n, method=method)


def _moments(differences: Sequence[float]) -> tuple[float, float] | Reason:
    """Mean and standard deviation, or why there is no spread."""
    n = len(differences)
    if n <= 1:
        return Reason(code="one_shared_value")
    rounded = [round(difference, _DECIMALS) for difference in differences]
    if min(rounded) == max(rounded):
        return Reason(code="equal_differences", by=rounded[0])
    centre = math.fsum(differences) / n
    spread = math.sqrt(
        math.fsum((difference - centre) ** 2 for difference in differences) / (n - 1)
    )
    return centre, spread


@dataclass(frozen=True)
class SignedRankTest:
    """Wilcoxon's signed-rank test.

    Parameters
    ----------
    positive, negative : float
        Sums of the ranks of the differences above and below 0, ranked by their size.
    p : float or None
        Two-sided. None: `reason` says why.
    effect : float or None
        Rank-biserial correlation, (positive - negative) / (positive + negative).
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


def wilcoxon_test(differences: Sequence[float]) -> SignedRankTest:
    """Test whether the differences are symmetric around 0, by the ranks of their sizes.

    Parameters
    ----------
    differences : sequence of float, one a case
        Finite, in any order. Those of 0 are dropped.

    Returns
    -------
    SignedRankTest
        Equal sizes share the mean of their ranks. Up to 50 differences p is exact, also with ties
        (unlike SciPy's); above, normal with the variance corrected for ties.

    References
    ----------
    Wilcoxon (1945), Individual comparisons by ranking methods. Hollander, Wolfe and Chicken
    (2013), Nonparametric statistical methods, section 3.1. Kerby (2014), The simple difference
    formula.

    Examples
    --------
    >>> test = wilcoxon_test([0.5, 0.25, 1.0, -0.125, 0.75])
    >>> test.positive, test.negative, test.p
    (14.0, 1.0, 0.125)
    """
    from scipy.special import ndtr
    from scipy.stats import rankdata

    rounded = np.round(np.asarray(differences, dtype=np.float64), _DECIMALS)
    if not np.isfinite(rounded).all():
        raise ValueError("differences must be finite numbers; leave missing ones out")
    rounded = rounded[rounded != 0]
    n = len(rounded)
    if not n:
        return SignedRankTest(0.0, 0.0, None, None, 0, "none", str(Reason(code="no_difference")))
    ranks = rankdata(np.abs(rounded))
    total = n * (n + 1) / 2
    positive = float(ranks[rounded > 0].sum())
    negative = total - positive
    if n <= _MAX_EXACT_RANKS:
        method, p = "exact", _exact_rank_p(ranks, min(positive, negative))
    else:
        # The variance of a sum of independent signed ranks; the mean ranks of ties are in it.
        z = (positive - total / 2) / math.sqrt(float(ranks @ ranks) / 4)
        method, p = "normal", min(1.0, 2 * float(ndtr(-abs(z))))
    return SignedRankTest(positive, negative, p, (positive - negative) / total, n, method)


def _exact_rank_p(ranks: intervals.Floats, smaller: float) -> float:
    """Twice the chance of a sum of positive ranks as small as this, at most 1."""
    doubled = [round(2 * rank) for rank in ranks.tolist()]  # a mean of ranks may end in a half
    ways = [1] + [0] * sum(doubled)  # in whole numbers: 2^50 outcomes and none lost
    for rank in doubled:
        for total in range(len(ways) - rank - 1, -1, -1):
            ways[total + rank] += ways[total]
    return min(1.0, 2.0 * sum(ways[: round(2 * smaller) + 1]) / float(2 ** len(doubled)))


@dataclass(frozen=True)
class McNemarTest:
    """How many cases turned from no to yes and back; exact two-sided p; odds gained / lost."""

    gained: int
    lost: int
    p: float
    odds: Estimate


def mcnemar_test(gained: int, lost: int) -> McNemarTest:
    """Test whether as many yes-or-no values turned to yes as to no.

    Parameters
    ----------
    gained, lost : int
        Cases that turned from no to yes, and from yes to no. Without any, p is 1 and there are no
        odds.

    Returns
    -------
    McNemarTest
        The odds have the exact interval of the share that gained. They are missing if none lost;
        an unbounded end is None.

    Raises
    ------
    ValueError
        A count is negative.

    References
    ----------
    McNemar (1947), Note on the sampling error of the difference between correlated proportions or
    percentages. Clopper and Pearson (1934), The use of confidence or fiducial limits. Fleiss,
    Levin and Paik (2003), Statistical methods for rates and proportions, section 13.1.

    Examples
    --------
    >>> test = mcnemar_test(6, 1)
    >>> test.p, test.odds.value
    (0.125, 6.0)
    """
    from scipy.special import bdtr, betaincinv

    n, method = gained + lost, "clopper-pearson, as odds"
    intervals.check_counts(gained, n)
    intervals.check_counts(lost, n)
    # Both tails of the binomial are equal, and the middle outcome of an even n is in both.
    p = min(1.0, 2 * float(bdtr(min(gained, lost), n, 0.5))) if n else 1.0
    if not lost:
        reason = Reason(code="no_loss_for_odds") if n else Reason(code="no_change")
        return McNemarTest(gained, lost, p, Estimate.missing(reason, n=n, method=method))
    tail = (1 - intervals.LEVEL) / 2
    low = float(betaincinv(gained, lost + 1, tail)) if gained else 0.0
    high = float(betaincinv(gained + 1, lost, 1 - tail))
    odds = Estimate(
        value=gained / lost, low=low / (1 - low), high=high / (1 - high), n=n, method=method
    )
    return McNemarTest(gained, lost, p, odds)
