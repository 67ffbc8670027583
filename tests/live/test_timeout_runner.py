"""What takes too long is left alone, and what is not done is not waited for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from contextvars import ContextVar, copy_context

import pytest

from misslink.live.timeout_runner import HangsError, TimeoutRunner, TookTooLongError

SEEN = ContextVar("seen", default="nothing")


class Hanging:
    """A call that hangs until it is let go."""

    def __init__(self):
        self.let_go = threading.Event()
        self.over = threading.Event()

    def __call__(self):
        self.let_go.wait(30)
        self.over.set()
        return "late"


@pytest.fixture
def hanging():
    one = Hanging()
    yield one
    one.let_go.set()


@pytest.mark.parametrize("timeout_s", [None, 30])
def test_a_call_returns_and_raises_what_the_work_does(timeout_s):
    bounded = TimeoutRunner(timeout_s)
    assert bounded.call(lambda: 7) == 7
    with pytest.raises(SystemExit):
        bounded.call(lambda: (_ for _ in ()).throw(SystemExit(3)))


def test_work_in_a_thread_sees_the_callers_context():
    def caller():
        SEEN.set("the caller's")
        return TimeoutRunner(30).call(SEEN.get)

    assert copy_context().run(caller) == "the caller's"


def test_what_hangs_is_left_counted_and_counted_off_when_it_ends(hanging):
    bounded = TimeoutRunner(0.01)
    with pytest.raises(TookTooLongError):
        bounded.call(hanging)
    assert bounded.hung == 1
    hanging.let_go.set()
    hanging.over.wait(30)
    assert bounded.call(lambda: "again") == "again"
    deadline = time.monotonic() + 30
    while bounded.hung and time.monotonic() < deadline:
        threading.Event().wait(0.001)
    assert bounded.hung == 0


def test_while_too_many_hang_none_is_begun(hanging):
    bounded = TimeoutRunner(0.01, most_hung=2)
    for _ in range(2):
        with pytest.raises(TookTooLongError):
            bounded.call(hanging)
    begun = []
    with pytest.raises(HangsError):
        bounded.call(lambda: begun.append(1))
    assert not begun


@pytest.mark.parametrize("timeout_s", [None, 30])
def test_a_stream_passes_chunks_on_before_the_next_is_made(timeout_s):
    made, read = [], []
    go_on = threading.Event()

    def chunks():
        made.append("a")
        yield "a"
        assert go_on.wait(30)
        yield "b"

    for chunk in TimeoutRunner(timeout_s).stream(chunks):
        read.append(chunk)
        go_on.set()  # set only after the first has arrived here
    assert (made, read) == (["a"], ["a", "b"])


def test_a_stream_that_hangs_or_raises_midway_says_so(hanging):
    def hangs():
        yield 1
        hanging()

    def raises():
        yield 1
        raise KeyError("x")

    got = []
    with pytest.raises(TookTooLongError):
        got.extend(TimeoutRunner(0.05).stream(hangs))
    with pytest.raises(KeyError):
        list(TimeoutRunner(30).stream(raises))


def test_a_stream_whose_reader_leaves_ends():
    closed = threading.Event()

    def endless():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    stream = TimeoutRunner(30).stream(endless)
    assert next(stream) == 1
    stream.close()
    assert closed.wait(30)


def test_coroutines_are_bounded_too():
    async def main():
        bounded = TimeoutRunner(0.01, most_hung=1)
        let_go, over = asyncio.Event(), asyncio.Event()

        async def refuses_to_be_cancelled():
            while not let_go.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await let_go.wait()
            over.set()

        with pytest.raises(TookTooLongError):
            await bounded.acall(refuses_to_be_cancelled)
        with pytest.raises(HangsError):
            await bounded.acall(refuses_to_be_cancelled)
        let_go.set()
        await over.wait()
        await asyncio.sleep(0)  # the task that was left ends, and then tells of it
        await asyncio.sleep(0)
        assert bounded.hung == 0

    asyncio.run(main())


def test_a_coroutine_that_exits_does_not_end_the_loop():
    async def leaves():
        raise SystemExit(1)

    async def cancels_itself():
        raise asyncio.CancelledError

    async def main():
        with pytest.raises(SystemExit):
            await TimeoutRunner(30).acall(leaves)
        with pytest.raises(RuntimeError, match="cancelled itself"):
            await TimeoutRunner(30).acall(cancels_itself)
        return "went on"

    assert asyncio.run(main()) == "went on"


def test_whoever_stops_waiting_cancels_the_work():
    async def main():
        begun, cancelled = asyncio.Event(), asyncio.Event()

        async def work():
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        task = asyncio.create_task(TimeoutRunner(30).acall(work))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(cancelled.wait(), 30)

    asyncio.run(main())


@pytest.mark.parametrize("timeout_s", [None, 30])
def test_an_async_stream_has_one_context_in_all_its_steps(timeout_s):
    async def chunks():
        token = SEEN.set("inside")
        yield SEEN.get()
        yield SEEN.get()
        SEEN.reset(token)  # raises where it is another context

    async def main():
        return [chunk async for chunk in TimeoutRunner(timeout_s).astream(chunks)], SEEN.get()

    assert asyncio.run(main()) == (["inside", "inside"], "nothing")


def test_an_async_stream_that_hangs_is_left():
    async def chunks():
        yield 1
        await asyncio.Event().wait()

    async def main():
        stream = TimeoutRunner(0.05).astream(chunks)
        assert await anext(stream) == 1
        with pytest.raises(TookTooLongError):
            await anext(stream)

    asyncio.run(main())
