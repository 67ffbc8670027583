"""What hangs is left behind, and takes nothing else with it."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from misslink.canary.background_loop import BackgroundLoop, HungError

NAME = contextvars.ContextVar("NAME", default="nobody")
LONG = 30.0
SHORT = 0.05


@pytest.fixture
def released():
    """An event that is set in the end, so that no thread of a test stays."""
    event = threading.Event()
    yield event
    event.set()


def in_apart(main):
    async def run():
        apart = BackgroundLoop()
        try:
            return await main(apart)
        finally:
            apart.close()

    return asyncio.run(run())


async def told(word):
    await asyncio.sleep(0)
    return word


def test_a_result_and_an_error_come_back_as_they_are():
    async def fails():
        raise KeyError("gone")

    async def main(apart):
        with pytest.raises(KeyError, match="gone"):
            await apart.run(fails, LONG)
        return await apart.run(lambda: told("word"), LONG), apart.hung

    assert in_apart(main) == ("word", 0)


def test_it_runs_in_the_context_of_who_asked():
    async def who():
        return NAME.get(), await asyncio.to_thread(NAME.get)

    async def main(apart):
        NAME.set("asker")
        return await apart.run(who, LONG)

    assert in_apart(main) == ("asker", "asker")


def test_more_hanging_calls_than_a_pool_has_threads_keep_nobody_waiting(released):
    async def main(apart):
        async def hang():
            await asyncio.to_thread(released.wait)

        ends = await asyncio.gather(
            *(apart.run(hang, SHORT) for _ in range(40)), return_exceptions=True
        )
        after = await apart.run(lambda: asyncio.to_thread(lambda: "answered"), LONG)
        return ends, after, apart.hung

    ends, after, hung = in_apart(main)
    assert [type(end) for end in ends] == [HungError] * 40
    assert not any(end.blocked for end in ends)
    assert (after, hung) == ("answered", 40)


def test_a_blocked_event_loop_is_told_and_replaced(released, monkeypatch):
    monkeypatch.setattr("misslink.canary.background_loop._RESPONSIVE_S", SHORT)

    async def main(apart):
        async def block():
            released.wait()  # where an await belongs

        with pytest.raises(HungError) as ended:
            await apart.run(block, SHORT)
        return ended.value.blocked, await apart.run(lambda: told("next"), LONG)

    assert in_apart(main) == (True, "next")


def test_an_awaiting_coroutine_that_is_late_is_cancelled():
    ended = threading.Event()

    async def wait_for_ever():
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def main(apart):
        with pytest.raises(HungError):
            await apart.run(wait_for_ever, SHORT)
        return await asyncio.to_thread(ended.wait, LONG)

    assert in_apart(main)
