"""Effect sizes and the paired t-test, held against scipy and statsmodels."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from misslink.stats.paired_tests import cohens_dz, paired_t

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
