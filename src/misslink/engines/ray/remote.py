"""The judge on the workers, as the throttle and the budget around it see it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from misslink.engines.ray.member import Member, WorkerDiedError
from misslink.engines.ray.pool import Pool
from misslink.engines.ray.wire import Answer, received, sendable
from misslink.engines.ray.worker import FACTS
from misslink.judging.protocol import Ask, Judge, Reply, TryAgainError, innermost
from misslink.judging.wrappers.clock import ask_in_time

__all__ = ["Remote"]

_TRIES = 3  # to ask what costs nothing, of workers that die


class Remote:
    """A judge that is asked on workers, each of which has opened it for itself.

    What the judge may have beside the protocol (``max_tokens``, ``abilities``, ``sent`` and so on)
    it has exactly where the judge itself has it, which is open in this process too and never
    asked.

    What a server takes is found out once: until a reply has come all questions go to one worker,
    whose judge lets one of them find out while the others wait. The others' judges are told.

    Parameters
    ----------
    judge : Judge
        The judge itself, opened in this process.
    pool : Pool
    key : str
        Under which the workers have it open.
    """

    def __init__(self, judge: Judge, pool: Pool, key: str) -> None:
        self.name: str = judge.name
        self.identity: Mapping[str, Any] = judge.identity
        self.note: str | None = getattr(judge, "note", None)
        self._bare = judge
        self._inner = innermost(judge)
        self._pool = pool
        self._key = key
        self._found: dict[str, Any] = {}
        self._sent: dict[str, int] = {}  # by worker, the dead ones too
        self._first: Member | None = None
        self._deaths: dict[str, int] = {}  # of workers, by the question that they were asked

    def __getattr__(self, name: str) -> Any:
        """Return what the judge has beside the protocol; called for what is not defined here."""
        if name in ("judge", "ready") or name.startswith("__"):  # it is the innermost one
            raise AttributeError(name)
        owner = self._bare if name == "sent" else self._inner  # as the budget asks, and as others
        own = getattr(owner, name)
        if name == "sent":
            return sum(self._sent.values())
        if name in FACTS:
            return self._found.get(name) or own
        here = {"learn": self._learn, "reachable": self._reachable}
        if name == "at_once":
            return own * self._pool.count  # each worker's own judge takes so many
        return here.get(name, own)

    async def ask(self, ask: Ask) -> Reply:
        """Put `ask` once, on the least busy worker.

        Raises
        ------
        EngineUnreachableError
            No worker can be had.
        TryAgainError
            The worker died meanwhile: perhaps the reply was being written. Or as the judge's.
        """
        async with self._turn(ask) as worker:
            return await worker.ask(ask)

    async def ask_in_time(self, ask: Ask, seconds: float, begin: Callable[[], None]) -> Reply:
        """Put `ask` as `ask` does; to wait for a worker takes none of the seconds.

        The parameters are those of the function of this name.
        """
        async with self._turn(ask) as worker:
            return await ask_in_time(worker, ask, seconds, begin)

    async def close(self) -> None:
        """Close the judge, here and on the workers."""
        await self._pool.close(self._key, "close_judge")
        await self._bare.close()

    def _learn(self, abilities: Mapping[str, Any]) -> None:
        self._inner.learn(abilities)  # type: ignore[attr-defined]

    async def _reachable(self) -> None:
        """Find out on a worker: it is from there that the judge is asked."""
        for _ in range(_TRIES):
            member = await self._settling() or await self._pool.ready(self._key)
            try:
                answer = await self._pool.call(member, "judge", "reachable", self._key)
            except WorkerDiedError:
                continue
            self._note(member, answer)
            answer.result()
            return

    async def _put(self, member: Member, ask: Ask) -> Reply:
        known = getattr(self, "abilities", None) or {}
        try:
            answer = await self._pool.call(
                member, "judge", "ask", self._key, sendable(ask), dict(known)
            )
        except WorkerDiedError as death:
            self._deaths[ask.key] = self._deaths.get(ask.key, 0) + 1
            # As a call that is cut off: the server may have written, and charge for it.
            raise TryAgainError(f"the worker {death.name} died meanwhile", "time") from None
        self._note(member, answer)
        reply = answer.result()
        return received(reply, ask) if isinstance(reply, Reply) else reply

    @contextlib.asynccontextmanager
    async def _turn(self, ask: Ask) -> AsyncIterator[_OnWorker]:
        """A worker for a question; the first, while it is not known what the server takes."""
        deaths = self._deaths.get(ask.key, 0)
        if not deaths and (first := await self._settling()):
            yield _OnWorker(self, first)
            return
        async with self._pool.turn(self._key, deaths) as member:
            yield _OnWorker(self, member)

    async def _settling(self) -> Member | None:
        """The worker that finds out what the server takes; None where that is known."""
        if getattr(self, "abilities", True):
            return None
        if self._first is None or not self._first.can(self._key):
            self._first = await self._pool.ready(self._key)
        return self._first

    def _note(self, member: Member, answer: Answer) -> None:
        """Keep what a worker's judge has found out, for this process and the other workers."""
        if answer.sent is not None:
            self._sent[member.name] = max(answer.sent, self._sent.get(member.name, 0))
        found = {name: value for name, value in answer.facts.items() if value}
        news = "abilities" in found and found["abilities"] != self._found.get("abilities")
        if news and hasattr(self._inner, "learn"):
            self._inner.learn(found["abilities"])
        self._found |= found


class _OnWorker:
    """The judge on one worker, as the clock wants it."""

    def __init__(self, remote: Remote, member: Member) -> None:
        self.name, self.identity = remote.name, remote.identity
        self._remote = remote
        self._member = member

    async def ask(self, ask: Ask) -> Reply:
        return await self._remote._put(self._member, ask)  # noqa: SLF001 (its own other half)

    async def close(self) -> None:
        """It is closed with all others."""
