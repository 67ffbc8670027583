"""Means and differences of cases that come in clusters, such as all questions to one document.

Cases of a cluster go up and down together, so what is drawn anew is the cluster, not the case.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from misslink.stats.paired import Paired, detectable_shift
from misslink.stats.proportions import critical
from misslink.stats.randomisation import DRAWS, sign_flips
from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["clustered_difference", "clustered_mean"]

_AT_ONCE = 2_000_000  # numbers held in memory at a time
_MANY = 2_000  # clusters from which the bell curve gives the same digits
_DECIMALS = 12  # 0.6 - 0.4 and 0.4 - 0.2 are one size
_FEWEST = 2  # one cluster says nothing of how clusters differ
_LEVEL = 0.95
_NOTHING = 1e-12  # a spread below it is rounding


def clustered_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    seed: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
) -> Estimate:
    """Mean over cases, with the interval that their clusters allow; their order does not matter.

    Parameters
    ----------
    values : sequence of float, one a case
        Within `bounds`; missing ones are left out by the caller.
    clusters : sequence of hashable, one a case
        Which cluster the case is of.
    seed : int
        Of the bootstrap.
    bounds : pair of float
        What the values can be at least and at most.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        Missing without any value. ``cluster bootstrap``: the Bayesian bootstrap of
        `misslink.stats.mean`, drawing a weight for each cluster; each bound counts as half a
        cluster of average size more. ``cluster normal``: more than 2,000 clusters, by the
        linearised variance of a ratio. One cluster alone leaves both ends None. How often either
        holds the truth, ``benchmarks/clustered_coverage.py`` shows: 93 % or more at every point.

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
    >>> found = clustered_mean([1, 1, 0, 0, 1], ["a", "a", "b", "b", "c"])
    >>> found.value, found.n, found.method
    (0.6, 5, 'cluster bootstrap')
    """
    import numpy as np

    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values and {len(clusters)} clusters are not of one length")
    if not len(values):
        return Estimate.missing("no values")
    given = np.asarray(values, dtype=np.float64)
    least, most = bounds
    slack = 1e-9 * (most - least)
    if not (np.isfinite(given).all() and (given >= least - slack).all()):
        raise ValueError(f"a mean is taken of finite numbers within {bounds}")
    if (given > most + slack).any():
        raise ValueError(f"a mean is taken of finite numbers within {bounds}")
    return _estimate(given, clusters, bounds, seed, level, few_bounds=False)


def _estimate(
    given: NDArray[np.float64],
    clusters: Sequence[Hashable],
    bounds: tuple[float, float],
    seed: int,
    level: float,
    *,
    few_bounds: bool,
) -> Estimate:
    """The mean; `few_bounds`: the bounds were only seen, so that half a case of each is added."""
    import numpy as np

    least, most = bounds
    sums, sizes = _per_cluster(given, clusters)
    n = len(given)
    centre = min(max(math.fsum(given) / n, least), most)
    if len(sizes) < _FEWEST:
        reason = "one cluster does not say how clusters differ"
        return Estimate(
            value=centre, low=None, high=None, n=n, method="cluster bootstrap", reason=reason
        )
    tail = (1 - level) / 2
    if len(sizes) > _MANY:
        half = critical(level) * _standard_error(sums, sizes)
        low, high, method = centre - half, centre + half, "cluster normal"
    else:
        added = float(sizes.mean())
        if few_bounds and _standard_error(sums, sizes) > _NOTHING * (most - least):
            added, tail = 1.0, _widened(sizes, level)
        drawn = _drawn(sums, sizes, bounds, seed, added)
        low, high = np.quantile(drawn, [tail, 1 - tail]).tolist()
        method = "cluster bootstrap"
    return Estimate(
        value=centre,
        low=max(min(low, centre), least),
        high=min(max(high, centre), most),
        n=n,
        method=method,
    )


def clustered_difference(
    a: Sequence[float | None],
    b: Sequence[float | None],
    clusters: Sequence[Hashable],
    *,
    seed: int = 0,
) -> Paired:
    """Compare two systems on the same cases, as `paired_difference` does, by cluster.

    Parameters
    ----------
    a, b : sequence of float or None, of equal length
        A value in [0, 1] for each case. None: the system has none there.
    clusters : sequence of hashable, one a case
    seed : int
        Of the interval and of the sign flips.

    Returns
    -------
    Paired
        All differences of a cluster change their sign together. ``groups`` is the number of
        clusters with a value in both; what could be detected goes by these.
        The interval is the Bayesian bootstrap of clusters in which a gain and a loss of the
        largest size seen count as half a case more (half a cluster where all are alike), widened
        as Student's t is for as many clusters of equal size as weigh the same (Kish).
        ``benchmarks/clustered_coverage.py`` simulates it: with 10, 20 and 31 clusters of 5 cases it
        covers 94 to 97 % on average over shapes of values, at worst 90 % (rare differences that
        come by cluster). Half a cluster at each bound covers more, and is up to half as wide again.

    Raises
    ------
    ValueError
        The lengths differ, or a value is not finite or not in [0, 1].

    References
    ----------
    Kish (1965), Survey sampling. Hesterberg (2015), What teachers should know about the bootstrap.

    Examples
    --------
    >>> found = clustered_difference([0, 0, 1, 0], [1, 1, 1, 1], ["x", "x", "y", "y"])
    >>> found.difference.value, found.p, found.groups
    (0.75, 0.5, 2)
    """
    if not len(a) == len(b) == len(clusters):
        raise ValueError("values and clusters are not of the same cases")
    both = [
        (float(x), float(y), cluster)
        for x, y, cluster in zip(a, b, clusters, strict=True)
        if x is not None and y is not None
    ]
    if not all(0 <= value <= 1 + 1e-9 for x, y, _ in both for value in (x, y)):
        raise ValueError("differences are taken of finite numbers in [0, 1]; a missing one is None")
    if not both:
        return Paired(Estimate.missing("no case has a value in both"), None, None, groups=0)
    import numpy as np

    differences = np.round([y - x for x, y, _ in both], _DECIMALS)
    names = [cluster for *_, cluster in both]
    sums, sizes = _per_cluster(differences, names)
    largest = float(np.abs(differences).max()) or 1.0
    spread = _standard_error(sums, sizes) if len(sizes) >= _FEWEST else 0.0
    return Paired(
        difference=_estimate(
            differences, names, (-largest, largest), seed, _LEVEL, few_bounds=True
        ),
        p=sign_flips(np.round(sums, _DECIMALS).tolist(), seed=seed),
        detectable=detectable_shift(len(sizes)) * spread if spread else None,
        groups=len(sizes),
    )


def _per_cluster(
    values: NDArray[np.float64], clusters: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum and size of each cluster, sorted, so that the order of the cases does not matter."""
    import numpy as np

    numbers: dict[Hashable, int] = {}
    place = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
    # Added up from the smallest value on, so that rounding is the same in any order.
    order = np.argsort(values, kind="stable")
    where = np.asarray(place, dtype=np.int64)[order]
    sums: NDArray[np.float64] = np.bincount(where, weights=values[order]).astype(np.float64)
    sizes: NDArray[np.float64] = np.bincount(where).astype(np.float64)
    by_size = np.lexsort((sums, sizes))
    return sums[by_size], sizes[by_size]


def _standard_error(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
    """Of the ratio of both sums, by what each cluster is off (n - 1)."""
    count, cases = len(sizes), float(sizes.sum())
    off = sums - float(sums.sum()) / cases * sizes
    return math.sqrt(float(off @ off) * count / (count - 1)) / cases


def _widened(sizes: NDArray[np.float64], level: float) -> float:
    """The tail to cut so that clusters, weighted at random, spread as Student's t says.

    The variance of the weighted mean of k clusters is short by (k - 1) / (k + 1).
    """
    from scipy.special import ndtr, stdtrit

    count = len(sizes)
    alike = max(float(sizes.sum()) ** 2 / float(sizes @ sizes), float(_FEWEST))
    spread = math.sqrt((count + 1) / (count - 1))
    return float(ndtr(spread * stdtrit(alike - 1, (1 - level) / 2)))


def _drawn(
    sums: NDArray[np.float64],
    sizes: NDArray[np.float64],
    bounds: tuple[float, float],
    seed: int,
    cases: float,
) -> NDArray[np.float64]:
    """Means under random weights of the clusters, and of half of `cases` at each bound."""
    import numpy as np

    both = np.column_stack([sums, sizes])
    added = cases * np.array([[bounds[0], 1.0], [bounds[1], 1.0]])
    generator = np.random.default_rng(seed)
    chunk = max(1, _AT_ONCE // len(both))
    means = []
    for start in range(0, DRAWS, chunk):
        count = min(chunk, DRAWS - start)
        drawn = generator.standard_exponential((count, len(both))) @ both
        drawn += generator.standard_gamma(0.5, (count, 2)) @ added
        means.append(drawn[:, 0] / drawn[:, 1])
    return np.concatenate(means)
