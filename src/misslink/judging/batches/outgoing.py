"""From questions to batches: drafted, uploaded, noted, submitted."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from misslink.judging.batches.calls import AnewError, Call
from misslink.judging.batches.draft import Draft
from misslink.judging.batches.flow import NONE_SUCH, Flow, Patience, fail_all
from misslink.judging.batches.incoming import Incoming, search
from misslink.judging.batches.notes import Noted, Notes
from misslink.judging.batches.service import Service, State
from misslink.judging.models.outage import passing

__all__ = ["Outgoing"]

_log = logging.getLogger(__name__)
_UPLOADS = 2  # files on their way at once, of up to 190 MB


class Outgoing:
    """Submits questions together.

    Parameters
    ----------
    service : Service
    path : str
        Of the judge's interface, below the base URL.
    notes : Notes
    flow : Flow
    patience : Patience
    incoming : Incoming
        Looks after what is submitted.
    """

    def __init__(
        self,
        service: Service,
        path: str,
        notes: Notes,
        flow: Flow,
        patience: Patience,
        incoming: Incoming,
    ) -> None:
        self._service = service
        self._path = path
        self._notes = notes
        self._flow = flow
        self._patience = patience
        self._incoming = incoming
        self._draft: Draft | None = None
        self._gathering = False
        self._uploads = asyncio.Semaphore(_UPLOADS)

    async def offered(self) -> None:
        """See that the server has batches at all, before anything is paid.

        Raises
        ------
        InputError
            It has none.
        JudgeUnreachableError
            Nobody answers, or the key is refused.
        """
        import openai

        try:
            await self._patience.have(self._service.offered, "list its batches")
        except openai.APIStatusError as error:
            # A server that makes batches need not list them, and then says so by 405.
            if error.status_code == NONE_SUCH[0]:
                raise self._patience.none_such() from None

    def send(self, call: Call, line: bytes) -> None:
        """Let a call go out with the next batch."""
        self._flow.came()
        if self._draft is not None and not self._draft.takes(line):
            self._flow.start(self._submit(self._draft))
            self._draft = None
        if self._draft is None:
            self._draft = Draft(self._flow.most)
        self._draft.add(call, line)
        if not self._gathering:
            self._gathering = True
            self._flow.start(self._gather())

    def close(self) -> None:
        """Remove what is not submitted."""
        if self._draft is not None:
            self._draft.close()

    async def _gather(self) -> None:
        """Submit the draft once no further question comes."""
        await self._flow.quiet()
        draft, self._draft, self._gathering = self._draft, None, False
        if draft is not None:
            await self._submit(draft)

    async def _submit(self, draft: Draft) -> None:
        try:
            async with self._flow.turn():
                if len(draft.calls) > self._flow.most:  # it was begun before the queue was full
                    fail_all(draft.calls.values(), AnewError)
                else:
                    await self._submit_now(draft)
        finally:
            draft.close()

    async def _submit_now(self, draft: Draft) -> None:
        import openai

        calls = draft.calls
        name = f"misslink-{len(calls)}-questions.jsonl"
        async with self._uploads:
            file = await self._patience.have_of_service(
                lambda: self._service.upload(name, draft.file), "take the file of a batch"
            )
        draft.close()
        noted = self._notes.intend(file, tuple(calls))
        if noted is None:  # another process was first with one of them: where it is out shows now
            with contextlib.suppress(openai.APIError):
                await self._service.discard(file)
            fail_all(calls.values(), AnewError)
            return
        state = await self._create(noted)
        self._notes.name(noted.row, state.id)
        self._incoming.seen(noted.row)
        for call in calls.values():
            self._incoming.attach(call, noted.row)
        _log.warning(
            "batch %d is submitted: %d question%s as %s; it may take a day, and interrupted, the "
            "same command goes on with it",
            *(self._incoming.number(noted.row), len(calls), "s" * (len(calls) > 1), state.id),
        )
        if self._flow.crowded:
            await self._incoming.begun(noted.row)

    async def _create(self, noted: Noted) -> State:
        """Make a batch once, also where the answer that it was made is lost."""
        import openai

        tried = False

        async def create() -> State:
            nonlocal tried
            made = await search(self._service, noted) if tried else None
            tried = True
            if made is not None:
                return made
            try:
                return await self._service.create(noted.file, self._path, noted.token)
            except openai.APIStatusError as error:
                if passing(error, "") is None:  # there is none, and none will be
                    self._notes.drop(noted.row)
                raise

        return await self._patience.have_of_service(create, "make a batch")
