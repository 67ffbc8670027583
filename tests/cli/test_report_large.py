"""misslink report of a large run: its page and the table beside it, in one folder and elsewhere."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from misslink.report import cases as worst

CASES = [{"id": f"c{n}", "question": f"What of {n}?", "relevant": ["a"]} for n in range(6)]
SHOWN = {"id": "a", "text": "The ferry leaves at seven."}
TRACES = [{"case_id": case["id"], "retrieved": [SHOWN], "answer": "At seven."} for case in CASES]


@pytest.fixture
def run(misslink, monkeypatch):
    """A run of six cases in ./run, where a page tells the worst two of more than four."""
    monkeypatch.setattr(worst, "MAX_FULL_PAGE", 4)
    monkeypatch.setattr(worst, "PARTIAL_PAGE_CASES", 2)
    for name, rows in (("gold.jsonl", CASES), ("traces.jsonl", TRACES)):
        Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    code, _, err = misslink(
        *("evaluate", "--traces", "traces.jsonl", "--goldset", "gold.jsonl"),
        *("--judge", "heuristic", "--out", "run"),
    )
    assert code == 0, err
    return Path("run")


def rows(path):
    return pq.read_table(path).num_rows


def test_a_run_folder_holds_the_table_that_its_page_leads_to(misslink, run):
    assert rows(run / "cases.parquet") == 6
    assert 'href="cases.parquet" download' in (run / "report.html").read_text(encoding="utf-8")
    (run / "cases.parquet").unlink()
    assert misslink("report", run)[0] == 0
    assert rows(run / "cases.parquet") == 6


def test_the_table_alone_is_a_form_of_the_report(misslink, run):
    (run / "cases.parquet").unlink()
    code, out, err = misslink("report", run, "--format", "parquet")
    assert (code, err) == (0, "")
    assert out.endswith("\nreport: run/cases.parquet\n")
    assert rows(run / "cases.parquet") == 6
    misslink("report", run, "--format", "parquet", "--out", "all.parquet")
    assert Path("all.parquet").read_bytes() == (run / "cases.parquet").read_bytes()


def test_elsewhere_the_table_is_called_as_the_page(misslink, run):
    assert misslink("report", run, "--out", "out/mine.html")[0] == 0
    assert rows("out/mine.parquet") == 6
    assert 'href="mine.parquet" download' in Path("out/mine.html").read_text(encoding="utf-8")


def test_stdout_has_no_place_for_two_files(misslink, run):
    code, out, err = misslink("report", run, "--out", "-")
    assert (code, out) == (2, "")
    assert "The page of 6 cases has a second file with all cases. Name a file with --out." in err
    assert misslink("report", run, "--out", "-", "--format", "markdown")[0] == 0


def test_a_file_of_the_user_in_the_table_s_place_is_left_alone(misslink, run):
    Path("mine.parquet").write_text("my own", encoding="utf-8")
    code, out, err = misslink("report", run, "--out", "mine.html")
    assert (code, out) == (2, "")
    assert "mine.parquet: this is in the place of the page's table of all cases" in err
    assert "give the page another path with --out" in err
    assert len(err.splitlines()) == 1
    assert Path("mine.parquet").read_text(encoding="utf-8") == "my own"
    assert not Path("mine.html").exists()


def test_a_later_command_writes_page_and_table_anew(misslink, run):
    labels = [{"case_id": f"c{n}", "metric": "faithfulness", "label": n % 2, "annotator": "a"}
              for n in range(6)]  # fmt: skip
    Path("labels.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in labels))
    code, _, err = misslink("calibrate", run, "--labels", "labels.jsonl")
    assert code in (0, 1), err
    found = pq.read_table(run / "cases.parquet")
    assert found.column("people.faithfulness.share").to_pylist() == [0, 1, 0, 1, 0, 1]
    assert 'href="cases.parquet" download' in (run / "report.html").read_text(encoding="utf-8")
    assert not [one.name for one in run.iterdir() if one.name.startswith(".")]
