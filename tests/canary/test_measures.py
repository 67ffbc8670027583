import pytest

from misslink.canary.alarms import CanaryMeasure, RunReading


def reading(n=30, **values):
    return RunReading(1, 0.0, values, n)


def test_a_step_is_one_question_of_a_share():
    assert CanaryMeasure("health").step([reading(n=30), reading(n=30), reading(n=0)]) == 1 / 30
    assert CanaryMeasure("health").step([]) > 0


def test_a_step_of_a_score_is_a_hundredth_of_it_unless_it_is_given():
    scores = [reading(top_score=-12.0), reading(top_score=8.0), reading(top_score=10.0)]
    assert CanaryMeasure("top_score", unit="score").step(scores) == pytest.approx(0.1)
    assert CanaryMeasure("top_score", unit="score", resolution=0.5).step(scores) == 0.5
    assert CanaryMeasure("top_score", unit="score").step([reading(top_score=0.0)]) > 0


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_was_not_measured(value):
    assert CanaryMeasure("health").plotted(reading(health=value)) is None
    assert CanaryMeasure("health").plotted(reading()) is None


@pytest.mark.parametrize(
    ("measure", "one", "other", "told"),
    [
        (CanaryMeasure("health"), 0.75, 1.0, ("0.750", "1.000")),
        (CanaryMeasure("health"), 0.99996, 1.0, ("0.99996", "1.00000")),
        (CanaryMeasure("score", unit="score"), 0.5996, 0.6, ("0.5996", "0.6")),
        (CanaryMeasure("s", unit="s"), 2.5, 2.5, ("2.5 s", "2.5 s")),
        (CanaryMeasure("score", unit="score"), 0.1 + 0.2, 0.3, ("0.3", "0.3")),
    ],
)
def test_two_values_have_digits_enough_to_tell_them_apart(measure, one, other, told):
    assert measure.format_distinct(one, other) == told


def test_seconds_are_drawn_by_their_logarithm_even_where_there_were_none():
    latency = CanaryMeasure("latency_s", better="low", unit="s")
    assert latency.chart_to_value(latency.plotted(reading(latency_s=2.5))) == pytest.approx(2.5)
    assert latency.plotted(reading(latency_s=0.0)) is not None


def test_what_is_worse_than_bearable_is_not_learnt():
    assert CanaryMeasure("health", least=0.5).learnable(0.4) is None
    assert CanaryMeasure("health", least=0.5).learnable(0.5) == 0.5
    assert CanaryMeasure("errors", better="low", least=0.2).learnable(0.3) is None
    assert CanaryMeasure("health").learnable(0.0) == 0.0
