"""The local engine: one event loop in this process."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from misslink.capture import Watcher
from misslink.engines.protocol import AppSpec, Stage, capture_case
from misslink.engines.shard import RunFacts, Shard, Turns, evaluate_here
from misslink.errors import InputError
from misslink.judge.protocol import Judge
from misslink.judge.session import JudgeSession, JudgeSpec, with_limits
from misslink.registry import engines
from misslink.types import Case, Trace

_gc_lock = threading.Lock()
_gc_before: list[tuple[int, int, int]] = []  # the thresholds to restore, once for each evaluation


@contextlib.contextmanager
def reduced_gc() -> Iterator[None]:
    """Collect garbage less often: a run keeps most objects, and collecting took a third of its time.

    The oldest objects are scanned least: they are the run itself, and one scan of 10,000 cases
    takes 0.7 s.
    """
    with _gc_lock:
        _gc_before.append(_gc_before[0] if _gc_before else gc.get_threshold())
        young, middle, old = _gc_before[0]
        gc.set_threshold(max(young, 50_000), middle, max(old, 100))
    try:
        yield
    finally:
        with _gc_lock:
            before = _gc_before.pop()
            if not _gc_before:  # the last of evaluations that overlap
                gc.set_threshold(*before)


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
