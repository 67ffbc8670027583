"""What commands say while they run."""

from __future__ import annotations

import pytest

from misslink.cli.output import progress_bars, shown


def test_a_bar_follows_a_total_that_changes(capsys):
    with progress_bars() as tick:
        tick("judge", 1, 2)
        tick("judge", 3, 5)
    printed = capsys.readouterr()
    assert "3/5" in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("value", "low", "high", "written"),
    [
        (-0.001, -0.2, -0.001, "0 % [-20, 0]"),
        (0.616, 0.5, 0.72, "62 % [50, 72]"),
        (0.0, None, None, "0 %, n = 5"),
        (0.3, None, 0.9, "30 % [unbounded, 90]"),
    ],
)
def test_a_share_has_no_minus_zero_and_no_interval_of_question_marks(value, low, high, written):
    assert shown({"value": value, "low": low, "high": high, "n": 5}) == written
