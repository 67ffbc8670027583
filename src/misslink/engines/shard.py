"""A shard of a run: some of its cases, judged or linked by one function wherever that is."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from misslink.judge.calibration import Calibration
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import JudgedMetric, Subject
from misslink.judge.prompts import Prompts
from misslink.judge.protocol import Judge
from misslink.judge.readings import ALWAYS_READ, Readings
from misslink.linking.miss_measurement import MissMeasurements
from misslink.linking.owners import link_case
from misslink.parts import LazyMapping, light_items, lines_of, places_by_case
from misslink.timeouts import stream_concurrently
from misslink.types import Case, Link, Trace, Verdict

ResultT = TypeVar("ResultT")
SHARD_CASES = 256  # what an interrupted run does again at most, for each shard under way


@dataclass(frozen=True)
class Shard:
    """Cases that follow each other in the gold set, and what was made of them before.

    Parameters
    ----------
    cases, traces : sequence
        One trace for each case.
    verdicts : sequence of Verdict
        Empty until they are made.
    key : str
        A hash of all that its result depends on.
    """

    cases: Sequence[Case]
    traces: Sequence[Trace]
    verdicts: Sequence[Verdict] = ()
    key: str = ""


@dataclass(frozen=True)
class RunFacts:
    """What a shard has to know of the whole run.

    Parameters
    ----------
    k : int
    metrics : tuple of JudgedMetric
    prompts : Prompts
    repeats : int
    calibration : Calibration or None
    measured : MissMeasurements or None
        None: not known yet, so that the shard is judged. Known: it is linked.
    """

    k: int
    metrics: tuple[JudgedMetric, ...]
    prompts: Prompts
    repeats: int = 1
    calibration: Calibration | None = None
    measured: MissMeasurements | None = None

    def key_of(self, shard: Shard, run: str) -> str:
        """A hash of all that a shard is made of; `run` is that of the judge and the settings."""
        digest = hashlib.sha256(run.encode())
        parts = [shard.cases, shard.traces, shard.verdicts]
        if self.measured is not None:
            parts += [self.measured.missed[case.id] for case in shard.cases]
            before = [self.measured.prompted_before.get(case.id) for case in shard.cases]
            digest.update(repr(before).encode())
        for part in parts:
            for line in lines_of(part):
                digest.update(line + b"\n")
            digest.update(b"\n")
        return digest.hexdigest()


@dataclass
class Turns:
    """How many cases are under way at once, in all shards of a process; shards begin in order."""

    at_once: int
    done: Callable[[], object] = lambda: None
    order: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.places = asyncio.Semaphore(self.at_once)

    @property
    def shards(self) -> int:
        """How many shards are under way, so that each place is taken."""
        return 1 + -(-self.at_once // SHARD_CASES)


async def evaluate_here(
    shards: Iterable[Shard],
    facts: RunFacts,
    judge: Judge | None,
    turns: Turns,
    keep: Callable[[Shard, list[Any]], object],
) -> None:
    """Evaluate shards: the next one begins when the places of the one before come free."""

    async def work(shard: Shard) -> tuple[Shard, list[Any]]:
        return shard, await evaluate_shard(shard, facts, judge, turns)

    await stream_concurrently(shards, work, turns.shards, lambda made: keep(*made))


async def evaluate_shard(
    shard: Shard, facts: RunFacts, judge: Judge | None, turns: Turns
) -> list[Verdict] | list[Link]:
    """Judge the cases of a shard, or link them where the run's misses are known.

    It depends on nothing but its arguments, so every engine gets the same from it.
    """
    if facts.measured is None:
        by_case = await _in_turn(_judged(shard, facts, judge), turns) if judge else []
        return [verdict for verdicts in by_case for verdict in verdicts]
    return await _in_turn(_linked(shard, facts, judge), turns)


def _judged(
    shard: Shard, facts: RunFacts, judge: Judge
) -> Iterator[Callable[[], Awaitable[Sequence[Verdict]]]]:
    """The judging of each case."""
    readings: Readings = getattr(judge, "readings", ALWAYS_READ)
    for case, trace in zip(shard.cases, shard.traces, strict=True):
        subject = Subject(case, trace, facts.k, facts.prompts, readings)
        yield partial(judge_case, subject, facts.metrics, judge, repeats=facts.repeats)


def _linked(
    shard: Shard, facts: RunFacts, judge: Judge | None
) -> Iterator[Callable[[], Awaitable[Link]]]:
    """The linking of each case."""
    places, rows = places_by_case(shard.verdicts), light_items(shard.verdicts)
    for case, trace in zip(shard.cases, shard.traces, strict=True):
        yield partial(
            link_case,
            case,
            trace,
            # A verdict that is not held is read only where it is asked for.
            LazyMapping(
                {rows[place].metric: place for place in places.get(case.id, ())},
                shard.verdicts.__getitem__,
            ),
            facts.k,
            measured=facts.measured,
            judge=judge,
            prompts=facts.prompts,
            calibration=facts.calibration,
        )


async def _in_turn(
    works: Iterator[Callable[[], Awaitable[ResultT]]], turns: Turns
) -> list[ResultT]:
    """Do all of it in its order, each as a place is free; the first error ends the rest."""

    async def work(one: Callable[[], Awaitable[ResultT]]) -> ResultT:
        result = await one()
        turns.places.release()
        turns.done()
        return result

    tasks: list[asyncio.Task[ResultT]] = []
    try:
        async with asyncio.TaskGroup() as group, turns.order:
            for one in works:
                await turns.places.acquire()
                tasks.append(group.create_task(work(one)))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
