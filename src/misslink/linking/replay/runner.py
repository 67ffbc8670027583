"""Replay a run: draw cases, re-run them, and count what the interventions changed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from misslink.errors import AppUnreachableError, InputError
from misslink.judge.protocol import Judge
from misslink.linking.replay.outcomes import (
    APP_FAILED,
    CONFIRMING_INTERVENTIONS,
    GOOD_MISS,
    ReplayOutcome,
    ReplayRecord,
    replay_outcome,
)
from misslink.linking.replay.plan import Intervention, PlannedCase, ReplayPlan, draw_cases
from misslink.linking.replay.rerun import (
    DEFAULT_SETTINGS,
    NO_RETRIEVER,
    NotCachedError,
    Rerunner,
    RerunSettings,
    judging_difference,
    open_rerunner,
)
from misslink.linking.replay.results import ReplayData, replay_document
from misslink.types import Link, Run, Verdict

DEFAULT_SAMPLE = (
    40  # cases of a failure mode: a share of one half is then known to within 15 points
)
_MAX_TRIES = (
    3  # cases that may all find no retriever to replace before the app is taken at its word
)

ReplayProgress = Callable[[int, int], object]  # done, total


@dataclass(frozen=True)
class ReplayResult:
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


async def replay_run(
    run: Run,
    app: Any,
    *,
    judge: Judge,
    settings: RerunSettings = DEFAULT_SETTINGS,
    sample: int = DEFAULT_SAMPLE,
    seed: int = 0,
    folder: Path | None = None,
    tick: ReplayProgress = lambda _, __: None,
) -> ReplayResult:
    """Inject the missed passages, generate again, and judge again.

    Of each failure mode (``retrieval_miss``, ``ignored_context``, ``distracted``, and misses with a good
    answer) at most `sample` cases are drawn. Each is first rerun unchanged: an answer that then turns out
    otherwise is flaky. An intervention that may confirm the failure mode is generated twice. The mode is
    confirmed where the answer is not flaky, turns from bad to good both times and is not the same text.
    `misslink.linking.replay.outcomes.count_generations` says what a case costs.

    Cached cases of earlier replays of the run, by the same app, code and judge, are counted too.

    Parameters
    ----------
    run : Run
    app : str, Runnable or callable
        The app of the run, where to import it from, or a function that builds it from a retriever.
    judge : Judge
        Preferably the run's own: otherwise the run's answers are judged again too, and there is no causal
        attributable fraction.
    settings : RerunSettings
    sample : int
        At least 1; a smaller sample is part of a larger one of the same seed.
    seed : int
        Random seed for the sample and the intervals.
    folder : Path or None
        The run folder, in which generations are saved.
    tick : callable
        Called with how many cases are done, and how many there are.

    Raises
    ------
    InputError
        The app uses no retriever that can be replaced, an argument is wrong, or another process replays
        the run.
    AppUnreachableError, JudgeUnreachableError
        Generations and replies are saved; the same call resumes.
    """
    for name, value in (("sample", sample), ("concurrency", settings.concurrency)):
        if value < 1:
            raise InputError(f"--{name} is {value}; it must be at least 1")
    again = open_rerunner(run, app, judge, settings=settings, folder=folder)
    otherwise = judging_difference(run, judge, settings.prompts, settings.repeats)
    observed = _observed_outcomes(run, again)
    drawn, undrawn, skipped = draw_cases(run, observed, again.k, sample, seed)
    before = observed if otherwise is None else {}
    try:
        records = await _replay_all(
            drawn,
            lambda group, chosen: _replay_case(group, chosen, again, before.get(chosen.case.id)),
            settings.concurrency,
            tick,
        )
        cached = await _cached_records(undrawn, again, before)
    finally:
        again.close()
    records += cached
    # A failure mode that only contributes is not the one that the link names.
    confirmed = {
        record.case_id for record in records if record.confirmed and record.group == record.failure
    }
    links = tuple(
        link.model_copy(update={"basis": "replayed" if link.case_id in confirmed else "observed"})
        for link in run.links
    )
    data = ReplayData(
        run=run,
        observed=observed,
        records=(*records, *skipped),
        again=again,
        sample=sample,
        seed=seed,
        otherwise=otherwise,
        app=app if isinstance(app, str) else None,
        kept=len(cached),
    )
    return ReplayResult(replay_document(data), links)


def _observed_outcomes(run: Run, again: Rerunner) -> dict[str, ReplayOutcome]:
    """How each case of the run turned out."""
    verdicts: dict[str, dict[str, Verdict]] = {}
    for verdict in run.verdicts:
        verdicts.setdefault(verdict.case_id, {})[verdict.metric] = verdict
    traces = {trace.case_id: trace for trace in run.traces}
    return {
        case.id: replay_outcome(
            case,
            traces[case.id],
            verdicts.get(case.id, {}),
            again.k,
            calibration=again.calibration,
        )
        for case in run.cases
    }


async def _cached_records(
    undrawn: Sequence[PlannedCase], again: Rerunner, observed: Mapping[str, ReplayOutcome]
) -> list[ReplayRecord]:
    """The records of undrawn cases that are complete in the cache."""
    records = []
    for group, chosen in undrawn:
        with contextlib.suppress(NotCachedError):
            before = observed.get(chosen.case.id)
            records.append(await _replay_case(group, chosen, again, before, only_kept=True))
    return records


async def _replay_case(
    group: str,
    chosen: ReplayPlan,
    again: Rerunner,
    observed: ReplayOutcome | None,
    *,
    only_kept: bool = False,
) -> ReplayRecord:
    """Rerun a case unchanged, then under each intervention, twice under those that confirm.

    Raises
    ------
    NotCachedError
        `only_kept`, and the app or the judge would have to be asked.
    """
    case, link = chosen.case, chosen.link

    async def outcome(change: Intervention, draw: str = "") -> ReplayOutcome:
        trace, verdicts = await again(
            case,
            change.passages,
            intervention=f"{change.name}{draw}",
            only_kept=only_kept,
            searches=change.searches,
        )
        return replay_outcome(case, trace, verdicts, again.k, change.wanted, again.calibration)

    if observed is None:
        verdicts = await again.judged(case, chosen.trace, only_kept=only_kept)
        observed = replay_outcome(
            case, chosen.trace, verdicts, again.k, calibration=again.calibration
        )
    unchanged = await outcome(chosen.unchanged)
    outcomes = {"observed": observed, "unchanged": unchanged}
    record = ReplayRecord(
        case.id, group, link.failure or "", {}, note=chosen.note, retrieval=link.retrieval
    )
    expected = group != GOOD_MISS
    if observed.bad is None or unchanged.bad is None or observed.bad is not expected:
        why = observed.reason or unchanged.reason or f"this judge finds its answer {observed.name}"
        return replace(record, found=outcomes).named(skipped=why)
    repeats: dict[str, ReplayOutcome] = {}
    record = replace(record, found=outcomes, repeats=repeats)
    for change in chosen.interventions:
        flaky = record.why_flaky() is not None
        # Of a flaky miss the answer with the passage still counts against the one without.
        if (flaky or group == GOOD_MISS) and (change.name != "first" or link.retrieval != "miss"):
            continue
        outcomes[change.name] = await outcome(change)
        if change.name in CONFIRMING_INTERVENTIONS[group] and not flaky:
            repeats[change.name] = await outcome(change, ", again")
    return record.named()


async def _replay_all(
    drawn: Sequence[PlannedCase],
    work: Callable[[str, ReplayPlan], Any],
    concurrency: int,
    tick: ReplayProgress,
) -> list[ReplayRecord]:
    """Work on all, the first ones alone until one shows that the app's retriever is replaced.

    Raises
    ------
    InputError
        No retriever could be replaced in the first cases.
    AppUnreachableError
        The app failed in all cases.
    """
    records: list[ReplayRecord] = []
    for group, chosen in drawn:
        records.append(await work(group, chosen))
        tick(len(records), len(drawn))
        if records[-1].skipped != NO_RETRIEVER:
            break
        if len(records) == min(_MAX_TRIES, len(drawn)):
            cases = "the only case" if len(records) == 1 else f"the first {len(records)} cases"
            raise InputError(f"in {cases} of the replay {NO_RETRIEVER}, named with --app")
    gate = asyncio.Semaphore(concurrency)
    count = len(records)

    async def run_plan(group: str, chosen: ReplayPlan) -> ReplayRecord:
        nonlocal count
        async with gate:
            record: ReplayRecord = await work(group, chosen)
        count += 1
        tick(count, len(drawn))
        return record

    tasks = [asyncio.create_task(run_plan(*pair)) for pair in drawn[len(records) :]]
    try:
        records += await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    failures = [
        record.skipped for record in records if (record.skipped or "").startswith(APP_FAILED)
    ]
    if records and len(failures) == len(records):
        raise AppUnreachableError(
            f"none of {len(records)} replayed questions was answered; the first time {failures[0]}"
        )
    return records
