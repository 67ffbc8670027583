"""Calls of Ray workers: each goes to the least busy one, and a worker that died is started again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.engines.ray.cluster import import_ray
from misslink.engines.ray.worker import Opening, WorkerReply, WorkerSettings
from misslink.errors import EngineUnreachableError, InputError, MisslinkError

_log = logging.getLogger(__name__)
MAX_DEATHS = 3  # of workers at one case, question or shard: then it kills them
_START_TIMEOUT_S = 120.0  # for a worker to start: a node may have to import large packages
_MIN_FATAL_DEATHS = 10  # workers in a row without a result: then the cause is not one worker
RESUME_HINT = "finished work is saved, and the same command continues"


class WorkerDiedError(Exception):
    """A worker died during a call, and the call's progress is unknown."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(eq=False)
class WorkerHandle:
    """A worker: its actor, its calls in progress, and whether it started and opened everything."""

    name: str
    actor: Any
    busy: int = 0
    start: asyncio.Task[None] | None = None


class Workers:
    """The workers, as one process calls them.

    Parameters
    ----------
    actors : mapping of str to ray.actor.ActorHandle
        By name.
    settings : WorkerSettings
    openings : sequence of Opening
        What each opens before its first call.
    """

    def __init__(
        self, actors: Mapping[str, Any], settings: WorkerSettings, openings: Sequence[Opening] = ()
    ) -> None:
        self.all = [WorkerHandle(name, actor) for name, actor in actors.items()]
        self.settings = settings
        self.openings = openings
        self._deaths = 0

    async def ready(self) -> WorkerHandle:
        """Wait until a worker can be called, and return the least busy one.

        Raises
        ------
        EngineUnreachableError
            The cluster gives no worker.
        MisslinkError
            A worker could not open the app or the judge.
        """
        while True:
            for member in self.all:
                member.start = member.start or asyncio.create_task(self._start(member))
            starts = {member.start: member for member in self.all if member.start}
            started, _ = await asyncio.wait(
                starts, timeout=_START_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED
            )
            if not started:
                raise EngineUnreachableError(
                    f"the Ray cluster gave no worker within {_START_TIMEOUT_S:g} s: its processors "
                    f"are taken, or its nodes gone; {RESUME_HINT}"
                )
            for start in started:
                start.result()
            able = [starts[start] for start in started if starts[start].start is start]
            if able:  # else they died meanwhile
                return min(able, key=lambda member: member.busy)

    async def call(self, member: WorkerHandle, method: str, *arguments: Any) -> WorkerReply:
        """Call a method of a worker; a call that is cancelled here ends there too.

        Raises
        ------
        WorkerDiedError
            It died during the call; Ray starts it again.
        InputError
            The worker cannot read the data.
        """
        ray, start = import_ray(), member.start
        member.busy += 1
        call = member.actor.call.options(name=method).remote(self.settings, method, *arguments)
        try:
            reply: WorkerReply = await call
        except asyncio.CancelledError:
            ray.cancel(call, recursive=False)  # what it began at other workers comes home
            raise
        except ray.exceptions.RayTaskError as error:
            cause = describe_error(getattr(error, "cause", None) or error)
            raise InputError(
                f"the worker {member.name} cannot read the data it receives ({cause}); install the "
                "same packages there"
            ) from None
        except ray.exceptions.RayError as death:  # or it cannot be reached
            if member.start is start:  # the first call that learns of it
                member.start = None
                self._count_death(member, death)
            raise WorkerDiedError(member.name) from None
        finally:
            member.busy -= 1
        self._deaths = 0
        return reply

    async def _start(self, member: WorkerHandle) -> None:
        """Wait until it runs, also after a death, and have it open everything."""
        ray = import_ray()
        while True:
            patient = member.actor.call.options(max_task_retries=-1)
            await patient.remote(self.settings, "open", ())
            try:
                reply = await member.actor.call.remote(self.settings, "open", self.openings)
            except ray.exceptions.RayError as death:
                self._count_death(member, death)
                continue
            error = reply.raised and reply.raised.error()
            if error is None:
                return
            if isinstance(error, MisslinkError) and not isinstance(error, InputError):
                raise error
            message = str(error) if isinstance(error, InputError) else describe_error(error)
            raise InputError(f"on the worker {member.name}: {message}")

    def _count_death(self, member: WorkerHandle, death: Exception) -> None:
        self._deaths += 1
        _log.warning("the worker %s died; its calls are repeated on another worker", member.name)
        if self._deaths >= max(_MIN_FATAL_DEATHS, 3 * len(self.all)):
            reason = (str(death).strip().splitlines() or [type(death).__name__])[-1][:300]
            raise EngineUnreachableError(
                f"{self._deaths} workers died in a row, the last one because {reason}; {RESUME_HINT}"
            )


def describe_error(error: BaseException) -> str:
    """Return the class and the text of an error."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
