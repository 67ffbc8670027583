"""A run evaluated again into its folder keeps its replay and its what-if where they still hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from misslink.io import read_run
from misslink.pipeline.artifact_reuse import reuse_link_artifacts
from replayed_app import JUDGE, case, forget_stores

APP = """
from replayed_app import chain, corpus, retriever

made = chain(retriever(corpus(missed=tuple("12456789"), found=("3",))))

def app(question):
    return made.invoke(question)
"""


@pytest.fixture(autouse=True)
def app_file(judge_server, monkeypatch, imports_forgotten):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    Path("app.py").write_text(APP, encoding="utf-8")
    lines = [case(town).model_dump_json() + "\n" for town in "124567893"]
    Path("gold.jsonl").write_text("".join(lines), encoding="utf-8")
    yield
    forget_stores()


@pytest.fixture
def evaluated(misslink):
    """Evaluate the app into a folder, with all that is given, and read it back."""

    def run(out, *options, gold="gold.jsonl"):
        given = ("--goldset", gold, "--judge", JUDGE, "--k", 2, "--embedding", "none")
        code, _, err = misslink("evaluate", "app.py:app", *given, "--out", out, *options)
        assert code == 0, err
        return read_run(out)

    return run


@pytest.fixture
def before(evaluated, misslink):
    """A run in ./run that was replayed and asked what-if."""
    evaluated("run")
    for command in (("replay", "run"), ("whatif", "run", "--options", "k")):
        code, _, err = misslink(*command, "--json")
        assert code == 0, err
    held = read_run("run")
    assert held.replay
    assert held.whatif
    assert [link.basis for link in held.links] == ["replayed"] * 8 + ["observed"]
    return held


def warnings(caplog):
    return [one for one in caplog.messages if "not carried over" in one]


def test_the_same_answers_keep_both_and_the_links_that_were_confirmed(before, evaluated, caplog):
    again = evaluated("other")
    assert again.replay is None, "a folder of its own has nothing to carry over"
    kept = reuse_link_artifacts(again, "run")
    assert (kept.replay, kept.whatif) == (before.replay, before.whatif)
    assert [link.basis for link in kept.links] == ["replayed"] * 8 + ["observed"]
    assert kept.summary == again.summary
    assert not warnings(caplog)


def test_other_answers_keep_neither_and_the_warnings_say_why_and_how(before, evaluated, caplog):
    stubborn = APP.replace('found=("3",)))', 'found=("3",))), "stubborn"')
    assert stubborn != APP
    Path("app.py").write_text(stubborn, encoding="utf-8")
    kept = reuse_link_artifacts(evaluated("other"), "run")
    assert (kept.replay, kept.whatif) == (None, None)
    assert {link.basis for link in kept.links} == {"observed"}
    replay, whatif = warnings(caplog)
    assert "1 of 9 cases were retrieved or answered otherwise" in replay
    assert "misslink replay run --app app.py:app  (cached answers cost nothing)" in replay
    assert "1 of 9 cases were retrieved or answered otherwise" in whatif
    assert whatif.endswith("misslink whatif run")


@pytest.mark.parametrize(
    ("asked", "again"),
    [
        (("--corpus", "corpus.jsonl"), "misslink whatif run --corpus corpus.jsonl"),
        (("--app", "app.py:app", "--corpus", "corpus.jsonl"),
         "misslink whatif run --corpus corpus.jsonl --app app.py:app"),
    ],
)  # fmt: skip
def test_the_warning_names_the_corpus_and_the_app_of_the_what_if_before(
    before, evaluated, misslink, caplog, asked, again
):
    rows = [{"id": f"gold-{n}", "text": f"The passage of number {n}."} for n in range(9)]
    Path("corpus.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows), "utf-8")
    code, _, err = misslink("whatif", "run", *asked, "--options", "bm25", "--json")
    assert code == 0, err
    Path("app.py").write_text(APP.replace('found=("3",)))', 'found=("3",))), "stubborn"'), "utf-8")
    reuse_link_artifacts(evaluated("other"), "run")
    assert warnings(caplog)[1].endswith(again)


def test_code_that_changed_and_answers_the_same_loses_the_replay_alone(before, evaluated, caplog):
    """What it would have generated from other passages nobody knows."""
    Path("app.py").write_text(f"{APP}\nchanged = True\n", encoding="utf-8")
    kept = reuse_link_artifacts(evaluated("other"), "run")
    assert (kept.replay, kept.whatif) == (None, before.whatif)
    (said,) = warnings(caplog)
    assert "the app or its code may be another one" in said


def test_a_forecast_that_rests_on_the_replay_goes_with_it(before, evaluated, caplog):
    Path("run/whatif.json").write_text(
        json.dumps({**before.whatif, "basis": "replayed"}), encoding="utf-8"
    )
    assert reuse_link_artifacts(evaluated("other"), "run").whatif["basis"] == "replayed"
    Path("app.py").write_text(f"{APP}\nchanged = True\n", encoding="utf-8")
    kept = reuse_link_artifacts(evaluated("another"), "run")
    assert (kept.replay, kept.whatif) == (None, None)
    assert len(warnings(caplog)) == 2


@pytest.mark.parametrize(
    ("options", "lines", "why"),
    [((), 2, "the gold set is another one"), (("--k", 1), 3, "k is another one")],
)
def test_another_gold_set_and_another_k_keep_neither(
    before, evaluated, caplog, options, lines, why
):
    rows = Path("gold.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("other.jsonl").write_text("".join(rows[:lines]), encoding="utf-8")
    kept = reuse_link_artifacts(evaluated("other", *options, gold="other.jsonl"), "run")
    assert (kept.replay, kept.whatif) == (None, None)
    assert [why in one for one in warnings(caplog)] == [True, True]


def test_another_judge_that_says_the_same_loses_the_replay(before, evaluated, caplog):
    again = evaluated("other")
    inputs = {**again.manifest["inputs"], "judge_identity.temperature": "0.7"}
    again = again.model_copy(update={"manifest": {**again.manifest, "inputs": inputs}})
    kept = reuse_link_artifacts(again, "run")
    assert (kept.replay, kept.whatif) == (None, before.whatif)
    assert "the judge or its prompts are others" in warnings(caplog)[0]


def test_what_cannot_be_read_is_told_and_the_run_stays(before, evaluated, caplog):
    again = evaluated("other")
    Path("run/traces.jsonl").write_text("{", encoding="utf-8")
    assert reuse_link_artifacts(again, "run") == again
    (said,) = warnings(caplog)
    assert "replay.json and whatif.json of the run before" in said


def test_a_run_without_a_folder_or_with_nothing_to_keep_is_as_it_was(evaluated):
    run = evaluated("run")
    assert reuse_link_artifacts(run, None) is run
    assert reuse_link_artifacts(run, "run") is run
