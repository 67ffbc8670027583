"""Caps, prices, the deadline, two runs beside each other, and judges without batches."""

from __future__ import annotations

import asyncio

import pytest

from honest_judge import small_ask
from in_batches import ENGINE, ask_all, came, opened
from judge_faults import error
from misslink.engines.batch import BatchEngine
from misslink.errors import InputError
from misslink.judge.batch.scheduler import BatchTiming
from misslink.judge.config import JudgeConfig
from misslink.judge.judge_case import SkippedReply, ask_safely
from misslink.judge.session import open_judge


def test_the_deadline_ends_the_waiting_and_not_the_batch(server, tmp_path):
    ask_all(server, tmp_path, 1)  # live; so all others wait for the batch, on any machine
    server.meddle = lambda method, path: (
        (200, {}, {**server.batches["batch_0"], "status": "in_progress"})
        if method == "GET" and "batch_0" in path
        else None
    )
    replies, spent = ask_all(server, tmp_path, 4, deadline=0.5)
    assert sum(isinstance(reply, SkippedReply) for reply in replies) == 3
    assert spent["not_asked"] == 3
    assert "--deadline 0.5" in next(r.problem for r in replies if isinstance(r, SkippedReply))
    server.meddle = None
    replies, spent = ask_all(server, tmp_path, 4)
    assert came(replies) == [True] * 4
    assert len(server.batches) == 1


def test_no_more_questions_are_submitted_than_calls_are_allowed(server, tmp_path):
    replies, spent = ask_all(server, tmp_path, 12, max_calls=5)
    assert sum(map(sum, [came(replies)])) == 5
    assert [len(batch) for batch in server.questions] == [4]
    assert spent["not_asked"] == 7
    replies, _ = ask_all(server, tmp_path, 12, max_calls=7)
    assert came(replies) == [True] * 12


def test_a_cost_is_never_exceeded_not_even_at_worst(server, tmp_path):
    prices = {"price_in": 1.0, "price_out": 4.0, "max_tokens": 300}
    _, needed = ask_all(server, tmp_path / "free", 12, **prices)
    cap = needed["cost"] * 0.8
    replies, spent = ask_all(server, tmp_path / "capped", 12, **prices, max_cost=cap)
    assert 0 < sum(came(replies)) < 12
    assert spent["cost"] <= cap
    assert spent["not_asked"] == 12 - sum(came(replies))


def test_batches_cost_their_share_and_the_live_question_its_whole_price(server, tmp_path):
    prices = {"price_in": 1.0, "price_out": 4.0}
    replies, spent = ask_all(server, tmp_path, 12, **prices, batch_price=0.25)
    cost = [
        (r.usage.prompt_tokens + 4 * r.usage.completion_tokens) / 1e6 * share
        for r, share in zip(replies, [1.0, *[0.25] * 11], strict=True)
    ]
    assert spent["cost"] == pytest.approx(sum(cost), rel=1e-12)


def test_two_runs_beside_each_other_pay_once(server, tmp_path):
    ask_all(server, tmp_path, 1)  # what the server takes is known to both

    async def both():
        runs = [opened(server, tmp_path) for _ in range(2)]
        try:
            return await asyncio.gather(
                *(ask_safely(run, small_ask(n)) for n in range(20) for run in runs)
            )
        finally:
            for run in runs:
                await run.close()

    replies = asyncio.run(both())
    assert came(replies) == [True] * 40
    assert set(server.asked.values()) == {1}
    assert len(server.asked) == 19


def test_what_another_run_has_fetched_and_tidied_away_is_not_submitted_again(server, tmp_path):
    ask_all(server, tmp_path, 1)  # what the server takes is known to both

    async def within():
        looked, gone = asyncio.Event(), asyncio.Event()

        async def sleep(seconds):
            if seconds:
                looked.set()
                await gone.wait()

        slow = BatchEngine(BatchTiming(linger=0, first=1, longest=1, sleep=sleep))
        first = opened(server, tmp_path, reach=slow.reach)
        waiting = [asyncio.create_task(ask_safely(first, small_ask(n))) for n in range(6)]
        await looked.wait()
        other = opened(server, tmp_path)
        await asyncio.gather(*(ask_safely(other, small_ask(n)) for n in range(6)))
        await other.close()
        gone.set()
        try:
            return await asyncio.gather(*waiting), first.usage()
        finally:
            await first.close()

    replies, spent = asyncio.run(within())
    assert came(replies) == [True] * 6
    assert (spent["calls"], spent["from_cache"]) == (0, 6)
    assert len(server.batches) == 1


def test_only_judges_with_a_batch_service_are_taken(server, tmp_path):
    with pytest.raises(InputError, match=r"the judge \S+ has no batch service; .*openai:MODEL"):
        open_judge("heuristic", cache=tmp_path / "l", concurrency=8, reach=ENGINE.reach)
    cascade = "cascade:heuristic,openai:test-judge"
    assert came(ask_all(server, tmp_path, 4, judge=cascade, audit=1.0)[0]) == [True] * 4
    assert len(server.batches) == 1


def test_without_a_cache_nothing_is_submitted(server):
    with pytest.raises(InputError, match=r"--engine batch needs a response cache"):
        open_judge(
            "openai:m",
            cache=None,
            concurrency=8,
            reach=ENGINE.reach,
            terms=JudgeConfig(base_url=server.url, api_key="k"),
        )


def test_that_a_cap_makes_small_batches_is_told_once(server, tmp_path, caplog):
    prices = {"price_in": 1.0, "price_out": 4.0, "max_tokens": 300}
    _, needed = ask_all(server, tmp_path / "free", 30, **prices)
    assert "--max-cost" not in caplog.text
    replies, _ = ask_all(server, tmp_path, 30, **prices, max_cost=needed["cost"] * 2)
    assert came(replies) == [True] * 30
    first, *later = [len(batch) for batch in list(server.questions)[1:]]
    assert later
    assert caplog.text.count(f"allows {first} questions at a time") == 1
    assert caplog.text.count("the others wait until a batch has ended") == 1


def test_a_batch_that_was_not_begun_does_not_count_as_calls(server, tmp_path):
    server.end = lambda number: "failed" if number == 0 else "completed"
    server.problems = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]
    replies, spent = ask_all(server, tmp_path, 10, max_calls=10)
    assert came(replies) == [True] * 10
    assert (spent["calls"], spent["not_asked"]) == (10, 0)


def test_answers_that_were_lost_count_at_the_most_that_they_can_have_cost(server, tmp_path):
    prices = {"price_in": 1.0, "price_out": 4.0, "max_tokens": 300}
    _, needed = ask_all(server, tmp_path / "free", 3, **prices)
    cap = needed["cost"] * 3  # all three at worst, and none of them twice
    server.meddle = lambda _, path: error(404, "no such file") if "content" in path else None
    replies, spent = ask_all(server, tmp_path, 3, **prices, max_cost=cap)
    assert spent["not_asked"] > 0
    assert any("--max-cost" in r.problem for r in replies if isinstance(r, SkippedReply))
    assert sum(map(len, server.questions[1:])) <= 4
