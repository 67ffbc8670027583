import numpy as np
import pytest
from scipy import optimize
from scipy import stats as scipy_stats

from misslink.stats import heterogeneity_test
from misslink.stats.stratified_association import (
    _common_difference_risks,
    cochran_q,
    mantel_haenszel_difference,
)

LARGE = [(300, 700, 200, 800), (260, 740, 120, 880), (500, 500, 330, 670)]


def test_large_strata_have_the_p_of_cochrans_q():
    q = float(cochran_q(np.array(LARGE, dtype=float)))
    theirs = scipy_stats.chi2.sf(q, 2)
    assert 0.02 < theirs < 0.5
    assert heterogeneity_test(LARGE) == pytest.approx(theirs, abs=0.03)


def test_opposite_strata_disagree_and_like_ones_do_not():
    assert heterogeneity_test([(18, 2, 2, 18), (2, 18, 18, 2)]) < 0.001
    assert heterogeneity_test([(18, 2, 2, 18), (17, 3, 3, 17)]) > 0.5
    assert heterogeneity_test([(0, 9, 0, 9), (0, 5, 0, 5)]) == 1
    assert heterogeneity_test([(9, 0, 0, 9), (5, 0, 0, 5)]) == 1


def test_it_errs_no_more_often_than_it_says_in_small_strata():
    generator = np.random.default_rng(1)
    quiet = 0
    for _ in range(200):
        after_hit = np.array([0.1, 0.3, 0.5, 0.6])
        a, b = generator.binomial(6, after_hit + 0.3), generator.binomial(9, after_hit)
        strata = [tuple(map(int, each)) for each in np.stack([a, 6 - a, b, 9 - b], axis=1)]
        quiet += heterogeneity_test(strata, draws=400) >= 0.05
    assert quiet >= 181  # 190 expected; fewer come about once in 300 times


def test_the_risks_it_draws_from_are_the_likeliest_with_one_difference():
    cells = np.array([(8, 12, 2, 18), (3, 7, 4, 26)], dtype=float)
    apart = float(mantel_haenszel_difference(cells))
    hit, miss = _common_difference_risks(cells)
    for row, risk, other in zip(cells, hit, miss, strict=True):

        def loss(q, row=row):
            p = q + apart
            chances = np.array([p, 1 - p, q, 1 - q])
            return -float(row @ np.log(chances))

        best = optimize.minimize_scalar(loss, bounds=(1e-9, 1 - apart - 1e-9), method="bounded")
        assert risk == pytest.approx(best.x, abs=1e-4)
        assert other == pytest.approx(risk + apart)


def test_one_stratum_agrees_with_itself_so_nothing_is_tested():
    assert heterogeneity_test([(3, 4, 5, 6), (1, 1, 0, 0)]) is None
    assert heterogeneity_test([]) is None


def test_the_same_seed_gives_the_same_p():
    strata = [(5, 5, 2, 8), (3, 9, 4, 5)]
    assert heterogeneity_test(strata, seed=3) == heterogeneity_test(strata, seed=3)
    assert heterogeneity_test(strata, seed=3) != heterogeneity_test(strata, seed=4)
