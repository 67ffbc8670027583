"""Judge and link the mutants of a run as the run itself was, and count what was found."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from misslink.documents import cutoff_of, summary_of
from misslink.errors import InputError
from misslink.garbage_collection import reduced_gc
from misslink.io import read_complete_run
from misslink.io.corpus import read_corpus
from misslink.io.manifest import flatten_inputs
from misslink.judge.checks.dry_run import JudgingForecast
from misslink.linking.missed_passages import PassagePool
from misslink.parts import by_case, group_by_case
from misslink.pipeline.config import EvaluationConfig
from misslink.pipeline.context import open_context
from misslink.pipeline.evaluate import forecast_async
from misslink.pipeline.links import link_cases, open_corpus_context
from misslink.pipeline.rejudge import draw_cases
from misslink.pipeline.traces import CaptureResult
from misslink.pipeline.verdicts import calibrate_run, judge_cases
from misslink.selftests.document import Selftest, SelftestFigures, SelftestKind
from misslink.selftests.good_cases import find_good_cases
from misslink.selftests.mutants import Mutant, MutantSet, plant
from misslink.stats import proportion
from misslink.stats.clustered import clustered_mean
from misslink.types import Estimate, Link, Passage, Run, Verdict

DEFAULT_MUTANTS = 60
MIN_CASES = 5
_TRIED_CASES = 40  # for each mutant of a kind; of a larger run a sample is enough
_NONE_FOUND = "no fault was found"
_NOT_PLANTED = "none was planted"


@dataclass(frozen=True)
class _Outcome:
    """What judge and rules said of a mutant."""

    mutant: Mutant
    link: Link

    @property
    def is_detected(self) -> bool:
        return self.link.failed is True

    @property
    def owner_right(self) -> bool:
        return self.link.owner == self.mutant.kind.owner


async def selftest_async(
    run: Run | str | Path,
    *,
    n: int = DEFAULT_MUTANTS,
    seed: int = 0,
    corpus: str | Path | Sequence[Passage] | None = None,
    **options: Any,
) -> Selftest:
    """Test a judge on planted faults, as `misslink.selftest` does."""
    saved, passages = _read(run, corpus)
    cases, planted = plant_in_run(saved, passages, n=n, seed=seed)
    config = _config(saved, planted, passages, seed, options)
    with reduced_gc():
        async with open_context(config) as context:
            if context.judge is None:
                raise InputError("a selftest tests a judge; name one with --judge")
            await context.judge.check_reachable()
            of_case = {mutant.case.id: mutant.trace for mutant in planted.mutants}
            traces = [of_case[case.id] for case in context.gold.cases]
            captured = CaptureResult(traces, context.corpus, None, [], context.k)
            async with open_corpus_context(context, captured) as index:
                measured = await index.measure(context.gold.cases, traces, context.k, seed)
                # A copy planted for one mutant is not in the index of the others.
                measured = replace(measured, pool=PassagePool(saved.traces, context.corpus))
                verdicts = await judge_cases(context, traces)
                judged = calibrate_run(context, traces, verdicts)
                linked = await link_cases(context, judged, measured, index)
            return Selftest(
                **dict(selftest_figures(planted, linked.links, verdicts, seed=seed)),
                judge=context.judge.name,
                judge_identity=flatten_inputs({"judge_identity": context.judge.identity}),
                created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
                run=summary_of(saved).run,
                seed=seed,
                cases=cases,
                usage=context.judge.usage(),
            )


async def plant_few(run: Run) -> Selftest | None:
    """Test the heuristic judge of a run on one mutant of each kind; None with too few good cases."""
    try:
        return await selftest_async(run, judge="heuristic", n=1, cache=None)
    except InputError:
        return None


async def forecast_selftest(
    run: Run | str | Path,
    *,
    n: int = DEFAULT_MUTANTS,
    seed: int = 0,
    corpus: str | Path | Sequence[Passage] | None = None,
    **options: Any,
) -> JudgingForecast:
    """Forecast the judge's calls of `selftest_async` with these parameters, and their cost; make none."""
    saved, passages = _read(run, corpus)
    _, planted = plant_in_run(saved, passages, n=n, seed=seed)
    cases = tuple(mutant.case for mutant in planted.mutants)
    traces = tuple(mutant.trace for mutant in planted.mutants)
    options = {"embedding": "none", "k": cutoff_of(saved), **options}
    return await forecast_async(goldset=cases, traces=traces, corpus=passages, **options)


def plant_in_run(
    run: Run, corpus: Sequence[Passage] | None, *, n: int, seed: int
) -> tuple[int, MutantSet]:
    """Return how many cases of a run are good, and their mutants.

    Raises
    ------
    InputError
        There are too few good cases, or `n` is not positive.
    """
    if n < 1:
        raise InputError(f"--n is {n}; give a whole number of 1 or more")
    drawn = draw_cases([case.id for case in run.cases], _TRIED_CASES * (n + 1), seed)
    part = run.model_copy(update={"cases": tuple(case for case in run.cases if case.id in drawn)})
    good = find_good_cases(part, corpus or (), k=cutoff_of(run))
    if len(good) < MIN_CASES:
        raise InputError(
            f"{len(good)} of {len(part.cases)} cases of this run are good, and a selftest needs "
            f"{MIN_CASES}: cases that passed with their passages in the prompt, or references whose "
            "passages are known; evaluate more cases, or add references to the gold set"
        )
    return len(good), plant(good, n=n, seed=seed)


def _read(
    run: Run | str | Path, corpus: str | Path | Sequence[Passage] | None
) -> tuple[Run, tuple[Passage, ...] | None]:
    saved = run if isinstance(run, Run) else read_complete_run(run, anywhere=True)
    if isinstance(corpus, str | Path):
        return saved, read_corpus(corpus)
    return saved, None if corpus is None else tuple(corpus)


def _config(
    run: Run,
    planted: MutantSet,
    corpus: Sequence[Passage] | None,
    seed: int,
    options: Mapping[str, Any],
) -> EvaluationConfig:
    return EvaluationConfig(
        goldset=tuple(mutant.case for mutant in planted.mutants),
        traces=tuple(mutant.trace for mutant in planted.mutants),
        corpus=corpus,
        k=cutoff_of(run),
        embedding="none",
        seed=seed,
        **options,
    )


def selftest_figures(
    planted: MutantSet, links: Sequence[Link], verdicts: Sequence[Verdict], *, seed: int
) -> SelftestFigures:
    """Return the numbers of ``selftest.json``.

    A mutant that the judge did not judge is counted as ``not_judged`` and enters no number; one that
    it left undecided was not found.
    """
    link_of = by_case(links)
    verdicts_of = group_by_case(verdicts)
    outcomes, not_judged = list[_Outcome](), 0
    for mutant in planted.mutants:
        link = link_of[mutant.case.id]
        if link.failed is None and _is_lost(verdicts_of.get(mutant.case.id, ())):
            not_judged += 1
        else:
            outcomes.append(_Outcome(mutant, link))
    faults = [outcome for outcome in outcomes if outcome.mutant.kind.owner]
    harmless = [outcome for outcome in outcomes if not outcome.mutant.kind.owner]
    found = [outcome for outcome in faults if outcome.is_detected]
    by_kind: dict[str, list[_Outcome]] = {}
    for outcome in outcomes:
        by_kind.setdefault(outcome.mutant.kind.name, []).append(outcome)
    return SelftestFigures(
        mutants=len(faults),
        harmless=len(harmless),
        not_judged=not_judged,
        found=_clustered(faults, [o.is_detected for o in faults], _NOT_PLANTED, seed),
        owner_right=_clustered(found, [o.owner_right for o in found], _NONE_FOUND, seed),
        false_alarm=_clustered(harmless, [o.is_detected for o in harmless], _NOT_PLANTED, seed),
        kinds={name: _kind_document(of_kind) for name, of_kind in by_kind.items()},
        left_out={
            name: tried for name, tried in planted.without_place.items() if name not in by_kind
        },
    )


def _is_lost(verdicts: Sequence[Verdict]) -> bool:
    """Whether a verdict failed, or nothing was judged, as where a budget is used up."""
    return any(v.status == "failed" for v in verdicts) or all(
        v.status != "scored" for v in verdicts
    )


def _kind_document(outcomes: Sequence[_Outcome]) -> SelftestKind:
    """The numbers of one kind; ``cases`` are those that went wrong. No case is in it twice."""
    kind = outcomes[0].mutant.kind
    hits = [outcome for outcome in outcomes if outcome.is_detected]
    found, is_fault = _share(len(hits), len(outcomes)), kind.owner is not None
    named = Counter(outcome.link.owner or "unknown" for outcome in hits)
    right = sum(outcome.owner_right for outcome in hits)
    by_distance: dict[str, Estimate] = {}
    for distance in ("near", "far") if kind.graded else ():
        of_distance = [outcome for outcome in outcomes if outcome.mutant.distance == distance]
        by_distance[distance] = _share(sum(o.is_detected for o in of_distance), len(of_distance))
    return SelftestKind(
        n=len(outcomes),
        found=found if is_fault else None,
        owner_right=_share(right, len(hits)) if is_fault else None,
        false_alarm=None if is_fault else found,
        expected_owner=kind.owner,
        named=dict(named) if is_fault else {},
        near=by_distance.get("near"),
        far=by_distance.get("far"),
        cases=tuple(o.mutant.origin for o in outcomes if o.is_detected is not is_fault),
    )


def _share(hits: int, n: int) -> Estimate:
    return proportion(hits, n) if n else Estimate.missing(_NONE_FOUND)


def _clustered(
    outcomes: Sequence[_Outcome], values: Sequence[bool], reason: str, seed: int
) -> Estimate:
    """The share over mutants; those of one case vary together."""
    if not outcomes:
        return Estimate.missing(reason)
    clusters = [outcome.mutant.origin for outcome in outcomes]
    return clustered_mean([float(value) for value in values], clusters, seed=seed)
