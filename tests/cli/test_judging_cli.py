"""The judge on the command line: what it may cost, how fast it is asked, and its own commands."""

import json
import os
import re
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from honest_judge import honest
from judge_faults import Reset
from judge_server import JudgeServer
from judged_app import (
    COMMAND,
    JUDGE,
    PRICES,
    app_was_asked,
    faithfulness,
    manifest,
    short_cases,
    statuses,
)
from misslink import evaluate
from misslink.examples import load_example
from misslink.judge.checks.dry_run import JudgingForecast
from warm_program import start


def test_a_dry_run_for_people_ends_by_saying_that_nothing_was_asked(misslink, judge_server):
    short_cases(2)
    code, out, _ = misslink(*COMMAND, "--base-url", judge_server.url, "--dry-run", *PRICES)
    assert code == 0
    assert "The judge would be asked 2 questions (the cache answers 0 more)" in out
    assert "at a cost of about" in out
    assert " USD." in out
    assert out.endswith("No judge call was made.\n")
    _, out, _ = misslink(*COMMAND, "--base-url", judge_server.url, "--dry-run", "--json")
    assert set(json.loads(out)) == set(JudgingForecast.__dataclass_fields__)
    assert judge_server.calls == []
    assert not Path("run").exists()


@pytest.mark.slow
def test_a_dry_run_needs_no_key_and_no_network(misslink, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    short_cases(2)
    evaluate(**load_example("ferry"), out="saved", cache=None)
    text = (
        "The old lighthouse of the harbor was built by three sailors in the stormy winter of 1871,"
    )
    text += " and its keeper climbed two hundred narrow stairs each evening to light the oil lamps."
    Path("corpus.jsonl").write_text(json.dumps({"id": "p", "text": text}), encoding="utf-8")
    corpus = ("--corpus", "corpus.jsonl", "--embedding", "none")
    for command in (
        COMMAND,
        ("goldset", "generate", *corpus, "-n", 1, "--judge", "openai:m", "--out", "made.jsonl"),
        ("judge", "audit", "saved", "--judge", "openai:m"),
        ("rejudge", "saved", "--judge", "openai:m", "--out", "again"),
        ("replay", "saved", "--app", "app.py:app", "--judge", "openai:m"),
        ("selftest", "saved", "--judge", "openai:m"),
    ):
        code, out, err = misslink(*command, "--dry-run")
        assert code == 0, err
        assert "The judge would be asked" in out
        assert "(price-in and price-out show the cost)" in " ".join(out.split())
        code, _, err = misslink(*command)
        assert code == 2
        assert "set OPENAI_API_KEY" in err


def test_a_dry_run_without_a_folder_says_how_its_answers_are_used(misslink, judge_server):
    short_cases(2)
    command = (*COMMAND[: COMMAND.index("--out")], "--base-url", judge_server.url)
    code, _, err = misslink(*command, "--dry-run")
    assert code == 0
    told = re.search(r"the app's answers are saved; a run with  --out (\S+)  does not call", err)
    assert misslink(*command, "--out", told[1])[0] == 0
    assert app_was_asked() == 2
    assert [path.name for path in Path("reports").iterdir()] == [Path(told[1]).name]


@pytest.mark.slow
def test_max_calls_is_never_passed_and_the_same_command_goes_on(evaluate, judge_server):
    short_cases(8)
    capped = ("--judge-option", "max-calls=3", "--concurrency", "4")
    for scored, unfinished in [(3, True), (6, True), (8, False)]:
        before = len(judge_server.calls)
        document = evaluate(*capped)
        assert len(judge_server.calls) - before == document["usage"]["calls"] <= 3
        assert statuses().count("scored") == scored
        skipped = [v for v in faithfulness() if v["status"] == "skipped"]
        assert len(skipped) == document["usage"]["not_asked"] == 8 - scored
        for verdict in skipped:
            assert verdict["value"] is None
            assert "max_calls 3 is used up; the same command continues" in verdict["reason"]
        assert document["coverage"]["faithfulness"]["skipped"] == 8 - scored
        assert bool(manifest()["unfinished"]) is unfinished
    assert len(judge_server.calls) == 8
    assert app_was_asked() == 8


def test_max_cost_is_never_passed_whatever_is_in_flight(evaluate, judge_server):
    short_cases(12)
    small = ("--judge-option", "max-tokens=300", *PRICES)
    whole = evaluate("--dry-run", *small)["cost"]
    cap = 0.6 * whole + 0.0016  # what is held back for the longest reply is not spent in the end
    document = evaluate("--judge-option", f"max-cost={cap}", *small)
    spent = document["usage"]["cost"]
    bill = sum(completion_cost(call.body) for call in judge_server.calls)
    assert spent == pytest.approx(bill)
    assert 0 < spent <= cap
    assert 0 < statuses().count("scored") < 12
    assert "raise it, and the same command continues" in str(faithfulness())
    assert manifest()["unfinished"]
    done = len(judge_server.calls)
    document = evaluate("--judge-option", "max-cost=10", *small)
    assert document["usage"]["from_cache"] == done
    assert statuses() == ["scored"] * 12
    assert len(judge_server.calls) == app_was_asked() == 12
    assert not manifest()["unfinished"]


def test_a_cap_below_one_question_is_one_sentence(evaluate, judge_server):
    short_cases(3)
    err = evaluate("--judge-option", "max-cost=1e-9", *PRICES, expect=2)
    assert "asked no question: the next question could exceed max_cost 1e-09; raise it" in err
    assert judge_server.calls == []


def test_a_run_that_a_cap_stopped_says_so_in_its_first_line(misslink, judge_server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    short_cases(5)
    code, out, _ = misslink(*COMMAND, "--judge-option", "max-calls=2", "--concurrency", "1")
    first = out.splitlines()[0]
    assert code == 0
    assert first.startswith("Not finished: 3 questions were not put to the judge: max_calls 2")
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert '<p class="warning">Not finished: 3 questions' in page
    _, out, _ = misslink(*COMMAND)
    assert "Not finished" not in out


def completion_cost(body):
    """What the test server's bill for an honest answer is, at PRICES."""
    prompt = sum(len(message["content"]) for message in body["messages"]) // 4
    return (prompt + 4 * (len(json.dumps(honest(body))) // 4)) / 1e6


@pytest.mark.slow
@pytest.mark.parametrize(
    "pace",
    [
        ("--judge-option", "rpm=3"),
        ("--judge-option", "tpm=2500", "--judge-option", "max-tokens=300"),
    ],
)
def test_a_minute_holds_no_more_than_it_may(evaluate, judge_server, pace):
    short_cases(8)
    # The next call would have to wait a minute, which the deadline does not leave.
    usage = evaluate(*pace, "--judge-option", "deadline=20")["usage"]
    if "rpm=3" in pace:
        assert len(judge_server.calls) == 3
    else:
        assert 1 < len(judge_server.calls) < 8
        assert usage["prompt_tokens"] + usage["completion_tokens"] <= 2500
    assert statuses().count("scored") == len(judge_server.calls)
    assert statuses().count("skipped") == 8 - len(judge_server.calls)
    assert "(deadline 20)" in str(faithfulness())


@pytest.mark.slow
def test_a_server_that_dies_costs_nothing_that_was_paid(evaluate, judge_server):
    short_cases(12)

    def dying(_):
        if len(judge_server.calls) > 4:
            threading.Thread(target=judge_server.stop).start()
            raise Reset

    judge_server.script = dying
    told = evaluate(expect=3)
    assert "run the same command again when the judge works" in told
    assert not Path("run").exists()
    with JudgeServer(port=judge_server.port) as again:
        document = evaluate()
        assert len(again.calls) == document["usage"]["calls"] == 8
    assert document["usage"]["from_cache"] == 4
    assert statuses() == ["scored"] * 12
    assert app_was_asked() == 12


@pytest.mark.parametrize(
    ("number", "code", "patient"),
    [
        (signal.SIGINT, 130, True),
        pytest.param(signal.SIGTERM, 143, True, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, True, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, 130, False, marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_waits_for_replies_that_are_paid_for_unless_it_comes_twice(
    judge_server, number, code, patient
):
    short_cases(8)
    four, released = threading.Barrier(5), threading.Event()

    def held(_):
        if not released.is_set() and len(judge_server.calls) > 1:  # the first one is asked alone
            four.wait(60)
            released.wait(60)

    judge_server.script = held
    options = ("--base-url", judge_server.url, "--concurrency", "4")
    os.mkfifo("stderr")
    process = start([*COMMAND, *options], Path.cwd(), OPENAI_API_KEY="made-up")
    with Path("stderr").open(encoding="utf-8") as stderr:
        four.wait(60)
        os.kill(process.pid, number)
        while "waiting for judge calls in flight" not in (line := stderr.readline()):
            assert line, "it did not wait"
        if not patient:
            os.kill(process.pid, number)
            process.join(60)
            assert process.exitcode == code
        released.set()
        assert "finished work is saved" in stderr.read()
    process.join(60)
    assert process.exitcode == code
    with closing(sqlite3.connect(".misslink/cache.sqlite")) as cache:
        assert cache.execute("SELECT COUNT(*) FROM replies").fetchone()[0] == 1 + 4 * patient


@pytest.fixture
def at_server(judge_server):
    return ("--judge", JUDGE, "--base-url", judge_server.url)


def test_ping_is_one_document_or_exit_code_3(misslink, judge_server, at_server):
    code, out, _ = misslink("judge", "ping", *at_server, "--json")
    assert (code, json.loads(out)["ok"]) == (0, True)
    judge_server.stop()
    code, out, err = misslink("judge", "ping", *at_server, "--json")
    assert (code, out) == (3, "")
    assert "no connection" in err
