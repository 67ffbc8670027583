"""The causal attributable fraction, and how often its interval covers the truth."""

from __future__ import annotations

import numpy as np
import pytest

from misslink.linking.replay.results import causal_fraction

MENDED, KEPT_BAD, SPOILT, KEPT_GOOD = (True, False), (True, True), (False, True), (False, False)


def test_each_kind_of_miss_is_weighted_back_to_the_run():
    # Half of the 20 bad misses mended, a quarter of the 40 good ones spoilt: 10 - 10 avoided.
    found = causal_fraction(
        (20, 40, 10, 30), [MENDED, KEPT_BAD] * 2, ([SPOILT] + [KEPT_GOOD] * 3) * 2
    )
    assert found.value == pytest.approx(0.0)
    # 15 - 4 avoided of 20 + 0 + 10 that are bad.
    pairs = [MENDED] * 3 + [KEPT_BAD], [SPOILT] + [KEPT_GOOD] * 9
    assert causal_fraction((20, 40, 10, 30), *pairs).value == pytest.approx(11 / 30)


def test_what_flips_by_itself_is_not_put_down_to_the_passage():
    flaky_both = [KEPT_GOOD, KEPT_BAD, MENDED, SPOILT] * 2  # bad every other time, either way
    assert causal_fraction((10, 10, 5, 20), flaky_both, flaky_both).value == pytest.approx(0.0)


def test_injecting_may_do_harm():
    found = causal_fraction((5, 20, 5, 20), [KEPT_BAD] * 5, [SPOILT] * 20)
    assert found.value == pytest.approx(-2.0)
    assert found.low <= found.value <= found.high


def test_the_interval_is_seeded_and_shrinks_with_cases():
    def width(times, seed=0):
        found = causal_fraction(
            (10 * times, 10 * times, 10 * times, 70 * times),
            ([MENDED] * 8 + [KEPT_BAD] * 2) * times,
            ([KEPT_GOOD] * 9 + [SPOILT]) * times,
            seed=seed,
        )
        return found.high - found.low

    assert width(1) == width(1)
    assert width(1) != width(1, seed=1)
    assert width(16) < width(1) / 3


@pytest.mark.parametrize(
    ("table", "pairs", "reason"),
    [
        ((0, 0, 3, 4), ([], []), "no case is a miss"),
        ((3, 0, 3, 4), ([], []), "none of the 3 misses with a bad answer"),
        ((3, 2, 3, 4), ([MENDED], []), "none of the 2 misses with a good answer"),
        ((0, 2, 0, 4), ([], [KEPT_GOOD]), "no bad answer"),
        ((5, 4, 3, 4), ([MENDED] * 5, [KEPT_GOOD] * 4), "9 misses were replayed, and below 10"),
        ((1, 0, 3, 4), ([MENDED], []), "1 miss was replayed, and below 10"),
    ],
)
def test_what_cannot_be_told_says_why(table, pairs, reason):
    found = causal_fraction(table, *pairs)
    assert (found.value, found.low, found.high) == (None, None, None)
    assert reason in found.reason


def test_counts_below_zero_are_refused():
    with pytest.raises(ValueError, match="negative"):
        causal_fraction((-1, 2, 3, 4), [MENDED], [KEPT_GOOD])


# Of a kind of miss: P(bad) unchanged and with the passage.
KINDS = np.array([[1, 0], [1, 1], [0, 0], [0, 1], [0.5, 0.5], [0.5, 0.2]])
# Cases, P(miss), weights of KINDS, P(bad | hit), sample; and the least coverage to be had.
RUNS = [
    (100, 0.3, [4, 2, 3, 0, 0, 0], 0.1, 40, 0.93),
    (100, 0.3, [4, 2, 3, 0.3, 1, 1], 0.1, 40, 0.93),
    (200, 0.4, [6, 1, 2, 0.5, 1, 0], 0.1, 40, 0.92),
    (60, 0.3, [5, 0, 3, 0, 0, 0], 0.2, 20, 0.92),
    (300, 0.5, [3, 3, 3, 0.3, 1, 1], 0.3, 20, 0.93),
    (100, 0.3, [0, 5, 3, 0, 1, 0], 0.2, 40, 0.93),
    (40, 0.3, [5, 1, 4, 0, 0, 0], 0.1, 10, 0.91),
    (200, 0.2, [8, 1, 1, 0, 0, 0], 0.05, 40, 0.92),
]


def simulated(draw, cases, miss, weights, hit_bad, sample):
    """One run and its replay: each answer drawn anew, as those of a flaky app are."""
    misses = draw.binomial(cases, miss)
    kinds = draw.choice(len(KINDS), misses, p=weights / weights.sum())
    was_bad = draw.random(misses) < KINDS[kinds, 0]
    bad_hits = draw.binomial(cases - misses, hit_bad)
    table = (was_bad.sum(), misses - was_bad.sum(), bad_hits, cases - misses - bad_hits)
    pairs = []
    for bad in (True, False):
        chosen = draw.permutation(np.flatnonzero(was_bad == bad))[:sample]
        again = draw.random((2, len(chosen))) < KINDS[kinds[chosen]].T
        pairs.append([tuple(pair) for pair in again.T.tolist()])
    return tuple(map(int, table)), pairs


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_the_interval_covers_the_truth(run):
    *shape, least = run
    cases, miss, weights, hit_bad, sample = shape
    weights = np.array(weights, dtype=float)
    unchanged, first = weights / weights.sum() @ KINDS
    truth = miss * (unchanged - first) / (miss * unchanged + (1 - miss) * hit_bad)
    draw = np.random.default_rng(7)
    covered = []
    while len(covered) < 500:
        table, pairs = simulated(draw, cases, miss, weights, hit_bad, sample)
        found = causal_fraction(table, *pairs, seed=len(covered))
        if found.value is not None:
            covered.append(found.low <= truth <= found.high)
    assert np.mean(covered) >= least
