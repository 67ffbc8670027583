"""What commands say while they run."""

import logging
import re

import pytest

from misslink.cli.main import Warnings
from misslink.cli.output import format_estimate, print_line, progress_bars
from misslink.render.format import format_estimate as on_page
from misslink.types import Estimate

ESCAPE = re.compile(r"\x1b\[[?\d;]*[A-Za-z]")


def _estimate(value, low, high):
    reason = "no interval" if None in (low, high) else None
    ends = {"value": value, "low": low, "high": high}
    return {**ends, "n": 50, "method": "made", "reason": reason}


def test_a_bar_follows_a_total_that_changes(capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with progress_bars() as tick:
        tick("judge", 1, 2)
        tick("judge", 3, 5)
    printed = capsys.readouterr()
    assert re.search(r"3/5\S* *\n", printed.err), "no rate and no clock in the first seconds"
    assert printed.out == ""


def test_a_warning_goes_above_the_bar(capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "40")
    told = "the server asks for a pause of twenty seconds \x1b[31m"
    with progress_bars() as tick:
        tick("judge", 1, 2)
        Warnings().emit(logging.makeLogRecord({"msg": told}))
    lines = [ESCAPE.sub("", line).strip() for line in re.split(r"[\r\n]+", capsys.readouterr().err)]
    place = lines.index("the server asks for a pause of twenty")
    assert lines[place + 1] == "seconds [31m"
    assert lines[-2].startswith("Judging"), "the bar is drawn again below"
    assert not any("Judging" in line and "server" in line for line in lines)


@pytest.mark.parametrize("width", [20, 80, 140])
def test_a_line_wraps_at_words_and_a_command_stays_whole(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    command = "misslink annotate 'reports/a folder' --annotator ada"
    print_line(f"  The judge was checked with few labels. Next:  {command}")
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= min(width, 100) for line in lines if command not in line)
    assert all(line.startswith("  ") for line in lines)
    assert sum(command in line for line in lines) == 1


def test_in_a_pipe_a_line_stays_whole(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    print_line("word " * 100)
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_without_a_terminal_there_is_no_progress(capsys):
    with progress_bars() as tick:
        tick("judge", 1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("value", "low", "high", "written"),
    [
        (-0.001, -0.2, -0.001, "0% [\u221220, 0]"),
        (0.616, 0.5, 0.72, "62% [50, 72]"),
        (0.0, None, None, "0%, n = 50"),
        (0.3, None, 0.9, "30% [unbounded, 90]"),
    ],
)
def test_a_share_has_no_minus_zero_and_no_interval_of_question_marks(value, low, high, written):
    assert format_estimate(_estimate(value, low, high)) == written


@pytest.mark.parametrize(
    "name", ["mrr", "ndcg@5", "map", "recall@5", "fully_faithful", "risk_ratio"]
)
@pytest.mark.parametrize("value", [0.0, 0.004, 0.425, 0.999])
def test_a_metric_is_written_as_on_the_page(name, value):
    found = _estimate(value, value / 2, value * 1.5)
    assert format_estimate(found, name) == on_page(name, Estimate.model_validate(found)).brief


def test_the_retrieval_of_a_rank_metric_is_a_decimal():
    assert format_estimate(_estimate(0.425, 0.3, 0.5), "ndcg@5") == "0.42 [0.30, 0.50]"


def test_what_was_not_measured_says_why():
    assert format_estimate(Estimate.missing("nobody asked").model_dump(), "mrr") == (
        "not measured: nobody asked"
    )
