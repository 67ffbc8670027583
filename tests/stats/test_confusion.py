"""Every rate of the 2 x 2 table against scikit-learn, its interval against the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from statsmodels.stats.proportion import proportion_confint

from misslink.stats.classification import ConfusionMatrix, ErrorRates, confusion_matrix
from misslink.stats.intervals import proportion
from misslink.types import Estimate


def test_every_rate_is_that_of_scikit_learn():
    generator = np.random.default_rng(2)
    labels = generator.random(90) < 0.7
    calls = np.where(generator.random(90) < 0.8, labels, ~labels)
    found = confusion_matrix(labels.tolist(), calls.tolist()).estimates()
    expected = {
        "kappa": metrics.cohen_kappa_score(labels, calls),
        "accuracy": metrics.accuracy_score(labels, calls),
        "sensitivity": metrics.recall_score(labels, calls),
        "recall": metrics.recall_score(labels, calls),
        "specificity": metrics.recall_score(~labels, ~calls),
        "precision": metrics.precision_score(labels, calls),
        "f1": metrics.f1_score(labels, calls),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, calls),
    }
    assert {*found} == {*expected, "gwet_ac1"}
    for name, value in expected.items():
        assert found[name].value == pytest.approx(value), name


def test_f1_about_the_bad_label_is_that_of_the_turned_table():
    labels, calls = [1, 1, 1, 0, 0, 1], [1, 0, 1, 0, 1, 1]
    found = confusion_matrix(labels, calls).turned
    assert found.f1.value == pytest.approx(metrics.f1_score(labels, calls, pos_label=0))
    assert found.turned == confusion_matrix(labels, calls)


def test_f1_interval_is_wilsons_of_the_share_found_by_both():
    # J = 40 / 60, F1 = 2 J / (1 + J) = 0.8; statsmodels gives the Wilson ends of J
    found = ConfusionMatrix(40, 8, 12, 100).f1
    low, high = proportion_confint(40, 60, method="wilson")
    assert found.value == pytest.approx(0.8)
    assert found.low == pytest.approx(2 * low / (1 + low))
    assert found.high == pytest.approx(2 * high / (1 + high))


def test_balanced_accuracy_adds_both_wilson_intervals_in_squares():
    found = ConfusionMatrix(45, 5, 30, 70).balanced_accuracy
    ends = [proportion_confint(k, n, method="wilson") for k, n in ((45, 50), (70, 100))]
    assert found.value == pytest.approx(0.8)
    assert found.low == pytest.approx(0.8 - math.hypot(0.9 - ends[0][0], 0.7 - ends[1][0]) / 2)
    assert found.high == pytest.approx(0.8 + math.hypot(ends[0][1] - 0.9, ends[1][1] - 0.7) / 2)


def test_without_a_positive_case_only_what_needs_none_is_left():
    found = confusion_matrix([0, 0, 0], [0, 1, 0]).estimates()
    missing = {name for name, estimate in found.items() if estimate.value is None}
    assert missing == {"sensitivity", "recall", "f1", "balanced_accuracy"}
    assert found["f1"].reason == "no case has the positive label"
    assert found["specificity"].value == pytest.approx(2 / 3)


def test_without_a_negative_case_specificity_says_why():
    found = confusion_matrix([1, 1], [0, 0])
    assert found.specificity.reason == "no case has the negative label"
    assert found.precision.reason == "the judge calls no case positive"
    assert found.f1.value == 0.0
    assert found.balanced_accuracy.reason == "no case has the negative label"


def test_no_cases_are_missing_throughout():
    assert {e.value for e in confusion_matrix([], []).estimates().values()} == {None}


@settings(deadline=None, max_examples=40)
@given(st.tuples(*[st.integers(0, 60)] * 4))
def test_every_interval_holds_its_value_within_the_bounds(cells):
    for name, estimate in ConfusionMatrix(*cells).estimates().items():
        if estimate.value is not None:
            assert -1 <= estimate.low <= estimate.value <= estimate.high <= 1, name
            assert estimate.high > estimate.low, name


@pytest.mark.parametrize("wrong", [([1], []), ([2], [1]), ([1], [0.4]), (["yes"], [1])])
def test_labels_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match=r"pair up|0 or 1"):
        confusion_matrix(*wrong)


def test_a_negative_count_is_refused():
    with pytest.raises(ValueError, match="negative"):
        ConfusionMatrix(1, -1, 0, 0)


def test_rates_without_their_table_rest_on_the_labels_of_both():
    rates = ErrorRates(proportion(8, 10), Estimate.missing("no case has the negative label"))
    assert rates.n == 10
    assert rates.balanced_accuracy.value is None
    assert rates.balanced_accuracy.reason == "no case has the negative label"
    table = ConfusionMatrix(true_positive=8, false_negative=2, false_positive=3, true_negative=9)
    known = ErrorRates(table.sensitivity, table.specificity, labels=30)
    assert (known.n, known.balanced_accuracy.n) == (30, 30)
    assert known.balanced_accuracy.value == pytest.approx((0.8 + 0.75) / 2)
