"""The Ray engine: the app, the judge's calls and the shards on the workers of a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from misslink.capture import Watcher
from misslink.engines.protocol import AppSpec, Stage
from misslink.engines.ray.cluster import RayCluster, connect_cluster, import_ray
from misslink.engines.ray.code_bundle import CodeSource, pack_code
from misslink.engines.ray.shared_judge import SharedJudge, SharedJudgeActor, SharedJudgeCalls
from misslink.engines.ray.worker import (
    AppOpening,
    JudgeOpening,
    Opening,
    RayWorker,
    RemoteWatcher,
    SentShard,
    WorkerSettings,
)
from misslink.engines.ray.workers import (
    MAX_DEATHS,
    RESUME_HINT,
    WorkerDiedError,
    WorkerHandle,
    Workers,
)
from misslink.engines.shard import RunFacts, Shard, Turns
from misslink.errors import EngineUnreachableError, InputError
from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.config import is_custom_judge
from misslink.judge.middleware.cache import identity_json
from misslink.judge.protocol import Judge
from misslink.judge.session import JudgeSession, JudgeSpec, open_judge, with_limits
from misslink.linking.missed_passages import PassagePool
from misslink.parts import lines_of
from misslink.registry import engines
from misslink.timeouts import stream_concurrently
from misslink.types import Case, Link, Trace, Verdict

_LIMITS = "max_calls", "max_cost", "rpm", "tpm", "deadline"
_MIN_CPU_SHARE = 0.001  # of a processor; Ray counts in ten-thousandths
_MAX_CALLS = 100_000  # of an actor at once, most of which wait
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
    """Apps, judges and shards on workers of a cluster; the judge's cache and limits in one process.

    Parameters
    ----------
    cluster : Cluster
    workers : int or None
        None: one for each processor.
    """

    name = "ray"

    def __init__(self, cluster: RayCluster, workers: int | None = None) -> None:
        self.count = workers or cluster.processors
        self._cluster = cluster
        self._folder = Path.cwd()
        self._threads = 1
        self._openings: list[Opening] = []
        self._watching: dict[str, WorkerHandle] = {}  # which worker ran the app, by case
        self._suspects = asyncio.Lock()
        self._shared: SharedJudge | None = None  # unless there is none, or it is free
        self._started: list[Any] = []
        # Names are taken within a namespace, which a process may share with another run.
        self._namespace = f"misslink-{uuid.uuid4().hex}"

    def at_once(self, stage: Stage, concurrency: int) -> int:  # noqa: ARG002 (the same for all)
        """As many as were asked for, on all workers together."""
        self._threads = max(self._threads, concurrency)
        return concurrency

    def reach(self, spec: JudgeSpec) -> Judge:
        """Return the judge in a process that all workers ask; each has one without limits for itself.

        Raises
        ------
        InputError
            It was given as an object that cannot be sent, or its code is too large.
        """
        if isinstance(spec.judge, HeuristicJudge) and not any(
            getattr(spec.terms, name) is not None for name in _LIMITS
        ):
            return with_limits(spec)
        own = spec.spec is not None and is_custom_judge(spec.spec)
        found = self._opening("judge", spec.spec, spec.judge, packable=own)
        opening = JudgeOpening(*found, spec.terms, identity_json(spec.judge))
        named = spec.named if isinstance(spec.named, str) else opening.target()
        settings, cache = self.workers.settings, spec.cache and spec.cache.absolute()
        actors = {member.name: member.actor for member in self.workers.all}
        opened = settings, named, opening, cache, spec.concurrency, actors
        # On this machine, where the cache is.
        place = {f"node:{import_ray().util.get_node_ip_address()}": _MIN_CPU_SHARE}
        actor = self._start(SharedJudgeActor, "misslink-judge", num_cpus=0, resources=place)
        calls = SharedJudgeCalls(actor, replace(settings, shared=True))
        self._shared = SharedJudge(spec.judge, calls, opened)
        return with_limits(replace(spec, judge=self._shared))

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
        found = self._opening("app", app.spec, app.app, packable=True)
        opening = AppOpening(*found, replace(app, app=None))
        self._openings.append(opening)

        async def observed(case: Case) -> Trace:
            for deaths in range(MAX_DEATHS):
                # So that its next death is no other suspect's.
                async with self._suspects if deaths else contextlib.nullcontext():
                    member = await self.workers.ready()
                    with contextlib.suppress(WorkerDiedError):
                        reply = await self.workers.call(member, "observe", opening, case)
                        trace: Trace = reply.result()
                        self._watching[case.id] = member
                        return trace
            return Trace(
                case_id=case.id,
                error=f"each of {MAX_DEATHS} worker processes died while the app answered this question",
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
        """Evaluate shards on workers, and hand them on in their order.

        Raises
        ------
        EngineUnreachableError
            The workers of a shard died again and again.
        """
        # What shards need of the run goes to each node once, without what it has of single cases.
        of_run, measured = facts, facts.measured
        if measured is not None:
            of_run = replace(facts, measured=replace(measured.of_cases([]), deepen=None))
        known = import_ray().put(of_run)
        if self._shared is not None:
            await self._shared.open()

        async def work(shard: Shard) -> tuple[Shard, list[Any]]:
            sent = await self._sent(shard, facts, judge)
            lines, calls, from_cache = await self._evaluated(sent, [known], shard)
            if judge is not None and self._shared is not None:
                await self._shared.report_to(judge)
            elif judge is not None:
                judge.cache.calls += calls
                judge.cache.from_cache += from_cache
            for _ in shard.cases:
                turns.done()
            model = Verdict if facts.measured is None else Link
            return shard, [model.model_validate_json(line) for line in lines]

        at_once = max(self.count, turns.shards)
        await stream_concurrently(shards, work, at_once, lambda made: keep(*made))

    async def close(self) -> None:
        """End the workers, and leave the cluster; one of this machine alone ends."""
        ray = import_ray()
        try:
            if self._started and not self._cluster.shared:  # they have unpacked code into folders
                settings = self.workers.settings
                calls = [actor.call.remote(settings, "leave") for actor in self._started]
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(5.0):
                        await asyncio.gather(*calls, return_exceptions=True)
            for actor in self._started:
                ray.kill(actor)
        finally:
            self._cluster.leave()

    @cached_property
    def workers(self) -> Workers:
        """The workers."""
        # They mostly wait, so several may share a processor.
        share = min(1.0, max(_MIN_CPU_SHARE, 1000 * self._cluster.processors // self.count / 1000))
        names = [f"misslink-worker-{number}" for number in range(self.count)]
        options = {"num_cpus": share, "scheduling_strategy": "SPREAD", "max_restarts": -1}
        actors = {name: self._start(RayWorker, name, **options) for name in names}
        return Workers(actors, self._settings(), self._openings)

    def _start(self, kind: type, name: str, **options: Any) -> Any:
        """Start a process."""
        actor = (
            import_ray()
            .remote(kind)
            .options(name=name, namespace=self._namespace, max_concurrency=_MAX_CALLS, **options)
        )
        self._started.append(actor.remote())
        return self._started[-1]

    async def _sent(self, shard: Shard, facts: RunFacts, judge: JudgeSession | None) -> SentShard:
        """A shard as it is sent; the driver asks deeper where it ran the app itself."""
        measured, deeper = facts.measured, dict[str, Trace | RemoteWatcher]()
        if measured is not None:
            ids = [case.id for case in shard.cases]
            for case, trace in zip(shard.cases, shard.traces, strict=True):
                if measured.deepen and (member := self._watching.get(case.id)):
                    opening = self._openings[-1]
                    deeper[case.id] = RemoteWatcher(member.actor, self.workers.settings, opening)
                elif measured.deepen:
                    deeper[case.id] = await measured.deepen(case, trace, lambda _: True)
            measured = replace(
                measured.of_cases(ids), pool=PassagePool((), None), deepen=None, nearest={}
            )
        opens: Callable[[], Any] | None = None
        if judge is not None:
            cache, terms = judge.cache.path if self._cluster.shared else None, judge.terms
            cache, count = cache and cache.absolute(), len(shard.cases)
            opens = partial(open_judge, "heuristic", cache=cache, concurrency=count, terms=terms)
            if self._shared is not None:
                opens = self._shared.for_workers(judge, cache)
        texts = [tuple(lines_of(part)) for part in (shard.cases, shard.traces, shard.verdicts)]
        return SentShard(texts, measured, opens, deeper)

    async def _evaluated(self, sent: SentShard, known: list[Any], shard: Shard) -> Any:
        """Have a worker evaluate a shard, and another one where it dies."""
        for _ in range(1 + MAX_DEATHS):
            member = await self.workers.ready()
            with contextlib.suppress(WorkerDiedError):
                return (await self.workers.call(member, "evaluate", sent, known)).result()
        raise EngineUnreachableError(
            f"{1 + MAX_DEATHS} worker processes died while they evaluated the cases "
            f"'{shard.cases[0].id}' to '{shard.cases[-1].id}'; {RESUME_HINT}"
        )

    def _settings(self) -> WorkerSettings:
        passed_on = {
            name: value
            for name, value in os.environ.items()
            if name.endswith(_FORWARDED_SUFFIXES) or name.startswith(_FORWARDED_PREFIX)
        }
        return WorkerSettings(str(self._folder), self._cluster.shared, self._threads, passed_on)

    def _opening(
        self, kind: str, spec: str | None, thing: Any, *, packable: bool
    ) -> tuple[str, CodeSource, tuple[Any, ...]]:
        """How the workers find an app or a judge."""
        if spec is not None:
            packs = packable and not self._cluster.shared
            found = (pack_code(spec, self._folder) if packs else None) or CodeSource(spec)
            archive = (import_ray().put(found.archive),) if found.archive else ()
            return kind, replace(found, archive=None), archive
        try:
            return kind, CodeSource(None, import_ray().cloudpickle.dumps(thing)), ()
        except Exception as error:
            raise InputError(
                f"the {kind} was given as an object, and cannot be sent to other processes "
                f"({type(error).__name__}: {' '.join(str(error).split())[:200]}); name where it is "
                f"imported from instead, such as file.py:name"
            ) from error
