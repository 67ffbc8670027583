"""A run evaluated again into its folder keeps its replay and its what-if if nothing has changed."""

from pathlib import Path

import pytest

from misslink.io import read_run
from misslink.pipeline.assembly import reuse_results
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
    return [one for one in caplog.messages if "are not reused" in one]


@pytest.mark.slow
def test_the_same_answers_keep_both_and_the_links_that_were_confirmed(before, evaluated, caplog):
    again = evaluated("other")
    assert again.replay is None, "a folder of its own has nothing to carry over"
    kept = reuse_results(again, "run")
    assert (kept.replay, kept.whatif) == (before.replay, before.whatif)
    assert [link.basis for link in kept.links] == ["replayed"] * 8 + ["observed"]
    assert kept.summary == again.summary
    assert not warnings(caplog)
    assert reuse_results(again, None) is again
    assert reuse_results(again, "other") is again
    # What cannot be read is told, and the run stays.
    Path("run/traces.jsonl").write_text("{", encoding="utf-8")
    assert reuse_results(again, "run") == again
    assert len(warnings(caplog)) == 1


CHANGES = {
    "other answers": ("app.py", lambda text: text.replace('("3",)))', '("3",))), "stubborn"')),
    "other code": ("app.py", lambda text: f"{text}\nchanged = True\n"),
    "another gold set": ("gold.jsonl", lambda text: "".join(text.splitlines(keepends=True)[:2])),
}


@pytest.mark.slow
def test_a_change_keeps_neither_and_the_warning_says_how_to_repeat_them(before, evaluated, caplog):
    for name, (file, change) in CHANGES.items():
        text = Path(file).read_text(encoding="utf-8")
        assert change(text) != text
        Path(file).write_text(change(text), encoding="utf-8")
        caplog.clear()
        kept = reuse_results(evaluated(name), "run")
        assert (kept.replay, kept.whatif) == (None, None), name
        assert {link.basis for link in kept.links} == {"observed"}, name
        (said,) = warnings(caplog)
        assert said.endswith("misslink replay run  and  misslink whatif run"), name
        Path(file).write_text(text, encoding="utf-8")
    # With the files as they were, what one setting changes is seen by itself.
    same = evaluated("same")
    assert reuse_results(same, "run").replay
    inputs = {**same.manifest["inputs"], "judge_identity.temperature": "0.7"}
    for changed in ({"k": 7}, {"inputs": inputs}):
        again = same.model_copy(update={"manifest": {**same.manifest, **changed}})
        assert reuse_results(again, "run").replay is None, changed
