import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from misslink.stats import attributable_fraction

count = st.integers(0, 80)


def test_value_worked_by_hand():
    # P(bad) = 19 / 98, P(bad | hit) = 7 / 77: 1 - 7 * 98 / (77 * 19)
    estimate = attributable_fraction(12, 9, 7, 70)
    assert estimate.value == pytest.approx(1 - 686 / 1463)
    assert (estimate.n, estimate.method) == (98, "dirichlet")
    assert 0.2 < estimate.low < estimate.value < estimate.high < 0.8


def test_agrees_with_the_large_sample_interval_on_a_large_table():
    # Delta method: the log of P(bad | hit) / P(bad) is
    # log(hit_bad) - log(hits) - log(bad) + log(n), with these slopes in the cells.
    cells = (1800, 700, 1200, 6300)
    n, hits, bad = 10_000, 7_500, 3_000
    slope = {"miss_bad": -1 / bad, "hit_bad": 1 / 1200 - 1 / hits - 1 / bad, "hit_good": -1 / hits}
    counts = {"miss_bad": 1800, "hit_bad": 1200, "hit_good": 6300}
    # The slopes times the cells add up to -1, whatever the table.
    variance = sum(slope[name] ** 2 * counts[name] for name in slope) - 1 / n
    ratio = (1200 / hits) / (bad / n)
    error = ratio * variance**0.5
    estimate = attributable_fraction(*cells)
    assert estimate.value == pytest.approx(1 - ratio)
    assert estimate.low == pytest.approx(1 - ratio - 1.96 * error, abs=0.002)
    assert estimate.high == pytest.approx(1 - ratio + 1.96 * error, abs=0.002)


def test_negative_where_hits_go_worse_than_misses():
    estimate = attributable_fraction(1, 30, 20, 20)
    assert estimate.value < 0
    assert estimate.low < estimate.value < estimate.high


def test_all_bad_answers_after_misses_is_1_with_a_width():
    estimate = attributable_fraction(8, 2, 0, 40)
    assert (estimate.value, estimate.high) == (1.0, 1.0)
    assert estimate.low < 0.95


def test_no_misses_is_0_with_a_width():
    estimate = attributable_fraction(0, 0, 5, 20)
    assert estimate.value == 0
    assert estimate.low < 0 < estimate.high


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ((0, 0, 0, 0), "no cases"),
        ((0, 5, 0, 9), "no bad answer"),
        ((3, 5, 0, 0), "no case with a hit"),
    ],
)
def test_missing_says_why(cells, reason):
    estimate = attributable_fraction(*cells)
    assert (estimate.value, estimate.n) == (None, sum(cells))
    assert reason in estimate.reason


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="negative"):
        attributable_fraction(-1, 2, 3, 4)


@settings(deadline=None, max_examples=30)
@given(count, count, count.filter(bool), count)
def test_interval_holds_the_value_and_repeats_with_its_seed(a, b, c, d):
    estimate = attributable_fraction(a, b, c, d, seed=5)
    assert estimate == attributable_fraction(a, b, c, d, seed=5)
    assert estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.low < estimate.high
