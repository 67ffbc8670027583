"""Rates corrected by human labels."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from misslink.stats.classification import ConfusionMatrix, ErrorRates
from misslink.stats.intervals import proportion
from misslink.stats.prevalence import corrected_difference, prediction_powered, rogan_gladen
from misslink.types import Estimate

JUDGE = ConfusionMatrix(true_positive=90, false_negative=10, false_positive=20, true_negative=80)
BOTH = pytest.mark.parametrize("interval", ["delta", "posterior"])


@BOTH
def test_value_worked_by_hand(interval):
    # 60% called good, 20% of the bad among them: 0.4 of 0.7
    found = rogan_gladen(600, 1000, JUDGE, interval=interval)
    assert found.value == pytest.approx(4 / 7)
    assert found.low < found.value < found.high
    assert (found.n, found.method) == (1000, f"rogan-gladen, {interval}")


def test_delta_interval_worked_by_hand():
    # Lang and Reiczigel (2014), equations 3 to 6, with z = 1.96
    z = 1.959963984540054
    share, sens, spec = (600 + z * z / 2) / (1000 + z * z), 91 / 102, 81 / 102
    value = (share + spec - 1) / (sens + spec - 1)
    miss, false = sens * (1 - sens) / 102, spec * (1 - spec) / 102
    spread = share * (1 - share) / (1000 + z * z) + value**2 * miss + (1 - value) ** 2 * false
    half = z * math.sqrt(spread) / (sens + spec - 1)
    shift = 2 * z * z * (value * miss - (1 - value) * false)
    found = rogan_gladen(600, 1000, JUDGE)
    assert found.low == pytest.approx(value + shift - half)
    assert found.high == pytest.approx(value + shift + half)


@BOTH
def test_with_endless_labels_of_a_perfect_judge_it_is_the_share_itself(interval):
    judge = ConfusionMatrix(10**7, 0, 0, 10**7)
    found, plain = rogan_gladen(300, 1000, judge, interval=interval), proportion(300, 1000)
    assert found.value == pytest.approx(0.3)
    assert (found.low, found.high) == (
        pytest.approx(plain.low, abs=0.002),
        pytest.approx(plain.high, abs=0.002),
    )


@BOTH
def test_fewer_calls_than_false_alarms_are_cut_at_zero(interval):
    found = rogan_gladen(170, 1000, JUDGE, interval=interval)
    assert (found.value, found.low) == (0.0, 0.0)
    assert 0 < found.high < 0.2


@BOTH
def test_calls_that_the_judges_errors_rule_out_are_not_a_certain_zero(interval):
    # of 1,000 bad cases it would call some 200 good; it calls 20
    found = rogan_gladen(20, 1000, JUDGE, interval=interval)
    assert found.value is None
    assert "fewer cases good" in found.reason
    assert "more cases good" in rogan_gladen(999, 1000, JUDGE, interval=interval).reason


@BOTH
def test_a_judge_not_shown_to_beat_chance_is_refused_with_its_numbers(interval):
    found = rogan_gladen(50, 100, ConfusionMatrix(6, 4, 5, 5), interval=interval)
    assert found.value is None
    assert "20 labels do not show" in found.reason
    assert "0.55" in found.reason


def test_what_is_missing_says_why():
    assert rogan_gladen(0, 0, JUDGE).reason_code.code == "no_cases"
    assert rogan_gladen(5, 10, ConfusionMatrix(5, 1, 0, 0)).reason_code.code == "no_negative_label"
    assert rogan_gladen(5, 10, ConfusionMatrix(0, 0, 0, 0)).reason_code.code == "no_positive_label"


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="is not a share"):
        rogan_gladen(11, 10, JUDGE)


def raw(value, low, high, n=400):
    return Estimate(value=value, low=low, high=high, n=n, method="bootstrap")


@BOTH
def test_rates_alone_do_what_their_table_does(interval):
    rates = ErrorRates(JUDGE.sensitivity, JUDGE.specificity)
    assert rates.balanced_accuracy == JUDGE.balanced_accuracy
    found, table = (rogan_gladen(600, 1000, each, interval=interval) for each in (rates, JUDGE))
    assert (found.value, found.low, found.high) == pytest.approx(
        (table.value, table.low, table.high)
    )


@BOTH
def test_labels_among_the_cases_leave_the_value_and_narrow_the_interval(interval):
    # 110 of the 200 labelled are called good; the 800 others bring 490 more
    among = rogan_gladen(600, 1000, JUDGE, among=True, interval=interval)
    twice = rogan_gladen(600, 1000, JUDGE, interval=interval)
    assert among.value == pytest.approx(twice.value)
    assert 0.7 < (among.high - among.low) / (twice.high - twice.low) < 0.97


@BOTH
def test_where_every_case_is_labelled_people_have_the_word(interval):
    found = rogan_gladen(110, 200, JUDGE, among=True, interval=interval)
    people = proportion(100, 200)
    assert (found.value, found.low, found.high) == (people.value, people.low, people.high)


def test_labels_among_the_cases_need_their_counts():
    with pytest.raises(ValueError, match="table of counts"):
        rogan_gladen(600, 1000, ErrorRates(JUDGE.sensitivity, JUDGE.specificity), among=True)
    with pytest.raises(ValueError, match="is not a share"):
        rogan_gladen(100, 1000, JUDGE, among=True)  # of the labelled alone it calls 110 good


def test_a_difference_is_as_many_times_larger_as_the_judge_blurs_it():
    found = corrected_difference(raw(0.07, 0.01, 0.13), JUDGE)
    assert found.value == pytest.approx(0.1)
    assert (found.n, found.method) == (400, "rogan-gladen, difference")
    # endless labels leave nothing but the division
    sure = corrected_difference(
        raw(0.07, 0.01, 0.13), ConfusionMatrix(9 * 10**7, 10**7, 2 * 10**7, 8 * 10**7)
    )
    assert (sure.low, sure.high) == (
        pytest.approx(0.01 / 0.7, abs=1e-4),
        pytest.approx(0.13 / 0.7, abs=1e-4),
    )
    assert found.low < sure.low
    assert found.high > sure.high


@pytest.mark.parametrize("difference", [0.21, 0.03, -0.12])
def test_the_interval_is_that_of_a_ratio_of_two_bell_curves(difference):
    # with many labels both are nearly normal: draws of each, divided
    judge = ConfusionMatrix(1800, 200, 400, 1600)
    found = corrected_difference(raw(difference, difference - 0.06, difference + 0.06), judge)
    rng = np.random.default_rng(2)
    z = 1.959963984540054
    gain = rng.beta(1800.5, 200.5, 400_000) + rng.beta(1600.5, 400.5, 400_000) - 1
    drawn = rng.normal(difference, 0.06 / z, 400_000) / gain
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (found.low, found.high) == (
        pytest.approx(low, abs=0.002),
        pytest.approx(high, abs=0.002),
    )


@pytest.mark.parametrize(
    "judge", [JUDGE, ConfusionMatrix(12, 3, 4, 11), ConfusionMatrix(30, 1, 0, 29)]
)
def test_a_difference_turned_round_has_its_interval_turned_round(judge):
    found = corrected_difference(raw(0.1, 0.02, 0.15), judge)
    turned = corrected_difference(raw(-0.1, -0.15, -0.02), judge)
    assert (turned.value, turned.low, turned.high) == pytest.approx(
        (-found.value, -found.high, -found.low)
    )


@pytest.mark.parametrize(("low", "high"), [(-0.01, 0.2), (0.0, 0.2), (0.004, 0.2), (-0.2, -0.004)])
def test_it_holds_zero_if_and_only_if_the_uncorrected_difference_does(low, high):
    found = corrected_difference(raw((low + high) / 2, low, high), JUDGE)
    assert (found.low <= 0 <= found.high) == (low <= 0 <= high)


def test_a_difference_is_not_corrected_by_what_is_not_known():
    unsure = corrected_difference(raw(0.1, 0.0, 0.2), ConfusionMatrix(6, 4, 5, 5))
    assert "20 labels do not show that the judge is better than chance" in unsure.reason
    one_sided = corrected_difference(raw(0.1, 0.0, 0.2), ConfusionMatrix(9, 1, 0, 0))
    assert one_sided.reason_code.code == "no_negative_label"
    nothing = corrected_difference(Estimate.missing("no case has a value in both"), JUDGE)
    assert (nothing.value, nothing.reason) == (None, "no case has a value in both")
    # the judge, right in 9 of 10 and 8 of 10, cannot see a difference of 0.95
    impossible = corrected_difference(raw(0.95, 0.9, 0.97), JUDGE)
    assert "larger difference than its errors" in impossible.reason
    assert corrected_difference(raw(-0.95, -0.97, -0.9), JUDGE).value is None


def test_a_difference_cut_at_one_says_no_more_than_one():
    found = corrected_difference(raw(0.72, 0.6, 0.8), JUDGE)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low < 0.9


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
    from statsmodels.stats.weightstats import DescrStatsW

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


def test_at_a_higher_level_the_judges_rates_are_less_certain_too():
    judge = ConfusionMatrix(90, 10, 20, 80)
    raw = Estimate(value=0.3, low=0.29, high=0.31, n=200, method="bootstrap")
    usual, strict = (corrected_difference(raw, judge, level=level) for level in (0.95, 0.995))
    assert usual.value == strict.value
    assert strict.high - strict.low > 1.3 * (usual.high - usual.low)
    hardly = ConfusionMatrix(13, 5, 5, 10)  # better than chance at 95% only
    assert corrected_difference(raw, hardly).value is not None
    assert corrected_difference(raw, hardly, level=0.9999).value is None
