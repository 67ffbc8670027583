"""Numbers as sentences say them."""

from __future__ import annotations

import pytest

from misslink.render.format import format_p_value, format_points_interval
from misslink.types import Estimate


def estimate(value, low, high):
    return Estimate(value=value, low=low, high=high, n=9, method="made")


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


@pytest.mark.parametrize(
    ("found", "written"),
    [
        (estimate(0.86, 0.6, 0.93), "+86 points [60, 93]"),
        (estimate(-0.2, -0.31, -0.004), "\u221220 points [\u221231, 0]"),
        (estimate(-0.004, -0.3, 0.3), "0 points [\u221230, 30]"),
        (Estimate(value=0.1, low=None, high=None, n=1, method="m", reason="r"), "+10 points"),
        (
            Estimate(value=0.1, low=None, high=0.3, n=1, method="m", reason="r"),
            "+10 points [unbounded, 30]",
        ),
    ],
)
def test_a_difference_is_in_points_with_a_real_minus_and_no_minus_zero(found, written):
    assert format_points_interval(found) == written


def test_a_missing_difference_is_refused():
    with pytest.raises(ValueError, match="missing"):
        format_points_interval(Estimate.missing("nothing"))
