from __future__ import annotations

import asyncio
import itertools
import math
import random
import threading
from contextlib import asynccontextmanager

import pytest

from honest_judge import small_ask
from judge_faults import after, status
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judge.backends.openai import open_openai
from misslink.judge.middleware.throttle import ThrottledJudge
from misslink.judge.protocol import JudgeInfo, RetryableError, SkippedAskError
from staged_judge import StagedJudge, all_of, answer, numbered
from staged_throttle import came, failing, slow_down, staged, times
from virtual_time import run

# How many at once


def test_all_places_are_open_from_the_start_and_no_more():
    throttle = staged(concurrency=8)
    assert all(came(run(all_of(throttle, 40))))
    assert throttle.judge.most_at_once == 8
    assert times(throttle) == sorted([0, 1, 2, 3, 4] * 8)


def test_many_told_at_once_to_slow_down_close_half_of_the_places_once():
    throttle = staged(lambda put: slow_down(5) if put.attempt == 1 else answer(), 16, latency=1.0)

    async def put():
        asking = asyncio.create_task(all_of(throttle, 16))
        await asyncio.sleep(2)
        allowed = throttle.places.allowed
        return allowed, await asking

    allowed, outcomes = run(put())
    assert allowed == 8
    assert all(came(outcomes))


def test_a_call_begun_after_a_cut_cuts_again_and_one_place_is_left():
    throttle = staged(lambda put: slow_down(1) if put.attempt < 6 else answer(), 8)
    seen = []

    async def put():
        asking = asyncio.create_task(throttle.ask(numbered(0)))
        while not asking.done():
            await asyncio.sleep(0.5)
            seen.append(throttle.places.allowed)
        return await asking

    assert run(put()).came
    assert list(dict.fromkeys(seen))[:4] == [8, 4, 2, 1]
    assert min(seen) == 1


def test_every_reply_opens_a_part_of_a_place_until_all_are_open():
    throttle = staged(lambda put: slow_down(1) if put.number == 0 == put.attempt - 1 else answer())
    run(all_of(throttle, 8))  # 8 at once: one is told to slow down, 7 and then it succeed
    assert 4 < throttle.places.allowed < 8
    run_again = staged(lambda put: slow_down(1) if put.number == 0 == put.attempt - 1 else answer())
    run(all_of(run_again, 80))
    assert run_again.places.allowed == 8


def test_a_server_that_merely_fails_closes_no_place():
    throttle = staged(lambda put: failing() if put.attempt == 1 else answer(), 4)
    assert all(came(run(all_of(throttle, 4))))
    assert throttle.places.allowed == 4


def test_a_server_that_bears_four_gets_all_questions_answered():
    throttle = staged(None, 32, latency=1.0)
    judge = throttle.judge
    judge.act = lambda _: slow_down(0.5) if judge.out > 4 else answer()
    assert all(came(run(all_of(throttle, 200))))
    told = len(judge.puts) - 200
    assert told < 100  # the first 28, and now and then one that probes for more


def test_the_oldest_question_goes_first_also_when_it_is_repeated():
    throttle = staged(lambda put: failing() if put.number == put.attempt - 1 == 0 else answer(), 1)
    run(all_of(throttle, 40))
    order = [put.number for put in throttle.judge.puts]
    again = order.index(0, 1)
    assert again <= 2  # its own wait is shorter than a call
    assert order[1:again] + order[again + 1 :] == list(range(1, 40))


def test_who_stops_waiting_for_a_place_takes_none():
    throttle = staged(concurrency=1)

    async def put():
        asks = [asyncio.create_task(throttle.ask(numbered(n))) for n in range(4)]
        await asyncio.sleep(0.5)
        asks[1].cancel()
        await asyncio.sleep(0.5)
        asks[2].cancel()  # it may hold a place since this moment
        return await asyncio.gather(*asks, return_exceptions=True)

    first, second, third, last = run(put())
    assert first.came
    assert last.came
    assert isinstance(second, asyncio.CancelledError)
    assert isinstance(third, asyncio.CancelledError)
    assert throttle.places.out == 0


def test_a_concurrency_below_one_is_refused():
    with pytest.raises(InputError, match="at least 1"):
        staged(concurrency=0)


# How long it waits


def test_a_wait_the_server_asks_for_holds_for_everybody():
    throttle = staged(lambda put: slow_down(30) if put.number == put.attempt - 1 == 0 else answer())

    async def put():
        first = asyncio.create_task(all_of(throttle, 2))
        await asyncio.sleep(2)
        return [*await all_of(throttle, 6), *await first]

    assert all(came(run(put())))
    assert [at for at in times(throttle) if 1 < at < 31] == []
    assert len(times(throttle)) > 8


@pytest.mark.parametrize("seconds", [121, 3600, math.inf, math.nan])
def test_a_wait_beyond_two_minutes_is_not_waited_for(seconds):
    throttle = staged(lambda put: slow_down(seconds) if put.number == 0 else answer())
    first, *others = run(all_of(throttle, 5))
    assert first.problem == ("the server answers 429 (tried once; more than 120 s are not waited)")
    assert not first.came
    assert all(came(others))
    assert len(throttle.judge.puts) == 5


def test_waits_grow_are_drawn_from_a_seed_and_have_an_end():
    def waits(seed, kind="server", retries=9):
        trouble = RetryableError("trouble", kind)
        throttle = staged(lambda _: trouble, latency=0.0, retries=retries, rng=random.Random(seed))
        run(throttle.ask(numbered(0)))
        at = times(throttle)
        return [later - earlier for earlier, later in itertools.pairwise(at)]

    assert waits(1) == waits(1) != waits(2)
    drawn = [waits(seed) for seed in range(40)]
    longest = [max(column) for column in zip(*drawn, strict=True)]
    bounds = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert all(
        bound * 0.7 < most <= bound * 1.001 for most, bound in zip(longest, bounds, strict=True)
    )
    assert min(map(min, drawn)) < 0.1  # full jitter: down to nothing
    assert sum(waits(1, "rate", 5)) > sum(waits(1, "server", 5))  # quotas are by the minute


def test_a_wait_of_no_time_is_not_hammered():
    throttle = staged(lambda put: slow_down(0) if put.attempt < 5 else answer(), latency=0.0)
    assert run(throttle.ask(numbered(0))).came
    assert times(throttle)[-1] > 0.5


def test_what_finally_fails_says_why_and_how_often_it_was_tried():
    throttle = staged(lambda put: failing() if put.number == 3 else answer(), retries=2)
    outcomes = run(all_of(throttle, 9))
    assert [outcome.problem for outcome in outcomes if not outcome.came] == [
        "the server answers 500 (tried 3 times)"
    ]


def test_a_call_that_hangs_is_cut_and_tried_again():
    throttle = staged(timeout=3.0, retries=1)
    throttle.judge.latency = 100

    async def put():
        asking = asyncio.create_task(throttle.ask(numbered(0)))
        await asyncio.sleep(1)
        throttle.judge.latency = 1
        return await asking, await all_of(throttle, 3)

    first, others = run(put())
    assert first.came
    assert all(came(others))
    assert throttle.judge.puts[0].went - throttle.judge.puts[0].came == pytest.approx(3)


def test_a_call_that_always_hangs_fails_with_a_reason():
    throttle = staged(latency=100, timeout=3.0, retries=1)
    assert run(throttle.ask(numbered(0))).problem == "no reply came within 3 s (tried 2 times)"


def test_a_judge_that_takes_fewer_at_once_gets_no_more():
    judge = StagedJudge()
    judge.info = JudgeInfo(max_concurrency=1)
    assert all(came(run(all_of(ThrottledJudge(judge, 8), 9))))
    assert judge.most_at_once == 1


def test_waiting_until_a_judge_is_ready_takes_nothing_of_the_time_for_a_call():
    judge = StagedJudge(latency=2.0)

    async def ready():
        await asyncio.sleep(50)

    judge.info = JudgeInfo(prepare=ready)
    assert all(came(run(all_of(ThrottledJudge(judge, 1, timeout=3.0, retries=0), 3))))


def test_a_call_that_was_made_to_wait_is_not_begun_after_the_end():
    judge = StagedJudge()

    async def ready():
        await asyncio.sleep(5)

    judge.info = JudgeInfo(prepare=ready)
    outcomes = run(all_of(ThrottledJudge(judge, 4, deadline=3.0), 2))
    assert {type(outcome) for outcome in outcomes} == {SkippedAskError}
    assert not judge.puts


def test_a_time_out_of_the_judges_own_is_not_ours():
    throttle = staged(lambda _: TimeoutError("its own"))
    with pytest.raises(TimeoutError, match="its own"):
        run(throttle.ask(numbered(0)))
    assert len(throttle.judge.puts) == 1


# At a real server


@asynccontextmanager
async def throttled(server, concurrency, **options):
    judge = ThrottledJudge(open_openai("test-judge", base_url=server.url), concurrency, **options)
    try:
        yield judge
    finally:
        await judge.judge.close()


def test_no_more_asks_are_out_than_allowed(judge_server):
    pairs = threading.Barrier(2, timeout=10)  # breaks unless two are out at once

    def paired(_):
        pairs.wait()

    judge_server.script = after(1, lambda _: None, paired)

    async def put():
        async with throttled(judge_server, 2) as judge:
            await judge.ask(small_ask(0))
            return await asyncio.gather(*(judge.ask(small_ask(n)) for n in range(1, 9)))

    assert all(reply.parsed for reply in asyncio.run(put()))
    assert judge_server.most_at_once == 2


def test_a_server_that_fails_is_given_up(judge_server):
    judge_server.script = status(500, "out of memory")

    async def put():
        async with throttled(judge_server, 1, retries=0) as judge:
            for n in range(4):
                assert (await judge.ask(small_ask(n))).parsed is None
            for n in range(4, 7):
                with pytest.raises(JudgeUnreachableError, match=r"5 questions in a row.*out of"):
                    await judge.ask(small_ask(n))

    asyncio.run(put())
    assert len(judge_server.calls) == 5


def test_what_a_server_says_of_waiting_is_heard(judge_server):
    judge_server.script = after(2, status(429, "slow down", retry_after_ms="60"))

    async def put():
        async with throttled(judge_server, 4) as judge:
            return await asyncio.gather(*(judge.ask(small_ask(n)) for n in range(4)))

    assert all(reply.parsed for reply in asyncio.run(put()))
    assert sorted(call.status for call in judge_server.calls) == [200] * 4 + [429] * 2


def test_after_a_refused_key_nobody_asks_again(judge_server):
    judge_server.key = "sk-another"

    async def put():
        async with throttled(judge_server, 1) as judge:
            asks = (judge.ask(small_ask(n)) for n in range(6))
            return await asyncio.gather(*asks, return_exceptions=True)

    assert {type(outcome) for outcome in asyncio.run(put())} == {JudgeUnreachableError}
    assert len(judge_server.calls) == 1
