"""Associations pooled over strata."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import StratifiedTable

from misslink.stats.association import attributable_fraction, risk_difference, risk_ratio
from misslink.stats.stratified_association import (
    _common_difference_risks,
    cochran_q,
    heterogeneity_test,
    mantel_haenszel,
    mantel_haenszel_difference,
    miettinen_fraction,
    pooled_risk_difference,
    pooled_risk_ratio,
)

table = st.tuples(*[st.integers(0, 25)] * 4)
UGDP = [(8, 98, 5, 115), (22, 76, 16, 69)]  # deaths by age, University Group Diabetes Program


def test_the_textbook_example_of_two_age_strata():
    # Rothman and Greenland, Modern epidemiology: 0.035 and 1.33.
    found = mantel_haenszel(UGDP)
    weights = 106 * 120 / 226 + 98 * 85 / 183
    difference = ((8 * 120 - 5 * 106) / 226 + (22 * 85 - 16 * 98) / 183) / weights
    ratio = (8 * 120 / 226 + 22 * 85 / 183) / (5 * 106 / 226 + 16 * 98 / 183)
    assert found.risk_difference.value == pytest.approx(difference)
    assert found.risk_ratio.value == pytest.approx(ratio)
    assert (round(difference, 3), round(ratio, 2)) == (0.035, 1.33)
    assert found.attributable_fraction.value == pytest.approx(30 / 51 * (1 - 1 / ratio))
    assert (found.risk_ratio.n, found.used, found.left_out) == (409, 2, 0)


def test_the_pooled_ratio_is_that_of_statsmodels():
    tables = [np.array(each).reshape(2, 2) for each in UGDP]
    theirs = StratifiedTable(tables).riskratio_pooled
    assert mantel_haenszel(UGDP).risk_ratio.value == pytest.approx(theirs)


def test_the_variances_are_those_of_repetition():
    # Many large tables: the spread of the pooled values is what the intervals claim.
    generator = np.random.default_rng(2)
    misses, hits = np.array([60, 150, 40]), np.array([200, 100, 90])
    after_hit = np.array([0.1, 0.2, 0.4])
    differences, logs, widths, log_widths = [], [], [], []
    for _ in range(400):
        a, b = generator.binomial(misses, after_hit * 1.6), generator.binomial(hits, after_hit)
        strata = np.stack([a, misses - a, b, hits - b], axis=1)
        difference = pooled_risk_difference(strata.astype(float))
        ratio = pooled_risk_ratio(strata.astype(float))
        differences.append(difference.value)
        logs.append(np.log(ratio.value))
        widths.append(difference.high - difference.low)
        log_widths.append(np.log(ratio.high / ratio.low))
    assert np.mean(widths) == pytest.approx(2 * 1.96 * np.std(differences), rel=0.12)
    assert np.mean(log_widths) == pytest.approx(2 * 1.96 * np.std(logs), rel=0.12)


@pytest.mark.parametrize("cells", [(12, 9, 7, 70), (0, 9, 7, 70), (9, 0, 7, 3), (5, 0, 4, 0)])
def test_one_stratum_is_the_crude_table(cells):
    a, b, c, d = cells
    found = mantel_haenszel([cells])
    katz = risk_ratio(a, a + b, c, c + d)
    assert (found.risk_ratio.value, found.risk_ratio.low, found.risk_ratio.high) == pytest.approx(
        (katz.value, katz.low, katz.high)
    )
    newcombe = risk_difference(a, a + b, c, c + d)
    assert found.risk_difference.value == pytest.approx(newcombe.value)
    crude = attributable_fraction(*cells)
    ours = found.attributable_fraction
    assert ours.value == pytest.approx(crude.value, abs=1e-12)
    assert (ours.low, ours.high) == pytest.approx((crude.low, crude.high), abs=0.03)


def test_adjusting_removes_what_only_the_categories_bring_about():
    # Within each category misses go as hits do; all together they seem twice as bad.
    strata = [(2, 18, 8, 72), (40, 40, 10, 10)]
    crude = attributable_fraction(42, 58, 18, 82)
    found = mantel_haenszel(strata)
    assert crude.low > 0.1
    assert found.risk_difference.value == pytest.approx(0)
    assert found.risk_ratio.value == pytest.approx(1)
    assert found.attributable_fraction.value == pytest.approx(0)
    assert found.attributable_fraction.low < 0 < found.attributable_fraction.high


def test_a_stratum_with_an_empty_row_adds_nothing_and_is_counted():
    without = mantel_haenszel(UGDP)
    found = mantel_haenszel([*UGDP, (9, 9, 0, 0), (0, 0, 4, 1), (0, 0, 0, 0)])
    assert found.left_out == 3
    assert found.risk_ratio == without.risk_ratio
    assert found.risk_difference == without.risk_difference
    assert found.attributable_fraction == without.attributable_fraction


def test_no_bad_answer_still_has_a_width():
    found = mantel_haenszel([(0, 8, 0, 8), (0, 5, 0, 5)])
    assert found.risk_difference.value == 0
    assert found.risk_difference.low < -0.05 < 0.05 < found.risk_difference.high
    assert found.risk_ratio.value is None
    assert "no hit is bad" in found.risk_ratio.reason
    assert found.attributable_fraction.reason == "no bad answer to attribute"


def test_no_bad_miss_is_the_limit_of_few():
    few = np.array([(1e-9, 20, 5, 30), (3e-9, 40, 6, 20)])
    none = np.array([(0, 20, 5, 30), (0, 40, 6, 20)], dtype=float)
    assert miettinen_fraction(none) < 0
    # The limit is along tables with one ratio; scale the misses to have it.
    few[:, 0] = 1e-9 * few[:, 1] * few[:, 2] / (few[:, 2] + few[:, 3])
    assert miettinen_fraction(none) == pytest.approx(miettinen_fraction(few), rel=1e-6)


def test_nothing_to_compare_says_why():
    found = mantel_haenszel([(3, 4, 0, 0)])
    assert found.risk_difference.reason == "no stratum has both misses and hits"
    assert (found.used, found.left_out) == (0, 1)
    assert mantel_haenszel([]).risk_ratio.reason == "no strata"
    with pytest.raises(ValueError, match="negative"):
        mantel_haenszel([(1, 2, -1, 4)])


@settings(deadline=None, max_examples=25)
@given(st.lists(table, min_size=1, max_size=5), st.randoms())
def test_every_interval_holds_its_value_has_a_width_and_knows_no_order(strata, chance):
    found = mantel_haenszel(strata, seed=4)
    assume(found.used)
    for estimate, low, high in (
        (found.risk_difference, -1, 1),
        (found.risk_ratio, 0, np.inf),
        (found.attributable_fraction, -np.inf, 1),
    ):
        if estimate.value is not None:
            assert low <= estimate.low <= estimate.value <= estimate.high <= high
            assert estimate.low < estimate.high
    shuffled = list(strata)
    chance.shuffle(shuffled)
    again = mantel_haenszel(shuffled, seed=4)
    assert again.risk_difference.value == pytest.approx(found.risk_difference.value)
    assert again.risk_difference.high == pytest.approx(found.risk_difference.high)


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
