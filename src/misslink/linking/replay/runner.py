"""Replay a run: draw cases, run the app on each arm, and judge every answer by the same passages."""

from __future__ import annotations

import contextlib
import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from math import inf
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
    rank_prompt,
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
    reorder_context,
)
from misslink.linking.replay.results import (
    APP_FAILED,
    JUDGE,
    MISSED,
    ReplayOutcome,
    ReplayRecord,
    confirmed_cases,
    replay_figures,
    replay_outcome,
)
from misslink.linking.replay.sequence import MAX_CALLS, PLACEBO, Calls, CauseEvidence
from misslink.parts import by_case
from misslink.timeouts import map_concurrently
from misslink.types import Link, Reason, Run, Trace

_log = logging.getLogger(__name__)

DEFAULT_SAMPLE = 40  # cases of a mode: a net effect of a half is then known to within 20 points
_MAX_TRIES = 3  # cases without a retriever to replace before the app is taken at its word

ReplayProgress = Callable[[int, int], object]  # done, total


@dataclass(frozen=True)
class JudgingTerms:
    """Whether the run's own judge judges the replay, and whose answers are good by their labels."""

    same: bool = True
    labelled_good: frozenset[str] = frozenset()


DEFAULT_TERMS = JudgingTerms()


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
    difference = judging_difference(run, judge, settings.prompts, settings.repeats)
    terms = JudgingTerms(difference is None, settings.labelled_good)
    counts: dict[str, Any] = {"sample": sample, "seed": seed, "concurrency": settings.concurrency}
    again = open_rerunner(run, app, judge, settings=settings, folder=folder)
    try:
        records, cached = await replay_cases(run, again, terms=terms, tick=tick, **counts)
    finally:
        again.close()
    figures = replay_figures(run, records, seed=seed, difference=difference)
    spent = getattr(judge, "usage", None)
    usage: JudgeUsage = spent() if spent else NO_USAGE
    was, now = manifest_of(run).app, display_path(app) if isinstance(app, str) else None
    warnings = []
    if was and now and was != now:
        message = str(Reason(code="other_app", was=was, now=now))
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
    confirmed = {case.case_id: case.owner for case in replay.cases if case.confirmed}
    links = []
    for link in run.links:
        basis = "inferred" if link.retrieval == "unlabelled" else "observed"
        basis = basis if link.basis == "replayed" else link.basis
        basis = "replayed" if confirmed.get(link.case_id) == link.owner else basis
        links.append(link.model_copy(update={"basis": basis}))
    return ReplayResult(replay, tuple(links))


async def replay_cases(
    run: Run,
    again: Rerunner,
    *,
    terms: JudgingTerms = DEFAULT_TERMS,
    sample: int = DEFAULT_SAMPLE,
    seed: int = 0,
    concurrency: int = 8,
    tick: ReplayProgress = lambda _, __: None,
) -> tuple[list[ReplayRecord], int]:
    """Return the records of all cases, and how many come from earlier replays alone.

    Parameters and errors are those of `replay_run`.
    """
    drawn, undrawn, skipped = draw_cases(run, again.k, sample, seed)
    under_way = [CaseReplay(plan, again, terms) for plan in drawn]
    await _start_all(under_way, concurrency)
    kept = []
    for plan in undrawn:
        with contextlib.suppress(NotCachedError):
            case = CaseReplay(plan, again, terms, only_kept=True)
            await case.start()
            kept.append(case)
    every = [*under_way, *kept]
    records = await _settle(every, concurrency, lambda left: tick(len(drawn) - left, len(drawn)))
    return [*records, *skipped], len(kept)


def forecast_subjects(
    run: Run, settings: RerunSettings, sample: int, seed: int
) -> tuple[int, list[Subject]]:
    """Return how many answers a replay generates at most, and what the judge would be asked.

    The run's answer stands for those that the arms will give.
    """
    settings = settings.for_run(run)
    k = settings.k or DEFAULT_K
    drawn, _, _ = draw_cases(run, k, sample, seed)
    generations, subjects = 0, []
    for plan in drawn:
        calls = 2 if plan.group == GOOD else MAX_CALLS
        generations += calls
        traces = [plan.trace, *(reorder_context(plan.trace, k, turn=turn) for turn in (1, 2))]
        for number, name in zip(range(calls), cycle([*plan.arms] or [""])):
            for placebo in (False, True):
                prompt, _ = plan.prompt(name, number // max(len(plan.arms), 1), placebo=placebo)
                given = tuple(passage.id for passage in rank_prompt(prompt, plan.trace)[0])
                update = {"retrieved": rank_prompt(prompt, plan.trace)[0], "prompted": given}
                traces.append(plan.trace.model_copy(update=update | {"shown": {}}))
        subjects += [
            Subject(plan.case, add_evidence(trace, plan.missed, k), k, settings.prompts)
            for trace in traces
        ]
    return generations, subjects


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
        Some cases failed, and none can be replayed.
    """
    cases = by_case(run.cases)
    traces = by_case(run.traces)
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
            f"none of the {len(skipped)} failed cases can be replayed; "
            f"{skipped[0].case_id}: {skipped[0].skipped}"
        )
    return drawn, undrawn, skipped


class CaseReplay:
    """One case under way: what it has answered so far, and what it is asked next.

    Parameters
    ----------
    plan : ReplayPlan
    again : Rerunner
    terms : JudgingTerms
    only_kept : bool
        Whether neither the app nor the judge may be asked.
    """

    def __init__(
        self, plan: ReplayPlan, again: Rerunner, terms: JudgingTerms, *, only_kept: bool = False
    ) -> None:
        self.plan, self._again, self._terms, self._only_kept = plan, again, terms, only_kept
        self.calls = Calls(list(plan.arms), complete=plan.complete)
        self._arm = ""  # the one that was asked last
        self._asked: Counter[tuple[str, bool]] = Counter()
        self._outcomes: dict[str, ReplayOutcome] = {}
        self._placebos: dict[str, ReplayOutcome] = {}
        self._ended: str | None = None
        self._is_false_alarm = False

    @property
    def skipped(self) -> str | None:
        """Why nothing is known of the case."""
        return None if self._is_false_alarm or self.calls.tried else self._ended

    def record(self, luck: tuple[int, int]) -> ReplayRecord:
        """What is known of the case; `luck` is of the placebos of all failed cases."""
        plan, finding = self.plan, None
        if self.skipped is not None:
            return ReplayRecord(plan.case.id, plan.group, skipped=self.skipped)
        if self._is_false_alarm:
            finding = CauseEvidence(JUDGE, inf)
        elif plan.group != GOOD and self._outcomes["observed"].bad:
            finding = self.calls.find(self._luck_of_others(luck))
        owner = plan.owners.get(finding.cause.split("+")[0]) if finding else None
        return ReplayRecord(
            plan.case.id, plan.group, self._outcomes, note=plan.note, finding=finding,
            owner=owner, settled=self._is_false_alarm, placebos=self._placebos,
            held=self.calls.held, tried=self.calls.tried,
        )  # fmt: skip

    def is_open(self, luck: tuple[int, int]) -> bool:
        """Whether more answers could settle the case."""
        ended = self._ended is not None or self._is_false_alarm or self.plan.group == GOOD
        if ended or not self._outcomes["observed"].bad:
            return False
        return self.calls.can_settle(self._luck_of_others(luck))

    async def start(self) -> None:
        """Ask whether the verdict holds, then the first arm: missed passages with their placebo.

        Raises
        ------
        NotCachedError
            `only_kept`, and the app or the judge would have to be asked.
        """
        await self._check_verdict()
        paired = MISSED in self.plan.arms
        # The causal fraction needs the pair of each case that the run's own judge decides.
        if self._ended is None and (not self._is_false_alarm or (paired and self._terms.same)):
            await self._ask(MISSED if paired else self.calls.next_call((0, 0)))
            if paired and self._ended is None:
                await self._ask(PLACEBO)

    async def advance(self, luck: tuple[int, int]) -> None:
        """Ask the app what tells the most."""
        try:
            await self._ask(self.calls.next_call(self._luck_of_others(luck)))
        except NotCachedError:
            self._ended = str(Reason(code="answer_not_kept"))

    def _luck_of_others(self, luck: tuple[int, int]) -> tuple[int, int]:
        return luck[0] - self.calls.held[PLACEBO], luck[1] - self.calls.tried[PLACEBO]

    async def _check_verdict(self) -> None:
        """Judge the run's answer again: by another judge, or by the same with passages in other orders.

        With what it missed, because a true answer may have lacked its evidence alone.
        """
        plan, k, same = self.plan, self._again.k, self._terms.same
        failed = plan.group != GOOD
        self._is_false_alarm = failed and plan.case.id in self._terms.labelled_good
        first = add_evidence(plan.trace, plan.missed, k)
        if not plan.missed and failed and same:
            first = reorder_context(plan.trace, k, turn=1)
        observed = await self._judge(first)
        if failed and observed.bad is False and not (plan.missed and same):
            other = reorder_context(plan.trace, k, turn=2) if same else plan.trace
            observed = await self._judge(other)
            self._is_false_alarm |= observed.bad is False
        self._outcomes["observed"] = observed
        if observed.bad is None:
            self._ended = observed.reason

    async def _judge(self, trace: Trace) -> ReplayOutcome:
        again, case = self._again, self.plan.case
        verdicts = await again.judged(case, trace, only_kept=self._only_kept)
        return replay_outcome(case, trace, verdicts, again.k, calibration=again.calibration)

    async def _ask(self, call: str) -> None:
        """Run the app on an arm, or on the placebo of the last one."""
        plan, is_placebo = self.plan, call == PLACEBO
        self._arm = self._arm if is_placebo else call
        prompt, injected = plan.prompt(
            self._arm, self._asked[self._arm, is_placebo], placebo=is_placebo
        )
        asked = None
        if prompt.question is not None:
            text, times = prompt.question
            own = () if text == plan.case.standalone_question else plan.case.history
            update = {"question": " ".join([text] * times), "history": own}
            asked = plan.case.model_copy(update={**update, "standalone_question": None})
        passages, searches = rank_prompt(prompt, plan.trace)
        trace, verdicts = await self._again(
            plan.case,
            None if asked else passages,
            intervention=f"{self._arm} {'placebo ' * is_placebo}{self._asked[self._arm, is_placebo]}",
            only_kept=self._only_kept,
            searches=searches,
            evidence=[passage for passage in plan.missed if passage.id not in injected],
            asked=asked,
        )
        calibration = self._again.calibration
        k = self._again.k
        outcome = replay_outcome(plan.case, trace, verdicts, k, injected, calibration)
        if outcome.bad is None:
            self._ended = outcome.reason
            return
        self._asked[self._arm, is_placebo] += 1
        self.calls.add(call, good=not outcome.bad)
        known = self._placebos if is_placebo else self._outcomes
        known.setdefault(self._arm, outcome)


async def _start_all(drawn: Sequence[CaseReplay], concurrency: int) -> None:
    """Start all, the first ones alone until one shows that the app's retriever is replaced.

    Raises
    ------
    InputError
        No retriever could be replaced in the first cases.
    AppUnreachableError
        The app failed in all cases.
    """
    first = 0
    for first, case in enumerate(drawn, start=1):
        await case.start()
        if case.skipped != NO_RETRIEVER:
            break
        if first == min(_MAX_TRIES, len(drawn)):
            cases = "the only case" if first == 1 else f"the first {first} cases"
            raise InputError(f"in {cases} of the replay {NO_RETRIEVER}, named with --app")
    await map_concurrently(drawn[first:], CaseReplay.start, concurrency, _no_tick)
    failures = [why for case in drawn if (why := case.skipped or "").startswith(APP_FAILED)]
    if drawn and len(failures) == len(drawn):
        raise AppUnreachableError(
            f"none of {len(drawn)} replayed questions was answered; the first time {failures[0]}"
        )


async def _settle(
    cases: Sequence[CaseReplay], concurrency: int, tick: Callable[[int], object]
) -> list[ReplayRecord]:
    """Ask on, a call of each open case at a time, until no answer could settle another."""
    while True:
        failed = [case.calls for case in cases if case.plan.group != GOOD]
        luck = (
            sum(calls.held[PLACEBO] for calls in failed),
            sum(calls.tried[PLACEBO] for calls in failed),
        )
        records = [case.record(luck) for case in cases]
        settled = confirmed_cases(records)
        is_open = [c for c in cases if c.plan.case.id not in settled and c.is_open(luck)]
        tick(len(is_open))
        if not is_open:
            return records
        await map_concurrently(
            is_open, partial(CaseReplay.advance, luck=luck), concurrency, _no_tick
        )


def _no_tick(_done: int, _total: int) -> None: ...
