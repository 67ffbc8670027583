"""What to do about failures: by failure mode, and the few actions that would fix most cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from misslink.documents import calibrations_of, summary_of
from misslink.failure_modes import FAILURE_MODES, FAILURES
from misslink.linking.fixes import rank_fixes
from misslink.linking.miss_types import miss_type_advice
from misslink.render.format import format_estimate, pluralize
from misslink.render.reasons import describe_reason
from misslink.report.links import number_cases, view_fragment
from misslink.types import Run

_MAX_STEPS = 3


@dataclass(frozen=True)
class NextStep:
    """One thing to do: plain text, so escape it; commands are in backticks.

    ``cases`` are those that it would help, by their place in the gold set from 1, empty where it is
    about the measurement; ``fragment`` is where the page shows them.
    """

    action: str
    why: str
    cases: tuple[int, ...]
    fragment: str


def mode_advice(run: Run, mode: str) -> str:
    """Return what to do about a failure mode of `run`.

    A smaller k is advised only where no relevant passage is missing, so that no advice contradicts
    another.
    """
    if mode == "missing_label":
        return "Add the missing labels to the gold set (`misslink diagnose RUN --holes FILE`)."
    if mode == "distracted" and any(link.missed for link in run.links):
        return "Give better passages: rerank, drop near-duplicates."
    return FAILURE_MODES[mode].action


def next_steps(run: Run) -> tuple[NextStep, ...]:
    """Return up to three steps: each the one that helps most cases that no earlier step helps.

    Fixes of retrieval without enough data come after all others, and labels for the judge last.
    """
    sure = [*_fix_steps(run, sure=True), *_mode_steps(run)]
    chosen, done = list[NextStep](), set[int]()
    for waiting in (sure, [*_fix_steps(run, sure=False)]):
        while waiting and len(chosen) < _MAX_STEPS:
            best = max(waiting, key=lambda step: len(set(step.cases) - done))
            waiting.remove(best)
            if set(best.cases) <= done:
                break
            chosen.append(best)
            done.update(best.cases)
    return (*chosen, *_label_steps(run))[:_MAX_STEPS]


def no_steps_reason(run: Run) -> str:
    """Return why there is nothing to do, for a run without `next_steps`."""
    if not run.cases:
        return "Nothing can be advised: this run has no cases."
    if all(link.failure is None for link in run.links):
        return "Nothing can be advised about answers: no judge was used."
    if all(link.failure == "inconclusive" for link in run.links):
        return "Nothing can be advised: all cases are inconclusive."
    return f"Nothing: none of {pluralize(len(run.cases), 'case')} failed."


def _fix_steps(run: Run, *, sure: bool) -> Iterator[NextStep]:
    """Fixes of passages that failed cases missed; without a judge, of all that were missed."""
    numbers = number_cases(run.cases)
    judged = any(link.failure for link in run.links)
    failed = {link.case_id for link in run.links if link.failure in FAILURES or not judged}
    for fix in rank_fixes(run):
        cases = tuple(sorted(numbers[i] for i in failed.intersection(fix.cases) if i in numbers))
        if not cases or sure == (fix.evidence.code == "not_enough_data"):
            continue
        action, _, reason = miss_type_advice(fix.kind).partition(": ")
        forecast = describe_reason(fix.evidence)
        if fix.avoided.value is not None:
            avoided = format_estimate("failures_avoided", fix.avoided).brief
            forecast = f"{avoided} failures avoided{'' if sure else ': not enough data to tell'}"
        why = (
            f"It would retrieve {'up to ' if fix.basis == 'at_most' else ''}{fix.retrieves:,} of "
            f"{pluralize(fix.missed, 'missed passage')}. Forecast: {forecast}. {reason[:1].upper()}{reason[1:]}"
        )
        yield NextStep(f"{action.rstrip('.')}.", why.strip(), cases, view_fragment(ids=cases))


def _mode_steps(run: Run) -> Iterator[NextStep]:
    """Advice by failure mode; that of a miss only where no miss type says more."""
    numbers = number_cases(run.cases)
    explained = any(
        miss.kind for link in run.links if link.failure in FAILURES for miss in link.missed
    )
    missing = {row.case_id for row in summary_of(run).diagnosis.missing_labels.holes}
    for name, mode in FAILURE_MODES.items():
        ids = {link.case_id for link in run.links if link.failure == name}
        fragment = view_fragment(failure=name)
        if name == "missing_label":
            ids |= missing
        elif name not in FAILURES or (explained and name == "retrieval_miss"):
            continue
        cases = tuple(sorted(numbers[case_id] for case_id in ids if case_id in numbers))
        if cases:
            if name == "missing_label":
                fragment = view_fragment(ids=cases)
            why = f"{mode.label}: {len(cases):,} of {pluralize(len(run.cases), 'case')}."
            yield NextStep(mode_advice(run, name), why, cases, fragment)


def _label_steps(run: Run) -> Iterator[NextStep]:
    """Labels for a judge that was not compared with any."""
    judged = len({verdict.case_id for verdict in run.verdicts if verdict.status == "scored"})
    known = calibrations_of(run) or run.calibration or run.manifest.get("calibration") is not None
    if judged and not known and run.manifest.get("judge") not in (None, "none"):
        yield NextStep(
            "Label about 100 answers (`misslink annotate RUN`) and compare the judge with them "
            "(`misslink calibrate RUN`).",
            f"The judge of {pluralize(judged, 'case')} was not compared with labels of this app's "
            "answers.",
            (),
            "trust",
        )
