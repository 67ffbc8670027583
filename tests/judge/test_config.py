"""On what terms a judge is asked: numbers that could never be meant are refused."""

import math

import pytest

from misslink.errors import InputError
from misslink.judge.config import JudgeConfig

PRICES = {"price_in": 1.0, "price_out": 1.0}


@pytest.mark.parametrize(
    "name",
    ["temperature", "timeout", "deadline", "price_in", "price_out", "max_cost", "batch_price"],
)
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_number_that_is_not_finite_is_refused_by_its_name(name, value):
    with pytest.raises(InputError, match=f"^{name} is {value}; it"):
        JudgeConfig(**{**PRICES, name: value})


def test_more_samples_than_could_be_meant_are_refused():
    assert JudgeConfig(repeats=1000).repeats == 1000
    with pytest.raises(InputError, match=r"^repeats is 1001; it must be at most 1000$"):
        JudgeConfig(repeats=1001)


def test_a_cost_without_a_price_cannot_be_limited():
    with pytest.raises(InputError, match="price_in and price_out"):
        JudgeConfig(max_cost=1.0)


@pytest.mark.parametrize("name", ["cascade_check", "batch_price"])
def test_a_share_is_from_0_to_1(name):
    with pytest.raises(InputError, match=f"^{name} is 1.1; it is a share"):
        JudgeConfig(**{name: 1.1})
