"""Shards as tasks of a cluster: Ray repeats those whose worker dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from misslink.engines.ray.cluster import RayCluster, import_ray
from misslink.engines.ray.pool import describe_error
from misslink.engines.ray.worker import RaisedError, WorkerReply
from misslink.engines.shard import RunFacts, Shard, Turns, evaluate_shard
from misslink.errors import EngineUnreachableError, InputError
from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.config import JudgeConfig
from misslink.judge.protocol import unwrap_judge
from misslink.judge.session import JudgeSession, open_judge
from misslink.linking.miss_measurement import MissMeasurements
from misslink.parts import Model, lines_of
from misslink.timeouts import stream_concurrently
from misslink.types import Case, Link, Trace, Verdict

_RETRIES = 3  # of a shard whose worker dies, by Ray
_LIMITS = "max_calls", "max_cost", "rpm", "tpm", "deadline"


@dataclass(frozen=True)
class SentShard:
    """A shard as text, what of the run's measurements it needs, and how its judge is opened."""

    cases: Sequence[bytes]
    traces: Sequence[bytes]
    verdicts: Sequence[bytes]
    measured: MissMeasurements | None
    terms: JudgeConfig | None  # None: no judge
    cache: Path | None


def is_free(judge: JudgeSession | None) -> bool:
    """Whether workers may each have the judge for themselves: it costs nothing, and has no limits."""
    if judge is None:
        return True
    limited = any(getattr(judge.terms, name) is not None for name in _LIMITS)
    return isinstance(unwrap_judge(judge), HeuristicJudge) and not limited


async def evaluate_on_cluster(
    cluster: RayCluster,
    workers: int,
    shards: Iterable[Shard],
    facts: RunFacts,
    judge: JudgeSession | None,
    turns: Turns,
    keep: Callable[[Shard, list[Any]], object],
) -> None:
    """Evaluate shards as tasks, and hand them on in their order.

    Raises
    ------
    EngineUnreachableError
        The workers of a shard died again and again.
    """
    ray = import_ray()
    task = ray.remote(_evaluate_sent).options(
        name="shard",
        num_cpus=min(1.0, max(0.001, cluster.processors / workers)),
        max_retries=_RETRIES,
        scheduling_strategy="SPREAD",
    )
    # What shards need of the run goes to each node once, without what it has of single cases.
    of_run, measured = facts, facts.measured
    if measured is not None:
        of_run = replace(facts, measured=replace(measured.of_cases([]), deepen=None))
    known = ray.put(of_run)
    cache = judge.cache.path if judge and cluster.shared else None

    async def work(shard: Shard) -> tuple[Shard, list[Any]]:
        ids = [case.id for case in shard.cases]
        sent = SentShard(
            cases=tuple(lines_of(shard.cases)),
            traces=tuple(lines_of(shard.traces)),
            verdicts=tuple(lines_of(shard.verdicts)),
            measured=measured
            and replace(measured.of_cases(ids), pool=None, deepen=None, nearest={}),
            terms=judge.terms if judge else None,
            cache=cache and cache.absolute(),
        )
        call = task.remote(sent, known)
        try:
            reply: WorkerReply = await call
        except asyncio.CancelledError:
            ray.cancel(call)
            raise
        except ray.exceptions.RayTaskError as error:
            raise InputError(
                f"a worker cannot read the shard it receives ({describe_error(error.cause)}); install "
                "the same packages there"
            ) from None
        except ray.exceptions.RayError as error:
            raise EngineUnreachableError(
                f"{1 + _RETRIES} worker processes died while they evaluated the cases "
                f"'{shard.cases[0].id}' to '{shard.cases[-1].id}' ({type(error).__name__}); finished "
                "work is saved, and the same command continues"
            ) from None
        lines, calls, from_cache = reply.result()
        if judge is not None:
            judge.cache.calls += calls
            judge.cache.from_cache += from_cache
        model: type[BaseModel] = Verdict if facts.measured is None else Link
        for _ in shard.cases:
            turns.done()
        return shard, [model.model_validate_json(line) for line in lines]

    await stream_concurrently(shards, work, workers, lambda made: keep(*made))


def _evaluate_sent(sent: SentShard, facts: RunFacts) -> WorkerReply:
    """What runs on a worker: the text of what was made, the judge's calls, and replies it had."""
    if facts.measured is not None and sent.measured is not None:
        whole, ours = facts.measured, sent.measured
        facts = replace(facts, measured=replace(ours, pool=whole.pool, nearest=whole.nearest))
    shard = Shard(_read(Case, sent.cases), _read(Trace, sent.traces), _read(Verdict, sent.verdicts))

    async def evaluate() -> tuple[list[bytes], int, int]:
        judge, turns = None, Turns(len(shard.cases))
        if sent.terms is not None:
            at_once = len(shard.cases)
            judge = open_judge("heuristic", cache=sent.cache, concurrency=at_once, terms=sent.terms)
        try:
            made = await evaluate_shard(shard, facts, judge, turns)
            calls = (judge.cache.calls, judge.cache.from_cache) if judge else (0, 0)
            return list(lines_of(made)), *calls
        finally:
            if judge is not None:
                await judge.close()

    try:
        return WorkerReply(asyncio.run(evaluate()))
    except Exception as error:  # noqa: BLE001 (whatever it is, it is the driver's to deal with)
        return WorkerReply(raised=RaisedError.from_error(error))


def _read(model: type[Model], lines: Sequence[bytes]) -> tuple[Model, ...]:
    return tuple(map(model.model_validate_json, lines))
