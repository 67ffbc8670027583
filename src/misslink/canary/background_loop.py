"""An event loop in a background thread, so that an app that hangs cannot block a run."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

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


class BackgroundLoop:
    """Run coroutines with a time limit on one shared background event loop."""

    # An app's connections and locks expect one loop for all calls. A blocked loop is replaced.

    def __init__(self) -> None:
        self.hung = 0
        self._loop = _start_loop()

    async def run(
        self, work: Callable[[], Coroutine[Any, Any, ResultT]], seconds: float
    ) -> ResultT:
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

        async def within() -> ResultT:
            return await asyncio.get_running_loop().create_task(work(), context=context)

        future = asyncio.run_coroutine_threadsafe(within(), loop)
        done, _ = await asyncio.wait([asyncio.wrap_future(future)], timeout=seconds)
        if done:
            return future.result()
        future.cancel()
        self.hung += 1
        blocked = not await _is_responsive(loop)
        if blocked and self._loop is loop:  # the first of several to find out
            self._loop = _start_loop()
        raise HungError(blocked=blocked)

    def close(self) -> None:
        """Stop the loop; threads that hang are abandoned."""
        self._loop.call_soon_threadsafe(self._loop.stop)


async def _is_responsive(loop: asyncio.AbstractEventLoop) -> bool:
    turn: Future[None] = Future()
    loop.call_soon_threadsafe(turn.set_result, None)
    done, _ = await asyncio.wait([asyncio.wrap_future(turn)], timeout=_RESPONSIVE_S)
    return bool(done)


def _start_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_DaemonExecutor())
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


class _DaemonExecutor(ThreadPoolExecutor):
    """Run each call in a new daemon thread, which blocks neither other calls nor exit."""

    # Python joins the threads of a usual pool at exit, and a call that hangs occupies one forever.

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` in a new daemon thread."""
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 (whoever waits is told)
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=work, name="misslink call", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT002
        """Nothing to wait for."""
