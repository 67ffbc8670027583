"""evaluate --case and --sample: only some cases, in a run that says so."""

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
    found = build_case_command(Manifest.read({"command": command}))

    words = shlex.split(f"{found.head} --case='b b' --out {found.out}2")[1:]
    code, _, err = misslink(*words)
    assert code == 0, err
    assert len(Path("reports/all-case-2/cases.jsonl").read_text().splitlines()) == 1


def sampled(misslink, given, out, *options):
    code, _, err = misslink(*given, "--out", out, *options)
    assert code == 0, err
    return [json.loads(line)["id"] for line in Path(out, "cases.jsonl").read_text().splitlines()]


def test_a_sample_is_the_same_for_one_seed_and_the_manifest_lists_it(misslink, given):
    drawn = sampled(misslink, given, "one", "--sample", "2")
    assert len(drawn) == 2
    assert drawn == [one for one in ("a", "b b", "-c") if one in drawn], "the gold set's order"
    inputs = json.loads(Path("one/manifest.json").read_text())["inputs"]
    assert json.loads(inputs["cases"]) == drawn
    gold = Path("gold.jsonl")
    gold.write_text("".join(reversed(gold.read_text().splitlines(keepends=True))))
    assert sampled(misslink, given, "two", "--sample", "2") == drawn[::-1]


def test_seeds_draw_different_samples(misslink, given):
    seeds = map(str, range(6))
    drawn = {sampled(misslink, given, s, "--sample", "1", "--seed", s)[0] for s in seeds}
    assert len(drawn) > 1


def test_a_sample_is_drawn_from_the_named_cases_and_no_larger_than_these(misslink, given):
    named = ("--case", "a", "--case", "b b", "--sample")
    assert sampled(misslink, given, "one", *named, "9") == ["a", "b b"]
    assert sampled(misslink, given, "two", *named, "1") in (["a"], ["b b"])
    assert sampled(misslink, given, "all", "--sample", "9") == ["a", "b b", "-c"]
    assert "cases" not in json.loads(Path("all/manifest.json").read_text())["inputs"]


def test_a_sample_of_nothing_is_refused(misslink, given):
    code, out, err = misslink(*given, "--sample", "0", "--out", "none")
    assert (code, out) == (2, "")
    assert "--sample" in err


def test_the_report_s_command_for_a_case_of_a_sample_has_no_sample(given):
    command = shlex.join(["misslink", *map(str, given), "--sample", "2", "--out", "one"])
    assert "--sample" not in build_case_command(Manifest.read({"command": command})).head
