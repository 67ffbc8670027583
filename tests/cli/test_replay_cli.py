"""misslink replay on the command line: what it prints and writes, its exit codes, and mistakes."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from judge_server import JudgeServer
from misslink.api.saved_run import SavedRun
from misslink.cli import replay
from misslink.io import RunStaging, read_run
from replayed_app import case, chain, corpus, failures, forget_stores, retriever, run_of

MISSED = tuple("12456789")  # as many as a net effect needs for its interval to exclude 0
TOWNS = {"missed": MISSED, "found": ("3",)}
APP = """
import os
import signal
from pathlib import Path
from replayed_app import chain, corpus, retriever

finder = retriever(corpus(missed=tuple("12456789"), found=("3",)))
made = chain(finder)

def app(question):
    with Path("asked.txt").open("a", encoding="utf-8") as file:
        file.write(question + "\\n")
    if Path("kill_at").exists():
        asked = Path("asked.txt").read_text(encoding="utf-8").count("?")
        if asked == int(Path("kill_at").read_text(encoding="utf-8")):
            os.kill(os.getpid(), signal.SIGKILL)
    print("the app says something")
    return made.invoke(question)

def build(retriever):
    return chain(retriever)

def by_heart(question):
    return "By heart."
"""


@pytest.fixture(autouse=True)
def app_file(judge_server, monkeypatch, imports_forgotten):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    Path("app.py").write_text(APP, encoding="utf-8")
    yield
    forget_stores()


@pytest.fixture(scope="module")
def evaluated():
    """A run of the app."""
    with JudgeServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        app = chain(retriever(corpus(**TOWNS)))
        run = run_of(app, [case(town) for town in (*MISSED, "3")], server)
    forget_stores()
    assert failures(run) == ["retrieval_miss"] * 8 + ["passed"]
    return run


@pytest.fixture
def write_run(evaluated):
    def write(name="run", **manifest):
        run = evaluated.model_copy(update={"manifest": {**evaluated.manifest, **manifest}})
        with RunStaging(Path(name), {}, "work") as staging:
            staging.publish(run, lambda path: path.write_text("before", encoding="utf-8"))
        return name

    return write


def asked():
    path = Path("asked.txt")
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


@pytest.mark.slow
def test_json_is_one_document_and_the_run_folder_holds_it_too(misslink, write_run):
    code, out, err = misslink("replay", write_run(), "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["run"], found["app"], found["judge"]) == (
        "run",
        "app.py:app",
        "openai:test-judge",
    )
    assert found["failures"]["retrieval_miss"]["confirmed"]["value"] == 1.0
    assert "8 failed answers were replayed, and below 10" in found["causal_fraction"]["reason"]
    keys = {"replayed", "fixed", "placebo_fixed", "net_fixed", "confirmed"}
    assert all(keys <= set(mode) for mode in found["failures"].values())
    assert {"failures", "broken", "flaky", "causal_fraction"} <= set(found)
    assert "the app says something" in err
    run = read_run("run")
    assert run.replay == found
    assert [link.basis for link in run.links] == ["replayed"] * 8 + ["observed"]
    assert Path("run/report.html").read_text(encoding="utf-8") != "before"


@pytest.mark.slow
def test_the_terminal_has_the_causal_fraction_first_and_the_placebo_beside(misslink, write_run):
    code, out, _ = misslink("replay", write_run())
    assert code == 0
    text = " ".join(out.split())
    assert text.startswith(
        "Replay confirms the owner of 8 of 8 replayed failures: retriever 8. "
        "The app answered 3.0 times a failure. "
        "Failed answers caused by missed passages: not measured: 8 failed"
    )
    assert "placebo fixed" in text
    assert "Answers that turn with an irrelevant change of the prompt: 0 of " in text
    assert "Answers of the app: 24 new, 0 reused." in text


@pytest.mark.slow
def test_a_dry_run_counts_the_most_that_it_may_cost_and_calls_nothing(
    misslink, write_run, judge_server
):
    name = write_run()
    calls = len(judge_server.calls)
    code, out, _ = misslink("replay", name, "--dry-run", "--json")
    assert code == 0
    forecast = json.loads(out)
    assert forecast["generations"] == 12 * 8
    assert forecast["prompt_tokens"] > 0
    assert (asked(), len(judge_server.calls)) == (0, calls)
    assert read_run(name).replay is None
    _, out, _ = misslink("replay", name, "--dry-run")
    assert "The app would answer at most 96 questions, by experience a third." in out
    assert "No judge call was made." in out
    _, out, _ = misslink("replay", name, "--json")
    usage = json.loads(out)["usage"]
    assert usage["generations"] == 24
    assert usage["calls"] <= forecast["calls"]


def test_a_dry_run_says_that_the_app_cannot_be_given_other_passages(misslink):
    """It returns what it found, and no retriever was seen."""
    text = """
def app(question):
    return {"answer": "At noon.", "retrieved": [{"id": "a", "text": "It leaves at ten."}]}

def build(retriever):
    return lambda question: str(retriever.invoke(question))
"""
    Path("own.py").write_text(text, encoding="utf-8")
    asks = {"id": "c", "question": "When does it leave?", "relevant": ["b"], "reference": "At six."}
    Path("gold.jsonl").write_text(json.dumps(asks), encoding="utf-8")
    code, _, err = misslink("evaluate", "own.py:app", "--goldset", "gold.jsonl", "--out", "own")
    assert code == 0, err
    code, _, err = misslink("replay", "own", "--dry-run")
    assert (code, "def build(retriever)" in err) == (2, True)
    code, _, err = misslink("replay", "own", "--app", "own.py:build", "--dry-run")
    assert "def build(retriever)" not in err


@pytest.mark.slow
def test_a_smaller_replay_later_takes_nothing_away_and_pays_nothing(
    misslink, write_run, judge_server
):
    name = write_run()
    _, first, _ = misslink("replay", name, "--json")
    before, calls = asked(), len(judge_server.calls)
    cache = ("--cache", "another.sqlite")  # whose replies are gone: only those drawn are paid for
    code, out, _ = misslink("replay", name, "--sample", 1, "--seed", 3, *cache, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["cases_kept"] == 7
    assert len({one["case_id"] for one in found["cases"]}) == 8
    replayed = [
        json.loads(first)["failures"]["retrieval_miss"],
        found["failures"]["retrieval_miss"],
    ]
    assert replayed[0]["net_fixed"]["value"] == replayed[1]["net_fixed"]["value"] == 1.0
    assert asked() == before
    assert 0 < len(judge_server.calls) - calls <= 4  # verdict and arms of one case
    _, out, _ = misslink("replay", name, "--sample", 1, *cache)
    assert "24 reused (also 7 cases beyond this sample)" in " ".join(out.split())
    Path("app.py").write_text(f"{APP}\nchanged = True\n", encoding="utf-8")
    _, out, _ = misslink("replay", name, "--sample", 1, "--json")
    assert len(json.loads(out)["cases"]) == 1  # other code: what was kept is another app's


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((0.4, 0.2, 0.6), "40% [20, 60] of failed answers are caused by missed passages (n = 12"),
        ((0.01, -0.02, 0.05), "caused by missed passages: at most 5% (n = 12"),
        ((0.1, -0.2, 0.3), "caused by missed passages; not enough data to tell (n = 12"),
    ],
)
def test_the_sentence_says_how_sure_it_is(ends, words):
    causal = dict(zip(("value", "low", "high"), ends, strict=True)) | {"n": 12, "method": "m"}
    assert words in replay._summary_sentence({"causal_fraction": causal})


def test_the_table_fits_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    share = {"value": 0.62, "low": 0.51, "high": 1.0, "n": 1240, "method": "wilson", "reason": None}
    names = ("fixed", "placebo_fixed", "net_fixed", "confirmed")
    counts = {"cases": 1240, "replayed": 1240}
    document = {
        **dict.fromkeys(("broken", "placebo_broken", "flaky"), share),
        "run": "r",
        "judge": "j",
        "arms": [
            {
                "arm": "without_distractor",
                "owner": "generator",
                "tried": 1240,
                "held": share,
                "placebo_held": share,
            }
        ],
        "cases_kept": 0,
        "skipped": [],
        "causal_fraction": share,
        "usage": {"generations": 0, "generations_kept": 0},
        "failures": {"should_have_abstained": {**counts, **dict.fromkeys(names, share)}},
    }
    replay._print_replay(document)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    first = ["should_have_abstained", "1240", "1240", "fixed", "62%", "[51,", "100]"]
    assert first in rows
    assert ["placebo", "fixed", "62%", "[51,", "100]"] in rows


@pytest.mark.slow
def test_an_outage_of_the_judge_loses_no_answer_of_the_app(misslink, write_run, judge_server):
    name = write_run()
    judge_server.key = "another"
    code, out, err = misslink("replay", name, "--json")
    assert (code, out) == (3, "")
    assert "Traceback" not in err
    judge_server.key = None
    code, out, _ = misslink("replay", name, "--json")
    assert code == 0
    assert asked() == 24


@pytest.mark.slow
def test_a_function_that_builds_the_app_may_be_named(misslink, write_run, caplog):
    code, out, _ = misslink("replay", write_run(), "--app", "app.py:build", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["failures"]["retrieval_miss"]["confirmed"]["value"] == 1.0
    # It may be another app, which misslink cannot know.
    assert [warning["code"] for warning in found["warnings"]] == ["other_app"]
    assert "the replay calls app.py:build" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manifest", "options", "said"),
    [
        ({"traces": "traces.jsonl", "app": None}, [], "has traces and no app; name the app"),
        ({"app": "app.Chain"}, [], "made in Python with an object (app.Chain)"),
        ({"judge": "none"}, [], "this run was not judged"),
        ({}, ["--app", "app.py:missing"], "app.py has no 'missing'"),
        ({}, ["--app", "app.py:by_heart"], "in the first 3 cases of the replay the app called no"),
        ({}, ["--judge", "none"], "--judge none makes no model calls"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_with_2(misslink, write_run, manifest, options, said):
    code, out, err = misslink("replay", write_run(**manifest), *options)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_a_folder_that_is_no_run_is_told(misslink):
    Path("empty").mkdir()
    code, _, err = misslink("replay", "empty")
    assert code == 2
    assert "empty: this is not a run folder" in err


@pytest.mark.slow
def test_a_run_that_is_evaluated_anew_meanwhile_is_left_as_it_is(misslink, write_run, monkeypatch):
    name = write_run()
    newer = read_run(write_run("newer", created="2026-11-23T00:00:00+00:00"))
    put = SavedRun.save

    def late(saved, *rest):
        with RunStaging(Path(name), {}, "work", overwrite=True) as staging:
            staging.publish(newer, lambda path: path.write_text("newer", encoding="utf-8"))
        put(saved, *rest)

    monkeypatch.setattr(SavedRun, "save", late)
    code, out, err = misslink("replay", name, "--json")
    assert (code, out) == (2, "")
    assert "the folder holds another run since" in err
    assert read_run(name).replay is None
    assert Path("run/report.html").read_text(encoding="utf-8") == "newer"
    assert Path("run/replays.jsonl").exists()  # what the app generated


@pytest.mark.slow
def test_what_another_command_put_in_meanwhile_stays(misslink, write_run, monkeypatch):
    name = write_run()
    put = SavedRun.save

    def late(saved, *rest):
        put(saved, "whatif", {"options": []})
        put(saved, *rest)

    monkeypatch.setattr(SavedRun, "save", late)
    assert misslink("replay", name)[0] == 0
    found = read_run(name)
    assert found.whatif == {"options": []}
    assert found.replay is not None


@pytest.mark.slow
def test_the_runs_judge_is_asked_where_the_run_asked_it(misslink, write_run, judge_server):
    name = write_run(inputs={"judge_identity.base_url": "10.0.0.5:8000/v1"})
    calls = len(judge_server.calls)
    code, out, err = misslink("replay", name, "--json")
    assert (code, out) == (2, "")
    assert "was at 10.0.0.5:8000/v1, and would now be at 127.0.0.1" in err
    assert (asked(), len(judge_server.calls)) == (0, calls)
    code, out, _ = misslink("replay", name, "--base-url", judge_server.url, "--json")
    assert code == 0
    found = json.loads(out)["causal_fraction"]
    assert found["reason"].startswith("the run's judge had base_url 10.0.0.5:8000/v1")
    assert found["reason"].endswith("evaluate the run again, then replay")


@pytest.mark.slow
def test_the_runs_judge_keeps_its_temperature(misslink, write_run, judge_server):
    name = write_run(inputs={"judge_identity.temperature": "0.25"})
    calls = len(judge_server.calls)
    assert misslink("replay", name, "--json")[0] == 0
    assert {call.body["temperature"] for call in judge_server.calls[calls:]} == {0.25}


@pytest.mark.slow
def test_no_escape_sequence_of_an_app_reaches_the_terminal(misslink, write_run):
    Path("app.py").write_text(
        APP + "\ndef rude(question):\n    finder.invoke(question)\n"
        '    if "town 1" in question:\n        raise ValueError("\\x1b[2J\\nbad [bold]")\n'
        "    return made.invoke(question)\n",
        encoding="utf-8",
    )
    code, out, _ = misslink("replay", write_run(), "--app", "app.py:rude")
    assert code == 0
    assert "\x1b" not in out
    assert "[2J bad [bold]" in out


@pytest.mark.slow
def test_where_a_run_of_traces_puts_its_question_may_be_said(misslink, write_run):
    Path("app.py").write_text(
        APP + '\ndef keyed(inputs):\n    return app(inputs["odd"])\n', encoding="utf-8"
    )
    name = write_run(traces="traces.jsonl", app=None)
    code, out, err = misslink(
        "replay", name, "--app", "app.py:keyed", "--input-key", "odd", "--json"
    )
    assert code == 0, err
    assert json.loads(out)["failures"]["retrieval_miss"]["confirmed"]["value"] == 1.0


@pytest.mark.slow
def test_a_killed_replay_leaves_no_partial_file_and_pays_nothing_twice(
    write_run, judge_server, warm_commands
):
    name = write_run()
    files = {file.name for file in Path(name).iterdir()}
    command = [warm_commands / "misslink", "replay", name, "--json"]
    command += ["--concurrency", "1"]  # what is in flight when it is killed is asked again
    calls = len(judge_server.calls)
    for moment in (5, 17):
        Path("kill_at").write_text(str(moment), encoding="utf-8")
        process = subprocess.run(command, capture_output=True, check=False)
        assert process.returncode == -signal.SIGKILL
        assert {file.name for file in Path(name).iterdir()} == files | {"replays.jsonl"}
        assert read_run(name).replay is None
    Path("kill_at").unlink()
    process = subprocess.run(command, capture_output=True, check=False)
    assert process.returncode == 0, process.stderr
    assert asked() == 24 + 2  # each kill cost the answer that was being written
    keys = [json.dumps(call.body, sort_keys=True) for call in judge_server.calls[calls:]]
    assert len(keys) == len(set(keys))
    found = json.loads(process.stdout)
    assert found["failures"]["retrieval_miss"]["confirmed"]["value"] == 1.0
    assert read_run(name).replay == found


@pytest.mark.slow
def test_a_criterion_of_the_run_is_in_the_prompt_of_its_replay(misslink, write_run):
    Path("polite.toml").write_text('question = "Is the answer polite?"', encoding="utf-8")
    given = ("--metric", "rubric:polite.toml")
    gold = f"{write_run()}/cases.jsonl"
    command = ("evaluate", "app.py:app", "--goldset", gold, "--judge", "openai:test-judge")
    code, _, err = misslink(*command, *given, "--out", "polite")
    assert code == 0, err
    replayed = {}
    for more in ((), given):
        code, out, err = misslink("replay", "polite", *more, "--json")
        assert code == 0, err
        replayed[more] = json.loads(out)["causal_fraction"]
    assert "the prompt 'examination' is not the run's" in replayed[()]["reason"]
    assert (replayed[()]["n"], replayed[given]["n"]) == (0, len(MISSED))
