"""misslink live report as a user runs it."""

import json
import re

import pytest

from live_logs import simulated


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return simulated(tmp_path_factory.mktemp("live") / "live.sqlite", 800, (0.4, 0.7))


def test_json_is_one_document_and_the_only_thing_on_stdout(misslink, log):
    code, out, _err = misslink(
        "live", "report", str(log), "--guardrail", "latency:at_most=0.2", "--json"
    )
    document = json.loads(out)
    assert code == 0
    assert document["verdict"]["decision"] == "ship"
    metric = document["comparisons"][0]["metrics"]["satisfaction"]
    for found in (metric["control"], metric["always_valid"]["difference"]):
        assert {"value", "low", "high", "n", "method", "reason"} <= set(found)


def test_the_table_fits_80_columns_and_ends_in_what_to_do(misslink, log, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _code, out, _err = misslink("live", "report", str(log))
    tables = [line for line in out.splitlines() if re.match(r"(variant|A|B|satisfaction)  ", line)]
    assert len(tables) > 2
    assert max(map(len, tables)) <= 80
    assert "Ship B" in out


def test_page_and_markdown_are_written(misslink, log, tmp_path):
    page, text = tmp_path / "live.html", tmp_path / "live.md"
    code, _out, _err = misslink(
        "live", "report", str(log), "--html", str(page), "--markdown", str(text)
    )
    assert code == 0
    assert "Ship B" in page.read_text(encoding="utf-8")
    assert text.read_text(encoding="utf-8").startswith("## Live: reranker")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--alpha", "2"], "--alpha 2.0"),
        (["--alpha", "1e-320"], "--alpha"),
        (["--units", "inf"], "--units"),
        (["--detect", "0"], "--detect"),
        (["--experiment", "other"], "no experiment 'other'"),
        (["--json", "--markdown", "-"], "both print to stdout"),
        (["--html", "."], "folder"),
    ],
)
def test_wrong_options_exit_2_with_a_sentence(misslink, log, options, said):
    code, _out, err = misslink("live", "report", str(log), *options)
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_the_log_is_not_written_over(misslink, log):
    before = log.read_bytes()
    code, _out, _err = misslink("live", "report", str(log), "--html", str(log))
    assert (code, log.read_bytes()) == (2, before)


def test_a_file_that_is_no_log_is_told(misslink, tmp_path):
    other = tmp_path / "x.sqlite"
    other.write_text("hello", encoding="utf-8")
    code, _out, err = misslink("live", "report", str(other))
    assert code == 2
    assert str(other) in err
