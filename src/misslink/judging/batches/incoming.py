"""From batches to replies: looked at until they are over, and read line by line."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from misslink.judging.batches.calls import AnewError, Call, Line
from misslink.judging.batches.flow import NONE_SUCH, Flow, Patience, fail_all
from misslink.judging.batches.notes import Noted, Notes
from misslink.judging.batches.service import Service, State
from misslink.judging.protocol import TryAgainError

__all__ = ["Incoming", "search"]

_log = logging.getLogger(__name__)
_IN_VAIN = 30  # looks in a row that showed nothing, about half an hour of them
_DAY_S = 86_400  # by how much clocks may differ, and more
_TOO_MUCH_QUEUED = "token_limit_exceeded"


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
            try:
                state = await self._look(row)
                in_vain = 0
                if state is not None and state.over:
                    await self._flow.quiet()  # more may wait for it, and it is better read once
                    await self._collect(row, state)
                    looks = 0
            except (openai.APIError, ValueError) as trouble:
                problem = self._patience.bearable(trouble, "show a batch")
                in_vain += 1
                if in_vain >= _IN_VAIN:
                    raise self._service.connection.unreachable(
                        f"{problem}; its batch goes on, and the same command fetches the answers"
                    ) from None
            if self._out[row]:
                await self._flow.timing.sleep(self._flow.timing.pause(max(looks, 1)))
        self._watched.discard(row)
        self._flow.room.set()

    async def _look(self, row: int) -> State | None:
        """How a batch stands; None where that is not known yet."""
        import openai

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
        try:
            state = await self._service.retrieve(noted.service_id)
        except openai.NotFoundError:
            _log.warning("%s is not there any more", self._named(noted))
            self._notes.drop(row)
            fail_all(self._taken(row), lambda: TryAgainError("its batch is gone", "server"))
            return None
        self._tell(noted, state)
        return state

    async def _collect(self, row: int, state: State) -> None:
        """Read what a batch brought; a reply is in the ledger before the next line is read."""
        import openai

        if state.status == "failed":
            self._refused(row, state)
            return
        waiting, lost = tuple(self._out[row]), False
        answered, unasked = set[str](), list[str]()
        for file in filter(None, (state.output, state.errors)):
            try:
                await self._patience.have(
                    lambda file=file: self._read(row, file, answered, unasked),  # type: ignore[misc]
                    f"give file {file}",
                )
            except openai.APIStatusError:
                lost = True
        if lost:
            _log.warning("the answers of batch %s are not kept there any more", state.id)
            self._notes.drop(row)
        else:
            self._notes.keep_only(row, answered)
        left = {key: call for key in waiting if (call := self._out[row].pop(key, None))}
        if not left:
            return
        self._notes.release(row, left)
        if state.status == "cancelled":
            self._flow.ended(
                self._service.connection.unreachable(
                    f"its batch {state.id} was cancelled with {len(left)} questions open; what it "
                    "answered is kept, and the same command submits the rest"
                )
            )
            return
        why = "its batch expired" if state.status == "expired" else "its batch brought no answer"
        why += f": {unasked[-1]}" if unasked else ""
        _log.warning("batch %s: of %d questions no word (%s)", state.id, len(left), why)
        fail_all(left.values(), lambda: TryAgainError(why, "server"))

    async def _read(self, row: int, file: str, answered: set[str], unasked: list[str]) -> None:
        """Hand out the lines of a file; what it says of questions that were not put is noted."""
        strange = 0
        async for raw in self._service.lines(file):
            line = Line.read(raw)
            if line is None:
                strange += bool(raw.strip())
                continue
            if line.status is None:
                unasked.append(line.problem)
                continue
            if line.good:
                answered.add(line.key)
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
        if _TOO_MUCH_QUEUED not in state.codes or len(calls) == 1:
            why = f"it refuses the batch {state.id}: {told}"
            self._flow.ended(self._service.connection.unreachable(why))
            return
        self._flow.most = max(1, len(calls) // 2)
        if any(self._out.values()):
            self._flow.room.clear()  # until one of the others is over
        _log.warning(
            "batch %s is too much at once (%s); it goes out in parts of %d questions",
            *(state.id, told, self._flow.most),
        )
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
