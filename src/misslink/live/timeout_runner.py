"""Run calls with a time limit, in daemon threads and in event loops."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import Context, ContextVar, copy_context
from typing import Any

from misslink.errors import InputError

_IDLE_S = 10.0  # until a thread without work ends

_WorkQueue = queue.SimpleQueue[Callable[[], None]]
_CURRENT_POOL: ContextVar[DaemonPool | None] = ContextVar("misslink_own_threads", default=None)


class DaemonPool:
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
        self._idle: list[_WorkQueue] = []
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
        me, inbox = threading.get_ident(), _WorkQueue()
        while work is not None:
            self._began[me] = time.monotonic()
            work()
            del self._began[me]
            work = None  # and all that it holds, while this waits
            work = self._next(inbox)

    def _next(self, inbox: _WorkQueue) -> Callable[[], None] | None:
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


def use_daemon_pool(threads: DaemonPool) -> None:
    """From here on in this context, give calls to the event loop's executor these threads.

    The executor that the running loop has stays in use for everybody else's calls. A loop that
    does not show its own, as uvloop's, is given a new one of the usual size.
    """
    _CURRENT_POOL.set(threads)
    loop = asyncio.get_running_loop()
    before = getattr(loop, "_default_executor", None)
    if isinstance(before, _RoutingExecutor) or getattr(loop, "_misslink_sorts", False):
        return
    loop.set_default_executor(_RoutingExecutor(before))
    if not hasattr(loop, "_default_executor"):
        loop._misslink_sorts = True  # type: ignore[attr-defined]  # noqa: SLF001


class _RoutingExecutor(ThreadPoolExecutor):
    """A loop's executor that tells by their context whose calls are to be kept apart."""

    def __init__(self, default: Executor | None) -> None:
        super().__init__(thread_name_prefix="asyncio")
        self._others = default

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Hand a call to the threads it belongs to."""
        threads = _CURRENT_POOL.get()
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


class AbandonableCall:
    """Whether a call was done before it was left alone; one of the two comes first.

    Parameters
    ----------
    count : callable
        Told 1 when the call is left alone, and -1 when it comes to an end after that.
    """

    def __init__(self, count: Callable[[int], None]) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._is_done = self._is_left = False

    def done(self) -> None:
        """The call is over."""
        with self._lock:
            self._is_done = True
            if self._is_left:
                self._count(-1)

    def leave(self) -> bool:
        """Leave it alone; False where it was done."""
        with self._lock:
            if not self._is_done:
                self._is_left = True
                self._count(1)
            return self._is_left


_END = object()
_MOST_STEPS = 64  # threads for the steps of one variant's coroutines
_CHUNKS = 64  # that a stream may be ahead of its reader
_POLL_S = 0.5  # how often a stream whose reader does not read looks whether it has left


class TookTooLongError(Exception):
    """The call was not done in time."""


class HangsError(Exception):
    """Not begun: too many earlier calls still hang."""


class TimeoutRunner:
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
        self._calls, self._steps = DaemonPool(), DaemonPool(_MOST_STEPS)

    @property
    def hung(self) -> int:
        """Number of abandoned calls still running, plus coroutine steps in threads that hang."""
        if self.timeout_s is None or self._process != os.getpid():
            return 0
        return self._left + self._steps.overdue(self.timeout_s)

    def call(self, work: Callable[[], Any], context: Context | None = None) -> Any:
        """Run `work` in a thread with the time limit; return its result or raise its error."""
        return self.begin(work, context)()

    def begin(self, work: Callable[[], Any], context: Context | None = None) -> Callable[[], Any]:
        """Start `work` and its time limit; return a function that waits for the result."""
        # Without a time limit, the waiting function runs `work` itself.
        if self.timeout_s is None:
            return work if context is None else lambda: context.run(work)
        self._refuse()
        held = copy_context() if context is None else context
        outcome: list[Any] = []
        done = threading.Event()
        fate = AbandonableCall(self._count_hung)

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
            yield from _iterate_in_context(context, begin)
            return
        self._refuse()
        ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(_CHUNKS)
        left = threading.Event()
        fate = AbandonableCall(self._count_hung)
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
        """Await the result of `begin` within the time limit, if there is one."""
        # A coroutine that blocks the event loop cannot be interrupted from inside it.
        if self.timeout_s is None:
            return await begin()
        self._refuse()

        async def begin_in_pool() -> Any:
            use_daemon_pool(self._steps)
            return await begin()

        return await self._within(asyncio.create_task(_result_or_error(begin_in_pool)))

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
            context.run(use_daemon_pool, self._steps)
        chunks = context.run(lambda: aiter(begin()))

        async def step() -> Any:
            return await anext(chunks, _END)

        try:
            while True:
                task = asyncio.create_task(_result_or_error(step), context=context)
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
            fate = AbandonableCall(self._count_hung)
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


def _iterate_in_context(context: Context, begin: Callable[[], Iterator[Any]]) -> Iterator[Any]:
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
    fate: AbandonableCall,
) -> None:
    """Put chunks on the queue until the stream ends or the reader stops."""
    last: tuple[Any, BaseException | None] = (_END, None)
    try:
        for chunk in _iterate_in_context(context, begin):
            if not _put_until_closed(ready, (chunk, None), left):
                break
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        last = (None, error)
    finally:
        _put_until_closed(ready, last, left)
        fate.done()


def _put_until_closed(ready: queue.Queue[Any], item: Any, left: threading.Event) -> bool:
    while not left.is_set():
        try:
            ready.put(item, timeout=_POLL_S)
        except queue.Full:
            continue
        return True
    return False


async def _result_or_error(begin: Callable[[], Awaitable[Any]]) -> tuple[Any, BaseException | None]:
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
    task = asyncio.create_task(_result_or_error(close), context=context)
    await asyncio.wait({task}, timeout=timeout_s)
    if not task.done():
        task.cancel()
