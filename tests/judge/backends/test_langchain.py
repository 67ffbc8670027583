from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec

import pytest

from honest_judge import NO, YES, fenced, label_ask, small_ask
from judge_faults import after, broken_json, error, no_schema, reset, status
from judge_server import completion
from misslink.errors import InputError, JudgeUnreachableError, MissingExtraError
from misslink.judge.backends.connection import classify_failure, http_status
from misslink.judge.backends.langchain import LangChainJudge, open_langchain
from misslink.judge.claims import read_claims
from misslink.judge.protocol import RetryableError
from misslink.types import Passage

if (
    find_spec("langchain_openai") is None
):  # importing it takes half a second of each process that collects
    pytest.skip("needs the extra 'langchain'", allow_module_level=True)
SPEC = "openai:test-judge"
KEY = "sk-secret-0123456789"


def ask_all(server, *asks, spec=SPEC, judge=None, **options):
    judge = judge or open_langchain(spec, base_url=server.url, **options)

    async def act():
        try:
            return await asyncio.gather(*map(judge.ask, asks))
        finally:
            await judge.close()

    return asyncio.run(act()), judge


def ask_once(server, **options):
    (reply,), judge = ask_all(server, small_ask(1), **options)
    return reply, judge


def test_a_question_is_answered_by_the_schema_and_its_claims_hold(judge_server):
    reply, judge = ask_once(judge_server)
    ask = small_ask(1)
    passages = [Passage(id=str(n), text=t, rank=n) for n, t in enumerate(ask.inputs["passages"], 1)]
    claims = read_claims(reply, ask.inputs["answer"], passages)
    assert [claim.support for claim in claims] == ["supported", "unsupported"]
    assert reply.usage.prompt_tokens > 0
    assert reply.usage.completion_tokens > 0
    (call,) = judge_server.calls
    assert call.body["response_format"]["json_schema"]["schema"] == ask.json_schema
    assert call.body["response_format"]["json_schema"]["strict"] is True
    assert [m["content"] for m in call.body["messages"]] == [m["content"] for m in ask.messages]
    assert (call.body["temperature"], call.body["seed"]) == (0.0, 0)
    assert (judge.name, judge.info.structure) == ("langchain:openai:test-judge", "json_schema")


def test_a_server_without_schemas_is_asked_for_json_and_that_is_remembered(judge_server):
    judge_server.script = no_schema
    asks = [small_ask(number) for number in range(4)]
    replies, judge = ask_all(judge_server, *asks)
    assert all(reply.parsed for reply in replies)
    assert judge.info.structure == "json_object"
    refused = [call for call in judge_server.calls if call.status == 400]
    assert len(refused) == 1
    assert len(judge_server.calls) == 1 + len(asks)


def test_a_server_without_any_structure_is_asked_in_words(judge_server):
    def script(body):
        return error(400, "Bad Request") if "response_format" in body else None

    judge_server.script = script
    reply, judge = ask_once(judge_server)
    assert reply.parsed is not None
    assert judge.info.structure == "plain"
    assert sum(call.status == 400 for call in judge_server.calls) <= 3
    assert "Reply with one JSON object" in judge_server.calls[-1].body["messages"][0]["content"]


def test_what_was_found_out_is_learnt_again(judge_server):
    judge_server.script = no_schema
    _, first = ask_once(judge_server)
    judge_server.calls.clear()
    second = open_langchain(SPEC, base_url=judge_server.url)
    second.info.learn(first.info.abilities)
    ask_all(judge_server, small_ask(2), judge=second)
    assert [call.status for call in judge_server.calls] == [200]


def test_probabilities_come_where_the_tokens_have_them(judge_server):
    judge_server.logprobs = True
    judge_server.script = lambda _: NO
    (reply,), _ = ask_all(judge_server, label_ask(1))
    assert judge_server.calls[0].body["logprobs"] is True
    assert reply.parsed.supported == "no"
    assert reply.chance("supported", "yes") == pytest.approx(0.2)


def test_each_call_is_made_once_and_troubles_say_what_they_are(judge_server):
    for script, kind, wait in (
        (status(429, "slow down", retry_after="7"), "rate", 7.0),
        (status(503), "server", None),
        (reset, "connection", None),
    ):
        judge_server.calls.clear()
        judge_server.script = script
        with pytest.raises(RetryableError) as caught:
            ask_once(judge_server)
        assert (caught.value.kind, caught.value.after) == (kind, wait)
        assert len(judge_server.calls) == 1


def test_no_credit_a_wrong_key_and_an_unknown_model_end_the_asking(judge_server):
    judge_server.script = lambda _: error(429, "You exceeded your quota", "insufficient_quota")
    with pytest.raises(JudgeUnreachableError, match="no credit"):
        ask_once(judge_server)
    judge_server.script = None
    with pytest.raises(JudgeUnreachableError, match="does not know the model"):
        ask_once(judge_server, spec="openai:nobody")
    judge_server.key = "another"
    with pytest.raises(JudgeUnreachableError, match="refuses the key"):
        ask_once(judge_server, api_key=KEY)


def test_a_server_that_goes_away_for_a_moment_is_trouble_that_may_pass(judge_server):
    judge_server.script = lambda body: (200, {"connection": "close"}, completion(body, YES))

    async def act():
        judge = open_langchain(SPEC, base_url=judge_server.url)
        await judge.ask(label_ask(1))
        judge_server.stop()
        try:
            await judge.ask(label_ask(2))
        finally:
            await judge.close()

    with pytest.raises(RetryableError) as caught:
        asyncio.run(act())
    assert caught.value.kind == "absent"


def test_nobody_at_the_address_is_said(judge_server):
    judge_server.stop()
    with pytest.raises(JudgeUnreachableError, match="no connection"):
        ask_once(judge_server)


def test_a_refused_question_is_no_reply(judge_server):
    judge_server.script = lambda _: error(400, "maximum context length is 10 tokens")
    reply, _ = ask_once(judge_server)
    assert not reply.came
    assert "maximum context length" in reply.problem


def test_an_unreadable_reply_keeps_its_words_and_its_price(judge_server):
    judge_server.script = broken_json
    reply, _ = ask_once(judge_server)
    assert reply.parsed is None
    assert reply.raw.startswith('{"claims"')
    assert reply.usage.prompt_tokens > 0


def test_a_reply_cut_at_the_limit_is_kept_and_said_to_be_cut(judge_server):
    judge_server.script = lambda body: (
        200,
        {},
        completion(body, '{"claims": [', finish_reason="length"),
    )
    reply, _ = ask_once(judge_server)
    assert reply.parsed is None
    assert "token limit" in reply.problem
    assert reply.raw == '{"claims": ['
    assert reply.usage.prompt_tokens > 0


def test_the_key_goes_to_the_server_and_into_no_reply(judge_server):
    judge_server.key = KEY
    judge_server.script = lambda _: f"I was sent {KEY}."
    reply, judge = ask_once(judge_server, api_key=KEY)
    assert judge_server.calls[0].key == f"Bearer {KEY}"
    assert KEY not in reply.raw
    assert KEY not in str(judge.identity)


def test_nothing_of_the_question_goes_to_a_tracing_service(judge_server, monkeypatch):
    import langsmith
    from langchain_core.tracers.langchain import LangChainTracer

    seen = []
    monkeypatch.setattr(LangChainTracer, "on_chat_model_start", lambda *_, **__: seen.append(1))
    monkeypatch.setenv("LANGSMITH_ENDPOINT", judge_server.url)
    monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2-not-a-real-one-000000")
    with langsmith.tracing_context(enabled=True):
        reply, _ = ask_once(judge_server)
    assert reply.parsed is not None
    assert seen == []


def test_the_fence_arrives_whole(judge_server):
    ask_once(judge_server)
    labels = [label for label, _ in fenced(judge_server.calls[0].body)]
    assert labels == ["question", "passage_1", "passage_2", "answer"]


def test_a_class_without_structured_answers_is_asked_in_words_at_once():
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    model = FakeListChatModel(responses=['{"claims": [], "passages": [], "response": "evades"}'])
    settings = {"temperature": 0.0, "seed": 0, "max_tokens": 9}
    judge = LangChainJudge(model, "langchain:fake:one", settings, secrets=[])
    reply = asyncio.run(judge.ask(small_ask(1)))
    assert reply.parsed.response == "evades"
    assert judge.info.structure == "plain"
    assert judge.info.abilities["temperature"] is True


@pytest.mark.parametrize(
    ("said", "asked"),
    [("create() got an unexpected keyword argument 'seed'", 2), ("'NoneType'", 1)],
)
def test_only_an_argument_that_a_package_does_not_know_is_left_out(said, asked):
    """Any other such error may come after a reply, for which asking again would pay twice."""
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    calls = []

    class Particular(FakeListChatModel):
        seed: int | None = None

        def _call(self, *args, **options):
            calls.append(self.seed)
            if self.seed is not None:
                raise TypeError(said)
            return super()._call(*args, **options)

    model = Particular(responses=[YES])
    settings = {"temperature": 0.0, "seed": 0, "max_tokens": 9}
    judge = LangChainJudge(model, "langchain:fake:one", settings, secrets=[])
    reply = asyncio.run(judge.ask(label_ask(1)))
    assert calls == [0, None][:asked]
    assert reply.came is (asked == 2)
    assert reply.came or said in reply.problem


def test_the_server_of_the_environment_is_part_of_the_identity(judge_server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    judge = open_langchain(SPEC)
    ask_all(judge_server, small_ask(1), judge=judge)
    assert len(judge_server.calls) == 1
    assert judge.identity["base_url"] == judge_server.url.removeprefix("http://")


def test_the_identity_holds_what_a_reply_depends_on(judge_server):
    one = open_langchain(SPEC, base_url="http://user:pass@localhost:1/v1?key=x", max_tokens=9)
    assert one.identity == {
        "judge": "langchain",
        "provider": "openai",
        "model": "test-judge",
        "temperature": 0.0,
        "seed": 0,
        "max_tokens": 9,
        "base_url": "localhost:1/v1",
    }
    assert one.max_tokens == 9


@pytest.mark.parametrize("argument", [None, "", "openai", "openai:", ":model"])
def test_a_provider_and_a_model_are_needed(argument):
    with pytest.raises(InputError, match="langchain:PROVIDER:MODEL"):
        open_langchain(argument)


def test_a_base_url_that_is_no_address_is_refused():
    """The cache would take the replies of two such servers for those of one."""
    with pytest.raises(InputError, match="is not an address"):
        open_langchain(SPEC, base_url="localhost:8000")


def test_an_unknown_provider_is_named_with_those_there_are():
    with pytest.raises(InputError, match=r"Unsupported provider='opnai'\.\n*.*openai"):
        open_langchain("opnai:m")


def test_a_missing_package_is_named_with_its_command():
    pytest.importorskip("langchain")
    if any(name.startswith("langchain_fireworks") for name in sys.modules):
        pytest.skip("langchain-fireworks is installed")
    with pytest.raises(InputError, match="pip install langchain-fireworks"):
        open_langchain("fireworks:m")


def test_without_langchain_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(MissingExtraError, match=r"misslink\[langchain\]"):
        open_langchain("openai:m")


def test_a_missing_key_is_one_sentence():
    with pytest.raises(InputError, match="cannot be opened") as caught:
        open_langchain("openai:m")
    assert "\n" not in str(caught.value)


class Response:
    def __init__(self, code, **headers):
        self.status_code = code
        self.headers = headers


class OtherError(Exception):
    def __init__(self, code, **headers):
        super().__init__("trouble")
        self.response = Response(code, **headers)


def test_failures_of_any_providers_package_are_understood_by_their_status():
    found = classify_failure(OtherError(429, **{"retry-after-ms": "250"}), "slow", "it")
    assert (found.kind, found.after) == ("rate", 0.25)
    assert classify_failure(OtherError(429, **{"retry-after": "nan"}), "slow", "it").after is None
    assert classify_failure(OtherError(529), "overloaded", "it").kind == "server"
    assert "no credit" in str(classify_failure(OtherError(402), "pay", "it"))
    for text in (
        "Rate limit reached on requests per min. Visit https://platform.openai.com/account/billing",
        "You exceeded your current quota, please check your billing details.\nPlease retry in 34s.",
    ):
        assert classify_failure(OtherError(429), text, "it").kind == "rate"
    for text in (
        "code: insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
        "Your credit balance is too low to access the API.",
    ):
        assert "no credit" in str(classify_failure(OtherError(429), text, "it"))
    assert "key" in str(classify_failure(OtherError(401), "who", "it"))
    assert "model" in str(classify_failure(OtherError(404), "gone", "it"))
    assert classify_failure(OtherError(400), "a parameter", "it") is None
    assert classify_failure(TimeoutError(), "", "it").kind == "time"
    assert classify_failure(ValueError("7"), "7", "it") is None
    wrapped = RuntimeError("outer")
    wrapped.__cause__ = OtherError(503)
    assert http_status(wrapped) == 503


def test_a_bad_patch_of_a_server_costs_no_structure(judge_server):
    judge_server.script = after(1, status(503))

    async def act():
        judge = open_langchain(SPEC, base_url=judge_server.url)
        with pytest.raises(RetryableError):
            await judge.ask(small_ask(1))
        reply = await judge.ask(small_ask(1))
        await judge.close()
        return reply, judge.info.structure

    reply, structure = asyncio.run(act())
    assert reply.parsed is not None
    assert structure == "json_schema"
