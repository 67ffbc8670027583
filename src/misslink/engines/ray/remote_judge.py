"""A judge on Ray workers, as the throttle and the budget see it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

from misslink.engines.ray.pool import WorkerDiedError, WorkerHandle, WorkerPool
from misslink.engines.ray.worker import SERVER_FACTS, WorkerReply, restore_reply, serializable_ask
from misslink.judge.middleware.throttle import ask_with_timeout
from misslink.judge.protocol import Ask, Judge, JudgeInfo, Reply, RetryableError, judge_info

_MAX_REACHABILITY_TRIES = 3  # to ask what costs nothing, of workers that die


class RemoteJudge:
    """A judge that each worker has opened for itself under `key`; `judge` is opened here too.

    What a server supports is detected once: until a reply has come all questions go to one worker,
    and one of them detects it while the others wait. The other workers' judges learn the result.
    """

    def __init__(self, judge: Judge, pool: WorkerPool, key: str) -> None:
        self.name: str = judge.name
        self.identity: Mapping[str, Any] = judge.identity
        self._bare = judge
        self._pool = pool
        self._key = key
        self._found: dict[str, Any] = {}
        self._sent: dict[str, int] = {}  # by worker, the dead ones too
        self._first: WorkerHandle | None = None
        self._deaths: dict[str, int] = {}  # of workers, by the question that they were asked

    @property
    def info(self) -> JudgeInfo:
        """The info of the judge itself, with what the judges on the workers found out."""
        own = judge_info(self._bare)
        return replace(
            own,
            **{name: self._found.get(name) or getattr(own, name) for name in SERVER_FACTS},
            max_concurrency=own.max_concurrency and own.max_concurrency * self._pool.count,
            check_reachable=own.check_reachable and self._reachable,
            prepare=None,  # each worker prepares its own judge
            requests_sent=None if own.requests_sent is None else sum(self._sent.values()),
        )

    async def ask(self, ask: Ask) -> Reply:
        """Put `ask` once, on the least busy worker.

        Raises
        ------
        EngineUnreachableError
            No worker can be had.
        RetryableError
            The worker died meanwhile: perhaps the reply was being written. Or as the judge's.
        """
        async with self._turn(ask) as worker:
            return await worker.ask(ask)

    async def ask_with_timeout(self, ask: Ask, seconds: float, begin: Callable[[], None]) -> Reply:
        """Put `ask` as `ask` does; to wait for a worker takes none of the seconds.

        The parameters are those of the function of this name.
        """
        async with self._turn(ask) as worker:
            return await ask_with_timeout(worker, ask, seconds, begin)

    async def close(self) -> None:
        """Close the judge, here and on the workers."""
        await self._pool.close(self._key, "close_judge")
        await self._bare.close()

    async def _reachable(self) -> None:
        """Check on a worker, because the calls come from there."""
        for _ in range(_MAX_REACHABILITY_TRIES):
            member = await self._probing_worker() or await self._pool.ready(self._key)
            try:
                answer = await self._pool.call(member, "judge", "reachable", self._key)
            except WorkerDiedError:
                continue
            self._note(member, answer)
            answer.result()
            return

    async def _put(self, member: WorkerHandle, ask: Ask) -> Reply:
        abilities = self.info.abilities or {}
        try:
            answer = await self._pool.call(
                member, "judge", "ask", self._key, serializable_ask(ask), dict(abilities)
            )
        except WorkerDiedError as death:
            self._deaths[ask.key] = self._deaths.get(ask.key, 0) + 1
            # As a call that is cut off: the server may have written, and charge for it.
            raise RetryableError(f"the worker {death.name} died meanwhile", "time") from None
        self._note(member, answer)
        reply = answer.result()
        return restore_reply(reply, ask) if isinstance(reply, Reply) else reply

    @contextlib.asynccontextmanager
    async def _turn(self, ask: Ask) -> AsyncIterator[_JudgeOnWorker]:
        """A worker for a question; the first, while it is not known what the server takes."""
        deaths = self._deaths.get(ask.key, 0)
        if not deaths and (first := await self._probing_worker()):
            yield _JudgeOnWorker(self, first)
            return
        async with self._pool.turn(self._key, deaths) as member:
            yield _JudgeOnWorker(self, member)

    async def _probing_worker(self) -> WorkerHandle | None:
        """The worker that finds out what the server takes; None where that is known."""
        if self.info.abilities != {}:
            return None
        if self._first is None or not self._first.can(self._key):
            self._first = await self._pool.ready(self._key)
        return self._first

    def _note(self, member: WorkerHandle, answer: WorkerReply) -> None:
        """Keep what a worker's judge has found out, for this process and the other workers."""
        if answer.sent is not None:
            self._sent[member.name] = max(answer.sent, self._sent.get(member.name, 0))
        facts = {name: value for name, value in answer.facts.items() if value}
        news = "abilities" in facts and facts["abilities"] != self._found.get("abilities")
        learn = judge_info(self._bare).learn
        if news and learn is not None:
            learn(facts["abilities"])
        self._found |= facts


class _JudgeOnWorker:
    """The judge on one worker, as the clock wants it."""

    def __init__(self, remote: RemoteJudge, member: WorkerHandle) -> None:
        self.name, self.identity = remote.name, remote.identity
        self._remote = remote
        self._member = member

    async def ask(self, ask: Ask) -> Reply:
        return await self._remote._put(self._member, ask)  # noqa: SLF001 (its own other half)

    async def close(self) -> None:
        """It is closed with all others."""
