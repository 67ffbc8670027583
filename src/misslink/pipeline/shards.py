"""The shards of a run: evaluated by the engine, written as they are done, and found again."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

from misslink.engines.shard import SHARD_CASES, RunFacts, Shard, Turns
from misslink.io.manifest import hash_content, package_version
from misslink.judge.readings import reading_rules
from misslink.parts import Part, items_of, places_by_case
from misslink.pipeline.context import EvaluationContext
from misslink.types import Trace, Verdict

_log = logging.getLogger(__name__)


async def evaluate_shards(
    context: EvaluationContext,
    facts: RunFacts,
    traces: Sequence[Trace],
    verdicts: Sequence[Verdict] = (),
) -> Part[Any]:
    """Return a part of the run; shards that an interrupted run wrote are reused.

    A shard is made again unless it is made of the very same.
    """
    part, stage = ("links", "link") if facts.measured else ("verdicts", "judge")
    cases, judge, writer = context.gold.cases, context.judge, context.open_part(part)
    places, run = places_by_case(verdicts), _hash_run(context, facts)
    finished, kept = count(1), 0

    def tick() -> None:
        context.tick(stage, next(finished), len(cases))

    def shards() -> Iterator[Shard]:
        nonlocal kept
        for start in range(0, len(cases), SHARD_CASES):
            those = cases[start : start + SHARD_CASES]
            judged = items_of(verdicts, chain.from_iterable(places.get(c.id, ()) for c in those))
            shard = Shard(those, traces[start : start + SHARD_CASES], judged)
            shard = replace(shard, key=facts.key_of(shard, run))
            if not writer.has_shard(shard.key):
                yield shard
                continue
            kept += len(those)
            for _ in those:
                tick()

    def keep(shard: Shard, made: list[Any]) -> None:
        failed = any(getattr(each, "status", None) == "failed" for each in made)
        whole = not failed and not (judge and judge.not_asked)
        writer.add_shard(shard.key, made, whole=whole)

    # No more than there are cases: each shard that may be under way is a task.
    at_once = min(context.engine.at_once(stage, context.config.concurrency), max(len(cases), 1))
    await context.engine.evaluate(shards(), facts, judge, Turns(at_once, tick), keep)
    if kept:
        _log.warning("%s of %d cases are those of the unfinished run", part, kept)
    return writer.part()


def _hash_run(context: EvaluationContext, facts: RunFacts) -> str:
    """A hash of all that shards are made of beside their cases."""
    rules = [package_version("misslink"), reading_rules()]
    pool = facts.measured.pool if facts.measured else None
    return hash_content(
        [
            *rules,
            dict(context.inputs),
            facts.k,
            facts.calibration,
            [[passage.id, passage.text] for passage in pool.passages] if pool else [],
        ]
    )
