"""The corrected share by hand, its intervals against each other and the formula's limits."""

from __future__ import annotations

import math

import pytest

from misslink.stats.confusion import Confusion
from misslink.stats.proportions import proportion
from misslink.stats.rogan_gladen import rogan_gladen

JUDGE = Confusion(true_positive=90, false_negative=10, false_positive=20, true_negative=80)
BOTH = pytest.mark.parametrize("interval", ["delta", "posterior"])


@BOTH
def test_value_worked_by_hand(interval):
    # 60 % called good, 20 % of the bad among them: 0.4 of 0.7
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
    judge = Confusion(10**7, 0, 0, 10**7)
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
    found = rogan_gladen(50, 100, Confusion(6, 4, 5, 5), interval=interval)
    assert found.value is None
    assert "20 labels do not show" in found.reason
    assert "0.55" in found.reason


def test_what_is_missing_says_why():
    assert rogan_gladen(0, 0, JUDGE).reason == "no cases"
    assert rogan_gladen(5, 10, Confusion(5, 1, 0, 0)).reason == "no case has the negative label"
    assert rogan_gladen(5, 10, Confusion(0, 0, 0, 0)).reason == "no case has the positive label"


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="is no share"):
        rogan_gladen(11, 10, JUDGE)
