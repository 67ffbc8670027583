"""Firth's logistic regression against closed forms, an oracle and a plain maximisation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from misslink.stats.logistic_regression import firth_regression

CHI2_95 = 3.841458820694124


def test_a_two_by_two_table_gives_the_log_odds_ratio_with_half_a_case_more():
    outcome = [1] * 12 + [0] * 5 + [1] * 3 + [0] * 20
    number = [1] * 17 + [0] * 23
    found = firth_regression(outcome, number)
    expected = math.log((12.5 * 20.5) / (5.5 * 3.5))
    assert found.coefficient.value / np.std(number) == pytest.approx(expected, abs=1e-4)


def test_many_cases_give_what_maximum_likelihood_gives():
    sm = pytest.importorskip("statsmodels.api")
    generator = np.random.default_rng(5)
    x, other = generator.normal(size=4000), generator.normal(size=4000)
    y = generator.random(4000) < 1 / (1 + np.exp(1 - 0.4 * x - other))
    found = firth_regression(y.tolist(), x.tolist(), [other.tolist()])
    design = sm.add_constant(np.column_stack([(x - x.mean()) / x.std(), other]))
    oracle = sm.Logit(y.astype(float), design).fit(disp=0)
    assert found.coefficient.value == pytest.approx(oracle.params[1], abs=2e-3)
    assert [found.coefficient.low, found.coefficient.high] == pytest.approx(
        list(oracle.conf_int()[1]), abs=4e-3
    )


def test_the_ends_are_where_the_penalised_likelihood_has_dropped():
    from scipy.optimize import minimize

    x = np.array([0.1, 0.5, 0.9, 1.3, 2.0, 2.2, 3.1, 3.3, 4.0, 4.1])
    y = np.array([0, 0, 1, 0, 0, 1, 0, 1, 1, 1])
    z = (x - x.mean()) / x.std()

    def loss(intercept, slope):
        line = intercept + slope * z
        chance = 1 / (1 + np.exp(-line))
        design = np.column_stack([np.ones(10), z])
        information = design.T @ (design * (chance * (1 - chance))[:, None])
        likelihood = (y * line - np.logaddexp(0, line)).sum()
        return -(likelihood + np.linalg.slogdet(information)[1] / 2)

    best = minimize(lambda at: loss(*at), [0, 0], method="Nelder-Mead", options={"xatol": 1e-9})
    found = firth_regression(y.tolist(), x.tolist()).coefficient
    assert found.value == pytest.approx(best.x[1], abs=1e-3)
    for end in (found.low, found.high):
        profile = minimize(lambda at, end=end: loss(at[0], end), [0.0], method="Nelder-Mead")
        assert 2 * (profile.fun - best.fun) == pytest.approx(CHI2_95, abs=1e-2)


def test_full_separation_has_a_finite_value_and_an_interval_off_zero():
    found = firth_regression([0] * 10 + [1] * 10, list(range(20)))
    assert 0 < found.coefficient.low < found.coefficient.value < 20
    assert found.p < 1e-4


def test_turning_the_outcome_turns_the_sign():
    x, y = [1, 2, 3, 4, 5, 6], [0, 1, 0, 1, 1, 1]
    one, other = (
        firth_regression(y, x).coefficient,
        firth_regression([1 - each for each in y], x).coefficient,
    )
    assert one.value == pytest.approx(-other.value)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-4)


@pytest.mark.parametrize(
    ("outcome", "number", "others", "reason"),
    [
        ([], [], (), "no case"),
        ([1, 1, 1], [1, 2, 3], (), "the outcome is the same"),
        ([1, 0, 1], [2, 2, 2], (), "the number is the same"),
        ([1, 0, 1, 0], [1, 2, 3, 4], ([2, 4, 6, 8],), "goes fully with another"),
    ],
)
def test_what_cannot_be_fitted_is_missing_and_says_why(outcome, number, others, reason):
    found = firth_regression(outcome, number, others)
    assert (found.coefficient.value, found.p) == (None, None)
    assert reason in found.coefficient.reason


def test_other_lengths_are_refused():
    with pytest.raises(ValueError, match="not of the same cases"):
        firth_regression([1, 0], [1])


@pytest.mark.slow
def test_the_interval_holds_the_true_slope_in_95_of_100_samples():
    generator = np.random.default_rng(11)
    held = 0
    for _ in range(1000):
        x = generator.normal(size=60)
        y = generator.random(60) < 1 / (1 + np.exp(1.5 - 0.8 * x))
        if y.any() and not y.all():
            found = firth_regression(y.tolist(), x.tolist()).coefficient
            held += found.low / x.std() <= 0.8 <= found.high / x.std()
    assert 930 <= held <= 970
