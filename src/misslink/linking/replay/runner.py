"""Replay a run: draw cases, run the app on each arm, and judge every answer by the same passages."""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from misslink.calibration_document import NO_USAGE, JudgeUsage
from misslink.documents import DEFAULT_K, Note, Replay, manifest_of, summary_of
from misslink.errors import AppUnreachableError, InputError
from misslink.io.manifest import display_path
from misslink.judge.judged_metric import Subject
from misslink.judge.protocol import Judge
from misslink.linking.replay.plan import (
    GOOD,
    ReplayPlan,
    index_passages,
    plan_case,
    replay_group,
)
from misslink.linking.replay.rerun import (
    DEFAULT_SETTINGS,
    NO_RETRIEVER,
    NotCachedError,
    Rerunner,
    RerunSettings,
    add_evidence,
    judging_difference,
    open_rerunner,
)
from misslink.linking.replay.results import (
    APP_FAILED,
    ReplayOutcome,
    ReplayRecord,
    replay_figures,
    replay_outcome,
)
from misslink.render.reasons import describe_reason
from misslink.timeouts import map_concurrently
from misslink.types import Link, Reason, Run

_log = logging.getLogger(__name__)

DEFAULT_SAMPLE = 40  # cases of a mode: a net effect of a half is then known to within 20 points
_MAX_TRIES = 3  # cases without a retriever to replace before the app is taken at its word

ReplayProgress = Callable[[int, int], object]  # done, total


@dataclass(frozen=True)
class ReplayResult:
    """What replay found, and all links of the run, of confirmed cases as 'replayed'."""

    replay: Replay
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
    """Run the app on cases that missed a passage: with it, and with an irrelevant one in its place.

    Failed answers of each failure mode and good answers are drawn, at most `sample` of each. The app
    runs once on each arm of `misslink.linking.replay.plan.plan_case`. Every answer, that of the run
    too, is judged by its own passages and the missed ones: otherwise a true answer would count as
    fixed because its evidence is there now.

    Cached cases of earlier replays of the run, by the same app, code and judge, are counted too.

    Parameters
    ----------
    run : Run
    app : str, Runnable or callable
        The app of the run, where to import it from, or a function that builds it from a retriever.
    judge : Judge
        Preferably the run's own: otherwise there is no causal fraction.
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
        No case can be replayed, the app uses no retriever that can be replaced, an argument is
        wrong, or another process replays the run.
    AppUnreachableError, JudgeUnreachableError
        Generations and replies are saved; the same call resumes.
    """
    for name, value in (("sample", sample), ("concurrency", settings.concurrency)):
        if value < 1:
            raise InputError(f"--{name} is {value}; it must be at least 1")
    again = open_rerunner(run, app, judge, settings=settings, folder=folder)
    try:
        records, cached = await replay_cases(
            run, again, sample=sample, seed=seed, concurrency=settings.concurrency, tick=tick
        )
    finally:
        again.close()
    difference = judging_difference(run, judge, settings.prompts, settings.repeats)
    figures = replay_figures(run, records, seed=seed, difference=difference)
    spent = getattr(judge, "usage", None)
    usage: JudgeUsage = spent() if spent else NO_USAGE
    was, now = manifest_of(run).app, display_path(app) if isinstance(app, str) else None
    warnings = []
    if was and now and was != now:
        message = describe_reason(Reason(code="other_app", was=was, now=now))
        warnings.append(Note(code="other_app", message=message))
        _log.warning("%s", message)
    replay = Replay(
        **dict(figures),
        run=summary_of(run).run,
        app=now or was,
        warnings=tuple(warnings),
        judge=judge.name,
        sample=sample,
        cases_kept=cached,
        seed=seed,
        usage=usage.replace(generations=again.generated, generations_kept=again.reused),
    )
    confirmed = {case.case_id for case in replay.cases if case.confirmed}
    links = []
    for link in run.links:
        basis = "inferred" if link.retrieval == "unlabelled" else "observed"
        basis = basis if link.basis == "replayed" else link.basis
        basis = "replayed" if link.case_id in confirmed else basis
        links.append(link.model_copy(update={"basis": basis}))
    return ReplayResult(replay, tuple(links))


async def replay_cases(
    run: Run,
    again: Rerunner,
    *,
    sample: int = DEFAULT_SAMPLE,
    seed: int = 0,
    concurrency: int = 8,
    tick: ReplayProgress = lambda _, __: None,
) -> tuple[list[ReplayRecord], int]:
    """Return the records of all cases, and how many come from earlier replays alone.

    Parameters and errors are those of `replay_run`.
    """
    drawn, undrawn, skipped = draw_cases(run, again.k, sample, seed)
    records = await _replay_all(drawn, again, concurrency, tick)
    cached = []
    for plan in undrawn:
        with contextlib.suppress(NotCachedError):
            cached.append(await _replay_case(plan, again, only_kept=True))
    return [*records, *cached, *skipped], len(cached)


def forecast_subjects(
    run: Run, settings: RerunSettings, sample: int, seed: int
) -> tuple[int, list[Subject]]:
    """Return how many answers a replay generates at most, and what the judge would be asked.

    The run's answer stands for those that the arms will give.
    """
    settings = settings.for_run(run)
    k = settings.k or DEFAULT_K
    drawn, _, _ = draw_cases(run, k, sample, seed)
    subjects = []
    for plan in drawn:
        places = max(1, len(plan.trace.context(k)))
        traces = [plan.trace]  # also unchanged, whose answer is most often the same
        for arm in plan.arms[1:]:
            update = {"retrieved": arm.passages[:places], "prompted": None}
            traces.append(plan.trace.model_copy(update=update))
        subjects += [
            Subject(plan.case, add_evidence(trace, plan.injected, places), k, settings.prompts)
            for trace in traces
        ]
    return sum(len(plan.arms) for plan in drawn), subjects


def draw_cases(
    run: Run, k: int, sample: int, seed: int
) -> tuple[list[ReplayPlan], list[ReplayPlan], list[ReplayRecord]]:
    """Draw the cases of each group among those that can be replayed.

    Parameters
    ----------
    run : Run
    k : int
        As of `plan_case`.
    sample : int
        Cases of each group, at most; a smaller sample is part of a larger one of the same seed.
    seed : int

    Returns
    -------
    drawn, undrawn : list of ReplayPlan
    skipped : list of ReplayRecord
        Those that cannot be replayed, with the reason.

    Raises
    ------
    InputError
        Some cases missed a passage, and none can be replayed.
    """
    cases = {case.id: case for case in run.cases}
    traces = {trace.case_id: trace for trace in run.traces}
    known_passages = index_passages(run.traces)
    groups: dict[str, list[ReplayPlan]] = {}
    skipped = []
    for link in run.links:
        case = cases[link.case_id]
        if replay_group(link, case) is None:
            continue
        plan = plan_case(case, traces[link.case_id], link, k, known_passages)
        if isinstance(plan, str):
            skipped.append(ReplayRecord(link.case_id, link.failure or "", skipped=plan))
        else:
            groups.setdefault(plan.group, []).append(plan)
    drawn, undrawn = [], []
    for name in sorted(groups, key=lambda group: (group == GOOD, group)):
        # A generator for each group: what one holds does not change what is drawn of another.
        draw = random.Random(f"{seed} {name}")  # noqa: S311 (no secret)
        shuffled = draw.sample(groups[name], len(groups[name]))
        drawn += shuffled[:sample]
        undrawn += shuffled[sample:]
    if skipped and not drawn:
        raise InputError(
            f"none of the {len(skipped)} cases that missed a passage can be replayed; "
            f"{skipped[0].case_id}: {skipped[0].skipped}"
        )
    return drawn, undrawn, skipped


async def _replay_case(
    plan: ReplayPlan, again: Rerunner, *, only_kept: bool = False
) -> ReplayRecord:
    """Run the app on each arm of a case.

    Raises
    ------
    NotCachedError
        `only_kept`, and the app or the judge would have to be asked.
    """
    case, k, outcomes = plan.case, again.k, dict[str, ReplayOutcome]()
    record = ReplayRecord(case.id, plan.group, outcomes, note=plan.note)
    for arm in plan.arms:
        treated = arm.name == "treatment"
        trace, verdicts = await again(
            case,
            arm.passages,
            intervention=arm.name,
            only_kept=only_kept,
            searches=arm.searches,
            evidence=() if treated else plan.injected,
        )
        injected = frozenset(passage.id for passage in plan.injected if treated)
        outcome = replay_outcome(case, trace, verdicts, k, injected, again.calibration)
        if outcome.bad is None and arm.name != "reordering":
            return replace(record, skipped=outcome.reason)
        outcomes[arm.name] = outcome
        if arm.name == "unchanged":  # by now it is known that the app's retriever is replaced
            seen = add_evidence(plan.trace, plan.injected, k)
            verdicts = await again.judged(case, seen, only_kept=only_kept)
            before = replay_outcome(case, seen, verdicts, k, calibration=again.calibration)
            if before.bad is None:
                return replace(record, skipped=before.reason)
            outcomes["observed"] = before
    return record


async def _replay_all(
    drawn: Sequence[ReplayPlan], again: Rerunner, concurrency: int, tick: ReplayProgress
) -> list[ReplayRecord]:
    """Replay all, the first ones alone until one shows that the app's retriever is replaced.

    Raises
    ------
    InputError
        No retriever could be replaced in the first cases.
    AppUnreachableError
        The app failed in all cases.
    """
    records: list[ReplayRecord] = []
    for plan in drawn:
        records.append(await _replay_case(plan, again))
        tick(len(records), len(drawn))
        if records[-1].skipped != NO_RETRIEVER:
            break
        if len(records) == min(_MAX_TRIES, len(drawn)):
            cases = "the only case" if len(records) == 1 else f"the first {len(records)} cases"
            raise InputError(f"in {cases} of the replay {NO_RETRIEVER}, named with --app")
    first = len(records)
    records += await map_concurrently(
        drawn[first:],
        lambda plan: _replay_case(plan, again),
        concurrency,
        lambda done, _: tick(first + done, len(drawn)),
    )
    failures = [
        record.skipped for record in records if (record.skipped or "").startswith(APP_FAILED)
    ]
    if records and len(failures) == len(records):
        raise AppUnreachableError(
            f"none of {len(records)} replayed questions was answered; the first time {failures[0]}"
        )
    return records
