"""When batches are submitted, polled and retried, and what the parts of a batch judge share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from misslink.errors import InputError
from misslink.io.retry import Backoff
from misslink.judge.backends.connection import transient_openai_error
from misslink.judge.batch.batch_file import MAX_QUESTIONS
from misslink.judge.batch.service import BatchService
from misslink.judge.batch.store import BatchStore
from misslink.judge.protocol import RetryableError

Result = TypeVar("Result")

NOT_FOUND_STATUSES = (404, 405)
_MAX_RETRY_AFTER_S = 3600.0  # a batch has a day, so a longer wait is cut short
_BACKOFF_FACTOR = 1.5
_LOOP_TURNS = 5  # turns of the event loop in which a question passes all wrappers


@dataclass(frozen=True)
class BatchTiming:
    """Seconds to wait.

    Questions are submitted together `linger` after the last one came. A batch is polled again
    after `first`, then 1.5 times as long each time up to `longest`. `sleep` does the waiting.
    """

    linger: float = 1.5
    first: float = 5.0
    longest: float = 60.0
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def pause(self, times: int) -> float:
        """Seconds to wait after polling so many times, from 1."""
        return Backoff(self.first, self.longest, _BACKOFF_FACTOR).wait_s(times)


class BatchScheduler:
    """Counts the questions that come, limits the size of batches, and runs background tasks.

    `on_error` is called with the error that ends everything. `max_questions` limits a batch.
    `queue_full` says whether the server has refused a batch because its queue was full, and
    `has_capacity` is set while it may accept more.
    """

    def __init__(self, timing: BatchTiming, on_error: Callable[[Exception], None]) -> None:
        self.on_error = on_error
        self.max_questions = MAX_QUESTIONS
        self.queue_full = False
        self.has_capacity = asyncio.Event()
        self.has_capacity.set()
        self._timing = timing
        self._submitting = asyncio.Lock()
        self._questions = self._reading = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def count_question(self) -> None:
        """Count a question that came."""
        self._questions += 1

    async def wait_until_idle(self) -> None:
        """Wait until no further question comes for a moment, and no answers are being read."""
        before = -1
        while before != self._questions or self._reading:
            before = self._questions
            await self._timing.sleep(self._timing.linger)
            for _ in range(_LOOP_TURNS):  # callers that were blocked by other work ask now
                await asyncio.sleep(0)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Mark that answers are being read, which may lead to further questions."""
        self._reading += 1
        try:
            yield
        finally:
            self._reading -= 1

    @contextlib.asynccontextmanager
    async def submission_turn(self) -> AsyncIterator[None]:
        """Wait until a batch may be submitted; one by one once the queue was full."""
        await self.has_capacity.wait()
        if not self.queue_full:
            yield
            return
        async with self._submitting:
            await self.has_capacity.wait()
            yield

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a background task; an error in it ends everything."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    async def close(self) -> None:
        """Cancel all background tasks."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self.on_error(error)


@dataclass(frozen=True)
class BatchContext:
    """What the parts of a batch judge share, and requests repeated up to `retries` times.

    `path` is the endpoint of the questions, below the base URL.
    """

    service: BatchService
    store: BatchStore
    scheduler: BatchScheduler
    timing: BatchTiming
    path: str
    retries: int

    async def request(self, call: Callable[[], Awaitable[Result]], action: str) -> Result:
        """Return the result of `call`, one request; `action` completes "it does not ...".

        Raises
        ------
        openai.APIStatusError
            The server does not have the requested object (404, 405).
        JudgeUnreachableError
            The server refuses, or all tries failed.
        """
        import openai

        tries = 0
        while True:
            tries += 1
            try:
                return await call()
            except (openai.APIError, ValueError) as error:
                problem = self.transient_error(error, action)
                if tries > self.retries:
                    raise self.service.connection.unreachable(
                        f"it does not {action}: {problem.problem} (tried {tries} times)"
                    ) from None
            await self.wait(tries, problem)

    async def request_service(self, call: Callable[[], Awaitable[Result]], action: str) -> Result:
        """Like `request`, but a missing object means that the server has no batch API."""
        import openai

        try:
            return await self.request(call, action)
        except openai.APIStatusError:
            raise self.no_batch_api() from None

    async def wait(self, times: int, problem: RetryableError | None = None) -> None:
        """Wait after so many tries, and as long as the server asks for."""
        retry_after = min((problem and problem.after) or 0.0, _MAX_RETRY_AFTER_S)
        await self.timing.sleep(max(self.timing.pause(times), retry_after))

    def transient_error(self, error: Exception, action: str) -> RetryableError:
        """Return the error as one worth a retry; raise where a retry cannot help."""
        import openai

        if not isinstance(error, openai.APIError):
            return RetryableError(str(error), "server")
        if getattr(error, "status_code", None) in NOT_FOUND_STATUSES:
            raise error
        self.service.connection.raise_if_pointless(error)
        message = self.service.connection.error_message(error)
        problem = transient_openai_error(error, message)
        if problem is None:
            raise self.service.connection.unreachable(f"it does not {action}: {message}") from None
        return problem

    def no_batch_api(self) -> InputError:
        """Return the error that says that this server has no batch API."""
        connection = self.service.connection
        return InputError(
            f"the server of {connection.judge} at {connection.display_url} has no batch API (/files and /batches); "
            "use --engine local"
        )
