"""Cases to label, and the cases on which annotators disagree."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from misslink.annotation.questions import DEFAULT_METRICS
from misslink.annotation.sampling_plan import draw_plan, planned_metrics
from misslink.calibration.inter_annotator import settle_labels
from misslink.errors import InputError
from misslink.io.label_folder import (
    ItemKey,
    JournalEntry,
    LabelPlan,
    ShownContent,
    journal_files,
    read_label_plan,
    write_label_plan,
)
from misslink.io.labels import ADJUDICATED, Label, read_labels
from misslink.types import Case, Run, Trace, Verdict

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class LabelTask:
    """A case to label.

    Parameters
    ----------
    case : Case
    trace : Trace
    metrics : tuple of str
    asked : tuple of ItemKey
        The labels that finish the case; when adjudicating, the disagreements.
    other_labels : tuple of dict
        When adjudicating, the labels of the annotators, with letters for their names.
    """

    case: Case
    trace: Trace
    metrics: tuple[str, ...]
    asked: tuple[ItemKey, ...]
    other_labels: tuple[dict[str, Any], ...] = ()


def load_or_draw_plan(
    folder: Path, run: Run, metrics: Sequence[str], seed: int | None, random_share: float | None
) -> tuple[LabelPlan, list[str]]:
    """Return the stored labelling order, or draw and store one; and notes for the annotator.

    Once there are labels, a plan stays as long as the run has the same cases. `seed` and
    `random_share` default to those of the stored plan, else to 0 and 0.2.
    """
    stored = read_label_plan(folder)
    before = sorted({metric for case in stored.cases for metric in case.metrics}) if stored else []
    every = list(dict.fromkeys([*metrics, *DEFAULT_METRICS, *before]))
    items = planned_metrics(run, every)
    begun = any(path.stat().st_size for path in journal_files(folder).values())
    notes = []
    if stored is not None:
        new_seed = seed not in {None, stored.seed}
        new_share = random_share not in {None, stored.random_share}
        is_same_cases = {case.case_id for case in stored.cases} == set(items)
        if is_same_cases and (begun or not (new_seed or new_share)):
            if new_seed or new_share:
                notes.append(
                    f"the order keeps its --seed {stored.seed} and --random-share "
                    f"{stored.random_share:g}, because there are labels"
                )
            return _extend_plan(folder, stored, items), notes
        if begun and not is_same_cases:
            notes.append(
                "the run has other answers than when the order was drawn, so a new order was drawn; "
                "labels of unchanged answers still count"
            )
        seed = stored.seed if seed is None else seed
        random_share = stored.random_share if random_share is None else random_share
    drawn = draw_plan(
        run, every, seed=seed or 0, random_share=0.2 if random_share is None else random_share
    )
    write_label_plan(folder, drawn)
    return drawn, notes


def tasks_in_plan_order(run: Run, plan: LabelPlan, metrics: Sequence[str]) -> list[LabelTask]:
    """The cases to label for these metrics, in the plan's order."""
    cases = {case.id: case for case in run.cases}
    traces = {trace.case_id: trace for trace in run.traces}
    tasks = []
    for planned in plan.cases:
        selected = tuple(metric for metric in metrics if metric in planned.metrics)
        case_id = planned.case_id
        if selected:
            items = tuple((case_id, metric, None) for metric in selected)
            tasks.append(LabelTask(cases[case_id], traces[case_id], selected, items))
    return tasks


def disputed_tasks(
    folder: Path, run: Run, requested: Sequence[str]
) -> tuple[list[LabelTask], tuple[str, ...]]:
    """Return the cases on which annotators disagree, in the plan's order, and their metrics.

    Cases that an earlier session settled are included. No `wanted` metrics: all labelled ones.
    Raises InputError if the run has no labels, or none of a wanted metric.
    """
    if not journal_files(folder):
        raise InputError(
            "this run has no labels, so there is nothing to settle; run  misslink annotate",
            path=folder.parent,
        )
    labels = read_labels(folder)
    usual = [metric for metric in DEFAULT_METRICS if metric in labels.metrics]
    metrics = tuple(dict.fromkeys([*requested] or [*usual, *labels.metrics]))
    split: dict[str, list[ItemKey]] = {}
    by_case: dict[str, list[Label]] = {}
    for label in labels.items:
        if label.annotator != ADJUDICATED:
            by_case.setdefault(label.case_id, []).append(label)
    for metric in metrics:
        independent = [x for x in labels.select_metric(metric).items if x.annotator != ADJUDICATED]
        for entry in settle_labels(independent).queue:
            split.setdefault(entry["case_id"], []).append(
                (entry["case_id"], metric, entry["claim"])
            )
    plan = read_label_plan(folder)
    # Cases in no plan come last, in the run's order.
    order = dict.fromkeys(case.case_id for case in plan.cases) if plan else {}
    order |= dict.fromkeys(case.id for case in run.cases)
    cases = {case.id: case for case in run.cases}
    traces = {trace.case_id: trace for trace in run.traces}
    tasks = [
        LabelTask(
            cases[case_id],
            traces[case_id],
            tuple(metric for metric in metrics if metric in {item[1] for item in split[case_id]}),
            # A metric's claims come before its answer.
            tuple(
                sorted(split[case_id], key=lambda i: (metrics.index(i[1]), i[2] is None, i[2] or 0))
            ),
            _anonymous_labels(by_case[case_id], split[case_id]),
        )
        for case_id in order
        if case_id in split and case_id in cases and case_id in traces
    ]
    return tasks, metrics


def task_content(task: LabelTask, seen: ShownContent) -> dict[str, Any]:
    """What the page shows of a case, without labels and opinions."""
    return {
        "case_id": task.case.id,
        "question": task.case.question,
        "references": list(task.case.references),
        "passages": [
            {"rank": passage.rank, "id": passage.id, "text": passage.text}
            for passage in seen.passages(task.trace)
        ],
        "answer": task.trace.answer,
        "claims": [
            {"index": index, "text": claim.text, "start": claim.start, "end": claim.end}
            for index, claim in enumerate(seen.claims(task.case.id))
        ],
        "metrics": list(task.metrics),
        "asked": [{"metric": metric, "claim": claim} for _, metric, claim in task.asked],
    }


def judge_opinion(verdict: Verdict) -> dict[str, Any]:
    """The judge's verdict on one metric, for the page."""
    return {
        "value": verdict.value,
        "probability": verdict.probability,
        "label": None if verdict.label is None else int(verdict.label),
        "reason": verdict.reason,
        "claims": [claim.support for claim in verdict.claims],
    }


def is_finished(task: LabelTask, labels: Mapping[ItemKey, JournalEntry]) -> bool:
    """Whether every item of a case has a label or was skipped."""
    return all(item in labels for item in task.asked)


def label_document(entry: JournalEntry) -> dict[str, Any]:
    """A label for the page."""
    label = entry.label
    return {
        "metric": entry.metric,
        "claim": entry.claim,
        "label": int(label) if label is not None and label.is_integer() else label,
        "comment": entry.comment,
    }


def _extend_plan(folder: Path, plan: LabelPlan, items: dict[str, tuple[str, ...]]) -> LabelPlan:
    """The plan with the current metrics, stored if they are new."""
    cases = tuple(replace(case, metrics=items[case.case_id]) for case in plan.cases)
    if all(set(a.metrics) == set(b.metrics) for a, b in zip(cases, plan.cases, strict=True)):
        return plan
    fresh = replace(plan, cases=cases)
    write_label_plan(folder, fresh)
    return fresh


def _anonymous_labels(
    labels: Sequence[Label], items: Sequence[ItemKey]
) -> tuple[dict[str, Any], ...]:
    """The labels of these items, with letters for names that differ from case to case."""
    selected = [x for x in labels if (x.case_id, x.metric, x.claim) in items]
    case_id = items[0][0]
    letter = letters_by_name(case_id, {label.annotator for label in selected})
    entries = [
        {
            "who": letter[label.annotator],
            "metric": label.metric,
            "claim": label.claim,
            "label": int(label.good),
            "comment": label.comment,
        }
        for label in selected
    ]
    return tuple(sorted(entries, key=lambda entry: str(entry["who"])))


def letters_by_name(case_id: str, names: Iterable[str]) -> dict[str, str]:
    """Return a letter for each name; the letters differ from case to case."""
    order = sorted(
        names, key=lambda name: hashlib.sha256(f"{case_id}\n{name}".encode()).hexdigest()
    )
    return {
        name: _LETTERS[place % len(_LETTERS)] * (1 + place // len(_LETTERS))  # ..., Y, Z, AA, BB
        for place, name in enumerate(order)
    }
