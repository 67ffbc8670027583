"""The Ray engine: the app and the judge's calls on the workers of a cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from misslink.capture import Watcher
from misslink.engines.protocol import AppSpec, Stage
from misslink.engines.ray.cluster import RayCluster, connect_cluster, import_ray
from misslink.engines.ray.code_bundle import pack_code
from misslink.engines.ray.pool import WorkerDiedError, WorkerPool
from misslink.engines.ray.remote_judge import RemoteJudge
from misslink.engines.ray.worker import CodeSource, WorkerSettings
from misslink.errors import InputError
from misslink.judge.backends.custom import is_custom_judge
from misslink.judge.middleware.cache import identity_json
from misslink.judge.protocol import Judge
from misslink.judge.session import JudgeSpec, with_limits
from misslink.registry import engines
from misslink.types import Case, Trace

_MAX_WORKER_DEATHS = 3  # of a case whose worker dies: then it is what kills it
# What judges and apps find their servers and keys by. No more than that leaves this machine.
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
            return CodeSource(spec, parcel=pack_code(spec, self._folder) if packs else None)
        try:
            return CodeSource(None, import_ray().cloudpickle.dumps(thing))
        except Exception as error:
            raise InputError(
                f"the {kind} was given as an object, and cannot be sent to other processes "
                f"({type(error).__name__}: {' '.join(str(error).split())[:200]}); name where it is "
                f"imported from instead, such as file.py:name"
            ) from error
