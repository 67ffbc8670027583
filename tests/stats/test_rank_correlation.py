"""Rho and tau-b against scipy, their standard errors against weights moved by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from misslink.stats.agreement import _kendall, _spearman, kendall_tau, spearman

BOTH = [
    (spearman, _spearman, scipy_stats.spearmanr),
    (kendall_tau, _kendall, scipy_stats.kendalltau),
]


def graded(seed, n=40):
    generator = np.random.default_rng(seed)
    grades = generator.integers(0, 4, n).astype(float)
    return grades, np.round(grades + generator.normal(size=n), 1)


@pytest.mark.parametrize(("function", "_", "oracle"), BOTH)
@pytest.mark.parametrize("seed", range(4))
def test_value_is_that_of_scipy_with_ties(function, _, oracle, seed):
    a, b = graded(seed)
    found = function(a.tolist(), b.tolist())
    assert found.value == pytest.approx(oracle(a, b).statistic)
    assert -1 < found.low < found.value < found.high < 1


@pytest.mark.parametrize(("_", "influence", "oracle"), BOTH)
def test_influence_is_what_a_little_more_weight_does(_, influence, oracle):
    a, b = graded(7, 14)
    _, found = influence(a, b)
    copies, more = 400, 4  # each case 400 times, one of them 404 times
    before = oracle(a, b).statistic
    for case in range(14):
        times = np.full(14, copies)
        times[case] += more
        after = oracle(np.repeat(a, times), np.repeat(b, times)).statistic
        assert (after - before) / (more / copies) * 14 == pytest.approx(found[case], abs=0.02)


@pytest.mark.parametrize(("function", "influence", "_"), BOTH)
def test_interval_is_fishers_z_with_the_jackknifes_error(function, influence, _):
    a, b = graded(3)
    value, each = influence(a, b)
    error = math.sqrt(sum(each**2) / 40 / 37) / (1 - value**2)
    half = scipy_stats.t.ppf(0.975, 38) * error
    found = function(a.tolist(), b.tolist())
    assert found.low == pytest.approx(math.tanh(math.atanh(value) - half))
    assert found.high == pytest.approx(math.tanh(math.atanh(value) + half))


@pytest.mark.parametrize("function", [spearman, kendall_tau])
def test_turning_one_side_turns_the_interval(function):
    a, b = graded(5)
    found, turned = function(a.tolist(), b.tolist()), function(a.tolist(), (-b).tolist())
    assert turned.value == pytest.approx(-found.value)
    assert (turned.low, turned.high) == (pytest.approx(-found.high), pytest.approx(-found.low))


@pytest.mark.parametrize("function", [spearman, kendall_tau])
def test_what_cannot_be_told_says_why(function):
    assert function([], []).reason == "a correlation needs two cases"
    assert function([1, 1, 1], [1, 2, 3]).reason == "all numbers of one side are equal"
    perfect = function([1, 2, 3, 4, 5], [1, 2, 3, 4, 6])
    assert (perfect.value, perfect.low, perfect.high) == (1.0, None, None)
    assert "no spread" in perfect.reason
    few = function([1, 2, 3], [1, 3, 2])
    assert few.value is not None
    assert few.low is None


@pytest.mark.parametrize("function", [spearman, kendall_tau])
def test_numbers_that_are_none_are_refused(function):
    with pytest.raises(ValueError, match="not of the same cases"):
        function([1, 2], [1])
    with pytest.raises(ValueError, match="finite"):
        function([1, math.nan], [1, 2])
