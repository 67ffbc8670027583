"""Threads for what may hang: nobody else has to share them, and the program's end waits for none.

A coroutine often has a step that knows no other way than a thread (a retriever's search, a plain
function), and an event loop has but a few threads for all of them. Where such a step hangs, it
holds one of them, and soon the whole app stands still. So the steps of what is bounded in time
are given other threads, whoever calls them.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

__all__ = ["OwnThreads", "takes_own"]

_IDLE_S = 10.0  # until a thread without work ends

_OWN: ContextVar[OwnThreads | None] = ContextVar("misslink_own_threads", default=None)


class OwnThreads:
    """Daemon threads, made when they are needed and used again.

    Parameters
    ----------
    most : int or None
        How many there are at most; work waits for a free one. None: as many as are needed.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._begin_empty()

    def _begin_empty(self) -> None:
        """Start without threads and work; after a fork those of the parent are the parent's."""
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._works: deque[Callable[[], None]] = deque()
        self._threads = self._idle = 0
        self._began: dict[int, float] = {}

    def start(self, work: Callable[[], None]) -> None:
        """Have `work`, which raises nothing, done by a thread.

        Raises
        ------
        RuntimeError
            The system gives no more threads.
        """
        if self._process != os.getpid():
            self._begin_empty()
        with self._changed:
            if self._idle > len(self._works):
                self._works.append(work)
                self._changed.notify()
                return
            if self._most is not None and self._threads >= self._most:
                self._works.append(work)
                return
            self._threads += 1
        try:
            threading.Thread(
                target=self._work, args=(work,), name="misslink-bounded", daemon=True
            ).start()
        except RuntimeError:
            with self._changed:
                self._threads -= 1
            raise

    def submit(self, function: Callable[..., Any], *given: Any, **named: Any) -> Future[Any]:
        """As an executor's."""
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                outcome = function(*given, **named)
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                future.set_exception(error)
            else:
                future.set_result(outcome)

        self.start(work)
        return future

    def overdue(self, seconds: float) -> int:
        """How many threads have been at one work for longer than `seconds`."""
        if self._process != os.getpid() or not self._began:
            return 0
        before = time.monotonic() - seconds
        return sum(began < before for began in list(self._began.values()))

    def _work(self, work: Callable[[], None] | None) -> None:
        me = threading.get_ident()
        while work is not None:
            self._began[me] = time.monotonic()
            work()
            del self._began[me]
            work = None  # and all that it holds, while this waits
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: self._works, _IDLE_S)
                self._idle -= 1
                if self._works:
                    work = self._works.popleft()
                else:
                    self._threads -= 1


def takes_own(threads: OwnThreads) -> None:
    """From here on in this context, give calls to the event loop's executor these threads.

    The executor that the running loop has stays in use for everybody else's calls. A loop that
    does not show its own, as uvloop's, is given a new one of the usual size.
    """
    _OWN.set(threads)
    loop = asyncio.get_running_loop()
    before = getattr(loop, "_default_executor", None)
    if isinstance(before, _Sorting) or getattr(loop, "_misslink_sorts", False):
        return
    loop.set_default_executor(_Sorting(before))
    if not hasattr(loop, "_default_executor"):
        loop._misslink_sorts = True  # type: ignore[attr-defined]  # noqa: SLF001


class _Sorting(ThreadPoolExecutor):
    """A loop's executor that tells by their context whose calls are to be kept apart."""

    def __init__(self, others: Executor | None) -> None:
        super().__init__(thread_name_prefix="asyncio")
        self._others = others

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Hand a call to the threads it belongs to."""
        threads = _OWN.get()
        if threads is not None:
            return threads.submit(function, *given, **named)
        if self._others is not None:
            return self._others.submit(function, *given, **named)
        return super().submit(function, *given, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT002 - as its base has it
        """End the threads that are everybody's; a variant's own are left alone."""
        if self._others is not None:
            self._others.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)
