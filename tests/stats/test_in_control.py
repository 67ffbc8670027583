import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma, norm

from misslink.stats.control_charts import ProcessBaseline, learn_baseline


def test_the_first_readings_are_learnt_from_and_no_other():
    values = [0.7, 0.8, 0.75, 0.72, 0.78, 0.74, 0.76, 0.71, 0.79, 0.77]
    learnt = learn_baseline([*values, 0.1, 0.2], 10, step=0.01)
    assert learnt.centre == pytest.approx(statistics.fmean(values))
    assert learnt.sd == pytest.approx(statistics.stdev(values))
    assert (learnt.begin, learnt.end, learnt.n, learnt.left_out) == (0, 10, 10, ())


def test_what_was_not_measured_does_not_count():
    learnt = learn_baseline([None, 0.7, None, 0.8, 0.75, None, 0.71], 4, step=0.01)
    assert (learnt.begin, learnt.end, learnt.n) == (1, 7, 4)
    assert learn_baseline([None, 0.7, None], 4, step=0.01) == "1 of 4 runs to learn from"
    assert learn_baseline([], 4, step=0.01) == "0 of 4 runs to learn from"


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
    assert learn_baseline(falling, 20, step=0.01).startswith("no 20 runs in a row are steady")
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
