"""McNemar's exact test, held against statsmodels and against every fall of the coins."""

from __future__ import annotations

from itertools import product

import pytest
from statsmodels.stats.contingency_tables import mcnemar as oracle
from statsmodels.stats.proportion import proportion_confint

from misslink.stats.paired_tests import mcnemar_test


@pytest.mark.parametrize(("gained", "lost"), [(6, 1), (0, 4), (5, 5), (3, 4), (40, 21), (0, 1)])
def test_p_is_that_of_statsmodels(gained, lost):
    """The cases that did not change, 10 and 20 here, do not count."""
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
    low, high = proportion_confint(6, 8, alpha=0.05, method="beta")
    odds = mcnemar_test(6, 2).odds
    assert odds.value == pytest.approx(3.0)
    assert odds.low == pytest.approx(low / (1 - low))
    assert odds.high == pytest.approx(high / (1 - high))
    assert odds.n == 8


def test_odds_of_nothing_gained_start_at_0():
    odds = mcnemar_test(0, 5).odds
    assert (odds.value, odds.low) == (0.0, 0.0)
    one_in_forty = 0.025 ** (1 / 5)  # (1 - share)^5 is 2.5 %
    assert odds.high == pytest.approx((1 - one_in_forty) / one_in_forty)


def test_without_a_loss_there_are_no_odds_but_a_reason():
    found = mcnemar_test(4, 0)
    assert found.odds.value is None
    assert found.odds.reason == "no case turned to no, so there are no odds"
    assert found.p == pytest.approx(0.125)


def test_without_a_change_nothing_is_shown():
    found = mcnemar_test(0, 0)
    assert found.p == 1.0
    assert found.odds.reason == "no case changed"


def test_many_changed_cases_neither_overflow_nor_take_the_p_below_0():
    assert 0 <= mcnemar_test(9_000, 1_000).p < 1e-300
    assert mcnemar_test(50_000, 50_000).p == 1.0


@pytest.mark.parametrize(("gained", "lost"), [(-1, 3), (3, -1)])
def test_a_negative_count_is_refused(gained, lost):
    with pytest.raises(ValueError, match="is not a share"):
        mcnemar_test(gained, lost)
