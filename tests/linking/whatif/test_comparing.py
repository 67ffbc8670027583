"""What is said of an option, as certain as the interval is."""

from __future__ import annotations

import pytest

from misslink.linking.whatif.comparing import finding
from misslink.types import Estimate


def estimate(value, low, high):
    return Estimate(value=value, low=low, high=high, n=40, method="made")


def said(saved, *, p=9.2e-05, difference=(0.2, 0.1, 0.3), winner="option", detectable=0.08):
    compared = {
        "b": estimate(0.8, 0.7, 0.9).model_dump(),
        "difference": estimate(*difference).model_dump(),
        "p_holm": p,
        "detectable": detectable,
        "winner": winner,
    }
    return finding("recall@5", compared, estimate(0.6, 0.5, 0.7), saved, 22)


RISES = "recall@5 rises from 60 to 80 %, +20 points [10, 30] (p < 0.001 after Holm); "
AS_THEY_ARE = "it may leave the unfaithful answers, 22 now, as they are"


@pytest.mark.parametrize(
    ("saved", "end"),
    [
        ((7.5, 4, 9), "about 7.5 [4, 9] fewer unfaithful answers, of 22 now."),
        ((-2.4, -4, -1), "about 2.4 [1, 4] more unfaithful answers, on top of the 22 now."),
        (
            (-0.7, -4, 1),
            f"{AS_THEY_ARE}: the forecast runs from 4 more to 1 fewer.",
        ),
        (
            (2.0, -0.0, 3),
            f"{AS_THEY_ARE}: the forecast runs from none fewer to 3 fewer.",
        ),
        ((0, 0, 0), f"{AS_THEY_ARE}."),
    ],
)
def test_what_is_saved_is_said_as_certain_as_its_interval_is(saved, end):
    assert said(estimate(*saved)) == RISES + end


def test_what_was_not_forecast_says_why():
    assert said(Estimate.missing("nobody judged")) == (
        RISES + "what that saves is not known: nobody judged."
    )


def test_no_detectable_difference_has_no_minus_zero_and_says_what_could_be_seen():
    found = said(estimate(1, 0, 3), difference=(-0.001, -0.04, 0.003), winner=None)
    assert found == (
        "No detectable difference in recall@5: 0 points [\u22124, 0]; 40 cases could show one of "
        "8 points at 80 % power."
    )
