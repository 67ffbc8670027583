import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from misslink.stats import proportion


def test_eight_of_ten_worked_by_hand():
    # z = 1.96: centre (0.8 + 0.19207) / 1.38415 = 0.71674, half 0.22659
    estimate = proportion(8, 10)
    assert (estimate.value, estimate.n, estimate.method) == (0.8, 10, "wilson")
    assert estimate.low == pytest.approx(0.49016, abs=1e-4)
    assert estimate.high == pytest.approx(0.94331, abs=1e-4)


def test_no_cases_are_missing_and_say_why():
    estimate = proportion(0, 0)
    assert (estimate.value, estimate.low, estimate.high, estimate.n) == (None, None, None, 0)
    assert estimate.reason == "no cases"


@settings(deadline=None)
@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_interval_has_a_width_and_holds_the_value_within_0_and_1(counts):
    estimate = proportion(*counts)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.high - estimate.low > 0.005


@pytest.mark.parametrize("counts", [(-1, 3), (4, 3), (0, -1)])
def test_counts_that_cannot_be_are_refused(counts):
    with pytest.raises(ValueError, match="is not a share"):
        proportion(*counts)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_that_is_none_is_refused(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        proportion(1, 2, level=level)


def test_a_higher_level_is_wider():
    usual, higher = proportion(3, 9), proportion(3, 9, level=0.99)
    assert higher.low < usual.low
    assert usual.high < higher.high
