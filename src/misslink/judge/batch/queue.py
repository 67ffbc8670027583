"""Collect questions, submit them as batches, poll these, and deliver the answers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, NamedTuple, TypeVar

from misslink.errors import InputError
from misslink.io.retry import Backoff
from misslink.judge.backends.connection import ServerError
from misslink.judge.batch.service import (
    MAX_BYTES,
    MAX_QUESTIONS,
    BatchLine,
    BatchService,
    BatchState,
    BatchStore,
    StoredBatch,
)
from misslink.judge.protocol import RetryableError, SkippedAskError

_log = logging.getLogger(__name__)
Result = TypeVar("Result")

_NOT_FOUND_STATUSES = (404, 405)
_MAX_RETRY_AFTER_S = 3600.0  # a batch has a day, so a longer wait is cut short
_BACKOFF_FACTOR = 1.5
_LOOP_TURNS = 5  # turns of the event loop in which a question passes all wrappers
_MAX_UPLOADS = 2  # files of up to 190 MB uploaded at once
_MAX_FAILED_POLLS = 30  # in a row, about half an hour of them
_MAX_MISSING_POLLS = 5  # in a row that do not find a batch, seen before: one may be wrong
_CLOCK_SKEW_S = 86_400  # more than clocks may differ
_QUEUE_FULL_CODE = "token_limit_exceeded"


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


class ResubmitError(SkippedAskError):
    """A question has to start again, as if it had not been submitted."""

    def __init__(self) -> None:
        super().__init__("its batch was not begun")


# What a caller waits for: the row of the batch that has the answer, and its line.
Answer = asyncio.Future[tuple[int, BatchLine]]
Calls = dict[str, Answer]  # by the cache key of the reply


def fail_answers(answers: list[Answer], error: Callable[[], Exception]) -> None:
    """Deliver why there is no line, to each caller with a separate error object."""
    for answer in answers:
        if not answer.done():
            answer.set_exception(error())


def _fail_calls(calls: Calls, error: Callable[[], Exception]) -> None:
    """Take out the calls and fail each."""
    fail_answers(list(calls.values()), error)
    calls.clear()


class _BatchFile(NamedTuple):
    """A growing input file on disk; `calls` are in the order of its lines."""

    file: IO[bytes]
    calls: Calls


@dataclass
class _Batch:
    """A submitted batch, of this run or another, and who waits for it."""

    calls: Calls = field(default_factory=dict)
    progress: tuple[Any, ...] = ()  # as last logged
    is_polled: bool = False
    is_seen: bool = False  # the server knows it under the key of this process
    missed: int = 0  # polls in a row that did not find it


@dataclass(eq=False, repr=False)
class BatchQueue:
    """Submits questions together, and polls the batches that callers wait for.

    Requests are repeated up to `retries` times. `path` is the endpoint of the questions, below the
    base URL. `on_error` is called with the error that ends everything.
    """

    service: BatchService
    store: BatchStore
    timing: BatchTiming
    path: str
    retries: int
    on_error: Callable[[Exception], None]

    def __post_init__(self) -> None:
        self.max_questions = MAX_QUESTIONS
        self.queue_full = False  # the server has refused a batch because its queue was full
        self._connection = self.service.connection
        self._backoff = Backoff(self.timing.first, self.timing.longest, _BACKOFF_FACTOR)
        self._ended = asyncio.Event()  # set when a batch has ended
        self._submitting = asyncio.Lock()
        self._uploads = asyncio.Semaphore(_MAX_UPLOADS)
        self._next: _BatchFile | None = None
        self._questions = 0
        self.reading = (
            0  # batches whose answers are being read, which may lead to further questions
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._batches: defaultdict[int, _Batch] = defaultdict(_Batch)

    async def check_service(self) -> None:
        """Raise where the server has no batch API or is unreachable, before anything is paid."""
        with contextlib.suppress(ServerError):  # a server that accepts batches need not list them
            await self._request(self.service.check, "list its batches", missing=(405,))

    def add(self, key: str, line: bytes) -> Answer:
        """Add a question to the next batch."""
        self._questions += 1
        batch_file = self._next
        if batch_file is not None and (
            len(batch_file.calls) >= self.max_questions
            or batch_file.file.tell() + len(line) > MAX_BYTES
        ):
            self._start(self._submit(batch_file))
            self._next = None
        try:
            if self._next is None:
                self._next = _BatchFile(tempfile.TemporaryFile(), {})  # noqa: SIM115 (`_submit` closes it)
                self._start(self._collect())
            self._next.file.write(line)
        except OSError as error:
            raise InputError(
                f"the questions of a batch cannot be written ({error.strerror}); free some space "
                "there, or name another folder in TMPDIR",
                path=tempfile.gettempdir(),
            ) from None
        answer = self._next.calls[key] = asyncio.get_running_loop().create_future()
        return answer

    def attach(self, key: str, row: int, answer: Answer | None = None) -> Answer:
        """Let a question wait for a submitted batch, of this run or another."""
        self._questions += 1
        batch = self._batches[row]
        answer = batch.calls[key] = answer or asyncio.get_running_loop().create_future()
        if not batch.is_polled:
            batch.is_polled = True
            self._start(self._poll(row, batch))
        return answer

    async def close(self) -> None:
        """Stop all background tasks, and log which batches continue at the provider."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._next is not None:
            self._next.file.close()
        for row, batch in self._batches.items():
            stored = self.store.read(row) if batch.calls else None
            if stored is not None:
                _log.warning(
                    "batch %s continues at the provider; the same command fetches its answers",
                    stored.service_id or "(no id yet)",
                )

    async def wait_until_idle(self) -> None:
        """Wait until no further question comes for a moment, and no answers are being read."""
        before = -1
        while before != self._questions or self.reading:
            before = self._questions
            await self.timing.sleep(self.timing.linger)
            for _ in range(_LOOP_TURNS):  # callers that were blocked by other work ask now
                await asyncio.sleep(0)

    @contextlib.asynccontextmanager
    async def submission_turn(self) -> AsyncIterator[None]:
        """Wait until a batch may be submitted: when no other is out, once the queue was full."""
        if not self.queue_full:
            yield
            return
        async with self._submitting:
            while self._is_waiting:
                self._ended.clear()
                await self._ended.wait()
            yield

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a background task; an error in it ends everything."""

        def on_done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            error = None if task.cancelled() else task.exception()
            if isinstance(error, Exception):
                self.on_error(error)

        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(on_done)

    async def _collect(self) -> None:
        """Submit the next batch once no further question comes."""
        await self.wait_until_idle()
        batch_file, self._next = self._next, None
        if batch_file is not None:
            await self._submit(batch_file)

    async def _submit(self, batch_file: _BatchFile) -> None:
        calls = batch_file.calls
        with batch_file.file:
            async with self.submission_turn():
                if len(calls) > self.max_questions:  # it was filled before the queue was full
                    _fail_calls(calls, ResubmitError)
                    return
                name = f"misslink-{len(calls)}-questions.jsonl"
                async with self._uploads:
                    file = await self._request(
                        lambda: self.service.upload(name, batch_file.file),
                        "take the file of a batch",
                    )
                await self._create(file, calls)

    async def _create(self, file: str, calls: Calls) -> None:
        """Create a batch of an uploaded file once, also where the server's answer to that is lost."""
        stored = self.store.reserve(file, tuple(calls))
        if stored is None:  # another process submitted one of them first; its batch shows now
            with contextlib.suppress(ServerError):
                await self.service.discard(file)
            _fail_calls(calls, ResubmitError)
            return
        was_tried = False

        async def create() -> BatchState:
            nonlocal was_tried
            existing = await self._find(stored) if was_tried else None
            was_tried = True
            if existing is not None:
                return existing
            try:
                return await self.service.create(file, self.path)
            except ServerError as error:
                if not isinstance(self._connection.meaning(error), RetryableError):
                    self.store.drop(stored.row)  # it will never exist
                raise

        state = await self._request(create, "make a batch")
        self.store.set_service_id(stored.row, state.id)
        for key, answer in calls.items():
            self.attach(key, stored.row, answer)
        self._batches[stored.row].is_seen = True
        _log.warning(
            "%d question%s submitted as batch %s; it may take a day, and after an interruption the "
            "same command continues with it",
            *(len(calls), " is" if len(calls) == 1 else "s are", state.id),
        )

    async def _poll(self, row: int, batch: _Batch) -> None:
        """Poll a batch until it has ended, and deliver its answers."""
        polls = 0
        while batch.calls:
            state = await self._request(
                lambda: self._state(row, batch),
                "show a batch, which continues; the same command fetches its answers",
                retries=_MAX_FAILED_POLLS,
            )
            if state is not None and state.over:
                # More calls may attach to it, and reading it once is cheaper.
                await self.wait_until_idle()
                self.reading += 1
                try:
                    await self._deliver(row, batch, state)
                finally:
                    self.reading -= 1
                polls = 0
            if batch.calls:
                polls += 1
                await self._wait(polls)
        batch.is_polled = False
        self._ended.set()

    async def _state(self, row: int, batch: _Batch) -> BatchState | None:
        """The state of a batch; None where it is not known yet, or gone."""
        stored = self.store.read(row)
        if stored is None:  # another process found that it brings no answers
            _fail_calls(batch.calls, ResubmitError)
            return None
        if stored.service_id is None:
            state = await self._find(stored)
            if state is not None:
                self.store.set_service_id(row, state.id)
            elif not stored.in_submission:
                self.store.drop(row)
                _fail_calls(batch.calls, ResubmitError)
            return state
        try:
            state = await self.service.retrieve(stored.service_id)
        except ServerError as error:
            if error.status != _NOT_FOUND_STATUSES[0]:
                raise
            self._handle_missing(stored, batch)
            return None
        batch.is_seen, batch.missed = True, 0
        progress = state.status, state.answered, state.failed
        if batch.progress != progress:
            batch.progress = progress
            _log.warning(
                "batch %s: %s of %s answered%s, %s",
                *(state.id, f"{state.answered:,}", f"{stored.questions:,}"),
                f", {state.failed:,} failed" if state.failed else "",
                state.status.replace("_", " "),
            )
        return state

    def _handle_missing(self, stored: StoredBatch, batch: _Batch) -> None:
        """A batch is not found: requested with another account's key, or lost with its answers."""
        if not batch.is_seen:
            raise self._connection.unreachable(
                f"it does not know the batch {stored.service_id} of {stored.created[:10]}; give the "
                "key with which it was submitted, or ask again with --engine local"
            )
        batch.missed += 1
        if batch.missed >= _MAX_MISSING_POLLS:
            _log.warning("batch %s does not exist any more", stored.service_id)
            self.store.drop(stored.row)
            # As out of time: the server may charge for what is lost.
            _fail_calls(batch.calls, partial(RetryableError, "its batch is gone", "time"))

    async def _deliver(self, row: int, batch: _Batch, state: BatchState) -> None:
        """Read the answers of a batch; each reply is cached before the next line is read."""
        if state.status == "failed":
            self._handle_refused(row, batch, state)
            return
        waiting, answered, is_lost, problem = tuple(batch.calls), set[str](), False, ""

        try:
            action = f"give the answers of batch {state.id}"
            problem = await self._request(
                lambda: self._read_answers(row, batch, state, answered),
                action,
                missing=_NOT_FOUND_STATUSES,
            )
        except ServerError:
            _log.warning("the answers of batch %s do not exist any more", state.id)
            is_lost = True
        calls = {key: batch.calls[key] for key in waiting if key in batch.calls}
        if calls and answered and not any(map(self.store.knows, answered)):
            raise self._connection.unreachable(
                f"the answers of its batch {state.id} have other names (custom_id) than its "
                "questions, so they cannot be matched; use --engine local"
            )
        for key in calls:
            del batch.calls[key]
        if is_lost:
            self.store.drop(row)
            why = "its answer does not exist any more"
            _fail_calls(calls, partial(RetryableError, why, "time"))
            return
        self.store.retain(row, answered)
        if not calls:
            return
        if state.status == "cancelled":
            raise self._connection.unreachable(
                f"its batch {state.id} was cancelled with {len(calls)} questions open; its answers "
                "are cached, and the same command submits the rest"
            )
        why = "its batch expired" if state.status == "expired" else "its batch returned no answer"
        why += f": {problem}" if problem else ""
        _log.warning("batch %s: %d questions without an answer (%s)", state.id, len(calls), why)
        _fail_calls(calls, lambda: RetryableError(why, "server"))

    async def _read_answers(
        self, row: int, batch: _Batch, state: BatchState, answered: set[str]
    ) -> str:
        """Deliver all lines of a batch; return why a question was not processed, or ""."""
        keys, problem = set[str](), ""
        for file in filter(None, (state.output, state.errors)):
            warned = False
            async for raw in self.service.lines(file):
                line = BatchLine.read(raw)
                if line is None:
                    if (
                        raw.strip() and not warned
                    ):  # at once: the run may end with the last good line
                        _log.warning("file %s has invalid lines, which are ignored", file)
                        warned = True
                    continue
                keys.add(line.key)
                if line.status is None:
                    problem = self._connection.censored(line.problem)
                    continue
                if line.good:
                    answered.add(line.key)
                if answer := batch.calls.pop(line.key, None):
                    if not line.good:  # released before it is asked again, in another batch
                        self.store.remove(row, line.key)
                    if not answer.done():
                        answer.set_result((row, line))
                    await asyncio.sleep(0)
        if len(keys) < state.answered:  # the rest was paid for, and may still come
            raise RetryableError(f"its files hold {len(keys)} of {state.answered}", "server")
        return problem

    def _handle_refused(self, row: int, batch: _Batch, state: BatchState) -> None:
        """A batch was not started: the queue is full, or its file is not accepted."""
        calls = dict(batch.calls)
        batch.calls.clear()
        self.store.drop(row)
        problems = "; ".join(state.problems) or "it gives no reason"
        is_only_batch = not self._is_waiting
        if _QUEUE_FULL_CODE not in state.codes or (is_only_batch and len(calls) == 1):
            raise self._connection.unreachable(f"it refuses the batch {state.id}: {problems}")
        self.queue_full = True
        action = "it is submitted again when the others have ended"
        if is_only_batch:
            self.max_questions = max(1, min(self.max_questions, len(calls) // 2))
            action = f"it is submitted in parts of {self.max_questions} questions"
        _log.warning("batch %s is too large for the queue (%s); %s", state.id, problems, action)
        _fail_calls(calls, ResubmitError)

    async def _find(self, stored: StoredBatch) -> BatchState | None:
        """Look in the server's list for a batch whose submission was only announced, or None."""
        oldest = stored.created_at.timestamp() - _CLOCK_SKEW_S
        try:
            async for state in self.service.list_batches():
                if state.input_file == stored.file:
                    return state
                if state.created is not None and state.created < oldest:
                    break
        except ServerError as error:
            if error.status not in _NOT_FOUND_STATUSES:
                raise
        return None

    @property
    def _is_waiting(self) -> bool:
        return any(batch.calls for batch in self._batches.values())

    async def _request(
        self,
        call: Callable[[], Awaitable[Result]],
        action: str,
        *,
        missing: tuple[int, ...] = (),
        retries: int | None = None,
    ) -> Result:
        """Return the result of `call`, one request; `action` completes "it does not ...".

        A missing object (404, 405) means that the server has no batch API, unless its status is among
        those of `missing`: then the `ServerError` is raised.
        """
        tries = 0
        while True:
            tries += 1
            try:
                return await call()
            except RetryableError as error:
                problem = error
            except ServerError as error:
                if error.status in missing:
                    raise
                if error.status in _NOT_FOUND_STATUSES:
                    raise InputError(
                        f"the server of {self._connection.place} has no batch API (/files and /batches); "
                        "use --engine local"
                    ) from None
                meaning = self._connection.meaning(error)
                if not isinstance(meaning, RetryableError):
                    why = f"it does not {action}: {self._connection.error_message(error)}"
                    raise (meaning or self._connection.unreachable(why)) from None
                problem = meaning
            if tries > (self.retries if retries is None else retries):
                raise self._connection.unreachable(
                    f"it does not {action}: {problem.problem} (tried {tries} times)"
                )
            await self._wait(tries, problem.after or 0.0)

    async def _wait(self, times: int, retry_after: float = 0.0) -> None:
        """Wait after so many tries, and as long as the server asks for."""
        least = min(retry_after, _MAX_RETRY_AFTER_S)
        await self.timing.sleep(max(self._backoff.wait_s(times), least))
