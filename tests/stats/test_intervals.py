"""Intervals of shares, means and medians."""

import math
import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import quantile_test

from misslink.stats import mean, proportion
from misslink.stats.intervals import median, quartiles, weighted_sums


def test_eight_of_ten_worked_by_hand():
    # z = 1.96: centre (0.8 + 0.19207) / 1.38415 = 0.71674, half 0.22659
    estimate = proportion(8, 10)
    assert (estimate.value, estimate.n, estimate.method) == (0.8, 10, "wilson")
    assert estimate.low == pytest.approx(0.49016, abs=1e-4)
    assert estimate.high == pytest.approx(0.94331, abs=1e-4)


def test_no_cases_are_missing_and_say_why():
    estimate = proportion(0, 0)
    assert (estimate.value, estimate.low, estimate.high, estimate.n) == (None, None, None, 0)
    assert estimate.reason_code.code == "no_cases"


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_interval_has_a_width_and_holds_the_value_within_0_and_1(counts):
    estimate = proportion(*counts)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.high - estimate.low > 0.005


@pytest.mark.parametrize("counts", [(-1, 3), (4, 3), (0, -1)])
def test_counts_that_cannot_be_are_refused(counts):
    with pytest.raises(ValueError, match="is not a share"):
        proportion(*counts)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_that_is_none_is_refused(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        proportion(1, 2, level=level)


def test_a_higher_level_is_wider():
    usual, higher = proportion(3, 9), proportion(3, 9, level=0.99)
    assert higher.low < usual.low
    assert usual.high < higher.high


shares = st.floats(0, 1, allow_nan=False)


def test_yes_or_no_values_have_the_interval_of_a_share():
    assert mean([1, 0, 1, 1]) == proportion(3, 4)


def test_mean_of_shares_is_their_mean_and_counts_the_cases():
    estimate = mean([1.0, 0.5, 0.75, 0.0])
    assert (estimate.value, estimate.n, estimate.method) == (0.5625, 4, "bootstrap")
    assert 0 < estimate.low < 0.5625 < estimate.high < 1


def test_no_values_are_missing_and_say_why():
    assert mean([]).value is None
    assert mean([]).reason_code.code == "no_values"


def test_equal_values_fall_back_on_the_widest_spread_their_mean_allows():
    estimate = mean([0.5] * 20)
    share = proportion(10, 20)
    assert (estimate.low, estimate.high) == (share.low, share.high)
    assert estimate.method == "wilson bound"


def test_one_value_has_a_wide_interval():
    estimate = mean([0.7])
    assert estimate.method == "wilson bound"
    assert estimate.high - estimate.low > 0.7


@given(st.lists(shares, min_size=1, max_size=30), st.randoms())
def test_order_does_not_matter_and_the_interval_holds_the_value(values, chance):
    shuffled = list(values)
    chance.shuffle(shuffled)
    estimate = mean(values)
    assert estimate == mean(shuffled)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.low < estimate.high


def test_same_seed_same_interval_and_another_seed_about_the_same():
    values = [0.1, 0.4, 0.9, 1.0, 1.0, 0.25]
    assert mean(values, seed=3) == mean(values, seed=3)
    assert mean(values, seed=3) != mean(values, seed=4)
    assert mean(values, seed=3).low == pytest.approx(mean(values, seed=4).low, abs=0.02)


def test_rounding_just_above_1_counts_as_1():
    assert mean([1 + 2e-16, 1.0]) == mean([1.0, 1.0])


@pytest.mark.parametrize("bad", [1.5, -0.5, math.nan, math.inf])
def test_values_that_cannot_be_are_refused(bad):
    with pytest.raises(ValueError, match=r"not within|finite"):
        mean([0.5, bad])


def test_other_bounds_scale_the_interval():
    unit, wide = mean([0.2, 0.4, 0.9]), mean([-0.6, -0.2, 0.8], bounds=(-1, 1))
    assert wide.low == pytest.approx(2 * unit.low - 1)
    assert wide.high == pytest.approx(2 * unit.high - 1)


def test_many_distinct_values_agree_with_the_bootstrap_that_is_left_out_for_them():
    chance = random.Random(0)
    many = [chance.random() ** 2 for _ in range(5_100)]
    few = [round(value, 3) for value in many]  # about 1,000 distinct values
    normal, bootstrap = mean(many), mean(few)
    assert (normal.method, bootstrap.method) == ("normal", "bootstrap")
    assert normal.low == pytest.approx(bootstrap.low, abs=5e-4)
    assert normal.high == pytest.approx(bootstrap.high, abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(0, 1), None])
def test_many_values_that_lean_agree_with_the_bootstrap_too(monkeypatch, bounds):
    """One in a hundred is near 1, the others near 0: a plain bell curve is off by a tenth."""
    chance = random.Random(0)
    values = [
        1 - chance.random() / 1000 if chance.random() < 0.01 else chance.random() / 1000
        for _ in range(2_100)
    ]
    found = mean(values, bounds=bounds)
    monkeypatch.setattr("misslink.stats.intervals.NORMAL_FROM", 2 * len(values))
    bootstrap = mean(values, bounds=bounds)
    assert (found.method, bootstrap.method) == ("normal", "bootstrap")
    half = (bootstrap.high - bootstrap.low) / 2
    assert found.low == pytest.approx(bootstrap.low, abs=0.06 * half)
    assert found.high == pytest.approx(bootstrap.high, abs=0.06 * half)


def test_memory_stays_bounded_for_thousands_of_distinct_values():
    chance = random.Random(0)
    values = [chance.random() for _ in range(2_000)]
    tracemalloc.start()
    mean(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # all 10,000 draws at once would take 160 MB


def test_without_bounds_equal_values_have_no_interval_and_say_so():
    single, equal = mean([3.5], bounds=None), mean([2.0, 2.0, 2.0], bounds=None)
    assert (single.value, single.low, single.high) == (3.5, None, None)
    assert single.reason_code.code == "one_value"
    assert (equal.value, equal.low, equal.reason) == (2.0, None, "all values are equal")


def test_without_bounds_the_interval_moves_with_the_values():
    near, far = mean([1.0, 2.0, 4.0], bounds=None), mean([1e6 + 1, 1e6 + 2, 1e6 + 4], bounds=None)
    assert far.low - 1e6 == pytest.approx(near.low)
    assert far.high - 1e6 == pytest.approx(near.high)


@pytest.mark.parametrize("n", [6, 7, 25, 60, 400])
def test_value_and_ends_agree_with_scipy(n):
    values = np.random.default_rng(n).exponential(size=n).tolist()
    found = median(values)
    ends = quantile_test(values, p=0.5).confidence_interval(0.95)
    assert found.value == pytest.approx(np.median(values))
    assert (found.low, found.high) == (ends.low, ends.high)


def test_few_values_have_no_interval_and_say_so():
    found = median([1, 2, 3])
    assert (found.value, found.low, found.high, found.n) == (2, None, None, 3)
    assert "too few" in found.reason


def test_no_values_have_no_median():
    assert median([]).value is None
    assert quartiles([]) is None


@pytest.mark.parametrize("shape", [(7, 90), (700,), (40, 2)])
def test_sums_in_blocks_are_those_of_one_product(shape):
    rng = np.random.default_rng(0)
    weights, columns = rng.random((1_000, shape[0])), rng.random(shape)
    assert np.allclose(weighted_sums(weights, columns), weights @ columns, rtol=1e-12)
