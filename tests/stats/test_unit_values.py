"""Units as the unit of analysis: the delta method, and Welch's test on it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from misslink.stats.experiments import unit_mean, unit_values, welch_test


def test_the_mean_of_the_values_is_the_ratio_of_the_sums():
    rng = np.random.default_rng(0)
    below = rng.integers(0, 9, 200)
    above = rng.binomial(below, 0.3)
    values = unit_values(above, below)
    assert values.mean() == pytest.approx(above.sum() / below.sum(), abs=1e-12)


def test_the_variance_is_that_of_the_ratio_over_many_samples():
    """Requests of a user go together, so the naive variance over requests is too small."""
    rng = np.random.default_rng(1)
    ratios, said, naive = [], [], []
    for _ in range(1500):
        below = rng.geometric(0.3, 150)
        above = rng.binomial(below, rng.beta(1, 1, 150))
        values = unit_values(above, below)
        ratios.append(above.sum() / below.sum())
        said.append(values.var(ddof=1) / 150)
        naive.append(ratios[-1] * (1 - ratios[-1]) / below.sum())
    assert np.mean(said) == pytest.approx(np.var(ratios), rel=0.1)
    assert np.mean(naive) < 0.5 * np.var(ratios)


def test_without_denominators_it_is_welchs_t_test():
    rng = np.random.default_rng(2)
    a, b = rng.normal(0, 1, 30), rng.normal(0.4, 3, 50)
    difference, p = welch_test(unit_values(a), unit_values(b))
    oracle = stats.ttest_ind(b, a, equal_var=False)
    interval = oracle.confidence_interval(0.95)
    assert p == pytest.approx(oracle.pvalue, rel=1e-9)
    assert (difference.low, difference.high) == pytest.approx((interval.low, interval.high))
    assert (difference.n, difference.method) == (80, "welch")


def test_what_cannot_be_compared_says_why():
    one, several, none = np.array([1.0]), np.array([1.0, 0.0]), np.empty(0)
    assert welch_test(none, several)[0].value is None
    assert welch_test(one, several)[0].low is None
    assert welch_test(one, several)[1] is None
    assert welch_test(np.ones(3), np.ones(4))[0].reason == "all units are alike"
    assert unit_mean(none).value is None
    assert unit_values([0, 0], [0, 0]).size == 0


def test_a_share_that_never_fails_still_has_an_interval():
    found = unit_mean(np.zeros(40), bounds=(0.0, 1.0))
    low, high = proportion_confint(0, 40, method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize(
    ("above", "below"), [([1], [1, 2]), ([math.nan], [1]), ([1], [-1]), ([1], [math.inf])]
)
def test_what_is_no_count_is_refused(above, below):
    with pytest.raises(ValueError, match="unit"):
        unit_values(above, below)


def test_one_unit_with_most_of_the_requests_is_no_consensus():
    below = np.r_[np.ones(99), 500]
    above = np.r_[np.arange(99) % 2, 500]
    values = unit_values(above, below)
    left_out = [(above.sum() - a) / (below.sum() - b) for a, b in zip(above, below, strict=True)]
    jackknife = 99 / 100 * np.sum((np.array(left_out) - np.mean(left_out)) ** 2)
    assert values.var(ddof=1) / 100 == pytest.approx(jackknife, rel=0.05)
    assert unit_mean(values).low < 0.5
