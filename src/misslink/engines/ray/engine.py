"""The engine ``ray``: the app and the judge's calls on a cluster's workers."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from misslink.capture import Watcher
from misslink.engines.local import each
from misslink.engines.protocol import Observed, Stage
from misslink.engines.ray.cluster import Cluster, connect, import_ray
from misslink.engines.ray.member import WorkerDiedError
from misslink.engines.ray.parcel import packed
from misslink.engines.ray.pool import Pool
from misslink.engines.ray.remote import Remote
from misslink.engines.ray.worker import Settings, Sought
from misslink.errors import EngineUnreachableError, InputError
from misslink.judging.models.own import is_own
from misslink.judging.protocol import Judge
from misslink.judging.reaching import Asked, within_limits
from misslink.judging.wrappers.ledger import identity_text
from misslink.registry import engines
from misslink.types import Case, Trace

__all__ = ["RayEngine", "open_ray"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_TRIES = 3  # of a case or a block whose worker dies: then it is what kills it
_BLOCKS_EACH = 2  # of a worker: one that it works on, and the next at hand
# What judges and apps find their servers and keys by. No more than that leaves this machine.
_PASSED_ON = "_API_KEY", "_BASE_URL", "_API_BASE", "_ENDPOINT", "_API_VERSION"
_ALSO = "OPENAI_"


@engines.register("ray")
def open_ray(address: str | None = None, workers: int | None = None) -> RayEngine:
    """Open the engine that works on a Ray cluster.

    Parameters
    ----------
    address : str or None
        ``auto`` or ``HOST:PORT``: a cluster to join, which goes on when the run has ended. None:
        one of this machine alone, which ends with the run.
    workers : int or None
        How many. None: one for each of the cluster's processors.

    Raises
    ------
    EngineUnreachableError
        There is no such cluster.
    InputError
        The address is none.
    MissingExtraError
        Ray is not installed.
    """
    return RayEngine(connect(address, workers), workers)


class RayEngine:
    """Apps and judges on workers of a cluster; the ledger and all limits in this process.

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

    def __init__(self, cluster: Cluster, workers: int | None = None) -> None:
        self._cluster = cluster
        self._folder = Path.cwd()
        self._threads = 1
        self._opened = 0
        self.pool = Pool(cluster, workers or cluster.processors, self._settings)

    def at_once(self, stage: Stage, concurrency: int) -> int:  # noqa: ARG002 (the same for all)
        """As many as were asked for, on all workers together."""
        self._threads = max(self._threads, concurrency)
        return concurrency

    def reach(self, asked: Asked) -> Judge:
        """Return the judge as the workers have it, within the same limits as anywhere.

        Raises
        ------
        InputError
            It was given as an object that cannot be sent, or its code is too large.
        """
        key = self._key("judge")
        own = asked.spec is not None and is_own(asked.spec)
        sought = self._sought(asked.spec, asked.judge, "judge", packable=own)
        self.pool.open(key, "open_judge", sought, asked.terms, identity_text(asked.judge))
        return within_limits(replace(asked, judge=Remote(asked.judge, self.pool, key)))

    def observe(
        self,
        watcher: Watcher,  # noqa: ARG002 (each worker has one of its own)
        what: Observed,
    ) -> Callable[[Case], Awaitable[Trace]]:
        """Return what runs the app on a worker.

        Raises
        ------
        InputError
            It was given as an object that cannot be sent, or its code is too large.
        """
        key = self._key("app")
        sought = self._sought(what.spec, what.app, "app", packable=True)
        self.pool.open(key, "open_app", sought, replace(what, app=None))

        async def observed(case: Case) -> Trace:
            try:
                trace: Trace = await self._put("capture", "observe", key, key, case)
            except WorkerDiedError:
                return Trace(
                    case_id=case.id,
                    error=f"each of {_TRIES} worker processes died while the app was asked this",
                )
            return trace

        return observed

    async def blocks(
        self,
        stage: Stage,
        work: Callable[[Item], Result],
        blocks: Sequence[Item],
        done: Callable[[int, int], None],
    ) -> list[Result]:
        """Work on the blocks, of which no more than two a worker are under way.

        Raises
        ------
        EngineUnreachableError
            A block's workers die, one after the other.
        """

        async def one(block: Item) -> Result:
            try:
                found: Result = await self._put(stage, "work", None, work, block)
            except WorkerDiedError as death:
                raise EngineUnreachableError(
                    f"each of {_TRIES} worker processes died at one block of '{stage}', the last "
                    f"one {death.name}; their memory may be too small"
                ) from None
            return found

        return await each(blocks, one, _BLOCKS_EACH * self.pool.count, done)

    async def close(self) -> None:
        """End the workers, and leave the cluster; one of this machine alone ends."""
        try:
            await self.pool.end()
        finally:
            self._cluster.leave()

    async def _put(self, stage: Stage, method: str, key: str | None, *arguments: Any) -> Any:
        """Call a worker that has `key` open, another one where it dies.

        Raises
        ------
        WorkerDiedError
            So does every other one.
        """
        deaths = 0
        while True:
            async with self.pool.turn(key, deaths) as member:
                try:
                    return (await self.pool.call(member, stage, method, *arguments)).result()
                except WorkerDiedError:
                    deaths += 1
                    if deaths == _TRIES:
                        raise

    def _key(self, kind: str) -> str:
        self._opened += 1
        return f"{kind}-{self._opened}"

    def _settings(self) -> Settings:
        passed_on = {
            name: value
            for name, value in os.environ.items()
            if name.endswith(_PASSED_ON) or name.startswith(_ALSO)
        }
        return Settings(str(self._folder), self._cluster.shared, self._threads, passed_on)

    def _sought(self, spec: str | None, thing: Any, kind: str, *, packable: bool) -> Sought:
        """How the workers find an app or a judge."""
        if spec is not None:
            packs = packable and not self._cluster.shared
            return Sought(spec, parcel=packed(spec, self._folder) if packs else None)
        try:
            return Sought(None, import_ray().cloudpickle.dumps(thing))
        except Exception as error:
            raise InputError(
                f"the {kind} was given as an object, and cannot be sent to other processes "
                f"({type(error).__name__}: {' '.join(str(error).split())[:200]}); name where it is "
                f"imported from instead, such as file.py:name"
            ) from error
