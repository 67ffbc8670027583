"""Poll submitted batches and read their answers."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from typing import Any

from misslink.errors import JudgeUnreachableError
from misslink.judge.batch.batch_file import (
    BatchCall,
    BatchLine,
    MissingAnswerError,
    ResubmitError,
    fail_calls,
)
from misslink.judge.batch.scheduler import NOT_FOUND_STATUSES, BatchContext
from misslink.judge.batch.service import BatchService, BatchState
from misslink.judge.batch.store import StoredBatch
from misslink.judge.protocol import RetryableError

_log = logging.getLogger(__name__)
_MAX_FAILED_POLLS = 30  # in a row, about half an hour of them
_MAX_MISSING_POLLS = 5  # in a row that do not find a batch, seen before: one may be wrong
_CLOCK_SKEW_S = 86_400  # more than clocks may differ
_UNSTARTED_STATUSES = ("", "validating", "failed")
_QUEUE_FULL_CODE = "token_limit_exceeded"


class BatchPoller:
    """Polls the batches that callers wait for."""

    def __init__(self, context: BatchContext) -> None:
        self._context = context
        self._service = context.service
        self._store = context.store
        self._scheduler = context.scheduler
        self._calls: dict[int, dict[str, BatchCall]] = {}  # by batch and key
        self._numbers: dict[int, int] = {}
        self._reported: dict[int, tuple[Any, ...]] = {}
        self._polled: set[int] = set()
        self._refused: set[int] = set()  # because the queue was full
        self._started: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self.seen: set[int] = set()  # batches that the server knows under the key of this process

    def attach(self, call: BatchCall, row: int) -> None:
        """Let a call wait for a submitted batch, of this run or another."""
        self._scheduler.count_question()
        call.row = row
        self._calls.setdefault(row, {})[call.key] = call
        if row not in self._polled:
            self._polled.add(row)
            self._scheduler.start(self._poll(row))

    def number(self, row: int) -> int:
        """Return the number of a batch in messages, from 1."""
        return self._numbers.setdefault(row, len(self._numbers) + 1)

    async def wait_until_started(self, row: int) -> None:
        """Wait until the server has accepted or refused a batch."""
        await self._started[row].wait()

    def close(self) -> None:
        """Log which batches continue at the provider."""
        for row, calls in self._calls.items():
            batch = self._store.read(row) if calls else None
            if batch is not None:
                _log.warning(
                    "%s continues at the provider; the same command fetches its answers",
                    self._label(batch),
                )

    async def _poll(self, row: int) -> None:
        """Poll a batch until it has ended, and deliver its answers."""
        import openai

        polls, failures = 0, 0
        while self._calls[row]:
            polls += 1
            problem = None
            try:
                state = await self._state(row)
                failures = 0
                if state is not None and state.over:
                    # More calls may attach to it, and reading it once is cheaper.
                    await self._scheduler.wait_until_idle()
                    with self._scheduler.reading():
                        await self._collect(row, state)
                    polls = 0
            except openai.NotFoundError:
                failures += 1
                self._handle_missing(row, failures)
            except (openai.APIError, ValueError) as error:
                try:
                    problem = self._context.transient_error(error, "show a batch")
                except openai.APIStatusError:
                    raise self._context.no_batch_api() from None
                failures += 1
                if failures >= _MAX_FAILED_POLLS:
                    raise self._unreachable(
                        f"{problem.problem}; its batch continues, and the same command fetches "
                        "the answers"
                    ) from None
            if self._calls[row]:
                await self._context.wait(max(polls, 1), problem)
        self._polled.discard(row)
        self._started[row].set()
        if row not in self._refused or not any(self._calls.values()):
            self._scheduler.has_capacity.set()

    async def _state(self, row: int) -> BatchState | None:
        """The state of a batch; None where it is not known yet."""
        batch = self._store.read(row)
        if batch is None:  # another process found that it brings no answers
            fail_calls(self._pop_calls(row), ResubmitError)
            return None
        if batch.service_id is None:
            state = await find_batch(self._service, batch)
            if state is not None:
                self._store.set_service_id(row, state.id)
            elif not batch.in_submission:
                self._store.drop(row)
                fail_calls(self._pop_calls(row), ResubmitError)
            return state
        state = await self._service.retrieve(batch.service_id)
        self.seen.add(row)
        if state.status not in _UNSTARTED_STATUSES:
            self._started[row].set()
        self._log_progress(batch, state)
        return state

    def _handle_missing(self, row: int, polls: int) -> None:
        """A batch is not found: requested with another account's key, or lost with its answers."""
        batch = self._store.read(row)
        if batch is None:
            return
        if row not in self.seen:
            raise self._unreachable(
                f"it does not know the batch {batch.service_id} of {batch.created[:10]}; give the "
                "key with which it was submitted, or ask again with --engine local"
            )
        if polls >= _MAX_MISSING_POLLS:
            _log.warning("%s does not exist any more", self._label(batch))
            self._store.drop(row)
            fail_calls(self._pop_calls(row), lambda: MissingAnswerError("its batch is gone"))

    async def _collect(self, row: int, state: BatchState) -> None:
        """Read the answers of a batch; each reply is cached before the next line is read."""
        import openai

        if state.status == "failed":
            self._handle_refused(row, state)
            return
        waiting, answered, is_lost, problem = tuple(self._calls[row]), set[str](), False, ""

        async def read_files() -> None:
            nonlocal problem
            keys: set[str] = set()
            for file in filter(None, (state.output, state.errors)):
                problem = await self._read_file(row, file, keys, answered) or problem
            if len(keys) < state.answered:  # the rest was paid for, and may still come
                raise ValueError(f"its files hold {len(keys)} of {state.answered}")

        try:
            await self._context.request(read_files, f"give the answers of batch {state.id}")
        except openai.APIStatusError:
            _log.warning("the answers of batch %s do not exist any more", state.id)
            is_lost = True
        calls = {key: self._calls[row][key] for key in waiting if key in self._calls[row]}
        if calls and answered and not any(map(self._store.knows, answered)):
            self._fail_run(
                f"the answers of its batch {state.id} have other names (custom_id) than its "
                "questions, so they cannot be matched; use --engine local"
            )
            return
        for key in calls:
            del self._calls[row][key]
        if is_lost:
            self._store.drop(row)
            fail_calls(
                calls.values(), lambda: MissingAnswerError("its answer does not exist any more")
            )
            return
        self._store.retain(row, answered)
        if not calls:
            return
        if state.status == "cancelled":
            self._fail_run(
                f"its batch {state.id} was cancelled with {len(calls)} questions open; its answers "
                "are cached, and the same command submits the rest"
            )
            return
        why = "its batch expired" if state.status == "expired" else "its batch returned no answer"
        why += f": {problem}" if problem else ""
        _log.warning("batch %s: %d questions without an answer (%s)", state.id, len(calls), why)
        fail_calls(calls.values(), lambda: RetryableError(why, "server"))

    async def _read_file(self, row: int, file: str, keys: set[str], answered: set[str]) -> str:
        """Deliver the lines of a file; return why a question was not processed, or "".

        The keys of all lines go into `keys`, those of answers into `answered`.
        """
        invalid, problem = 0, ""
        async for raw in self._service.lines(file):
            line = BatchLine.read(raw)
            if line is None:
                invalid += bool(raw.strip())
                continue
            keys.add(line.key)
            if line.status is None:
                problem = self._service.connection.censored(line.problem)
                continue
            if line.good:
                answered.add(line.key)
            call = self._calls[row].pop(line.key, None)
            if call is None:
                continue
            if not line.good:  # released before it is asked again, in another batch
                self._store.release(row, [line.key])
            call.resolve(line)
            await asyncio.sleep(0)
        if invalid:
            _log.warning("%d lines of file %s are not lines of a batch", invalid, file)
        return problem

    def _handle_refused(self, row: int, state: BatchState) -> None:
        """A batch was not started: the queue is full, or its file is not accepted."""
        calls = self._pop_calls(row)
        self._store.drop(row)
        problems = "; ".join(state.problems) or "it gives no reason"
        only_batch = not any(self._calls.values())
        if _QUEUE_FULL_CODE not in state.codes or (only_batch and len(calls) == 1):
            self._fail_run(f"it refuses the batch {state.id}: {problems}")
            return
        self._scheduler.queue_full = True
        self._refused.add(row)
        if only_batch:
            size = max(1, min(self._scheduler.max_questions, len(calls) // 2))
            self._scheduler.max_questions = size
            action = f"it is submitted in parts of {size} questions"
        else:
            self._scheduler.has_capacity.clear()
            action = "it is submitted again when another one has ended"
        _log.warning("batch %s is too large for the queue (%s); %s", state.id, problems, action)
        fail_calls(calls, ResubmitError)

    def _pop_calls(self, row: int) -> list[BatchCall]:
        calls = list(self._calls[row].values())
        self._calls[row].clear()
        return calls

    def _log_progress(self, batch: StoredBatch, state: BatchState) -> None:
        """Log the state of a batch where it has changed."""
        progress = state.status, state.answered, state.failed
        if self._reported.get(batch.row) != progress:
            self._reported[batch.row] = progress
            _log.warning(
                "%s: %s of %s answered%s, %s",
                *(self._label(batch), f"{state.answered:,}", f"{batch.questions:,}"),
                f", {state.failed:,} failed" if state.failed else "",
                state.status.replace("_", " "),
            )

    def _label(self, batch: StoredBatch) -> str:
        return f"batch {self.number(batch.row)} ({batch.service_id or 'no id yet'})"

    def _unreachable(self, why: str) -> JudgeUnreachableError:
        return self._service.connection.unreachable(why)

    def _fail_run(self, why: str) -> None:
        self._scheduler.on_error(self._unreachable(why))


async def find_batch(service: BatchService, batch: StoredBatch) -> BatchState | None:
    """Look in the server's list for a batch whose submission was only announced, or None."""
    import openai

    oldest = batch.created_at.timestamp() - _CLOCK_SKEW_S
    try:
        async for state in service.list_batches():
            if state.token == batch.token or state.input_file == batch.file:
                return state
            if state.created is not None and state.created < oldest:
                break
    except openai.APIStatusError as error:
        if error.status_code not in NOT_FOUND_STATUSES:
            raise
    return None
