"""Collect questions and submit them as batches."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from misslink.judge.backends.connection import transient_openai_error
from misslink.judge.batch.batch_file import BatchCall, BatchFile, ResubmitError, fail_calls
from misslink.judge.batch.poll import BatchPoller, find_batch
from misslink.judge.batch.scheduler import NOT_FOUND_STATUSES, BatchContext
from misslink.judge.batch.service import BatchState
from misslink.judge.batch.store import StoredBatch

_log = logging.getLogger(__name__)
_MAX_UPLOADS = 2  # files of up to 190 MB uploaded at once


class BatchSubmitter:
    """Submits questions together; `poller` polls what is submitted."""

    def __init__(self, context: BatchContext, poller: BatchPoller) -> None:
        self._context = context
        self._service = context.service
        self._store = context.store
        self._scheduler = context.scheduler
        self._poller = poller
        self._next: BatchFile | None = None
        self._collecting = False
        self._uploads = asyncio.Semaphore(_MAX_UPLOADS)

    async def check_service(self) -> None:
        """Raise where the server has no batch API or is unreachable, before anything is paid."""
        import openai

        try:
            await self._context.request(self._service.check, "list its batches")
        except openai.APIStatusError as error:
            # A server that accepts batches need not list them; then its status is 405.
            if error.status_code == NOT_FOUND_STATUSES[0]:
                raise self._context.no_batch_api() from None

    def add(self, call: BatchCall, line: bytes) -> None:
        """Add a call to the next batch."""
        self._scheduler.count_question()
        if self._next is not None and not self._next.takes(line):
            self._scheduler.start(self._submit(self._next))
            self._next = None
        if self._next is None:
            self._next = BatchFile(self._scheduler.max_questions)
        self._next.add(call, line)
        if not self._collecting:
            self._collecting = True
            self._scheduler.start(self._collect())

    def close(self) -> None:
        """Remove what is not submitted."""
        if self._next is not None:
            self._next.file.close()

    async def _collect(self) -> None:
        """Submit the next batch once no further question comes."""
        await self._scheduler.wait_until_idle()
        batch_file, self._next, self._collecting = self._next, None, False
        if batch_file is not None:
            await self._submit(batch_file)

    async def _submit(self, batch_file: BatchFile) -> None:
        with batch_file.file:
            async with self._scheduler.submission_turn():
                if len(batch_file.calls) <= self._scheduler.max_questions:
                    await self._upload_and_create(batch_file)
                else:  # it was filled before the queue was full
                    fail_calls(batch_file.calls.values(), ResubmitError)

    async def _upload_and_create(self, batch_file: BatchFile) -> None:
        import openai

        calls = batch_file.calls
        name = f"misslink-{len(calls)}-questions.jsonl"
        async with self._uploads:
            file = await self._context.request_service(
                lambda: self._service.upload(name, batch_file.file), "take the file of a batch"
            )
        batch_file.file.close()
        batch = self._store.reserve(file, tuple(calls))
        if batch is None:  # another process submitted one of them first; its batch shows now
            with contextlib.suppress(openai.APIError):
                await self._service.discard(file)
            fail_calls(calls.values(), ResubmitError)
            return
        state = await self._create(batch)
        self._store.set_service_id(batch.row, state.id)
        self._poller.seen.add(batch.row)
        for call in calls.values():
            self._poller.attach(call, batch.row)
        _log.warning(
            "batch %d is submitted: %d question%s as %s; it may take a day, and after an "
            "interruption the same command continues with it",
            *(self._poller.number(batch.row), len(calls), "s" * (len(calls) > 1), state.id),
        )
        if self._scheduler.queue_full:
            await self._poller.wait_until_started(batch.row)

    async def _create(self, batch: StoredBatch) -> BatchState:
        """Create a batch once, also where the server's answer to that is lost."""
        import openai

        tried = False

        async def create() -> BatchState:
            nonlocal tried
            existing = await find_batch(self._service, batch) if tried else None
            tried = True
            if existing is not None:
                return existing
            try:
                return await self._service.create(batch.file, self._context.path, batch.token)
            except openai.APIStatusError as error:
                if transient_openai_error(error, "") is None:  # it will never exist
                    self._store.drop(batch.row)
                raise

        return await self._context.request_service(create, "make a batch")
