"""The local engine: one event loop in this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from misslink.capture import Watcher
from misslink.engines.protocol import AppSpec, Stage, capture_case
from misslink.engines.shard import RunFacts, Shard, Turns, evaluate_here
from misslink.errors import InputError
from misslink.judge.protocol import Judge
from misslink.judge.session import JudgeSession, JudgeSpec, with_limits
from misslink.registry import engines
from misslink.types import Case, Trace


@engines.register("local")
def open_local(address: str | None = None, workers: int | None = None) -> LocalEngine:
    """Open the engine that works in this process; it takes neither address nor workers."""
    refuse_cluster_options(address, workers, "the engine 'local' is one process")
    return LocalEngine()


def refuse_cluster_options(address: str | None, workers: int | None, why: str) -> None:
    """Refuse the options of an engine on a cluster; `why` says what this engine is.

    Raises
    ------
    InputError
        An address or a number of workers is given.
    """
    if address is not None or workers is not None:
        option = "--ray-address" if address is not None else "--workers"
        raise InputError(f"{option} goes with --engine ray; {why}")


class LocalEngine:
    """Everything runs in this process, in one event loop."""

    name = "local"

    def at_once(self, stage: Stage, concurrency: int) -> int:  # noqa: ARG002 (the same for all)
        """As many as were asked for."""
        return concurrency

    def reach(self, spec: JudgeSpec) -> Judge:
        """The judge itself, within its limits."""
        return with_limits(spec)

    def observe(self, watcher: Watcher, app: AppSpec) -> Callable[[Case], Awaitable[Trace]]:
        """Watch the app where it is."""
        return lambda case: capture_case(watcher, case, app.k)

    async def evaluate(
        self,
        shards: Iterable[Shard],
        facts: RunFacts,
        judge: JudgeSession | None,
        turns: Turns,
        keep: Callable[[Shard, list[Any]], object],
    ) -> None:
        """Evaluate shards in this process."""
        await evaluate_here(shards, facts, judge, turns, keep)

    async def close(self) -> None:
        """Nothing is held."""
