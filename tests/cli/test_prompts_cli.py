"""misslink prompts: what a judge reads can be seen, and compared with one's own."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from misslink.cli.prompts import app
from misslink.errors import InputError
from misslink.judge.prompts import BUILT_IN


def run(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    if isinstance(done.exception, InputError):
        raise done.exception
    return done.exit_code, done.stdout


def test_all_prompts_are_listed_with_their_hash():
    code, out = run("show", "--json")
    listed = {each["name"]: each for each in json.loads(out)["prompts"]}
    assert code == 0
    assert list(listed) == BUILT_IN.names()
    assert listed["examination"]["sha256"] == BUILT_IN.load("examination").ref.sha256
    assert listed["examination"]["schema"] == "Examination"
    assert "goldset_relevance" in run("show")[1]


def test_a_prompt_is_shown_as_its_file_or_as_a_judge_gets_it():
    prompt = BUILT_IN.load("examination")
    assert run("show", "examination")[1] == prompt.text
    assert "[system]" in run("show", "examination", "--rendered")[1]
    found = json.loads(run("show", "examination", "--rendered", "--json")[1])
    assert [message["role"] for message in found["messages"]] == ["system", "user"]
    assert "<passage_2 " in found["messages"][1]["content"]


@pytest.mark.parametrize("name", BUILT_IN.names())
def test_every_prompt_can_be_rendered_as_an_example(name):
    code, out = run("show", name, "--rendered")[:2]
    assert code == 0
    variables = BUILT_IN.load(name).template.variables
    assert [each for each in variables if f"({each})" in out.splitlines()] == []


def test_a_difference_is_a_unified_diff(tmp_path):
    text = BUILT_IN.load("goldset_relevance").text
    (tmp_path / "goldset_relevance.jinja").write_text(text, encoding="utf-8")
    assert (
        run("diff", "goldset_relevance", "--prompts", tmp_path)[1]
        == "goldset_relevance is the same in both\n"
    )
    changed = text.replace("Reply with JSON only:", "Say JSON only:")
    (tmp_path / "goldset_relevance.jinja").write_text(changed, encoding="utf-8")
    shown = run("diff", "goldset_relevance", "--prompts", tmp_path)[1]
    assert "+Say JSON only:" in shown
    found = json.loads(run("diff", "goldset_relevance", "--prompts", tmp_path, "--json")[1])
    assert found["same"] is False
    assert found["own"]["sha256"] != found["built_in"]["sha256"]
    with pytest.raises(InputError, match=r"there is no examination\.jinja in it"):
        run("diff", "examination", "--prompts", tmp_path)


@pytest.mark.slow
def test_what_a_folder_lacks_is_shown_to_come_from_the_built_in_prompts(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    text = BUILT_IN.load("goldset_relevance").text
    Path("mine/goldset_relevance.jinja").write_text(text, encoding="utf-8")
    listed = json.loads(run("show", "--prompts", "mine", "--json")[1])["prompts"]
    own = {each["name"]: each["from"] for each in listed}
    assert own.pop("goldset_relevance") == "mine"
    assert set(own.values()) == {"built-in"}
    shown = run("show", "--prompts", "mine")[1]
    assert re.search(r"goldset_relevance +mine ", shown)
    assert re.search(r"citations +built-in ", shown)
    lacking = ", ".join(f"{name}.jinja" for name in BUILT_IN.names() if name != "goldset_relevance")
    assert f"mine has no {lacking}; the built-in English prompt is used" in shown
    for arguments, said in [
        (["citations", "--prompts", "mine"], "misslink: mine has no citations.jinja"),
        (["goldset_relevance", "--prompts", "mine"], ""),
        (["citations"], ""),
        (["citations", "--prompts", "de"], ""),
    ]:
        assert CliRunner().invoke(app, ["show", *arguments]).stderr.startswith(said)
        assert bool(CliRunner().invoke(app, ["show", *arguments]).stderr) is bool(said)
    for arguments in (["show"], ["show", "--prompts", "de"]):
        assert "has no" not in run(*arguments)[1]


def test_a_name_that_is_none_lists_those_there_are():
    with pytest.raises(InputError, match=r"there is no prompt 'exam'; there are .*examination"):
        run("show", "exam")
    with pytest.raises(InputError, match="name it"):
        run("show", "--rendered")
