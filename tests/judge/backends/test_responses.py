from __future__ import annotations

import asyncio
import json

import pytest

from honest_judge import honest, small_ask
from judge_server import as_chat, response
from misslink.errors import InputError
from misslink.judge.backends.openai import RESPONSES, open_responses
from misslink.judge.config import JudgeConfig
from misslink.judge.session import open_judge

SAID = {"type": "output_text", "text": "{}"}


def ask(server, script=None):
    server.script = script

    async def put():
        judge = open_responses("test-judge", base_url=server.url)
        try:
            return await judge.ask(small_ask(1))
        finally:
            await judge.close()

    return asyncio.run(put())


def read(**body):
    return RESPONSES.read(json.dumps(body))


def message(*parts):
    return {"type": "message", "content": list(parts)}


def test_a_question_goes_to_the_responses_interface_and_is_not_stored(judge_server):
    reply = ask(judge_server)
    assert [claim.support for claim in reply.parsed.claims] == ["supported", "unsupported"]
    (call,) = judge_server.calls
    assert call.path == "/v1/responses"
    assert call.body["store"] is False
    assert call.body["max_output_tokens"] == 4096
    assert call.body["text"]["format"]["type"] == "json_schema"
    assert "seed" not in call.body


def test_usage_is_read_by_its_names_there(judge_server):
    usage = ask(judge_server).usage
    assert usage.prompt_tokens > 100
    assert usage.completion_tokens > 0


def test_a_response_cut_at_the_limit_says_so(judge_server):
    def cut(body):
        details = {"reason": "max_output_tokens"}
        return (
            200,
            {},
            response(as_chat(body), "{", status="incomplete", incomplete_details=details),
        )

    # The script sees a chat request; the answer is built from it all the same.
    reply = ask(judge_server, lambda body: cut({"input": body["messages"], "model": body["model"]}))
    assert "cut off at the token limit" in reply.problem
    assert reply.came


def test_a_refusal_is_told_in_its_words():
    said = read(output=[message({"type": "refusal", "refusal": "I must not."})])
    assert said.refusal == "I must not."


def test_what_the_model_reasoned_is_not_what_it_said():
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "{1}"}]}
    assert read(output=[thought, message(SAID)]).content == "{}"


def test_a_withheld_response_is_known_as_such():
    assert read(output=[], incomplete_details={"reason": "content_filter"}).withheld


@pytest.mark.parametrize(
    "body",
    [
        {"status": "failed", "error": {"message": "upstream is down"}, "output": []},
        {"error": {"message": "upstream is down"}},
        {"output": None, "error": "upstream is down"},
    ],
)
def test_a_failed_response_says_nothing_and_why(body):
    said = read(**body)
    assert isinstance(said, str)
    assert "upstream is down" in said


@pytest.mark.parametrize(
    "output", [[None], ["x"], [message(None, 1, {"text": 5})], [{"type": "message"}]]
)
def test_strange_output_is_empty_content(output):
    assert read(output=output).content == ""


def test_it_is_opened_by_its_name_like_any_judge(judge_server):
    async def put():
        judge = open_judge(
            "openai-responses:test-judge",
            cache=None,
            concurrency=2,
            terms=JudgeConfig(base_url=judge_server.url, max_tokens=99),
        )
        try:
            return await judge.ask(small_ask(1))
        finally:
            await judge.close()

    assert (
        asyncio.run(put()).parsed.claims[0].text
        == honest({"messages": [dict(m) for m in small_ask(1).messages]})["claims"][0]["text"]
    )
    assert judge_server.calls[0].body["max_output_tokens"] == 99


def test_without_a_model_it_is_refused():
    with pytest.raises(InputError, match="openai-responses:MODEL"):
        open_responses(None)
