"""Control charts and their limits."""

import itertools
import math
import statistics
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma, norm

from control_limit_equations import chart_alarm_probability, solve_limits
from misslink.stats.control_charts import (
    ChartLimits,
    ProcessBaseline,
    chart_limits,
    control_chart,
    learn_baseline,
    limit_table,
)
from misslink.types import Reason

LIMITS = ChartLimits(ewma=2.7, cusum=5.0, jump=4.0, weight=0.1, slack=0.5)
# Montgomery, Introduction to Statistical Quality Control, table of the CUSUM and EWMA examples:
# 20 readings of mean 10 and standard deviation 1, then 10 of mean 11.
READINGS = [
    9.45, 7.99, 9.29, 11.66, 12.16, 10.18, 8.04, 11.46, 9.20, 10.34,
    9.03, 11.47, 10.51, 9.40, 10.08, 9.37, 10.62, 10.31, 8.52, 10.84,
    10.90, 9.33, 12.29, 11.50, 10.60, 11.08, 10.38, 11.62, 11.31, 10.52,
]  # fmt: skip
UP = [
    0, 0, 0, 1.16, 2.82, 2.50, 0.04, 1.00, 0, 0, 0, 0.97, 0.98, 0, 0, 0, 0.12, 0, 0, 0.34,
    0.74, 0, 1.79, 2.79, 2.89, 3.47, 3.35, 4.47, 5.28, 5.30,
]  # fmt: skip
EWMA = [
    9.945, 9.7495, 9.70355, 9.8992, 10.1253, 10.1307, 9.92167, 10.0755, 9.98796, 10.0232,
    9.92384, 10.0785, 10.1216, 10.0495, 10.0525, 9.98426, 10.0478, 10.074, 9.91864, 10.0108,
    10.0997, 10.0227, 10.2495, 10.3745, 10.3971, 10.4654, 10.4568, 10.5731, 10.6468, 10.6341,
]  # fmt: skip
KNOWN = ProcessBaseline(centre=10.0, sd=1.0, n=20, begin=0, end=0)


def test_the_charts_are_those_of_the_textbook():
    points = control_chart(READINGS, KNOWN, LIMITS).points
    assert [point.ewma for point in points] == pytest.approx(EWMA, abs=2e-3)
    assert [point.up for point in points] == pytest.approx(
        [min(up, LIMITS.cusum) for up in UP], abs=0.011
    )
    assert [i for i, point in enumerate(points) if "cusum" in point.above] == [28, 29]
    assert [i for i, point in enumerate(points) if "ewma" in point.above] == [28, 29]
    assert points[0].high == pytest.approx(10.27)
    assert points[1].high == pytest.approx(10.363, abs=1e-3)


def test_what_was_learnt_from_is_not_judged():
    learnt = ProcessBaseline(centre=10.0, sd=1.0, n=5, begin=0, end=5)
    points = control_chart([99.0] * 5 + [10.0], learnt, LIMITS).points
    assert not any(point.signal for point in points)
    assert all(point.ewma is None and point.low is None for point in points[:5])
    assert points[5].ewma == 10.0


def test_a_reading_that_is_missing_moves_nothing():
    gaps = list(itertools.chain.from_iterable((value, None) for value in READINGS))
    whole = control_chart(READINGS, KNOWN, LIMITS).points
    assert control_chart(gaps, KNOWN, LIMITS).points[::2] == whole
    assert control_chart(gaps, KNOWN, LIMITS).points[1].value is None


def test_one_wild_reading_is_a_jump_and_not_held_against_the_runs_after_it():
    points = control_chart([10.0, -500.0, 10.0, 10.0, 10.0], KNOWN, LIMITS).points
    assert points[1].below[0] == "jump"
    assert not any(point.signal for point in points[3:])


def test_a_cusum_that_was_over_its_threshold_for_long_comes_down_at_once():
    points = control_chart([7.0] * 100 + [10.0] * 3, KNOWN, LIMITS).points
    assert "cusum" in points[99].below
    assert not any("cusum" in point.below for point in points[100:])


def test_both_directions_are_mirror_images():
    there = control_chart(READINGS, KNOWN, LIMITS).points
    back = control_chart([20 - value for value in READINGS], KNOWN, LIMITS).points
    assert [p.above for p in there] == [p.below for p in back]
    assert [p.up for p in there] == pytest.approx([p.down for p in back])


def test_the_limits_of_a_skewed_measure_are_wider_on_the_side_of_its_tail():
    rng = np.random.default_rng(1)
    skewed = ProcessBaseline(centre=0.9, sd=0.05, n=20, begin=0, end=0, skew=-0.8)
    drawn = control_chart(rng.binomial(30, 0.9, 50) / 30, skewed, LIMITS)
    assert 0.9 - drawn.jump_low > 1.5 * (drawn.jump_high - 0.9)
    for point in drawn.points:
        assert drawn.jump_low < point.low < point.high < drawn.jump_high
        assert ("ewma" in point.below) == (point.ewma < point.low)


ROWS = {row["learnt_from"]: row for row in limit_table()["rows"]}
EVERY = limit_table()["every"]


def test_the_table_is_whole():
    assert list(ROWS) == sorted(ROWS)
    assert min(ROWS) == 8, "a fifth of the fewest 10 may be left out"
    for row in ROWS.values():
        assert len(row["shares"]) == len(row["limits"]) == 5
        assert all(1 / 3 < share < 1 for share in row["shares"]), (
            "no three charts see all, or none, alike"
        )
        for fewer, more in itertools.pairwise(row["limits"]):
            assert all(a < b for a, b in zip(fewer, more, strict=True)), "more measures, wider"


def test_the_more_was_learnt_the_narrower_are_the_limits():
    few, some, many = (chart_limits(n, measures=5) for n in (8, 20, 1000))
    for name in ("ewma", "cusum", "jump"):
        assert getattr(few, name) > getattr(some, name) > getattr(many, name)


@pytest.mark.slow
@pytest.mark.parametrize(("learnt_from", "measures"), [(10, 5), (50, 1)])
def test_its_limits_are_those_of_the_integral_equations(learnt_from, measures):
    share = ROWS[learnt_from]["shares"][measures - 1]
    chance = chart_alarm_probability(measures, share)
    solved = solve_limits(learnt_from, EVERY, chance=chance)
    found = chart_limits(learnt_from, measures=measures)
    for name in ("ewma", "cusum", "jump"):
        assert getattr(found, name) == pytest.approx(getattr(solved, name), abs=5e-4)


@pytest.mark.parametrize("learnt_from", [70])
def test_between_its_rows_it_is_as_good(learnt_from):
    assert learnt_from not in ROWS
    at = [math.log(n) for n in ROWS]
    share = np.interp(math.log(learnt_from), at, [row["shares"][4] for row in ROWS.values()])
    chance = chart_alarm_probability(5, float(share))
    solved = solve_limits(learnt_from, EVERY, chance=chance)
    found = chart_limits(learnt_from, measures=5)
    for name in ("ewma", "cusum", "jump"):
        assert getattr(found, name) == pytest.approx(getattr(solved, name), rel=3e-3)


@pytest.mark.parametrize(("learnt_from", "measures"), [(10, 1), (20, 5), (50, 5)])
def test_all_three_charts_together_keep_the_promise(learnt_from, measures):
    """Four standard errors of 6,000 histories are 2.5 points at most."""
    rng = np.random.default_rng(11)
    limits = chart_limits(learnt_from, measures=measures)
    learnt = rng.normal(size=(6000, learnt_from))
    centre, sd = learnt.mean(axis=1), learnt.std(axis=1, ddof=1)
    ewma, up, seen = np.zeros(6000), np.zeros(6000), np.zeros(6000, bool)
    for age in range(1, 371):
        z = (rng.normal(size=6000) - centre) / sd
        tame = np.clip(z, -limits.jump, limits.jump)
        ewma += limits.weight * (tame - ewma)
        up = np.maximum(0, up + tame - limits.slack)
        bound = limits.ewma * math.sqrt(limits.weight / (2 - limits.weight))
        bound *= math.sqrt(1 - (1 - limits.weight) ** (2 * age))
        seen |= (z > limits.jump) | (ewma > bound) | (up > limits.cusum)
    assert seen.mean() == pytest.approx(-math.expm1(-1 / measures), abs=0.025)


def test_beyond_the_table_its_last_entry_is_used():
    assert chart_limits(5000, measures=8) == chart_limits(max(ROWS), measures=5)


@pytest.mark.slow
def test_the_usual_settings_need_no_equations():
    """A scheduled run is a new process each time, and would pay for them each time."""
    code = (
        "import sys\n"
        "from misslink.stats.control_charts import chart_limits\n"
        "chart_limits(20, measures=5)\n"
        "assert not {'scipy'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_first_readings_are_learnt_from_and_no_other():
    values = [0.7, 0.8, 0.75, 0.72, 0.78, 0.74, 0.76, 0.71, 0.79, 0.77]
    learnt = learn_baseline([*values, 0.1, 0.2], 10, step=0.01)
    assert learnt.centre == pytest.approx(statistics.fmean(values))
    assert learnt.sd == pytest.approx(statistics.stdev(values))
    assert (learnt.begin, learnt.end, learnt.n, learnt.left_out) == (0, 10, 10, ())


def test_what_was_not_measured_does_not_count():
    learnt = learn_baseline([None, 0.7, None, 0.8, 0.75, None, 0.71], 4, step=0.01)
    assert (learnt.begin, learnt.end, learnt.n) == (1, 7, 4)
    assert learn_baseline([None, 0.7, None], 4, step=0.01) == Reason(code="learning", n=1, of=4)
    assert learn_baseline([], 4, step=0.01) == Reason(code="learning", n=0, of=4)


def test_one_wild_reading_is_left_out_and_told():
    values = [0.7, 0.8, 0.75, 0.72, 0.0, 0.74, 0.76, 0.71, 0.79, 0.77]
    learnt = learn_baseline(values, 10, step=0.01)
    assert learnt.left_out == (4,)
    assert learnt.n == 9
    assert min(values[:4]) <= learnt.centre <= max(values)


def test_readings_that_agree_do_not_prove_that_none_differs():
    """Never seen in 20 runs: up to 3 / 20 of all by the rule of three."""
    learnt = learn_baseline([0.9] * 20, 20, step=0.1, tail=-1)
    assert learnt.is_floor
    assert learnt.sd == pytest.approx(0.1 * (3 / 20) ** 0.5)
    assert learnt.centre == 0.9
    # One question less is a score that a normal reading has, two at once are not usual.
    assert 1.5 < -learnt.score(0.8) < 2
    assert 2.3 < -learnt.score(0.7) < 3


def test_a_history_that_drifts_is_learnt_from_when_it_has_come_to_rest():
    falling = [1 - 0.02 * place for place in range(20)]
    steady = [0.6 + 0.01 * (-1) ** place for place in range(20)]
    assert learn_baseline(falling, 20, step=0.01) == Reason(code="unsteady", learn=20)
    learnt = learn_baseline(falling + steady, 20, step=0.01)
    assert learnt.begin >= 10
    assert learnt.centre < 0.7


def test_a_drop_in_the_middle_of_what_would_be_learnt_is_no_norm():
    values = [0.9, 0.92] * 5 + [0.6, 0.62] * 15
    learnt = learn_baseline(values, 20, step=0.01)
    assert learnt.begin >= 6
    assert learnt.centre == pytest.approx(0.61, abs=0.04)


@pytest.mark.parametrize("skew", [0.3, 0.8, 1.5])
@pytest.mark.parametrize("tail", [0.2, 0.01, 0.001])
def test_a_score_of_a_skewed_reading_is_as_rare_as_it_says(skew, tail):
    """Against the gamma distribution of that skewness (Wilson and Hilferty's error is small)."""
    shape = 4 / skew**2
    z = (gamma.isf(tail, shape) - shape) / shape**0.5
    up = ProcessBaseline(centre=5.0, sd=2.0, n=20, begin=0, end=20, skew=skew)
    down = ProcessBaseline(centre=5.0, sd=2.0, n=20, begin=0, end=20, skew=-skew)
    assert up.score(5 + 2 * z) == pytest.approx(norm.isf(tail), abs=0.06)
    assert down.score(5 - 2 * z) == pytest.approx(-norm.isf(tail), abs=0.06)


@given(st.floats(-50, 50), st.sampled_from([-2.5, -0.4, 0.0, 0.7, 2.6]), st.floats(-0.1, 0.1))
def test_a_score_is_put_back_where_it_came_from(value, skew, offset):
    learnt = ProcessBaseline(centre=0.5, sd=0.4, n=20, begin=0, end=20, skew=skew, offset=offset)
    assert learnt.place(learnt.score(value)) == pytest.approx(value, abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=2, unique=True))
def test_a_worse_reading_never_has_a_better_score(pair):
    learnt = learn_baseline([0.9] * 20, 20, step=0.1, tail=-1)
    low, high = sorted(pair)
    assert learnt.score(low) <= learnt.score(high)


def test_learning_is_as_good_as_the_mean_and_spread_of_normal_readings():
    """Leaving out wild readings costs the spread of normal ones next to nothing."""
    rng = np.random.default_rng(3)
    ratios = []
    for values in rng.normal(10.0, 2.0, size=(400, 20)):
        learnt = learn_baseline(values.tolist(), 20, step=0.01)
        if not isinstance(learnt, str):
            ratios.append(learnt.sd / 2.0)
    assert len(ratios) > 390
    assert statistics.fmean(ratios) == pytest.approx(0.987, abs=0.02)  # c4 of 20 readings
