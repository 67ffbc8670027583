"""The judge of a run in one process of the cluster: cache, limits and budget; its calls are made on workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from misslink.engines.ray.cluster import import_ray
from misslink.engines.ray.worker import (
    SERVER_FACTS,
    JudgeOpening,
    RayWorker,
    WorkerReply,
    WorkerSettings,
    restore_reply,
    serializable_ask,
)
from misslink.engines.ray.workers import (
    MAX_DEATHS,
    RESUME_HINT,
    WorkerDiedError,
    WorkerHandle,
    Workers,
)
from misslink.errors import EngineUnreachableError
from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.config import JudgeConfig
from misslink.judge.middleware.cache import open_reply_store
from misslink.judge.protocol import Ask, Judge, JudgeInfo, Reply, RetryableError, judge_info
from misslink.judge.readings import Readings
from misslink.judge.session import JudgeSession, JudgeSpec, JudgeState, open_judge, with_limits


class SharedJudgeActor(RayWorker):
    """The process of the shared judge."""

    async def open_session(
        self,
        settings: WorkerSettings,
        judge: Any,
        opening: JudgeOpening,
        cache: Path | None,
        concurrency: int,
        actors: Mapping[str, Any],
    ) -> None:
        """Open the judge in its cache and limits.

        `opening` is that of a cascade's last judge; the others are asked here.
        """
        workers = Workers(actors, settings, [opening])

        def reach(spec: JudgeSpec) -> Judge:
            return with_limits(replace(spec, judge=JudgeOnWorkers(spec.judge, workers, opening)))

        terms = opening.terms
        session = open_judge(judge, cache=cache, concurrency=concurrency, terms=terms, reach=reach)
        assert session is not None  # noqa: S101 (the driver has opened it, too)
        self._session = session

    async def of_session(self, method: str, *arguments: Any) -> Any:
        """Call a method of it."""
        return await getattr(self._session, method)(*arguments)

    async def state(self) -> JudgeState:
        """What the driver reports of it."""
        own, info = self._session, judge_info(self._session.judge)
        facts = JudgeInfo(**{name: getattr(info, name) for name in ("max_tokens", *SERVER_FACTS)})
        return JudgeState(own.usage(), own.cascade(), own.not_asked, own.stopped_by, facts)


class JudgeOnWorkers:
    """A judge whose calls are made on workers; `judge` is the same, opened here.

    What a server supports is detected once: until the first reply all questions go to one worker,
    and the judges of the other workers learn the result.
    """

    def __init__(self, judge: Judge, workers: Workers, opening: JudgeOpening) -> None:
        self.name: str = judge.name
        self.identity: Mapping[str, Any] = judge.identity
        self._bare, self._workers, self._opening = judge, workers, opening
        self._found: dict[str, Any] = {}
        self._sent: dict[str, int] = {}  # by worker
        self._first: WorkerHandle | None = None
        self._suspects = asyncio.Lock()
        self._deaths: Counter[str] = Counter()  # of workers, by the question that they were asked

    @property
    def info(self) -> JudgeInfo:
        """The info of the judge, with what the judges on the workers detected."""
        own, count = judge_info(self._bare), len(self._workers.all)
        return replace(
            own,
            **{name: self._found.get(name) or getattr(own, name) for name in SERVER_FACTS[:-1]},
            max_concurrency=own.max_concurrency and own.max_concurrency * count,
            check_reachable=own.check_reachable and self._reachable,
            prepare=self._choose,  # waiting for a worker is no part of a call's time
            requests_sent=None if own.requests_sent is None else sum(self._sent.values()),
        )

    async def ask(self, ask: Ask) -> Reply:
        """Ask once, on the least busy worker.

        Raises
        ------
        EngineUnreachableError
            No worker can be had.
        RetryableError
            The worker died during the call, which may be charged; or what the judge raises.
        """
        if (deaths := self._deaths[ask.key]) == MAX_DEATHS:
            return Reply.nothing(f"{deaths} worker processes died while they asked this question")
        abilities = dict(self.info.abilities or {})
        try:
            # So that the next death during a suspect is no other suspect's.
            async with self._suspects if deaths else contextlib.nullcontext():
                reply = await self._call("ask", serializable_ask(ask), abilities)
        except WorkerDiedError as death:
            self._deaths[ask.key] += 1
            # Like a call that was cut off: the server may charge for it.
            raise RetryableError(f"the worker {death.name} died meanwhile", "time") from None
        return restore_reply(reply, ask) if isinstance(reply, Reply) else reply

    async def close(self) -> None:
        """Close the judge; those of the workers end with their processes."""
        await self._bare.close()

    async def _reachable(self) -> None:
        """Check on a worker, because the calls come from there."""
        with contextlib.suppress(WorkerDiedError):  # questions will tell
            await self._call("reachable")

    async def _call(self, method: str, *arguments: Any) -> Any:
        """Call a worker, and store what its judge has detected, for here and the other workers."""
        member = await self._choose()
        answer = await self._workers.call(member, method, self._opening, *arguments)
        facts = {name: value for name, value in answer.facts.items() if value}
        sent = facts.pop("requests_sent", 0)
        self._sent[member.name] = max(sent, self._sent.get(member.name, 0))
        learn_abilities(self._bare, facts.get("abilities"))
        self._found |= facts
        return answer.result()

    async def _choose(self) -> WorkerHandle:
        """The worker that detects what the server supports; the least busy one if that is known."""
        if self.info.abilities != {}:
            return await self._workers.ready()
        if self._first is None or self._first.start is None:
            self._first = await self._workers.ready()
        return self._first


def learn_abilities(judge: Judge, abilities: Mapping[str, Any] | None) -> None:
    """Have a judge here know what one elsewhere has detected."""
    info = judge_info(judge)
    if abilities and info.learn is not None and abilities != info.abilities:
        info.learn(abilities)


class SharedJudgeCalls(NamedTuple):
    """Calls of the shared judge's process."""

    actor: Any
    settings: WorkerSettings

    async def ask(self, ask: Ask) -> Reply:
        """Ask the judge."""
        sent = serializable_ask(ask, whole=True)
        return restore_reply(await self.call("of_session", "ask", sent), ask)

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method.

        Raises
        ------
        EngineUnreachableError
            The process died.
        """
        ray = import_ray()
        try:
            reply: WorkerReply = await self.actor.call.remote(self.settings, method, *arguments)
        except ray.exceptions.RayError as error:
            raise EngineUnreachableError(
                f"the process with the judge's cache and limits died ({type(error).__name__}); "
                f"{RESUME_HINT}"
            ) from None
        return reply.result()


class SharedJudge:
    """The shared judge in the driver; `judge` is the same, opened here, and not asked.

    Parameters
    ----------
    judge : Judge
    calls : SharedJudgeCalls
    opened : sequence
        The arguments by which its process opens it.
    """

    def __init__(self, judge: Judge, calls: SharedJudgeCalls, opened: Sequence[Any]) -> None:
        self.name: str = judge.name
        self.identity: Mapping[str, Any] = judge.identity
        self.judge, self._calls, self._opened = judge, calls, opened
        self._opening: asyncio.Task[Any] | None = None

    @property
    def info(self) -> JudgeInfo:
        """The info of the judge, which is checked from a worker."""
        own = judge_info(self.judge)
        return replace(own, check_reachable=own.check_reachable and self._check)

    async def ask(self, ask: Ask) -> Reply:
        """Ask it where it is."""
        await self.open()
        return await self._calls.ask(ask)

    async def open(self) -> None:
        """Have its process open it, once."""
        if self._opening is None:
            opening = self._calls.call("open_session", *self._opened)
            self._opening = asyncio.create_task(opening)
        await self._opening

    async def report_to(self, session: JudgeSession) -> None:
        """Have the driver's session report how much it was asked, and what it detected."""
        session.elsewhere = state = await self._calls.call("state")
        session.not_asked, session.stopped_by = state.not_asked, state.stopped_by
        learn_abilities(self.judge, state.info.abilities)

    def for_workers(self, session: JudgeSession, cache: Path | None) -> Callable[[], Judge]:
        """Return what opens it on a worker, which sees `cache`."""
        state, bare = session.elsewhere, self.judge
        info = state.info if state else JudgeInfo(max_tokens=judge_info(bare).max_tokens)
        known = bare if isinstance(bare, HeuristicJudge) else None
        named = session.name, dict(session.identity), session.terms
        return partial(AskedJudge, self._calls, *named, info, known, cache)

    async def close(self) -> None:
        """Close it, here and there."""
        if self._opening is not None:
            await self.open()
            await self._calls.call("of_session", "close")
        await self.judge.close()

    async def _check(self) -> None:
        await self.open()
        await self._calls.call("of_session", "check_reachable")


@dataclass
class AskedJudge:
    """The shared judge as a worker asks it.

    Parameters
    ----------
    calls : SharedJudgeCalls
    name, identity, terms, info
        Those of its session.
    judge : HeuristicJudge or None
        What is known about a judge by its class.
    replies : Path or None
        The file of the cache, where the worker sees it: readings are in it.
    """

    calls: SharedJudgeCalls
    name: str
    identity: Mapping[str, Any]
    terms: JudgeConfig
    info: JudgeInfo
    judge: Judge | None
    replies: Path | None

    def __post_init__(self) -> None:
        self.ask = self.calls.ask
        self._store = open_reply_store(self.replies) if self.replies else None
        self.readings = Readings(self._store)  # of the replies before

    async def close(self) -> None:
        """Write the readings; the judge stays."""
        self.readings.flush()
        if self._store is not None:
            self._store.close()
