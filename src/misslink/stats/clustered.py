"""Means and paired differences of cases that come in clusters, such as all questions on one document.

Cases of a cluster vary together, so clusters are resampled, not cases.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from misslink.stats.intervals import (
    DRAWS,
    LEVEL,
    NORMAL_FROM,
    Floats,
    critical_value,
    draw_in_chunks,
    interval_estimate,
    quantiles,
    student_tail,
    weighted_sums,
    without_interval,
)
from misslink.stats.paired_tests import (
    PairedComparison,
    detectable_shift,
    interval_of_test,
    sign_flips,
)
from misslink.types import Estimate, Reason

CLUSTERED_METHOD = "clustered score test"
ONE_CLUSTER = Reason(code="one_cluster")
_DECIMALS = 12  # 0.6 - 0.4 and 0.4 - 0.2 are one size
_MIN_DRAWS, _MAX_DRAWN = 2_000, 4_000_000  # draws, and numbers drawn in all
_NO_SPREAD = 1e-12  # a relative spread below it is rounding


def clustered_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    seed: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Return the mean over cases, with an interval that respects their clusters.

    Parameters
    ----------
    values : sequence of float, one a case
        Within `bounds`. The caller leaves missing values out.
    clusters : sequence of hashable, one a case
        The cluster of the case.
    seed : int
        Random seed of the bootstrap.
    bounds : pair of float
        Smallest and largest possible value.

    Returns
    -------
    Estimate
        Missing without values. ``cluster bootstrap``: the Bayesian bootstrap of `mean` over
        clusters, in which each bound counts as half a cluster of average size. ``cluster normal``:
        more than 2,000 clusters, by the linearised variance of a ratio. A single cluster has no
        interval. ``benchmarks/stats/clustered_coverage.py`` measures the coverage: 93% or more.

    Raises
    ------
    ValueError
        The lengths differ, or a value is not a finite number within `bounds`.

    References
    ----------
    Rubin (1981), The Bayesian bootstrap. Cameron, Gelbach and Miller (2008), Bootstrap-based
    improvements for inference with clustered errors. Cochran (1977), Sampling techniques,
    section 9A.2 (the ratio to size).

    Examples
    --------
    >>> estimate = clustered_mean([1, 1, 0, 0, 1], ["a", "a", "b", "b", "c"])
    >>> estimate.value, estimate.n, estimate.method
    (0.6, 5, 'cluster bootstrap')
    """
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values and {len(clusters)} clusters differ in length")
    if not len(values):
        return Estimate.missing(Reason(code="no_values"))
    numbers = np.asarray(values, dtype=np.float64)
    least, most = bounds
    slack = 1e-9 * (most - least)
    if not ((numbers >= least - slack) & (numbers <= most + slack)).all():
        raise ValueError(f"a mean needs finite numbers within {bounds}")
    return _cluster_estimate(numbers, clusters, bounds, seed, few_bounds=False)


def _cluster_estimate(
    values: Floats,
    clusters: Sequence[Hashable],
    bounds: tuple[float, float],
    seed: int,
    *,
    few_bounds: bool,
    level: float = LEVEL,
) -> Estimate:
    """The mean; `few_bounds`: the bounds are only the largest values seen, so each adds half a case."""
    least, most = bounds
    sums, sizes = _cluster_sums(values, clusters)
    n = len(values)
    centre = min(max(math.fsum(values) / n, least), most)
    if len(sizes) <= 1:
        return without_interval(centre, ONE_CLUSTER, n=n, method="cluster bootstrap")
    if len(sizes) > NORMAL_FROM:
        half = critical_value(level) * _standard_error(sums, sizes)
        low, high, method = centre - half, centre + half, "cluster normal"
    else:
        added = float(sizes.mean())
        if few_bounds and _standard_error(sums, sizes) > _NO_SPREAD * (most - least):
            added = 1.0
            # As many clusters of equal size as weigh the same (Kish). The variance of the weighted
            # mean of k clusters is short by (k - 1) / (k + 1).
            count, total = len(sizes), float(sizes.sum())
            effective = max(total**2 / float(sizes @ sizes), 2.0)
            spread = math.sqrt((count + 1) / (count - 1))
            level = 1 - 2 * student_tail(level, spread, effective - 1)
        pairs = tuple(zip(sums.tolist(), sizes.tolist(), strict=True))
        extra = (added * least, added), (added * most, added)
        low, high = _posterior_ends(pairs, extra, seed, level)
        method = "cluster bootstrap"
    return interval_estimate(centre, low, high, n=n, method=method, bounds=bounds)


@lru_cache(maxsize=32)  # summary, headline and page ask for the same share
def _posterior_ends(
    pairs: tuple[tuple[float, float], ...],
    extra: tuple[tuple[float, float], ...],
    seed: int,
    level: float,
) -> tuple[float, float]:
    """Both ends of the mean's draws; `pairs` are sum and size of each cluster."""
    generator = np.random.default_rng(seed)

    def draw(draws: int) -> Floats:
        weights = generator.standard_exponential((draws, len(pairs)))
        totals = weighted_sums(weights, np.array(pairs))
        totals += generator.standard_gamma(0.5, (draws, 2)) @ np.array(extra)
        return totals[:, 0] / totals[:, 1]

    return quantiles(draw_in_chunks(draw, len(pairs)), level)


def clustered_difference(
    a: Sequence[float | None],
    b: Sequence[float | None],
    clusters: Sequence[Hashable],
    *,
    seed: int = 0,
    level: float = LEVEL,
) -> PairedComparison:
    """Compare two systems on the same cases, as `paired_difference` does, by cluster.

    Parameters
    ----------
    a, b : sequence of float or None, of equal length
        A value in [0, 1] for each case. None: the system has no value for the case.
    clusters : sequence of hashable, one a case
    seed : int
        Random seed of the interval and of the sign flips.
    level : float
        Confidence level of the interval, in (0, 1).

    Returns
    -------
    PairedComparison
        All differences of a cluster change their sign together; ``groups`` is the number of
        clusters with a value in both. The interval is the Bayesian bootstrap of clusters in which
        a gain and a loss of the largest size seen count as half a case (half a cluster if all
        differences are equal), widened as Student's t is; it includes 0 exactly if the test does
        not reject it. It covers 94% to 97% on average, 90% at worst
        (``benchmarks/stats/clustered_coverage.py``).

    Raises
    ------
    ValueError
        The lengths differ, or a value is not in [0, 1].

    References
    ----------
    Kish (1965), Survey sampling. Hesterberg (2015), What teachers should know about the bootstrap.

    Examples
    --------
    >>> comparison = clustered_difference([0, 0, 1, 0], [1, 1, 1, 1], ["x", "x", "y", "y"])
    >>> comparison.difference.value, comparison.p, comparison.groups
    (0.75, 0.5, 2)
    """
    if not len(a) == len(b) == len(clusters):
        raise ValueError("values and clusters differ in length")
    both = [
        (float(x), float(y), cluster)
        for x, y, cluster in zip(a, b, clusters, strict=True)
        if x is not None and y is not None
    ]
    if not all(0 <= value <= 1 + 1e-9 for x, y, _ in both for value in (x, y)):
        raise ValueError("values must be finite numbers in [0, 1]; use None for a missing value")
    if not both:
        return PairedComparison(
            Estimate.missing(Reason(code="no_shared_value")), None, None, groups=0
        )
    differences = np.round([y - x for x, y, _ in both], _DECIMALS)
    names = [cluster for *_, cluster in both]
    sums, sizes = _cluster_sums(differences, names)
    largest = float(np.abs(differences).max()) or 1.0
    spread = _standard_error(sums, sizes) if len(sizes) > 1 else 0.0

    @cache
    def p_at(shift: float) -> float:
        return sign_flips(np.round(sums - shift * sizes, _DECIMALS).tolist(), seed=seed)

    bounds = (-largest, largest)
    estimate = _cluster_estimate(differences, names, bounds, seed, few_bounds=True, level=level)
    return PairedComparison(
        difference=interval_of_test(estimate, p_at, level),
        p=p_at(0.0),
        detectable=detectable_shift(len(sizes)) * spread if spread else None,
        groups=len(sizes),
    )


def cluster_draws(
    rows: Floats, clusters: Sequence[Hashable], generator: np.random.Generator
) -> Floats:
    """Draw the sums over cases of each column, in the Bayesian bootstrap of clusters.

    Parameters
    ----------
    rows : array, shape (cases, columns)
        What each case adds to each sum.
    clusters : sequence of hashable, one a case
    generator : numpy Generator

    Returns
    -------
    array, shape (draws, columns)
        10,000 draws, or fewer where many clusters differ: 2,000 of 2,000. The order of the cases does
        not matter.
    """
    # Rounded, so that a cluster's sum is the same in any order of its cases.
    sums = np.round(_column_sums(rows, clusters), _DECIMALS)
    # Clusters with equal sums are drawn as one: exponentials add up to a gamma.
    distinct, counts = np.unique(sums, axis=0, return_counts=True)
    return draw_in_chunks(
        lambda size: weighted_sums(
            generator.standard_gamma(counts, (size, len(distinct))), distinct
        ),
        len(distinct),
        _draws(len(distinct)),
    )


def clustered_score_test(scores: Floats, clusters: Sequence[Hashable], *, seed: int = 0) -> float:
    """Return the p-value of the test that the sums of scores differ from 0 by chance alone.

    Parameters
    ----------
    scores : array, shape (cases, columns)
        Their expected sum is 0 in each column if the hypothesis holds.
    clusters : sequence of hashable, one a case
    seed : int
        Random seed of the sign flips.

    Returns
    -------
    float
        In (0, 1]: the sums, squared and divided by their covariance over clusters, compared with those
        in which each cluster's scores change their sign together.

    References
    ----------
    Kline and Santos (2012), A score based approach to wild bootstrap inference.
    """
    sums = _column_sums(scores, clusters)
    sums = np.round(sums[np.lexsort(sums.T)], _DECIMALS)
    scales, axes = np.linalg.eigh(sums.T @ sums)
    held = scales > _NO_SPREAD * max(scales.max(), _NO_SPREAD)
    weights = axes[:, held] / np.sqrt(scales[held])
    observed = float(((sums @ weights).sum(axis=0) ** 2).sum())
    # Of clusters with equal sums only how many keep their sign matters.
    rows, count = np.unique(sums, axis=0, return_counts=True)
    spread, several = rows @ weights, count > 1
    generator = np.random.default_rng(seed)

    def draw(draws: int) -> Floats:
        kept = np.empty((draws, len(rows)))
        kept[:, several] = generator.binomial(count[several], 0.5, (draws, int(several.sum())))
        kept[:, ~several] = generator.integers(0, 2, (draws, int((~several).sum())), dtype=np.int8)
        return (weighted_sums(2 * kept - count, spread) ** 2).sum(axis=1)

    drawn = draw_in_chunks(draw, len(spread), _draws(len(spread)))
    return (int((drawn >= observed - 1e-9).sum()) + 1) / (len(drawn) + 1)


def _draws(width: int) -> int:
    """How often `width` numbers are drawn: sums of many vary little in their shape."""
    return min(DRAWS, max(_MIN_DRAWS, _MAX_DRAWN // width))


def _cluster_index(clusters: Sequence[Hashable]) -> NDArray[np.int64]:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters])


def _column_sums(rows: Floats, clusters: Sequence[Hashable]) -> Floats:
    index = _cluster_index(clusters)
    return np.stack([np.bincount(index, column) for column in rows.T], axis=1)


def _cluster_sums(values: Floats, clusters: Sequence[Hashable]) -> tuple[Floats, Floats]:
    """Sum and size of each cluster, sorted, so that the order of the cases does not matter."""
    index = _cluster_index(clusters)
    # Added up from the smallest value on, so that rounding is the same in any order.
    order = np.argsort(values, kind="stable")
    sums = np.bincount(index[order], weights=values[order]).astype(np.float64)
    sizes = np.bincount(index[order]).astype(np.float64)
    by_size = np.lexsort((sums, sizes))
    return sums[by_size], sizes[by_size]


def _standard_error(sums: Floats, sizes: Floats) -> float:
    """Standard error of the ratio of both sums, over clusters (n - 1)."""
    count, cases = len(sizes), float(sizes.sum())
    residuals = sums - float(sums.sum()) / cases * sizes
    return math.sqrt(float(residuals @ residuals) * count / (count - 1)) / cases
