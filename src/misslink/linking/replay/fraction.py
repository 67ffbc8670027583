"""Which share of the bad answers a hit in place of every miss would have avoided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LEAST_REPLAYED", "causal_fraction", "causal_limits"]

_DRAWS = 20_000
# Replayed misses below which there is no fraction. With 10 of a run of 100 cases of which 30 are
# misses the interval is 63 points wide; with 6 it is 83, with 4 115 and with 2 178, wider than all
# that the fraction could say (medians of 120 runs simulated as in test_fraction.py).
LEAST_REPLAYED = 10
_METHOD = "replay, dirichlet"
_TABLE_PRIOR = 0.75  # as misslink.stats.attributable, whose table this is
# Cases added to the outcomes of the pairs (both bad, only unchanged, only with the passage,
# neither), see Notes of causal_fraction.
_PAIR_PRIOR = (0.125, 0.25, 0.25, 0.125)

Pair = tuple[bool, bool]


def causal_fraction(
    table: tuple[int, int, int, int],
    bad_pairs: Sequence[Pair],
    good_pairs: Sequence[Pair],
    *,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Causal attributable fraction, (P(bad) - P(bad | do(hit))) / P(bad).

    Misses were sampled apart by how their answer turned out, since injecting passages may spoil a
    good answer as it may mend a bad one; both samples are weighted back to the run. What is
    compared are two generations of today, one of them with the missed passage, so that an answer
    which flips by itself proves nothing.

    Parameters
    ----------
    table : four int
        Cases of the run: miss and bad, miss and good, hit and bad, hit and good.
    bad_pairs, good_pairs : sequence of (bool, bool)
        Of replayed misses whose answer was bad, or good: whether it was bad when rerun unchanged,
        and whether it was with the missed passage first. An answer that is the same by the letter
        is no other for being seen beside its evidence: of such a pair both count as the first.
    seed : int
        Of the drawn tables.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        With the replayed misses as n. Missing where there is nothing to replay, nothing of a kind
        of miss was replayed that the run holds, no answer was bad, or fewer than
        ``LEAST_REPLAYED`` misses were replayed.

    Raises
    ------
    ValueError
        A count is negative.

    Notes
    -----
    The interval holds the middle `level` of 20,000 draws: the table from its Dirichlet posterior
    and the four outcomes of the pairs of each kind from theirs with 0.25 cases added where the two
    answers differ and 0.125 where they do not, stretched to the value where it lies outside.
    ``tests/linking/replay/test_fraction.py`` measures it: over eight kinds of runs of 40 to 300
    cases, with 10 to 40 replayed of each kind of miss, flaky ones among them, and 1,600 runs of
    each, it covers 95 % on average and 93 % at worst; with 0.25 cases added everywhere that worst
    is 92 %.

    References
    ----------
    Pearl (2009), Causality, chapter 9, on attribution. Neyman (1934), On the two different
    aspects of the representative method, on stratified samples.

    Examples
    --------
    All 10 bad misses were mended, no good one was spoilt; they are half of the bad answers.

    >>> both = causal_fraction((10, 5, 10, 75), [(True, False)] * 10, [(False, False)] * 5)
    >>> both.value
    0.5
    """
    import numpy as np

    if min(table) < 0:
        raise ValueError(f"a count is negative: {table}")
    strata = ((table[0], bad_pairs), (table[1], good_pairs))
    n = len(bad_pairs) + len(good_pairs)
    if not table[0] + table[1]:
        return Estimate.missing("no case is a miss with a verdict, so nothing can be injected")
    for (count, pairs), name in zip(strata, ("bad", "good"), strict=True):
        if count and not pairs:
            reason = f"none of the {count} misses with a {name} answer could be replayed"
            return Estimate.missing(reason, n=n, method=_METHOD)
    avoided, bad = 0.0, float(table[2])
    for count, pairs in strata:
        if count:
            share = count / len(pairs)
            avoided += share * sum(int(unchanged) - int(first) for unchanged, first in pairs)
            bad += share * sum(unchanged for unchanged, _ in pairs)
    if not bad:
        return Estimate.missing("no bad answer to attribute", n=n, method=_METHOD)
    if n < LEAST_REPLAYED:
        replayed = "miss was" if n == 1 else "misses were"
        reason = (
            f"{n} {replayed} replayed, and below {LEAST_REPLAYED} the fraction says nothing; "
            "replay with a larger --sample, or evaluate more cases"
        )
        return Estimate.missing(reason, n=n, method=_METHOD)
    value = avoided / bad
    low, high = causal_limits(
        table,
        (_counted(bad_pairs), _counted(good_pairs)),
        np.random.default_rng(seed),
        level=level,
        draws=_DRAWS,
    )
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n, method=_METHOD)


def causal_limits(
    table: Sequence[int],
    pairs: tuple[Sequence[int], Sequence[int]],
    generator: np.random.Generator,
    *,
    level: float,
    draws: int,
    prior: Sequence[float] = _PAIR_PRIOR,
) -> tuple[float, float]:
    """Both ends of the interval.

    Parameters
    ----------
    table : four int
        As of `causal_fraction`.
    pairs : two sequences of four int
        Of bad and of good misses, how often both generations were bad, only the unchanged one,
        only the one with the passage, neither.
    generator : numpy Generator
    level : float
    draws : int
    prior : four float
        Cases added to each of these outcomes.
    """
    import numpy as np

    cells: NDArray[np.float64] = generator.dirichlet(np.add(table, _TABLE_PRIOR), draws)
    avoided, bad = np.zeros(draws), cells[:, 2].copy()
    for stratum in (0, 1):
        drawn = generator.dirichlet(np.add(pairs[stratum], prior), draws)
        avoided += cells[:, stratum] * (drawn[:, 1] - drawn[:, 2])
        bad += cells[:, stratum] * (drawn[:, 0] + drawn[:, 1])
    low, high = np.quantile(avoided / bad, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _counted(pairs: Sequence[Pair]) -> tuple[int, int, int, int]:
    counts = Counter(pairs)
    return counts[True, True], counts[True, False], counts[False, True], counts[False, False]
