"""The server that stands in for a judge is checked too: what it lets pass, tests cannot find."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from honest_judge import honest, small_ask
from judge_server import MODEL
from misslink.judge.checks.pairwise import AnswerPair, Preference, judge_pairs
from misslink.judge.config import JudgeConfig
from misslink.judge.middleware.long_context import ExaminationPart, examine_part
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.protocol import Examination, ExaminationWithReference, examine
from misslink.judge.session import open_judge


def request_for(ask, **changes):
    schema = {"name": ask.name, "schema": ask.json_schema, "strict": True}
    return {
        "model": MODEL,
        "messages": [dict(message) for message in ask.messages],
        "response_format": {"type": "json_schema", "json_schema": schema},
        **changes,
    }


def post(url, body):
    with urlopen(Request(f"{url}/chat/completions", json.dumps(body).encode())) as answer:  # noqa: S310 - loopback
        return json.load(answer)


def test_it_examines_by_containment():
    ask = examine(
        "Where do newts live?",
        ("Stones are hard.", "Newts live in ponds, and so do frogs."),
        "Newts live in ponds. Newts can fly.",
        ("Newts live in ponds. They are small.",),
    )
    said = ExaminationWithReference.model_validate(honest(request_for(ask)))
    assert [(claim.support, claim.quote, claim.reference) for claim in said.claims] == [
        ("supported", "Newts live in ponds", "agrees"),
        ("unsupported", None, "silent"),
    ]
    assert [passage.relevant for passage in said.passages] == [False, True]
    assert [(r.text, r.answer) for r in said.reference_claims] == [
        ("Newts live in ponds.", "states"),
        ("They are small.", "omits"),
    ]
    assert said.response == "answers"


def test_an_answer_that_declines_has_no_claims():
    ask = examine("Who?", ("Stones are hard.",), "I cannot answer that from the passages.")
    said = Examination.model_validate(honest(request_for(ask)))
    assert (said.claims, said.response) == ((), "declines")


GOOD, BAD = "Newts live in ponds.", "I cannot answer that."


@pytest.mark.parametrize(
    ("first", "second", "better"),
    [
        (GOOD, BAD, "first"),
        (BAD, GOOD, "second"),
        (GOOD, "Stones are hard.", "first"),
        (GOOD, "Newts live in rivers.", "tie"),
    ],
)
@pytest.mark.parametrize("language", [None, "de"])
def test_it_prefers_an_answer_to_a_refusal_and_to_what_is_beside_the_question(
    first, second, better, language
):
    pair = AnswerPair("1", "Where do newts live?", first, second)
    ask, _ = pair.asks(Prompts.from_spec(language))
    assert Preference.model_validate(honest(request_for(ask))).better == better
    in_prompt = {"messages": request_for(ask)["messages"]}
    assert honest(in_prompt) == {"better": better}
    assert honest({"messages": request_for(ask.alone())["messages"]}) == better


def test_it_holds_numbered_claims_against_a_part_of_the_passages():
    ask = examine_part(
        "Where do newts live?",
        "Newts live in ponds. Newts can fly.",
        ("Newts live in ponds.", "Newts can fly."),
        ("Stones are hard.", "Newts live in ponds, and so do frogs."),
        prompts=BUILT_IN,
    )
    said = ExaminationPart.model_validate(honest(request_for(ask)))
    assert [(claim.claim, claim.support, claim.quote) for claim in said.claims] == [
        (1, "supported", "Newts live in ponds"),
        (2, "unsupported", None),
    ]
    assert [passage.relevant for passage in said.passages] == [False, True]
    assert said.sufficient == "yes"


def test_it_serves_a_comparison_and_a_long_context_as_they_are_asked(judge_server):
    filler = " ".join(["Gulls cry over the pier and the tar smells in the sun."] * 40)
    passages = (filler, filler, filler, "Newts live in ponds, and so do frogs.")
    long = examine("Where do newts live?", passages, GOOD)
    terms = JudgeConfig(base_url=judge_server.url, context_length=2600, max_tokens=500)

    async def asked():
        judge = open_judge("openai:test-judge", cache=None, concurrency=2, terms=terms)
        try:
            outcomes = await judge_pairs(
                [AnswerPair("1", "Where do newts live?", BAD, GOOD)], judge
            )
            return outcomes, await judge.ask(long)
        finally:
            await judge.close()

    (outcome,), reply = asyncio.run(asked())
    assert (outcome.winner, outcome.orders) == ("b", ("b", "b"))
    assert len(judge_server.calls) > 3
    assert [claim.support for claim in reply.parsed.claims] == ["supported"]


def test_a_client_that_leaves_is_no_fault_of_the_server_and_anything_else_is(judge_server, capfd):
    for problem, told in ((ConnectionResetError("gone"), ""), (KeyError("oops"), "oops")):
        try:
            raise problem
        except (ConnectionResetError, KeyError):
            judge_server._http.handle_error(None, ("127.0.0.1", 1))
        printed = capfd.readouterr().err
        assert told in printed
        assert bool(told) is bool(printed)


def test_it_speaks_chat_completions_and_counts(judge_server):
    answer = post(judge_server.url, request_for(small_ask(1)))
    Examination.model_validate_json(answer["choices"][0]["message"]["content"])
    assert answer["usage"]["prompt_tokens"] > 100
    assert [call.status for call in judge_server.calls] == [200]


OPEN_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": []},
        {"messages": [{"role": "wizard", "content": "hi"}]},
        {"messages": [{"role": "user", "content": ""}]},
        {"tempreature": 0},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "strict": True, "schema": OPEN_SCHEMA},
            }
        },
    ],
)
def test_it_refuses_what_a_strict_server_refuses(judge_server, changes):
    with pytest.raises(HTTPError, match="400"):
        post(judge_server.url, request_for(small_ask(1), **changes))


def test_it_runs_as_a_command():
    command = [
        sys.executable,
        Path(__file__).parent / "builders" / "judge_server.py",
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        url = running.stdout.readline().strip()
        answer = post(url, request_for(small_ask(1)))
        running.terminate()
    assert answer["choices"][0]["finish_reason"] == "stop"
