"""What lies on the desk: the answers of a run to be labelled, or what people disagree on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from misslink.annotating.plan import make_plan, planned_metrics
from misslink.annotating.questions import USUAL
from misslink.calibration.people import settled
from misslink.errors import InputError
from misslink.files.label_folder import Seen, journals
from misslink.files.label_journal import Entry, Item
from misslink.files.label_plan import Plan, read_plan, write_plan
from misslink.files.labels import ADJUDICATED, Label, read_labels
from misslink.types import Case, Run, Trace, Verdict

__all__ = [
    "Task", "content", "finished", "in_letters", "in_order", "judged", "planned", "to_settle",
    "written",
]  # fmt: skip

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Task:
    """A case to be labelled.

    Parameters
    ----------
    case : Case
    trace : Trace
    metrics : tuple of str
        What is asked of it.
    asked : tuple of items
        Which labels finish it: of each metric that of the whole answer, in adjudication what
        people disagree on.
    said : sequence of mapping
        In adjudication what they said, by letters in place of names.
    """

    case: Case
    trace: Trace
    metrics: tuple[str, ...]
    asked: tuple[Item, ...]
    said: tuple[dict[str, Any], ...] = ()


def planned(
    folder: Path, run: Run, metrics: Sequence[str], seed: int | None, random_share: float | None
) -> tuple[Plan, list[str]]:
    """Return the order of labelling, as it was drawn before or drawn now and kept.

    Parameters
    ----------
    folder : Path
        Of the run's labels.
    run : Run
    metrics : sequence of str
        What is asked.
    seed, random_share
        As of `make_plan`. None: those of the plan that there is, else 0 and 0.2.

    Returns
    -------
    plan : Plan
        A plan that somebody labelled by stays as long as the run has the same cases.
    notes : list of str
        What the reader must know, a sentence each.
    """
    held = read_plan(folder)
    before = sorted({metric for case in held.cases for metric in case.metrics}) if held else []
    asked = planned_metrics(run, list(dict.fromkeys([*metrics, *USUAL, *before])))
    begun = any(path.stat().st_size for path in journals(folder).values())
    notes = []
    if held is not None:
        new_seed = seed not in {None, held.seed}
        new_share = random_share not in {None, held.random_share}
        same = {case.case_id for case in held.cases} == set(asked)
        if same and (begun or not (new_seed or new_share)):
            if new_seed or new_share:
                notes.append(
                    f"the order stays as it was drawn with --seed {held.seed} and --random-share "
                    f"{held.random_share:g}, since there are labels by it"
                )
            return _with_metrics(folder, held, asked), notes
        if begun and not same:
            notes.append(
                "the run has other answers than when the order was drawn, so it was drawn anew; "
                "labels of answers that are still there count"
            )
        seed = held.seed if seed is None else seed
        random_share = held.random_share if random_share is None else random_share
    every = list(dict.fromkeys([*metrics, *USUAL, *before]))
    drawn = make_plan(
        run, every, seed=seed or 0, random_share=0.2 if random_share is None else random_share
    )
    write_plan(folder, drawn)
    return drawn, notes


def in_order(run: Run, plan: Plan, metrics: Sequence[str]) -> list[Task]:
    """The cases to be labelled for these metrics, in the plan's order."""
    cases = {case.id: case for case in run.cases}
    traces = {trace.case_id: trace for trace in run.traces}
    found = []
    for one in plan.cases:
        wanted = tuple(metric for metric in metrics if metric in one.metrics)
        if wanted:
            asked = tuple((one.case_id, metric, None) for metric in wanted)
            found.append(Task(cases[one.case_id], traces[one.case_id], wanted, asked))
    return found


def to_settle(folder: Path, run: Run, wanted: Sequence[str]) -> tuple[list[Task], tuple[str, ...]]:
    """Return the cases on which people disagree, and the metrics of which they do.

    Parameters
    ----------
    folder : Path
        Of the run's labels.
    run : Run
    wanted : sequence of str
        Metrics; none given: all that were labelled.

    Returns
    -------
    tasks : list of Task
        In the plan's order; what was settled in an earlier session is among them.
    metrics : tuple of str

    Raises
    ------
    InputError
        Nobody has labelled the run, or not for a metric that is wanted.
    """
    if not journals(folder):
        raise InputError(
            "nobody has labelled this run, so there is nothing to settle; run  misslink annotate",
            path=folder.parent,
        )
    labels = read_labels(folder)
    usual = [metric for metric in USUAL if metric in labels.metrics]
    metrics = tuple(dict.fromkeys([*wanted] or [*usual, *labels.metrics]))
    split: dict[str, list[Item]] = {}
    said: dict[str, list[Label]] = {}
    for one in labels.items:
        if one.annotator != ADJUDICATED:
            said.setdefault(one.case_id, []).append(one)
    for metric in metrics:
        theirs = [one for one in labels.of(metric).items if one.annotator != ADJUDICATED]
        for entry in settled(theirs).queue:
            split.setdefault(entry["case_id"], []).append(
                (entry["case_id"], metric, entry["claim"])
            )
    plan = read_plan(folder)
    # One that is in no plan comes after them, in the run's order.
    order = dict.fromkeys(case.case_id for case in plan.cases) if plan else {}
    order |= dict.fromkeys(case.id for case in run.cases)
    cases = {case.id: case for case in run.cases}
    traces = {trace.case_id: trace for trace in run.traces}
    tasks = [
        Task(
            cases[case_id],
            traces[case_id],
            tuple(metric for metric in metrics if metric in {item[1] for item in split[case_id]}),
            tuple(sorted(split[case_id], key=lambda item: _place(item, metrics))),
            _said(said[case_id], split[case_id]),
        )
        for case_id in order
        if case_id in split and case_id in cases and case_id in traces
    ]
    return tasks, metrics


def content(task: Task, seen: Seen) -> dict[str, Any]:
    """What of a case is shown to whoever labels it, apart from labels and opinions."""
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


def judged(verdict: Verdict) -> dict[str, Any]:
    """What the judge said of one metric of a case."""
    return {
        "value": verdict.value,
        "probability": verdict.probability,
        "label": None if verdict.label is None else int(verdict.label),
        "reason": verdict.reason,
        "claims": [claim.support for claim in verdict.claims],
    }


def finished(task: Task, said: Mapping[Item, Entry]) -> bool:
    """Whether everything that is asked of a case has a label, or was skipped."""
    return all(item in said for item in task.asked)


def written(entry: Entry) -> dict[str, Any]:
    """A label as it is told to the page."""
    label = entry.label
    return {
        "metric": entry.metric,
        "claim": entry.claim,
        "label": int(label) if label is not None and label.is_integer() else label,
        "comment": entry.comment,
    }


def _with_metrics(folder: Path, plan: Plan, asked: dict[str, tuple[str, ...]]) -> Plan:
    """The plan with what is asked now, kept if that is more than it says."""
    cases = tuple(replace(case, metrics=asked[case.case_id]) for case in plan.cases)
    if all(set(a.metrics) == set(b.metrics) for a, b in zip(cases, plan.cases, strict=True)):
        return plan
    fresh = replace(plan, cases=cases)
    write_plan(folder, fresh)
    return fresh


def _place(item: Item, metrics: Sequence[str]) -> tuple[int, bool, int]:
    """A metric's claims come before its answer."""
    return metrics.index(item[1]), item[2] is None, item[2] or 0


def _said(labels: Sequence[Label], items: Sequence[Item]) -> tuple[dict[str, Any], ...]:
    """What people said of these items of a case; who is A is another from case to case."""
    theirs = [one for one in labels if (one.case_id, one.metric, one.claim) in items]
    case_id = items[0][0]
    letter = in_letters(case_id, {one.annotator for one in theirs})
    said = [
        {
            "who": letter[one.annotator],
            "metric": one.metric,
            "claim": one.claim,
            "label": int(one.good),
            "comment": one.comment,
        }
        for one in theirs
    ]
    return tuple(sorted(said, key=lambda one: str(one["who"])))


def in_letters(case_id: str, names: Iterable[str]) -> dict[str, str]:
    """Return a letter for each name; who is A is another from case to case."""
    order = sorted(
        names, key=lambda name: hashlib.sha256(f"{case_id}\n{name}".encode()).hexdigest()
    )
    return {name: _letters(place) for place, name in enumerate(order)}


def _letters(place: int) -> str:
    """A, B, ..., Z, AA, AB, ..."""
    rest, last = divmod(place, len(_LETTERS))
    return (_letters(rest - 1) if rest else "") + _LETTERS[last]
