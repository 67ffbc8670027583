import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from misslink.stats import risk_difference, risk_ratio

group = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_newcombes_own_example():
    # Newcombe (1998), table II, method 10, contrasts (a), (d) and (h).
    estimate = risk_difference(56, 70, 48, 80)
    assert (round(estimate.low, 4), round(estimate.high, 4)) == (0.0524, 0.3339)
    estimate = risk_difference(5, 56, 0, 29)
    assert (round(estimate.low, 4), round(estimate.high, 4)) == (-0.0381, 0.1926)
    estimate = risk_difference(10, 10, 0, 10)
    assert (estimate.value, round(estimate.low, 4), estimate.high) == (1.0, 0.6075, 1.0)


@settings(deadline=None)
@given(group, group)
def test_difference_holds_its_value_and_mirrors_when_the_groups_are_swapped(first, second):
    estimate, swapped = risk_difference(*first, *second), risk_difference(*second, *first)
    assert -1 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.low < estimate.high
    assert estimate.low == pytest.approx(-swapped.high, abs=1e-12)


def test_ratio_worked_by_hand():
    # 0.6 / 0.1; standard error of the log sqrt(1/12 - 1/20 + 1/5 - 1/50) = 0.46188
    estimate = risk_ratio(12, 20, 5, 50)
    assert (estimate.value, estimate.n, estimate.method) == (6.0, 70, "katz")
    assert estimate.low == pytest.approx(2.4266, abs=1e-3)
    assert estimate.high == pytest.approx(14.835, abs=1e-2)


@settings(deadline=None)
@given(group, group.filter(lambda counts: counts[0] > 0))
def test_ratio_holds_its_value_and_never_pretends_certainty(first, second):
    estimate = risk_ratio(*first, *second)
    assert 0 <= estimate.low <= estimate.value <= estimate.high
    assert estimate.low < estimate.high


def test_ratio_of_two_certainties_still_has_a_width():
    estimate = risk_ratio(5, 5, 4, 4)
    assert (estimate.value, estimate.method) == (1.0, "katz +0.5")
    assert estimate.low < 0.8
    assert estimate.high > 1.25


def test_ratio_of_nothing_to_something_starts_at_0():
    estimate = risk_ratio(0, 10, 5, 10)
    assert (estimate.value, estimate.low) == (0, 0)
    assert 0.1 < estimate.high < 2


def test_ratio_to_nothing_is_missing_and_says_why():
    assert "none of the 30 cases" in risk_ratio(4, 10, 0, 30).reason
    assert risk_ratio(0, 10, 0, 30).value is None


@pytest.mark.parametrize("compare", [risk_difference, risk_ratio])
def test_an_empty_group_is_missing_and_named(compare):
    assert compare(0, 0, 1, 5).reason == "no cases in the first group"
    assert compare(1, 5, 0, 0).reason == "no cases in the second group"
    assert compare(0, 0, 0, 0).reason == "no cases"
    assert compare(1, 5, 0, 0).n == 5


@pytest.mark.parametrize("compare", [risk_difference, risk_ratio])
def test_counts_that_cannot_be_are_refused_even_where_the_other_group_is_fine(compare):
    with pytest.raises(ValueError, match="7 of 5 cases is not a share"):
        compare(1, 5, 7, 5)
