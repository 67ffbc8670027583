"""What a judge has said is on disk before it is used, and is never paid for twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.judging.protocol import Ask, Judge, Reply
from misslink.judging.wrappers.replies import Replies
from misslink.types import Usage

__all__ = ["Ledger"]


class Ledger:
    """A judge whose replies are kept: the same question is asked once.

    A reply is found again by the SHA-256 of the judge's identity, the ask's key and the number of
    the repetition. Replies that came but could not be read are kept too, since they were paid for
    and a deterministic judge would only say the same again; to ask anew, use another ledger.
    What never came (an outage, a refused request) is not kept. Several processes may share one
    file; an ask that is in flight in this process is awaited, not repeated.

    Parameters
    ----------
    judge : Judge
    path : Path or None
        The file; its folder is made. None keeps replies for the life of this object only.

    Attributes
    ----------
    note : str or None
        A sentence to show wherever the judge's verdicts are shown, where it has one.
    calls, from_ledger : int
        Questions put to the judge, and questions answered without it, since opening.

    Raises
    ------
    InputError
        The file cannot be written or is no ledger: before anything is asked.
    """

    def __init__(self, judge: Judge, path: Path | None) -> None:
        self.judge = judge
        self.name: str = judge.name
        self.identity: Mapping[str, Any] = judge.identity
        self.note: str | None = getattr(judge, "note", None)
        self.path = path
        self.calls = 0
        self.from_ledger = 0
        self._usages: list[Usage] = []
        self._identity = json.dumps(dict(judge.identity), sort_keys=True, ensure_ascii=False)
        self._in_flight: dict[str, asyncio.Task[Reply]] = {}
        self._broken: InputError | None = None
        self._replies = Replies(path)

    async def ask(self, ask: Ask) -> Reply:
        """Return what the judge said to `ask`, now or before.

        Parameters
        ----------
        ask : Ask

        Raises
        ------
        InputError
            The ledger can no longer be read or written.
        JudgeUnreachableError
            The judge has to be asked and cannot be.
        """
        key = self._key(ask)
        kept = self._replies.get(key, ask)
        if kept is not None:
            self.from_ledger += 1
            return kept
        if self._broken:
            raise InputError(self._broken.problem, path=self.path)
        running = self._in_flight.get(key)
        if running is not None:
            reply = await asyncio.shield(running)
            if reply.came:
                self.from_ledger += 1
                return replace(reply, from_ledger=True)
            return reply
        task = asyncio.create_task(self._ask_and_keep(key, ask))
        self._in_flight[key] = task
        task.add_done_callback(lambda done: self._landed(key, done))
        # Shielded: a call that is on its way is paid for, so it is kept even if nobody waits now.
        return await asyncio.shield(task)

    def holds_any(self) -> bool:
        """Whether a reply of this judge is kept, so that a repeated run may need no judge."""
        return self._replies.holds(self._identity)

    def usage(self) -> dict[str, int | None]:
        """What was spent since opening.

        Returns
        -------
        dict
            ``calls``, ``from_ledger``, and ``prompt_tokens`` and ``completion_tokens`` of the
            calls; the tokens are None where there were calls and no reply reported any.
        """

        def total(counts: list[int | None]) -> int | None:
            reported = [count for count in counts if count is not None]
            return sum(reported) if reported or not self.calls else None

        return {
            "calls": self.calls,
            "from_ledger": self.from_ledger,
            "prompt_tokens": total([usage.prompt_tokens for usage in self._usages]),
            "completion_tokens": total([usage.completion_tokens for usage in self._usages]),
        }

    async def close(self) -> None:
        """Close the judge, which may let calls in flight come home, then the file."""
        await self.judge.close()
        left = list(self._in_flight.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._replies.close()

    async def _ask_and_keep(self, key: str, ask: Ask) -> Reply:
        reply = await self.judge.ask(ask)
        self.calls += 1
        if reply.usage is not None:
            self._usages.append(reply.usage)
        if not reply.came:
            return reply
        try:
            self._replies.add(
                key, ask, reply, identity=self._identity, judge=self.name, repeat=ask.repeat
            )
            # Another process may have been first; then both go on with what the file holds.
            stored = self._replies.get(key, ask)
        except InputError as trouble:
            self._broken = trouble  # nothing more is asked that could not be kept
            raise
        return reply if stored is None else replace(stored, from_ledger=False)

    def _landed(self, key: str, task: asyncio.Task[Reply]) -> None:
        self._in_flight.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at here, so that asyncio does not report it as forgotten

    def _key(self, ask: Ask) -> str:
        content = json.dumps([self._identity, ask.key, ask.repeat])
        return hashlib.sha256(content.encode()).hexdigest()
