"""The program as a whole: what of its packages' logs reaches a person."""

import logging
import os
import subprocess
import sys

import pytest


def test_a_package_whose_logger_is_verbose_says_nothing_below_a_warning(
    misslink, monkeypatch, capsys
):
    """bm25s sets its own logger to DEBUG and tells of every index that it builds."""
    import bm25s

    assert logging.getLogger("bm25s").level == logging.DEBUG
    # A fresh process has no handlers; pytest puts its own there for each test.
    monkeypatch.setattr(logging.root, "handlers", [])
    misslink("--version")  # installs the handler
    bm25s.BM25().index([["one"], ["two"]], show_progress=False)
    logging.getLogger("bm25s").warning("careful")
    assert capsys.readouterr().err == "misslink: careful\n"


def test_escape_sequences_of_what_is_under_test_never_reach_the_terminal(
    misslink, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(logging.root, "handlers", [])
    misslink("--version")  # installs the handler
    logging.getLogger("misslink").warning("case '%s' is odd", "c\x1b[2J")
    assert capsys.readouterr().err == "misslink: case 'c[2J' is odd\n"
    (tmp_path / "\x1b[31m").mkdir()
    code, _, told = misslink("report", str(tmp_path / "\x1b[31m"))
    assert code == 2
    assert "\x1b" not in told


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="a pipe whose reader left is told otherwise there")
@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "run", "--json"),  # written when the program ends
        ("report", "run"),  # by rich
        ("report", "run", "--format", "json", "--out", "-"),  # as bytes
        ("--help",),
    ],
)
def test_a_reader_that_has_left_is_no_failed_gate_and_no_traceback(arguments, tmp_path):
    for name in ("cases", "traces", "verdicts", "links"):
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / f"{name}.jsonl").touch()
    for name in ("manifest", "summary"):
        (tmp_path / "run" / f"{name}.json").write_text("{}")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", "from misslink.cli.main import main; main()", *arguments],
        stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, check=False,
    )  # fmt: skip
    os.close(writer)

    assert (done.returncode, done.stderr) == (141, b"")


def test_a_failure_keeps_its_own_code_where_nothing_is_printed(misslink):
    assert misslink("report", "nowhere")[0] == 2
