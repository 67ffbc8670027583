"""How it is found out what a server takes."""

import asyncio
import json
from dataclasses import asdict

import pytest

from ask_server import in_turn, replies, with_judge
from honest_judge import small_ask
from judge_faults import after, no_schema, no_structure, status
from misslink.errors import JudgeUnreachableError
from misslink.judge.backends.langchain import open_langchain
from misslink.judge.backends.openai import open_openai, open_responses
from misslink.judge.backends.request_format import CapabilityProbe, RequestFormat
from misslink.judge.config import JudgeConfig
from misslink.judge.protocol import RetryableError
from misslink.judge.session import open_judge


def open_langchain_openai(model, **options):
    return open_langchain(f"openai:{model}", api_key="made-up", **options)


def wordings(settling, *complaints):
    """In what a question is put to a server that has these complaints, one after the other."""
    tried = [settling.request_format]
    for complaint in complaints:
        other = settling.refused(tried, complaint)
        if other is None:
            return tried, False
        tried.append(other)
    settling.accepted(tried[-1])
    return tried, True


BAREST = RequestFormat("plain", "max_tokens", *[False] * 4)


def test_the_third_wording_is_the_barest_and_the_last():
    tried, accepted = wordings(CapabilityProbe(RequestFormat()), *["Bad Request"] * 9)
    assert tried == [RequestFormat(), RequestFormat(structure="json_object"), BAREST]
    assert not accepted


def test_the_barest_keeps_the_limit_unless_it_is_complained_of():
    assert wordings(CapabilityProbe(RequestFormat()), "hm", "hm")[0][-1] == BAREST
    tried, _ = wordings(CapabilityProbe(RequestFormat()), "hm", "hm", "max_tokens?")
    assert tried[-1] == RequestFormat("plain", None, *[False] * 4)


def test_after_three_refusals_the_next_question_begins_again():
    settling = CapabilityProbe(RequestFormat())
    assert wordings(settling, *["Bad Request"] * 9) == wordings(settling, *["Bad Request"] * 9)


def test_a_question_refused_in_every_wording_teaches_nothing():
    settling = CapabilityProbe(RequestFormat())
    wordings(settling, *["Bad Request"] * 9)
    assert not settling.settled
    assert wordings(settling) == ([RequestFormat()], True)


def test_a_settled_server_may_refuse_one_question_a_parameter():
    settling = CapabilityProbe(RequestFormat())
    wordings(settling)
    complaint = "maximum context length is 4096, you asked for 4096 in the completion"
    assert wordings(settling, complaint) == ([RequestFormat(), RequestFormat(limit=None)], True)
    assert settling.request_format == RequestFormat()  # the next one is put with its limit again
    assert wordings(settling, "Bad Request") == ([RequestFormat()], False)


def test_what_another_question_found_out_is_taken_over():
    settling = CapabilityProbe(RequestFormat())
    early = [settling.request_format]
    wordings(settling, "Bad Request")
    assert settling.refused(early, "Bad Request") == RequestFormat(structure="json_object")


def test_what_is_known_is_learnt_again():
    settling = CapabilityProbe(RequestFormat())
    wordings(settling, "logprobs", "Bad Request", "Bad Request")
    known = settling.abilities()
    other = CapabilityProbe(RequestFormat())
    assert other.abilities() == {}
    other.learn(known)
    assert (other.request_format, other.settled, other.abilities()) == (
        settling.request_format,
        True,
        known,
    )


@pytest.mark.parametrize(
    "change",
    [{"structure": "xml"}, {"structure": []}, {"limit": "max"}, {"seed": 1}, {"store": None}],
)
def test_what_is_no_dialect_is_not_learnt(change):
    settling = CapabilityProbe(RequestFormat())
    settling.learn({**asdict(BAREST), **change})
    assert (settling.request_format, settling.settled) == (RequestFormat(), False)


@pytest.mark.parametrize("left_out", sorted(asdict(BAREST)))
def test_a_dialect_of_an_older_shape_is_not_learnt(left_out):
    """Without its limit, say, requests would go out without one."""
    settling = CapabilityProbe(RequestFormat())
    settling.learn({name: value for name, value in asdict(BAREST).items() if name != left_out})
    assert (settling.request_format, settling.settled) == (RequestFormat(), False)


PLAIN = RequestFormat(structure="plain")


def test_a_server_that_fails_on_the_same_question_again_is_asked_without_a_structure_once():
    settling = CapabilityProbe(RequestFormat())
    assert settling.broken("a", [RequestFormat()]) is None
    assert settling.broken("b", [RequestFormat()]) is None
    assert settling.broken("a", [RequestFormat()]) == PLAIN
    assert settling.broken("a", [RequestFormat(), PLAIN]) is None
    assert settling.broken("a", [RequestFormat()]) is None  # it is down, and no longer suspected


def test_what_a_failing_server_took_is_for_this_run_only():
    settling = CapabilityProbe(RequestFormat())
    settling.broken("a", [RequestFormat()])
    settling.accepted(settling.broken("a", [RequestFormat()]))
    assert (settling.request_format, settling.settled) == (PLAIN, True)
    assert settling.abilities() == {**asdict(RequestFormat()), "gives_logprobs": None}
    assert settling.takes("json_schema") is False


def test_a_server_that_was_only_down_is_asked_as_before():
    settling = CapabilityProbe(RequestFormat())
    settling.broken("a", [RequestFormat()])
    settling.broken("a", [RequestFormat()])
    assert wordings(settling) == ([RequestFormat()], True)
    assert settling.abilities() == {**asdict(RequestFormat()), "gives_logprobs": None}


def test_what_an_earlier_run_found_out_is_doubted_where_the_server_fails_now():
    settling = CapabilityProbe(RequestFormat())
    settling.learn(asdict(RequestFormat()))
    settling.broken("a", [RequestFormat()])
    settling.accepted(settling.broken("a", [RequestFormat()]))
    assert settling.request_format == PLAIN


def test_a_server_that_was_heard_is_not_suspected():
    settling = CapabilityProbe(RequestFormat())
    wordings(settling)
    assert [settling.broken("a", [RequestFormat()]) for _ in range(3)] == [None] * 3


def test_each_complaint_that_names_something_costs_that_alone():
    tried, accepted = wordings(
        CapabilityProbe(RequestFormat()),
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "'temperature' does not support 0.0 with this model.",
        "logprobs",
        "seed",
    )
    assert accepted
    assert tried[-1] == RequestFormat(
        limit="max_completion_tokens", temperature=False, logprobs=False, seed=False
    )


def test_the_schema_is_given_up_last():
    both = "response_format cannot be combined with logprobs"
    tried, _ = wordings(CapabilityProbe(RequestFormat()), both, both)
    assert tried[1:] == [
        RequestFormat(logprobs=False),
        RequestFormat("json_object", logprobs=False),
    ]


def test_what_is_sent_is_taken_and_what_was_given_up_is_not():
    settling = CapabilityProbe(RequestFormat())
    assert settling.takes("seed") is None
    wordings(settling, "logprobs", "Bad Request")
    names = ("seed", "logprobs", "json_schema", "json_object")
    assert [settling.takes(name) for name in names] == [True, False, False, True]


def test_what_was_never_offered_is_not_taken():
    settling = CapabilityProbe(RequestFormat(seed=False))
    wordings(settling)
    assert (settling.takes("seed"), settling.takes("logprobs")) == (False, True)


@pytest.mark.parametrize(("known", "believed"), [(True, True), (False, False), (1, None)])
def test_whether_a_server_gives_probabilities_is_learned(known, believed):
    settling = CapabilityProbe(RequestFormat())
    settling.learn({"gives_logprobs": known})
    assert settling.gives_logprobs is believed


@pytest.fixture(params=[open_openai, open_responses], ids=["chat", "responses"])
def opening(request):
    """How the judge is opened: both interfaces behave the same."""
    return request.param


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
    assert judge_server.calls[-1].body["response_format"]["type"] == "json_schema"
    assert {"seed", "logprobs"} <= set(judge_server.calls[-1].body)


def test_a_verdict_carries_the_probability_of_its_labels(judge_server, opening):
    judge_server.logprobs = True
    judge, (reply,) = in_turn(judge_server, 1, opening)
    assert reply.chance("claims.0.support", "supported") == pytest.approx(0.8)
    assert reply.chance("claims.1.support", "supported") == pytest.approx(0.1)
    assert reply.chance("passages.0.relevant", "true") == pytest.approx(0.8)
    assert all(sum(of.values()) == pytest.approx(1) for of in reply.probabilities.values())
    assert judge.info.abilities["gives_logprobs"] is True


def test_a_server_that_takes_logprobs_and_gives_none_is_known_for_it(judge_server, opening):
    judge, (reply,) = in_turn(judge_server, 1, opening)
    assert reply.probabilities == {}
    assert (judge.info.abilities["gives_logprobs"], judge.info.abilities["logprobs"]) == (
        False,
        True,
    )


def test_a_server_that_refuses_logprobs_is_not_asked_for_them_again(judge_server, opening):
    def refuses(body):
        return status(400, "logprobs is not supported")(body) if "logprobs" in body else None

    judge_server.script = refuses
    _, found = in_turn(judge_server, 3, opening)
    assert all(reply.parsed for reply in found)
    assert [call.status for call in judge_server.calls] == [400, 200, 200, 200]


def test_at_most_three_calls_are_refused_until_a_server_that_takes_nothing_is_met(
    judge_server, opening
):
    def bare_only(body):
        return (
            status(400, "Bad Request")(body)
            if set(body) - {"model", "messages", "max_tokens"}
            else None
        )

    judge_server.script = bare_only
    found = replies(judge_server, 6, opening)
    assert all(reply.parsed for reply in found)
    assert [call.status for call in judge_server.calls].count(400) == 2
    assert len(judge_server.calls) == 8


@pytest.mark.parametrize(
    "content",
    [
        "The sky is blue.",
        '{"verdict": "yes"}',
        'Here it is: {"verdict": "yes"}',
        '{"claims": ["The sky is blue."], "passages": [], "response": "answers"}',
    ],
)
def test_a_server_that_ignores_the_format_is_told_the_schema_from_then_on(
    judge_server, opening, content
):
    judge_server.script = lambda body: content if "response_format" in body else None
    judge, found = in_turn(judge_server, 3, opening)
    assert [reply.parsed is None for reply in found] == [True, False, False]
    assert judge.info.structure == "plain"
    assert judge.info.abilities["structure"] == "json_schema"  # an inference, so for this run only
    sent = judge_server.calls[1].body
    assert "JSON object of this schema" in (sent.get("messages") or sent["input"])[0]["content"]


@pytest.mark.parametrize(
    "content",
    [
        '{"claims": [], "passages": [], "response": "mumbles"}',
        '{"claims": [], "passages": [], "resp',
        "I'm sorry, but I can't help with that.",
    ],
)
def test_a_first_reply_that_does_not_fit_changes_no_wording(judge_server, opening, content):
    judge_server.script = after(1, lambda _: content)
    judge, found = in_turn(judge_server, 2, opening)
    assert [reply.parsed is None for reply in found] == [True, False]
    assert judge.info.structure == "json_schema"
    assert len(judge_server.calls) == 2


def test_what_a_server_seems_to_ignore_is_asked_for_by_the_next_run_again(judge_server, opening):
    judge_server.script = after(1, lambda _: "The sky is blue.")
    first, _ = in_turn(judge_server, 2, opening)
    assert (first.info.structure, first.info.abilities["structure"]) == ("plain", "json_schema")

    async def second(judge):
        judge.learn(first.info.abilities)
        await judge.ask(small_ask(3))
        return judge.info.structure

    assert with_judge(judge_server, second, opening) == "json_schema"


def fails_at_structure(body):
    return status(500, "grammar crashed")(body) if "response_format" in body else None


def test_a_server_that_fails_at_the_answer_format_is_asked_without(judge_server, opening):
    judge_server.script = fails_at_structure

    async def use(judge):
        with pytest.raises(RetryableError):
            await judge.ask(small_ask(0))
        found = [await judge.ask(small_ask(n)) for n in range(3)]
        return found, judge

    found, judge = with_judge(judge_server, use, opening)
    assert all(reply.parsed for reply in found)
    assert [call.status for call in judge_server.calls] == [500, 500, 200, 200, 200]
    assert (judge.info.structure, judge.info.abilities["structure"]) == ("plain", "json_schema")


def test_a_throttled_run_gets_on_with_a_server_that_fails_at_the_answer_format(judge_server):
    judge_server.script = fails_at_structure

    async def use():
        terms = JudgeConfig(base_url=judge_server.url)
        judge = open_judge("openai:test-judge", cache=None, concurrency=4, terms=terms)
        try:
            return await asyncio.gather(*(judge.ask(small_ask(n)) for n in range(4)))
        finally:
            await judge.close()

    assert all(reply.parsed for reply in asyncio.run(use()))
    assert [call.status for call in judge_server.calls].count(200) == 4


@pytest.mark.parametrize("code", [500, 502, 503])
def test_a_server_that_is_down_is_not_taken_to_fail_at_the_answer_format(
    judge_server, opening, code
):
    judge_server.script = after(5, status(code, "down"))

    async def use(judge):
        for _ in range(4):
            with pytest.raises(RetryableError):
                await judge.ask(small_ask(0))
        await judge.ask(small_ask(0))
        return judge.info.structure

    assert with_judge(judge_server, use, opening) == "json_schema"
    formats = ["response_format" in c.body or "text" in c.body for c in judge_server.calls]
    assert formats == [True, True, False, True, True, True]


def test_a_server_that_asks_to_wait_is_not_suspected(judge_server, opening):
    judge_server.script = after(2, status(503, "loading", retry_after="1"))

    async def use(judge):
        for _ in range(2):
            with pytest.raises(RetryableError):
                await judge.ask(small_ask(0))

    with_judge(judge_server, use, opening)
    assert len(judge_server.calls) == 2


def test_a_server_that_complains_of_four_things_in_turn_is_met_in_one_question(judge_server):
    def particular(body):
        for name in ("seed", "logprobs", "max_tokens", "response_format"):
            if name in body:
                return status(400, f"{name} is not supported")(body)
        return None

    judge_server.script = particular
    assert all(reply.parsed for reply in replies(judge_server, 2))
    # Of the structure the schema first, then JSON mode.
    assert [call.status for call in judge_server.calls] == [400] * 5 + [200] * 2


@pytest.mark.parametrize("opened", [open_openai, open_responses, open_langchain_openai])
def test_a_403_for_a_parameter_costs_the_parameter_and_not_the_run(judge_server, opened):
    said = "You are not allowed to request logprobs from this model"
    judge_server.script = lambda body: (
        status(403, said)(body) if {"logprobs", "include"} & set(body) else None
    )
    assert all(reply.parsed for reply in replies(judge_server, 2, opened))
    assert [call.status for call in judge_server.calls] == [403, 200, 200]


def test_a_403_for_anything_else_ends_the_run(judge_server):
    judge_server.script = status(403, "Your project has no access to this model's region")
    with pytest.raises(JudgeUnreachableError, match="OPENAI_API_KEY"):
        replies(judge_server, 1)


@pytest.mark.parametrize("opened", [open_openai, open_langchain_openai])
def test_the_place_in_a_validation_error_names_the_parameter(judge_server, opened):
    def mistral(body):
        for name in ("seed", "logprobs"):
            if name in body:
                said = {"loc": ["body", name], "msg": "Extra inputs are not permitted"}
                said |= {"type": "extra_forbidden", "input": f"{body['messages']} response_format"}
                return 422, {}, {"object": "error", "message": {"detail": [said]}}
        return None

    judge_server.script = mistral
    assert all(reply.parsed for reply in replies(judge_server, 2, opened))
    assert [call.status for call in judge_server.calls] == [422, 422, 200, 200]
    assert judge_server.calls[-1].body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("content", ['{"claims": [{"claim": "The sky', "", "{}"])
def test_a_broken_reply_after_a_good_one_changes_no_wording(judge_server, content):
    judge_server.script = after(1, lambda _: None, lambda _: content)
    judge, found = in_turn(judge_server, 2)
    assert [reply.parsed is None for reply in found] == [False, True]
    assert judge.info.structure == "json_schema"


def test_what_was_found_out_is_learnt_by_the_next_judge(judge_server, opening):
    judge_server.script = no_schema
    judge_server.offer = {
        "max_model_len": 8192,
        "pricing": {"prompt": "0.00000015", "completion": "0.0000006"},
    }

    async def first(judge):
        await judge.check_reachable()
        await judge.ask(small_ask(1))
        return judge.info.abilities

    known = with_judge(judge_server, first, opening)
    assert json.loads(json.dumps(known)) == known
    assert (known["structure"], known["context_length"]) == ("json_object", 8192)
    assert known["price"] == {"prompt": 0.15, "completion": 0.6}

    async def second(judge):
        judge.learn(known)
        found = await asyncio.gather(*(judge.ask(small_ask(n)) for n in range(3)))
        return found, judge.info.abilities

    calls = len(judge_server.calls)
    found, again = with_judge(judge_server, second, opening)
    assert all(reply.parsed for reply in found)
    assert again == known
    assert len(judge_server.calls) == calls + 3  # nothing is found out twice


def test_what_was_learnt_and_is_no_longer_true_is_found_out_anew(judge_server):
    judge_server.script = no_structure
    known = asdict(RequestFormat())

    async def use(judge):
        judge.learn(known)
        return [await judge.ask(small_ask(n)) for n in range(2)], judge.info.structure

    found, structure = with_judge(judge_server, use)
    assert all(reply.parsed for reply in found)
    assert structure == "plain"


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"structure": "xml"},
        {"structure": ["plain"], "limit": {}},
        {"structure": "plain", "seed": "yes"},
        {"price": [0.1, 0.2], "context_length": "8k"},
        {"price": {"prompt": 10**400, "completion": True}},
    ],
)
def test_abilities_that_are_none_are_not_believed(known):
    judge = open_openai("m", base_url="http://localhost:1/v1")
    judge.learn(known)
    assert (judge.price, judge.context_length, judge.info.abilities) == (None, None, {})


def test_a_server_without_a_list_of_models_is_normal(judge_server, opening):
    judge_server.models = ()
    assert with_judge(judge_server, lambda judge: judge.check_reachable(), opening) is None
    url = f"{judge_server.url}/elsewhere"
    assert (
        with_judge(judge_server, lambda judge: judge.check_reachable(), opening, base_url=url)
        is None
    )
