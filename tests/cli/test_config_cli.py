"""Settings in misslink.toml and pyproject.toml, and the command that writes them."""

import json
import tomllib
from pathlib import Path

import pytest

from misslink.cli.config import read_defaults
from misslink.cli.main import build_command
from misslink.examples import copy_example


@pytest.fixture
def settings():
    """Write misslink.toml; returns the default map of the commands."""

    def write(text, file="misslink.toml"):
        Path(file).write_text(text, encoding="utf-8")
        return read_defaults(build_command())

    return write


@pytest.mark.slow
def test_settings_are_defaults_and_options_replace_them(misslink):
    copy_example("ferry", Path())
    Path("misslink.toml").write_text(
        'app = "app.py:chain"\ngoldset = "goldset.jsonl"\njudge = "none"\nk = 3\n', "utf-8"
    )
    code, out, err = misslink("evaluate", "--k", "2", "--json", "--out", "run")
    assert code == 0, err
    document = json.loads(out)
    assert (document["judge"], document["k"]) == ("none", 2)
    code, out, err = misslink("evaluate", "--traces", "traces.jsonl", "--json", "--out", "recorded")
    assert code == 0, err  # the app of the settings does not contradict --traces
    assert json.loads(out)["k"] == 3


def test_pyproject_holds_settings_too_and_misslink_toml_is_read_first(settings):
    pyproject = "[tool.misslink]\nk = 7\n"
    assert settings(pyproject, "pyproject.toml")["evaluate"] == {"k": 7}
    assert settings("k = 8\n")["evaluate"] == {"k": 8}


def test_a_broken_or_unrelated_pyproject_is_not_read(settings):
    for table in ("project", "tool.missing", "tool.links"):
        assert settings(f"[{table}]\nname = 'x'\n", "pyproject.toml") == {}
    assert settings("[tool.misslink]\n[tool.misslink2]\n", "pyproject.toml") == {}
    assert settings("= broken", "pyproject.toml") == {}


def test_a_broken_pyproject_with_settings_is_named_by_its_line(misslink):
    Path("pyproject.toml").write_text("[tool.misslink]\nk = \n", encoding="utf-8")
    code, _, err = misslink("evaluate", "--help")
    assert code == 0
    code, _, err = misslink("judge", "ping", "heuristic")
    assert (code, "pyproject.toml, line 2" in err) == (2, True)


def test_a_misspelled_section_of_pyproject_is_named(misslink):
    Path("pyproject.toml").write_text("[tool.misslnk]\nk = 7\n", encoding="utf-8")
    code, _, err = misslink("judge", "ping", "heuristic")
    assert (code, "pyproject.toml" in err) == (2, True)
    assert "did you mean [tool.misslink], not [tool.misslnk]?" in err


def test_an_earlier_run_decides_before_settings(settings):
    commands = settings('judge = "openai:m"\nid-key = "key"\ntemperature = 1\nrpm = 9\n')
    assert commands["evaluate"] == {
        "judge": "openai:m", "id_key": "key", "judge_option": ["temperature=1.0", "rpm=9"]
    }  # fmt: skip
    for name in ("replay", "whatif"):
        assert commands[name] == {"judge_option": ["rpm=9"]}, name


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('jugde = "none"', ("no setting 'jugde'", "did you mean 'judge'?")),
        ("base_url = 1", ("no setting 'base_url'", "did you mean 'base-url'?")),
        ('k = "five"', ("field 'k'", "a whole number", "'five'")),
        ("k = 0", ("field 'k'", "more than 0")),
        ("goldset = 3", ("field 'goldset'", "a text")),
        ("retry-refused = 3", ("field 'retry-refused'", "true or false (it is 3)")),
        ("retries = -1", ("retries is -1",)),
        ("max-cost = 1", ("price_in",)),
        ("api-key = 'x'", ("no setting 'api-key'",)),
        ("a = 1\nb = nothing", ("line 2", "not valid TOML")),
    ],
)
def test_a_mistake_is_one_sentence_that_names_file_and_key(misslink, text, parts):
    Path("misslink.toml").write_text(text, encoding="utf-8")
    code, out, err = misslink("gate", "run")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert all(part in err for part in ("misslink.toml", *parts)), err
    assert misslink("gate", "--help")[0] == 0


def test_a_byte_order_mark_is_no_mistake_and_a_folder_is_one(settings, misslink):
    assert settings("\ufeffk = 8\n")["evaluate"] == {"k": 8}
    Path("misslink.toml").unlink()
    Path("misslink.toml").mkdir()
    code, out, err = misslink("gate", "run")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "misslink.toml: this is a folder" in err


def test_init_writes_what_it_finds(misslink):
    copy_example("ferry", Path())
    code, out, err = misslink("init", "--json")
    assert (code, err) == (0, "")
    found = {"app": "app.py:chain", "goldset": "goldset.jsonl", "corpus": "corpus.jsonl"}
    assert json.loads(out) == {
        "found": found,
        "others": {},
        "written": ["misslink.toml"],
        "next": "misslink evaluate",
    }
    assert tomllib.loads(Path("misslink.toml").read_text("utf-8")) == {
        **found,
        "judge": "heuristic",
    }
    assert read_defaults(build_command())["evaluate"] == {**found, "judge": "heuristic"}


def test_init_looks_beside_the_app_too(misslink):
    copy_example("ferry", Path("ferry"))
    assert json.loads(misslink("init", "--json")[1])["found"] == {
        "app": "ferry/app.py:chain",
        "goldset": "ferry/goldset.jsonl",
        "corpus": "ferry/corpus.jsonl",
    }


def test_init_in_an_empty_folder_writes_a_gold_set_that_evaluate_reads(misslink):
    code, out, _ = misslink("init")
    assert code == 0
    assert "write your questions into goldset.jsonl, then run  misslink evaluate APP" in out
    Path("app.py").write_text("def answer(question): return {'answer': 'At nine.'}\n", "utf-8")
    code, _, err = misslink("evaluate", "app.py:answer", "--out", "run")
    assert code == 0, err


@pytest.mark.parametrize(
    ("text", "is_goldset"),
    [
        ('{"query": "When?"}\n', True),
        ('[{"question": "When?"}]', True),
        ('\n{"question": "When?"}\n', True),
        ('\ufeff{"question": "When?"}\n', True),
        ('{"frage": "Wann?"}\n', False),
        ("half a line", False),
        ("", False),
    ],
)
def test_init_keeps_a_gold_set_that_is_there(misslink, text, is_goldset):
    Path("goldset.jsonl").write_text(text, encoding="utf-8")
    code, out, err = misslink("init", "--json")
    assert Path("goldset.jsonl").read_text(encoding="utf-8") == text
    if is_goldset:
        assert (code, json.loads(out)["written"]) == (0, ["misslink.toml"]), err
        return
    assert (code, "--overwrite" in err, Path("misslink.toml").exists()) == (2, True, False)
    assert misslink("init", "--overwrite")[0] == 0
    assert "opening-hours" in Path("goldset.jsonl").read_text(encoding="utf-8")


def test_init_replaces_settings_only_if_told_to(misslink):
    Path("misslink.toml").write_text("broken =", encoding="utf-8")
    assert misslink("init")[0] == 2
    assert misslink("init", "--overwrite")[0] == 0
    code, _, err = misslink("init")
    assert (code, "--overwrite" in err) == (2, True)


def test_init_reads_only_apps_of_the_folder(misslink):
    for folder in (".venv", "tests"):
        Path(folder).mkdir()
        Path(folder, "a.py").write_text("import langchain\nchain = 1\n", encoding="utf-8")
    Path("b.py").write_text("chain = 1\n", encoding="utf-8")
    Path("c.py").write_text("from langchain_core import x\nagent = x\nraise SystemExit\n", "utf-8")
    Path("d.py").write_text("syntax error\n", encoding="utf-8")
    _, out, _ = misslink("init", "--json")
    assert json.loads(out)["found"]["app"] == "c.py:agent"


def test_init_finds_a_plain_function_after_apps_of_a_framework(misslink):
    Path("own.py").write_text(
        "def build(question, store): ...\n"  # it asks for more than a question
        "def chain(): ...\n"
        "async def app(question, k=1): ...\n",
        encoding="utf-8",
    )
    _, out, _ = misslink("init", "--json")
    assert json.loads(out)["found"]["app"] == "own.py:app"
    Path("web.py").write_text("import langgraph\nretriever = 1\n", encoding="utf-8")
    _, out, _ = misslink("init", "--overwrite", "--json")
    assert json.loads(out)["found"]["app"] == "web.py:retriever"
    assert json.loads(out)["others"]["app"] == ["own.py:app"]


def test_init_names_the_candidates_it_did_not_take(misslink):
    Path("web.py").write_text("import langgraph\ngraph: object = 1\nretriever = 2\n", "utf-8")
    Path("sub").mkdir()
    Path("sub", "qa.py").write_text("from haystack import x\ndef rag(question): ...\n", "utf-8")
    for name in ("gold.jsonl", "more.jsonl"):
        Path(name).write_text('{"question": "When?"}\n', encoding="utf-8")
    _, out, _ = misslink("init")
    assert "app       web.py:graph (found)" in out
    assert "others: sub/qa.py:rag, web.py:retriever; to use one, edit 'app' in misslink.toml" in out
    text = Path("misslink.toml").read_text("utf-8")
    assert tomllib.loads(text)["app"] == "web.py:graph"
    assert '# app = "web.py:retriever"' in text
    _, out, _ = misslink("init", "--overwrite", "--json")
    document = json.loads(out)
    assert document["found"] == {"app": "web.py:graph", "goldset": "gold.jsonl"}
    assert document["others"] == {
        "app": ["sub/qa.py:rag", "web.py:retriever"], "goldset": ["more.jsonl"]
    }  # fmt: skip


def test_init_finds_a_gold_set_and_a_corpus_in_csv(misslink):
    Path("answers.csv").write_text("question,answer\nWhen?,At nine.\n", encoding="utf-8")
    Path("gold.csv").write_text("\ufeffid;question;reference\nq1;When?;At nine.\n", "utf-8")
    Path("passages.csv").write_text("id,text\np1,At nine.\n", encoding="utf-8")
    Path("broken.csv").write_bytes(b"\xff\xfe\n")
    found = json.loads(misslink("init", "--json")[1])
    assert found["found"] == {"goldset": "gold.csv", "corpus": "passages.csv"}
    assert found["written"] == ["misslink.toml"]
