"""PPI++ against ppi-python, statsmodels and hand-worked survey estimates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.weightstats import DescrStatsW

from misslink.stats.intervals import proportion
from misslink.stats.prevalence import prediction_powered

PAGE = Path(__file__).parents[1] / "oracles" / "ppi_python_values.json"
ORACLE = json.loads(PAGE.read_text())  # made by the script of the same name


def made(n=60, others=400):
    generator = np.random.default_rng(9)
    y = (generator.random(n) < 0.7).astype(float)
    f = np.clip(0.6 * y + 0.2 + 0.15 * generator.normal(size=n), 0, 1).round(3)
    rest = 0.2 + 0.6 * (generator.random(others) < 0.65) + 0.15 * generator.normal(size=others)
    return y.tolist(), f.tolist(), np.clip(rest, 0, 1).round(3).tolist()


@pytest.mark.parametrize("sample", ORACLE["samples"])
def test_value_power_and_interval_are_those_of_ppi_python(sample):
    found = prediction_powered(sample["labels"], sample["verdicts"], sample["others"])
    assert found.power == pytest.approx(sample["power"])
    assert found.estimate.value == pytest.approx(sample["value"])
    # ours knows that few labels may show no mistake, and is the wider one
    ours, theirs = (found.estimate.low, found.estimate.high), (sample["low"], sample["high"])
    assert ours == pytest.approx(theirs, abs=0.035)
    assert ours[1] - ours[0] == pytest.approx(theirs[1] - theirs[0], rel=0.15)


@pytest.mark.parametrize("sample", ORACLE["samples"])
def test_weighted_value_is_that_of_ppi_python(sample):
    found = prediction_powered(
        sample["labels"], sample["verdicts"], sample["others"], weights=sample["weights"]
    )
    assert found.estimate.value == pytest.approx(sample["weighted_value"])
    assert found.estimate.value != pytest.approx(sample["value"])


@pytest.mark.parametrize("sample", ORACLE["samples"])
def test_labels_alone_by_weight_have_the_value_of_statsmodels(sample):
    found = prediction_powered(
        sample["labels"], sample["verdicts"], sample["others"], weights=sample["weights"]
    )
    theirs = DescrStatsW(sample["labels"], weights=sample["weights"])
    assert found.labelled_only.value == pytest.approx(theirs.mean)


def test_few_labels_that_decide_make_the_interval_wider_than_many_do():
    # the same 30 labels and verdicts; in the second sample five of them stand for most cases
    labels, calls = [1, 0] * 15, [1.0, 0.0] * 15
    plain = prediction_powered(labels, calls, [1.0, 0.0] * 50)
    leaning = prediction_powered(labels, calls, [1.0, 0.0] * 50, weights=[20.0] * 6 + [1.0] * 24)
    assert leaning.estimate.value == pytest.approx(plain.estimate.value)
    assert leaning.worth < 0.6 * plain.worth
    width, usual = (each.estimate.high - each.estimate.low for each in (leaning, plain))
    assert width > 1.3 * usual


def test_verdicts_that_say_nothing_leave_the_labels_alone():
    labels = [1] * 30 + [0] * 10
    found = prediction_powered(labels, [0.5] * 40, [0.5] * 200)
    alone = proportion(30, 40)
    assert (found.power, found.estimate.value) == (0.0, 0.75)
    assert found.labelled_only == alone
    assert found.estimate.low == pytest.approx(alone.low, abs=0.01)
    assert found.estimate.high == pytest.approx(alone.high, abs=0.01)
    assert found.worth == pytest.approx(40, rel=0.05)


def test_a_good_judge_is_worth_many_labels_and_a_turned_one_as_much():
    y, f, rest = made()
    found = prediction_powered(y, f, rest)
    assert found.worth > 120
    turned = prediction_powered(y, [1 - x for x in f], [1 - x for x in rest])
    assert turned.estimate.value == pytest.approx(found.estimate.value)
    assert turned.power == pytest.approx(-found.power)


def test_no_mistake_in_the_sample_does_not_make_the_judge_infallible():
    found = prediction_powered([0] * 27 + [1] * 3, [0] * 27 + [1] * 3, [0] * 90_000 + [1] * 10_000)
    assert found.estimate.value == pytest.approx(0.1)
    assert found.estimate.high - found.estimate.low > 0.05  # of 100,000 verdicts: 0.004
    assert found.judge_only.high - found.judge_only.low < 0.005


def test_weights_undo_a_sample_that_leans():
    # all 20 cases the judge calls bad are labelled, a tenth of the 100 it calls good
    labels = [0] * 16 + [1] * 4 + [1] * 9 + [0]
    calls = [0.0] * 20 + [1.0] * 10
    weights = [1.0] * 20 + [10.0] * 10
    found = prediction_powered(labels, calls, [1.0] * 90, weights=weights)
    # Horvitz and Thompson: (4 + 10 * 9) of 120; the verdicts' shares are already right
    assert found.labelled_only.value == pytest.approx(94 / 120)
    assert found.estimate.value == pytest.approx(94 / 120)
    assert found.labelled_only.low < 94 / 120 < found.labelled_only.high
    assert found.judge_only.value == pytest.approx(100 / 120)


def test_equal_weights_change_nothing():
    plain, weighted = (prediction_powered(*made(), weights=w) for w in (None, [7.0] * 60))
    assert weighted.estimate.value == pytest.approx(plain.estimate.value)
    assert weighted.estimate.low == pytest.approx(plain.estimate.low)
    assert weighted.worth == pytest.approx(plain.worth)


def test_too_few_labels_are_refused_and_the_rest_is_still_told():
    found = prediction_powered([1, 0, 1], [1, 0, 0], [1] * 50)
    assert found.estimate.value is None
    assert "3 labels are too few" in found.estimate.reason
    assert (found.power, found.worth) == (None, None)
    assert found.labelled_only.value == pytest.approx(2 / 3)
    assert found.judge_only.n == 53
    assert prediction_powered([], [], [], weights=[]).judge_only.value is None


def test_every_case_labelled_leaves_no_use_for_the_verdicts():
    labels = [1] * 12 + [0] * 8
    found = prediction_powered(labels, [1] * 20, [])
    assert (found.power, found.estimate.value) == (0.0, 0.6)


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="not of the same cases"):
        prediction_powered([1], [], [])
    with pytest.raises(ValueError, match=r"between 0 and 1, not 1\.5"):
        prediction_powered([1], [1.5], [])
    with pytest.raises(ValueError, match="between 0 and 1"):
        prediction_powered([float("nan")], [1], [])
    for weights in ([0.0], [float("inf")]):
        with pytest.raises(ValueError, match="positive number"):
            prediction_powered([1], [1], [], weights=weights)
    with pytest.raises(ValueError, match="1 labels are not"):
        prediction_powered([1], [1], [], weights=[])
