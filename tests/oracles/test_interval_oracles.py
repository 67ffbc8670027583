"""Intervals held against statsmodels and SciPy."""

import itertools
import random

import numpy as np
import pytest
from scipy import special
from scipy import stats as scipy_stats

from misslink.stats import mean, proportion
from misslink.stats.association import pooled_risk_ratio, risk_difference

COUNTS = [(0, 7), (1, 9), (5, 12), (30, 31), (40, 40), (333, 1000)]


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize(("successes", "n"), COUNTS)
def test_wilson_is_that_of_statsmodels(successes, n, level):
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    estimate = proportion(successes, n, level=level)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(COUNTS, COUNTS)))
def test_newcombe_is_that_of_statsmodels(first, second):
    from statsmodels.stats.proportion import confint_proportions_2indep

    low, high = confint_proportions_2indep(*first, *second, method="newcomb", compare="diff")
    estimate = risk_difference(*first, *second)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(COUNTS[1:4], COUNTS[1:4])))
def test_the_pooled_ratio_of_one_stratum_is_that_of_statsmodels(first, second):
    from statsmodels.stats.contingency_tables import Table2x2

    (a, n1), (b, n2) = first, second
    table = Table2x2(np.array([[a, n1 - a], [b, n2 - b]]))
    estimate = pooled_risk_ratio(np.array([[a, n1 - a, b, n2 - b]], dtype=float))
    assert estimate.value == pytest.approx(table.riskratio)
    assert (estimate.low, estimate.high) == pytest.approx(table.riskratio_confint())


def test_bootstrap_within_bounds_is_the_jeffreys_interval_where_values_are_almost_yes_or_no():
    # 14 values next to 1 and 6 next to 0 have the posterior Beta(14.5, 6.5).
    values = [0.99999] * 7 + [0.99998] * 7 + [0.00001] * 6
    low, high = special.betaincinv(14.5, 6.5, [0.025, 0.975])
    estimate = mean(values)
    assert estimate.method == "bootstrap"
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.006)


def test_bootstrap_without_bounds_is_scipys_percentile_interval_at_the_widened_level():
    chance = random.Random(1)
    values = [chance.lognormvariate(0, 1) for _ in range(25)]
    # Hesterberg (2015): the tail that a normal would need for t's quantile and the short variance.
    tail = scipy_stats.norm.cdf(np.sqrt(25 / 24) * scipy_stats.t.ppf(0.025, 24))
    theirs = scipy_stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=1 - 2 * tail,
        method="percentile",
        n_resamples=20_000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    estimate = mean(values, bounds=None)
    assert (estimate.low, estimate.high) == pytest.approx((theirs.low, theirs.high), abs=0.04)
