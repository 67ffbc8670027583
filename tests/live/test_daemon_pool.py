"""What hangs in a thread holds nobody else's, and nothing waits for it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from misslink.live.timeout_runner import (
    DaemonPool,
    HangsError,
    TimeoutRunner,
    TookTooLongError,
    use_daemon_pool,
)


class Hanging:
    """A call that hangs until it is let go."""

    def __init__(self):
        self.let_go = threading.Event()
        self.over = threading.Event()

    def __call__(self):
        self.let_go.wait(30)
        self.over.set()


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


def test_a_thread_is_used_again_and_another_is_made_only_where_none_is_free(hanging):
    threads = DaemonPool()
    first = threads.submit(threading.get_ident).result(30)
    until(lambda: len(threads._idle) == 1)
    assert threads.submit(threading.get_ident).result(30) == first
    until(lambda: len(threads._idle) == 1)
    threads.submit(hanging)
    assert threads.submit(threading.get_ident).result(30) != first


def test_a_thread_without_work_ends_and_the_next_work_gets_another(monkeypatch):
    monkeypatch.setattr("misslink.live.timeout_runner._IDLE_S", 0.001)
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
        TimeoutRunner.call(bounded_short := TimeoutRunner(0.01), hanging)
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

        async def apart():
            use_daemon_pool(threads)
            return await asyncio.to_thread(lambda: threading.current_thread().name)

        own = await asyncio.create_task(apart())
        others = await asyncio.to_thread(lambda: threading.current_thread().name)
        again = await asyncio.create_task(apart())
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
