"""What the ways to and from a batch service share: when to wait, and what is under way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from misslink.errors import InputError
from misslink.judging.batches.calls import Call
from misslink.judging.batches.draft import MOST_QUESTIONS
from misslink.judging.batches.timing import Timing
from misslink.judging.models.connection import Connection
from misslink.judging.models.outage import passing
from misslink.judging.protocol import TryAgainError

__all__ = ["NONE_SUCH", "Flow", "Patience", "fail_all"]

Result = TypeVar("Result")

NONE_SUCH = (404, 405)
_LONGEST_TOLD_S = 3600.0  # a batch has a day; who asks for more is asked again before
_TURNS = 5  # of the event loop, in which a question comes through all wrappers


class Patience:
    """Requests to a batch service, repeated where they brought nothing.

    Parameters
    ----------
    connection : Connection
    timing : Timing
    retries : int
        How often a request is repeated.
    """

    def __init__(self, connection: Connection, timing: Timing, retries: int) -> None:
        self._connection = connection
        self._timing = timing
        self._retries = retries

    async def have(self, call: Callable[[], Awaitable[Result]], what: str) -> Result:
        """Return what `call` brings.

        Parameters
        ----------
        call : async callable
            One request.
        what : str
            What the server is wanted to do, for messages.

        Raises
        ------
        openai.APIStatusError
            There is no such thing at the server (404, 405).
        JudgeUnreachableError
            The server refuses, or brought nothing however often it was asked.
        """
        import openai

        tries = 0
        while True:
            tries += 1
            try:
                return await call()
            except (openai.APIError, ValueError) as error:
                trouble = self.bearable(error, what)
                if tries > self._retries:
                    raise self._connection.unreachable(
                        f"it does not {what}: {trouble.problem} (tried {tries} times)"
                    ) from None
            await self.wait(tries, trouble)

    async def wait(self, times: int, trouble: TryAgainError | None = None) -> None:
        """Wait after so many tries, and as long as the server has asked for."""
        told = min((trouble and trouble.after) or 0.0, _LONGEST_TOLD_S)
        await self._timing.sleep(max(self._timing.pause(times), told))

    async def have_of_service(self, call: Callable[[], Awaitable[Result]], what: str) -> Result:
        """As `have`, where a server without the thing has no batches.

        Raises
        ------
        InputError
            It has none.
        """
        import openai

        try:
            return await self.have(call, what)
        except openai.APIStatusError:
            raise self.none_such() from None

    def bearable(self, error: Exception, what: str) -> TryAgainError:
        """Return what is wrong for now; raise what asking again will not mend."""
        import openai

        if not isinstance(error, openai.APIError):
            return TryAgainError(str(error), "server")
        if getattr(error, "status_code", None) in NONE_SUCH:
            raise error
        self._connection.raise_if_pointless(error)
        said = self._connection.said(error)
        trouble = passing(error, said)
        if trouble is None:
            raise self._connection.unreachable(f"it does not {what}: {said}") from None
        return trouble

    def none_such(self) -> InputError:
        """Return the error that says that this server has no batches."""
        name, shown = self._connection.judge, self._connection.shown
        return InputError(
            f"the server of {name} at {shown} has no batch interface (/files and /batches); "
            "use --engine local"
        )


class Flow:
    """How many questions come, how many go out together, and who works on it.

    Parameters
    ----------
    timing : Timing
    ended : callable
        Called with the error after which nothing more can be had.

    Attributes
    ----------
    most : int
        Questions of one batch.
    crowded : bool
        Whether the service has refused a batch since too much was queued there.
    room : asyncio.Event
        Whether it may take more since.
    """

    def __init__(self, timing: Timing, ended: Callable[[Exception], None]) -> None:
        self.timing = timing
        self.ended = ended
        self.most = MOST_QUESTIONS
        self.crowded = False
        self.room = asyncio.Event()
        self.room.set()
        self._gate = asyncio.Lock()
        self._came = self._reading = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def came(self) -> None:
        """A question has come."""
        self._came += 1

    async def quiet(self) -> None:
        """Wait until no further question has come for a moment, and no answers are being read."""
        before = -1
        while before != self._came or self._reading:
            before = self._came
            await self.timing.sleep(self.timing.linger)
            for _ in range(_TURNS):  # whoever was kept from asking by others' work does it now
                await asyncio.sleep(0)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Answers are being read, whatever the pauses between them: more questions may follow."""
        self._reading += 1
        try:
            yield
        finally:
            self._reading -= 1

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a batch may be submitted: one after the other, where the queue was full."""
        await self.room.wait()
        if not self.crowded:
            yield
            return
        async with self._gate:
            await self.room.wait()
            yield

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something be done beside; where it fails, all ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._landed)

    async def close(self) -> None:
        """Stop all that is done beside."""
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self.ended(error)


def fail_all(calls: Iterable[Call], error: Callable[[], Exception]) -> None:
    """Say to each call why there is no line, by an error of its own."""
    for call in calls:
        call.fail(error())
