"""evaluate --case: only the named cases, in a run that says so."""

import json
import shlex
from pathlib import Path

import pytest

from misslink.documents import Manifest
from misslink.report.links import build_case_command


@pytest.fixture
def given():
    ids = ("a", "b b", "-c")
    gold, traces = Path("gold.jsonl"), Path("traces.jsonl")
    gold.write_text(
        "".join(json.dumps({"id": one, "question": f"Who is {one}?"}) + "\n" for one in ids)
    )
    traces.write_text(
        "".join(json.dumps({"case_id": one, "answer": f"It is {one}."}) + "\n" for one in ids)
    )
    return ["evaluate", "--traces", traces, "--goldset", gold, "--judge", "heuristic", "--json"]


def test_only_the_named_cases_are_evaluated_and_the_manifest_says_so(misslink, given):
    code, out, err = misslink(*given, "--case", "b b", "--case=-c", "--out", "one")

    assert code == 0, err
    assert json.loads(out)["cases"] == 2
    kept = [json.loads(line)["id"] for line in Path("one/cases.jsonl").read_text().splitlines()]
    assert kept == ["b b", "-c"]
    inputs = json.loads(Path("one/manifest.json").read_text())["inputs"]
    assert json.loads(inputs["cases"]) == ["b b", "-c"]


def test_a_run_of_all_cases_says_nothing_of_it_and_is_not_replaced_by_one_of_some(misslink, given):
    assert misslink(*given, "--out", "one")[0] == 0
    manifest = json.loads(Path("one/manifest.json").read_text())
    assert "cases" not in manifest["inputs"]

    code, _, err = misslink(*given, "--case", "a", "--out", "one")
    assert code == 2
    assert "--overwrite" in err


def test_an_unknown_id_names_the_nearest(misslink, given):
    code, out, err = misslink(*given, "--case", "b_b", "--out", "one")

    assert (code, out) == (2, "")
    assert "gold.jsonl: there is no case with the id 'b_b'; did you mean 'b b'?" in err
    assert not Path("one").exists()


def test_the_report_s_command_for_a_case_runs(misslink, given):
    command = shlex.join(["misslink", *map(str, given), "--out", "reports/all"])
    found = build_case_command(Manifest(command=command))

    words = shlex.split(f"{found.head} --case='b b' --out {found.out}2")[1:]
    code, _, err = misslink(*words)
    assert code == 0, err
    assert len(Path("reports/all-case-2/cases.jsonl").read_text().splitlines()) == 1
