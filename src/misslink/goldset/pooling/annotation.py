"""Annotate a pool, blind to rank, retriever and judge, and export the grades."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from misslink.annotation.label_writer import (
    UnchangedFolder,
    export_format,
    serialize_rows,
    validate_comment,
)
from misslink.annotation.session import AnnotatorState, LabelSession, utc_now
from misslink.annotation.tasks import LabelTask, letters_by_name
from misslink.errors import InputError
from misslink.goldset.pooling.grades import GRADE_NAMES, read_grades, resolve_grades
from misslink.goldset.pooling.pool import (
    PLAN_FILE,
    RELEVANCE_METRIC,
    GradingPool,
    PoolItem,
    is_pool,
    labels_folder,
    read_pool,
)
from misslink.io import label_folder
from misslink.io.atomic import atomic_write
from misslink.io.labels import ADJUDICATED
from misslink.registry import annotation_sessions
from misslink.types import Case, Trace

_KEY = (RELEVANCE_METRIC, None)
_FORMULA_COLUMNS = ("case_id", "passage_id", "comment")
_QUESTION = "Is this passage relevant to the question?"
_GRADE_MEANINGS = (  # by grade, as in the prompt goldset_relevance
    "it does not help to answer the question",
    "it helps, or answers a part of the question",
    "it answers the question by itself",
)


def export_grades(pool: Path, path: Path) -> int:
    """Write all grades of a pool into a `.csv` or `.jsonl` file, and return how many.

    Raises
    ------
    InputError
        It is not a pool, there is no grade, or the file cannot be written or is in the pool.
    """
    form, items = export_format(path), {item.item: item for item in read_pool(pool).items}
    if pool.resolve() in path.resolve().parents:
        raise InputError("This is the folder of the pool. Name another folder.", path=path)
    rows = _grade_rows(labels_folder(pool), items)
    atomic_write(serialize_rows(rows, form, _FORMULA_COLUMNS), path)
    return len(rows)


def _grade_rows(folder: Path, items: Mapping[str, PoolItem]) -> list[dict[str, Any]]:
    rows = [
        {
            "case_id": items[entry.case_id].case_id,
            "passage_id": items[entry.case_id].passage_id,
            "grade": entry.grade,
            "annotator": name,
            "comment": entry.comment,
            "at": entry.at,
        }
        for name, path in label_folder.journal_files(folder).items()
        for entry in label_folder.current_labels(label_folder.read_journal(path).entries).values()
        if entry.grade is not None and entry.case_id in items
    ]
    if not rows:
        message = "No annotator has labelled this pool. Run  misslink annotate."
        raise InputError(message, path=folder.parent)
    return rows


@annotation_sessions.register("pool")
class PoolAnnotationSession(LabelSession):
    """Grading of one pool by any number of annotators; see `AnnotationSession`.

    Annotators see a question and a passage's text: no id, rank, retriever, stratum, weight or
    judge's grade.

    Parameters
    ----------
    folder : Path
        The pool's.
    adjudicate : bool
        Ask only about items on which annotators disagree.

    Raises
    ------
    InputError
        It is not a pool, labels of it are damaged, or there is nothing to adjudicate yet.
    """

    metrics = (RELEVANCE_METRIC,)
    unit = "passages"
    has_plan = False  # one question and a fixed order
    next_command = "misslink goldset pool-apply {folder} --out graded.jsonl"
    matches = staticmethod(is_pool)
    write_labels = staticmethod(export_grades)
    labels = MappingProxyType(dict(enumerate(GRADE_NAMES)))

    def __init__(self, folder: Path, *, adjudicate: bool = False) -> None:
        pool = read_pool(folder)
        unchanged = UnchangedFolder(folder, file=PLAN_FILE, changed="the pool was redrawn")
        self._items = {item.item: item for item in pool.items}
        disputed = _disputed_grades(folder, pool) if adjudicate else {}
        # The order of the queue has ties first, without which a passage has no grade.
        asked = [self._items[name] for name in disputed] if adjudicate else pool.items
        tasks = [
            LabelTask(
                Case(id=item.item, question=item.question),
                Trace(case_id=item.item, retrieved=()),
                (RELEVANCE_METRIC,),
                ((item.item, *_KEY),),
                disputed.get(item.item, ()),
            )
            for item in asked
        ]

        def hash_of(key: label_folder.ItemKey) -> str | None:
            """An item's id is a hash of what it shows."""
            return key[0] if key[0] in self._items else None

        labels = labels_folder(folder)
        super().__init__(folder, labels, tasks, hash_of, unchanged, adjudicate=adjudicate)

    def session(self, annotator: str) -> dict[str, Any]:
        """Return the question, its grades, and the annotator's progress if named."""
        grades = [
            {"label": grade, "word": word, "key": str(grade), "means": _GRADE_MEANINGS[grade]}
            for grade, word in self.labels.items()
        ]
        metric = {"name": RELEVANCE_METRIC, "ask": _QUESTION, "per_claim": False, "grades": grades}
        return {
            "run": str(self.path),
            "kind": "pool",
            "metrics": [metric],
            **super().session(annotator),
        }

    def label(
        self,
        annotator: str,
        at: int,
        metric: str,
        claim: int | None,
        label: int | None,
        comment: str,
    ) -> dict[str, Any]:
        """Save one grade, and return the item with this annotator's progress.

        Parameters
        ----------
        annotator : str
        at : int
            Index of the item, from 0.
        metric : str
            'relevance'.
        claim : None
        label : {0, 1, 2, None}
            The grade; None skips it.
        comment : str
            At most 2,000 characters.

        Raises
        ------
        InputError
            A value is invalid, or the pool was replaced.
        UnsavedError
            The grade could not be saved.
        """
        state, task = self.open(annotator), self.task(at)
        if metric != RELEVANCE_METRIC:
            raise InputError(f"Unknown metric '{metric}'. Passages have only {RELEVANCE_METRIC}.")
        if claim is not None:
            raise InputError(f"Unknown claim {claim}. A passage has no claims.")
        if label is not None and label not in self.labels:
            raise InputError(f"Unknown grade {label}. Use 0, 1 or 2.")
        comment = validate_comment(comment)
        self._unchanged.check()
        before = state.labels(task.case.id).get(task.asked[0])
        if before is None or (before.grade, before.comment) != (label, comment):
            entry = label_folder.JournalEntry(
                "label",
                *(task.case.id, RELEVANCE_METRIC, state.writer.annotator, None),
                label=None if label is None else float(label > 0),
                comment=comment,
                of=task.case.id,
                at=utc_now(),
                grade=label,
            )
            state.save(entry)
        return self._item(state, at) | self.progress(state)

    def reveal(self, annotator: str, at: int) -> dict[str, Any]:  # noqa: ARG002 (protocol)
        """Raise InputError: annotators of a pool never see a judge's grade."""
        raise InputError("A pool shows no grades of a judge.")

    def export(self, form: str) -> str:
        """Return all annotators' grades as text, in the format 'csv' or 'jsonl'."""
        return serialize_rows(_grade_rows(self.folder, self._items), form, _FORMULA_COLUMNS)

    def _item(self, state: AnnotatorState, at: int) -> dict[str, Any]:
        task = self.task(at)
        return {
            "at": at,
            "case_id": task.case.id,
            "question": task.case.question,
            "references": [],
            "passages": [],
            "answer": self._items[task.case.id].text,  # what is labelled
            "claims": [],
            "metrics": [RELEVANCE_METRIC],
            "asked": [{"metric": RELEVANCE_METRIC, "claim": None}],
            "labels": [self.entry_document(entry) for entry in state.labels(task.case.id).values()],
            "judged": None,
            "judge_shown": False,
            "said": list(task.other_labels) if self.adjudicate else None,
        }

    @staticmethod
    def entry_document(entry: label_folder.JournalEntry) -> dict[str, Any]:
        """A grade for the page."""
        return {
            "metric": RELEVANCE_METRIC,
            "claim": None,
            "label": entry.grade,
            "comment": entry.comment,
        }


def _disputed_grades(folder: Path, pool: GradingPool) -> dict[str, tuple[dict[str, Any], ...]]:
    """The grades of each disputed item, by letters in place of names."""
    labels = {
        name: label_folder.current_labels(label_folder.read_journal(path).entries)
        for name, path in label_folder.journal_files(labels_folder(folder)).items()
    }
    if not labels:
        message = "No annotator has labelled this pool. Run  misslink annotate  first."
        raise InputError(message, path=folder)
    grades = read_grades(folder, pool)
    disputed = {}
    _, queue = resolve_grades({name: grades[name] for name in grades if name != ADJUDICATED})
    for row in queue:
        letters = letters_by_name(row["item"], row["grades"])
        entries = (
            {
                "who": letters[name],
                **PoolAnnotationSession.entry_document(labels[name][row["item"], *_KEY]),
            }
            for name in row["grades"]
        )
        disputed[row["item"]] = tuple(sorted(entries, key=lambda entry: str(entry["who"])))
    return disputed
