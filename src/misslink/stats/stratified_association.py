"""Associations compared within strata and pooled over them (Mantel-Haenszel)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from misslink.stats.association import CELL_PRIOR, FRACTION_DRAWS
from misslink.stats.clustered import cluster_draws, clustered_score_test
from misslink.stats.intervals import Floats, critical_value, interval_estimate, quantiles
from misslink.types import Estimate

Z_95 = critical_value(0.95)
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


def mantel_haenszel(
    strata: Sequence[TwoByTwo], *, seed: int = 0, level: float = 0.95
) -> PooledAssociation:
    """Pool the risk difference, the risk ratio and the attributable fraction over strata.

    Parameters
    ----------
    strata : sequence of (miss_bad, miss_good, hit_bad, hit_good)
        Counts of cases; a stratum without a miss or without a hit contributes nothing.
    seed : int
        Random seed of the interval of the attributable fraction.
    level : float
        Confidence level in (0, 1).

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
        ``benchmarks/interval_coverage.py`` measures all three.

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
    z = critical_value(level)
    usable = comparable_strata(strata)
    left_out = len(strata) - len(usable)
    if not usable:
        reason = "no stratum has both misses and hits" if strata else "no strata"
        nothing = Estimate.missing(reason, method="mantel-haenszel")
        return PooledAssociation(nothing, nothing, nothing, 0, left_out)
    cells = np.array(usable, dtype=float)
    return PooledAssociation(
        risk_difference=pooled_risk_difference(cells, z),
        risk_ratio=pooled_risk_ratio(cells, z),
        attributable_fraction=_fraction_estimate(cells, seed, level),
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
            ends = quantiles(values, 0.95)
            method = "cluster bootstrap mantel-haenszel"
            estimate = interval_estimate(estimate.value, *ends, n=estimate.n, method=method)
        estimates[name] = estimate
    return replace(pooled, **estimates)


def pooled_risk_difference(cells: Floats, z: float = Z_95) -> Estimate:
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


def pooled_risk_ratio(cells: Floats, z: float = Z_95) -> Estimate:
    """Pooled ratio of comparable strata, shape (strata, 4), with Greenland and Robins' interval."""
    a, b, misses, hits, n = _cell_columns(cells)
    above, below = float((a * hits / n).sum()), float((b * misses / n).sum())
    method = "greenland-robins"
    if not below:
        reason = "no hit is bad in the strata that are compared, so there is no ratio"
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


def _fraction_estimate(cells: Floats, seed: int, level: float) -> Estimate:
    n, method = int(cells.sum()), "dirichlet mantel-haenszel"
    if not cells[:, [0, 2]].any():
        return Estimate.missing("no bad answer to attribute", n=n, method=method)
    value = float(miettinen_fraction(cells))
    ends = pooled_fraction_limits(
        cells[np.newaxis], np.random.default_rng(seed), level=level, draws=FRACTION_DRAWS
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
    tables: Floats,
    generator: np.random.Generator,
    *,
    level: float,
    draws: int,
    prior: float = CELL_PRIOR,
) -> Floats:
    """Return both ends of the pooled fraction, shape (sets, 2), for tables (sets, strata, 4)."""
    shapes = _add_cases(tables, prior)[:, np.newaxis]
    # Undivided gammas will do: the fraction of a table and of a multiple of it are one.
    cells = generator.standard_gamma(shapes, (len(tables), draws, *tables.shape[1:]))
    cells = np.maximum(cells, np.finfo(float).tiny)  # a tiny shape can draw 0, and 0 / 0 is nothing
    tails = [(1 - level) / 2, (1 + level) / 2]
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
    risks under one common difference (``benchmarks/interval_coverage.py``).

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


def _common_difference_risks(
    cells: Floats,
) -> tuple[Floats, Floats]:
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
