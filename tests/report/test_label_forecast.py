"""How many labels are enough, as the report tells it."""

from __future__ import annotations

from misslink.documents import CalibrationDocument
from misslink.report.human_labels import forecast_labels

NEEDED = {
    "reason": None,
    "verdicts": 900,
    "curve": [
        {"labels": 25, "width": 0.256, "labelled_only": 0.3},
        {"labels": 1200, "width": 0.05, "labelled_only": 0.08},
    ],
    "for_width": {"0.2": 43, "0.1": 1231, "0.05": None},
}


def test_widths_are_told_as_points_to_either_side():
    """An interval 0.256 wide reaches 12.8 points to either side of its middle."""
    found = forecast_labels(
        CalibrationDocument.model_validate({"n": 1200, "labels_needed": NEEDED})
    )
    assert found[1] == [
        ("25", "\u00b113 points", "\u00b115 points"),
        ("1,200 (now)", "\u00b12.5 points", "\u00b14 points"),
    ]


def test_the_labels_for_a_width_are_told_and_the_width_that_none_give():
    assert forecast_labels(CalibrationDocument.model_validate({"labels_needed": NEEDED}))[0] == (
        "\u00b110 points need 43 labels, \u00b15 points need 1,231 labels. "
        "Not even a label on each of the 900 verdicts gives \u00b12.5 points."
    )


def test_without_a_forecast_nothing_is_told():
    """As `labels_needed` is where there is no label to go by, and before there was one."""
    nothing = {"reason": "there is no label to go by", "curve": [], "for_width": {}}
    empty = {"n": 0, "labels_needed": nothing}
    assert forecast_labels(CalibrationDocument.model_validate(empty)) == ("", [])
    assert forecast_labels(CalibrationDocument.model_validate({})) == ("", [])
