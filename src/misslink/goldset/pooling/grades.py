"""Grades of a pool: agreement of annotators, and merging them into the gold set."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from misslink.errors import InputError
from misslink.goldset.pooling.pool import (
    RELEVANCE_METRIC,
    GradingPool,
    PoolItem,
    labelled_grades,
    labels_folder,
    read_pool,
)
from misslink.goldset.pooling.recall import estimate_recall
from misslink.io.atomic import atomic_write
from misslink.io.jsonl import read_objects
from misslink.io.label_folder import current_labels, journal_files, read_journal
from misslink.io.labels import ADJUDICATED
from misslink.judge.judge_case import ask_safely
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.protocol import Ask, Judge
from misslink.stats import proportion
from misslink.stats.agreement import cohen_kappa, krippendorff_alpha, percent_agreement
from misslink.types import Case, Estimate

GRADE_NAMES = ("not relevant", "relevant", "highly relevant")  # by grade, from 0
PRELABELS_FILE = "prelabels.jsonl"
_GRADE_VALUES = {name.replace(" ", "_"): grade for grade, name in enumerate(GRADE_NAMES)}
_REPEAT_HINT = "Delete it, and run  misslink goldset pool ... --prelabel  again."
_TWO = 2

# Annotator to item to grade; None: skipped.
GradesByAnnotator = Mapping[str, Mapping[str, int | None]]


def read_grades(folder: Path, pool: GradingPool) -> GradesByAnnotator:
    """Read the annotators' grades of a pool's items, with the adjudicator's as 'adjudicated'.

    Raises
    ------
    InputError
        A file of labels is damaged.
    """
    items = {item.item for item in pool.items}
    return {
        name: {
            entry.case_id: entry.grade
            for entry in current_labels(read_journal(path).entries).values()
            if entry.metric == RELEVANCE_METRIC and entry.claim is None and entry.case_id in items
        }
        for name, path in journal_files(labels_folder(folder)).items()
    }


def resolve_grades(grades: GradesByAnnotator) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Resolve several grades of an item: the adjudicated one, else that of more than half.

    An item without a majority is not resolved; skipped items do not count.

    Returns
    -------
    grades : dict of str to int
        By item.
    queue : list of dict
        Items that annotators disagree on and that were not adjudicated: the item, the grades by
        annotator, and whether a majority resolves it. Unresolved ones first.
    """
    by_item: dict[str, dict[str, int]] = {}
    for name, several in grades.items():
        for item, grade in several.items():
            if grade is not None:
                by_item.setdefault(item, {})[name] = grade
    resolved: dict[str, int] = {}
    queue: list[dict[str, Any]] = []
    for item, votes in by_item.items():
        if ADJUDICATED in votes:
            resolved[item] = votes[ADJUDICATED]
            continue
        counts = Counter(votes.values())
        ((grade, count),) = counts.most_common(1)
        is_majority = 2 * count > counts.total()
        if is_majority:
            resolved[item] = grade
        if len(counts) > 1:
            row = {"item": item, "grades": dict(sorted(votes.items())), "settled": is_majority}
            queue.append(row)
    return resolved, sorted(queue, key=lambda row: bool(row["settled"]))


def annotator_agreement(grades: GradesByAnnotator, items: int, *, seed: int = 0) -> dict[str, Any]:
    """Measure how well the annotators agree, overall and by pair."""
    people = {name: of for name, of in sorted(grades.items()) if name != ADJUDICATED and of}
    graded = dict.fromkeys(item for several in people.values() for item in several)
    rows = [[several.get(item) for several in people.values()] for item in graded]
    shared = [row for row in rows if sum(grade is not None for grade in row) >= _TWO]
    if shared:
        alpha = krippendorff_alpha(shared, metric="ordinal", seed=seed)
        percent = percent_agreement(shared, seed=seed)
    else:
        reason = "one annotator" if len(people) == 1 else "no item was graded by two annotators"
        alpha = percent = Estimate.missing(reason)
    pairs = [
        {"a": a, "b": b, "kappa": weighted_kappa(people[a], people[b], seed=seed)}
        for a, b in combinations(people, _TWO)
    ]
    reason = "see the pairs" if pairs else "it needs two annotators"
    return {
        "annotators": len(people),
        "alpha": alpha,
        "kappa": pairs[0]["kappa"] if len(pairs) == 1 else Estimate.missing(reason),
        "percent": percent,
        "pairs": pairs,
        "each": {
            name: {
                "labelled": sum(grade is not None for grade in several.values()),
                "skipped": sum(grade is None for grade in several.values()),
                "missing": items - len(several),
            }
            for name, several in people.items()
        },
    }


def weighted_kappa(
    first: Mapping[str, int | None], second: Mapping[str, int | None], *, seed: int = 0
) -> Estimate:
    """Return Cohen's kappa with quadratic weights of two raters of the same items."""
    return cohen_kappa(_grade_table(first, second), weights="quadratic", seed=seed)


def _grade_table(
    first: Mapping[str, int | None], second: Mapping[str, int | None]
) -> list[list[int]]:
    """Count pairs over all grades; unused grades are included so that distances are correct."""
    table = [[0] * len(GRADE_NAMES) for _ in GRADE_NAMES]
    for item, grade in first.items():
        other = second.get(item)
        if grade is not None and other is not None:
            table[grade][other] += 1
    return table


class PassageGradeReply(BaseModel):
    """How relevant a passage is to a question."""

    model_config = ConfigDict(frozen=True)

    grade: Literal["not_relevant", "relevant", "highly_relevant"]


@dataclass(frozen=True)
class JudgeGrade:
    """A judge's grade of one item; None: it gave none, for this reason."""

    item: str
    grade: int | None
    judge: str
    reason: str | None = None


def ask_grade(item: PoolItem, prompts: Prompts = BUILT_IN) -> Ask:
    """Return the ask for a passage's relevance; it contains nothing about the draw."""
    inputs = {"question": item.question, "passage": item.text}
    return Ask.rendered(prompts.load("goldset_relevance"), inputs, PassageGradeReply)


async def prelabel_pool(
    pool: GradingPool,
    judge: Judge,
    *,
    prompts: Prompts = BUILT_IN,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> list[JudgeGrade]:
    """Ask a judge for a grade of every item, in the pool's order.

    Parameters
    ----------
    pool : GradingPool
    judge : Judge
    prompts : Prompts
    progress : callable
        Called with the number done and the total.

    Raises
    ------
    JudgeUnreachableError
        Further asks are pointless.
    InputError
        The judge gave no grade at all.
    """
    finished = 0

    async def grade(item: PoolItem) -> JudgeGrade:
        nonlocal finished
        reply = await ask_safely(judge, ask_grade(item, prompts))
        finished += 1
        progress(finished, len(pool.items))
        name = reply.judge or judge.name
        if isinstance(reply.parsed, PassageGradeReply):
            return JudgeGrade(item.item, _GRADE_VALUES[reply.parsed.grade], name)
        return JudgeGrade(item.item, None, name, reply.problem or "The reply cannot be read.")

    grades = list(await asyncio.gather(*map(grade, pool.items)))
    if all(grade.grade is None for grade in grades):
        raise InputError(f"{judge.name} gave no grade: {grades[0].reason} Use another judge.")
    return grades


def write_prelabels(folder: Path, grades: list[JudgeGrade]) -> Path:
    """Write a judge's grades into a pool's folder, and replace earlier ones."""
    lines = [json.dumps(asdict(grade), ensure_ascii=False) for grade in grades]
    return atomic_write("".join(f"{line}\n" for line in lines), folder / PRELABELS_FILE)


def read_prelabels(folder: Path, pool: GradingPool) -> dict[str, JudgeGrade]:
    """Read the judge's grades of a pool's items; empty if no judge graded the pool."""
    path = folder / PRELABELS_FILE
    if not path.exists():
        return {}
    adapter = TypeAdapter(JudgeGrade)
    grades: dict[str, JudgeGrade] = {}
    for row in read_objects(path):
        try:
            grade = adapter.validate_python(row.data)
        except ValidationError:
            message = f"The line is not a judge's grade. {_REPEAT_HINT}"
            raise row.error(message) from None
        if grade.grade is not None and not 0 <= grade.grade < len(GRADE_NAMES):
            message = f"There is no grade {grade.grade}. {_REPEAT_HINT}"
            raise row.error(message, "grade")
        grades[grade.item] = grade
    return {item.item: grades[item.item] for item in pool.items if item.item in grades}


def judge_agreement(
    judged: Mapping[str, JudgeGrade], grades: Mapping[str, int], *, seed: int = 0
) -> dict[str, Any]:
    """Measure how well a judge's grades agree with the annotators', on what both graded.

    Returns
    -------
    dict
        ``judge``; ``labelled`` and ``failed`` items; ``n`` graded by both; ``kappa`` with
        quadratic weights; ``confusion``, a row a grade of the annotators, a column one of the
        judge; and ``grades``: ``recall`` and ``precision`` of the judge for each.
    """
    judge_grades = {item: grade.grade for item, grade in judged.items()}
    table = _grade_table(grades, judge_grades)
    labelled = sum(grade is not None for grade in judge_grades.values())
    return {
        "judge": next((grade.judge for grade in judged.values()), None),
        "labelled": labelled,
        "failed": len(judged) - labelled,
        "n": sum(map(sum, table)),
        "kappa": weighted_kappa(grades, judge_grades, seed=seed),
        "confusion": table,
        "grades": {
            name: {
                "recall": proportion(table[grade][grade], sum(table[grade])),
                "precision": proportion(table[grade][grade], sum(row[grade] for row in table)),
            }
            for grade, name in enumerate(GRADE_NAMES)
        },
    }


def merge_pool_grades(
    folder: Path, *, accept_prelabels: bool = False, relevance_level: int = 1, seed: int = 0
) -> tuple[tuple[Case, ...], dict[str, Any]]:
    """Merge the resolved grades of a pool into its gold set; return cases and summary."""
    pool = read_pool(folder)
    by_annotator = read_grades(folder, pool)
    resolved, queue = resolve_grades(by_annotator)
    if not resolved and not queue:
        message = f"No annotator has labelled this pool. Run  misslink annotate {folder}"
        raise InputError(message, path=labels_folder(folder))
    judged = read_prelabels(folder, pool)
    prelabels = judge_agreement(judged, resolved, seed=seed) if judged else None
    grades = dict(resolved)
    if accept_prelabels:
        if prelabels is None:
            message = (
                "No judge has graded this pool. Run  misslink goldset pool ... --prelabel  first."
            )
            raise InputError(message, path=folder)
        if not prelabels["n"]:
            raise InputError(
                "No annotator has graded what the judge graded, so its agreement is unknown. Label "
                "some passages first.",
                path=folder,
            )
        for name, row in judged.items():
            if row.grade is not None:
                grades.setdefault(name, row.grade)
    by_case: dict[str, dict[str, int]] = {case.id: {} for case in pool.goldset.cases}
    for item in pool.items:
        if item.item in grades:
            by_case[item.case_id][item.passage_id] = grades[item.item]
    cases = tuple(
        case.model_copy(update={"relevant": {**case.relevant, **by_case[case.id]}})
        for case in pool.goldset.cases
    )
    items = {item.item: item for item in pool.items}
    votes = {row["item"]: list(row["grades"].values()) for row in queue}
    counts = Counter(grades.values())
    accepted = len(grades) - len(resolved)
    document = {
        "items": len(pool.items),
        "settled": len(resolved),
        "open": len(pool.items) - len(resolved),
        "grades": {name: counts[grade] for grade, name in enumerate(GRADE_NAMES)},
        "merged": sum(map(len, by_case.values())),
        "changed": sum(
            labelled_grades(case).get(name, grade) != grade
            for case in pool.goldset.cases
            for name, grade in by_case[case.id].items()
        ),
        "accepted_prelabels": accepted,
        "agreement": annotator_agreement(by_annotator, len(pool.items), seed=seed),
        "queue": [
            {
                "case_id": items[row["item"]].case_id,
                "passage_id": items[row["item"]].passage_id,
                **row,
            }
            for row in queue
        ],
        "prelabels": prelabels,
        "recall": estimate_recall(pool, grades, votes, relevance_level=relevance_level),
        "notes": _merge_notes(pool, accepted),
    }
    return cases, to_jsonable_python(document)


def _merge_notes(pool: GradingPool, accepted: int) -> list[str]:
    cases = pool.goldset.cases
    gold_grades = pool.gold_grades
    counts = {
        "{} cases have evidence texts, which take precedence over ids. Their grades are saved, and "
        "apply once the evidence is removed.": sum(any(case.evidence.values()) for case in cases),
        "{} cases have sets of sufficient ids (relevant_any), which take precedence over single "
        "ids. Here each of these ids counts as relevant.": sum(
            any(case.relevant_any) for case in cases
        ),
        "{} graded ids of the gold set are not in the corpus. Recall counts the relevant ones as "
        "missed.": sum(len(gold_grades[case.id]) - pool.strata[case.id][0].size for case in cases),
        "Recall uses {} grades of the judge. The intervals do not include its errors.": accepted,
    }
    return [note.format(count) for note, count in counts.items() if count]
