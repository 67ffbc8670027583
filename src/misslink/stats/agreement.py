"""How far several raters agree on the same items, some of which some have not rated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Literal

from misslink.stats.means import mean
from misslink.stats.proportions import critical
from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["krippendorff_alpha", "percent_agreement"]

Ratings = Sequence[Sequence[float | str | None]]
Metric = Literal["nominal", "ordinal"]

_DRAWS, _FEWEST_DRAWS = 10_000, 1_000
_AT_ONCE = 2_000_000  # numbers held in memory at a time
_IN_ALL = 20_000_000  # numbers drawn, so that many-sided items take no minute
_PRIOR = 1.0  # items added, see Notes of krippendorff_alpha
_MOST = 100  # distinct ratings; a scale that people use has far fewer
_PAIR = 2  # ratings an item needs to say anything of agreement
_METHOD = "item bootstrap"


def percent_agreement(ratings: Ratings, *, seed: int = 0) -> Estimate:
    """Mean over items of the share of pairs of raters who say the same.

    Parameters
    ----------
    ratings : sequence of sequences
        For each item what each rater said, None where nothing.
    seed : int
        Of the interval where an item has more than two ratings.

    Returns
    -------
    Estimate
        ``n`` counts the items with two ratings or more; missing where there is none. Interval of
        `misslink.stats.mean`, which is Wilson's with two raters.

    Examples
    --------
    >>> percent_agreement([[1, 1, 1], [1, 0, 1], [0, None, 0], [1, None, None]]).value
    0.7777777777777778
    """
    shares = []
    for item in _rated(ratings):
        pairs = len(item) * (len(item) - 1)
        shares.append(sum(times * (times - 1) for times in Counter(item).values()) / pairs)
    if not shares:
        return Estimate.missing("no item has two ratings", method="wilson")
    return mean(shares, seed=seed)


def krippendorff_alpha(
    ratings: Ratings, *, metric: Metric = "nominal", seed: int = 0, level: float = 0.95
) -> Estimate:
    """Krippendorff's alpha: the share of the disagreement expected by chance that did not happen.

    Parameters
    ----------
    ratings : sequence of sequences
        For each item what each rater said, None where nothing. Any number of raters.
    metric : "nominal" or "ordinal"
        Whether all disagreements weigh alike, or by how many ratings lie between the two.
    seed : int
        Of the interval.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        1 - observed / expected disagreement, at most 1, 0 where agreement is that of chance.
        ``n`` counts the items with two ratings or more. Missing where there is none, or where all
        their ratings are the same.

    Raises
    ------
    ValueError
        Ordinal ratings that are not numbers, or more than 100 distinct ratings.

    Notes
    -----
    The interval holds the middle `level` of the alphas of 10,000 Bayesian resamples of the items
    (at least 1,000 where the items differ much),
    with one item added whose two ratings are any two categories, spread evenly; stretched to the
    value where it lies outside. Without it the items of a sample that agrees fully would seem to
    leave no doubt; ``benchmarks/calibration_coverage.py`` compares the percentile bootstrap.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability. Rubin (1981), The Bayesian
    bootstrap.

    Examples
    --------
    >>> round(krippendorff_alpha([[1, 1], [0, 0], [1, 0], [0, 0]]).value, 3)
    0.533
    """
    import numpy as np

    critical(level)  # refuses a level that is none
    items = _rated(ratings)
    n = len(items)
    if not items:
        return Estimate.missing("no item has two ratings", method=_METHOD)
    seen = {rating for item in items for rating in item}
    if metric == "ordinal" and any(isinstance(rating, str) for rating in seen):
        raise ValueError("ordinal ratings are numbers; compare words as nominal ones")
    if len(seen) > _MOST:
        raise ValueError(
            f"{len(seen)} distinct ratings are no scale; round them to at most {_MOST}"
        )
    if len(seen) == 1:
        reason = "all ratings are the same: there is no disagreement to expect"
        return Estimate.missing(reason, n=n, method=_METHOD)
    patterns, times, prior = _patterns(items, sorted(seen, key=lambda r: (isinstance(r, str), r)))
    value = float(_alphas(times[np.newaxis], patterns, metric)[0])
    generator = np.random.default_rng(seed)
    draws = min(_DRAWS, max(_FEWEST_DRAWS, _IN_ALL // patterns.size))
    chunk = max(1, _AT_ONCE // len(patterns))
    drawn = []
    for start in range(0, draws, chunk):
        weights = generator.dirichlet(times + prior, min(chunk, draws - start)) * n
        drawn.append(_alphas(weights, patterns, metric))
    low, high = np.quantile(np.concatenate(drawn), [(1 - level) / 2, (1 + level) / 2])
    return Estimate(
        value=value, low=min(float(low), value), high=max(float(high), value), n=n, method=_METHOD
    )


def _rated(ratings: Ratings) -> list[list[float | str]]:
    """The ratings of each item that has two or more."""
    given = [[rating for rating in item if rating is not None] for item in ratings]
    return [item for item in given if len(item) >= _PAIR]


def _patterns(
    items: list[list[float | str]], categories: list[float | str]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Each distinct item as counts of categories, how often it occurs, and its prior weight."""
    import numpy as np

    place = {category: at for at, category in enumerate(categories)}
    size = len(categories)
    found: Counter[tuple[int, ...]] = Counter()
    for item in items:
        found[tuple(sorted(place[rating] for rating in item))] += 1
    prior: dict[tuple[int, ...], float] = {}
    for pair in combinations_with_replacement(range(size), _PAIR):
        prior[pair] = _PRIOR * (1 if pair[0] == pair[1] else 2) / size**2
    every = sorted({*found, *prior})
    patterns = np.zeros((len(every), size))
    for at, pattern in enumerate(every):
        for category in pattern:
            patterns[at, category] += 1
    times = np.array([found[pattern] for pattern in every], dtype=float)
    return patterns, times, np.array([prior.get(pattern, 0.0) for pattern in every])


def _alphas(
    weights: NDArray[np.float64], patterns: NDArray[np.float64], metric: Metric
) -> NDArray[np.float64]:
    """Alpha for each row of weights of the patterns.

    An ordinal difference is the distance of two categories' mid-ranks, so that its mean square is
    a variance, and nothing of the size of categories x categories is needed.
    """
    ratings = patterns.sum(axis=1)
    totals = weights @ patterns
    n = totals.sum(axis=1)
    if metric == "nominal":
        # ordered pairs within the item that differ, a rating's partner counted once
        apart = (ratings**2 - (patterns**2).sum(axis=1)) / (ratings - 1)
        observed = weights @ apart
        expected = n**2 - (totals**2).sum(axis=1)
    else:
        ranks = (totals.cumsum(axis=1) - totals / 2) / n[:, None]  # alpha does not know the scale
        sums, squares = ranks @ patterns.T, ranks**2 @ patterns.T
        observed = (weights * 2 * (ratings * squares - sums**2) / (ratings - 1)).sum(axis=1)
        expected = 2 * (n * (totals * ranks**2).sum(axis=1) - (totals * ranks).sum(axis=1) ** 2)
    found: NDArray[np.float64] = 1 - (n - 1) * observed / expected
    return found
