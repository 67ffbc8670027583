"""What hangs is abandoned: it holds up nobody, takes nothing with it, and is not waited for."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context

import pytest

from misslink.event_loops import BackgroundLoop
from misslink.timeouts import (
    DaemonPool,
    HangsError,
    TimeoutRunner,
    TookTooLongError,
    await_paid_replies,
    awaits_paid_replies,
    use_daemon_pool,
)

SEEN = ContextVar("seen", default="nothing")
LONG, SHORT = 30.0, 0.05


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


def until(is_so):
    deadline = time.monotonic() + 30
    while not is_so() and time.monotonic() < deadline:
        threading.Event().wait(0.001)
    assert is_so()


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


@pytest.mark.slow
def test_what_hangs_is_left_counted_and_counted_off_when_it_ends(hanging):
    bounded = TimeoutRunner(1)
    with pytest.raises(TookTooLongError):
        bounded.call(hanging)
    assert bounded.hung == 1
    hanging.let_go.set()
    hanging.over.wait(30)
    assert bounded.call(lambda: "again") == "again"
    until(lambda: not bounded.hung)


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


@pytest.mark.slow
def test_an_async_stream_that_hangs_is_left():
    async def chunks():
        yield 1
        await asyncio.Event().wait()

    async def main():
        stream = TimeoutRunner(1).astream(chunks)
        assert await anext(stream) == 1
        with pytest.raises(TookTooLongError):
            await anext(stream)

    asyncio.run(main())


def test_a_thread_is_used_again_and_another_is_made_only_where_none_is_free(hanging):
    threads = DaemonPool()
    first = threads.submit(threading.get_ident).result(30)
    until(lambda: len(threads._idle) == 1)
    assert threads.submit(threading.get_ident).result(30) == first
    until(lambda: len(threads._idle) == 1)
    threads.submit(hanging)
    assert threads.submit(threading.get_ident).result(30) != first


def test_a_thread_without_work_ends_and_the_next_work_gets_another(monkeypatch):
    monkeypatch.setattr("misslink.timeouts._IDLE_S", 0.001)
    threads = DaemonPool(1)
    for _ in range(3):
        thread = threads.submit(threading.current_thread).result(30)
        thread.join(30)
        assert not thread.is_alive()


def test_an_error_is_raised_where_it_is_waited_for():
    def exits():
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        DaemonPool().submit(exits).result(30)


def test_work_beyond_the_most_threads_waits_for_a_free_one(hanging):
    threads = DaemonPool(1)
    threads.submit(hanging)
    after = threads.submit(hanging.over.is_set)
    hanging.let_go.set()
    assert after.result(30)


def test_work_from_many_threads_at_once_is_all_done():
    threads = DaemonPool(8)
    with ThreadPoolExecutor(16) as askers:
        sums = askers.map(lambda n: threads.submit(lambda: n + 1).result(30), range(2000))
        assert list(sums) == list(range(1, 2001))


def test_what_takes_longer_is_counted_while_it_does(hanging):
    threads = DaemonPool()
    threads.submit(hanging)
    until(lambda: threads.overdue(0.001) == 1)
    assert threads.overdue(1000) == 0
    hanging.let_go.set()
    until(lambda: threads.overdue(0) == 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_after_a_fork_the_child_has_threads_of_its_own(hanging):
    bounded = TimeoutRunner(30)
    with pytest.raises(TookTooLongError):
        (bounded_short := TimeoutRunner(0.01)).call(hanging)
    assert bounded.call(lambda: 7) == 7  # its thread waits here for more
    child = os.fork()
    if not child:
        same = bounded.call(lambda: 8) == 8 and bounded_short.hung == 0
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bounded_short.hung == 1


def test_a_coroutine_whose_thread_hangs_holds_no_thread_of_the_loop(hanging):
    bounded = TimeoutRunner(0.05, most_hung=20)

    async def hangs():
        await asyncio.to_thread(hanging)

    async def main():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        waits = [bounded.acall(hangs) for _ in range(20)]
        errors = await asyncio.gather(*waits, return_exceptions=True)
        assert {type(error) for error in errors} == {TookTooLongError}
        until(lambda: bounded.hung == 20)  # the tasks were cancelled, the threads cannot be
        with pytest.raises(HangsError):
            await bounded.acall(hangs)
        return await asyncio.to_thread(lambda: "the app goes on")

    assert asyncio.run(main()) == "the app goes on"  # and does not wait for those that hang
    assert not hanging.over.is_set()


def test_everybody_elses_calls_stay_with_the_apps_executor():
    async def main():
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="the-apps"))
        threads = DaemonPool()

        async def background():
            use_daemon_pool(threads)
            return await asyncio.to_thread(lambda: threading.current_thread().name)

        own = await asyncio.create_task(background())
        others = await asyncio.to_thread(lambda: threading.current_thread().name)
        again = await asyncio.create_task(background())
        return own, others, again

    own, others, again = asyncio.run(main())
    assert own == again == "misslink-bounded"
    assert others.startswith("the-apps")


def test_a_loop_that_hides_its_executor_is_served_too(hanging):
    uvloop = pytest.importorskip("uvloop")
    bounded = TimeoutRunner(0.05)

    async def main():
        for _ in range(2):
            with pytest.raises(TookTooLongError):
                await bounded.acall(lambda: asyncio.to_thread(hanging))
        return await asyncio.to_thread(lambda: "the app goes on")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(main()) == "the app goes on"
    assert not hanging.over.is_set()


def in_background(main):
    async def run():
        background = BackgroundLoop()
        try:
            return await main(background)
        finally:
            background.close()

    return asyncio.run(run())


async def told(word):
    await asyncio.sleep(0)
    return word


def test_a_result_and_an_error_come_back_as_they_are():
    async def fails():
        raise KeyError("gone")

    async def main(background):
        with pytest.raises(KeyError, match="gone"):
            await background.run(fails, LONG)
        return await background.run(lambda: told("word"), LONG), background.hung

    assert in_background(main) == ("word", 0)


def test_it_runs_in_the_context_of_who_asked():
    async def who():
        return SEEN.get(), await asyncio.to_thread(SEEN.get)

    async def main(background):
        SEEN.set("asker")
        return await background.run(who, LONG)

    assert in_background(main) == ("asker", "asker")


def test_more_hanging_calls_than_a_pool_has_threads_keep_nobody_waiting(hanging):
    async def main(background):
        async def hang():
            await asyncio.to_thread(hanging)

        ends = await asyncio.gather(
            *(background.run(hang, SHORT) for _ in range(40)), return_exceptions=True
        )
        after = await background.run(lambda: asyncio.to_thread(lambda: "answered"), LONG)
        return ends, after, background.hung

    ends, after, hung = in_background(main)
    assert [type(end) for end in ends] == [TookTooLongError] * 40
    assert not any(end.is_loop_blocked for end in ends)
    assert (after, hung) == ("answered", 40)


def test_a_blocked_event_loop_is_told_and_replaced(hanging, monkeypatch):
    monkeypatch.setattr("misslink.event_loops._RESPONSIVE_S", SHORT)

    async def main(background):
        async def block():
            hanging()  # where an await belongs

        with pytest.raises(TookTooLongError) as ended:
            await background.run(block, SHORT)
        return ended.value.is_loop_blocked, await background.run(lambda: told("next"), LONG)

    assert in_background(main) == (True, "next")


def test_an_awaiting_coroutine_that_is_late_is_cancelled():
    ended = threading.Event()

    async def wait_for_ever():
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def main(background):
        with pytest.raises(TookTooLongError):
            await background.run(wait_for_ever, SHORT)
        return await asyncio.to_thread(ended.wait, LONG)

    assert in_background(main)


def test_a_blocked_event_loop_keeps_no_interrupt_waiting():
    async def block():
        async with await_paid_replies(SHORT):
            assert awaits_paid_replies()
            end = time.monotonic() + LONG
            while awaits_paid_replies():
                assert time.monotonic() < end

    asyncio.run(block())
    assert not awaits_paid_replies()


def test_a_process_that_ends_closes_the_loops_of_its_idle_threads():
    code = """
import asyncio
from misslink.timeouts import TimeoutRunner
print(TimeoutRunner(60).call(lambda: asyncio.get_event_loop().is_closed()))
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
    assert "unclosed event loop" not in done.stderr
