import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from misslink.stats.paired_tests import wilcoxon_test

quarters = st.lists(st.integers(-4, 4).map(lambda number: number / 4), max_size=60)


def scipys(differences, **how):
    return scipy_stats.wilcoxon(differences, zero_method="wilcox", correction=False, **how)


@pytest.mark.parametrize("n", [1, 2, 5, 13, 50])
def test_without_ties_the_exact_p_is_scipys(n):
    chance = random.Random(n)
    differences = [chance.uniform(-0.4, 0.6) for _ in range(n)]
    found = wilcoxon_test(differences)
    theirs = scipys(differences, method="exact")
    assert found.method == "exact"
    assert min(found.positive, found.negative) == theirs.statistic
    assert found.p == pytest.approx(theirs.pvalue, abs=1e-12)


def test_with_ties_the_exact_p_goes_through_every_outcome_as_scipys_permutations_do():
    differences = [0.5, 0.5, -0.5, 0.25, 0.25, 0.25, -0.25, 1.0, 0.0, 0.0]
    theirs = scipys(
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
    theirs = scipys(differences, method="asymptotic")
    assert found.method == "normal"
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert min(found.positive, found.negative) == pytest.approx(theirs.statistic)


def test_exact_and_normal_meet_where_one_takes_over_from_the_other():
    chance = random.Random(7)
    differences = [chance.gauss(0.1, 0.3) for _ in range(50)]
    assert wilcoxon_test(differences).p == pytest.approx(
        scipys(differences, method="asymptotic").pvalue, abs=5e-3
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
