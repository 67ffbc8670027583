"""Every way to judge, through the straight line: a real app, a real judge server, a run folder."""

import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import misslink
from honest_judge import fenced, honest
from judged_app import (
    COMMAND,
    JUDGE,
    app_was_asked,
    faithfulness,
    manifest,
    short_cases,
    statuses,
    write_inputs,
)
from misslink.errors import InputError


@pytest.fixture
def evaluate(tmp_path, monkeypatch, judge_server):
    """Evaluate the app with the server as judge into ./run; what is no option is a term."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)

    def run(judge=JUDGE, *, overwrite=False, **terms):
        return misslink.evaluate(
            "app.py:app",
            "gold.jsonl",
            judge=judge,
            out="run",
            overwrite=overwrite,
            judge_config=misslink.JudgeConfig(**terms),
        )

    return run


def wavering(sure):
    """Finds the last claim unsupported every second time it is asked, unless `sure(question)`."""
    times = Counter()

    def script(body):
        said = honest(body)
        question = dict(fenced(body))["question"]
        times[question] += 1
        if not sure(question) and times[question] % 2:
            first, last = said["claims"]  # the invented one goes unnoticed
            last.update(support="supported", quotes=first["quotes"])
        return said

    return script


@pytest.mark.slow
def test_a_judge_that_wavers_is_asked_three_times_and_said_to_waver(evaluate, judge_server):
    short_cases(4)
    judge_server.script = wavering(lambda question: "town 0 " in question or "town 1 " in question)
    summary = evaluate(repeats=3).summary
    assert len(judge_server.calls) == summary["usage"]["calls"] == 12
    *steady, third, fourth = faithfulness()
    for verdict in steady:
        assert verdict["repeats"]["values"] == [0.5] * 3
        assert verdict["repeats"]["flipped"] == 0.0
    for verdict in (third, fourth):
        assert sorted(verdict["repeats"]["labels"]) == [False, True, True]
        assert verdict["repeats"]["flipped"] == pytest.approx(1 / 3)
        assert verdict["value"] == pytest.approx((1 + 0.5 + 1) / 3)
        assert verdict["label"] is True
    found = summary["repeats"]["metrics"]["faithfulness"]
    assert summary["repeats"]["samples"] == 3
    assert found["n"] == 4
    assert found["flip_rate"]["value"] == 0.5
    assert found["disagreement"]["value"] == pytest.approx((0 + 0 + 2 / 3 + 2 / 3) / 4)
    assert sum(summary["repeats"]["run"]["faithfulness"]["values"]) == pytest.approx(2.0)
    again = evaluate(repeats=3).summary
    assert again["usage"] == {**again["usage"], "calls": 0, "from_cache": 12}
    assert again["repeats"] == summary["repeats"]
    evaluate(repeats=4, overwrite=True)
    assert len(judge_server.calls) == 16  # three of four samples are known


def copied_or_invented(count):
    """Answers of which every even one is copied from its passage, and the odd ones are not."""
    write_inputs(
        count,
        lambda n: [f"By day the sky over town {n} is blue.", "Grass is green."],
        lambda n: f"By day the sky over town {n} is blue." if n % 2 == 0 else "Kings reign in May.",
    )


def test_of_a_cascade_the_dear_judge_sees_what_the_cheap_one_is_unsure_of(evaluate, judge_server):
    copied_or_invented(6)
    cascade = evaluate(f"cascade:heuristic,{JUDGE}", cascade_check=0.0).summary["cascade"]
    assert cascade["seen_by"] == {"heuristic": 3, JUDGE: 3}
    assert cascade["share_dear"]["value"] == 0.5
    assert cascade["drawn"] == 0
    assert cascade["agreement"]["value"] is None
    assert cascade["agreement"]["reason"]
    assert len(judge_server.calls) == 3
    assert [verdict["judge"] for verdict in faithfulness()] == ["heuristic", JUDGE] * 3
    assert [verdict["value"] for verdict in faithfulness()] == [1.0, 0.0] * 3


@pytest.mark.slow
def test_german_prompts_are_asked_in_german_and_told_apart(evaluate, judge_server):
    short_cases(2)
    evaluate()
    english = {v["prompt"]["sha256"] for v in faithfulness()}
    with pytest.raises(
        InputError, match=r"\(prompts\.citations has changed; .* more\); choose another"
    ):
        evaluate(prompts="de")
    evaluate(prompts="de", overwrite=True)
    german = {v["prompt"]["sha256"] for v in faithfulness()}
    assert not english & german
    systems = [call.body["messages"][0]["content"] for call in judge_server.calls]
    assert [system.startswith("Du bewertest") for system in systems] == [False, False, True, True]
    assert statuses() == ["scored"] * 2
    assert manifest()["judging"]["prompts"] == "de"


def whole_or_part(body):
    """The honest judge, for later parts of a long context too."""
    held = [text for label, text in fenced(body) if label.startswith("claim_")]
    if not held:
        return honest(body)
    passages = [text for label, text in fenced(body) if label.startswith("passage_")]
    said = []
    for number, claim in enumerate(held, 1):
        quote = claim.rstrip(".")
        found = any(quote in text for text in passages)
        support = "supported" if found else "unsupported"
        said.append({"claim": number, "support": support, "quote": quote if found else None})
    relevant = [{"passage": n, "relevant": False} for n in range(1, len(passages) + 1)]
    return {"claims": said, "passages": relevant, "sufficient": "no"}


def test_a_short_context_is_judged_in_parts_that_are_one_verdict(evaluate, judge_server):
    tale = " ".join(["The gulls over the pier speak of nets and of tar, and nobody listens."] * 40)
    blue = "The sky over town {n} is blue."
    write_inputs(
        2,
        lambda n: [tale, tale[::-1], f"{tale} {blue.format(n=n)}"],
        lambda n: f"{blue.format(n=n)} Grass is red.",
    )
    judge_server.script = whole_or_part
    summary = evaluate(context_length=2500).summary
    assert len(judge_server.calls) > 4
    assert summary["usage"]["calls"] == len(judge_server.calls)
    for call in judge_server.calls:
        assert sum(len(m["content"]) for m in call.body["messages"]) / 4 < 2500
    for number, verdict in enumerate(faithfulness()):
        assert verdict["value"] == 0.5
        supported, invented = verdict["claims"]
        assert (supported["support"], invented["support"]) == ("supported", "unsupported")
        assert [found["passage_id"] for found in supported["evidence"]] == [f"p{number}-3"]


OWN = """
from misslink.judge.protocol import Reply

class Strict:
    name = "strict"
    identity = {"judge": "strict", "version": 1}

    async def ask(self, ask):
        said = {"claims": [{"claim": ask.inputs["answer"], "support": "unsupported"}],
                "passages": [], "response": "answers"}
        return Reply(ask.schema.model_validate(said), "{}")

    async def close(self):
        pass
"""


def test_a_judge_in_a_file_of_ones_own_judges(evaluate, judge_server):
    short_cases(2)
    Path("strict.py").write_text(OWN, encoding="utf-8")
    run = evaluate("strict.py:Strict")
    assert judge_server.calls == []
    assert run.summary["judge"] == "strict"
    assert [verdict["value"] for verdict in faithfulness()] == [0.0, 0.0]
    assert evaluate("strict.py:Strict").summary["usage"]["from_cache"] == 2
    # Other code is another judge: its replies are not taken from the cache.
    changed = OWN.replace('"response": "answers"', '"response": "evades"')
    Path("strict.py").write_text(changed, encoding="utf-8")
    with pytest.raises(InputError, match="other inputs"):
        evaluate("strict.py:Strict")
    assert run.summary["generation"]["answer_relevance"]["value"] == 1.0
    run = evaluate("strict.py:Strict", overwrite=True)
    assert run.summary["usage"]["from_cache"] == 0
    assert run.summary["generation"]["answer_relevance"]["value"] == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("langchain:openai:test-judge", "/v1/chat/completions"),
        ("openai-responses:test-judge", "/v1/responses"),
    ],
)
def test_other_ways_to_the_same_server_find_the_same(evaluate, judge_server, spec, path):
    if spec.startswith("langchain"):
        pytest.importorskip("langchain_openai", reason="needs langchain-openai")
    short_cases(3)
    kept = {"exclude": {"judge", "usage", "raw"}}
    expected = [verdict.model_dump(**kept) for verdict in evaluate().verdicts]
    judge_server.calls.clear()
    run = evaluate(spec, overwrite=True)
    assert [verdict.model_dump(**kept) for verdict in run.verdicts] == expected
    assert {verdict.judge for verdict in run.verdicts} == {spec}
    assert [call.path for call in judge_server.calls] == [path] * 3
    assert run.summary["usage"]["prompt_tokens"] > 0


PROGRAM = "from misslink.cli.main import main; main()"


@pytest.mark.slow
def test_a_disk_that_fills_up_in_the_middle_loses_only_what_is_in_flight(evaluate, judge_server):
    short_cases(40)
    evaluate(max_calls=1)  # the cache is there, and the app's answers are kept

    def fills_up(_):
        if len(judge_server.calls) == 10:
            resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (0, 0))  # no file may grow

    judge_server.script = fills_up
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *COMMAND, "--concurrency", "4"],
        stderr=subprocess.PIPE,
        text=True,
    )
    _, told = running.communicate()
    judge_server.script = None
    assert running.returncode == 2, told
    assert "cannot be written" in told  # the response cache, or the run's verdicts
    assert "Traceback" not in told
    asked = len(judge_server.calls)
    assert 2 < asked < 40
    usage = evaluate().summary["usage"]
    assert usage["from_cache"] >= asked - 4
    assert len(judge_server.calls) == asked + usage["calls"]
    assert statuses() == ["scored"] * 40
    assert app_was_asked() == 40
