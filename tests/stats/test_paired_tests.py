"""Paired tests, effect sizes and detectable differences."""

import itertools
import math
import random
import statistics
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.stats import ttest_rel

from misslink.stats import holm, paired_difference
from misslink.stats.paired_tests import (
    cohens_dz,
    detectable_after_holm,
    mcnemar_test,
    paired_t,
    sign_flips,
    wilcoxon_test,
)

shares = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda pair: (pair[0] / 4, pair[1] / 4)),
    min_size=1,
    max_size=40,
)


def scipys(differences, **how):
    found = scipy_stats.permutation_test(
        (np.array(differences),), np.mean, permutation_type="samples", **how
    )
    return float(found.pvalue)


def test_the_difference_is_b_minus_a_over_the_cases_with_both_values():
    found = paired_difference([0.2, None, 0.5, 0.1], [0.4, 0.9, 0.8, None])
    assert found.difference.value == pytest.approx(0.25)
    assert found.difference.n == 2


def test_the_exact_p_is_scipys_where_every_size_differs():
    chance = random.Random(3)
    for n in (2, 5, 9, 13):
        differences = [chance.uniform(-0.4, 0.6) for _ in range(n)]
        zeros = [0.0] * 7  # cases that do not differ carry no sign
        found = paired_difference([0.4] * (n + 7), [0.4 + d for d in differences + zeros])
        assert found.p == pytest.approx(scipys(differences, n_resamples=np.inf), abs=1e-12)


@given(shares, st.sampled_from([0.9, 0.95, 0.99]))
def test_the_interval_includes_0_exactly_if_the_test_does_not_reject_it(pairs, level):
    found = paired_difference(*zip(*pairs, strict=True), level=level)
    low, value, high = (getattr(found.difference, end) for end in ("low", "value", "high"))
    assert low <= value <= high
    assert (low <= 0 <= high) == (found.p >= 1 - level)


def test_four_gains_in_46_cases_are_not_beyond_chance():
    found = paired_difference([0] * 46, [1] * 4 + [0] * 42)
    assert (found.p, found.difference.low) == (0.125, 0.0)
    assert found.difference.high == pytest.approx(0.19, abs=0.02)


def test_six_equal_gains_are_beyond_chance_although_the_bounds_allow_losses():
    found = paired_difference([0.2] * 6, [0.4, 0.4, 0.4, 0.4, 0.4, 0.5])
    assert found.p < 0.05
    assert 0 < found.difference.low < found.difference.value < found.difference.high


def test_the_exact_p_goes_through_every_flip_where_sizes_repeat():
    differences = [0.5, 0.5, -0.5, 0.25, 0.25, 0.25, -0.25, 1.0]
    flips = itertools.product([1, -1], repeat=len(differences))
    sums = [abs(sum(s * d for s, d in zip(flip, differences, strict=True))) for flip in flips]
    expected = sum(each >= abs(sum(differences)) - 1e-12 for each in sums) / len(sums)
    a = [0.0 if d > 0 else -d for d in differences]
    found = paired_difference(a, [x + d for x, d in zip(a, differences, strict=True)])
    assert found.p == pytest.approx(expected, abs=1e-15)


def test_the_p_of_yes_or_no_values_is_mcnemars_exact_one_however_many_differ():
    from statsmodels.stats.contingency_tables import mcnemar

    better, worse, same = 130, 95, 400
    a = [0] * better + [1] * worse + [1] * same
    b = [1] * better + [0] * worse + [1] * same
    theirs = mcnemar([[same, worse], [better, 0]], exact=True).pvalue
    assert paired_difference(a, b).p == pytest.approx(theirs, abs=1e-12)


def test_the_drawn_p_is_near_scipys_and_never_0():
    chance = random.Random(5)
    differences = [chance.gauss(0.05, 0.2) for _ in range(60)]
    found = paired_difference([0] * 60, differences, bounds=None)
    assert 0.005 < found.p < 0.3
    theirs = scipys(differences, n_resamples=20_000, rng=np.random.default_rng(1))
    # Five standard errors of two shares drawn 10,000 and 20,000 times.
    error = math.sqrt(found.p * (1 - found.p) * (1 / 10_000 + 1 / 20_000))
    assert found.p == pytest.approx(theirs, abs=5 * error)
    plain = paired_difference([0.1] * 60, [0.9 - i / 1000 for i in range(60)])
    assert plain.p == pytest.approx(1 / 10_001)


def test_what_could_be_detected_is_what_statsmodels_says_has_80_percent_power():
    from statsmodels.stats.power import TTestPower

    chance = random.Random(7)
    for n in (5, 20, 200):
        b = [chance.uniform(0, 1) for _ in range(n)]
        found = paired_difference([0.5] * n, b)
        effect = found.detectable / np.std(b, ddof=1)
        power = TTestPower().power(effect, n, 0.05, alternative="two-sided")
        assert power == pytest.approx(0.8, abs=1e-5)


def test_what_could_be_detected_after_holm_has_80_percent_power_at_the_level_that_is_left():
    from statsmodels.stats.power import TTestPower

    chance = random.Random(7)
    b = [chance.uniform(0, 1) for _ in range(30)]
    found = paired_difference([0.5] * 30, b)
    for ps, left in (([0.9] * 12, 12), ([0.01, 0.049, 0.05, None, 1.0], 2), ([0.01], 1)):
        effect = detectable_after_holm(found, ps) / np.std(b, ddof=1)
        power = TTestPower().power(effect, 30, 0.05 / left, alternative="two-sided")
        assert power == pytest.approx(0.8, abs=1e-5)
    assert detectable_after_holm(found, [0.4]) == found.detectable
    assert detectable_after_holm(paired_difference([0.5] * 9, [0.5] * 9), [1.0]) is None


def test_cases_that_do_not_differ_still_have_a_width_that_shrinks_with_their_number():
    few, many = (paired_difference([0.5] * n, [0.5] * n) for n in (10, 1000))
    for found in (few, many):
        assert (found.difference.value, found.p, found.detectable) == (0, 1.0, None)
        assert found.difference.low == -found.difference.high
    assert few.difference.high > 0.2
    assert 0 < many.difference.high < 0.01


def test_values_without_bounds_that_all_differ_alike_have_no_interval_and_say_so():
    found = paired_difference([10, 20], [15, 25], bounds=None)
    assert (found.difference.value, found.difference.low, found.p) == (5, None, 0.5)
    assert found.difference.reason_code.code == "equal_values"


def test_no_common_case_is_missing_not_0():
    for a, b in (([], []), ([None, 0.5], [0.5, None])):
        found = paired_difference(a, b)
        assert (found.difference.value, found.p, found.detectable) == (None, None, None)
        assert found.difference.reason_code.code == "no_shared_value"


@given(shares, st.randoms())
def test_swapping_the_systems_mirrors_and_the_order_of_cases_does_not_matter(pairs, chance):
    a, b = zip(*pairs, strict=True)
    found, mirrored = paired_difference(a, b, seed=2), paired_difference(b, a, seed=2)
    assert mirrored.difference.value == pytest.approx(-found.difference.value, abs=1e-12)
    assert mirrored.p == found.p
    assert found.difference.low <= found.difference.value <= found.difference.high
    assert found.difference.low < found.difference.high
    assert 0 < found.p <= 1
    chance.shuffle(pairs)
    assert paired_difference(*zip(*pairs, strict=True), seed=2) == found


def test_mistakes_of_the_caller_are_refused():
    with pytest.raises(ValueError, match="2 and 1 values are not of the same cases"):
        paired_difference([1, 0], [1])
    with pytest.raises(ValueError, match="finite"):
        paired_difference([math.nan], [1])
    with pytest.raises(ValueError, match=r"a value of 1\.5 is not within \(0\.0, 1\.0\)"):
        paired_difference([1.5], [1])


@pytest.mark.slow
def test_holm_is_that_of_statsmodels():
    from statsmodels.stats.multitest import multipletests

    chance = random.Random(11)
    for n in (1, 2, 7, 30):
        ps = [chance.choice([0.0, 1.0, 0.04, chance.random() ** 3]) for _ in range(n)]
        assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist())


def test_holm_does_not_count_tests_that_were_not_made():
    assert holm([None, 0.01, None]) == [None, 0.01, None]
    assert holm([]) == []
    with pytest.raises(ValueError, match=r"between 0 and 1, not 1\.2"):
        holm([1.2])


def scipys_randomisation(differences):
    found = scipy_stats.permutation_test(
        (np.array(differences),), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    return float(found.pvalue)


def test_the_p_of_a_dozen_is_scipys_to_the_last_digit():
    chance = random.Random(2)
    differences = [chance.uniform(-0.4, 0.6) for _ in range(12)]
    assert sign_flips(differences) == pytest.approx(scipys_randomisation(differences), abs=1e-12)


@pytest.mark.parametrize(("n", "shift"), [(199, 0.05), (300, 0.04), (3001, 0.012)])
def test_of_many_sizes_it_is_near_the_normal_limit_however_signs_are_drawn(n, shift):
    """199 sizes are drawn by counts, more of them eight at a time."""
    chance = random.Random(n)
    differences = [chance.gauss(shift, 0.4) for _ in range(n)]
    z = abs(sum(differences)) / np.sqrt(np.square(differences).sum())
    limit = 2 * scipy_stats.norm.sf(z)
    assert 0.01 < limit < 0.6
    assert sign_flips(differences) == pytest.approx(limit, abs=4 * np.sqrt(limit / 10_000) + 0.002)


def test_both_ways_of_drawing_agree_where_sizes_repeat(monkeypatch):
    chance = random.Random(9)
    differences = [chance.choice([-1, -1, 1, 1, 1]) * chance.randint(1, 60) / 64 for _ in range(99)]
    by_count = sign_flips(differences)
    monkeypatch.setattr("misslink.stats.paired_tests._MAX_DISTINCT_SIZES", 1)
    assert sign_flips(differences) == pytest.approx(by_count, abs=0.02)
    assert sign_flips(differences) != sign_flips(differences, seed=1)


def test_a_drawn_p_is_never_0_and_the_order_does_not_matter():
    chance = random.Random(5)
    differences = [0.5 + chance.random() / 4 for _ in range(500)]
    backwards = differences[::-1]
    assert sign_flips(differences) == sign_flips(backwards) == 1 / 10_001


def test_without_any_difference_p_is_1():
    assert sign_flips([]) == sign_flips([0.0, 0.0]) == 1.0


def test_ties_in_the_sum_count_as_extreme_also_eight_at_a_time():
    """600 equal differences of 0.1 are off 0 by 60: only all plus or all minus is as far."""
    sizes = [0.1 + number * 1e-6 for number in range(600)]
    assert sign_flips([*sizes, *(-size for size in sizes)]) == 1.0


@pytest.mark.parametrize(("gained", "lost"), [(6, 1), (0, 4), (5, 5), (3, 4), (40, 21), (0, 1)])
def test_p_is_that_of_statsmodels(gained, lost):
    """The cases that did not change, 10 and 20 here, do not count."""
    from statsmodels.stats.contingency_tables import mcnemar as oracle

    expected = oracle([[10, lost], [gained, 20]], exact=True).pvalue
    assert mcnemar_test(gained, lost).p == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("gained", "lost"), [(0, 3), (2, 5), (4, 4), (7, 2)])
def test_p_counts_every_fall_of_fair_coins(gained, lost):
    """Brute force: all 2^n ways in which the changed cases could have gone."""
    n = gained + lost
    falls = [abs(2 * sum(fall) - n) for fall in product((0, 1), repeat=n)]
    expected = sum(fall >= abs(gained - lost) for fall in falls) / len(falls)
    assert mcnemar_test(gained, lost).p == pytest.approx(expected, abs=1e-12)


def test_odds_have_the_exact_interval_of_the_share_that_gained():
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(6, 8, alpha=0.05, method="beta")
    odds = mcnemar_test(6, 2).odds
    assert odds.value == pytest.approx(3.0)
    assert odds.low == pytest.approx(low / (1 - low))
    assert odds.high == pytest.approx(high / (1 - high))
    assert odds.n == 8


def test_odds_of_nothing_gained_start_at_0():
    odds = mcnemar_test(0, 5).odds
    assert (odds.value, odds.low) == (0.0, 0.0)
    one_in_forty = 0.025 ** (1 / 5)  # (1 - share)^5 is 2.5%
    assert odds.high == pytest.approx((1 - one_in_forty) / one_in_forty)


def test_without_a_loss_there_are_no_odds_but_a_reason():
    found = mcnemar_test(4, 0)
    assert found.odds.value is None
    assert found.odds.reason_code.code == "no_loss_for_odds"
    assert found.p == pytest.approx(0.125)


def test_without_a_change_nothing_is_shown():
    found = mcnemar_test(0, 0)
    assert found.p == 1.0
    assert found.odds.reason_code.code == "no_change"


def test_many_changed_cases_neither_overflow_nor_take_the_p_below_0():
    assert 0 <= mcnemar_test(9_000, 1_000).p < 1e-300
    assert mcnemar_test(50_000, 50_000).p == 1.0


@pytest.mark.parametrize(("gained", "lost"), [(-1, 3), (3, -1)])
def test_a_negative_count_is_refused(gained, lost):
    with pytest.raises(ValueError, match="is not a share"):
        mcnemar_test(gained, lost)


quarters = st.lists(st.integers(-4, 4).map(lambda number: number / 4), max_size=60)


def scipys_wilcoxon(differences, **how):
    return scipy_stats.wilcoxon(differences, zero_method="wilcox", correction=False, **how)


@pytest.mark.parametrize("n", [1, 2, 5, 13, 50])
def test_without_ties_the_exact_p_is_scipys(n):
    chance = random.Random(n)
    differences = [chance.uniform(-0.4, 0.6) for _ in range(n)]
    found = wilcoxon_test(differences)
    theirs = scipys_wilcoxon(differences, method="exact")
    assert found.method == "exact"
    assert min(found.positive, found.negative) == theirs.statistic
    assert found.p == pytest.approx(theirs.pvalue, abs=1e-12)


def test_with_ties_the_exact_p_goes_through_every_outcome_as_scipys_permutations_do():
    differences = [0.5, 0.5, -0.5, 0.25, 0.25, 0.25, -0.25, 1.0, 0.0, 0.0]
    theirs = scipys_wilcoxon(
        [each for each in differences if each],
        method=scipy_stats.PermutationMethod(n_resamples=5000),
    )
    found = wilcoxon_test(differences)
    assert (found.n, found.method) == (8, "exact")
    assert found.p == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("step", [None, 10])
def test_of_many_differences_it_is_scipys_normal_approximation_corrected_for_ties(step):
    chance = random.Random(4)
    differences = [chance.gauss(0.05, 0.3) for _ in range(200)]
    if step:
        differences = [round(each * step) / step for each in differences]
    found = wilcoxon_test(differences)
    theirs = scipys_wilcoxon(differences, method="asymptotic")
    assert found.method == "normal"
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert min(found.positive, found.negative) == pytest.approx(theirs.statistic)


def test_exact_and_normal_meet_where_one_takes_over_from_the_other():
    chance = random.Random(7)
    differences = [chance.gauss(0.1, 0.3) for _ in range(50)]
    assert wilcoxon_test(differences).p == pytest.approx(
        scipys_wilcoxon(differences, method="asymptotic").pvalue, abs=5e-3
    )


@given(quarters, st.randoms())
def test_order_does_not_matter_and_the_other_direction_mirrors(differences, chance):
    shuffled = list(differences)
    chance.shuffle(shuffled)
    found, mirrored = wilcoxon_test(differences), wilcoxon_test([-each for each in differences])
    assert found == wilcoxon_test(shuffled)
    assert (found.positive, found.p) == (mirrored.negative, mirrored.p)
    if found.n:
        assert 0 < found.p <= 1
        assert found.effect == pytest.approx(-mirrored.effect)
        assert -1 <= found.effect <= 1


@pytest.mark.parametrize("differences", [[], [0.0, 0.0]])
def test_where_no_case_differs_there_is_no_test_and_it_says_so(differences):
    found = wilcoxon_test(differences)
    assert (found.p, found.effect, found.n) == (None, None, 0)
    assert found.reason == "no case differs"


def test_what_rounding_made_of_equal_sizes_is_one_size():
    assert wilcoxon_test([0.6 - 0.4, 0.4 - 0.2, -0.2]).positive == 4.0  # ranks 2, 2, 2


def test_a_missing_difference_is_refused():
    with pytest.raises(ValueError, match="finite"):
        wilcoxon_test([0.1, math.nan])


A = [0.2, 0.5, 0.5, 1.0, 0.0, 0.75, 0.3]
B = [0.4, 0.5, 0.7, 0.9, 0.6, 1.0, 0.1]
DIFFERENCES = [b - a for a, b in zip(A, B, strict=True)]


def test_t_is_that_of_scipy():
    expected = ttest_rel(B, A)
    found = paired_t(DIFFERENCES)
    assert found.t == pytest.approx(expected.statistic, abs=1e-12)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-12)
    assert found.df == expected.df


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=40).filter(
        lambda pairs: statistics.stdev([b - a for a, b in pairs]) > 1e-6
    )
)
def test_t_is_that_of_scipy_for_any_values(pairs):
    before, after = zip(*pairs, strict=True)
    expected = ttest_rel(after, before)
    found = paired_t([b - a for a, b in pairs])
    assert found.p == pytest.approx(expected.pvalue, abs=1e-9)


def test_d_z_is_t_over_the_root_of_n():
    t = paired_t(DIFFERENCES).t
    assert cohens_dz(DIFFERENCES).value == pytest.approx(t / math.sqrt(len(DIFFERENCES)))
    expected = statistics.mean(DIFFERENCES) / statistics.stdev(DIFFERENCES)
    assert cohens_dz(DIFFERENCES).value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("differences", "reason"),
    [
        ([], "fewer than two cases"),
        ([0.5], "fewer than two cases"),
        ([0, 0, 0], "no case differs"),
        ([0.6 - 0.4, 0.4 - 0.2, 0.2], "all cases differ by the same"),
    ],
)
def test_without_a_spread_there_is_neither_effect_nor_test(differences, reason):
    """Missing, and said why; never a division by 0, an infinity or a p of 0."""
    assert cohens_dz(differences).value is None
    assert reason in cohens_dz(differences).reason
    found = paired_t(differences)
    assert (found.t, found.p) == (None, None)
    assert reason in found.reason
