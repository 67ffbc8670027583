"""Event loops in daemon threads: one for all synchronous calls of the process, one for its apps."""

from __future__ import annotations

import asyncio
import math
import os
import re
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar
from weakref import WeakSet

from misslink.timeouts import DaemonPool, TookTooLongError, result_or_error

_STEP_S = 0.1
_MOMENT_S = 0.2  # an event loop that does not take a turn in this time is held up
_LAST_TURNS = 20  # of an event loop, for tasks that are about to end, as a client's that is let go
_RESPONSIVE_S = 2.0  # an event loop that does not take a turn in this time is blocked

ResultT = TypeVar("ResultT")


def _wait_for(lock: threading.Lock, seconds: float | None = None) -> bool:
    """Acquire in short steps: of an interrupt right before a wait Python learns at its end."""
    end = math.inf if seconds is None else time.monotonic() + seconds
    while not lock.acquire(timeout=max(0.0, min(_STEP_S, end - time.monotonic()))):
        if time.monotonic() >= end:
            return False
    return True


def _locked() -> threading.Lock:
    """What one thread waits for and another releases; an interrupt may break `threading.Event`."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class BackgroundLoop:
    """Run coroutines on one event loop in a daemon thread, which the first of them starts.

    Parameters
    ----------
    threads : DaemonPool or None
        For blocking calls of the coroutines. None: as many threads as are needed.

    Attributes
    ----------
    hung : int
        Calls that were abandoned.
    """

    # An app's connections and locks expect one loop for all calls. A blocked loop is replaced.

    def __init__(self, threads: DaemonPool | None = None) -> None:
        self._pool = threads or DaemonPool()
        self._begin_empty()

    def _begin_empty(self) -> None:
        """Start without a loop; after a fork that of the parent is the parent's."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
        self.hung = 0

    async def run(
        self, work: Callable[[], Coroutine[Any, Any, ResultT]], seconds: float
    ) -> ResultT:
        """Run what `work` makes, from another event loop; raise TookTooLongError after `seconds`."""
        loop = self._running()
        context = copy_context()
        own: asyncio.Task[tuple[ResultT, BaseException | None]] | None = None

        async def within() -> tuple[ResultT, BaseException | None]:
            nonlocal own
            own = asyncio.get_running_loop().create_task(result_or_error(work), context=context)
            self._tasks.add(own)
            return await own

        future = asyncio.run_coroutine_threadsafe(within(), loop)
        waiting = asyncio.wrap_future(future)
        try:
            done, _ = await asyncio.wait([waiting], timeout=seconds)
        except asyncio.CancelledError:
            future.cancel()
            raise
        if done:
            value, error = waiting.result()
            if error is not None:
                raise error
            return value
        running = asyncio.current_task(loop)  # busy now: it holds up all others
        future.cancel()
        self.hung += 1
        turn: Future[None] = Future()
        loop.call_soon_threadsafe(turn.set_result, None)
        late = {asyncio.wrap_future(turn)}
        _, late = await asyncio.wait(late, timeout=_MOMENT_S)
        blocked_by_other = bool(late) and running is not own and running in self._tasks
        if late:
            _, late = await asyncio.wait(late, timeout=_RESPONSIVE_S)
        if late:
            self._leave(loop)
        raise TookTooLongError(
            f"not done within {seconds:g} s",
            is_loop_blocked=bool(late),
            blocked_by_other=blocked_by_other,
        )

    def call(
        self, work: Callable[[], Coroutine[Any, Any, ResultT]], seconds: float | None = None
    ) -> ResultT:
        """Run what `work` makes, from a thread; raise TimeoutError after `seconds`.

        An interrupt cancels the work and waits for its end, unless it blocks the loop.
        """
        loop, over = self._running(), _locked()
        tasks: list[asyncio.Task[tuple[ResultT, BaseException | None]]] = []

        def start() -> None:
            tasks.append(loop.create_task(result_or_error(work)))
            tasks[0].add_done_callback(lambda _: over.release())

        def cancel() -> None:
            tasks[0].cancel() if tasks else over.release()  # interrupted before it began

        try:
            loop.call_soon_threadsafe(start)  # in a copy of the caller's context
            is_over = _wait_for(over, seconds)
        except BaseException:
            if not self._takes_turn(loop, cancel):
                self._leave(loop)
            elif not (tasks and tasks[0].done()):
                _wait_for(over)
            raise
        if not is_over:
            loop.call_soon_threadsafe(cancel)
            raise TimeoutError
        value, error = tasks[0].result()
        if error is not None:
            raise error
        return value

    def drop_connections(self) -> None:
        """Close connections that no task uses, for the next loop that uses the same clients."""
        loop, idle = self._loop, False

        def close() -> None:
            nonlocal idle
            idle = not asyncio.all_tasks(loop)  # an evaluation in another thread is one
            for transport in list(getattr(loop, "_transports", {}).values()) if idle else ():
                transport.close()

        for _ in range(_LAST_TURNS):
            if loop is None or idle or not self._takes_turn(loop, close):
                return

    @staticmethod
    def _takes_turn(loop: asyncio.AbstractEventLoop, action: Callable[[], object]) -> bool:
        """Have the loop do something, and all that follows at once; False if it is blocked."""
        turn = _locked()
        loop.call_soon_threadsafe(action)
        loop.call_soon_threadsafe(loop.call_soon, turn.release)
        return turn.acquire(timeout=_RESPONSIVE_S)

    def is_current(self) -> bool:
        """Whether this is called from the loop itself, which must not wait for its own work."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def close(self) -> None:
        """Stop the loop; threads that hang are abandoned."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give up a blocked loop: the next call starts another."""
        with self._lock:
            if self._loop is loop:  # the first of several to find out
                self._loop = None

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._process != os.getpid():
            self._begin_empty()
        with self._lock:
            if self._loop is None:
                self._loop = self._start()
            return self._loop

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        loop.set_default_executor(self._pool)
        # Nobody reads what a task that was left behind raises in the end.
        loop.set_exception_handler(lambda *_: None)

        def live() -> None:
            asyncio.set_event_loop(loop)
            while True:
                try:
                    loop.run_forever()
                except BaseException:  # noqa: BLE001, S112 - a SystemExit of one task is not the others'
                    continue
                break
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

        threading.Thread(target=live, name="misslink-loop", daemon=True).start()
        return loop


# An app's connections belong to the event loop that opened them, so all evaluations of a process
# share one. Apps with a time limit have another: one that blocks it does not block the evaluation.
_SHARED_LOOP = BackgroundLoop()
APP_LOOP = BackgroundLoop()


def run_async(work: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
    """Run a coroutine to its end on the event loop of the process, also where another one runs."""
    if _SHARED_LOOP.is_current() or APP_LOOP.is_current():  # an app that evaluates another
        nested = BackgroundLoop()
        try:
            return nested.call(work)
        finally:
            nested.close()
    try:
        return _SHARED_LOOP.call(work)
    finally:  # the caller may use the same clients next, on a loop of its own
        for loop in (_SHARED_LOOP, APP_LOOP):
            loop.drop_connections()


# The last is aiohttp's: its timer looks for the task in the loop that made the session.
_FOREIGN_LOOP = re.compile(
    r"event loop is closed|(bound|attached) to a different (event )?loop"
    r"|timeout context manager should be used inside a task"
)


def is_of_another_loop(error: BaseException) -> bool:
    """Whether a connection of another event loop was used, which breaks it: the next call opens one."""
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        if isinstance(link, RuntimeError) and _FOREIGN_LOOP.search(str(link).lower()):
            return True
        seen.append(link)
        link = link.__cause__ or link.__context__
    return False
