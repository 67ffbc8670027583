"""misslink report: its forms, where they are written, and where they are not."""

import json
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from typer.testing import CliRunner

from misslink.cli.main import app
from misslink.io.run_folder import report_file
from misslink.registry import exporters

FORMATS = Path(__file__).parents[2] / "docs" / "export.md"
CASES = [
    {"id": "ferry", "question": "When does the ferry leave?", "relevant": ["times"]},
    {"id": "dogs", "question": "May dogs travel?", "relevant": ["pets"]},
]
SHOWN = {"id": "times", "text": "The ferry leaves at seven."}
TRACES = [
    {"case_id": "ferry", "retrieved": [SHOWN], "answer": "The ferry leaves at seven."},
    {"case_id": "dogs", "retrieved": [SHOWN], "answer": "All dogs may travel."},
]


EVALUATE = (
    *("evaluate", "--traces", "traces.jsonl", "--goldset", "gold.jsonl"),
    *("--judge", "heuristic", "--out", "run"),
)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A run of two cases, one of them a miss, in ./run, with what it was made of."""
    folder = tmp_path_factory.mktemp("evaluated")
    with chdir(folder):
        for name, rows in (("gold.jsonl", CASES), ("traces.jsonl", TRACES)):
            text = "".join(f"{json.dumps(row)}\n" for row in rows)
            Path(name).write_text(text, encoding="utf-8")
        done = CliRunner().invoke(app, EVALUATE)
        assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def run(evaluated):
    """A copy of it for each test."""
    shutil.copytree(evaluated, ".", dirs_exist_ok=True)
    return Path("run")


def evaluate(misslink, *options):
    code, _, err = misslink(*EVALUATE, *options)
    assert code == 0, err


@pytest.mark.parametrize("form", exporters.names())
def test_every_form_has_its_file_beside_the_run(misslink, run, form):
    (run / "report.html").unlink()
    name = report_file(form)
    assert f"| `{form}` | `RUN/{name}` |" in FORMATS.read_text(encoding="utf-8")
    code, out, err = misslink("report", run, "--format", form)
    assert (code, err) == (0, "")
    assert out.endswith(f"\nreport: run/{name}\n")
    assert (run / name).stat().st_size


def test_people_are_told_what_the_run_found_and_what_to_do(misslink, run):
    _, out, _ = misslink("report", run, "--format", "csv", "--verbose")
    assert out.startswith("2 cases, judge heuristic, k = 5\n")
    assert "recall@5" in out
    assert "What to do next\n1. " in out


def test_evaluate_says_the_same(misslink, run):
    _, again, _ = misslink("report", run)
    _, out, _ = misslink(
        *("evaluate", "--traces", "traces.jsonl", "--goldset", "gold.jsonl"),
        *("--judge", "heuristic", "--out", "run"),
    )

    def numbers(printed):  # the second time the cache answers, and no fault is planted
        lines = printed.splitlines()
        return [line for line in lines if "cache" not in line and "Selftest" not in line]

    assert numbers(out) == numbers(again)


def test_json_says_where_it_was_written(misslink, run):
    _, out, _ = misslink("report", run, "--format", "markdown", "--json", "--out", "a/b.md")
    assert json.loads(out) == {"run": "run", "report": "a/b.md", "format": "markdown"}
    assert Path("a/b.md").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("form", exporters.names())
def test_a_dash_prints_the_same_document_and_nothing_else(misslink, run, form):
    misslink("report", run, "--format", form, "--out", "file")
    command = [sys.executable, "-m", "misslink", "report", run, "--format", form, "--out", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (Path("file").read_bytes(), b"")
    assert not Path("-").exists()


def test_one_stdout_is_not_for_two_documents(misslink, run):
    code, out, err = misslink("report", run, "--out", "-", "--json")
    assert (code, out) == (2, "")
    assert "both print to stdout" in err


def test_an_unknown_form_names_the_nearest(misslink, run):
    code, out, err = misslink("report", run, "--format", "markdwon")
    assert (code, out) == (2, "")
    assert "did you mean 'markdown'? Known: " in err


def test_a_form_of_somebody_else_works_by_its_name(misslink, run, monkeypatch):
    """What an entry point of the group misslink.exporters registers when it is loaded."""

    def tally(run, path):
        path.write_text(f"{len(run.cases)} cases", encoding="utf-8")
        return path

    exporters.names()  # loaded; what is entered now goes away again
    monkeypatch.setitem(exporters._entries, "tally", tally)
    code, out, _ = misslink("report", run, "--format", "tally")
    assert (code, out.splitlines()[-1]) == (0, "report: run/report.tally")
    assert (run / "report.tally").read_text(encoding="utf-8") == "2 cases"


@pytest.mark.parametrize(
    "name",
    ["cases.jsonl", "Links.JSONL", "summary.json", "manifest.json", "map.json", "replays.jsonl"],
)
@pytest.mark.parametrize("form", ["html", "csv"])
def test_no_report_is_written_over_a_part_of_a_run(misslink, run, form, name):
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    code, out, err = misslink("report", run, "--format", form, "--out", run / name)
    assert (code, out) == (2, "")
    assert f"run/{name}: This is a part of a run" in err
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_elsewhere_these_names_are_free(misslink, run):
    assert misslink("report", run, "--format", "json", "--out", "summary.json")[0] == 0


def test_a_run_that_is_replaced_leaves_no_old_report(misslink, run):
    for form in ("markdown", "json", "csv"):
        misslink("report", run, "--format", form)
    Path("run/notes.txt").write_text("mine", encoding="utf-8")
    evaluate(misslink, "--k", "3", "--overwrite")
    reports = {path.name for path in run.iterdir() if path.name.startswith("report.")}
    assert reports == {"report.html"}
    assert Path("run/notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("form", exporters.names())
def test_a_file_that_cannot_be_written_names_the_option_that_helps(misslink, run, form):
    """A file stands where its folder would have to be: nobody, root included, can write there."""
    Path("file").write_text("", encoding="utf-8")
    code, _, err = misslink("report", run, "--format", form, "--out", "file/p")
    assert code == 2
    assert "file/p: it cannot be written (" in err
    assert "another path with --out" in err


def test_a_run_folder_that_takes_no_page_names_the_option_that_helps(misslink, run):
    (run / "report.html").unlink()
    (run / "report.html").mkdir()
    code, _, err = misslink("report", run)
    assert code == 2
    assert "give another path" in err
    assert err.rstrip().endswith("with --out")


@pytest.mark.parametrize("part", ["cases", "traces", "verdicts", "links"])
def test_a_run_that_lost_a_line_is_refused(misslink, run, part):
    path = run / f"{part}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")
    for command in ("report", "diagnose"):
        code, out, err = misslink(command, run)
        assert (code, out) == (2, "")
        assert f"run: this run folder is not complete ({part}.jsonl has " in err or part == "cases"
        assert "this run folder is not complete" in err
        assert len(err.splitlines()) == 1


def test_what_is_wrong_with_the_run_is_not_blamed_on_the_path(misslink, run):
    first, _ = Path("run/cases.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("run/cases.jsonl").write_text(first + first, encoding="utf-8")
    code, _, err = misslink("report", run, "--format", "csv")
    assert code == 2
    assert "cases.jsonl has 1 entries of its cases and should have 2" in err
    assert "--out" not in err
