"""Questions, the order of the cases to label, and those on which annotators disagree."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from misslink.calibration.inter_annotator import settle_labels
from misslink.calibration.verdicts import verdicts_from_run
from misslink.documents import calibrations_of, manifest_of
from misslink.errors import InputError, known_names
from misslink.io.label_folder import (
    ItemKey,
    JournalEntry,
    LabelPlan,
    PlanCase,
    PlanStratum,
    ShownContent,
    journal_files,
    read_label_plan,
    write_label_plan,
)
from misslink.io.labels import ADJUDICATED, Label, read_labels
from misslink.parts import by_case
from misslink.registry import judged_metrics
from misslink.types import Case, Run, Trace, Verdict

CLAIM_METRIC = "faithfulness"  # labelled per claim, too
DEFAULT_METRICS = (CLAIM_METRIC, "answer_relevance", "correctness")


@dataclass(frozen=True)
class LabelQuestion:
    """The question of one metric, and its two labels."""

    name: str
    ask: str
    good: str
    bad: str
    per_claim: bool


def question_for(metric: str) -> LabelQuestion:
    """Return the question of a metric."""
    asked = metric in judged_metrics and judged_metrics.get(metric).label_question
    name = metric.replace("_", " ")
    ask, good, bad = asked or (f"Is the answer good by the metric {name}?", "good", "bad")
    return LabelQuestion(metric, ask, good, bad, metric == CLAIM_METRIC)


def metrics_to_label(run: Run, requested: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the metrics to label: those wanted, else the judged ones of the default metrics.

    Raises InputError for an unknown metric, or if no answer can be labelled;
    `name` is the run folder in messages.
    """
    judged = {verdict.metric for verdict in run.scores}
    known = judged_metrics.names()
    labelable = sorted(judged | {name for name in known if judged_metrics.get(name).label_question})
    for metric in requested:
        if metric not in labelable:
            raise InputError(
                f"no metric to label is called '{metric}'; {known_names(metric, labelable)}"
            )
    metrics = tuple(dict.fromkeys(requested)) or tuple(
        m for m in DEFAULT_METRICS if m in judged or not judged
    )
    if not metrics:
        raise InputError(
            f"the run has verdicts of {', '.join(sorted(judged))}; name the metrics to label with --metric",
            path=name,
        )
    traces = by_case(run.traces)
    if not any(case_metrics(case, traces.get(case.id), metrics) for case in run.cases):
        raise InputError(
            f"no case has an answer that could be labelled for {', '.join(metrics)}"
            + (": there is no reference answer" if all(map(_needs_reference, metrics)) else ""),
            path=name,
        )
    return metrics


def case_metrics(case: Case, trace: Trace | None, metrics: Sequence[str]) -> tuple[str, ...]:
    """The metrics that a case can be labelled for; none without an answer."""
    if trace is None or trace.error is not None or not (trace.answer or "").strip():
        return ()
    referred = any(text.strip() for text in case.references)
    return tuple(metric for metric in metrics if referred or not _needs_reference(metric))


def _needs_reference(metric: str) -> bool:
    return metric in judged_metrics and judged_metrics.get(metric).needs_reference


_MIN_STRATUM = 5  # cases of a stratum
_MAX_STRATA = 16  # so that each has a label after so many
_FLOOR = 0.05  # least probability of either label; no judge is surer than that
_HALF = 0.5
_SCORE_DISTANCES = ("clearly below", "just below", "just above", "clearly above", "without a score")
_NO_SCORE = len(_SCORE_DISTANCES) - 1  # the level of cases without a verdict
_ALL_CASES = "all cases"


@dataclass
class _StratumGroup:
    """Cases of a future stratum."""

    level: int
    names: set[str]
    cases: list[str] = field(default_factory=list)
    levels: set[int] = field(default_factory=set)


def draw_plan(
    run: Run, metrics: Sequence[str], *, seed: int = 0, random_share: float = 0.2
) -> LabelPlan:
    """Draw the order in which the answers of a run are labelled.

    Parameters
    ----------
    run : Run
        Without verdicts of the first metric the order is random within categories.
    metrics : sequence of str
        Metrics to label, at least one; strata use the judge's score of the first.
    seed : int
    random_share : float
        In [0, 1]: 1 draws all strata alike, 0 by uncertainty alone.

    Returns
    -------
    LabelPlan
        All cases that can be labelled. Every prefix has each stratum's share to within one case.

    Raises
    ------
    ValueError
        The share is outside [0, 1].
    """
    import numpy as np

    if not 0 <= random_share <= 1:
        raise ValueError("the random share is not from 0 to 1")
    items = planned_metrics(run, metrics)
    scores, threshold = _judge_scores(run, metrics[0])
    groups = _merge_small_groups(_level_groups(run, items, scores, threshold), len(items))
    chances = _good_chances(run, metrics[0], scores, threshold)
    rates = _sampling_rates(groups, chances, random_share)
    draw = np.random.default_rng(seed)
    turns: list[tuple[bool, float, int, str]] = []
    for place, (group, rate) in enumerate(zip(groups, rates, strict=True)):
        cases = [str(case) for case in draw.permutation(sorted(group.cases))]
        share = len(cases) * rate
        # Webster's divisors allot by share; the first of each stratum comes before any second.
        turns += [(bool(n), (n + _HALF) / share, place, case) for n, case in enumerate(cases)]
    return LabelPlan(
        cases=tuple(PlanCase(case, place, items[case]) for _, _, place, case in sorted(turns)),
        strata=tuple(
            PlanStratum(
                _stratum_name(group, threshold), group.level, len(group.cases), round(rate, 4)
            )
            for group, rate in zip(groups, rates, strict=True)
        ),
        seed=seed,
        random_share=random_share,
        by=metrics[0] if scores else None,
        threshold=threshold,
    )


def planned_metrics(run: Run, metrics: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The metrics to label of each case that can be labelled."""
    traces = by_case(run.traces)
    planned = {case.id: case_metrics(case, traces.get(case.id), metrics) for case in run.cases}
    return {case_id: names for case_id, names in planned.items() if names}


def _judge_scores(run: Run, metric: str) -> tuple[dict[str, float], float | None]:
    """The judge's score of each case, and its threshold."""
    try:
        verdicts = verdicts_from_run(run, metric, "the run", ())
    except InputError:  # no verdict of it
        return {}, None
    items = verdicts.items.items()
    scores = {case_id: item.score for case_id, item in items if item.score is not None}
    return scores, verdicts.decision_threshold()[0] if scores else None


def _level_groups(
    run: Run, items: Mapping[str, object], scores: Mapping[str, float], threshold: float | None
) -> list[_StratumGroup]:
    """All cells of level and category, by level, then by category."""
    level_of = _score_levels(
        {case: score for case, score in scores.items() if case in items}, threshold
    )
    cells: dict[tuple[int, str], _StratumGroup] = {}
    for case in run.cases:
        if case.id in items:
            level, category = level_of.get(case.id, _NO_SCORE), case.category or ""
            cell = cells.setdefault(
                (level, category), _StratumGroup(level, {category}, levels={level})
            )
            cell.cases.append(case.id)
    return [cells[key] for key in sorted(cells)]


def _score_levels(scores: Mapping[str, float], threshold: float | None) -> dict[str, int]:
    """Each side of the threshold cut into its far and its near half; same scores stay together."""
    levels = {}
    for good in (False, True):
        side = {
            c: s for c, s in scores.items() if threshold is not None and (s >= threshold) == good
        }
        ranked = sorted(side.values(), reverse=good)  # what is farthest from the threshold first
        for case, score in side.items():
            middle = ranked[(len(ranked) - 1) // 2]
            far = score >= middle if good else score <= middle
            levels[case] = (3 if far else 2) if good else (0 if far else 1)
    return levels


def _merge_small_groups(groups: list[_StratumGroup], cases: int) -> list[_StratumGroup]:
    """Merge small groups with a neighbor, of the same level if possible."""
    least = max(_MIN_STRATUM, math.ceil(cases / _MAX_STRATA))
    remaining = dict(enumerate(groups))
    sizes: dict[int, list[tuple[int, int]]] = {}  # of each level's groups, with their places
    for place, group in remaining.items():
        heapq.heappush(sizes.setdefault(group.level, []), (len(group.cases), place))
    while len(remaining) > 1:
        (size, place), level = min((heap[0], level) for level, heap in sizes.items() if heap)
        if size >= least:
            break
        heapq.heappop(sizes[level])
        group = remaining.pop(place)
        _, (_, near), level = min(
            (abs(level - group.level), heap[0], level) for level, heap in sizes.items() if heap
        )
        other = remaining[near]
        other.cases += group.cases
        other.names |= group.names
        other.levels |= group.levels
        heapq.heapreplace(sizes[level], (len(other.cases), near))
    return sorted(remaining.values(), key=lambda group: (group.level, sorted(group.names)))


def _sampling_rates(
    groups: Sequence[_StratumGroup], chances: Mapping[str, float], random_share: float
) -> list[float]:
    """The sampling rate of each stratum, as a multiple of its share of the cases."""
    spreads = [
        math.sqrt(
            sum(_label_variance(chances.get(case, 0.0)) for case in group.cases) / len(group.cases)
        )
        for group in groups
    ]
    sizes = [len(group.cases) for group in groups]
    mean = sum(n * s for n, s in zip(sizes, spreads, strict=True)) / max(sum(sizes), 1)
    return [random_share + (1 - random_share) * spread / mean for spread in spreads]


def _good_chances(
    run: Run, metric: str, scores: Mapping[str, float], threshold: float | None
) -> dict[str, float]:
    """The probability of a good label, one half at the threshold; by a calibration where there is one.

    Its rates say how many of either call are good: by Bayes, with the share that the run's calls
    and these rates lead to. Each side of the threshold is scaled to that.
    """
    if threshold is None:
        return {}
    chances = {}
    for case, score in scores.items():
        if score < threshold:
            chances[case] = _HALF * score / threshold
        else:
            above = (score - threshold) / (1 - threshold) if threshold < 1 else 0.0
            chances[case] = _HALF + _HALF * above
    applied = manifest_of(run).calibration
    document = calibrations_of(run).get(metric) or (applied.calibration if applied else None)
    if document is None or (document.metric or CLAIM_METRIC) != metric:
        return chances
    known = [document.agreement.get(name) for name in ("sensitivity", "specificity")]
    sensitivity, specificity = (rate.value if rate else None for rate in known)
    sides = [
        [case for case in scores if (scores[case] >= threshold) == side] for side in (True, False)
    ]
    if (
        sensitivity is None
        or specificity is None
        or sensitivity + specificity <= 1
        or not all(sides)
    ):
        return chances
    called = len(sides[0]) / len(scores)
    good = (called - 1 + specificity) / (sensitivity + specificity - 1)
    good = min(max(good, _FLOOR), 1 - _FLOOR)
    wrong = (
        1 - min(sensitivity * good / called, 1.0),
        min((1 - sensitivity) * good / (1 - called), 1),
    )
    for side, errs, cases in zip((True, False), wrong, sides, strict=True):
        expected = sum(1 - chances[case] if side else chances[case] for case in cases) / len(cases)
        scale = errs / max(expected, _FLOOR)
        for case in cases:
            error = min((1 - chances[case] if side else chances[case]) * scale, 1.0)
            chances[case] = 1 - error if side else error
    return chances


def _label_variance(chance: float) -> float:
    """Variance of the label given the probability of a good one; the least without a score."""
    good = min(max(chance, _FLOOR), 1 - _FLOOR)
    return good * (1 - good)


def _stratum_name(group: _StratumGroup, threshold: float | None) -> str:
    """What the cases of a stratum have in common."""
    where = " or ".join(_SCORE_DISTANCES[level] for level in sorted(group.levels))
    if threshold is None:
        where = ""
    elif group.levels != {_NO_SCORE}:
        where = f"{where} (threshold {threshold:.3g})"
    categories = ", ".join(sorted(name for name in group.names if name))
    return "; ".join(filter(None, (where, categories))) or _ALL_CASES


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
                    f"the order keeps --seed {stored.seed} and --random-share "
                    f"{stored.random_share:g}, because there are labels"
                )
            return _extend_plan(folder, stored, items), notes
        if begun and not is_same_cases:
            notes.append(
                "answers have changed since the order was drawn, so a new order was drawn; "
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
    cases = by_case(run.cases)
    traces = by_case(run.traces)
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
    """Return the cases on which annotators disagree, ties first, and their metrics.

    Ties, and then the others, are in the plan's order.
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
    tied = set[str]()
    labels_of: dict[str, list[Label]] = {}
    for label in labels.items:
        if label.annotator != ADJUDICATED:
            labels_of.setdefault(label.case_id, []).append(label)
    for metric in metrics:
        independent = [x for x in labels.select_metric(metric).items if x.annotator != ADJUDICATED]
        for entry in settle_labels(independent).queue:
            if not entry.settled:
                tied.add(entry.case_id)
            split.setdefault(entry.case_id, []).append((entry.case_id, metric, entry.claim))
    plan = read_label_plan(folder)
    # Cases in no plan come last, in the run's order.
    order = dict.fromkeys(case.case_id for case in plan.cases) if plan else {}
    order |= dict.fromkeys(case.id for case in run.cases)
    cases = by_case(run.cases)
    traces = by_case(run.traces)
    tasks = [
        LabelTask(
            cases[case_id],
            traces[case_id],
            tuple(metric for metric in metrics if metric in {item[1] for item in split[case_id]}),
            # A metric's claims come before its answer.
            tuple(
                sorted(split[case_id], key=lambda i: (metrics.index(i[1]), i[2] is None, i[2] or 0))
            ),
            _anonymous_labels(labels_of[case_id], split[case_id]),
        )
        for case_id in sorted(order, key=lambda name: name not in tied)
        if case_id in split and case_id in cases and case_id in traces
    ]
    return tasks, metrics


def task_content(task: LabelTask, seen: ShownContent) -> dict[str, object]:
    """What the page shows of a case, without labels and opinions."""
    return {
        "case_id": task.case.id,
        "question": task.case.question,
        "history": [message.model_dump() for message in task.case.history],
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


def judge_opinion(verdict: Verdict) -> dict[str, object]:
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


def label_document(entry: JournalEntry) -> dict[str, object]:
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
