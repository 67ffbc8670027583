"""Every number of the report is written here, so it is pinned here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.render.format import (
    format_decimal,
    format_difference,
    format_estimate,
    format_p_value,
    format_percent,
    format_values,
    pluralize,
)
from misslink.types import Estimate

MINUS = "\N{MINUS SIGN}"


def _estimate(value, low, high, reason=None):
    return Estimate(value=value, low=low, high=high, n=87, method="wilson", reason=reason)


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        ("recall@5", (0.62, 0.51, 0.72), "62% [51, 72], n = 87"),
        ("fully_faithful", (1.0, 0.957, 1.0), "100% [96, 100], n = 87"),
        ("ndcg@5", (0.62, 0.51, 0.72), "0.62 [0.51, 0.72], n = 87"),
        ("mrr", (0.5, 0.4, 0.6), "0.50 [0.40, 0.60], n = 87"),
        ("risk_difference", (0.48, 0.29, 0.67), "+48 points [29, 67], n = 87"),
        ("risk_difference", (-0.17, -0.62, 0.41), f"{MINUS}17 points [{MINUS}62, 41], n = 87"),
        ("risk_ratio", (6.31, 2.94, 13.52), "6.3 times [2.9, 13.5], n = 87"),
        ("attributable_fraction", (-0.12, -0.4, 0.1), f"{MINUS}12% [{MINUS}40, 10], n = 87"),
    ],
)
def test_each_quantity_is_written_in_its_own_unit(name, numbers, expected):
    assert format_estimate(name, _estimate(*numbers)).text == expected


def test_an_end_without_a_bound_is_said_in_words():
    text = format_estimate("risk_ratio", _estimate(1.25, 0.29, None, "an empty cell")).text

    assert text == "1.2 times [0.3, unbounded], n = 87"


def test_a_missing_number_is_its_reason_and_never_a_zero():
    one = format_estimate("recall@5", Estimate.missing("no case has a relevant passage"))

    assert one.text == "not measured: no case has a relevant passage"
    assert one.bar is None


def test_nearly_none_and_nearly_all_are_not_rounded_to_none_and_all():
    assert [format_percent(x) for x in (0.0, 0.0049, 0.006, 0.994, 0.996, 1.0)] == [
        "0%", "<1%", "1%", "99%", ">99%", "100%",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "written"),
    [
        ((0.86, 0.6, 0.93), "+86 points [60, 93]"),
        ((-0.2, -0.31, -0.004), f"{MINUS}20 points [{MINUS}31, 0]"),
        ((-0.004, -0.3, 0.3), f"0 points [{MINUS}30, 30]"),
        ((0.1, None, None), "+10 points"),
        ((0.1, None, 0.3), "+10 points [unbounded, 30]"),
    ],
)
def test_a_difference_is_in_points_with_a_real_minus_and_no_minus_zero(ends, written):
    assert format_difference("recall@5", _estimate(*ends, reason="r")).brief == written


@pytest.mark.parametrize(
    ("method", "written", "difference"),
    [
        ("wilson", "3 of 9", "+0.33 [0.10, 0.60], n = 9"),
        ("bootstrap", "0.33 [0.10, 0.60], n = 9", "+0.33 [0.10, 0.60], n = 9"),
    ],
)
def test_of_fewer_than_ten_nothing_is_a_percentage(method, written, difference):
    few = Estimate(value=1 / 3, low=0.1, high=0.6, n=9, method=method)
    counted = few.model_copy(update={"method": "newcombe"})

    assert format_estimate("recall@5", few).text == written
    assert format_difference("recall@5", counted).text == difference
    assert (
        format_estimate("recall@5", few).bar
        == format_estimate("recall@5", few.model_copy(update={"n": 10})).bar
    )


@pytest.mark.parametrize(
    ("p", "written"),
    [
        (9.2e-05, "p < 0.001"),
        (0.001, "p = 0.001"),
        (0.0132, "p = 0.013"),
        (0.21, "p = 0.21"),
        (1.0, "p = 1.00"),
    ],
)
def test_a_p_value_is_never_in_powers_of_ten(p, written):
    assert format_p_value(p) == written


def test_no_number_is_minus_zero():
    assert format_percent(-0.001) == "0%"
    assert format_decimal(-0.0001) == "0.00"


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_bar_never_leaves_its_axis(a, b, c):
    low, value, high = sorted((a, b, c))
    bar = format_estimate("fully_faithful", _estimate(value, low, high)).bar

    assert 0 <= bar.low <= bar.value <= bar.high <= 100


def test_counts_agree_with_their_noun():
    assert (pluralize(1, "case"), pluralize(0, "case"), pluralize(12000, "case")) == (
        "1 case", "0 cases", "12,000 cases",
    )  # fmt: skip


def test_a_metric_that_says_decimal_is_no_percentage_in_the_gate_nor_on_the_page():
    grade = Estimate(value=0.62, low=0.5, high=0.7, n=40, method="bootstrap")
    assert format_values("helpfulness", 0.62) == ["0.62"]
    assert format_estimate("helpfulness", grade).value == "0.62"
    assert format_values("answer_relevance", 0.62) == ["62%"]
    assert format_estimate("answer_relevance", grade).value == "62%"
