from __future__ import annotations

import asyncio

import pytest

from judge_faults import no_schema, no_structure, status
from misslink.judging.ping import ping_spec
from misslink.judging.terms import Terms


def found(server, spec="openai:test-judge"):
    return asyncio.run(ping_spec(spec, Terms(base_url=server.url)))


@pytest.mark.parametrize("spec", ["openai:test-judge", "openai-responses:test-judge"])
def test_a_ping_says_all_that_a_server_can_do_in_two_questions(judge_server, spec):
    judge_server.logprobs = True
    judge_server.offer = {
        "context_length": 8192,
        "pricing": {"prompt": "0.000001", "completion": "0.000002"},
    }
    said = found(judge_server, spec)
    assert said["ok"]
    assert (said["structure"], said["json_schema"], said["json_mode"]) == (
        "json_schema",
        True,
        True,
    )
    assert (said["logprobs"], said["seed"]) == (True, spec.startswith("openai:"))
    assert said["context_length"] == 8192
    assert said["price"] == {"prompt": 1.0, "completion": 2.0}
    assert said["prompt_tokens"] > 0
    assert len(judge_server.calls) == 2


def test_what_a_server_does_not_say_is_not_known(judge_server):
    said = found(judge_server)
    assert (said["context_length"], said["price"], said["logprobs"]) == (None, None, False)


def test_a_server_without_schemas_has_json_mode_all_the_same(judge_server):
    judge_server.script = no_schema
    said = found(judge_server)
    assert (said["json_schema"], said["json_mode"]) == (False, True)
    assert len(judge_server.calls) == 2


def test_a_ping_stops_at_three_questions(judge_server):
    judge_server.script = no_structure
    said = found(judge_server)
    assert (said["ok"], said["structure"]) == (True, "plain")
    assert (said["json_schema"], said["json_mode"], said["seed"]) == (False, None, False)
    assert len(judge_server.calls) == 3


def test_a_server_with_schemas_alone_has_no_json_mode(judge_server):
    def schema_only(body):
        kind = body.get("response_format", {}).get("type")
        return status(400, "json_object is not supported")(body) if kind == "json_object" else None

    judge_server.script = schema_only
    said = found(judge_server)
    assert (said["json_schema"], said["json_mode"]) == (True, False)


def test_passing_trouble_is_the_problem_of_the_ping(judge_server):
    judge_server.script = status(500, "out of memory")
    said = found(judge_server)
    assert (said["ok"], said["problem"]) == (False, "the server answers 500: out of memory")


def test_a_server_that_hangs_is_left_at_the_deadline_of_a_call(judge_server):
    judge_server.script = lambda _: judge_server.wait_until_stopped()
    terms = Terms(base_url=judge_server.url, timeout=0.3)
    said = asyncio.run(ping_spec("openai:test-judge", terms))
    assert (said["ok"], said["problem"]) == (False, "no reply came within 0.3 s")


def test_a_judge_that_is_no_server_has_none_of_it():
    said = asyncio.run(ping_spec("embedded"))
    assert said["ok"]
    assert {said[name] for name in ("json_schema", "json_mode", "seed", "price")} == {None}
