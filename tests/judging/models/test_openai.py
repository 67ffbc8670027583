from __future__ import annotations

import asyncio
import json
import threading

import pytest

from honest_judge import small_ask
from judge_faults import after, broken_json, error_body, no_schema, no_structure, reset, status
from judge_server import JudgeServer, completion
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.models.openai import open_openai

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_judge_in_the_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def replies(server, count=1, **options):
    """Put `count` asks at once and return the replies."""

    async def put():
        judge = open_openai("test-judge", **{"base_url": server.url, **options})
        try:
            return await asyncio.gather(*(judge.ask(small_ask(n)) for n in range(count)))
        finally:
            await judge.close()

    return asyncio.run(put())


def outage(server, **options):
    with pytest.raises(JudgeUnreachableError) as raised:
        replies(server, **{"max_retries": 0, **options})
    return str(raised.value)


def test_a_reply_is_read_as_the_schema_that_was_asked_for(judge_server):
    (reply,) = replies(judge_server)
    assert [claim.support for claim in reply.parsed.claims] == ["supported", "unsupported"]
    assert reply.parsed.claims[0].quote == "The sky over town 0 is blue"
    assert reply.usage.prompt_tokens > 0
    (call,) = judge_server.calls
    assert call.body["response_format"]["type"] == "json_schema"


def test_ten_asks_at_once_all_come_back_in_order(judge_server):
    found = replies(judge_server, 10)
    assert [reply.parsed.claims[0].text for reply in found] == [
        f"The sky over town {n} is blue." for n in range(10)
    ]
    assert len(judge_server.calls) == 10


@pytest.mark.parametrize(
    ("script", "structures"),
    [
        (no_schema, ["json_schema", "json_object"]),
        (no_structure, ["json_schema", "json_object", None]),
    ],
)
def test_what_a_server_takes_is_found_out_once(judge_server, script, structures):
    judge_server.script = script
    found = replies(judge_server, 5)
    assert all(reply.parsed for reply in found)
    asked = [call.body.get("response_format", {}).get("type") for call in judge_server.calls]
    assert asked[: len(structures)] == structures
    assert asked[len(structures) :] == [structures[-1]] * 4


def test_a_model_with_its_own_parameters_is_met(judge_server):
    def particular(body):
        if "max_tokens" in body:
            message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            return status(400, message)(body)
        if "temperature" in body:
            return status(400, "'temperature' does not support 0.0 with this model.")(body)
        return None

    judge_server.script = particular
    assert all(reply.parsed for reply in replies(judge_server, 3))
    assert [call.status for call in judge_server.calls] == [400, 400, 200, 200, 200]
    assert judge_server.calls[-1].body["max_completion_tokens"] == 4096


def test_a_question_refused_for_itself_is_that_questions_failure(judge_server):
    too_long = status(400, "the prompt is longer than the context")
    judge_server.script = lambda body: (
        too_long(body) if "town 1 " in body["messages"][1]["content"] else None
    )
    found = replies(judge_server, 3)
    assert [reply.parsed is None for reply in found] == [False, True, False]
    assert "longer than the context" in found[1].problem
    assert not found[1].came
    assert len(judge_server.calls) == 3


@pytest.mark.parametrize("headers", [{"retry_after_ms": "600"}, {"retry_after": "0.6"}])
def test_retry_after_is_honoured(judge_server, headers):
    judge_server.script = after(1, status(429, "slow down", **headers))
    (reply,) = replies(judge_server)
    assert reply.parsed is not None
    first, second = judge_server.calls
    assert second.at - first.at >= 0.6  # the client's own first wait is at most 0.5 s


def test_a_wait_beyond_two_minutes_is_not_waited_for(judge_server):
    judge_server.script = status(429, "quota resets at noon", retry_after="3600")
    (reply,) = replies(judge_server)
    assert len(judge_server.calls) == 1
    assert "429 and asks to wait 3600 s: quota resets at noon" in reply.problem


@pytest.mark.parametrize("code", [408, 409, 500, 502, 503, 529])
def test_passing_trouble_is_retried(judge_server, code):
    judge_server.script = after(2, status(code, retry_after_ms="1"))
    (reply,) = replies(judge_server)
    assert reply.parsed is not None
    assert [call.status for call in judge_server.calls] == [code, code, 200]


def test_a_broken_connection_is_retried(judge_server):
    judge_server.script = after(1, reset)
    (reply,) = replies(judge_server, max_retries=1)
    assert reply.parsed is not None
    assert len(judge_server.calls) == 2


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (status(500, "out of memory"), "500: out of memory"),
        (reset, "the connection broke"),
        (error_body, "upstream is overloaded"),
        (lambda _: (200, {"content-type": "text/html"}, "<html>"), "not JSON"),
        (lambda _: (200, {}, '{"choices": [{'), "not JSON"),
        (lambda _: (200, {}, {"choices": []}), "no completion"),
    ],
)
def test_trouble_that_stays_is_a_failure_to_which_nothing_came(judge_server, script, why):
    judge_server.script = script
    (reply,) = replies(judge_server, max_retries=0)
    assert reply.parsed is None
    assert why in reply.problem
    assert not reply.came


def test_a_server_that_hangs_is_left_after_the_timeout_and_not_asked_again(judge_server):
    judge_server.script = lambda _: judge_server.wait_until_stopped()
    (reply,) = replies(judge_server, timeout=0.3)
    assert "no reply came" in reply.problem
    assert not reply.came
    assert len(judge_server.calls) == 1


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (broken_json, "not JSON"),
        (lambda _: '{"claims": []}', "Field required"),
        (
            lambda body: (200, {}, completion(body, '{"claims": [', finish_reason="length")),
            "cut off at the token limit",
        ),
        (
            lambda body: (200, {}, completion(body, None, message={"refusal": "I must not."})),
            "declined to answer",
        ),
    ],
)
def test_an_unreadable_reply_is_a_failure_that_keeps_its_words(judge_server, script, why):
    judge_server.script = script
    (reply,) = replies(judge_server)
    assert reply.parsed is None
    assert why in reply.problem
    assert reply.came
    assert reply.usage.prompt_tokens > 0
    assert len(judge_server.calls) == 1


def test_a_wrong_key_stops_at_once_and_is_not_repeated_in_the_message(judge_server):
    judge_server.key = "sk-another"
    said = outage(judge_server, api_key=KEY)
    assert f"the judge openai:test-judge at {judge_server.url}" in said
    assert "OPENAI_API_KEY" in said
    assert KEY not in said
    assert len(judge_server.calls) == 1


def test_an_unknown_model_is_named(judge_server):
    judge_server.models = ("another",)
    assert "does not know the model 'test-judge'" in outage(judge_server)


def test_a_wrong_path_is_told_from_a_wrong_model(judge_server):
    assert "ends in /v1" in outage(judge_server, base_url=judge_server.url[: -len("/v1")])


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (status(403), "refuses access"),
        (status(402), "no credit"),
        (
            lambda _: (429, {}, {"error": {"message": "pay", "code": "insufficient_quota"}}),
            "no credit",
        ),
        (status(400, "Invalid model name passed in model=test-judge"), "does not know the model"),
    ],
)
def test_what_no_other_question_would_escape_stops_the_run(judge_server, script, why):
    judge_server.script = script
    assert why in outage(judge_server)


def test_nobody_at_the_address_stops_the_run():
    with JudgeServer() as gone:
        pass
    assert "nobody answers there" in outage(gone)


def test_the_key_is_sent_and_shows_nowhere(judge_server):
    judge_server.key = KEY
    judge_server.script = lambda _: f"your key is {KEY}"
    judge = open_openai("test-judge", base_url=judge_server.url, api_key=KEY)
    (reply,) = replies(judge_server, api_key=KEY)
    assert judge_server.calls[0].key == f"Bearer {KEY}"
    assert reply.raw == "your key is [key]"
    assert KEY not in repr(judge) + str(judge.identity) + judge.name + reply.problem


@pytest.mark.parametrize("key", ["x", "text", "EMPTY", "ollama", "claims"])
def test_a_dummy_key_that_is_part_of_the_reply_leaves_it_as_it_is(judge_server, key):
    (plain,) = replies(judge_server)
    (reply,) = replies(judge_server, api_key=key)
    assert reply == plain
    assert reply.parsed is not None


def test_a_key_repeated_in_a_readable_reply_is_in_nothing_that_is_kept(judge_server):
    claim = {"text": f"My key is {KEY}", "support": "supported", "quote": None}
    judge_server.script = lambda _: json.dumps(
        {"claims": [claim], "passages": [], "response": "answers"}
    )
    (reply,) = replies(judge_server, api_key=KEY)
    assert reply.parsed.claims[0].text == "My key is [key]"
    assert KEY not in reply.raw


def test_a_key_at_the_cut_of_a_long_complaint_is_not_shown_in_part(judge_server):
    judge_server.script = lambda _: (200, {}, "." * 290 + KEY)
    (reply,) = replies(judge_server, api_key=KEY)
    assert KEY[:6] not in reply.problem


def test_a_server_of_ones_own_needs_no_key(judge_server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    (reply,) = replies(judge_server, base_url=None)
    assert reply.parsed is not None


@pytest.mark.parametrize("url", [None, "https://api.openai.com/v1"])
def test_openai_itself_needs_a_key(url):
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        open_openai("m", base_url=url)


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "http://host:port/v1", KEY])
def test_a_base_url_that_is_no_address_is_refused_unrepeated(url):
    with pytest.raises(InputError, match="base URL") as raised:
        open_openai("m", base_url=url)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize("argument", [None, "", " "])
def test_a_judge_without_a_model_is_refused(argument):
    with pytest.raises(InputError, match="openai:MODEL"):
        open_openai(argument, api_key=KEY)


def test_a_key_that_no_header_can_carry_is_refused():
    with pytest.raises(InputError, match="copy it again"):
        open_openai("m", api_key="sk-ключ")


def test_identity_holds_what_a_reply_depends_on_and_no_secret():
    judge = open_openai(
        "m", base_url="https://user:pass@host.example:8443/v1/?key=k", temperature=0.5
    )
    assert judge.identity == {
        "judge": "openai",
        "model": "m",
        "base_url": "host.example:8443/v1",
        "temperature": 0.5,
        "seed": 0,
        "max_tokens": 4096,
    }


def test_the_first_ask_goes_alone_and_the_others_together(judge_server):
    together = threading.Barrier(4, timeout=10)
    alone = []

    def first(_):
        alone.append(len(judge_server.calls))

    def rest(_):
        together.wait()

    judge_server.script = after(1, first, rest)
    assert all(reply.parsed for reply in replies(judge_server, 5))
    assert alone == [1]
    assert judge_server.most_at_once == 4
