"""The server that stands in for a judge is checked too: what it lets pass, tests cannot find."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from honest_judge import honest, small_ask
from judge_server import MODEL
from misslink.judging.examination import Examination, ExaminationWithReference, examine


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
    command = [sys.executable, Path(__file__).with_name("judge_server.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        url = running.stdout.readline().strip()
        answer = post(url, request_for(small_ask(1)))
        running.terminate()
    assert answer["choices"][0]["finish_reason"] == "stop"
