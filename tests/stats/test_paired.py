import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from misslink.stats import holm, paired_difference
from misslink.stats.paired_tests import detectable_after_holm

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


def test_the_exact_p_goes_through_every_flip_where_sizes_repeat():
    differences = [0.5, 0.5, -0.5, 0.25, 0.25, 0.25, -0.25, 1.0]
    flips = itertools.product([1, -1], repeat=len(differences))
    sums = [abs(sum(s * d for s, d in zip(flip, differences, strict=True))) for flip in flips]
    expected = sum(each >= abs(sum(differences)) - 1e-12 for each in sums) / len(sums)
    a = [0.0 if d > 0 else -d for d in differences]
    found = paired_difference(a, [x + d for x, d in zip(a, differences, strict=True)])
    assert found.p == pytest.approx(expected, abs=1e-15)


def test_the_p_of_yes_or_no_values_is_mcnemars_exact_one_however_many_differ():
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
    chance = random.Random(7)
    for n in (5, 20, 200):
        b = [chance.uniform(0, 1) for _ in range(n)]
        found = paired_difference([0.5] * n, b)
        effect = found.detectable / np.std(b, ddof=1)
        power = TTestPower().power(effect, n, 0.05, alternative="two-sided")
        assert power == pytest.approx(0.8, abs=1e-5)


def test_what_could_be_detected_after_holm_has_80_percent_power_at_the_level_that_is_left():
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
    assert found.difference.reason == "all values are equal"


def test_no_common_case_is_missing_not_0():
    for a, b in (([], []), ([None, 0.5], [0.5, None])):
        found = paired_difference(a, b)
        assert (found.difference.value, found.p, found.detectable) == (None, None, None)
        assert found.difference.reason == "no case has a value in both"


@settings(deadline=None, max_examples=60)
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


def test_holm_is_that_of_statsmodels():
    chance = random.Random(11)
    for n in (1, 2, 7, 30):
        ps = [chance.choice([0.0, 1.0, 0.04, chance.random() ** 3]) for _ in range(n)]
        assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist())


def test_holm_does_not_count_tests_that_were_not_made():
    assert holm([None, 0.01, None]) == [None, 0.01, None]
    assert holm([]) == []
    with pytest.raises(ValueError, match=r"between 0 and 1, not 1\.2"):
        holm([1.2])
