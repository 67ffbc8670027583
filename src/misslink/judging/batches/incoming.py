"""From batches to replies: looked at until they are over, and read line by line."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from misslink.judging.batches.calls import AnewError, Call, Line, LostError
from misslink.judging.batches.flow import NONE_SUCH, Flow, Patience, fail_all
from misslink.judging.batches.notes import Noted, Notes
from misslink.judging.batches.service import Service, State
from misslink.judging.protocol import TryAgainError

__all__ = ["Incoming", "search"]

_log = logging.getLogger(__name__)
_IN_VAIN = 30  # looks in a row that showed nothing, about half an hour of them
_GONE = 5  # looks in a row that say that a batch, seen before, is not there: one may err
_DAY_S = 86_400  # by how much clocks may differ, and more
_UNBEGUN = ("", "validating", "failed")
_TOO_MUCH_QUEUED = "token_limit_exceeded"


@dataclass
class _Brought:
    """What the files of a batch say: of which questions, which are answered, why others are not."""

    told: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    unasked: str = ""


class Incoming:
    """Looks after the batches that somebody waits for.

    Parameters
    ----------
    service : Service
    notes : Notes
    flow : Flow
    patience : Patience
    """

    def __init__(self, service: Service, notes: Notes, flow: Flow, patience: Patience) -> None:
        self._service = service
        self._notes = notes
        self._flow = flow
        self._patience = patience
        self._out: dict[int, dict[str, Call]] = {}  # by batch and key
        self._numbers: dict[int, int] = {}
        self._told: dict[int, tuple[Any, ...]] = {}
        self._watched: set[int] = set()
        self._seen: set[int] = set()  # by this process, so with its key
        self._full: set[int] = set()  # turned away since too much was queued
        self._begun: dict[int, asyncio.Event] = {}

    def attach(self, call: Call, row: int) -> None:
        """Let a call wait for a batch that is out, of this run or another."""
        self._flow.came()
        call.row = row
        self._out.setdefault(row, {})[call.key] = call
        if row not in self._watched:
            self._watched.add(row)
            self._flow.start(self._look_after(row))

    def number(self, row: int) -> int:
        """Return what people are told for the number of a batch, from 1."""
        return self._numbers.setdefault(row, len(self._numbers) + 1)

    def seen(self, row: int) -> None:
        """Take note that the server knows a batch."""
        self._seen.add(row)

    async def begun(self, row: int) -> None:
        """Wait until a batch is past its check, or refused."""
        await self._begun.setdefault(row, asyncio.Event()).wait()

    def close(self) -> None:
        """Say what stays out."""
        for row, calls in self._out.items():
            noted = self._notes.read(row) if calls else None
            if noted is not None:
                _log.warning(
                    "%s goes on at the provider; the same command fetches its answers",
                    self._named(noted),
                )

    async def _look_after(self, row: int) -> None:
        """Look at a batch until it is over, and hand out what it brought."""
        import openai

        looks, in_vain = 0, 0
        while self._out[row]:
            looks += 1
            trouble = None
            try:
                state = await self._look(row)
                in_vain = 0
                if state is not None and state.over:
                    await self._flow.quiet()  # more may wait for it, and it is better read once
                    with self._flow.reading():
                        await self._collect(row, state)
                    looks = 0
            except openai.NotFoundError:
                in_vain += 1
                self._missing(row, in_vain)
            except (openai.APIError, ValueError) as error:
                try:
                    trouble = self._patience.bearable(error, "show a batch")
                except openai.APIStatusError:
                    raise self._patience.none_such() from None
                in_vain += 1
                if in_vain >= _IN_VAIN:
                    raise self._service.connection.unreachable(
                        f"{trouble.problem}; its batch goes on, and the same command fetches the "
                        "answers"
                    ) from None
            if self._out[row]:
                await self._patience.wait(max(looks, 1), trouble)
        self._watched.discard(row)
        self._begun.setdefault(row, asyncio.Event()).set()
        if row not in self._full or not any(self._out.values()):
            self._flow.room.set()

    async def _look(self, row: int) -> State | None:
        """How a batch stands; None where that is not known yet."""
        noted = self._notes.read(row)
        if noted is None:  # another process saw that nothing will come of it
            fail_all(self._taken(row), AnewError)
            return None
        if noted.service_id is None:
            state = await search(self._service, noted)
            if state is not None:
                self._notes.name(row, state.id)
            elif not noted.in_hand:
                self._notes.drop(row)
                fail_all(self._taken(row), AnewError)
            return state
        state = await self._service.retrieve(noted.service_id)
        self._seen.add(row)
        if state.status not in _UNBEGUN:
            self._begun.setdefault(row, asyncio.Event()).set()
        self._tell(noted, state)
        return state

    def _missing(self, row: int, times: int) -> None:
        """A batch is not there: asked for with another account's key, or lost with its answers."""
        noted = self._notes.read(row)
        if noted is None:
            return
        if row not in self._seen:
            raise self._service.connection.unreachable(
                f"it does not know the batch {noted.service_id} of {noted.created[:10]}; give the "
                "key with which it was submitted, or ask anew by --engine local"
            )
        if times >= _GONE:
            _log.warning("%s is not there any more", self._named(noted))
            self._notes.drop(row)
            fail_all(self._taken(row), lambda: LostError("its batch is gone"))

    async def _collect(self, row: int, state: State) -> None:
        """Read what a batch brought; a reply is in the ledger before the next line is read."""
        import openai

        if state.status == "failed":
            self._refused(row, state)
            return
        waiting, brought, lost = tuple(self._out[row]), _Brought(), False
        try:
            await self._patience.have(
                lambda: self._read(row, state, brought), f"give the answers of batch {state.id}"
            )
        except openai.APIStatusError:
            _log.warning("the answers of batch %s are not kept there any more", state.id)
            lost = True
        left = {key: self._out[row][key] for key in waiting if key in self._out[row]}
        if left and brought.answered and not any(map(self._notes.knows, brought.answered)):
            self._flow.ended(
                self._service.connection.unreachable(
                    f"the answers of its batch {state.id} are under other names (custom_id) than "
                    "its questions, so that nothing says what they answer; use --engine local"
                )
            )
            return
        for key in left:
            del self._out[row][key]
        if lost:
            self._notes.drop(row)
            fail_all(left.values(), lambda: LostError("its answer is not kept there any more"))
            return
        self._notes.keep_only(row, brought.answered)
        if not left:
            return
        if state.status == "cancelled":
            self._flow.ended(
                self._service.connection.unreachable(
                    f"its batch {state.id} was cancelled with {len(left)} questions open; what it "
                    "answered is kept, and the same command submits the rest"
                )
            )
            return
        why = "its batch expired" if state.status == "expired" else "its batch brought no answer"
        why += f": {brought.unasked}" if brought.unasked else ""
        _log.warning("batch %s: of %d questions no word (%s)", state.id, len(left), why)
        fail_all(left.values(), lambda: TryAgainError(why, "server"))

    async def _read(self, row: int, state: State, brought: _Brought) -> None:
        """Hand out the lines of a batch's files.

        Raises
        ------
        ValueError
            They say less than the batch does: what is missing was paid for, and may come yet.
        """
        for file in filter(None, (state.output, state.errors)):
            await self._read_file(row, file, brought)
        if len(brought.told) < state.answered:
            raise ValueError(f"its files hold {len(brought.told)} of {state.answered}")

    async def _read_file(self, row: int, file: str, brought: _Brought) -> None:
        """Hand out the lines of a file; what it says of questions that were not put is noted."""
        strange = 0
        async for raw in self._service.lines(file):
            line = Line.read(raw)
            if line is None:
                strange += bool(raw.strip())
                continue
            brought.told.add(line.key)
            if line.status is None:
                brought.unasked = self._service.connection.censored(line.problem)
                continue
            if line.good:
                brought.answered.add(line.key)
            call = self._out[row].pop(line.key, None)
            if call is None:
                continue
            if not line.good:  # before it is asked again, which will be elsewhere
                self._notes.release(row, [line.key])
            call.bring(line)
            await asyncio.sleep(0)
        if strange:
            _log.warning("%d lines of file %s are none of a batch", strange, file)

    def _refused(self, row: int, state: State) -> None:
        """A batch was not begun: too much is queued there, or its file will not do."""
        calls = self._taken(row)
        self._notes.drop(row)
        told = "; ".join(state.problems) or "it does not say why"
        alone = not any(self._out.values())
        if _TOO_MUCH_QUEUED not in state.codes or (alone and len(calls) == 1):
            why = f"it refuses the batch {state.id}: {told}"
            self._flow.ended(self._service.connection.unreachable(why))
            return
        self._flow.crowded = True
        self._full.add(row)
        if alone:
            self._flow.most = max(1, min(self._flow.most, len(calls) // 2))
            then = f"it goes out in parts of {self._flow.most} questions"
        else:
            self._flow.room.clear()
            then = "it goes out again when another one is home"
        _log.warning("batch %s is too much at once (%s); %s", state.id, told, then)
        fail_all(calls, AnewError)

    def _taken(self, row: int) -> list[Call]:
        calls = list(self._out[row].values())
        self._out[row].clear()
        return calls

    def _tell(self, noted: Noted, state: State) -> None:
        """Say how a batch stands, where that has changed."""
        now = state.status, state.answered, state.failed
        if self._told.get(noted.row) != now:
            self._told[noted.row] = now
            failed = f", {state.failed:,} in vain" if state.failed else ""
            _log.warning(
                "%s: %s of %s answered%s, %s",
                *(self._named(noted), f"{state.answered:,}", f"{noted.questions:,}", failed),
                state.status.replace("_", " "),
            )

    def _named(self, noted: Noted) -> str:
        return f"batch {self.number(noted.row)} ({noted.service_id or 'not named yet'})"


async def search(service: Service, noted: Noted) -> State | None:
    """Look in a server's list for a batch of which only the intent is noted; None: not there."""
    import openai

    try:
        async for state in service.listed():
            if state.token == noted.token or state.input_file == noted.file:
                return state
            if state.created is not None and state.created < noted.at.timestamp() - _DAY_S:
                break
    except openai.APIStatusError as error:
        if error.status_code not in NONE_SUCH:
            raise
    return None
