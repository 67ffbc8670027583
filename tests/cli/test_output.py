"""What commands say while they run."""

from __future__ import annotations

from misslink.cli.output import progress_bars


def test_a_bar_follows_a_total_that_changes(capsys):
    with progress_bars() as tick:
        tick("judge", 1, 2)
        tick("judge", 3, 5)
    printed = capsys.readouterr()
    assert "3/5" in printed.err
    assert printed.out == ""
