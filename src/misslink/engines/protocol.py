"""The interface of an engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from misslink.capture import Watcher
from misslink.engines.shard import RunFacts, Shard, Turns
from misslink.judge.protocol import Judge
from misslink.judge.session import JudgeSession, JudgeSpec
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
    k : int
    options : mapping
        Those of the `Watcher`.
    """

    app: Any
    spec: str | None
    k: int
    options: Mapping[str, Any]


class Engine(Protocol):
    """Runs the stages of the pipeline: in this process, on a cluster, or by a batch service.

    The pipeline, its cache, its limits and its results are the same with every engine; only the
    place and time of the work differ. An engine is one file in ``misslink.engines``, or in another
    package with the entry point ``misslink.engines``: a callable
    ``(address: str | None, workers: int | None) -> Engine`` with a ``@register`` line.

    Attributes
    ----------
    name : str
        Its name for ``--engine``.
    """

    name: str

    def at_once(self, stage: Stage, concurrency: int) -> int:
        """How many items of a stage run at once, given the requested `concurrency`."""
        ...

    def reach(self, spec: JudgeSpec) -> Judge:
        """Return the judge, within its limits, that answers what the cache does not have."""
        ...

    def observe(self, watcher: Watcher, app: AppSpec) -> Callable[[Case], Awaitable[Trace]]:
        """Return a function that runs the app for a case and searches deeper for missed passages.

        Parameters
        ----------
        watcher : Watcher
            Watches the app in this process.
        app : AppSpec

        Raises
        ------
        InputError
            The app cannot be taken to where the engine works.
        """
        ...

    async def evaluate(
        self,
        shards: Iterable[Shard],
        facts: RunFacts,
        judge: JudgeSession | None,
        turns: Turns,
        keep: Callable[[Shard, list[Any]], object],
    ) -> None:
        """Evaluate shards by `misslink.engines.shard.evaluate_shard`, and hand them on in their order.

        Parameters
        ----------
        shards : iterable of Shard
            Each is made when its turn comes.
        facts : RunFacts
        judge : JudgeSession or None
        turns : Turns
            How many cases are under way at once, and what is told of each that is done.
        keep : callable
            Called with each shard and what was made of it.
        """
        ...

    async def close(self) -> None:
        """Release everything that it holds."""
        ...


async def capture_case(watcher: Watcher, case: Case, k: int) -> Trace:
    """Return the trace of a case, with the true ranks of missed passages.

    Parameters
    ----------
    watcher : Watcher
    case : Case
    k : int
        Number of passages that count as the context if the prompt was not seen.
    """
    trace = await watcher.watch(case)
    missing = match_unmet_needs(case, trace, k)
    return await watcher.deepen(case, trace, missing) if missing else trace
