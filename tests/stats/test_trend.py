import itertools

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import Table

from misslink.stats import trend_test


def permuted(groups):
    """P by going through every way to hand the bad answers to the cases."""
    places = [place for place, (_, n) in enumerate(groups) for _ in range(n)]
    bad = sum(count for count, _ in groups)
    middle = sum(places) / len(places) * bad
    observed = abs(sum(place * count for place, (count, _) in enumerate(groups)) - middle)
    ways = [
        abs(sum(chosen) - middle) >= observed - 1e-9
        for chosen in itertools.combinations(places, bad)
    ]
    return sum(ways) / len(ways)


@pytest.mark.parametrize(
    "groups",
    [
        [(3, 4), (2, 5), (1, 7)],
        [(0, 3), (2, 4), (2, 3)],
        [(1, 5), (0, 0), (4, 6)],
        [(2, 5), (1, 9)],
    ],
)
def test_small_groups_have_the_p_of_every_permutation(groups):
    found = trend_test(groups)
    assert found.method == "cochran-armitage, exact"
    assert found.p == pytest.approx(permuted(groups), abs=1e-12)


def test_two_groups_are_fishers_exact_test_where_the_tails_match():
    # Equal groups: the law is symmetric, and both tests add up the same tables.
    theirs = scipy_stats.fisher_exact([[12, 8], [5, 15]]).pvalue
    assert trend_test([(12, 20), (5, 20)]).p == pytest.approx(theirs)


def test_many_cases_have_the_p_of_statsmodels():
    groups = [(900, 2000), (1400, 3000), (2400, 5000)]
    counts = np.array([[bad, n - bad] for bad, n in groups])
    test = Table(counts, shift_zeros=False).test_ordinal_association(
        np.array([0, 1, 2]), np.array([1, 0])
    )
    found = trend_test(groups)
    assert found.method == "cochran-armitage"
    # Theirs has the multinomial variance, short of the permutation's by (n - 1) / n.
    assert found.p == pytest.approx(test.pvalue, rel=2e-3)
    assert 0.001 < found.p < 0.1


def test_the_slope_is_that_of_the_weighted_line_and_not_of_the_outer_groups():
    groups = [(0, 1), (40, 60), (10, 60)]
    found = trend_test(groups)
    places = np.repeat([0, 1, 2], [n for _, n in groups])
    bad = np.concatenate([[1] * count + [0] * (n - count) for count, n in groups])
    assert found.slope == pytest.approx(np.polyfit(places, bad, 1)[0])
    assert found.slope < 0 < 10 / 60 - 0 / 1
    assert trend_test([(3, 5)]).slope is None


def test_exact_and_normal_agree_where_they_meet():
    few, many = (
        trend_test([(100, 220), (180, 440), (230, 640)]),
        trend_test([(900, 2000), (2380, 5000)] * 2),
    )
    assert few.method != many.method
    counts = np.array([[100, 120], [180, 260], [230, 410]])
    theirs = Table(counts, shift_zeros=False).test_ordinal_association(
        np.array([0, 1, 2]), np.array([1, 0])
    )
    assert few.p == pytest.approx(theirs.pvalue, abs=0.003)


def test_the_direction_does_not_matter_and_an_even_risk_is_no_trend():
    groups = [(9, 12), (5, 11), (2, 14)]
    assert trend_test(groups).p == pytest.approx(trend_test(groups[::-1]).p)
    assert trend_test([(2, 10), (4, 20), (1, 5)]).p == pytest.approx(1)


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ([], "fewer than two groups have cases"),
        ([(3, 5), (0, 0)], "fewer than two groups have cases"),
        ([(0, 5), (0, 4)], "none of the 9 cases are bad"),
        ([(5, 5), (4, 4)], "all of the 9 cases are bad"),
    ],
)
def test_nothing_to_test_says_why(groups, reason):
    found = trend_test(groups)
    assert (found.p, found.reason) == (None, reason)


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="7 of 5 cases is not a share"):
        trend_test([(1, 5), (7, 5)])
