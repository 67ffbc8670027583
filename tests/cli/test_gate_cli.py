"""misslink gate: exit codes, documents, files, and a table that fits a terminal."""

import json
from pathlib import Path

import pytest

from gated_run import gated_run, write

TEN = "1111111100"


@pytest.fixture
def folders():
    write("main", gated_run(TEN))
    write("today", gated_run("1111000000"))


def criteria(text):
    Path("ship.yaml").write_text(f"gates: [{text}]", encoding="utf-8")
    return ("--criteria", "ship.yaml")


def test_it_prints_the_contract_and_fails_with_1(misslink, folders):
    wanted = criteria("{name: retrieval_recall_at_1, threshold: 0.5, regression_max: 0.03}")
    code, out, err = misslink("gate", "today", *wanted, "--baseline", "main", "--json")
    found = json.loads(out)
    (gate,) = found["gates"]
    assert (code, found["passed"], err) == (1, False, "")
    expected = {
        "name": "retrieval_recall_at_1", "metric": "recall@1", "severity": "error",
        "passed": False, "value": 0.4, "baseline": 0.8, "threshold": 0.5,
    }  # fmt: skip
    assert expected.items() <= gate.items()
    assert gate["regression"] == pytest.approx(0.4)
    code, out, _ = misslink("gate", "main", *wanted, "--baseline", "today/summary.json", "--json")
    assert (code, json.loads(out)["passed"]) == (0, True)


def test_the_table_fits_80_columns(misslink, folders, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    hostile = '{name: "a\\e[31m", metric: mrr, threshold: 0.1}'
    wanted = criteria("{name: recall_at_1, threshold: 0.5}, " + hostile)
    code, out, _ = misslink("gate", "today", *wanted)
    assert code == 1
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert out.splitlines()[-1] == "1 of 2 gates failed over 10 questions."


def test_files_are_written_and_the_schema_is_printed(misslink, folders):
    wanted = criteria("{name: recall_at_1, threshold: 0.5}")
    code, _, _ = misslink("gate", "today", *wanted, "--markdown", "c.md", "--junit", "g.xml")
    assert code == 1
    assert Path("c.md").read_text(encoding="utf-8").startswith("<!-- misslink gate: ship -->\n")
    assert "<testsuites" in Path("g.xml").read_text(encoding="utf-8")
    code, out, _ = misslink("gate", "today", *wanted, "--markdown", "-")
    assert out == Path("c.md").read_text(encoding="utf-8")
    code, out, _ = misslink("gate", "--schema")
    assert code == 0
    assert json.loads(out)["properties"]["gates"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gate",), "needs a run folder"),
        (("gate", "today"), "The gate needs criteria. Write: misslink gate RUN --criteria FILE"),
        (("gate", "nowhere", "--criteria", "ship.yaml"), "nowhere: there is no such run folder"),
        (("gate", "today", "--criteria", "none.yaml"), "none.yaml: there is no such file"),
        (("gate", "today", "--criteria", "ship.yaml", "--junit", "no/x"), "its folder does not"),
        (
            ("gate", "today", "--criteria", "ship.yaml", "--markdown", "today/summary.json"),
            "today/summary.json: This is a part of a run. Name another file with --markdown.",
        ),
        (
            ("gate", "today", "--criteria", "ship.yaml", "--junit", "main/links.jsonl"),
            "main/links.jsonl: This is a part of a run. Name another file with --junit.",
        ),
        (
            ("gate", "today", "--criteria", "ship.yaml", "--markdown", "a", "--junit", "./a"),
            "a: --markdown and --junit name the same file. Name two files.",
        ),
        (
            ("gate", "today", "--criteria", "ship.yaml", "--baseline", "today"),
            "the baseline is the run itself",
        ),
        (
            ("gate", "today", "--criteria", "ship.yaml", "--baseline", "today/summary.json"),
            "the baseline is the run itself",
        ),
        (("gate", "today", "--criteria", "ship.yaml", "--markdown", "-", "--json"), "both print"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(misslink, folders, arguments, said):
    criteria("{name: recall_at_1, threshold: 0.5}")
    code, out, err = misslink(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("writer", "described"),
    [
        ({"format": 99, "misslink": "9.1"}, "a newer misslink (9.1)"),
        ({"format": 1, "misslink": "0.1.0"}, "an older misslink (0.1.0)"),
    ],
)
def test_a_run_in_another_format_is_refused(misslink, folders, writer, described):
    path = Path("today/manifest.json")
    manifest = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**manifest, **writer}), encoding="utf-8")
    code, out, err = misslink("gate", "today", *criteria("{name: mrr, threshold: 0.1}"))
    assert (code, out) == (2, "")
    assert f"today: this run was written by {described}" in err
    assert len(err.splitlines()) == 1


def test_a_copy_of_a_summary_that_is_the_baseline_is_not_overwritten(misslink, folders):
    Path("kept.json").write_bytes(Path("main/summary.json").read_bytes())
    wanted = criteria("{name: recall_at_1, threshold: 0.1}")
    code, _, err = misslink(
        "gate", "today", *wanted, "--baseline", "kept.json", "--junit", "kept.json"
    )
    assert code == 2
    assert "kept.json: This is an input. Name another file with --junit." in err
    assert json.loads(Path("kept.json").read_text(encoding="utf-8"))["cases"] == 10


def test_a_comment_is_written_whole_or_not_at_all(misslink, folders, monkeypatch):
    Path("c.md").write_text("the one before", encoding="utf-8")

    def full(path, content):
        path.open("wb").close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    wanted = criteria("{name: recall_at_1, threshold: 0.1}")
    code, _, err = misslink("gate", "today", *wanted, "--markdown", "c.md")
    assert (code, err) == (
        2,
        "misslink: c.md: it cannot be written (No space left on device); give another path\n",
    )
    assert Path("c.md").read_text(encoding="utf-8") == "the one before"
    assert not list(Path().glob(".c.md*"))


def test_notes_fit_80_columns_too(misslink, folders, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    wanted = criteria("{name: recall_at_1, regression_max: 0.1}")
    code, out, _ = misslink("gate", "today", *wanted, "--baseline", "main/summary.json")
    assert code == 1
    assert "summary.json without cases" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
