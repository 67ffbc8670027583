"""What a run says on a terminal: narrow, in any encoding, and nothing cut."""

from __future__ import annotations

import io
import re
import sys

import pytest
from rich.cells import cell_len

from example_run import HOSTILE, example_run, missing
from misslink import evaluate
from misslink.cli.output import wrap_text
from misslink.cli.run_summary import print_run_summary
from misslink.examples import load_example
from misslink.render.format import FormattedEstimate
from misslink.render.headline import describe_findings, describe_verdict
from misslink.report.findings import find
from misslink.report.overview import metric_levels
from misslink.types import Estimate, Run
from proven_run import proven_run

WIDE = "correctness_of_everything_that_a_plugin_of_somebody_else_measured"


@pytest.fixture
def printed(capsys, monkeypatch):
    """Print a run at a width; returns the lines."""

    def at(width, run, *, verbose=True):
        monkeypatch.setenv("COLUMNS", str(width))
        print_run_summary(run, "reports/today/report.html", verbose=verbose)
        return capsys.readouterr().out.splitlines()

    return at


def ferry_run():
    return evaluate(**load_example("ferry"), cache=None)


def measured(run):
    return [
        one.shown for level in metric_levels(run) for one in level.metrics if one.shown.measured
    ]


def with_metrics(**metrics):
    run = proven_run()
    generation = run.summary["generation"] | metrics
    return run.model_copy(update={"summary": run.summary | {"generation": generation}})


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("run", [example_run, proven_run])
def test_no_line_is_wider_than_the_terminal(printed, run, width):
    lines = printed(width, run())
    assert len(lines) > 30
    # The hostile run's names of options are words that no blank breaks.
    assert [line for line in lines if cell_len(line) > width and " " in line.strip()] == []


@pytest.mark.slow
@pytest.mark.parametrize("run", [example_run, proven_run, ferry_run])
def test_the_summary_is_at_most_25_lines_unless_verbose(printed, run):
    lines = printed(80, run(), verbose=False)
    assert len(lines) <= 25, "\n".join(lines)
    assert [line for line in lines if cell_len(line) > 80 and " " in line.strip()] == []
    text = " ".join(lines)
    assert describe_verdict(find(run())) in text
    assert re.search(r"retrieval_miss +retriever +\d", text)
    assert [line[:2] for line in lines if re.match(r"[1-9]\. ", line)] == ["1.", "2.", "3."]
    assert any(line.startswith("Judge: ") for line in lines)
    assert lines[-1] == "report: reports/today/report.html"
    long = " ".join(printed(80, run()))
    assert all(shown.name in long for shown in measured(run()))


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("run", [example_run, proven_run])
def test_no_number_is_cut_or_broken(printed, run, width):
    lines = printed(width, run())
    for shown in measured(run()):
        row = rf"(\S+  )? *{re.escape(shown.name)} +{re.escape(shown.brief)} +{shown.n}"
        assert any(re.fullmatch(row, line.rstrip()) for line in lines), shown
    for line in lines:
        assert line.count("[") == line.count("]"), "an interval stands on one line"
        assert not re.match(r" *(%|points|times|\[|= \d)", line)
        assert not re.search(r"(n =|p <|[\d%] \[\S+,)$", line)


def test_a_long_name_folds_and_its_number_stays_whole(printed):
    metric = {"value": 0.62, "low": 0.51, "high": 0.72, "n": 1087, "method": "m", "reason": None}
    lines = printed(60, with_metrics(**{WIDE: metric}))
    (row,) = [line for line in lines if "62% [51, 72]" in line]
    assert row.rstrip().endswith("1,087")
    place = lines.index(row)
    folded = "".join(line[12:34].split(" ")[0] for line in lines[place : place + 4])
    assert folded.startswith(WIDE)


def test_what_was_not_measured_stands_in_a_line_for_each_reason(printed):
    lines = printed(
        80, with_metrics(one=missing("nobody"), two=missing("nobody"), three=missing("no time"))
    )
    assert "Not measured: one, two: nobody." in lines
    assert "Not measured: three: no time." in lines
    assert not any(re.match(r" *(one|two|three) ", line) for line in lines)


def test_numbers_are_written_as_on_the_page(printed):
    text = "\n".join(printed(80, example_run()))
    assert re.search(r"mrr +0\.51 \[0\.27, 0\.75\] +12\n", text)
    assert re.search(r"abstention +0 of 9 +9\n", text)
    assert "Lower is better: noise_sensitivity." in text


def test_it_says_the_link_the_causes_and_what_to_do(printed):
    lines = printed(80, proven_run())
    text = " ".join(lines)
    sentences = describe_findings(find(proven_run()))
    assert [text.count(sentence) for sentence in sentences] == [1] * 3
    assert text.startswith(sentences[0])  # errors come before any number
    assert re.search(r"retrieval_miss +retriever +1 +7% \[1, 31\]", text)
    steps = [line for line in lines if re.match(r"[1-9]\. ", line)]
    assert [line[:2] for line in steps] == ["1.", "2.", "3."]
    assert lines[-1] == "report: reports/today/report.html"


def test_the_corrected_share_stands_below_the_judges_own(printed):
    run = proven_run()
    whole = run.summary["link"]["corrected"]["attributable_fraction"]
    assert whole["value"] is not None
    text = " ".join(printed(80, run))
    assert "Corrected for the judge's errors, the attributable fraction is 43%" in text
    plain = {name: value for name, value in run.summary["link"].items() if name != "corrected"}
    run = run.model_copy(update={"summary": {**run.summary, "link": plain}})
    assert "Corrected for" not in " ".join(printed(80, run))


def test_a_run_of_nothing_says_so(printed):
    empty = Run(manifest={}, cases=(), traces=(), verdicts=(), links=(), summary={})
    lines = printed(80, empty)
    assert lines[0] == "0 cases, judge not recorded"
    assert "Nothing can be advised: this run has no cases." in lines


def test_texts_under_test_move_no_cursor_and_open_no_markup(printed):
    metric = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 9, "method": "m", "reason": None}
    hostile = {"\x1b[2Jgone": metric, "[red]x[/red][/nothing]": metric, HOSTILE[8]: metric}
    text = "\n".join(printed(120, with_metrics(**hostile)))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[2Jgone" in text
    assert "[red]x[/red][/nothing]" in text


def test_without_a_terminal_it_is_plain_text(printed, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    text = "\n".join(printed(80, proven_run()))
    assert "\x1b" not in text
    assert not re.search(r"[\u2500-\u257f]", text), "no lines are drawn"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_an_old_encoding_gets_what_it_can_show(monkeypatch, encoding):
    kept = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(kept, encoding=encoding))
    monkeypatch.setenv("COLUMNS", "80")
    metric = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 90, "method": "m", "reason": None}
    print_run_summary(with_metrics(دوال=metric), "übermorgen.html", verbose=True)
    sys.stdout.flush()
    text = kept.getvalue().decode(encoding)
    assert "7 of 14 answers are flagged; 2 could not be judged." in " ".join(text.split())
    assert re.search(r"\n +\?\?\?\? +50% \[40, 60\] +90", text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("aa b c", ["aa b", "c"]),
        ("x 62% [51, 72]", ["x", "62% [51, 72]"]),
        ("risk +86 points [2, 96]", ["risk", "+86 points [2, 96]"]),
        ("xy n = 87", ["xy", "n = 87"]),
        ("p < 0.001", ["p < 0.001"]),
        ("ratio 7.0 times [1.1, unbounded]", ["ratio", "7.0 times [1.1, unbounded]"]),
        ("漢字 漢", ["漢字", "漢"]),
        ("", [""]),
    ],
)
def test_lines_break_at_blanks_but_in_no_number(text, lines):
    assert list(wrap_text(text, 5)) == lines


def test_the_lines_of_an_item_stand_under_its_first():
    assert list(wrap_text("1. one two three", 10, "   ")) == ["1. one two", "   three"]


def test_the_interval_of_a_number_is_kept_with_it_as_people_read_it():
    """Whatever the page can write of an estimate, no line of the terminal ends within it."""
    from misslink.render.format import format_difference, format_estimate

    ends = [(0.616, 0.51, 0.72), (0.0, None, None), (0.3, None, 0.9), (-0.004, -0.2, 0.1)]
    for value, low, high in ends:
        why = "open" if None in (low, high) else None
        one = Estimate(value=value, low=low, high=high, n=12, method="m", reason=why)
        written: list[FormattedEstimate] = [
            format_estimate(name, one) for name in ("recall@5", "mrr", "risk_ratio")
        ]
        written += [format_difference("recall@5", one), format_difference("mrr", one)]
        for number in written:
            assert list(wrap_text(f"word {number.brief}", 1)) == ["word", number.brief]
