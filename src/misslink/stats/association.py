"""Association of retrieval misses with bad answers, in one table or pooled over strata.

Risks, ratios, attributable fractions and trends; Mantel-Haenszel estimates.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misslink.stats.clustered import ONE_CLUSTER, cluster_draws, clustered_score_test
from misslink.stats.intervals import (
    LEVEL,
    Floats,
    check_counts,
    critical_value,
    interval_estimate,
    quantiles,
    square_and_add,
    wilson_interval,
    without_interval,
)
from misslink.types import Estimate, Reason

_Z_95 = critical_value()
FRACTION_DRAWS = 20_000
CELL_PRIOR = 0.75  # cases added to each cell, see attributable_fraction
_MAX_EXACT_TABLES = 200_000  # enumerated for the exact test of trend
_ROUNDING = 1e-9


def risk_difference(a: int, n1: int, b: int, n2: int) -> Estimate:
    """Return the difference of two shares, a / n1 - b / n2.

    Parameters
    ----------
    a, n1 : int
        Cases with the outcome, and all cases, of the first group.
    b, n2 : int
        The same of the second, independent group.

    Returns
    -------
    Estimate
        In [-1, 1], with Newcombe's hybrid score interval; missing if a group is empty.

    Raises
    ------
    ValueError
        A count is negative or larger than its number of cases.

    References
    ----------
    Newcombe (1998), Interval estimation for the difference between independent proportions,
    method 10.

    Examples
    --------
    >>> estimate = risk_difference(12, 20, 5, 50)
    >>> round(estimate.low, 2), estimate.value, round(estimate.high, 2)
    (0.26, 0.5, 0.69)
    """
    check_counts(a, n1)
    check_counts(b, n2)
    z = critical_value()
    if not n1 or not n2:
        return Estimate.missing(_empty_group(n1, n2), n=n1 + n2, method="newcombe")
    first, second = a / n1, b / n2
    (low1, high1), (low2, high2) = wilson_interval(first, n1, z), wilson_interval(second, n2, z)
    difference, low, high = square_and_add((first, low1, high1), (-second, -high2, -low2))
    return interval_estimate(
        difference, low, high, n=n1 + n2, method="newcombe", bounds=(-1.0, 1.0)
    )


def risk_ratio(a: int, n1: int, b: int, n2: int) -> Estimate:
    """Return the ratio of two shares, (a / n1) / (b / n2).

    Parameters
    ----------
    a, n1 : int
        Cases with the outcome, and all cases, of the first group.
    b, n2 : int
        The same of the second, independent group (the denominator).

    Returns
    -------
    Estimate
        0 or more, with the interval that follows from Wilson's of both shares, as Newcombe's does
        for the difference. Missing if a group is empty or no case of the second group has the
        outcome.

    Raises
    ------
    ValueError
        A count is negative or larger than its number of cases.

    References
    ----------
    Donner and Zou (2012), Closed-form confidence intervals for functions of the normal mean and
    standard deviation. Katz's log interval covers 86% at worst, this one 92%
    (``benchmarks/stats/interval_coverage.md``).

    Examples
    --------
    >>> estimate = risk_ratio(12, 20, 5, 50)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (2.5, 6.0, 14.3)
    """
    check_counts(a, n1)
    check_counts(b, n2)
    z, n, method = critical_value(), n1 + n2, "wilson ratio"
    if not n1 or not n2:
        return Estimate.missing(_empty_group(n1, n2), n=n, method=method)
    if not b:
        reason = Reason(code="no_outcome_for_ratio", n=n2)
        return Estimate.missing(reason, n=n, method=method)
    first, second = a / n1, b / n2
    (low1, high1), (low2, high2) = wilson_interval(first, n1, z), wilson_interval(second, n2, z)
    product, least, most = first * second, low1 * (2 * first - low1), high1 * (2 * first - high1)
    largest, smallest = high2 * (2 * second - high2), low2 * (2 * second - low2)
    low = least / (product + math.sqrt(product**2 - least * largest)) if least else 0.0
    high = (product + math.sqrt(product**2 - most * smallest)) / smallest
    return interval_estimate(a * n2 / (b * n1), low, high, n=n, method=method)


def _empty_group(n1: int, n2: int) -> Reason:
    if not n1 and not n2:
        return Reason(code="no_cases")
    return Reason(code="no_cases_in_group", group="second" if n1 else "first")


def attributable_fraction(
    miss_bad: int, miss_good: int, hit_bad: int, hit_good: int, *, seed: int = 0
) -> Estimate:
    """Return the population attributable fraction, (P(bad) - P(bad | hit)) / P(bad).

    It is the share of bad answers that would be gone if cases with a miss did as well as the
    hits: an association, not proof of a cause. Negative if hits do worse than misses.

    Parameters
    ----------
    miss_bad, miss_good : int
        Cases with a retrieval miss, with a bad answer and with a good one.
    hit_bad, hit_good : int
        Cases with a retrieval hit.
    seed : int
        Random seed of the drawn tables.

    Returns
    -------
    Estimate
        At most 1, without a lower bound; missing if no answer is bad, or without a miss or a hit.

    Raises
    ------
    ValueError
        A count is negative.

    Notes
    -----
    The interval holds the middle 95% of the fractions of 20,000 tables drawn from the
    Dirichlet posterior of the 2 x 2 table, with 0.75 cases added to each cell. Over tables of 30
    to 500 cases its worst coverage at 95% is 94%; with the Jeffreys prior of 0.5 that is 92%, for
    the delta method on the logarithm 88%, for the bootstrap of the table 52%
    (``benchmarks/stats/interval_coverage.py``).

    References
    ----------
    Levin (1953), The occurrence of lung cancer in man. Agresti and Min (2005), Frequentist
    performance of Bayesian confidence intervals for comparing proportions in 2 x 2 tables.

    Examples
    --------
    12 of 21 answers after a miss are bad, and 7 of 77 after a hit:

    >>> round(attributable_fraction(12, 9, 7, 70).value, 2)
    0.53
    """
    cells = (miss_bad, miss_good, hit_bad, hit_good)
    if min(cells) < 0:
        raise ValueError(f"a count is negative: {cells}")
    n, hits, bad, method = sum(cells), hit_bad + hit_good, miss_bad + hit_bad, "dirichlet"
    needed = {
        "no_cases": n,
        "no_bad_answer_to_attribute": bad,
        "no_hit": hits,
        "nothing_missed": n - hits,
    }
    for code, count in needed.items():
        if not count:
            return Estimate.missing(Reason(code=code), n=n, method=method)
    value = 1 - (hit_bad / hits) / (bad / n)
    ends = attributable_fraction_limits(
        np.array([cells]), np.random.default_rng(seed), draws=FRACTION_DRAWS
    )
    return interval_estimate(value, *ends[0].tolist(), n=n, method=method)


def attributable_fraction_limits(
    tables: NDArray[np.int64],
    generator: np.random.Generator,
    *,
    draws: int,
    prior: float = CELL_PRIOR,
) -> Floats:
    """Return both ends, shape (tables, 2), for tables of shape (tables, 4)."""
    cells = generator.standard_gamma(
        (tables + prior)[:, :, np.newaxis], (len(tables), 4, draws)
    )  # four gammas, divided by their sum, are a draw from the Dirichlet
    miss_bad, _, hit_bad, hit_good = np.moveaxis(cells, 1, 0)
    after_hit = hit_bad / (hit_bad + hit_good)
    overall = (miss_bad + hit_bad) / cells.sum(axis=1)
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    return np.quantile(1 - after_hit / overall, tails, axis=1).T


@dataclass(frozen=True)
class TrendTest:
    """Cochran-Armitage test: ``p`` (None: `reason` says why) and the slope that was tested.

    ``slope`` is that of the line through the shares, weighted by cases, per step from one group to
    the next.
    """

    p: float | None
    method: str = "cochran-armitage"
    reason: str | None = None
    slope: float | None = None


def trend_test(groups: Sequence[tuple[int, int]]) -> TrendTest:
    """Test whether the share of bad cases has a linear trend over groups in order.

    Parameters
    ----------
    groups : sequence of (bad, all cases)
        In order, one step apart; an empty group keeps its place.

    Returns
    -------
    Trend
        Two-sided. Exact if at most 200,000 tables have these margins (``cochran-armitage,
        exact``), else by the normal approximation.

    Raises
    ------
    ValueError
        A count is negative or larger than its number of cases.

    References
    ----------
    Cochran (1954), Some methods for strengthening the common chi-squared tests. Armitage (1955),
    Tests for linear trends in proportions and frequencies. Agresti (2013), Categorical data
    analysis, section 5.3.5 for the exact test's conditioning.

    Examples
    --------
    >>> round(trend_test([(3, 4), (1, 4)]).p, 4)  # the lady tasting tea, in both directions
    0.4857
    """
    for bad, n in groups:
        check_counts(bad, n)
    filled = [(place, bad, n) for place, (bad, n) in enumerate(groups) if n]
    all_bad, cases = sum(bad for _, bad, _ in filled), sum(n for _, _, n in filled)
    if len(filled) < 2:
        return TrendTest(None, reason=str(Reason(code="one_group")))
    if all_bad in {0, cases}:
        return TrendTest(None, reason=str(Reason(code="one_outcome", bad=all_bad, cases=cases)))
    middle = sum(place * n for place, _, n in filled) / cases
    scores = [place - middle for place, _, _ in filled]
    score = math.fsum(s * bad for s, (_, bad, _) in zip(scores, filled, strict=True))
    observed = abs(score)
    sizes = [n for _, _, n in filled]
    spread = math.fsum(s * s * n for s, n in zip(scores, sizes, strict=True))
    slope = score / spread
    if math.prod(min(n, all_bad) + 1 for n in sizes[:-1]) <= _MAX_EXACT_TABLES:
        p = _exact_trend_p(scores, sizes, all_bad, observed)
        return TrendTest(p, "cochran-armitage, exact", slope=slope)
    variance = all_bad * (cases - all_bad) * spread / (cases * (cases - 1))
    return TrendTest(math.erfc(observed / math.sqrt(2 * variance)), slope=slope)


def _exact_trend_p(scores: list[float], sizes: list[int], all_bad: int, observed: float) -> float:
    """P of a score as far from its mean, 0, over all tables with these margins."""
    placed = np.zeros(1, dtype=np.int64)
    score, log = np.zeros(1), np.zeros(1)
    for each, size in zip(scores[:-1], sizes[:-1], strict=True):
        bad = np.arange(min(size, all_bad) + 1)
        placed = np.add.outer(placed, bad).ravel()
        score = np.add.outer(score, each * bad).ravel()
        log = np.add.outer(log, _log_combinations(size, bad)).ravel()
    remaining_bad = all_bad - placed
    fits = (remaining_bad >= 0) & (remaining_bad <= sizes[-1])
    remaining_bad, score, log = remaining_bad[fits], score[fits], log[fits]
    score = score + scores[-1] * remaining_bad
    log = log + _log_combinations(sizes[-1], remaining_bad)
    chance = np.exp(log - log.max())
    far = np.abs(score) >= observed * (1 - _ROUNDING) - _ROUNDING
    return min(float(chance[far].sum() / chance.sum()), 1.0)


def _log_combinations(size: int, bad: NDArray[np.int64]) -> Floats:
    from scipy.special import gammaln

    return gammaln(size + 1) - gammaln(bad + 1) - gammaln(size - bad + 1)


def fisher_greater(group_bad: int, group: int, bad: int, cases: int) -> float:
    """Return the one-sided p-value of Fisher's exact test: as many bad cases in a group, or more.

    Parameters
    ----------
    group_bad, group, bad, cases : int
        Bad cases of the group, cases of the group, all bad cases, all cases.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> round(fisher_greater(3, 3, 3, 6), 6)
    0.05
    """
    more = np.arange(max(group_bad, group + bad - cases), min(group, bad) + 1)
    log = _log_combinations(bad, more) + _log_combinations(cases - bad, group - more)
    return min(float(np.exp(log - _log_combinations(cases, np.array(group))).sum()), 1.0)


TwoByTwo = tuple[int, int, int, int]  # miss_bad, miss_good, hit_bad, hit_good


@dataclass(frozen=True)
class PooledAssociation:
    """An association of cases that are only compared within their stratum.

    Parameters
    ----------
    risk_difference, risk_ratio, attributable_fraction : Estimate
        n is the number of cases in the strata that are used.
    used, left_out : int
        Strata with both misses and hits, and strata without both.
    """

    risk_difference: Estimate
    risk_ratio: Estimate
    attributable_fraction: Estimate
    used: int
    left_out: int


def comparable_strata(strata: Sequence[TwoByTwo]) -> list[TwoByTwo]:
    """Return the strata with both a miss and a hit, which alone can be compared within.

    Raises
    ------
    ValueError
        A count is negative.
    """
    for table in strata:
        if min(table) < 0:
            raise ValueError(f"a count is negative: {table}")
    return [table for table in strata if table[0] + table[1] and table[2] + table[3]]


def mantel_haenszel(strata: Sequence[TwoByTwo], *, seed: int = 0) -> PooledAssociation:
    """Pool the risk difference, the risk ratio and the attributable fraction over strata.

    Parameters
    ----------
    strata : sequence of (miss_bad, miss_good, hit_bad, hit_good)
        Counts of cases; a stratum without a miss or without a hit contributes nothing.
    seed : int
        Random seed of the interval of the attributable fraction.

    Returns
    -------
    Pooled
        With n1 misses, n0 hits and n cases in a stratum, each weighs n1 n0 / n.

        Difference: Klingenberg's interval, which inverts the test with the variance of Sato,
        Greenland and Robins; it holds for few large and for many small strata. If no stratum
        has both good and bad answers, its ends are taken with one case more in each cell, spread
        over the strata by their size (``klingenberg +1``).
        Ratio: the log interval of Greenland and Robins; with half a case more in each cell,
        spread likewise, if Katz's interval of all cases would fail. For one
        stratum it is Katz's. Missing if no hit is bad.
        Fraction: share of the bad answers that follow a miss x (1 - 1 / pooled ratio), Miettinen's
        formula. The interval is drawn as that of `attributable_fraction`, from the Dirichlet
        posterior of all cells, its prior spread over the strata by their size.
        ``benchmarks/stats/interval_coverage.py`` measures all three.

    Raises
    ------
    ValueError
        A count is negative.

    References
    ----------
    Mantel and Haenszel (1959). Greenland and Robins (1985), Estimation of a common effect
    parameter from sparse follow-up data. Sato (1989), On the variance estimator for the
    Mantel-Haenszel risk difference. Klingenberg (2014), A new and improved confidence interval
    for the Mantel-Haenszel risk difference. Miettinen (1974), Proportion of disease caused or
    prevented by a given exposure, trait or intervention.

    Examples
    --------
    >>> found = mantel_haenszel([(8, 98, 5, 115), (22, 76, 16, 69)])
    >>> round(found.risk_difference.value, 3), round(found.risk_ratio.value, 2)
    (0.035, 1.33)
    """
    z = critical_value()
    usable = comparable_strata(strata)
    left_out = len(strata) - len(usable)
    if not usable:
        reason = Reason(code="no_mixed_stratum") if strata else Reason(code="no_strata")
        nothing = Estimate.missing(reason, method="mantel-haenszel")
        return PooledAssociation(nothing, nothing, nothing, 0, left_out)
    cells = np.array(usable, dtype=float)
    return PooledAssociation(
        risk_difference=pooled_risk_difference(cells, z),
        risk_ratio=pooled_risk_ratio(cells, z),
        attributable_fraction=_fraction_estimate(cells, seed),
        used=len(usable),
        left_out=left_out,
    )


def clustered_mantel_haenszel(
    strata: Sequence[TwoByTwo],
    places: Sequence[int],
    clusters: Sequence[Hashable],
    *,
    seed: int = 0,
) -> PooledAssociation:
    """Pool as `mantel_haenszel` does, with intervals that respect clusters of cases.

    Parameters
    ----------
    strata : sequence of (miss_bad, miss_good, hit_bad, hit_good)
        With both misses and hits each.
    places : sequence of int
        The cell of each case, counted through all strata, four to one.
    clusters : sequence of hashable
        The cluster of each case.
    seed : int
        Random seed of the draws.

    Returns
    -------
    PooledAssociation
        The middle 95% of draws of the Bayesian bootstrap of clusters, with 0.75 average clusters
        added to each of the four cells, spread over the strata by their size.
    """
    pooled = mantel_haenszel(strata, seed=seed)
    if not pooled.used:
        return pooled
    cells = np.array(strata, dtype=float)
    generator = np.random.default_rng(seed)
    rows = np.eye(cells.size)[np.array(places, dtype=int)]
    drawn = cluster_draws(rows, clusters, generator).reshape(-1, *cells.shape)
    added = CELL_PRIOR * len(places) / len(set(clusters))
    drawn += generator.standard_gamma(_add_cases(cells, added) - cells, drawn.shape)
    a, b, misses, hits, n = _cell_columns(np.maximum(drawn, np.finfo(float).tiny))
    draws = {
        "risk_difference": mantel_haenszel_difference(drawn),
        "risk_ratio": (a * hits / n).sum(axis=-1) / (b * misses / n).sum(axis=-1),
        "attributable_fraction": miettinen_fraction(drawn),
    }
    estimates: dict[str, Any] = {}
    for name, values in draws.items():
        estimate = getattr(pooled, name)
        if estimate.value is not None:
            value, n, method = estimate.value, estimate.n, "cluster bootstrap mantel-haenszel"
            ends = quantiles(values, 0.95)
            estimate = interval_estimate(value, *ends, n=n, method=method)
            if len(set(clusters)) == 1:
                estimate = without_interval(value, ONE_CLUSTER, n=n, method=method)
        estimates[name] = estimate
    return replace(pooled, **estimates)


def pooled_risk_difference(cells: Floats, z: float = _Z_95) -> Estimate:
    """Pooled difference of comparable strata, shape (strata, 4), with Klingenberg's interval."""
    value = float(mantel_haenszel_difference(cells))
    good_and_bad = (cells[:, [0, 2]].sum(axis=1) > 0) & (cells[:, [1, 3]].sum(axis=1) > 0)
    silent = not good_and_bad.any()
    a, b, misses, hits, n = _cell_columns(_add_cases(cells, 1.0) if silent else cells)
    weight = (misses * hits / n).sum()
    slope = (misses**2 * b - hits**2 * a + misses * hits * (hits - misses) / 2) / n**2
    level_ = (a * (hits - b) + b * (misses - a)) / (2 * n)
    centre = float(mantel_haenszel_difference(_add_cases(cells, 1.0))) if silent else value
    middle = centre + z**2 * slope.sum() / (2 * weight**2)
    half = math.sqrt(max(middle**2 - centre**2 + z**2 * level_.sum() / weight**2, 0.0))
    method = "klingenberg +1" if silent else "klingenberg"
    ends = float(middle) - half, float(middle) + half
    return interval_estimate(value, *ends, n=int(cells.sum()), method=method, bounds=(-1.0, 1.0))


def pooled_risk_ratio(cells: Floats, z: float = _Z_95) -> Estimate:
    """Pooled ratio of comparable strata, shape (strata, 4), with Greenland and Robins' interval."""
    a, b, misses, hits, n = _cell_columns(cells)
    above, below = float((a * hits / n).sum()), float((b * misses / n).sum())
    method = "greenland-robins"
    if not below:
        reason = Reason(code="no_bad_hit_in_strata")
        return Estimate.missing(reason, n=int(n.sum()), method=method)
    value = above / below
    odd = not above or (a == misses).all() or (b == hits).all()
    if odd:
        a, b, misses, hits, n = _cell_columns(_add_cases(cells, 0.5))
        method += " +0.5"
    numerator, denominator = (a * hits / n).sum(), (b * misses / n).sum()
    spread = ((misses * hits * (a + b) - a * b * n) / n**2).sum()
    error = z * math.sqrt(spread / (numerator * denominator))
    centre = math.log(numerator / denominator)
    low = math.exp(centre - error) if above else 0.0
    return interval_estimate(
        value, low, math.exp(centre + error), n=int(cells.sum()), method=method
    )


def _fraction_estimate(cells: Floats, seed: int) -> Estimate:
    n, method = int(cells.sum()), "dirichlet mantel-haenszel"
    if not cells[:, [0, 2]].any():
        return Estimate.missing(Reason(code="no_bad_answer_to_attribute"), n=n, method=method)
    value = float(miettinen_fraction(cells))
    ends = pooled_fraction_limits(
        cells[np.newaxis], np.random.default_rng(seed), draws=FRACTION_DRAWS
    )[0]
    return interval_estimate(value, *ends.tolist(), n=n, method=method)


def mantel_haenszel_difference(cells: Floats) -> Floats:
    """Mantel-Haenszel risk difference of tables of shape (..., strata, 4)."""
    a, b, misses, hits, n = _cell_columns(cells)
    weight = (misses * hits / n).sum(axis=-1)
    return ((a * hits - b * misses) / n).sum(axis=-1) / weight


def miettinen_fraction(cells: Floats) -> Floats:
    """Miettinen's attributable fraction of tables of shape (..., strata, 4) with a bad answer.

    Where no miss is bad, its limit as the pooled ratio goes to 0.
    """
    a, b, misses, hits, n = _cell_columns(cells)
    above, below = (a * hits / n).sum(axis=-1), (b * misses / n).sum(axis=-1)
    expected = (misses * b / hits).sum(axis=-1)  # bad misses, if they went as the hits
    after_miss = a.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.where(above > 0, after_miss * below / above, expected)
    return (after_miss - expected) / (after_miss + b.sum(axis=-1))


def pooled_fraction_limits(
    tables: Floats, generator: np.random.Generator, *, draws: int, prior: float = CELL_PRIOR
) -> Floats:
    """Return both ends of the pooled fraction, shape (sets, 2), for tables (sets, strata, 4)."""
    shapes = _add_cases(tables, prior)[:, np.newaxis]
    # Undivided gammas will do: the fraction of a table and of a multiple of it are one.
    cells = generator.standard_gamma(shapes, (len(tables), draws, *tables.shape[1:]))
    cells = np.maximum(cells, np.finfo(float).tiny)  # a tiny shape can draw 0, and 0 / 0 is nothing
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    return np.quantile(miettinen_fraction(cells), tails, axis=1).T


def _cell_columns(cells: Floats) -> tuple[Floats, ...]:
    """Bad misses, bad hits, misses, hits and cases of each stratum."""
    a, b = cells[..., 0], cells[..., 2]
    misses, hits = a + cells[..., 1], b + cells[..., 3]
    return a, b, misses, hits, misses + hits


def _add_cases(cells: Floats, extra: float) -> Floats:
    """Add `extra` cases to each of the four cells, spread over the strata by their size."""
    sizes = cells.sum(axis=-1, keepdims=True)
    return cells + extra * sizes / sizes.sum(axis=-2, keepdims=True)


def heterogeneity_test(
    strata: Sequence[TwoByTwo], *, seed: int = 0, draws: int = 5_000
) -> float | None:
    """Return the p-value of the test that all strata have the same risk difference.

    Parameters
    ----------
    strata : sequence of (miss_bad, miss_good, hit_bad, hit_good)
        Strata without a miss or without a hit contribute nothing.
    seed : int
        Random seed of the bootstrap.
    draws : int
        Draws of the parametric bootstrap, at least 1.

    Returns
    -------
    float or None
        In (0, 1]. None: fewer than two strata can be compared.

    Raises
    ------
    ValueError
        A count is negative.

    Notes
    -----
    The statistic is Cochran's Q around the Mantel-Haenszel difference, each stratum's variance
    taken with one case more in each cell (Agresti and Caffo). Its chi-squared law fails in small
    strata, so it is compared with the same statistic of tables drawn from the strata's likeliest
    risks under one common difference (``benchmarks/stats/interval_coverage.py``).

    References
    ----------
    Cochran (1954), The combination of estimates from different experiments. Lipsitz, Dear, Laird
    and Molenberghs (1998), Tests for homogeneity of the risk difference when data are sparse.
    Efron and Tibshirani (1993), An introduction to the bootstrap, chapter 16.

    Examples
    --------
    >>> heterogeneity_test([(9, 1, 2, 18), (1, 9, 12, 8)]) < 0.001
    True
    """
    usable = comparable_strata(strata)
    if len(usable) < 2:
        return None
    cells = np.array(usable, dtype=float)
    misses, hits = cells[:, :2].sum(axis=1), cells[:, 2:].sum(axis=1)
    after_hit, after_miss = _common_difference_risks(cells)
    generator = np.random.default_rng(seed)
    a = generator.binomial(misses.astype(int), after_miss, (draws, len(usable)))
    b = generator.binomial(hits.astype(int), after_hit, (draws, len(usable)))
    drawn = np.stack([a, misses - a, b, hits - b], axis=-1)
    observed = float(cochran_q(cells)) * (1 - 1e-9)  # rounding is no smaller statistic
    return (int((cochran_q(drawn) >= observed).sum()) + 1) / (draws + 1)


def clustered_heterogeneity_test(
    places: Sequence[int], clusters: Sequence[Hashable], *, seed: int = 0
) -> float | None:
    """Return the p-value that `heterogeneity_test` does, of cases in clusters.

    `places` and `clusters` are those of `clustered_mantel_haenszel`. By `clustered_score_test` of the
    strata's differences around the pooled one. None: fewer than two strata.
    """
    place = np.array(places, dtype=int)
    member = np.eye(int(place.max(initial=-1)) // 4 + 1)[place // 4]
    if member.shape[1] < 2:
        return None
    missed, bad = (place % 4 < 2) * 1.0, (place % 2 == 0) * 1.0
    missed, bad = (x - member @ (x @ member / member.sum(axis=0)) for x in (missed, bad))
    pooled = (missed @ bad) / (missed @ missed)
    weight = missed**2 @ member / (missed @ missed)
    scores = missed * (bad - pooled * missed)
    return clustered_score_test(scores[:, np.newaxis] * (member - weight), clusters, seed=seed)


def cochran_q(cells: Floats) -> Floats:
    """Squared distances of the strata from the pooled difference, over their variances."""
    a, b, misses, hits, _ = _cell_columns(cells)
    p, q = (a + 1) / (misses + 2), (b + 1) / (hits + 2)
    variance = p * (1 - p) / (misses + 2) + q * (1 - q) / (hits + 2)
    away = a / misses - b / hits - mantel_haenszel_difference(cells)[..., np.newaxis]
    return (away**2 / variance).sum(axis=-1)


def _common_difference_risks(cells: Floats) -> tuple[Floats, Floats]:
    """Each stratum's likeliest risks after a hit and a miss, the pooled difference apart.

    The likelihood is concave in the risk after a hit, so its slope is halved down to its root.
    """
    apart = float(mantel_haenszel_difference(cells))
    miss_bad, miss_good, hit_bad, hit_good = cells.T
    low = np.full(len(cells), max(0.0, -apart))
    high = np.full(len(cells), min(1.0, 1.0 - apart))

    def slope(count: Floats, chance: Floats) -> Floats:
        return np.where(count > 0, count / chance, 0.0)  # no cases have none

    for _ in range(50):  # to nearly the last digit
        risk = (low + high) / 2
        other = np.clip(risk + apart, 0, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            rises = slope(hit_bad, risk) + slope(miss_bad, other)
            falls = slope(hit_good, 1 - risk) + slope(miss_good, 1 - other)
        up = rises > falls
        low, high = np.where(up, risk, low), np.where(up, high, risk)
    risk = (low + high) / 2
    return np.clip(risk, 0, 1), np.clip(risk + apart, 0, 1)
