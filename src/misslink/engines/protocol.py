"""The interface of an engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from misslink.capture import Watcher
from misslink.judge.protocol import Judge
from misslink.judge.session import JudgeSpec
from misslink.retrieval import match_unmet_needs
from misslink.types import Case, Trace

Stage = str  # 'app', 'judge', 'link'


@dataclass(frozen=True)
class AppSpec:
    """The app under test, and how it is watched.

    Parameters
    ----------
    app : object
    spec : str or None
        Where it is imported from. None: it was given as an object, which stays in its process.
    k, depth : int
    id_key, input_key : str or None
    timeout : float or None
        As of an evaluation.
    settings : mapping or None
        The app's call-time settings.
    """

    app: Any
    spec: str | None
    k: int
    depth: int
    id_key: str | None = None
    input_key: str | None = None
    timeout: float | None = None
    settings: Mapping[str, Any] | None = None


class Engine(Protocol):
    """Carries the work of a line's stages: in this process, on a cluster, by a batch service.

    The line, its cache, its limits and its results are the same with every engine, case for
    case; only where and when the work is done differs. An engine is one file in
    ``misslink.engines``, or in anybody's package by the entry point ``misslink.engines``:
    a callable ``(address: str | None, workers: int | None) -> Engine`` with a ``@register`` line.

    Attributes
    ----------
    name : str
        What it is called by ``--engine``.
    """

    name: str

    def at_once(self, stage: Stage, concurrency: int) -> int:
        """How many items of a stage run at once, given the requested `concurrency`."""
        ...

    def reach(self, spec: JudgeSpec) -> Judge:
        """Return what the cache asks where it does not hold a reply: the judge, and its limits."""
        ...

    def observe(self, watcher: Watcher, app: AppSpec) -> Callable[[Case], Awaitable[Trace]]:
        """Return what runs the app for a case, and asks its retriever deeper for what it missed.

        Parameters
        ----------
        watcher : Watcher
            Of the app in this process.
        what : Observed

        Raises
        ------
        InputError
            The app cannot be taken to where the engine works.
        """
        ...

    async def close(self) -> None:
        """Let go of everything it holds."""
        ...


async def capture_case(watcher: Watcher, case: Case, k: int) -> Trace:
    """Return what the app did for a case, with the true ranks of what was missed.

    Parameters
    ----------
    watcher : Watcher
    case : Case
    k : int
        How many passages count as the context where the prompt was not seen.
    """
    trace = await watcher.watch(case)
    missing = match_unmet_needs(case, trace, k)
    return await watcher.deepen(case, trace, missing) if missing else trace
