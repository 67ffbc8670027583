"""Ray workers: calls go to the least busy one, and dead workers are replaced."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from misslink.engines.ray.cluster import RayCluster, import_ray
from misslink.engines.ray.worker import RayWorker, WorkerReply, WorkerSettings
from misslink.errors import EngineUnreachableError, InputError, MisslinkError


class WorkerDiedError(Exception):
    """A worker died during a call, and the call's progress is unknown."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(eq=False)
class WorkerHandle:
    """A worker, from the point of view of the driver.

    Parameters
    ----------
    name : str
    actor : ray.actor.ActorHandle

    Attributes
    ----------
    busy : int
        Number of its calls in progress.
    alive : bool
    reserved : bool
        For one call; it gets no other call.
    tasks : dict
        By key, the opening of each app and judge; under None its start.
    """

    name: str
    actor: Any
    busy: int = 0
    alive: bool = True
    reserved: bool = False
    tasks: dict[str | None, asyncio.Task[None]] = field(default_factory=dict)

    def can(self, key: str | None) -> bool:
        """Whether it has started, and has opened what a call needs."""
        needed = self.tasks.get(None), self.tasks.get(key)
        return self.alive and all(task and task.done() and not task_failed(task) for task in needed)

    def end(self) -> None:
        """End it, also if it was only unreachable and might come back."""
        self.alive = False
        ray = import_ray()
        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            ray.kill(self.actor, no_restart=True)


def task_failed(task: asyncio.Task[None]) -> bool:
    """Whether a finished task failed or was cancelled."""
    return task.cancelled() or task.exception() is not None


def describe_error(error: BaseException) -> str:
    """Return the class and the text of an error."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


_log = logging.getLogger(__name__)
_START_TIMEOUT_S = 120.0  # for a worker to start: a node may have to import large packages
_CLOSE_TIMEOUT_S = 5.0
_MIN_FATAL_DEATHS = 10  # workers in a row without a result: then the cause is not one worker
_SETUP_STAGES = "start", "open", "close"  # calls without a result
_ISOLATE_AFTER_DEATHS = 2  # deaths at one call: a single one may be chance
_MIN_CPU_SHARE = 0.001  # of a processor; Ray counts in ten-thousandths
_RESUME_HINT = "finished work is saved, and the same command continues"

OpenCall = tuple[str, tuple[Any, ...]]  # the method that opens something, and its arguments


class WorkerPool:
    """The workers; the first call starts them.

    Parameters
    ----------
    cluster : Cluster
    count : int
        At least 1.
    settings : callable
        Returns the settings of a new worker.
    """

    def __init__(
        self, cluster: RayCluster, count: int, settings: Callable[[], WorkerSettings]
    ) -> None:
        self.count = count
        self._cluster = cluster
        self._settings = settings
        self._members: list[WorkerHandle] = []
        self._openings: dict[str, OpenCall] = {}
        self._numbered = 0
        # Names are taken within a namespace, which a process may share with another run.
        self._namespace = f"misslink-{uuid.uuid4().hex}"
        self._deaths = 0
        self._changed = asyncio.Event()
        self._alone = asyncio.Lock()
        self._closing = False

    def open(self, key: str, method: str, *arguments: Any) -> None:
        """Open an app or a judge on every worker, also on later ones."""
        self._openings[key] = method, arguments
        for member in self._members:
            self._open(member, key)

    async def ready(self, key: str | None) -> WorkerHandle:
        """Wait until a worker can be asked, and return the least busy one.

        Raises
        ------
        EngineUnreachableError
            The cluster gives no worker.
        MisslinkError
            A worker could not open the app or the judge.
        """
        self._fill()
        while True:
            able = [member for member in self._members if member.can(key)]
            if free := [member for member in able if not member.reserved]:
                return min(free, key=lambda member: member.busy)
            self._raise_what_failed(key)
            self._changed.clear()
            try:
                # A worker that is reserved comes back when its call does, however long that is.
                async with asyncio.timeout(None if able else _START_TIMEOUT_S):
                    await self._changed.wait()
            except TimeoutError:
                raise EngineUnreachableError(
                    f"the Ray cluster gave no worker within {_START_TIMEOUT_S:g} s: its processors are "
                    f"taken, or its nodes gone; {_RESUME_HINT}"
                ) from None

    @contextlib.asynccontextmanager
    async def turn(self, key: str | None, deaths: int) -> AsyncIterator[WorkerHandle]:
        """Yield a worker for one call.

        A call during which two workers died may have killed them. So it gets a worker for itself,
        whose death then fails no other call.

        Parameters
        ----------
        key : str or None
            The app or judge that the call needs.
        deaths : int
            Number of workers that died during it.
        """
        if deaths < _ISOLATE_AFTER_DEATHS:
            yield await self.ready(key)
            return
        async with self._alone:
            while True:
                member = await self.ready(key)
                member.reserved = True
                try:
                    while member.busy and member.alive:
                        self._changed.clear()
                        await self._changed.wait()
                    if member.alive:
                        yield member
                        return
                finally:
                    member.reserved = False
                    self._changed.set()

    async def call(
        self, member: WorkerHandle, stage: str, method: str, *arguments: Any
    ) -> WorkerReply:
        """Call a method of a worker; a call that is cancelled here ends there too.

        Raises
        ------
        WorkerDiedError
            It died during the call; another one starts.
        InputError
            The worker cannot read the data.
        """
        ray = import_ray()
        if not member.alive:  # it died while this call waited to have it alone
            raise WorkerDiedError(member.name)
        member.busy += 1
        call = getattr(member.actor, method).options(name=stage).remote(*arguments)
        try:
            answer: WorkerReply = await call
        except asyncio.CancelledError:
            with contextlib.suppress(ray.exceptions.RayError):
                ray.cancel(call)
            raise
        except ray.exceptions.RayTaskError as error:
            cause = describe_error(getattr(error, "cause", None) or error)
            raise InputError(
                f"the worker {member.name} cannot read the data it receives ({cause}); install the "
                "same packages there"
            ) from None
        except ray.exceptions.RayError as death:  # or it cannot be reached
            self._bury(member, death)
            raise WorkerDiedError(member.name) from None
        finally:
            member.busy -= 1
            if member.reserved and not member.busy:
                self._changed.set()
        if stage not in _SETUP_STAGES:
            self._deaths = 0
        return answer

    async def close(self, key: str, method: str) -> None:
        """Close an app or a judge on every worker."""
        self._openings.pop(key, None)
        able = [member for member in self._members if member.can(key)]
        for member in self._members:
            if (task := member.tasks.pop(key, None)) is not None:
                task.cancel()
        await self._farewell(able, method, key)

    async def end(self) -> None:
        """End all workers."""
        self._closing = True
        tasks = [task for member in self._members for task in member.tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if not self._cluster.shared:  # they have unpacked code into folders
            await self._farewell([worker for worker in self._members if worker.can(None)], "leave")
        for member in self._members:
            member.end()
        self._members.clear()

    async def _farewell(
        self, members: Sequence[WorkerHandle], method: str, *arguments: Any
    ) -> None:
        """Call a closing method of workers, and wait a few seconds at most."""
        calls = [self.call(member, "close", method, *arguments) for member in members]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await asyncio.gather(*calls, return_exceptions=True)

    def _fill(self) -> None:
        """Start workers until there are `count`."""
        self._members = [member for member in self._members if member.alive]
        while len(self._members) < self.count and not self._closing:
            member = self._start()
            self._members.append(member)
            for key in self._openings:
                self._open(member, key)

    def _start(self) -> WorkerHandle:
        ray = import_ray()
        name = f"misslink-worker-{self._numbered}"
        self._numbered += 1
        # Workers mostly wait, so several may share a processor.
        share = min(1.0, max(_MIN_CPU_SHARE, self._cluster.processors / self.count))
        share -= share % _MIN_CPU_SHARE if share < 1 else 0
        actor = (
            ray.remote(RayWorker)
            .options(
                name=name,
                namespace=self._namespace,
                num_cpus=share,
                scheduling_strategy="SPREAD",
                max_restarts=0,
            )
            .remote()
        )
        member = WorkerHandle(name, actor)

        async def greet() -> None:
            (await self.call(member, "start", "hello", self._settings())).result()

        member.tasks[None] = self._watched(greet())
        return member

    def _open(self, member: WorkerHandle, key: str) -> None:
        method, arguments = self._openings[key]
        before = [task for task in member.tasks.values() if not task.done()]

        async def open_after() -> None:
            if before:
                await asyncio.wait(before)
            if task_failed(member.tasks[None]):
                return
            (await self.call(member, "open", method, key, *arguments)).result()

        member.tasks[key] = self._watched(open_after())

    def _watched(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)

        def on_done(done: asyncio.Task[None]) -> None:
            if not done.cancelled():
                done.exception()  # read here, so that asyncio does not log it; `ready` raises it
            self._changed.set()

        task.add_done_callback(on_done)
        return task

    def _raise_what_failed(self, key: str | None) -> None:
        """Raise the error with which a worker could not open something, unless it died."""
        for member in self._members:
            for task in (member.tasks.get(None), member.tasks.get(key)):
                if task is None or not task.done() or task.cancelled():
                    continue
                error = task.exception()
                if error is None or isinstance(error, WorkerDiedError):
                    continue
                if isinstance(error, MisslinkError) and not isinstance(error, InputError):
                    raise error
                message = str(error) if isinstance(error, InputError) else describe_error(error)
                raise InputError(f"on the worker {member.name}: {message}")

    def _bury(self, member: WorkerHandle, death: Exception) -> None:
        """Remove a dead worker, and start another one."""
        if not member.alive:
            return
        member.end()
        self._changed.set()
        if self._closing:
            return
        self._deaths += 1
        _log.warning("the worker %s died; its calls are repeated on another worker", member.name)
        if self._deaths >= max(_MIN_FATAL_DEATHS, 3 * self.count):
            reason = (str(death).strip().splitlines() or [type(death).__name__])[-1][:300]
            raise EngineUnreachableError(
                f"{self._deaths} workers died in a row, the last one because {reason}; "
                f"{_RESUME_HINT}"
            )
        self._fill()
