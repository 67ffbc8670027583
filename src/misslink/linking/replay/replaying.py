"""A run replayed: cases drawn for each cause, generated and judged again, case by case."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from misslink.errors import AppUnreachableError, InputError
from misslink.judging.protocol import Judge
from misslink.linking.replay.document import Replays, document
from misslink.linking.replay.drawing import Chosen, draw_cases
from misslink.linking.replay.interventions import Intervention, Plan
from misslink.linking.replay.outcomes import FAILED, Outcome, outcome_of
from misslink.linking.replay.records import CONFIRMING, GOOD_MISS, Record
from misslink.linking.replay.rerun import NOT_ASKED, NotKeptError, Rerunner, rerunner
from misslink.linking.replay.terms import judged_otherwise
from misslink.prompting import BUILT_IN, Prompts
from misslink.types import Link, Run, Verdict

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
    had: an answer that then turns out otherwise, or is right where it was wrong, is flaky. What may
    confirm the cause is generated twice, and an answer that is good once only is flaky as well. A
    cause is confirmed where the answer is not flaky, turns from bad to good both times and is not
    the same by the letter. `misslink.linking.replay.records.generations` counts what a case costs.

    Cases of earlier replays of the run whose generations and verdicts are kept, by the same app,
    code and judge, are counted too: they cost nothing, and no smaller replay takes them away.

    Parameters
    ----------
    run : Run
    app : str, Runnable or callable
        The app of the run, where to import it from, or a function that builds it from a retriever.
    judge : Judge
        Best the run's own: otherwise the run's answers are judged anew too, and there is no causal
        attributable fraction.
    sample : int
        At least 1; of a smaller one each case is in a larger one of the same seed.
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
    drawn, others, skipped = draw_cases(run, observed, again.k, sample, seed)
    before = observed if otherwise is None else {}
    try:
        records = await _all(
            drawn,
            lambda group, chosen: _replayed(group, chosen, again, before.get(chosen.case.id)),
            concurrency,
            tick,
        )
        kept = await _kept(others, again, before)
    finally:
        again.close()
    records += kept
    # A cause that only contributes is not the one that the link names.
    confirmed = {one.case_id for one in records if one.confirmed and one.group == one.cause}
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
        kept=len(kept),
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


async def _kept(
    others: Sequence[Chosen], again: Rerunner, observed: Mapping[str, Outcome]
) -> list[Record]:
    """Cases that were not drawn this time and of which everything is known from another."""
    records = []
    for group, chosen in others:
        with contextlib.suppress(NotKeptError):
            before = observed.get(chosen.case.id)
            records.append(await _replayed(group, chosen, again, before, only_kept=True))
    return records


async def _replayed(
    group: str, chosen: Plan, again: Rerunner, observed: Outcome | None, *, only_kept: bool = False
) -> Record:
    """Rerun a case unchanged, then under each intervention, twice under those that confirm.

    Raises
    ------
    NotKeptError
        `only_kept`, and the app or the judge would have to be asked.
    """
    case, link = chosen.case, chosen.link

    async def outcome(change: Intervention, draw: str = "") -> Outcome:
        trace, verdicts = await again(
            case,
            change.passages,
            intervention=f"{change.name}{draw}",
            only_kept=only_kept,
            searches=change.searches,
        )
        return outcome_of(case, trace, verdicts, again.k, change.wanted, again.calibration)

    if observed is None:
        verdicts = await again.judged(case, chosen.trace, only_kept=only_kept)
        observed = outcome_of(case, chosen.trace, verdicts, again.k, calibration=again.calibration)
    unchanged = await outcome(chosen.unchanged)
    found = {"observed": observed, "unchanged": unchanged}
    record = Record(case.id, group, link.cause, {}, note=chosen.note, retrieval=link.retrieval)
    expected = group != GOOD_MISS
    if observed.bad is None or unchanged.bad is None or observed.bad is not expected:
        why = observed.reason or unchanged.reason or f"this judge finds its answer {observed.name}"
        return replace(record, found=found).named(skipped=why)
    repeats: dict[str, Outcome] = {}
    record = replace(record, found=found, repeats=repeats)
    for change in chosen.interventions:
        flaky = record.why_flaky() is not None
        # Of a flaky miss the answer with the passage still counts against the one without.
        if (flaky or group == GOOD_MISS) and (change.name != "first" or link.retrieval != "miss"):
            continue
        found[change.name] = await outcome(change)
        if change.name in CONFIRMING[group] and not flaky:
            repeats[change.name] = await outcome(change, ", again")
    return record.named()


async def _all(
    drawn: Sequence[Chosen],
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
