"""Agreement of raters: kappa, AC1, alpha, and rank correlations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from itertools import combinations_with_replacement
from typing import Any, Literal

import numpy as np

from misslink.stats import intervals
from misslink.types import Estimate, Reason

Ratings = Sequence[Sequence[float | str | None]]
RatingTable = Sequence[Sequence[float]]

_MIN_DRAWS = 1_000
_MAX_DRAWN_NUMBERS = 20_000_000  # so that items with many different ratings take no minute
_PRIOR = 1.0  # items or cases added to the whole table, see the notes of each measure
_MAX_CATEGORIES = 100  # distinct ratings of one scale


def percent_agreement(ratings: Ratings, *, seed: int = 0) -> Estimate:
    """Return the mean over items of the share of pairs of raters who agree.

    Parameters
    ----------
    ratings : sequence of sequences
        For each item the rating by each rater; None if there is none.
    seed : int
        Random seed of the interval, for items with more than two ratings.

    Returns
    -------
    Estimate
        ``n`` counts the items with two ratings or more; missing if there is none. Interval of
        `misslink.stats.mean`, which is Wilson's with two raters.

    Examples
    --------
    >>> percent_agreement([[1, 1, 1], [1, 0, 1], [0, None, 0], [1, None, None]]).value
    0.7777777777777778
    """
    shares = []
    for item in _rated_items(ratings):
        pairs = len(item) * (len(item) - 1)
        shares.append(sum(times * (times - 1) for times in Counter(item).values()) / pairs)
    if not shares:
        return Estimate.missing(Reason(code="no_double_rating"), method="wilson")
    return intervals.mean(shares, seed=seed)


def krippendorff_alpha(
    ratings: Ratings, *, metric: Literal["nominal", "ordinal"] = "nominal", seed: int = 0
) -> Estimate:
    """Return Krippendorff's alpha: 1 - observed / expected disagreement.

    Parameters
    ----------
    ratings : sequence of sequences
        For each item the rating by each rater; None if there is none. Any number of raters.
    metric : "nominal" or "ordinal"
        Whether all disagreements count equally, or by how many ratings lie between the two.
    seed : int
        Random seed of the interval.

    Returns
    -------
    Estimate
        At most 1, and 0 for agreement by chance. ``n`` counts the items with two ratings or more.
        Missing if there is none, or if all their ratings are equal.

    Raises
    ------
    ValueError
        Ordinal ratings that are not numbers, or more than 100 distinct ratings.

    Notes
    -----
    The interval holds the middle 95% of the alphas of 10,000 Bayesian resamples of the items
    (at least 1,000 if the items differ much). One item is added whose two ratings are any two
    categories, spread evenly: otherwise a sample that agrees fully would leave no doubt
    (``benchmarks/stats/calibration_coverage.py``).

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability. Rubin (1981), The Bayesian
    bootstrap.

    Examples
    --------
    >>> round(krippendorff_alpha([[1, 1], [0, 0], [1, 0], [0, 0]]).value, 3)
    0.533
    """
    method = "item bootstrap"
    items = _rated_items(ratings)
    n = len(items)
    if not items:
        return Estimate.missing(Reason(code="no_double_rating"), method=method)
    seen = {rating for item in items for rating in item}
    if metric == "ordinal" and any(isinstance(rating, str) for rating in seen):
        raise ValueError("ordinal ratings must be numbers; compare words as nominal ratings")
    if len(seen) > _MAX_CATEGORIES:
        raise ValueError(
            f"{len(seen)} distinct ratings are not a scale; round them to at most {_MAX_CATEGORIES}"
        )
    if len(seen) == 1:
        reason = Reason(code="constant_ratings")
        return Estimate.missing(reason, n=n, method=method)
    patterns, times, prior = _rating_patterns(
        items, sorted(seen, key=lambda r: (isinstance(r, str), r))
    )
    value = float(_alphas(times[np.newaxis], patterns, metric)[0])
    generator = np.random.default_rng(seed)

    def draw(draws: int) -> intervals.Floats:
        return _alphas(generator.dirichlet(times + prior, draws) * n, patterns, metric)

    draws = min(intervals.DRAWS, max(_MIN_DRAWS, _MAX_DRAWN_NUMBERS // patterns.size))
    drawn = intervals.draw_in_chunks(draw, len(patterns), draws)
    return intervals.interval_estimate(value, *intervals.quantiles(drawn), n=n, method=method)


def _rated_items(ratings: Ratings) -> list[list[float | str]]:
    """The ratings of each item that has two or more."""
    items = [[rating for rating in item if rating is not None] for item in ratings]
    return [item for item in items if len(item) > 1]


def _rating_patterns(
    items: list[list[float | str]], categories: list[float | str]
) -> tuple[intervals.Floats, intervals.Floats, intervals.Floats]:
    """Each distinct item as counts of categories, how often it occurs, and its prior weight."""
    size = len(categories)
    place = {category: index for index, category in enumerate(categories)}
    occurrences = Counter(tuple(sorted(place[rating] for rating in item)) for item in items)
    prior: dict[tuple[int, ...], float] = {
        pair: _PRIOR * (1 if pair[0] == pair[1] else 2) / size**2
        for pair in combinations_with_replacement(range(size), 2)
    }
    distinct = sorted({*occurrences, *prior})
    patterns = np.array([np.bincount(pattern, minlength=size) for pattern in distinct], dtype=float)
    times = np.array([occurrences[pattern] for pattern in distinct], dtype=float)
    return patterns, times, np.array([prior.get(pattern, 0.0) for pattern in distinct])


def _alphas(weights: intervals.Floats, patterns: intervals.Floats, metric: str) -> intervals.Floats:
    """Alpha for each row of weights of the patterns.

    An ordinal difference is the distance of two categories' mid-ranks, so that its mean square is
    a variance, and no array of categories x categories is needed.
    """
    ratings = patterns.sum(axis=1)
    totals = weights @ patterns
    n = totals.sum(axis=1)
    if metric == "nominal":
        # ordered pairs within the item that differ, a rating's partner counted once
        observed = weights @ ((ratings**2 - (patterns**2).sum(axis=1)) / (ratings - 1))
        expected = n**2 - (totals**2).sum(axis=1)
    else:
        ranks = (totals.cumsum(axis=1) - totals / 2) / n[:, None]  # alpha does not know the scale
        sums, squares = ranks @ patterns.T, ranks**2 @ patterns.T
        observed = (weights * 2 * (ratings * squares - sums**2) / (ratings - 1)).sum(axis=1)
        expected = 2 * (n * (totals * ranks**2).sum(axis=1) - (totals * ranks).sum(axis=1) ** 2)
    return 1 - (n - 1) * observed / expected


def cross_table(
    first: Sequence[Hashable | None], second: Sequence[Hashable | None]
) -> tuple[list[Hashable], list[list[int]]]:
    """Count the ratings by two raters of the same cases.

    Parameters
    ----------
    first, second : sequence of hashable or None, of equal length
        A rating for each case, in the same order. A case with None is left out.

    Returns
    -------
    categories : list
        The ratings of either, sorted if possible, else in order of appearance.
    table : list of list of int
        ``table[i][j]`` cases that the first put into category i and the second into category j.

    Raises
    ------
    ValueError
        The lengths differ.

    Examples
    --------
    >>> cross_table([1, 1, 0, None], [1, 0, 0, 1])
    ([0, 1], [[1, 0], [1, 1]])
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} ratings are not of the same cases")
    both = zip(first, second, strict=True)
    pairs = [(a, b) for a, b in both if a is not None and b is not None]
    categories: list[Any] = list(dict.fromkeys(rating for pair in pairs for rating in pair))
    with suppress(TypeError):  # ratings without an order stay as they come
        categories = sorted(categories)
    counts = Counter(pairs)
    return categories, [[counts[a, b] for b in categories] for a in categories]


def cohen_kappa(
    table: RatingTable, *, weights: Literal["none", "linear", "quadratic"] = "none", seed: int = 0
) -> Estimate:
    """Return Cohen's kappa of two raters: 1 - observed / expected disagreement.

    Parameters
    ----------
    table : square sequence of sequences of int
        ``table[i][j]`` cases put into category i by the first rater and j by the second;
        categories in order if `weights` are used.
    weights : "none", "linear" or "quadratic"
        Cost of a disagreement: 1, or the distance of the categories, or its square.
    seed : int
        Random seed of the interval.

    Returns
    -------
    Estimate
        At most 1, and 0 for agreement by chance. Missing without cases, or if both raters use one
        and the same category throughout.

    Raises
    ------
    ValueError
        The table is not square, or a count is negative.

    Notes
    -----
    The interval holds the middle 95% of the kappas of 10,000 tables drawn from the Dirichlet
    posterior with one case added, spread evenly over the cells (Perks's prior). Its coverage is in
    ``benchmarks/stats/calibration_coverage.md``.

    References
    ----------
    Cohen (1960), A coefficient of agreement for nominal scales. Cohen (1968), Weighted kappa.
    Perks (1947), Some observations on inverse probability.

    Examples
    --------
    >>> round(cohen_kappa([[20, 5], [10, 15]]).value, 9)  # 70% agree, 50% by chance
    0.4
    """
    counts = _checked_table(table)
    size = len(counts)
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
    cost = {"none": np.sign(distance), "linear": distance, "quadratic": distance**2}[weights]

    def kappa(shares: intervals.Floats) -> intervals.Floats:
        observed = (shares * cost).sum(axis=(-2, -1))
        return 1 - observed / np.einsum("...i,ij,...j", shares.sum(-1), cost, shares.sum(-2))

    if ((counts.sum(axis=0) + counts.sum(axis=1)) > 0).sum() == 1:
        reason = Reason(code="constant_categories")
        return Estimate.missing(reason, n=int(counts.sum()), method="dirichlet")
    return _posterior_estimate(counts, kappa, seed)


def gwet_ac1(table: RatingTable, *, seed: int = 0) -> Estimate:
    """Return Gwet's AC1: agreement beyond chance that stays stable if one category is rare.

    Parameters
    ----------
    table : square sequence of sequences of int
        As for `cohen_kappa`, with two categories or more.
    seed : int
        Random seed of the interval.

    Returns
    -------
    Estimate
        (observed - chance) / (1 - chance) agreement; chance is the sum of q (1 - q) over the k
        categories divided by k - 1, q being the two raters' mean share of a category. Missing
        without cases or with fewer than two categories. Interval as in `cohen_kappa`.

    Raises
    ------
    ValueError
        The table is not square, or a count is negative.

    References
    ----------
    Gwet (2008), Computing inter-rater reliability and its variance in the presence of high
    agreement.

    Examples
    --------
    118 of 125 agree although one category is rare: kappa finds little, AC1 much.

    >>> rare = [[118, 5], [2, 0]]
    >>> round(gwet_ac1(rare).value, 2), round(cohen_kappa(rare).value, 2)
    (0.94, -0.02)
    """
    counts = _checked_table(table)
    size = len(counts)
    if size <= 1:
        reason = Reason(code="one_category")
        return Estimate.missing(reason, n=int(counts.sum()), method="dirichlet")

    def ac1(shares: intervals.Floats) -> intervals.Floats:
        agreed = shares.trace(axis1=-2, axis2=-1)
        average = (shares.sum(-1) + shares.sum(-2)) / 2
        chance = (average * (1 - average)).sum(-1) / (size - 1)
        return (agreed - chance) / (1 - chance)

    return _posterior_estimate(counts, ac1, seed)


def _checked_table(table: RatingTable) -> intervals.Floats:
    if any(len(row) != len(table) for row in table):
        raise ValueError("a table of two raters needs as many columns as rows")
    counts = np.array(table, dtype=float).reshape(len(table), len(table))
    if counts.size and counts.min() < 0:
        raise ValueError(f"a count is negative: {counts.min():g}")
    return counts


def _posterior_estimate(
    counts: intervals.Floats, statistic: Callable[[intervals.Floats], intervals.Floats], seed: int
) -> Estimate:
    total, cells, method = counts.sum(), counts.size, "dirichlet"
    if not total:
        return Estimate.missing(Reason(code="no_cases"), method=method)
    generator = np.random.default_rng(seed)

    def draw(draws: int) -> intervals.Floats:
        tables = generator.dirichlet(counts.ravel() + _PRIOR / cells, draws)
        return statistic(tables.reshape(-1, *counts.shape))

    ends = intervals.quantiles(intervals.draw_in_chunks(draw, cells))
    return intervals.interval_estimate(
        float(statistic(counts / total)), *ends, n=round(total), method=method
    )


def spearman(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Return Spearman's rho: the linear correlation of the ranks, tied values sharing theirs.

    Parameters
    ----------
    a, b : sequence of float, of equal length
        A number for each case, such as a judge's score and an annotator's grade.

    Returns
    -------
    Estimate
        In [-1, 1]. Missing with fewer than two cases or if one side is constant. No interval for
        fewer than four cases or a perfect correlation.

    Raises
    ------
    ValueError
        The lengths differ or a number is not finite.

    Notes
    -----
    The interval is that of Fisher's z with the standard error of the infinitesimal jackknife,
    which respects ties and unequal spread, and Student's t
    (``benchmarks/stats/calibration_coverage.py``).

    References
    ----------
    Spearman (1904), The proof and measurement of association between two things. Efron (1981),
    Nonparametric estimates of standard error. Bonett and Wright (2000), Sample size requirements
    for estimating Pearson, Kendall and Spearman correlations.

    Examples
    --------
    >>> round(spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]).value, 9)
    0.8
    """
    return _correlation(a, b, _spearman)


def kendall_tau(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Return Kendall's tau-b: how much more often two cases are ordered alike than opposite.

    Parameters
    ----------
    a, b : sequence of float, of equal length
        A number for each case, such as a judge's score and an annotator's grade.

    Returns
    -------
    Estimate
        (concordant - discordant) / sqrt(pairs not tied in a x pairs not tied in b), in [-1, 1];
        missing and with an interval as in `spearman`.

    Raises
    ------
    ValueError
        The lengths differ or a number is not finite.

    References
    ----------
    Kendall (1945), The treatment of ties in ranking problems. Efron (1981).

    Examples
    --------
    >>> round(kendall_tau([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]).value, 9)
    0.6
    """
    return _correlation(a, b, _kendall)


def _correlation(
    a: Sequence[float],
    b: Sequence[float],
    statistic: Callable[[intervals.Floats, intervals.Floats], tuple[float, intervals.Floats]],
) -> Estimate:
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} numbers are not of the same cases")
    first, second = np.array(a, dtype=float), np.array(b, dtype=float)
    n, method = len(first), "fisher z, jackknife"
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a correlation needs finite numbers; leave missing values out")
    if n <= 1:
        return Estimate.missing(Reason(code="correlation_of_one"), n=n, method=method)
    if first.min() == first.max() or second.min() == second.max():
        return Estimate.missing(Reason(code="constant_side"), n=n, method=method)
    value, influence = statistic(first, second)
    value = min(max(value, -1.0), 1.0)
    if n < 4:
        return intervals.without_interval(
            value, Reason(code="few_cases_for_interval", n=n), n=n, method=method
        )
    if abs(value) > 1 - 1e-12:
        reason = Reason(code="perfect_correlation")
        return intervals.without_interval(math.copysign(1.0, value), reason, n=n, method=method)
    error = math.sqrt(float(influence @ influence) / n / (n - 3))
    half = intervals.student_quantile(intervals.LEVEL, n - 2) * error / (1 - value**2)
    low, high = (math.tanh(math.atanh(value) + side * half) for side in (-1, 1))
    return intervals.interval_estimate(value, low, high, n=n, method=method)


def _spearman(a: intervals.Floats, b: intervals.Floats) -> tuple[float, intervals.Floats]:
    """Rho, and how much a case with more weight would move it (also by moving others' ranks)."""
    from scipy.stats import rankdata

    x, y = (ranks - ranks.mean() for ranks in (rankdata(a) / len(a), rankdata(b) / len(b)))
    both = x * y + _mean_weight_above(a, y) + _mean_weight_above(b, x)
    own_x, own_y = x * x + 2 * _mean_weight_above(a, x), y * y + 2 * _mean_weight_above(b, y)
    covariance, variance_x, variance_y = (
        float((p * q).mean()) for p, q in ((x, y), (x, x), (y, y))
    )
    scale = math.sqrt(variance_x * variance_y)
    rho = covariance / scale
    influence = both / scale - rho / 2 * (own_x / variance_x + own_y / variance_y)
    return rho, influence - influence.mean()


def _mean_weight_above(numbers: intervals.Floats, weights: intervals.Floats) -> intervals.Floats:
    """For each number the mean weight of the cases above it, half of those tied with it."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    below = sums[np.searchsorted(ordered, numbers, side="left")]
    upto = sums[np.searchsorted(ordered, numbers, side="right")]
    return (sums[-1] - (below + upto) / 2) / len(numbers)


def _kendall(a: intervals.Floats, b: intervals.Floats) -> tuple[float, intervals.Floats]:
    """Tau-b, and how much a case with more weight would move it."""
    both = list(zip(a, b, strict=True))
    score = np.array([np.sign(x - a) @ np.sign(y - b) for x, y in both]) / len(a)
    untied_a, untied_b = np.array([((x != a).mean(), (y != b).mean()) for x, y in both]).T
    mean_a, mean_b = float(untied_a.mean()), float(untied_b.mean())
    scale = math.sqrt(mean_a * mean_b)
    tau = float(score.mean()) / scale
    return tau, 2 * score / scale - tau * (untied_a / mean_a + untied_b / mean_b)
