"""Kappa and AC1 against scikit-learn, statsmodels, irrCAC and tables worked out by others."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa

from misslink.stats.agreement import cohen_kappa, cross_table, gwet_ac1


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
@pytest.mark.parametrize("seed", range(3))
def test_kappa_is_that_of_scikit_learn(weights, seed):
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 4, 70)
    second = (first + generator.integers(0, 2, 70)) % 4
    categories, table = cross_table(first.tolist(), second.tolist())
    expected = cohen_kappa_score(first, second, weights=None if weights == "none" else weights)
    assert categories == [0, 1, 2, 3]
    assert cohen_kappa(table, weights=weights).value == pytest.approx(expected)


def test_with_many_cases_the_interval_is_the_large_sample_one_of_statsmodels():
    table = [[4000, 500], [300, 1200]]
    oracle = cohens_kappa(table)
    found = cohen_kappa(table)
    assert found.low == pytest.approx(oracle.kappa_low, abs=0.002)
    assert found.high == pytest.approx(oracle.kappa_upp, abs=0.002)


def test_ac1_is_that_of_irr_cac():
    # irrCAC 0.4.4, CAC(frame).gwet() on the same ratings
    assert gwet_ac1([[10, 2, 1], [3, 20, 4], [0, 5, 15]]).value == pytest.approx(0.6325, abs=5e-5)
    found = gwet_ac1([[118, 5], [2, 0]])
    assert found.value == pytest.approx(0.94078, abs=5e-6)
    assert found.low == pytest.approx(0.89514, abs=0.02)
    assert found.high == pytest.approx(0.98641, abs=0.02)


def test_perfect_agreement_still_leaves_doubt():
    for found in (cohen_kappa([[10, 0], [0, 10]]), gwet_ac1([[10, 0], [0, 10]])):
        assert (found.value, found.high) == (1.0, 1.0)
        assert 0.6 < found.low < 0.95


def test_one_category_has_no_kappa_and_ac1_is_full():
    found = cohen_kappa([[20, 0], [0, 0]])
    assert (found.value, found.n) == (None, 20)
    assert "one and the same category" in found.reason
    assert gwet_ac1([[20, 0], [0, 0]]).value == 1.0


@pytest.mark.parametrize("function", [cohen_kappa, gwet_ac1])
def test_no_cases_are_missing(function):
    found = function([[0, 0], [0, 0]])
    assert (found.value, found.n) == (None, 0)
    assert found.reason


@pytest.mark.parametrize("function", [cohen_kappa, gwet_ac1])
def test_a_table_that_is_none_is_refused(function):
    with pytest.raises(ValueError, match="as many columns as rows"):
        function([[1, 2]])
    with pytest.raises(ValueError, match="negative"):
        function([[1, 2], [-1, 0]])


def test_unrated_cases_are_left_out_and_unlike_categories_keep_their_order():
    assert cross_table(["b", "a", None], ["b", "b", "a"]) == (["a", "b"], [[0, 1], [0, 1]])
    assert cross_table(["x", 1], [1, 1]) == (["x", 1], [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="not of the same cases"):
        cross_table([1], [])


def test_the_seed_decides_the_interval():
    table = [[20, 5], [3, 12]]
    assert cohen_kappa(table, seed=4) == cohen_kappa(table, seed=4)
    assert cohen_kappa(table, seed=4).low != cohen_kappa(table, seed=5).low
