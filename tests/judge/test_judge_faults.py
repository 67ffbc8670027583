"""A server that misbehaves in every way there is costs no verdict that could be had."""

import asyncio
from functools import cache

import pytest

from judge_faults import MIXED, Mixed, Reset
from judge_server import JudgeServer
from misslink.judge.config import JudgeConfig
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.judge.session import open_judge
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Trace

TIMEOUT_S = 1.0


def subject(n):
    """A case of one supported claim, one unsupported one, and every third time a refusal."""
    passages = (f"By day the sky over town {n} is blue. Clouds are white.", "Grass is green.")
    said = f"The sky over town {n} is blue. Grass is red." if n % 3 else "I do not know."
    case = Case(id=f"case-{n}", question=f"What colour is the sky over town {n}?")
    retrieved = tuple(
        Passage(id=f"p{rank}", text=text, rank=rank) for rank, text in enumerate(passages, 1)
    )
    return Subject(case, Trace(case_id=case.id, retrieved=retrieved, answer=said), 5)


def judged(server, *, retries, cases, concurrency=16):
    """All verdicts by case and metric, without what they cost, which a repair adds to."""
    metrics = [judged_metrics.get(name) for name in judged_metrics.names()]
    terms = JudgeConfig(base_url=server.url, timeout=TIMEOUT_S, retries=retries)

    async def put():
        judge = open_judge("openai:test-judge", cache=None, concurrency=concurrency, terms=terms)
        places = asyncio.Semaphore(concurrency)

        async def one(n):
            async with places:
                return await judge_case(subject(n), metrics, judge)

        try:
            return await asyncio.gather(*map(one, range(cases)))
        finally:
            await judge.close()

    return {
        (verdict.case_id, verdict.metric): verdict.model_dump(exclude={"usage"})
        for verdicts in asyncio.run(put())
        for verdict in verdicts
    }


@cache
def undisturbed(cases):
    with JudgeServer() as server:
        return judged(server, retries=5, cases=cases)


@pytest.mark.parametrize(
    ("seed", "cases", "kinds"),
    [(8, 40, 5), pytest.param(1, 200, len(MIXED) + 1, marks=pytest.mark.slow)],
)
def test_the_verdicts_are_those_of_a_server_that_behaves(judge_server, seed, cases, kinds):
    judge_server.script = faults = Mixed(seed, judge_server.wait_until_stopped)
    found = judged(judge_server, retries=5, cases=cases)
    expected = undisturbed(cases)
    assert found.keys() == expected.keys()
    assert len(faults.met) >= kinds  # in the long run every fault came
    lost = {key: found[key] for key in found if found[key] != expected[key]}
    assert len({case for case, _ in lost}) <= 0.02 * cases  # met broken JSON twice running
    for verdict in lost.values():
        assert verdict["status"] == "failed"
        assert "asked again" in verdict["reason"]


@pytest.mark.slow
def test_what_could_not_be_had_is_failed_with_a_reason_and_the_rest_is_the_same(judge_server):
    judge_server.script = Mixed(1, judge_server.wait_until_stopped)
    found = judged(judge_server, retries=0, cases=50)
    lost = [key for key, verdict in found.items() if verdict != undisturbed(50)[key]]
    assert 0.05 * len(found) < len(lost) < 0.4 * len(found)
    for key in lost:
        assert found[key]["status"] == "failed"
        assert found[key]["value"] is None
        assert "(tried once)" in found[key]["reason"]
    reasons = " ".join(found[key]["reason"] for key in lost)
    for told in ("429", "500: out of memory", f"within {TIMEOUT_S:g} s", "connection broke"):
        assert told in reasons


def test_a_fault_is_drawn_for_each_try_of_a_question_whatever_the_order():
    def met(order):
        faults = Mixed(3, lambda: None)
        answers = {}
        for n in order:
            messages = [{"role": "user", "content": f"question {n}"}] * 2
            try:
                answer = faults({"messages": messages})
            except Reset:
                answer = "reset"
            kind = answer[0] if isinstance(answer, tuple) else answer
            answers.setdefault(n, []).append(kind)
        return answers, faults.met

    order = [*range(300), *range(300)]
    assert met(order) == met(sorted(order, reverse=True))
    assert met(order)[1].total() == pytest.approx(600 * 0.28, rel=0.2)
