"""A worker as the driver sees it, and what it says of one that failed."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Any

from misslink.engines.ray.cluster import import_ray

__all__ = ["Member", "WorkerDiedError", "failed", "named", "unreadable", "why"]


class WorkerDiedError(Exception):
    """A worker died in the middle of a call, of which nobody knows how far it came.

    Parameters
    ----------
    name : str
        The worker's.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(eq=False)
class Member:
    """A worker as the driver sees it.

    Parameters
    ----------
    name : str
    actor : ray.actor.ActorHandle

    Attributes
    ----------
    busy : int
        Calls it is working on.
    alive : bool
    reserved : bool
        For one call, beside which it gets no other.
    started : asyncio.Task
        Done as soon as it can be asked.
    opened : dict
        What was opened there, or is being opened, by key.
    """

    name: str
    actor: Any
    busy: int = 0
    alive: bool = True
    reserved: bool = False
    started: asyncio.Task[None] | None = None
    opened: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def can(self, key: str | None) -> bool:
        """Whether it has started, and has opened what a call needs."""
        needed = [self.started] if key is None else [self.started, self.opened.get(key)]
        return self.alive and all(task and task.done() and not failed(task) for task in needed)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """All that was begun there."""
        return [task for task in (self.started, *self.opened.values()) if task is not None]

    def end(self) -> None:
        """End it, also where it could only not be reached and might come back."""
        self.alive = False
        ray = import_ray()
        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            ray.kill(self.actor, no_restart=True)


def failed(task: asyncio.Task[None]) -> bool:
    """Whether what is done did not come to its end."""
    return task.cancelled() or task.exception() is not None


def why(death: Exception) -> str:
    """Return what Ray says last of a death."""
    lines = str(death).strip().splitlines()
    return (lines[-1] if lines else type(death).__name__)[:300]


def named(error: BaseException) -> str:
    """Return an error's class and words."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def unreadable(name: str, error: Any) -> str:
    """Return the sentence for a worker that cannot import what it is sent."""
    cause = getattr(error, "cause", None) or error
    return (
        f"the worker {name} cannot read what it is sent ({named(cause)}); install there what is "
        "installed here"
    )
