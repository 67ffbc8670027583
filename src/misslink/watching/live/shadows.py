"""Variants asked beside those who answer: out of the request's way, and in bounds."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from misslink.errors import InputError
from misslink.watching.live.bounded import Bounded, TookTooLongError
from misslink.watching.live.own_threads import OwnThreads, takes_own

__all__ = ["Shadows"]

_log = logging.getLogger(__name__)
_Job = tuple[Callable[[], Any], Callable[..., None]]


class Shadows:
    """A bounded queue, and a few threads that work it off.

    Parameters
    ----------
    concurrency : int
        How many shadows run at once.
    waiting : int
        How many may wait; what comes on top is dropped.
    timeout_s : float
        How long one may take. It is then left alone, and while too many hang none is begun.

    Attributes
    ----------
    dropped : int
        Shadows for which there was no room.
    """

    def __init__(self, concurrency: int = 4, waiting: int = 100, timeout_s: float = 30.0) -> None:
        if concurrency < 1 or waiting < 1 or not timeout_s > 0:
            raise InputError("shadows need a concurrency, a queue and a time, each more than 0")
        self.dropped = 0
        self._timeout_s, self._concurrency, self._waiting = timeout_s, concurrency, waiting
        self._begin_empty()

    def _begin_empty(self) -> None:
        """Start without threads and jobs; after a fork those of the parent are the parent's."""
        self._process = os.getpid()
        self._bounded = Bounded(self._timeout_s, most_hung=self._concurrency * 4)
        self._jobs: queue.Queue[_Job] = queue.Queue(self._waiting)
        self._lock = threading.Lock()
        self._workers = 0
        self._running: dict[int, tuple[Callable[..., None], float]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._steps = OwnThreads(self._concurrency * 4)

    @property
    def hung(self) -> int:
        """Shadows left alone that are not done yet."""
        return self._bounded.hung

    def submit(self, work: Callable[[], Any], tell: Callable[..., None]) -> bool:
        """Have `work` done some time; whether there was room.

        Parameters
        ----------
        work : callable
            Run without the context variables of the request: a handler that streams to the
            user's screen must not hear a shadow.
        tell : callable
            Called with what came back, the error or None, and the seconds it took.
        """
        if self._process != os.getpid():
            self._begin_empty()
        try:
            self._jobs.put_nowait((work, tell))
        except queue.Full:
            with self._lock:
                self.dropped += 1
            return False
        with self._lock:
            if self._workers < self._concurrency:
                self._workers += 1
                threading.Thread(target=self._work, name="misslink-shadow", daemon=True).start()
        return True

    def awaited(self, begin: Callable[[], Coroutine[Any, Any, Any]]) -> Callable[[], Any]:
        """Return work that awaits what `begin` makes, in an event loop of the shadows' own."""

        async def apart() -> Any:
            takes_own(self._steps)
            return await begin()

        def work() -> Any:
            future = asyncio.run_coroutine_threadsafe(apart(), self._running_loop())
            try:
                return future.result(self._timeout_s)
            except TimeoutError:
                future.cancel()
                raise

        return work

    def close(self, timeout_s: float = 5.0) -> int:
        """Wait for what is under way or waiting; return how many were dropped all the same.

        Those still running then are told of as having taken too long.
        """
        until = time.monotonic() + timeout_s
        with self._jobs.all_tasks_done:
            while self._jobs.unfinished_tasks and time.monotonic() < until:
                self._jobs.all_tasks_done.wait(until - time.monotonic())
        left = 0
        for worker in list(self._running):
            if (running := self._running.pop(worker, None)) is not None:
                tell, began = running
                error = TookTooLongError("it was still running at the end")
                self._told(tell, None, error, time.perf_counter() - began)
        while True:
            try:
                _, tell = self._jobs.get_nowait()
            except queue.Empty:
                return left
            left += 1
            self._jobs.task_done()
            self._told(tell, None, None, None)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="misslink-shadow-loop", daemon=True
                ).start()
            return self._loop

    def _work(self) -> None:
        while True:
            work, tell = self._jobs.get()
            began = time.perf_counter()
            me = threading.get_ident()
            self._running[me] = tell, began
            value, error = None, None
            try:
                value = self._bounded.call(work, contextvars.Context())
            except BaseException as problem:  # noqa: BLE001 - a shadow's failure is its finding
                error = problem
            if self._running.pop(me, None) is not None:  # else `close` has told of it
                self._told(tell, value, error, time.perf_counter() - began)
            self._jobs.task_done()

    def _told(self, tell: Callable[..., None], *outcome: Any) -> None:
        try:
            tell(*outcome)
        except Exception:  # noqa: BLE001 - the thread has other shadows to work off
            _log.exception("what came of a shadow could not be logged")
