"""A judge asked in batches: each question waits for its line, and all go out together."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from misslink.errors import InputError, JudgeUnreachableError, MisslinkError
from misslink.judging.batches.calls import AnewError, Call, LostError, line_of
from misslink.judging.batches.flow import Flow, Patience
from misslink.judging.batches.incoming import Incoming
from misslink.judging.batches.notes import Notes
from misslink.judging.batches.outgoing import Outgoing
from misslink.judging.batches.service import Service
from misslink.judging.batches.timing import Timing
from misslink.judging.models.openai import OpenAIJudge
from misslink.judging.protocol import Ask, Judge, NotAskedError, Reply, TryAgainError
from misslink.judging.terms import Price, Terms
from misslink.judging.wrappers.budget import Budget
from misslink.judging.wrappers.ledger import identity_text, reply_key

__all__ = ["InBatches"]

_log = logging.getLogger(__name__)


class InBatches:
    """A judge behind a server whose questions go out in batches.

    The question that shows what its server takes is put live; an earlier run may have shown it.
    All others are worded as they would be live, wait until no further one comes, and go out
    together. What is out is noted in the ledger's file under the keys of the replies, so that
    another process, after this one or beside it, waits for the same batch.

    Parameters
    ----------
    live : Judge
        Puts a question at once: the throttle around the budget around the bare judge.
    budget : Budget
        The one in it.
    bare : OpenAIJudge
    ledger : Path
        The file of the ledger that will ask this judge.
    terms : Terms
    timing : Timing
    """

    def __init__(
        self,
        live: Judge,
        budget: Budget,
        bare: OpenAIJudge,
        ledger: Path,
        terms: Terms,
        timing: Timing,
    ) -> None:
        self.judge = live
        self.name: str = bare.name
        self.identity: Mapping[str, Any] = bare.identity
        self.note: str | None = getattr(bare, "note", None)
        self.share = terms.batch_price
        self.questions = 0  # answered in batches
        self._prompt_tokens = self._completion_tokens = 0
        self._bare = bare
        self._budget = budget
        self._terms = terms
        self._timing = timing
        self._ledger = ledger
        self._identity = identity_text(bare)
        self._notes: Notes | None = None
        self._service = Service(bare.connection, terms.timeout)
        self._incoming: Incoming | None = None
        self._outgoing: Outgoing | None = None
        self._flow: Flow | None = None
        self._opening: asyncio.Task[None] | None = None
        self._first: asyncio.Event | None = None
        self._calls: set[Call] = set()
        self._dear: deque[tuple[Call, bytes]] = deque()  # kept back by the budget
        self._ending: Exception | None = None
        self._capped = False  # people were told
        self._clock: asyncio.TimerHandle | None = None

    async def ask(self, ask: Ask) -> Reply:
        """Put `ask` with the next batch, or wait for the one in which it is out.

        Raises
        ------
        InputError
            The server has no batches.
        JudgeUnreachableError
            It cannot be asked, or refuses a batch; what is paid for is kept.
        NotAskedError
            The budget or the time of the run is used up.
        """
        key = reply_key(ask, self._identity)
        tries = 0
        await self._open()
        while True:
            self._refuse_if_over()
            out = self._noted.row_of(key) is not None
            if not out and (reply := await self._first_of_all(ask)) is not None:
                return reply
            try:
                return await self._put(key, ask)
            except AnewError:  # and where another process fetched it, it is not asked again
                if (kept := self._noted.kept(key, ask)) is not None:
                    return kept
            except TryAgainError as trouble:
                tries += 1
                if tries > self._terms.retries:
                    times = "once" if tries == 1 else f"{tries} times"
                    return Reply.nothing(f"{trouble.problem} (tried {times}, in batches)")

    @property
    def settled(self) -> bool:
        """Whether it is known what the server takes, so that no question is put live."""
        return bool(self._bare.abilities)

    def is_out(self, ask: Ask) -> bool:
        """Whether a question is out in a batch whose answers are not fetched."""
        return self._noted.row_of(reply_key(ask, self._identity)) is not None

    def line_bytes(self, ask: Ask) -> int:
        """How long the line is by which a question goes out."""
        key = reply_key(ask, self._identity)
        return len(line_of(key, self._bare.path, self._bare.request(ask)))

    def saved(self, price: Price) -> float:
        """How much less was paid for what came in batches than it would have cost live."""
        return (1 - self.share) * price.of(self._prompt_tokens, self._completion_tokens)

    async def close(self) -> None:
        """Look no further; what is out is noted, and stays out."""
        if self._clock is not None:
            self._clock.cancel()
        if self._opening is not None:
            self._opening.cancel()
        if self._flow is not None:
            await self._flow.close()
        self._end(JudgeUnreachableError("the run has ended"))
        if self._outgoing is not None:
            self._outgoing.close()
        if self._notes is not None:
            if self._incoming is not None:
                self._incoming.close()
            self._notes.tidy()
            self._notes.close()
        await self.judge.close()

    @property
    def _noted(self) -> Notes:
        if self._notes is None:
            self._notes = Notes(self._ledger, self._identity, self.name)
        return self._notes

    async def _open(self) -> None:
        """See once that the server has batches, and what is out from before."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._see())
        await asyncio.shield(self._opening)

    async def _see(self) -> None:
        notes = self._noted
        notes.tidy()
        self._flow = Flow(self._timing, self._end)
        patience = Patience(self._bare.connection, self._timing, self._terms.retries)
        self._incoming = Incoming(self._service, notes, self._flow, patience)
        self._outgoing = Outgoing(
            *(self._service, self._bare.path, notes, self._flow, patience, self._incoming)
        )
        if self._terms.deadline is not None:
            loop = asyncio.get_running_loop()
            self._clock = loop.call_later(self._terms.deadline, self._time_is_up)
        await self._outgoing.offered()

    async def _first_of_all(self, ask: Ask) -> Reply | None:
        """Put a question live where that shows what the server takes; None where that is known."""
        while not self._bare.abilities:
            if self._first is None:
                self._first = asyncio.Event()
                try:
                    return await self.judge.ask(ask)
                finally:
                    self._first.set()
                    self._first = None
                    self._let_in()  # what it held back is free
            await self._first.wait()
            self._refuse_if_over()
        return None

    async def _put(self, key: str, ask: Ask) -> Reply:
        calls: list[Call] = []
        reply, made, lost = None, True, False
        try:
            reply = await self._bare.ask_by(partial(self._post, calls, key, ask), ask)
        except AnewError:
            made = False
            raise
        except TryAgainError as trouble:
            lost = isinstance(trouble, LostError)
            if calls and calls[-1].row is not None:  # so that it is asked again elsewhere
                self._noted.release(calls[-1].row, [key])
            raise
        finally:
            for call in calls:
                self._calls.discard(call)
                last = call is calls[-1]  # all others brought nothing
                if call.held and last and not made:
                    self._budget.withdraw(ask, self.share)
                elif call.held:
                    self._budget.book(ask, self.share, reply if last else None, lost=last and lost)
            self._let_in()
        self.questions += reply.came
        if reply.usage is not None:
            self._prompt_tokens += reply.usage.prompt_tokens or 0
            self._completion_tokens += reply.usage.completion_tokens or 0
        return reply

    async def _post(
        self, calls: list[Call], key: str, ask: Ask, path: str, body: dict[str, Any]
    ) -> str:
        """In place of a request: bring the body of the answer, or raise why there is none."""
        incoming, row = self._incoming, self._noted.row_of(key)
        if row is None and not self._bare.abilities:  # what was known of the server does not hold
            raise AnewError
        self._refuse_if_over()
        call = Call(key, ask)
        calls.append(call)
        self._calls.add(call)
        if row is not None and incoming is not None:
            call.held = self._budget.hold(ask, self.share, made=True)
            incoming.attach(call, row)
        else:
            self._dear.append((call, line_of(key, path, body)))
            del body  # is on disk by now, or will be
            self._let_in()
        line = await call.line()
        if line.status is not None and not line.good:
            raise self._service.error(line.status, line.body)
        return self._bare.connection.censored(json.dumps(line.body, ensure_ascii=False))

    def _let_in(self) -> None:
        """Send what the budget has room for, first come, first served."""
        while self._dear and self._outgoing is not None and self._ending is None:
            call, line = self._dear[0]
            try:
                call.held = self._budget.hold(call.ask, self.share)
            except NotAskedError as limit:
                call.fail(NotAskedError(limit.reason))
            else:
                if not call.held:
                    self._tell_of_the_cap()
                    return
                self._outgoing.send(call, line)
            self._dear.popleft()

    def _tell_of_the_cap(self) -> None:
        """Say once that the budget makes small batches, each of which may take a day."""
        if not self._capped:
            self._capped = True
            _log.warning(
                "--max-cost %g has room for %d questions at a time, at what each may cost at "
                "worst; the others wait until a batch is home (a higher --max-cost, or a lower "
                "--max-tokens, makes fewer batches)",
                *(self._terms.max_cost, len(self._calls) - len(self._dear)),
            )

    def _time_is_up(self) -> None:
        self._end(
            NotAskedError(
                f"the time of the run is used up (--deadline {self._terms.deadline:g}); "
                "the same command goes on"
            )
        )

    def _end(self, error: Exception) -> None:
        """Tell whoever waits, now or later, that nothing more comes."""
        if not isinstance(error, MisslinkError | NotAskedError):
            said = self._bare.connection.censored(f"{type(error).__name__}: {error}")
            error = self._bare.connection.unreachable(
                f"its batches came to an unforeseen end ({said}); what is out is noted, and the "
                "same command goes on"
            )
        if self._ending is None:
            self._ending = error
        for call in tuple(self._calls):
            call.fail(_again(self._ending))

    def _refuse_if_over(self) -> None:
        if self._ending is not None:
            raise _again(self._ending)


def _again(error: Exception) -> Exception:
    """An error for one more to raise: the same object would collect the tracebacks of all."""
    if isinstance(error, NotAskedError):
        return NotAskedError(error.reason)
    if isinstance(error, InputError):
        return InputError(error.problem, path=error.path)
    return type(error)(str(error))
