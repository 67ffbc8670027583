"""Threads for what may hang: nobody else has to share them, and the program's end waits for none.

A coroutine often has a step that knows no other way than a thread (a retriever's search, a plain
function), and an event loop has but a few threads for all of them. Where such a step hangs, it
holds one of them, and soon the whole app stands still. So the steps of what is bounded in time
are given other threads, whoever calls them.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

__all__ = ["OwnThreads", "takes_own"]

_IDLE_S = 10.0  # until a thread without work ends

_Inbox = queue.SimpleQueue[Callable[[], None]]
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
        self._lock = threading.Lock()
        self._works: deque[Callable[[], None]] = deque()
        self._idle: list[_Inbox] = []
        self._threads = 0
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
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
            if inbox is None:
                if self._most is not None and self._threads >= self._most:
                    self._works.append(work)
                    return
                self._threads += 1
        if inbox is not None:
            inbox.put(work)
            return
        try:
            threading.Thread(
                target=self._work, args=(work,), name="misslink-bounded", daemon=True
            ).start()
        except RuntimeError:
            with self._lock:
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
        me, inbox = threading.get_ident(), _Inbox()
        while work is not None:
            self._began[me] = time.monotonic()
            work()
            del self._began[me]
            work = None  # and all that it holds, while this waits
            work = self._next(inbox)

    def _next(self, inbox: _Inbox) -> Callable[[], None] | None:
        with self._lock:
            if self._works:
                return self._works.popleft()
            self._idle.append(inbox)
        try:
            return inbox.get(timeout=_IDLE_S)
        except queue.Empty:
            with self._lock:
                if inbox in self._idle:
                    self._idle.remove(inbox)
                    self._threads -= 1
                    return None
            return inbox.get()  # it is on its way


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
