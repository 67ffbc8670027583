from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest

from honest_judge import small_ask
from judge_faults import after, status
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.models.openai import open_openai
from misslink.judging.wrappers.throttle import Throttle


@asynccontextmanager
async def throttled(server, concurrency):
    judge = Throttle(open_openai("test-judge", base_url=server.url, max_retries=0), concurrency)
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


def test_five_failures_in_a_row_stop_the_asking(judge_server):
    judge_server.script = status(500, "out of memory")

    async def put():
        async with throttled(judge_server, 1) as judge:
            for n in range(4):
                assert (await judge.ask(small_ask(n))).parsed is None
            for n in range(4, 7):
                with pytest.raises(JudgeUnreachableError, match=r"5 questions in a row.*out of"):
                    await judge.ask(small_ask(n))

    asyncio.run(put())
    assert len(judge_server.calls) == 5


def test_a_success_between_failures_starts_the_count_again(judge_server):
    failing = status(500)
    judge_server.script = lambda body: (
        failing(body) if "town 4 " not in body["messages"][1]["content"] else None
    )

    async def put():
        async with throttled(judge_server, 1) as judge:
            return [(await judge.ask(small_ask(n))).parsed is None for n in range(9)]

    assert asyncio.run(put()) == [True] * 4 + [False] + [True] * 4


def test_after_a_refused_key_nobody_asks_again(judge_server):
    judge_server.key = "sk-another"

    async def put():
        async with throttled(judge_server, 1) as judge:
            asks = (judge.ask(small_ask(n)) for n in range(6))
            return await asyncio.gather(*asks, return_exceptions=True)

    assert {type(outcome) for outcome in asyncio.run(put())} == {JudgeUnreachableError}
    assert len(judge_server.calls) == 1


def test_closing_lets_the_ask_in_flight_come_home_and_turns_the_waiting_away(judge_server):
    arrived, go_on = threading.Event(), threading.Event()

    def slow(_):
        arrived.set()
        go_on.wait(10)

    judge_server.script = slow

    async def put():
        async with throttled(judge_server, 1) as judge:
            asks = [asyncio.create_task(judge.ask(small_ask(n))) for n in range(3)]
            await asyncio.to_thread(arrived.wait, 10)
            closing = asyncio.create_task(judge.close())
            go_on.set()
            await closing
            return await asyncio.gather(*asks, return_exceptions=True)

    first, *others = asyncio.run(put())
    assert first.parsed is not None
    assert {type(other) for other in others} == {JudgeUnreachableError}
    assert len(judge_server.calls) == 1


def test_a_concurrency_below_one_is_refused():
    with pytest.raises(InputError, match="at least 1"):
        Throttle(open_openai("m", base_url="http://localhost/v1"), 0)
