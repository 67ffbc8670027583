"""Run many calls at once, and calls that may hang with a time limit, in threads and tasks."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sized
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import Context, ContextVar, copy_context
from typing import Any, NoReturn, TypeVar

from misslink.errors import InputError

_IDLE_S = 10.0  # until a thread without work ends
_END = object()
_MOST_STEPS = 64  # threads for the steps of one runner's coroutines
_CHUNKS = 64  # that a stream may be ahead of its reader
_POLL_S = 0.5  # how often a stream whose reader does not read looks whether it has left

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
_WorkQueue = queue.SimpleQueue[Callable[[], None]]
_CURRENT_POOL: ContextVar[DaemonPool | None] = ContextVar("misslink_own_threads", default=None)

_reply_deadlines: list[float] = []  # until when runs that end wait for replies in flight


@contextlib.asynccontextmanager
async def await_paid_replies(seconds: float) -> AsyncIterator[None]:
    """End the block after `seconds`; until then an interrupt does not end the process."""
    deadline = time.monotonic() + seconds
    _reply_deadlines.append(deadline)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                yield
    finally:
        _reply_deadlines.remove(deadline)


def awaits_paid_replies() -> bool:
    """Whether a run that ends still waits for replies in flight."""
    return any(deadline > time.monotonic() for deadline in _reply_deadlines)


class TookTooLongError(Exception):
    """The call was not done in time and was abandoned.

    Attributes
    ----------
    is_loop_blocked : bool
        Whether the event loop itself stood still, so that what ran beside the call is lost too.
    blocked_by_other : bool
        Whether another call blocked the event loop, so that this one is not to blame.
    """

    def __init__(
        self, message: str, *, is_loop_blocked: bool = False, blocked_by_other: bool = False
    ) -> None:
        super().__init__(message)
        self.is_loop_blocked = is_loop_blocked
        self.blocked_by_other = blocked_by_other


class HangsError(Exception):
    """Not begun: too many earlier calls still hang."""


class DaemonPool(ThreadPoolExecutor):
    """An executor of daemon threads: one that hangs keeps neither other calls nor exit waiting.

    Parameters
    ----------
    most : int or None
        How many threads there are at most; work waits for a free one. None: as many as are needed.
    """

    # Python joins the threads of a usual pool at exit.

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = most
        self._begin_empty()

    def _begin_empty(self) -> None:
        """Start without threads and work; after a fork those of the parent are the parent's."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._works: deque[Callable[[], None]] = deque()
        self._idle: list[_WorkQueue] = []
        self._count = 0
        self._began: dict[int, float] = {}

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `function` in a thread; raise RuntimeError where the system gives no more threads."""
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                _give_thread_a_loop()
                result = function(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                future.set_exception(error)
            else:
                future.set_result(result)

        self._start(work)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT002 - as its base has it
        """Nothing to wait for."""

    def overdue(self, seconds: float) -> int:
        """How many threads have been at one call for longer than `seconds`."""
        if self._process != os.getpid() or not self._began:
            return 0
        before = time.monotonic() - seconds
        return sum(began < before for began in list(self._began.values()))

    def _start(self, work: Callable[[], None]) -> None:
        if self._process != os.getpid():
            self._begin_empty()
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
            if inbox is None:
                if self._most is not None and self._count >= self._most:
                    self._works.append(work)
                    return
                self._count += 1
        if inbox is not None:
            inbox.put(work)
            return
        try:
            threading.Thread(
                target=self._work, args=(work,), name="misslink-bounded", daemon=True
            ).start()
        except RuntimeError:
            with self._lock:
                self._count -= 1
            raise

    def _work(self, work: Callable[[], None] | None) -> None:
        me, inbox = threading.get_ident(), _WorkQueue()
        while work is not None:
            self._began[me] = time.monotonic()
            work()
            del self._began[me]
            work = None  # and all that it holds, while this waits
            work = self._next(inbox)
        if hasattr(_THREAD, "loop"):
            _THREAD.loop.close()

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
                    self._count -= 1
                    return None
            return inbox.get()  # it is on its way


_THREAD = threading.local()  # its `loop`, where it was given one
# At the end of a process its idle threads do not wake up to close theirs, and the interpreter, which
# is half gone by then, may fail to.
_LOOPS = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, int]()  # to its process


@atexit.register
def _close_loops() -> None:
    for loop, process in list(_LOOPS.items()):
        if process == os.getpid() and not loop.is_running():
            loop.close()


def _give_thread_a_loop() -> None:
    """Set the event loop that libraries expect from `asyncio.get_event_loop`."""
    try:
        if not asyncio.get_event_loop().is_closed():
            return
    except RuntimeError:  # there is none, or asyncio.run took it away
        pass
    if not hasattr(_THREAD, "loop") or _THREAD.loop.is_closed():
        try:
            _THREAD.loop = asyncio.new_event_loop()
            _LOOPS[_THREAD.loop] = os.getpid()
        except OSError:  # too many open files; most work needs no loop
            return
    asyncio.set_event_loop(_THREAD.loop)


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
    """A loop's executor that separates calls by their context."""

    def __init__(self, default: Executor | None) -> None:
        super().__init__(thread_name_prefix="asyncio")
        self._others = default

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Hand a call to the threads it belongs to."""
        pool = _CURRENT_POOL.get() or self._others
        return (pool.submit if pool else super().submit)(function, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT002 - as its base has it
        """End the threads that are everybody's; those kept apart are left alone."""
        if self._others is not None:
            self._others.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)


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
            raise InputError(f"the time limit is {timeout_s!r}: seconds, more than 0")
        self.timeout_s = timeout_s
        self.most_hung = most_hung
        self._begin_empty()

    def _begin_empty(self) -> None:
        """Start with nothing that hangs; after a fork that is in the parent alone."""
        self._process = os.getpid()
        self._abandoned: list[Future[Any] | asyncio.Task[Any]] = []
        self._lock = threading.Lock()
        self._calls, self._steps = DaemonPool(), DaemonPool(_MOST_STEPS)

    @property
    def hung(self) -> int:
        """Number of abandoned calls still running, plus coroutine steps in threads that hang."""
        if self.timeout_s is None or self._process != os.getpid():
            return 0
        with self._lock:
            self._abandoned = [call for call in self._abandoned if not call.done()]
            return len(self._abandoned) + self._steps.overdue(self.timeout_s)

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
        future = self._calls.submit(held.run, work)

        def wait() -> Any:
            concurrent.futures.wait([future], self.timeout_s)
            if not future.done():
                self._abandon(future)
            return future.result()

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
        future = self._calls.submit(_pump, context, begin, ready, left)
        try:
            while True:
                try:
                    chunk, error = ready.get(timeout=self.timeout_s)
                except queue.Empty:
                    if not future.done():
                        self._abandon(future)
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

        return await self._within(asyncio.create_task(result_or_error(begin_in_pool)))

    async def astream(self, begin: Callable[[], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        """Yield what the iterator that `begin` makes yields, each within the time.

        Raises
        ------
        TookTooLongError, HangsError
        """
        context = copy_context()  # one for all steps: what a step sets the next one resets
        if self.timeout_s is not None:
            self._refuse()
            context.run(use_daemon_pool, self._steps)
        chunks = context.run(lambda: aiter(begin()))

        async def step() -> Any:
            return await anext(chunks, _END)

        try:
            while True:
                task = asyncio.create_task(result_or_error(step), context=context)
                if (chunk := await self._within(task)) is _END:
                    return
                yield chunk
        finally:
            if hasattr(chunks, "aclose"):
                closing = asyncio.create_task(result_or_error(chunks.aclose), context=context)
                await asyncio.wait({closing}, timeout=self.timeout_s)
                if not closing.done():
                    closing.cancel()

    async def _within(self, task: asyncio.Task[tuple[Any, BaseException | None]]) -> Any:
        try:
            await asyncio.wait({task}, timeout=self.timeout_s)
        except asyncio.CancelledError:  # nobody waits for the answer any more
            task.cancel()
            raise
        if not task.done():
            task.cancel()
            self._abandon(task)
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

    def _abandon(self, call: Future[Any] | asyncio.Task[Any]) -> NoReturn:
        with self._lock:
            self._abandoned.append(call)
        raise TookTooLongError(f"not done within {self.timeout_s:g} s") from None


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


def _put_until_closed(ready: queue.Queue[Any], item: Any, left: threading.Event) -> bool:
    while not left.is_set():
        try:
            ready.put(item, timeout=_POLL_S)
        except queue.Full:
            continue
        return True
    return False


async def result_or_error(begin: Callable[[], Awaitable[Any]]) -> tuple[Any, BaseException | None]:
    """A SystemExit that leaves a task would end the whole event loop."""
    try:
        return await begin(), None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        return None, error


async def map_concurrently(
    items: Iterable[ItemT],
    work: Callable[[ItemT], Awaitable[ResultT]],
    concurrency: int,
    done: Callable[[int, int], object],
    *,
    total: int | None = None,
) -> list[ResultT]:
    """Work on all items and return the results in the items' order.

    Parameters
    ----------
    items, work, concurrency
        As of `stream_concurrently`.
    done : callable
        Called with how many are done, and how many there are.
    total : int or None
        How many items there are; needed where `items` has no length.

    Raises
    ------
    TypeError
        `items` has no length, and `total` is not given.
    """
    if total is None:
        if not isinstance(items, Sized):
            raise TypeError("items without a length need a total")
        total = len(items)
    results: list[ResultT] = []
    finished = 0

    async def counted(item: ItemT) -> ResultT:
        nonlocal finished
        result = await work(item)
        finished += 1
        done(finished, total)
        return result

    await stream_concurrently(items, counted, min(concurrency, max(total, 1)), results.append)
    return results


async def stream_concurrently(
    items: Iterable[ItemT],
    work: Callable[[ItemT], Awaitable[ResultT]],
    concurrency: int,
    keep: Callable[[ResultT], object],
) -> None:
    """Work on all items, and hand on the results in the items' order.

    So many workers take one item after the other: what is held in memory does not grow with the
    number of items, which may be made one by one.

    Parameters
    ----------
    items : iterable
        No item: no result.
    work : async callable
        Called once with each item. The first exception ends the rest and is raised.
    concurrency : int
        How many are under way at once, at least 1.
    keep : callable
        Called with each result as soon as those before it are there.
    """
    waiting = iter(items)
    ready: dict[int, ResultT] = {}
    begun = kept = 0

    async def worker() -> None:
        nonlocal begun, kept
        for item in waiting:
            place, begun = begun, begun + 1
            ready[place] = await work(item)
            while kept in ready:
                keep(ready.pop(kept))
                kept += 1

    workers = [asyncio.create_task(worker()) for _ in range(concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
