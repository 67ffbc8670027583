"""The reliability diagram: a dot a bin, and the band in which the judge is not believed."""

from __future__ import annotations

import pytest

from example_run import estimate, missing
from misslink.documents import CalibrationDocument
from misslink.report.judge_trust import draw_reliability

BINS = [
    {"low": 0.0, "high": 0.5, "n": 100, "predicted": 0.25, "good": estimate(0.5, 0.4, 0.6, 100)},
    {"low": 0.5, "high": 1.0, "n": 0, "predicted": None, "good": missing("no case")},
    {"low": 0.9, "high": 1.0, "n": 25, "predicted": 1.0, "good": estimate(1.0, 0.8, 1.0, 25)},
]


def test_the_diagram_has_a_dot_a_bin_with_cases_the_larger_the_more():
    drawn = draw_reliability(CalibrationDocument.model_validate({"reliability": BINS}))
    half, full = drawn.bins  # the empty bin is no dot

    middle = drawn.size / 2
    assert (half.y, full.y) == (middle, drawn.edge)
    assert (half.x, full.x) == (drawn.edge + (drawn.size - 2 * drawn.edge) / 4, 264.0)
    assert half.high < half.y < half.low
    assert half.radius == 8.0  # the one with most cases
    assert full.radius == 5.5  # 3 + 5 x sqrt(25 / 100)
    assert (half.span, half.predicted, half.good.text) == (
        "0.00 to 0.50", "0.25", "50% [40, 60], n = 100",
    )  # fmt: skip
    assert drawn.band is None


def test_the_band_lies_between_its_probabilities():
    band = draw_reliability(
        CalibrationDocument.model_validate({"reliability": BINS, "uncertain_band": [0.25, 0.75]})
    ).band
    # The axis is 300 - 2 x 36 = 228 wide: a quarter of it is 57.
    assert (band.x, band.width) == (36 + 57.0, 114.0)
    assert band.says.startswith("From 0.25 to 0.75, shaded, it is not to be believed")


@pytest.mark.parametrize("rows", [None, [], BINS[1:2]])
def test_without_a_bin_there_is_no_diagram(rows):
    assert (
        draw_reliability(
            CalibrationDocument.model_validate({"reliability": rows, "uncertain_band": [0.2, 0.4]})
        )
        is None
    )
