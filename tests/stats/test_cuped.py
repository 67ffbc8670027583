"""CUPED against the regression that it is."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from misslink.stats.experiments import cuped, welch_test


def drawn(seed=0, a=400, b=300, effect=0.2):
    rng = np.random.default_rng(seed)
    past = rng.normal(5, 2, a + b)
    values = 0.7 * past + rng.normal(0, 1, a + b) + effect * (np.arange(a + b) >= a)
    return past[:a], past[a:], values[:a], values[a:]


def test_the_adjusted_difference_is_the_coefficient_of_the_regression():
    before_a, before_b, a, b = drawn()
    found = cuped(a, b, before_a.tolist(), before_b.tolist())
    treated = np.r_[np.zeros(len(a)), np.ones(len(b))]
    design = sm.add_constant(np.column_stack([treated, np.r_[before_a, before_b]]))
    oracle = sm.OLS(np.r_[a, b], design).fit(cov_type="HC2")
    difference, _ = welch_test(found.control, found.variant)
    assert difference.value == pytest.approx(oracle.params[1], abs=1e-10)
    assert found.theta == pytest.approx(oracle.params[2], abs=1e-10)
    half = (difference.high - difference.low) / 2
    assert half / 1.963 == pytest.approx(oracle.bse[1], rel=0.01)


def test_the_reduction_is_the_squared_correlation():
    before_a, before_b, a, b = drawn(a=4000, b=4000)
    found = cuped(a, b, before_a.tolist(), before_b.tolist())
    within = np.corrcoef(np.r_[before_a, before_b], np.r_[a - a.mean(), b - b.mean()])[0, 1]
    assert found.reduction == pytest.approx(within**2, abs=0.02)


def test_units_without_a_past_keep_a_level_of_their_own():
    before_a, before_b, a, b = drawn()
    some_a = [None if i % 4 == 0 else x for i, x in enumerate(before_a.tolist())]
    some_b = [None if i % 3 == 0 else x for i, x in enumerate(before_b.tolist())]
    found = cuped(a, b, some_a, some_b)
    past = np.array([np.nan if x is None else x for x in some_a + some_b])
    missing = np.isnan(past)
    treated = np.r_[np.zeros(len(a)), np.ones(len(b))]
    filled = np.where(missing, np.nanmean(past), past)
    oracle = sm.OLS(np.r_[a, b], sm.add_constant(np.column_stack([treated, filled, missing]))).fit()
    difference, _ = welch_test(found.control, found.variant)
    assert difference.value == pytest.approx(oracle.params[1], abs=1e-10)
    assert (found.known, found.missing) == (500, 200)


def test_a_past_that_explains_nothing_changes_next_to_nothing():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=500), rng.normal(size=500)
    found = cuped(a, b, rng.normal(size=500).tolist(), rng.normal(size=500).tolist())
    assert abs(found.reduction) < 0.02


def test_a_past_of_nobody_or_the_same_for_all_is_none():
    assert cuped(np.ones(2), np.ones(2), [None, None], [None, None]) is None
    assert cuped(np.ones(2), np.ones(2), [3.0, 3.0], [3.0, None]) is None


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="same units"):
        cuped(np.ones(2), np.ones(2), [1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        cuped(np.ones(2), np.ones(2), [1.0, float("inf")], [1.0, 2.0])
