"""What a dry run says is what the run then uses."""

import asyncio
import json
import random
from dataclasses import replace

import pytest

from honest_judge import honest
from judge_server import completion
from misslink.judge.checks.dry_run import forecast_judging
from misslink.judge.config import JudgeConfig
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.judge.protocol import Ask, schema_json
from misslink.judge.session import open_judge
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Trace

WORDS = (
    "water stone river market window copper bridge letter summer engine garden silver"
    " doctor planet forest mirror record ladder signal valley"
)


def sentence(chance, length=14):
    return " ".join(chance.choices(WORDS.split(), k=length)).capitalize() + "."


def subjects(count, *, seed=1, references=True, passages=4, sentences=10):
    """Cases of the size that the issue calls the default: 4 passages of 150 words."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        texts = [
            " ".join(sentence(chance) for _ in range(chance.randint(sentences - 3, sentences + 3)))
            for _ in range(passages)
        ]
        stated = texts[0].split(". ")[: chance.randint(2, 4)]
        answer = ". ".join([*stated, sentence(chance)])
        case = Case(
            id=f"case-{number}",
            question=f"What of {sentence(chance, 8)}",
            references=(f"{stated[0]}.",) if references else (),
        )
        retrieved = [
            {"id": f"p{number}-{place}", "text": text, "rank": place}
            for place, text in enumerate(texts, 1)
        ]
        trace = Trace(case_id=case.id, retrieved=retrieved, answer=answer)
        made.append(Subject(case, trace, 5))
    return made


@pytest.fixture
def metrics():
    names = ("answer_relevance", "context_relevance", "correctness", "faithfulness")
    return [judged_metrics.get(name) for name in names]


@pytest.fixture
def opened(judge_server, tmp_path, monkeypatch):
    """Open the judge of the test server, with its cache, on the terms given."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def open_it(**terms):
        terms = JudgeConfig(base_url=judge_server.url, price_in=1.0, price_out=4.0, **terms)
        cache = tmp_path / "cache.sqlite"
        return open_judge("openai:test-judge", cache=cache, concurrency=8, terms=terms)

    return open_it


def billing_the_schema(factor=1.0):
    """A server that counts the answer schema as part of the prompt, and tokens of another size."""

    def script(body):
        content = json.dumps(honest(body), separators=(",", ":"))
        answer = completion(body, content)
        schema = json.dumps(body["response_format"]["json_schema"]["schema"], separators=(",", ":"))
        characters = sum(len(m["content"]) for m in body["messages"]) + len(schema)
        answer["usage"]["prompt_tokens"] = round(factor * characters / 4)
        answer["usage"]["completion_tokens"] = round(factor * len(content) / 4)
        return 200, {}, answer

    return script


async def judged(cases, metrics, judge):
    """Judge, and return what was used."""
    repeats = judge.terms.repeats
    before = judge.usage().document()
    await asyncio.gather(*(judge_case(case, metrics, judge, repeats=repeats) for case in cases))
    after = judge.usage().document()
    return {name: after[name] - (before[name] or 0) for name in before if after[name] is not None}


async def foreseen_and_used(cases, metrics, judge):
    foreseen = await forecast_judging(iter(cases), metrics, judge)
    return foreseen, await judged(cases, metrics, judge)


def within(share, foreseen, used):
    for name in ("prompt_tokens", "completion_tokens", "cost"):
        assert getattr(foreseen, name) == pytest.approx(used[name], rel=share), name


def run(line, judge):
    async def whole():
        try:
            return await line(judge)
        finally:
            await judge.close()

    return asyncio.run(whole())


@pytest.mark.slow
@pytest.mark.parametrize(("bills_schema", "references"), [(True, True), (False, False)])
def test_a_fresh_cache_foresees_a_run_within_a_tenth(
    opened, judge_server, metrics, bills_schema, references
):
    judge_server.script = billing_the_schema() if bills_schema else None
    cases = subjects(25, references=references)
    foreseen, used = run(lambda judge: foreseen_and_used(cases, metrics, judge), opened())
    assert foreseen.calls == used["calls"] == 25
    assert foreseen.from_cache == 0
    within(0.10, foreseen, used)
    assert "half of the answer schema, which" in foreseen.basis


@pytest.mark.parametrize("bills_schema", [True, False])
def test_of_short_questions_it_is_said_how_far_off_the_schema_may_put_the_tokens(
    opened, judge_server, metrics, bills_schema
):
    """With s the schema's length against the messages', s / (2 + s), whoever bills what."""
    judge_server.script = billing_the_schema() if bills_schema else None
    case = Case(id="1", question="When?")
    shown = (Passage(id="p", text="The ferry leaves at seven.", rank=1),)
    short = Subject(case, Trace(case_id="1", retrieved=shown, answer="The ferry leaves at 7."), 1)
    foreseen, used = run(lambda judge: foreseen_and_used([short], metrics, judge), opened())
    ask = short.examination
    schema = len(schema_json(ask.schema)) / sum(len(m["content"]) for m in ask.messages)
    off = schema / (2 + schema)
    assert off > 0.10
    assert f"some do not: up to {off:.0%} more or less;" in foreseen.basis
    error = foreseen.prompt_tokens / used["prompt_tokens"] - 1
    assert abs(error) == pytest.approx(off, abs=0.01)


def test_forecasting_asks_nothing(opened, judge_server, metrics):
    run(lambda judge: forecast_judging(subjects(3), metrics, judge), opened())
    assert judge_server.calls == []


@pytest.mark.slow
@pytest.mark.parametrize("bills_schema", [True, False])
def test_earlier_replies_teach_how_the_server_counts(opened, judge_server, metrics, bills_schema):
    """Short prompts, of which the schema is a large part, and tokens half as long as thought."""

    def both(judge):
        async def line(judge):
            await judged(subjects(20, seed=7, passages=2, sentences=5), metrics, judge)
            cases = subjects(20, seed=8, passages=4, sentences=9)
            return await foreseen_and_used(cases, metrics, judge)

        return line(judge)

    judge_server.script = billing_the_schema(2.0) if bills_schema else None
    foreseen, used = run(both, opened())
    assert used["calls"] == foreseen.calls == 20
    within(0.04, foreseen, used)
    assert "20 earlier replies" in foreseen.basis


def test_what_the_cache_holds_is_not_counted_again(opened, metrics):
    cases = subjects(12)

    async def line(judge):
        await judged(cases[:5], metrics, judge)
        return await foreseen_and_used(cases, metrics, judge)

    foreseen, used = run(line, opened())
    assert (foreseen.calls, foreseen.from_cache) == (7, 5) == (used["calls"], used["from_cache"])
    within(0.05, foreseen, used)

    async def again(judge):
        return await forecast_judging(cases, metrics, judge)

    nothing = run(again, opened())
    assert (nothing.calls, nothing.from_cache) == (0, 12)
    assert (nothing.prompt_tokens, nothing.completion_tokens, nothing.cost) == (0, 0, 0.0)
    assert nothing.basis == "there is nothing to ask"


def test_every_sample_of_a_question_counts(opened, metrics):
    cases = subjects(4)

    async def line(judge):
        return await foreseen_and_used(cases, metrics, judge)

    foreseen, used = run(line, opened(repeats=3))
    assert foreseen.calls == used["calls"] == 12
    within(0.10, foreseen, used)


def test_the_same_question_of_two_cases_is_asked_once(opened, metrics):
    first = subjects(1)[0]
    twin = replace(first, case=first.case.model_copy(update={"id": "twin"}))

    async def line(judge):
        return await foreseen_and_used([first, twin], metrics, judge)

    foreseen, used = run(line, opened())
    assert (foreseen.calls, foreseen.from_cache) == (1, 1)
    assert (used["calls"], used["from_cache"]) == (1, 1)


def test_cases_without_an_answer_cost_nothing(opened, metrics):
    silent = Subject(Case(id="a", question="Why?"), Trace(case_id="a", answer=None), 5)
    foreseen = run(lambda judge: forecast_judging([silent], metrics, judge), opened())
    assert (foreseen.calls, foreseen.prompt_tokens) == (0, 0)


@pytest.mark.slow
def test_many_questions_are_simulated_on_a_sample(opened, metrics, monkeypatch):
    """The sample's mean stands for the rest: cases beyond it differ little."""
    simulated = []
    from misslink.judge.checks import dry_run as module

    real = module.simulate_reply

    async def counted(inputs):
        simulated.append(inputs["question"])
        return await real(inputs)

    monkeypatch.setattr(module, "simulate_reply", counted)
    cases = subjects(180, passages=1, sentences=5)
    foreseen = run(lambda judge: forecast_judging(cases, metrics, judge), opened())
    assert foreseen.calls == 180
    assert len(simulated) == 100
    assert len(set(simulated) - {case.case.question for case in cases[:100]}) > 20  # from all over
    some = run(lambda judge: forecast_judging(cases[:100], metrics, judge), opened())
    assert foreseen.completion_tokens == pytest.approx(1.8 * some.completion_tokens, rel=0.05)


def test_a_question_the_heuristic_judge_cannot_answer_is_foreseen_by_its_texts(opened, metrics):
    class Odd:
        """A metric with a question of its own about the same answer."""

        name = "odd"
        level = 2

        def ask(self, subject):
            known = subject.examination
            inputs = {"answer": subject.answer, "statements": ()}
            messages = (*known.messages, {"role": "user", "content": "odd"})
            return Ask("odd", inputs, messages, type("Odd", (known.schema,), {}), known.prompt)

    cases = subjects(5)
    alone = run(lambda judge: forecast_judging(cases, metrics, judge), opened())
    both = run(lambda judge: forecast_judging(cases, [*metrics, Odd()], judge), opened())
    assert both.calls == 10
    assert alone.completion_tokens < both.completion_tokens < 4 * alone.completion_tokens


def test_a_wrapper_says_what_it_would_ask(opened, metrics):
    """A cascade asks its dear judge a part of the questions only."""

    class Halving:
        def __init__(self, judge):
            self.judge, self.name, self.identity = judge, judge.name, judge.identity

        async def planned_asks(self, ask):
            return (ask,) if int(ask.key[0], 16) < 8 else ()

        async def close(self):
            await self.judge.close()

    cases = subjects(16)
    keys = [case.examination.key for case in cases]
    expected = sum(int(key[0], 16) < 8 for key in keys)

    async def line(judge):
        judge.judge = Halving(judge.judge)
        return await forecast_judging(cases, metrics, judge)

    assert 0 < expected < 16
    assert run(line, opened()).calls == expected


def test_a_heuristic_judge_bills_nothing(tmp_path, metrics):
    judge = open_judge("heuristic", cache=tmp_path / "cache", concurrency=2)
    foreseen = run(lambda judge: forecast_judging(subjects(3), metrics, judge), judge)
    assert foreseen.calls == 3
    assert (foreseen.prompt_tokens, foreseen.completion_tokens, foreseen.cost) == (0, 0, None)
    assert "costs nothing" in foreseen.basis


def test_without_a_judge_nothing_is_foreseen(metrics):
    foreseen = asyncio.run(forecast_judging(subjects(2), metrics, None))
    assert (foreseen.calls, foreseen.cost, foreseen.basis) == (0, None, "no judge is used")
