"""Calls that may take so long and no longer, in threads and in event loops.

A thread cannot be stopped from outside and a task may refuse to be. What takes too long is left
alone, and while too many such calls hang on, no new one is begun.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import Context, copy_context
from typing import Any

from misslink.errors import InputError
from misslink.watching.live.fate import Fate
from misslink.watching.live.own_threads import OwnThreads, takes_own

__all__ = ["Bounded", "HangsError", "TookTooLongError"]

_END = object()
_MOST_STEPS = 64  # threads for the steps of one variant's coroutines
_CHUNKS = 64  # that a stream may be ahead of its reader
_LOOK_S = 0.5  # how often a stream whose reader does not read looks whether it has left


class TookTooLongError(Exception):
    """The call was not done in time."""


class HangsError(Exception):
    """Not begun: too many earlier calls still hang."""


class Bounded:
    """Calls bounded in time.

    Parameters
    ----------
    timeout_s : float or None
        Seconds that a call, or a stream's next chunk, may take. None: any time; then calls run
        where they are made.
    most_hung : int
        How many calls may hang before no more are begun.

    Raises
    ------
    InputError
        The time is no number above 0.

    """

    def __init__(self, timeout_s: float | None, most_hung: int = 32) -> None:
        is_time = isinstance(timeout_s, int | float) and timeout_s > 0
        if timeout_s is not None and not is_time:
            raise InputError(f"the time for a variant is {timeout_s!r}: seconds, more than 0")
        self.timeout_s = timeout_s
        self.most_hung = most_hung
        self._begin_empty()

    def _begin_empty(self) -> None:
        """Start with nothing that hangs; after a fork that is in the parent alone."""
        self._process = os.getpid()
        self._left = 0
        self._lock = threading.Lock()
        self._calls, self._steps = OwnThreads(), OwnThreads(_MOST_STEPS)

    @property
    def hung(self) -> int:
        """Calls left alone that are not done yet, and steps of coroutines in threads that hang.

        A coroutine can be cancelled while the thread that it waits for goes on.
        """
        if self.timeout_s is None or self._process != os.getpid():
            return 0
        return self._left + self._steps.overdue(self.timeout_s)

    def call(self, work: Callable[[], Any], context: Context | None = None) -> Any:
        """Return what `work` returns, and raise what it raises.

        Parameters
        ----------
        work : callable
            Run in a thread of its own, which the end of the program does not wait for.
        context : Context or None
            The context variables it sees; None: a copy of those here.

        Raises
        ------
        TookTooLongError, HangsError
        """
        return self.begin(work, context)()

    def begin(self, work: Callable[[], Any], context: Context | None = None) -> Callable[[], Any]:
        """As `call`, and return at once what waits for the outcome, from now on in time.

        Where any time may be taken, the work is done by whoever waits for it.
        """
        if self.timeout_s is None:
            return work if context is None else lambda: context.run(work)
        self._refuse()
        held = copy_context() if context is None else context
        outcome: list[Any] = []
        done = threading.Event()
        fate = Fate(self._count_hung)

        def run() -> None:
            try:
                outcome.append((held.run(work), None))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                outcome.append((None, error))
            finally:
                fate.done()
                done.set()

        self._calls.start(run)

        def wait() -> Any:
            if not done.wait(self.timeout_s) and fate.leave():
                raise TookTooLongError(f"not done within {self.timeout_s:g} s")
            done.wait()  # it finished between the two
            value, error = outcome[0]
            if error is not None:
                raise error
            return value

        return wait

    def stream(self, begin: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """Yield what the iterator that `begin` makes yields, each within the time.

        Raises
        ------
        TookTooLongError, HangsError
        """
        context = copy_context()
        if self.timeout_s is None:
            yield from _in_context(context, begin)
            return
        self._refuse()
        ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(_CHUNKS)
        left = threading.Event()
        fate = Fate(self._count_hung)
        self._calls.start(lambda: _pump(context, begin, ready, left, fate))
        try:
            while True:
                try:
                    chunk, error = ready.get(timeout=self.timeout_s)
                except queue.Empty:
                    if fate.leave():
                        raise TookTooLongError(f"nothing within {self.timeout_s:g} s") from None
                    continue  # it came between the two
                if error is not None:
                    raise error
                if chunk is _END:
                    return
                yield chunk
        finally:
            left.set()

    async def acall(self, begin: Callable[[], Awaitable[Any]]) -> Any:
        """Await what `begin` makes, in a task of its own unless the time is unbounded.

        What it hands to the event loop's threads is run in others, which nobody waits for. A
        coroutine that blocks the event loop cannot be bounded from inside it.

        Raises
        ------
        TookTooLongError, HangsError
        """
        if self.timeout_s is None:
            return await begin()
        self._refuse()

        async def apart() -> Any:
            takes_own(self._steps)
            return await begin()

        return await self._within(asyncio.create_task(_caught(apart)))

    async def astream(self, begin: Callable[[], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        """Yield what the iterator that `begin` makes yields, each within the time.

        Raises
        ------
        TookTooLongError, HangsError
        """
        if self.timeout_s is not None:
            self._refuse()
        context = copy_context()  # one for all steps: what a step sets the next one resets
        if self.timeout_s is not None:
            context.run(takes_own, self._steps)
        chunks = context.run(lambda: aiter(begin()))

        async def step() -> Any:
            return await anext(chunks, _END)

        try:
            while True:
                task = asyncio.create_task(_caught(step), context=context)
                if (chunk := await self._within(task)) is _END:
                    return
                yield chunk
        finally:
            if hasattr(chunks, "aclose"):
                await _closed(chunks.aclose, context, self.timeout_s)

    async def _within(self, task: asyncio.Task[tuple[Any, BaseException | None]]) -> Any:
        try:
            await asyncio.wait({task}, timeout=self.timeout_s)
        except asyncio.CancelledError:  # nobody waits for the answer any more
            task.cancel()
            raise
        if not task.done():
            fate = Fate(self._count_hung)
            fate.leave()
            task.add_done_callback(lambda _: fate.done())
            task.cancel()
            raise TookTooLongError(f"not done within {self.timeout_s:g} s")
        if task.cancelled():  # by itself: to those who wait this is a failure and no farewell
            raise RuntimeError("the call cancelled itself")
        value, error = task.result()
        if error is not None:
            raise error
        return value

    def _refuse(self) -> None:
        if self._process != os.getpid():
            self._begin_empty()
        if self.hung >= self.most_hung:
            raise HangsError(f"not asked: {self.hung} earlier calls still hang")

    def _count_hung(self, more: int) -> None:
        """Count calls that begin to hang, or that came to an end after all."""
        with self._lock:
            self._left += more


def _in_context(context: Context, begin: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    chunks = context.run(lambda: iter(begin()))
    try:
        while (chunk := context.run(next, chunks, _END)) is not _END:
            yield chunk
    finally:
        if hasattr(chunks, "close"):
            context.run(chunks.close)


def _pump(
    context: Context,
    begin: Callable[[], Iterator[Any]],
    ready: queue.Queue[tuple[Any, BaseException | None]],
    left: threading.Event,
    fate: Fate,
) -> None:
    """Hand chunks over as they come, until they end or nobody reads them."""
    last: tuple[Any, BaseException | None] = (_END, None)
    try:
        for chunk in _in_context(context, begin):
            if not _handed(ready, (chunk, None), left):
                break
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        last = (None, error)
    finally:
        _handed(ready, last, left)
        fate.done()


def _handed(ready: queue.Queue[Any], item: Any, left: threading.Event) -> bool:
    while not left.is_set():
        try:
            ready.put(item, timeout=_LOOK_S)
        except queue.Full:
            continue
        return True
    return False


async def _caught(begin: Callable[[], Awaitable[Any]]) -> tuple[Any, BaseException | None]:
    """A SystemExit that leaves a task would end the whole event loop."""
    try:
        return await begin(), None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        return None, error


async def _closed(
    close: Callable[[], Awaitable[Any]], context: Context, timeout_s: float | None
) -> None:
    task = asyncio.create_task(_caught(close), context=context)
    await asyncio.wait({task}, timeout=timeout_s)
    if not task.done():
        task.cancel()
