"""Medians against NumPy, their intervals against scipy's quantile test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import quantile_test

from misslink.stats.intervals import median, quartiles


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
