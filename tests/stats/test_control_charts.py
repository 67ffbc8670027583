import itertools

import numpy as np
import pytest

from misslink.stats.control_charts import ChartLimits, ProcessBaseline, control_chart

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
