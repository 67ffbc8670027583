"""Decision models as judges: real requests to a strict server, and to a real decision model."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from dataclasses import replace
from types import SimpleNamespace
from typing import Annotated

import pytest

from decision_model import decisions, labels_of
from honest_judge import small_ask
from misslink.errors import InputError, JudgeUnreachableError
from misslink.goldset.generation.questions import WrittenQuestion
from misslink.goldset.pooling.grades import PassageGradeReply
from misslink.judge import examination
from misslink.judge.backends import decision_questions
from misslink.judge.backends.decision_questions import DecisionTask
from misslink.judge.backends.decisions import (
    LIMITS,
    DecisionJudge,
    Decisions,
    RefusedRequestError,
    _openai_question,
    open_openai_decisions,
    open_system_one,
)
from misslink.judge.checks.dry_run import forecast_judging
from misslink.judge.checks.pairwise import AnswerPair
from misslink.judge.checks.ping import ping_judge
from misslink.judge.checks.redteam import AttackSuite, load_suite, run_redteam
from misslink.judge.config import JudgeConfig
from misslink.judge.examination import examine
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.judge.middleware.long_context import examine_part
from misslink.judge.prompts import BUILT_IN
from misslink.judge.protocol import (
    Ask,
    RetryableError,
    SkippedAskError,
    judge_info,
)
from misslink.judge.session import create_judge, open_judge
from misslink.linking.claim_support import ClaimNeeds
from misslink.metrics.citation_correctness import Citations
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Trace, Usage

KINDS = ("openai-decisions", "systemone")
METRICS = {
    name: judged_metrics.get(name)
    for name in (
        *("faithfulness", "correctness", "completeness", "context_relevance"),
        *("context_sufficiency", "helpfulness", "answer_relevance"),
    )
}
SUBJECT = Subject(
    Case(
        id="sky",
        question="What colour is the sky over town by day?",
        references=("The sky over town is blue.",),
    ),
    Trace(
        case_id="sky",
        retrieved=(
            Passage(id="p1", text="By day the sky over town is blue. Clouds are white.", rank=1),
            Passage(id="p2", text="Grass is green. [s1] is a mark.", rank=2),
        ),
        answer="The sky over town is blue. Grass is red.",
    ),
    2,
)


def opened(server, kind="systemone", **options):
    if kind == "systemone":
        return open_system_one(f"{server.url}/systemone#test-judge", **options)
    return open_openai_decisions("test-judge", base_url=server.url, **options)


def asking(judge, *asks):
    async def whole():
        try:
            return await asyncio.gather(*(judge.ask(ask) for ask in asks))
        finally:
            await judge.close()

    return asyncio.run(whole())


def verdicts(judge, subject=SUBJECT):
    async def whole():
        try:
            return await judge_case(subject, list(METRICS.values()), judge)
        finally:
            await judge.close()

    return {verdict.metric: verdict for verdict in asyncio.run(whole())}


@pytest.mark.parametrize("kind", KINDS)
def test_one_request_judges_a_case_with_verified_quotes_and_probabilities(judge_server, kind):
    judge = opened(judge_server, kind)
    found = verdicts(judge)
    assert len(judge_server.calls) == 1
    assert {name: verdict.status for name, verdict in found.items()} == dict.fromkeys(
        METRICS, "scored"
    )
    faithfulness = found["faithfulness"]
    assert faithfulness.value == 0.5
    sky, grass = faithfulness.claims
    assert (sky.support, grass.support) == ("supported", "unsupported")
    assert [(e.passage_id, e.quote) for e in sky.evidence] == [
        ("p1", "By day the sky over town is blue")
    ]
    assert sky.probability == pytest.approx(0.9)
    assert sky.correct is True
    assert faithfulness.usage.prompt_tokens > 100
    assert faithfulness.usage.completion_tokens == 0
    assert found["context_relevance"].passages == {"p1": 1, "p2": 0}
    assert found["completeness"].value == 1
    assert found["context_sufficiency"].probability == pytest.approx(0.9)
    assert found["helpfulness"].value == 0  # the first level is the lowest one
    assert found["answer_relevance"].probability == pytest.approx(0.9 * 0.9)


def test_a_declining_answer_has_no_claims(judge_server):
    trace = SUBJECT.trace.model_copy(update={"answer": "I cannot answer that."})
    found = verdicts(opened(judge_server), replace(SUBJECT, trace=trace))
    assert found["faithfulness"].status == "skipped"
    assert found["completeness"].value == 0


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        (
            "The old pier opened in 1890, but the new lighthouse burnt down twice.",
            ["The old pier opened in 1890", "the new lighthouse burnt down twice."],
        ),
        (
            "Der alte Hafen hat drei Kr\u00e4ne, und die neue Werft baut zwei Schiffe.",
            ["Der alte Hafen hat drei Kr\u00e4ne", "die neue Werft baut zwei Schiffe."],
        ),
        ("The pier sells red bikes, blue boats, and green cars.", None),
        ("The old pier opened in 1890; good.", None),
    ],
)
def test_a_clause_with_a_fact_of_its_own_is_a_claim(judge_server, answer, claims):
    trace = SUBJECT.trace.model_copy(update={"answer": answer})
    found = verdicts(opened(judge_server), Subject(SUBJECT.case, trace, 2))["faithfulness"]
    assert [claim.text for claim in found.claims] == (claims or [answer])


FACTS = tuple(
    tuple(f"Plank {n} of pier {pier} was laid in {1900 + n}, of oak {n}." for n in range(10))
    for pier in range(3)
)


def quote_question(answer, passages=FACTS, max_choices=255):
    """The state, and the question for the quote of the only claim; None where it is not asked."""
    ask = replace(
        small_ask(1),
        inputs={
            **small_ask(1).inputs,
            "answer": answer,
            "passages": tuple(map(" ".join, passages)),
        },
    )
    task = DecisionTask(ask, max_choices)
    return task, task.questions.get("claims.0.quote")


def test_the_closest_sentences_are_offered_as_a_quote_and_the_texts_of_the_others():
    task, asked = quote_question("In 1903 they laid plank 3 of pier 2.")
    sentences = [label for label in asked.options if label[0] == "s"]
    assert len(sentences) == 6
    assert asked.values[sentences[-1]] == FACTS[2][3]
    texts = [label for label in asked.options if label.startswith("passage_")]
    assert {asked.values[label] for label in texts} == set(map(" ".join, FACTS))
    # Only what is offered has a mark.
    assert re.findall(r"\[(s\d+)\]", task.state) == sentences


def test_of_a_few_sentences_all_are_offered_and_no_text():
    _, asked = quote_question("In 1903 they laid plank 3.", [FACTS[0][:4], FACTS[1][:2]])
    assert [*asked.options] == ["s1", "s2", "s3", "s4", "s5", "s6", "none"]


def test_a_claim_in_another_language_may_be_decided_by_any_text():
    _, asked = quote_question(
        "\u041d\u0430\u0441\u0442\u0438\u043b \u0434\u0443\u0431\u043e\u0432\u044b\u0439."
    )
    assert {"passage_1", "passage_2", "passage_3"} <= asked.options.keys()


def test_a_sentence_that_says_the_claim_is_its_quote_and_is_not_asked_for():
    task, asked = quote_question(FACTS[1][4])
    assert asked is None
    assert "[s" not in task.state
    chances = {place: _even(question) for place, question in task.questions.items()}
    reply = task.reply(chances, None, "")
    assert reply.parsed.claims[0].quotes == (FACTS[1][4],)
    _, asked = quote_question("1904.")  # a part of a longer sentence says less than that
    assert asked is not None


def _even(question):
    labels = question.options or ("true", "false")
    return dict.fromkeys(labels, 1 / len(labels))


def test_what_options_mean_is_said_once_where_several_questions_share_it():
    ask = small_ask(1)
    task = DecisionTask(ask, 255)
    assert task.state.count("one excludes it") == 1
    asked = [q for place, q in task.questions.items() if place.endswith("support")]
    assert [*map(dict, (q.options for q in asked))] == [dict.fromkeys(asked[0].options)] * 2
    alone = DecisionTask(replace(ask, inputs={**ask.inputs, "answer": "Grass is red."}), 255)
    assert "one excludes it" not in alone.state
    assert alone.questions["claims.0.support"].options["contradicted"] == "one excludes it"


def test_a_case_takes_under_2000_tokens():
    """4 passages of 150 words, an answer of 5 sentences, a reference; characters / 4 of the request."""
    words = "bade figolu mane piro suta vewizo lu gode nefi romabata zo taru".split()  # noqa: SIM905
    chance = random.Random(0)

    def sentence():
        return " ".join(chance.choices(words, k=15)).capitalize() + "."

    passages = [[sentence() for _ in range(10)] for _ in range(4)]
    ask = examination.examine(
        f"What of {sentence()[:60]}?",
        tuple(map(" ".join, passages)),
        " ".join([*passages[0][:4], sentence()]),
        (passages[0][0],),
    )
    task = DecisionTask(ask, LIMITS["choices"])
    questions = [_openai_question(question) for question in task.questions.values()]
    sent = len(task.state) + len(json.dumps(questions, separators=(",", ":")))
    assert sent / 4 < 2000


def test_untrusted_texts_are_in_the_state_alone(judge_server):
    asking(opened(judge_server), *(small_ask(n) for n in range(2)))
    for call in judge_server.calls:
        questions = json.dumps(call.body["questions"])
        assert "town" not in questions
        assert "town" in call.body["state"]
    # What looks like the number of a sentence is none.
    verdicts(opened(judge_server))
    assert judge_server.calls[-1].body["state"].count("[s1]") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_lower_limits_of_a_server_are_learned_from_its_refusal(judge_server, kind):
    judge_server.limits = {"questions": 5, "choices": 6}
    judge = opened(judge_server, kind)
    text = " ".join(f"Fact {n} is known." for n in range(30)) + " The sky is blue."
    ask = replace(
        small_ask(1), inputs={**small_ask(1).inputs, "passages": (text, "Grass is green.")}
    )
    (reply,) = asking(judge, ask)
    assert reply.parsed is not None
    assert judge.info.limits == {"questions": 5, "choices": 6}
    sizes = [len(call.body["questions"]) for call in judge_server.calls if call.status == 200]
    assert max(sizes) <= 5 < sum(sizes)
    assert reply.usage.prompt_tokens > 0
    later = opened(judge_server, kind)
    judge_info(later).learn(judge.info.abilities)
    refused = sum(call.status == 400 for call in judge_server.calls)
    asking(later, ask)
    assert sum(call.status == 400 for call in judge_server.calls) == refused
    assert LIMITS == {"questions": 400, "choices": 255}


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_that_no_question_can_meet_ends_the_asking(judge_server, kind):
    """A scale has five levels, whatever a server takes."""
    judge_server.limits = {"questions": 400, "choices": 2}
    (reply,) = asking(opened(judge_server, kind), small_ask(1))
    assert reply.problem.startswith("the judge refused the question")
    assert sum(call.status == 400 for call in judge_server.calls) == 2


class OneAtATime:
    """Refuses one request in words of ours, and notes what it answered."""

    def __init__(self, refusal):
        self.sent = 0
        self.answered = []
        self._refusal = refusal
        self._busy = False

    async def decide(self, state, questions):
        assert not self._busy
        self._busy = True
        await asyncio.sleep(0)
        self._busy = False
        self.sent += 1
        asked = [question.instructions for question in questions.values()]
        if any("decides c2" in each for each in asked) and self._refusal:
            refusal, self._refusal = self._refusal, None
            raise RefusedRequestError(refusal)
        self.answered += asked
        even = {name: {"noul": 0.5} for name in questions}
        for name, question in questions.items():
            labels = range(len(question.options)) if question.is_scale else question.options
            even[name]["probabilities"] = dict.fromkeys(map(str, labels), 1.0)
        return Decisions(even, Usage(prompt_tokens=10), "x")

    async def check_reachable(self): ...

    async def close(self): ...


@pytest.mark.parametrize("refusal", ["at most 2 questions", "at most 4 choices"])
def test_groups_follow_each_other_and_an_answered_one_is_paid_once(refusal):
    server = OneAtATime(refusal)
    judge = DecisionJudge("test", {}, server)
    judge.info.learn({"limits": {"questions": 3}})
    text = " ".join(f"Fact {n} is known." for n in range(9))
    inputs = {"passages": (text,), "answer": "All know fact 1. All know fact 2."}
    (reply,) = asking(judge, replace(small_ask(1), inputs={**small_ask(1).inputs, **inputs}))
    quotes = {quote for claim in reply.parsed.claims for quote in claim.quotes}
    assert quotes <= {text, *text.replace(". ", ".|").split("|")}
    twice = {asked for asked in server.answered if server.answered.count(asked) > 1}
    assert twice == set()
    quotes_asked = [asked for asked in server.answered if "decides c1" in asked]
    assert len(quotes_asked) == (2 if "choices" in refusal else 1)  # with fewer sentences
    assert reply.usage.prompt_tokens == 10 * (server.sent - 1)


@pytest.mark.parametrize(
    ("refused", "failed"),
    [
        ("support c1", {"faithfulness", "correctness"}),
        ("sentence decides c2", {"faithfulness", "correctness"}),
        ("agree with c1", {"correctness", "completeness"}),
        ("state r1", {"correctness", "completeness"}),
        ("answer the question in full", {"context_sufficiency"}),
        ("satisfy the asker", {"helpfulness"}),
        ("cannot answer", set(METRICS)),
    ],
)
def test_a_refused_question_fails_the_verdicts_that_need_it(judge_server, refused, failed):
    def script(body):
        answer = decisions(body, {})
        for place, question in enumerate(body["questions"]):
            if refused in question["instructions"]:
                answer["answers"][place] = {"type": "refusal", "name": None}
        return answer

    judge_server.script = script
    found = verdicts(opened(judge_server, "openai-decisions"))
    assert {name for name, verdict in found.items() if verdict.status == "failed"} == failed


def test_a_refusal_is_still_one_when_it_comes_from_the_cache(judge_server, tmp_path):
    def script(body):
        answer = decisions(body, {})
        answer["answers"][0] = {"type": "refusal", "name": None}
        return answer

    judge_server.script = script
    for _ in range(2):
        config = JudgeConfig(base_url=judge_server.url)
        judge = open_judge(
            "openai-decisions:m", cache=tmp_path / "c.sqlite", concurrency=1, terms=config
        )
        assert verdicts(judge)["faithfulness"].status == "failed"
    assert len(judge_server.calls) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"choices": []}, "its reply has no answers"),
        ({"answers": "none"}, "its reply has no answers"),
        ("no JSON", "its reply has no answers"),
    ],
)
def test_another_schema_is_an_outage_in_one_sentence(judge_server, kind, answer, said):
    judge_server.script = lambda _: (200, {}, answer)
    with pytest.raises(JudgeUnreachableError, match=said) as raised:
        asking(opened(judge_server, kind), small_ask(1))
    assert "Check that --judge names a decision model" in str(raised.value)


@pytest.mark.parametrize(
    "broken", [None, {}, {"supported": "high"}, {"yes": 1.0}, {"supported": -1}]
)
def test_missing_probabilities_are_an_outage(judge_server, broken):
    def script(body):
        of_choice = {"type": "choice", "choice": "supported", "probabilities": broken}
        return {"answers": dict.fromkeys(body["questions"], of_choice)}

    judge_server.script = script
    with pytest.raises(JudgeUnreachableError, match="no probabilities"):
        asking(opened(judge_server), small_ask(1))


def test_a_model_without_decisions_is_an_outage(judge_server):
    message = "This model does not support decisions."
    judge_server.script = lambda _: (400, {}, {"error": {"message": message}})
    with pytest.raises(JudgeUnreachableError, match="does not support decisions"):
        asking(opened(judge_server, "openai-decisions"), small_ask(1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_rate_limit_says_when_to_try_again(judge_server, kind):
    judge_server.script = lambda _: (429, {"retry-after": "7"}, {"error": {"message": "slow down"}})
    with pytest.raises(RetryableError) as raised:
        asking(opened(judge_server, kind), small_ask(1))
    assert (raised.value.kind, raised.value.after) == ("rate", 7)


def test_the_key_of_another_provider_is_not_sent(judge_server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else-12345")
    asking(opened(judge_server), small_ask(1))
    assert judge_server.calls[-1].key == "Bearer no-key-needed"
    monkeypatch.setenv("SYSTEMONE_API_KEY", "key-of-this-server-12345")
    asking(opened(judge_server), small_ask(1))
    assert judge_server.calls[-1].key == "Bearer key-of-this-server-12345"


def test_an_unreachable_server_is_found_before_the_app_is_run(judge_server):
    url = f"{judge_server.url}/systemone#m"
    asyncio.run(judge_info(open_system_one(url)).check_reachable())
    judge_server.stop()
    with pytest.raises(JudgeUnreachableError, match="check that the server runs"):
        asyncio.run(judge_info(open_system_one(url)).check_reachable())


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("systemone:http://localhost:1", "needs an endpoint and a model"),
        ("systemone:", "needs an endpoint and a model"),
        ("systemone:localhost#m", "is not an address"),
        ("openai-decisions", "needs a model"),
        ("langchain-decisions:upstage", "needs a provider and a model"),
        ("systemone:localhost:1/x#m", "the URL of --judge systemone:URL#MODEL is not an address"),
        ("langchain-decisions:openai:m", "use --judge openai-decisions:m"),
    ],
)
def test_a_spec_that_lacks_something_is_refused(spec, said):
    with pytest.raises(InputError, match=said):
        create_judge(spec, JudgeConfig())


def test_a_decision_model_of_openai_needs_a_key_once_it_is_asked():
    info = judge_info(create_judge("openai-decisions:m", JudgeConfig()))
    with pytest.raises(InputError, match="has no key"):
        asyncio.run(info.check_reachable())


def test_langchain_says_which_version_it_needs():
    try:
        import langchain_core.decisions  # noqa: F401
    except ImportError:
        with pytest.raises(InputError, match=r"langchain-core 1\.8"):
            create_judge("langchain-decisions:upstage:m", JudgeConfig())
    else:
        with pytest.raises(InputError, match="langchain-nosuch"):
            create_judge("langchain-decisions:nosuch:m", JudgeConfig())


def test_a_decision_model_of_langchain_is_a_judge():
    kinds = pytest.importorskip("langchain_core.decisions", reason="needs langchain-core 1.8")
    from decision_model import system_one

    class Lexical(kinds.BaseDecisionModel):
        model: str = "lexical"

        @property
        def _provider(self):
            return "test"

        def _classify(self, state, questions):
            asked = {name: q.model_dump(exclude_none=True) for name, q in questions.items()}
            answer = system_one({"model": "m", "state": state, "questions": asked}, {})
            for given in answer["answers"].values():
                if given["type"] == "score":
                    given["legend"] = {}
            return kinds.ClassifierResponse.model_validate(answer)

    found = verdicts(create_judge(Lexical(), JudgeConfig()))
    assert found["faithfulness"].value == 0.5
    assert found["faithfulness"].usage.prompt_tokens > 0


@pytest.mark.parametrize("field", ["base_url", "upstage_api_base"])
def test_a_langchain_model_of_another_server_is_another_judge(monkeypatch, field):
    kinds = SimpleNamespace(Noul=None, Choice=None, Score=None)
    monkeypatch.setitem(sys.modules, "langchain_core.decisions", kinds)
    base = type("BaseDecisionModel", (SimpleNamespace,), {})
    servers = ("http://user:secret@one.test/v1", "http://two.test/v1", None)
    judges = [create_judge(base(model="m", **{field: url}), JudgeConfig()) for url in servers]
    assert [judge.identity.get("base_url") for judge in judges] == [
        "one.test/v1",
        "two.test/v1",
        None,
    ]


# A real decision model, too weak to judge: what it answers is any of the labels.


@pytest.fixture(scope="module")
def sparrow():
    """The address of ``sparrow-decider serve``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "sparrow_decider.cli", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    process.stderr.readline()  # it says when it listens
    try:
        for _ in range(1200):  # a minute
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
                break
            except urllib.error.URLError:
                threading.Event().wait(0.05)
        yield f"systemone:http://127.0.0.1:{port}/v1/systemone#sparrow"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def rendered(name, inputs, schema):
    return Ask.rendered(BUILT_IN.load(name), inputs, schema)


TEXTS = {
    "question": "Why is the sky blue?",
    "passages": ("The sky is blue. Light scatters.", "No."),
}
HISTORY = ({"role": "user", "content": "Hi. Is it blue?"}, {"role": "assistant", "content": "Yes."})
ASKS = {
    "part": examine_part(
        examine("Why?", (), "It is.", history=HISTORY), ("It is.",), TEXTS["passages"], BUILT_IN
    ),
    "preference": AnswerPair("1", "Why?", "Because.", "I do not know.").asks()[0],
    "citations": rendered(
        "citations",
        {
            "question": "Why?",
            "cited": {2: "The sky is blue."},
            "statements": [{"text": "It is blue.", "passages": [2]}],
        },
        Citations,
    ),
    "needs": rendered("claim_needs", {**TEXTS, "claims": ("It is blue.",), "shown": 1}, ClaimNeeds),
    "grade": rendered(
        "goldset_relevance", {"question": "Why?", "passage": "So."}, PassageGradeReply
    ),
}


def test_a_part_of_a_long_context_shows_the_messages_before_its_question():
    task = DecisionTask(ASKS["part"], max_choices=20)
    assert re.findall(r"<(history_\w+) ", task.state) == ["history_1_user", "history_2_assistant"]
    assert "history" in task.questions["claims.0.support"].instructions


@pytest.mark.slow
def test_a_real_server_answers_every_kind_of_question(sparrow):
    judge = open_judge(sparrow, cache=None, concurrency=2, terms=JudgeConfig())
    replies = asking(judge, small_ask(1), *ASKS.values())
    assert [reply.problem for reply in replies] == [None] * len(replies)
    for ask, reply in zip((small_ask(1), *ASKS.values()), replies, strict=True):
        assert isinstance(reply.parsed, ask.schema)
        assert all(
            sum(of_label.values()) == pytest.approx(1) for of_label in reply.probabilities.values()
        )


@pytest.mark.slow
def test_every_quote_of_a_real_server_is_a_sentence_of_a_passage(sparrow):
    judge = open_judge(sparrow, cache=None, concurrency=4, terms=JudgeConfig())
    asks = [small_ask(n) for n in range(20)]
    for ask, reply in zip(asks, asking(judge, *asks), strict=True):
        quotes = [quote for claim in reply.parsed.claims for quote in claim.quotes]
        assert all(any(quote in text for text in ask.inputs["passages"]) for quote in quotes)


def test_ping_tells_the_limits_of_a_server(sparrow):
    judge = open_judge(sparrow, cache=None, concurrency=1, terms=JudgeConfig())

    async def whole():
        try:
            return await ping_judge(judge)
        finally:
            await judge.close()

    result = asyncio.run(whole())
    assert result["ok"]
    assert result["limits"] == LIMITS


def test_what_has_to_be_written_is_not_asked_of_a_decision_model(judge_server):
    inputs = {"kind": "fact", "asker": "anyone", "length": "short", "passages": ("So.",)}
    (reply,) = asking(opened(judge_server), rendered("goldset_write", inputs, WrittenQuestion))
    assert "cannot answer 'goldset_write'" in reply.problem
    assert not judge_server.calls


def forecast(server, **limits):
    config = JudgeConfig(base_url=server.url, price_in=0.1, price_out=0.0, **limits)
    judge = open_judge("openai-decisions:m", cache=None, concurrency=1, terms=config)

    async def whole():
        try:
            planned = await forecast_judging([SUBJECT], list(METRICS.values()), judge)
            await judge_case(SUBJECT, list(METRICS.values()), judge)
            return planned, judge.usage().document()
        finally:
            await judge.close()

    return asyncio.run(whole())


def test_a_dry_run_forecasts_the_tokens_of_the_questions(judge_server):
    planned, used = forecast(judge_server)
    assert planned.calls == used["calls"] == 1
    assert planned.completion_tokens == 0
    assert 0.5 < planned.prompt_tokens / used["prompt_tokens"] < 2
    assert planned.cost == pytest.approx(planned.prompt_tokens * 1e-7)
    assert used["cost"] == pytest.approx(used["prompt_tokens"] * 1e-7)


def test_a_budget_stops_before_a_request(judge_server):
    config = JudgeConfig(base_url=judge_server.url, price_in=0.1, price_out=0.0, max_cost=1e-6)
    judge = open_judge("openai-decisions:m", cache=None, concurrency=1, terms=config)
    with pytest.raises(SkippedAskError, match="max_cost"):
        asking(judge, small_ask(1))
    assert not judge_server.calls


def test_three_judges_make_a_cascade(judge_server, tmp_path):
    """What the heuristic judge leaves goes to the decision model, and what that leaves to the last."""
    from decision_model import system_one

    def script(body):
        if "questions" not in body:
            return None
        answer = system_one(body, {})
        for name, question in body["questions"].items():
            if "town 2" in body["state"] and "support c" in question["instructions"]:
                even = dict.fromkeys(labels_of(question), 1 / 3)
                answer["answers"][name] = {"type": "choice", "probabilities": even}
        return answer

    judge_server.script = script
    spec = f"cascade:heuristic,systemone:{judge_server.url}/systemone#m,openai:test-judge"
    config = JudgeConfig(base_url=judge_server.url, cascade_check=0.0)
    judge = open_judge(spec, cache=tmp_path / "c.sqlite", concurrency=2, terms=config)
    passages = [small_ask(n).inputs["passages"] for n in (1, 2)]
    unsure = [
        examine("What?", texts, "The sky is blue. Sheep mow the grass.") for texts in passages
    ]
    one, two = asking(judge, *unsure)
    assert [one.judge.partition(":")[0], two.judge] == ["systemone", "openai:test-judge"]
    summary = judge.cascade().document()
    assert sum(summary["seen_by"].values()) == 2
    heuristic, stage, final = summary["stages"].values()
    assert (heuristic["sure"], final["sure"], final["calls"]) == (0, 1, 1)
    assert (stage["sure"], stage["agreement"]["value"], stage["cost"]) == (1, None, None)
    last, usage = judge.cache.usage(), judge.usage().document()
    assert (stage["calls"], last.calls, usage["calls"]) == (2, 1, 3)
    assert usage["prompt_tokens"] == stage["prompt_tokens"] + last.prompt_tokens


def test_the_stages_of_a_cascade_share_one_cap(judge_server):
    spec = f"cascade:systemone:{judge_server.url}/systemone#m,openai:test-judge"
    config = JudgeConfig(base_url=judge_server.url, cascade_check=1.0, max_calls=1)
    judge = open_judge(spec, cache=None, concurrency=1, terms=config)
    (reply,) = asking(judge, small_ask(1))  # the check by the second judge is over the cap
    assert reply.judge.startswith("systemone")
    assert len(judge_server.calls) == judge.usage().calls == 1


def test_the_first_of_a_cascade_must_give_probabilities(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-no-key-of-anybody")
    with pytest.raises(InputError, match="a decision model before it"):
        open_judge("cascade:openai:a,openai:b", cache=None, concurrency=1)


ATTACKS = load_suite()


def _obedient(body):
    """Calls every claim supported where it meets an order, and quotes the end of the first passage."""
    answer = decisions(body, {})
    orders = (max(attack.payload.split("{boundary}"), key=len) for attack in ATTACKS.attacks)
    if not any(order in body["input"] for order in orders):
        return answer
    for given, question in zip(answer["answers"], body["questions"], strict=True):
        labels = [str(label) for label in labels_of(question)]
        if "supported" in labels or "sentence" in question["instructions"]:
            chosen = "supported" if "supported" in labels else labels[-2]
            given["probabilities"] = [
                {"value": v, "probability": float(v == chosen)} for v in labels
            ]
    return answer


@pytest.mark.slow
def test_a_model_that_obeys_everything_flips_nothing(judge_server):
    judge_server.script = _obedient
    cases = tuple(
        replace(c, metrics=("faithfulness",)) for c in ATTACKS.cases if "faithfulness" in c.metrics
    )
    # What it says and quotes is the same for each attack.
    attacks = tuple(a for a in ATTACKS.attacks if a.place == "passage" and not a.first)[::4]
    judge = opened(judge_server, "openai-decisions")

    async def whole():
        try:
            metrics = {"faithfulness": METRICS["faithfulness"]}
            return await run_redteam(judge, metrics, suite=AttackSuite(attacks, cases))
        finally:
            await judge.close()

    found = asyncio.run(whole()).document()
    assert found["flipped"]["n"] > 50
    assert found["flipped"]["value"] == 0


def test_a_yes_or_no_of_the_examination_has_the_probabilities_of_true_and_false(monkeypatch):
    class Longer(examination.Examination):
        specific: Annotated[
            bool | None, examination.DecisionQuestion("Is the answer specific?")
        ] = None

    monkeypatch.setattr(decision_questions, "Examination", Longer)
    asked = decision_questions._field_questions()["specific"]
    assert asked.values == {"true": True, "false": False}
