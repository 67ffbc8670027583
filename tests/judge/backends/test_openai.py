"""The judges openai and openai-responses, at a real server."""

import asyncio
import json
import threading

import pytest

from ask_server import outage, replies, trouble, with_judge
from honest_judge import honest, small_ask
from judge_faults import after, broken_json, error_body, reset, status
from judge_server import JudgeServer, as_chat, completion, response
from misslink.errors import InputError
from misslink.judge.backends.openai import ResponsesJudge, open_openai, open_responses
from misslink.judge.backends.response_parsing import WITHHELD
from misslink.judge.examination import Examination
from misslink.judge.middleware.long_context import estimate_ask_tokens
from misslink.judge.protocol import RetryableError

KEY = "sk-secret-0123456789"


@pytest.fixture(params=[open_openai, open_responses], ids=["chat", "responses"])
def opening(request):
    """How the judge is opened: both interfaces behave the same."""
    return request.param


def test_a_reply_is_read_as_the_schema_that_was_asked_for(judge_server):
    (reply,) = replies(judge_server)
    assert [claim.support for claim in reply.parsed.claims] == ["supported", "unsupported"]
    assert reply.parsed.claims[0].quotes == ("The sky over town 0 is blue",)
    assert reply.usage.prompt_tokens > 0
    (call,) = judge_server.calls
    assert call.body["response_format"]["type"] == "json_schema"


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


@pytest.mark.parametrize(
    ("code", "kind"),
    [(408, "server"), (409, "server"), (429, "rate"), (500, "server"), (529, "server")],
)
def test_passing_trouble_is_told_after_one_attempt(judge_server, opening, code, kind):
    judge_server.script = status(code, "slow down", retry_after="7")
    found = trouble(judge_server, opening)
    assert (found.kind, found.after) == (kind, 7)
    assert found.problem == f"the server answers {code} and asks to wait 7 s: slow down"
    assert len(judge_server.calls) == 1


def test_a_broken_connection_is_trouble_that_may_pass(judge_server, opening):
    judge_server.script = reset
    assert trouble(judge_server, opening).kind == "connection"
    assert len(judge_server.calls) == 1


def test_a_body_that_ends_too_soon_is_trouble_that_may_pass(judge_server, opening):
    judge_server.script = lambda _: (
        200,
        {"content-length": "9999", "connection": "close"},
        '{"choices": [{"message"',
    )
    assert trouble(judge_server, opening).kind == "connection"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (error_body, "upstream is overloaded"),
        (lambda _: (200, {"content-type": "text/html"}, "<html>"), "not JSON"),
        (lambda _: (200, {}, '{"choices": [{'), "not JSON"),
        (lambda _: (200, {}, "[" * 100_000), "not JSON"),
        (lambda _: (200, {}, {"choices": [], "output": None}), "sent no"),
        (lambda _: (200, {}, ""), "not JSON"),
    ],
)
def test_success_without_an_answer_is_a_servers_trouble_and_no_reply(
    judge_server, opening, script, why
):
    judge_server.script = script
    found = trouble(judge_server, opening)
    assert found.kind == "server"
    assert why in found.problem


def test_a_cancelled_ask_leaves_the_server_and_the_next_one_is_answered(judge_server, opening):
    begun = threading.Event()

    def drip():
        begun.set()
        while not judge_server.pause(0.02):
            yield b" "

    judge_server.script = after(1, lambda _: (200, {}, drip()))

    async def use(judge):
        asking = asyncio.create_task(judge.ask(small_ask(1)))
        assert await asyncio.to_thread(begun.wait, 10)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        return await judge.ask(small_ask(2))

    assert with_judge(judge_server, use, opening).parsed is not None
    assert judge_server.left.wait(10)


def test_a_hung_first_ask_does_not_hold_up_the_others_for_ever(judge_server, monkeypatch):
    monkeypatch.setattr("misslink.judge.backends.request_format._PROBE_WAIT_S", 0.1)
    begun = threading.Event()

    def hang(body):
        begun.set()
        judge_server.wait_until_stopped()

    judge_server.script = after(1, hang)

    async def use(judge):
        hung = asyncio.create_task(judge.ask(small_ask(0)))
        assert await asyncio.to_thread(begun.wait, 10)
        found = await asyncio.gather(*(judge.ask(small_ask(n)) for n in range(1, 4)))
        hung.cancel()
        return found

    assert all(reply.parsed for reply in with_judge(judge_server, use))


def test_an_unreadable_reply_is_a_failure_that_keeps_its_price(judge_server):
    judge_server.script = broken_json
    (reply,) = replies(judge_server)
    assert reply.parsed is None
    assert "not JSON" in reply.problem
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


def test_a_key_that_is_missing_is_not_called_refused(judge_server):
    judge_server.key = "sk-another"
    said = outage(judge_server)
    assert "needs a key (HTTP 401); set OPENAI_API_KEY" in said
    assert "refuses the key" not in said


@pytest.mark.parametrize(
    ("context_length", "longest"), [(None, 4096), (100_000, 4096), (1500, None), (300, 256)]
)
def test_a_reply_is_no_longer_than_the_context_has_room_for(
    judge_server, opening, context_length, longest
):
    (reply,) = replies(judge_server, 1, opening, context_length=context_length)
    assert reply.parsed is not None
    (call,) = judge_server.calls
    sent = call.body.get("max_tokens") or call.body["max_output_tokens"]
    assert sent == (longest or 1500 - estimate_ask_tokens(small_ask(0)))


def test_a_longest_reply_that_is_given_is_never_exceeded(judge_server, opening):
    replies(judge_server, 1, opening, max_tokens=50, context_length=300)
    body = judge_server.calls[0].body
    assert (body.get("max_tokens") or body["max_output_tokens"]) == 50


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
    assert "no connection" in outage(gone)


def test_the_key_is_sent_and_shows_nowhere(judge_server):
    judge_server.key = KEY
    judge_server.script = lambda _: f"your key is {KEY}"
    judge = open_openai("test-judge", base_url=judge_server.url, api_key=KEY)
    (reply,) = replies(judge_server, api_key=KEY)
    assert judge_server.calls[0].key == f"Bearer {KEY}"
    assert reply.raw == "your key is [key]"
    assert KEY not in repr(judge) + str(judge.identity) + judge.name + reply.problem


@pytest.mark.parametrize("opening", [open_openai, open_responses])
def test_the_password_of_the_address_shows_nowhere(judge_server, opening):
    said = "your password is pass-word-1, your key abcd\\/efgh\\u002fijkl9876, YWRhOnBhc3Mtd29yZC0x"
    judge_server.script = lambda _: said
    url = judge_server.url.replace("http://", "http://ada:pass-word-1@")
    (reply,) = replies(judge_server, 1, opening, base_url=url, api_key="abcd/efgh/ijkl9876")
    assert reply.raw == "your password is [key], your key [key], [key]"
    judge_server.script = status(400, f"bad request: {said}")
    (reply,) = replies(judge_server, 1, opening, base_url=url, api_key="abcd/efgh/ijkl9876")
    assert "your password is [key], your key [key], [key]" in reply.problem


@pytest.mark.parametrize("key", ["x", "text", "EMPTY", "ollama", "claims"])
def test_a_dummy_key_that_is_part_of_the_reply_leaves_it_as_it_is(judge_server, key):
    (plain,) = replies(judge_server)
    (reply,) = replies(judge_server, api_key=key)
    assert reply == plain
    assert reply.parsed is not None


def test_a_key_repeated_in_a_readable_reply_is_in_nothing_that_is_kept(judge_server):
    claim = {"claim": f"My key is {KEY}", "support": "supported", "quote": None}
    judge_server.script = lambda _: json.dumps(
        {"claims": [claim], "passages": [], "response": "answers"}
    )
    (reply,) = replies(judge_server, api_key=KEY)
    assert reply.parsed.claims[0].claim == "My key is [key]"
    assert KEY not in reply.raw


def test_a_key_at_the_cut_of_a_long_complaint_is_not_shown_in_part(judge_server):
    judge_server.script = lambda _: (200, {}, "." * 290 + KEY)
    assert KEY[:6] not in trouble(judge_server, api_key=KEY).problem


def test_a_server_of_ones_own_needs_no_key(judge_server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    (reply,) = replies(judge_server, base_url=None)
    assert reply.parsed is not None


@pytest.mark.parametrize("argument", [None, "", " "])
def test_a_judge_without_a_model_is_refused(argument, opening):
    with pytest.raises(InputError, match=r"openai(-responses)?:MODEL"):
        opening(argument, api_key=KEY)


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
    together = threading.Barrier(4, timeout=60)
    alone = []

    def first(_):
        alone.append(len(judge_server.calls))

    def rest(_):
        together.wait()

    judge_server.script = after(1, first, rest)
    assert all(reply.parsed for reply in replies(judge_server, 5))
    assert alone == [1]
    assert judge_server.most_at_once == 4


def test_a_server_that_goes_away_for_a_moment_is_trouble_that_may_pass(judge_server):
    judge_server.script = lambda body: (
        200,
        {"connection": "close"},
        completion(body, json.dumps(honest(body))),
    )

    async def use(judge):
        await judge.ask(small_ask(1))
        judge_server.stop()
        await judge.ask(small_ask(2))

    with pytest.raises(RetryableError) as raised:
        with_judge(judge_server, use)
    assert raised.value.kind == "absent"  # nothing was sent, so it is no question's doing


def test_the_interface_is_part_of_the_identity():
    url = "http://localhost:1/v1"
    chat, responses = open_openai("m", base_url=url), open_responses("m", base_url=url)
    assert (chat.name, responses.name) == ("openai:m", "openai-responses:m")
    assert responses.identity == {
        "judge": "openai-responses",
        "model": "m",
        "base_url": "localhost:1/v1",
        "temperature": 0.0,
        "max_tokens": 4096,
    }


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
    return ResponsesJudge.parse(json.dumps(body))


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
    assert reply.usage.prompt_tokens > 100
    assert reply.usage.completion_tokens > 0


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
    said = read(output=[], incomplete_details={"reason": "content_filter"})
    assert said.reply(Examination).problem.startswith(WITHHELD)


@pytest.mark.parametrize(
    "body",
    [
        {"status": "failed", "error": {"message": "upstream is down"}, "output": []},
        {"error": {"message": "upstream is down"}},
        {"output": None, "error": "upstream is down"},
    ],
)
def test_a_failed_response_says_nothing_and_why(body):
    with pytest.raises(RetryableError, match="upstream is down"):
        read(**body)


@pytest.mark.parametrize(
    "output", [[None], ["x"], [message(None, 1, {"text": 5})], [{"type": "message"}]]
)
def test_strange_output_is_empty_content(output):
    assert read(output=output).content == ""
