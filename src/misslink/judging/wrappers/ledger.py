"""What a judge has said is on disk before it is used, and is never paid for twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from misslink.errors import InputError
from misslink.judging.protocol import Ask, Judge, Reply, innermost
from misslink.judging.wrappers.replies import Replies
from misslink.text import valid_text
from misslink.types import Usage

__all__ = ["Ledger", "identity_text", "reply_key"]

_TOKENS = 2**53  # more than any server can mean, and more than every JSON reader takes


class Ledger:
    """A judge whose replies are kept: the same question is asked once.

    A reply is found again by the SHA-256 of the judge's identity, the ask's key and the number of
    the repetition. Replies that came but could not be read are kept too, since they were paid for
    and a deterministic judge would only say the same again; to ask anew, prune them or use another
    ledger. What never came (an outage, a refused request) is not kept. Several processes may share
    one file; an ask that is in flight in this process is awaited, not repeated.

    What the judge found out about its server (``abilities``) is kept beside its replies, and told
    to it on opening, so that a resumed run asks as the first one did.

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
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None
        self._identity = identity_text(judge)
        self._in_flight: dict[str, asyncio.Task[Reply]] = {}
        self._broken: InputError | None = None
        self._replies = Replies(path)
        self._asked = innermost(judge)
        self._abilities: str | None = None
        self._teach()

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
        NotAskedError, TryAgainError
            As the judge raises them; nothing is kept.
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

    def holds(self, ask: Ask) -> bool:
        """Whether a reply of this judge to `ask` is kept, so that asking it costs nothing."""
        return self._replies.has(self._key(ask))

    def holds_any(self) -> bool:
        """Whether a reply of this judge is kept, so that a repeated run may need no judge."""
        return self._replies.holds(self._identity)

    def spent(self, limit: int) -> list[tuple[str, str, int | None, int | None]]:
        """Return what earlier replies of this judge used; see `Replies.spent`."""
        return self._replies.spent(self._identity, limit)

    def usage(self) -> dict[str, int | None]:
        """What was spent since opening.

        Returns
        -------
        dict
            ``calls``, ``from_ledger``, and ``prompt_tokens`` and ``completion_tokens`` of the
            calls; the tokens are None where there were calls and no reply reported any.
        """
        nothing = None if self.calls else 0
        prompt, completion = self._prompt_tokens, self._completion_tokens
        return {
            "calls": self.calls,
            "from_ledger": self.from_ledger,
            "prompt_tokens": nothing if prompt is None else prompt,
            "completion_tokens": nothing if completion is None else completion,
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
        said = await self.judge.ask(ask)
        if said.from_ledger:  # another process asked meanwhile, and has kept it here
            self.from_ledger += 1
            return said
        reply = _storable(said)
        self.calls += 1
        if reply.usage is not None:
            self._prompt_tokens = _sum(self._prompt_tokens, reply.usage.prompt_tokens)
            self._completion_tokens = _sum(self._completion_tokens, reply.usage.completion_tokens)
        if not reply.came:
            return reply
        try:
            ours = self._replies.add(key, ask, reply, identity=self._identity, judge=self.name)
            self._learn()
            # Another process may have been first; then both go on with what the file holds.
            stored = None if ours else self._replies.get(key, ask)
        except InputError as trouble:
            self._broken = trouble  # nothing more is asked that could not be kept
            raise
        return reply if stored is None else replace(stored, from_ledger=False)

    def _teach(self) -> None:
        """Tell the judge what an earlier run found out about its server."""
        learn = getattr(self._asked, "learn", None)
        kept = self._replies.abilities(self._identity) if learn is not None else None
        if learn is not None and kept is not None:
            learn(kept)
            self._abilities = json.dumps(kept, sort_keys=True)

    def _learn(self) -> None:
        """Keep what the judge has found out since."""
        abilities = getattr(self._asked, "abilities", None)
        if not abilities:
            return
        found = json.dumps(dict(abilities), sort_keys=True)
        if found != self._abilities:
            self._replies.keep_abilities(self._identity, found)
            self._abilities = found

    def _landed(self, key: str, task: asyncio.Task[Reply]) -> None:
        self._in_flight.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at here, so that asyncio does not report it as forgotten

    def _key(self, ask: Ask) -> str:
        return reply_key(ask, self._identity)


def identity_text(judge: Judge) -> str:
    """Return what a judge's replies depend on beside the question, as JSON."""
    return json.dumps(dict(judge.identity), sort_keys=True, ensure_ascii=False)


def reply_key(ask: Ask, identity: str) -> str:
    """Return under which key the reply to `ask` is kept.

    Parameters
    ----------
    ask : Ask
    identity : str
        The judge's, as `identity_text` gives it.
    """
    content = f"{ask.key}:{ask.repeat}:{identity}"
    return hashlib.sha256(content.encode()).hexdigest()


def _storable(reply: Reply) -> Reply:
    """Return the reply as a file can hold it, so that a resumed run reads the very same.

    A server may send halves of surrogate pairs, and token counts beyond belief.
    """
    raw = reply.raw if reply.raw.isascii() else valid_text(reply.raw)
    problem = reply.problem and valid_text(reply.problem)
    usage = None
    if reply.usage is not None:
        usage = Usage(
            prompt_tokens=_believable(reply.usage.prompt_tokens),
            completion_tokens=_believable(reply.usage.completion_tokens),
        )
    if usage == Usage():  # says nothing
        usage = None
    parsed = None if reply.parsed is None else _writable(reply.parsed)
    return replace(reply, parsed=parsed, raw=raw, problem=problem, usage=usage)


def _writable(parsed: BaseModel) -> BaseModel:
    try:
        parsed.model_dump_json()
    except PydanticSerializationError:
        text = valid_text(json.dumps(parsed.model_dump(), ensure_ascii=False))
        return type(parsed).model_validate_json(text)
    return parsed


def _believable(tokens: int | None) -> int | None:
    return tokens if tokens is not None and 0 <= tokens <= _TOKENS else None


def _sum(so_far: int | None, more: int | None) -> int | None:
    return so_far if more is None else (so_far or 0) + more
