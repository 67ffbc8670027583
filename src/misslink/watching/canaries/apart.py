"""An event loop in a thread that nobody has to wait for: what an app under test may hang in.

A callable that never returns cannot be ended in Python, only left behind. Here it is left in a
daemon thread, which does not keep the process from ending, and the others go on.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["Apart", "HungError"]

Result = TypeVar("Result")

_RESPONSIVE_S = 2.0  # an event loop that does not take a turn in this time is blocked


class HungError(Exception):
    """It did not end in its time and was left behind.

    Parameters
    ----------
    blocked : bool
        Whether the event loop itself stood still, so that what ran beside it is lost too.
    """

    def __init__(self, *, blocked: bool) -> None:
        super().__init__("blocked" if blocked else "hung")
        self.blocked = blocked


class Apart:
    """Runs coroutines on an event loop of its own, each for a bounded time.

    All share one loop, as the parts of an app (its connections, its locks) expect. A loop that
    was blocked by a call that should have been awaited is left behind too, and a new one made.

    Attributes
    ----------
    hung : int
        How many were left behind; their threads may still run.
    """

    def __init__(self) -> None:
        self.hung = 0
        self._loop = _started()

    async def run(self, work: Callable[[], Coroutine[Any, Any, Result]], seconds: float) -> Result:
        """Run what `work` makes, and return what it returns.

        Parameters
        ----------
        work : callable
            Called in the other thread.
        seconds : float
            How long it may take, more than 0.

        Raises
        ------
        HungError
            It took longer.
        """
        loop = self._loop
        context = contextvars.copy_context()

        async def within() -> Result:
            return await asyncio.get_running_loop().create_task(work(), context=context)

        future = asyncio.run_coroutine_threadsafe(within(), loop)
        done, _ = await asyncio.wait([asyncio.wrap_future(future)], timeout=seconds)
        if done:
            return future.result()
        future.cancel()
        self.hung += 1
        blocked = not await _takes_turns(loop)
        if blocked and self._loop is loop:  # the first of several to find out
            self._loop = _started()
        raise HungError(blocked=blocked)

    def close(self) -> None:
        """Stop the loop; what hangs in a thread of its own is left there."""
        self._loop.call_soon_threadsafe(self._loop.stop)


async def _takes_turns(loop: asyncio.AbstractEventLoop) -> bool:
    turn: Future[None] = Future()
    loop.call_soon_threadsafe(turn.set_result, None)
    done, _ = await asyncio.wait([asyncio.wrap_future(turn)], timeout=_RESPONSIVE_S)
    return bool(done)


def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_Daemons())
    # Nobody reads what a task that was left behind raises in the end.
    loop.set_exception_handler(lambda *_: None)

    def live() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    threading.Thread(target=live, name="misslink app", daemon=True).start()
    return loop


class _Daemons(ThreadPoolExecutor):
    """A thread for each call, none of which keeps the process alive or the next call waiting.

    The threads of a usual pool are joined when Python ends, and one that hangs holds a place in
    it for ever.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` in a thread of its own."""
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                found = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 (whoever waits is told)
                future.set_exception(error)
            else:
                future.set_result(found)

        threading.Thread(target=work, name="misslink call", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT002
        """Nothing to wait for."""
