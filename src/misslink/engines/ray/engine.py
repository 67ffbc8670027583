"""The Ray engine: the app and the judge's calls on the workers of a cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from misslink.capture import Watcher
from misslink.engines.protocol import AppSpec, Stage
from misslink.engines.ray.cluster import RayCluster, connect_cluster, import_ray
from misslink.engines.ray.code_bundle import CodeSource, pack_code
from misslink.engines.ray.pool import WorkerDiedError, WorkerHandle, WorkerPool
from misslink.engines.ray.shards import evaluate_on_cluster, is_free
from misslink.engines.ray.worker import (
    SERVER_FACTS,
    WorkerReply,
    WorkerSettings,
    restore_reply,
    serializable_ask,
)
from misslink.engines.shard import RunFacts, Shard, Turns, evaluate_here
from misslink.errors import InputError
from misslink.judge.backends.custom import is_custom_judge
from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.middleware.cache import identity_json
from misslink.judge.middleware.throttle import ask_with_timeout
from misslink.judge.protocol import Ask, Judge, JudgeInfo, Reply, RetryableError, judge_info
from misslink.judge.session import JudgeSession, JudgeSpec, with_limits
from misslink.registry import engines
from misslink.types import Case, Trace

_MAX_REACHABILITY_TRIES = 3  # if workers die during the check, which costs nothing
_MAX_WORKER_DEATHS = 3  # of one case: then the case kills them
# Variables with addresses and keys of judges and apps; no others are sent to workers.
_FORWARDED_SUFFIXES = "_API_KEY", "_BASE_URL", "_API_BASE", "_ENDPOINT", "_API_VERSION"
_FORWARDED_PREFIX = "OPENAI_"


@engines.register("ray")
def open_ray(address: str | None = None, workers: int | None = None) -> RayEngine:
    """Open the engine that works on a Ray cluster.

    Parameters
    ----------
    address : str or None
        ``auto`` or ``HOST:PORT``: a cluster to join, which continues after the run. None: one of
        this machine alone, which ends with the run.
    workers : int or None
        Number of workers. None: one for each of the cluster's processors.

    Raises
    ------
    EngineUnreachableError
        There is no such cluster.
    InputError
        The address is invalid.
    MissingExtraError
        Ray is not installed.
    """
    return RayEngine(connect_cluster(address, workers), workers)


class RayEngine:
    """Apps and judges on workers of a cluster; the cache and all limits in this process.

    Parameters
    ----------
    cluster : Cluster
    workers : int or None

    Attributes
    ----------
    pool : Pool
        The workers.
    """

    name = "ray"

    def __init__(self, cluster: RayCluster, workers: int | None = None) -> None:
        self._cluster = cluster
        self._folder = Path.cwd()
        self._threads = 1
        self._opened = 0
        self.pool = WorkerPool(cluster, workers or cluster.processors, self._settings)

    def at_once(self, stage: Stage, concurrency: int) -> int:  # noqa: ARG002 (the same for all)
        """As many as were asked for, on all workers together."""
        self._threads = max(self._threads, concurrency)
        return concurrency

    def reach(self, spec: JudgeSpec) -> Judge:
        """Return the judge as the workers have it, within the same limits as anywhere.

        Raises
        ------
        InputError
            It was given as an object that cannot be sent, or its code is too large.
        """
        if isinstance(spec.judge, HeuristicJudge):  # each shard has it where it is evaluated
            return with_limits(spec)
        key = self._key("judge")
        own = spec.spec is not None and is_custom_judge(spec.spec)
        sought = self._sought(spec.spec, spec.judge, "judge", packable=own)
        self.pool.open(key, "open_judge", sought, spec.terms, identity_json(spec.judge))
        return with_limits(replace(spec, judge=RemoteJudge(spec.judge, self.pool, key)))

    def observe(
        self,
        watcher: Watcher,  # noqa: ARG002 (each worker has one of its own)
        app: AppSpec,
    ) -> Callable[[Case], Awaitable[Trace]]:
        """Return what runs the app on a worker.

        Raises
        ------
        InputError
            It was given as an object that cannot be sent, or its code is too large.
        """
        key = self._key("app")
        sought = self._sought(app.spec, app.app, "app", packable=True)
        self.pool.open(key, "open_app", sought, replace(app, app=None))

        async def observed(case: Case) -> Trace:
            for deaths in range(_MAX_WORKER_DEATHS):
                async with self.pool.turn(key, deaths) as member:
                    with contextlib.suppress(WorkerDiedError):
                        reply = await self.pool.call(member, "capture", "observe", key, case)
                        trace: Trace = reply.result()
                        return trace
            return Trace(
                case_id=case.id,
                error=f"each of {_MAX_WORKER_DEATHS} worker processes died while the app answered this question",
            )

        return observed

    async def evaluate(
        self,
        shards: Iterable[Shard],
        facts: RunFacts,
        judge: JudgeSession | None,
        turns: Turns,
        keep: Callable[[Shard, list[Any]], object],
    ) -> None:
        """Evaluate shards as tasks of the cluster.

        Where the judge has limits, or linking asks the app's retrievers deeper, they are evaluated in
        this process, and the judge's calls are made on workers.
        """
        if is_free(judge) and not (facts.measured and facts.measured.deepen):
            cluster, workers = self._cluster, self.pool.count
            await evaluate_on_cluster(cluster, workers, shards, facts, judge, turns, keep)
        else:
            await evaluate_here(shards, facts, judge, turns, keep)

    async def close(self) -> None:
        """End the workers, and leave the cluster; one of this machine alone ends."""
        try:
            await self.pool.end()
        finally:
            self._cluster.leave()

    def _key(self, kind: str) -> str:
        self._opened += 1
        return f"{kind}-{self._opened}"

    def _settings(self) -> WorkerSettings:
        passed_on = {
            name: value
            for name, value in os.environ.items()
            if name.endswith(_FORWARDED_SUFFIXES) or name.startswith(_FORWARDED_PREFIX)
        }
        return WorkerSettings(str(self._folder), self._cluster.shared, self._threads, passed_on)

    def _sought(self, spec: str | None, thing: Any, kind: str, *, packable: bool) -> CodeSource:
        """How the workers find an app or a judge."""
        if spec is not None:
            packs = packable and not self._cluster.shared
            return (pack_code(spec, self._folder) if packs else None) or CodeSource(spec)
        try:
            return CodeSource(None, import_ray().cloudpickle.dumps(thing))
        except Exception as error:
            raise InputError(
                f"the {kind} was given as an object, and cannot be sent to other processes "
                f"({type(error).__name__}: {' '.join(str(error).split())[:200]}); name where it is "
                f"imported from instead, such as file.py:name"
            ) from error


class RemoteJudge:
    """A judge that each worker has opened under `key`; `judge` is the same, opened here.

    What a server supports is detected once: until the first reply all questions go to one worker,
    and the judges of the other workers learn the result.
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
        """The info of the judge, with what the judges on the workers detected."""
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
        """Ask once, on the least busy worker.

        Raises
        ------
        EngineUnreachableError
            No worker can be had.
        RetryableError
            The worker died during the call, which may be charged; or what the judge raises.
        """
        async with self._turn(ask) as worker:
            return await worker.ask(ask)

    async def ask_with_timeout(self, ask: Ask, seconds: float, begin: Callable[[], None]) -> Reply:
        """Ask as `ask` does; waiting for a worker does not count as time.

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
            # Like a call that was cut off: the server may charge for it.
            raise RetryableError(f"the worker {death.name} died meanwhile", "time") from None
        self._note(member, answer)
        reply = answer.result()
        return restore_reply(reply, ask) if isinstance(reply, Reply) else reply

    @contextlib.asynccontextmanager
    async def _turn(self, ask: Ask) -> AsyncIterator[_JudgeOnWorker]:
        """A worker for a question: the probing one until it is known what the server supports."""
        deaths = self._deaths.get(ask.key, 0)
        if not deaths and (first := await self._probing_worker()):
            yield _JudgeOnWorker(self, first)
            return
        async with self._pool.turn(self._key, deaths) as member:
            yield _JudgeOnWorker(self, member)

    async def _probing_worker(self) -> WorkerHandle | None:
        """The worker that detects what the server supports; None if that is known."""
        if self.info.abilities != {}:
            return None
        if self._first is None or not self._first.can(self._key):
            self._first = await self._pool.ready(self._key)
        return self._first

    def _note(self, member: WorkerHandle, answer: WorkerReply) -> None:
        """Store what a worker's judge has detected, for this process and the other workers."""
        if answer.sent is not None:
            self._sent[member.name] = max(answer.sent, self._sent.get(member.name, 0))
        facts = {name: value for name, value in answer.facts.items() if value}
        news = "abilities" in facts and facts["abilities"] != self._found.get("abilities")
        learn = judge_info(self._bare).learn
        if news and learn is not None:
            learn(facts["abilities"])
        self._found |= facts


class _JudgeOnWorker:
    """The judge on one worker, as a judge of its own for `ask_with_timeout`."""

    def __init__(self, remote: RemoteJudge, member: WorkerHandle) -> None:
        self.name, self.identity = remote.name, remote.identity
        self._remote = remote
        self._member = member

    async def ask(self, ask: Ask) -> Reply:
        return await self._remote._put(self._member, ask)  # noqa: SLF001 (its own other half)

    async def close(self) -> None:
        """`RemoteJudge.close` closes it."""
