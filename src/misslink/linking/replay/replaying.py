"""A run replayed: cases drawn for each cause, generated and judged again, case by case."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from misslink.errors import AppUnreachableError, InputError
from misslink.judging.protocol import Judge
from misslink.linking.replay.document import Replays, document
from misslink.linking.replay.interventions import Plan, known_passages, plan
from misslink.linking.replay.outcomes import FAILED, Outcome, outcome_of
from misslink.linking.replay.records import GOOD_MISS, REPLAYED, Record
from misslink.linking.replay.rerun import NOT_ASKED, Rerunner, rerunner
from misslink.linking.replay.terms import judged_otherwise
from misslink.prompting import BUILT_IN, Prompts
from misslink.types import Case, Link, Run, Verdict

__all__ = ["Replayed", "replay"]

SAMPLE = 40  # cases of a cause: a share of one half is then known to within 15 points
_TRIES = 3  # cases that may all find no retriever to replace before the app is taken at its word

Tick = Callable[[int, int], object]  # done, total


@dataclass(frozen=True)
class Replayed:
    """What a replay found.

    Parameters
    ----------
    document : dict
        What ``replay.json`` holds.
    links : sequence of Link
        All links of the run, those of confirmed cases with the basis 'replayed'.
    """

    document: dict[str, Any]
    links: tuple[Link, ...]


async def replay(
    run: Run,
    app: Any,
    *,
    judge: Judge,
    sample: int = SAMPLE,
    k: int | None = None,
    id_key: str | None = None,
    input_key: str | None = None,
    seed: int = 0,
    concurrency: int = 8,
    folder: Path | None = None,
    prompts: Prompts = BUILT_IN,
    repeats: int = 1,
    tick: Tick = lambda _, __: None,
) -> Replayed:
    """Put the missed passage into the context, generate again, and judge again.

    Of each cause at most `sample` cases are drawn: ``retrieval_miss``, ``ignored_context`` and
    ``distracted``, and misses whose answer was good. Each is first rerun with the passages that it
    had. An answer that is then bad where it was good, or good where it was bad, is flaky. A cause
    is confirmed where the answer is not flaky and turns from bad to good under the intervention.

    Parameters
    ----------
    run : Run
    app : str, Runnable or callable
        The app of the run, where to import it from, or a function that builds it from a retriever.
    judge : Judge
        Best the run's own: otherwise the run's answers are judged anew too, and there is no causal
        attributable fraction.
    sample : int
        At least 1.
    k : int or None
        As of `Rerunner`; the run's own if None.
    id_key, input_key : str or None
        As of `Rerunner`; the run's own if None.
    seed : int
        Of the draw and the intervals.
    concurrency : int
        Cases under way at once, at least 1.
    folder : Path or None
        The run folder, in which generations are kept as they come.
    prompts, repeats
        As of `Rerunner`.
    tick : callable
        Called with how many cases are done, and how many there are.

    Returns
    -------
    Replayed
        Where no case has such a cause, every estimate says that it is missing.

    Raises
    ------
    InputError
        The app asks no retriever that could be replaced, something given is wrong, or another
        process replays the run.
    AppUnreachableError, JudgeUnreachableError
        Asking on is pointless; generations and replies are kept, and the same call goes on.
    """
    for name, value in (("sample", sample), ("concurrency", concurrency)):
        if value < 1:
            raise InputError(f"--{name} is {value}; it must be at least 1")
    again = rerunner(
        run,
        app,
        judge,
        folder=folder,
        k=k,
        id_key=id_key,
        input_key=input_key,
        prompts=prompts,
        repeats=repeats,
    )
    otherwise = judged_otherwise(run, judge, prompts, repeats)
    observed = _observed(run, again)
    drawn, skipped = _draw(run, observed, again.k, sample, seed)
    try:
        records = await _all(
            drawn,
            lambda group, chosen: _replayed(
                group, chosen, again, observed[chosen.case.id] if otherwise is None else None
            ),
            concurrency,
            tick,
        )
    finally:
        again.close()
    confirmed = {record.case_id for record in records if record.confirmed}
    links = tuple(
        link.model_copy(update={"basis": "replayed" if link.case_id in confirmed else "observed"})
        for link in run.links
    )
    found = Replays(
        run=run,
        observed=observed,
        records=(*records, *skipped),
        again=again,
        sample=sample,
        seed=seed,
        otherwise=otherwise,
        app=app if isinstance(app, str) else None,
    )
    return Replayed(document(found), links)


def _observed(run: Run, again: Rerunner) -> dict[str, Outcome]:
    """How each case of the run turned out."""
    verdicts: dict[str, dict[str, Verdict]] = {}
    for verdict in run.verdicts:
        verdicts.setdefault(verdict.case_id, {})[verdict.metric] = verdict
    traces = {trace.case_id: trace for trace in run.traces}
    return {
        case.id: outcome_of(
            case,
            traces[case.id],
            verdicts.get(case.id, {}),
            again.k,
            calibration=again.calibration,
        )
        for case in run.cases
    }


def _draw(
    run: Run, observed: Mapping[str, Outcome], k: int, sample: int, seed: int
) -> tuple[list[tuple[str, Plan]], list[Record]]:
    """Draw the cases of each group among those that can be replayed, and say why others cannot."""
    cases = {case.id: case for case in run.cases}
    traces = {trace.case_id: trace for trace in run.traces}
    known = known_passages(run.traces)
    groups: dict[str, list[Plan]] = {name: [] for name in (*get_args(REPLAYED), GOOD_MISS)}
    skipped = []
    for link in run.links:
        group = _group(link, cases[link.case_id], observed[link.case_id])
        if group is None:
            continue
        chosen = plan(cases[link.case_id], traces[link.case_id], link, k, known)
        if isinstance(chosen, str):
            name = observed[link.case_id].name
            skipped.append(Record(link.case_id, group, link.cause, {"observed": name}, chosen))
        else:
            groups[group].append(chosen)
    drawn = []
    for name, plans in groups.items():
        # A generator for each group: what one holds does not change what is drawn of another.
        draw = random.Random(f"{seed} {name}")  # noqa: S311 (no secret)
        drawn += [(name, one) for one in draw.sample(plans, min(sample, len(plans)))]
    return drawn, skipped


def _group(link: Link, case: Case, observed: Outcome) -> str | None:
    """The group that a case is drawn with; None where nothing is replayed of it."""
    if link.cause in get_args(REPLAYED):
        return link.cause
    is_good_miss = link.retrieval == "miss" and observed.bad is False
    return GOOD_MISS if is_good_miss and case.expects_answer is not False else None


async def _replayed(group: str, chosen: Plan, again: Rerunner, observed: Outcome | None) -> Record:
    """Rerun a case unchanged, then under each intervention."""
    case, link = chosen.case, chosen.link

    async def outcome(name: str, passages: Any, wanted: frozenset[str]) -> Outcome:
        trace, verdicts = await again(case, passages, intervention=name)
        return outcome_of(case, trace, verdicts, again.k, wanted, again.calibration)

    if observed is None:
        verdicts = await again.judged(case, chosen.trace)
        observed = outcome_of(case, chosen.trace, verdicts, again.k, calibration=again.calibration)
    unchanged = await outcome("unchanged", chosen.unchanged, frozenset())
    found = {"observed": observed, "unchanged": unchanged}
    record = Record(case.id, group, link.cause, {}, note=chosen.note, retrieval=link.retrieval)
    expected = group != GOOD_MISS
    if observed.bad is None or unchanged.bad is None or observed.bad is not expected:
        why = observed.reason or unchanged.reason or f"this judge finds its answer {observed.name}"
        return replace(record, found=found).named(skipped=why)
    flaky = observed.bad is not unchanged.bad
    for change in chosen.interventions:
        # Of a flaky miss the answer with the passage still counts against the one without.
        if (flaky or group == GOOD_MISS) and (change.name != "first" or link.retrieval != "miss"):
            continue
        found[change.name] = await outcome(change.name, change.passages, change.wanted)
    return replace(record, found=found, flaky=flaky).named()


async def _all(
    drawn: Sequence[tuple[str, Plan]],
    work: Callable[[str, Plan], Any],
    concurrency: int,
    tick: Tick,
) -> list[Record]:
    """Work on all, the first ones alone until one shows that the app's retriever is replaced.

    Raises
    ------
    InputError
        No retriever could be replaced in the first cases.
    AppUnreachableError
        The app failed in all cases.
    """
    records: list[Record] = []
    for group, chosen in drawn:
        records.append(await work(group, chosen))
        tick(len(records), len(drawn))
        if records[-1].skipped != NOT_ASKED:
            break
        if len(records) == min(_TRIES, len(drawn)):
            cases = "the only case" if len(records) == 1 else f"the first {len(records)} cases"
            raise InputError(f"in {cases} of the replay {NOT_ASKED}, named with --app")
    gate = asyncio.Semaphore(concurrency)
    count = len(records)

    async def one(group: str, chosen: Plan) -> Record:
        nonlocal count
        async with gate:
            record: Record = await work(group, chosen)
        count += 1
        tick(count, len(drawn))
        return record

    tasks = [asyncio.create_task(one(*pair)) for pair in drawn[len(records) :]]
    try:
        records += await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    failures = [record.skipped for record in records if (record.skipped or "").startswith(FAILED)]
    if records and len(failures) == len(records):
        raise AppUnreachableError(
            f"none of {len(records)} replayed questions was answered; the first time {failures[0]}"
        )
    return records
