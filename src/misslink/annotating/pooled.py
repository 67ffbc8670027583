"""The desk at which people grade a pool: a question, a passage, and nothing of where it came from.

It answers as `misslink.annotating.desk.Desk` does, so that the same page serves both. What it hands
out is the question and the passage's text: no id of the passage, no rank, no retriever, no stratum,
no weight and no judge's grade, and its order is a random one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from misslink.annotating.grades import exported_grades
from misslink.annotating.keeping import SameRun
from misslink.annotating.sheet import Sheet
from misslink.annotating.sheets import Sheets, now
from misslink.annotating.tasks import Task, in_letters
from misslink.errors import InputError
from misslink.files.label_folder import journals
from misslink.files.label_journal import Entry, Item, read_journal, standing
from misslink.files.labels import ADJUDICATED
from misslink.goldset.pooling.folder import METRIC, PLAN, PoolItem, labels_of, read_pool
from misslink.goldset.pooling.settling import GRADES, read_grades, settled
from misslink.text import valid_text
from misslink.types import Case, Trace

__all__ = ["PoolDesk"]

_LONGEST_COMMENT = 2000  # characters
_ASK = "Is this passage relevant to the question?"
_MEANS = (  # by grade, as a judge is told it in the prompt goldset_relevance
    "it does not help to answer the question",
    "it helps, or answers a part of the question",
    "it answers the question by itself",
)


class PoolDesk:
    """Grading of one pool, by as many people as come.

    Parameters
    ----------
    folder : Path
        Of the pool.
    adjudicate : bool
        Ask about what people disagree on, in place of the whole pool.

    Raises
    ------
    InputError
        It is no pool, or labels of it are damaged; there is nothing to adjudicate yet.
    """

    metrics = (METRIC,)
    labels: Mapping[int, str] = MappingProxyType(dict(enumerate(GRADES)))  # what may be said

    def __init__(self, folder: Path, *, adjudicate: bool = False) -> None:
        self.path = folder
        self.folder = labels_of(folder)
        self.adjudicate = adjudicate
        self.notes: list[str] = []
        pool = read_pool(folder)
        self._same = SameRun(folder, file=PLAN, changed="the pool was drawn anew")
        self._items = {item.item: item for item in pool.items}
        said: dict[str, tuple[dict[str, Any], ...]] = {}
        if adjudicate:
            if not journals(self.folder):
                raise InputError(
                    "nobody has labelled this pool, so there is nothing to settle; run  misslink "
                    "annotate",
                    path=folder,
                )
            said = self._disputed()
        wanted = [item for item in pool.items if not adjudicate or item.item in said]
        self.tasks = [_task(item, said.get(item.item, ())) for item in wanted]
        self._sheets = Sheets(self.folder, self.tasks, self._hash, adjudicate=adjudicate)
        self.open = self._sheets.open
        self.counts = self._sheets.counts

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give all files free."""
        self._sheets.close()

    def session(self, annotator: str) -> dict[str, Any]:
        """What is asked of whom, and how far one person is; nobody's progress without a name."""
        return {
            "run": str(self.path),
            "kind": "pool",
            "metrics": [
                {
                    "name": METRIC,
                    "ask": _ASK,
                    "per_claim": False,
                    "grades": [
                        {"label": grade, "word": word, "key": str(grade), "means": _MEANS[grade]}
                        for grade, word in self.labels.items()
                    ],
                }
            ],
            **self._sheets.session(annotator, self.notes),
        }

    def item(self, annotator: str, at: int) -> dict[str, Any]:
        """One question and passage, with this person's grade."""
        return self._item(self.open(annotator), at)

    def label(
        self,
        annotator: str,
        at: int,
        metric: str,
        claim: int | None,
        label: int | None,
        comment: str,
    ) -> dict[str, Any]:
        """Keep one grade, and return the item again with this person's progress.

        Parameters
        ----------
        annotator : str
        at : int
            Place of the item, from 0.
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
            Something of it cannot be, or the pool is not the one that was opened.
        UnsavedError
            It could not be put on disk.
        """
        sheet, task = self.open(annotator), self._sheets.task(at)
        if metric != METRIC:
            raise InputError(f"a passage is asked about {METRIC} alone")
        if claim is not None:
            raise InputError("a passage has no claims to label")
        if label is not None and label not in self.labels:
            raise InputError(f"there is no grade {label}")
        if len(comment) > _LONGEST_COMMENT:
            raise InputError(f"a comment has at most {_LONGEST_COMMENT:,} characters")
        self._same.check()
        said = valid_text(comment)
        before = sheet.said(task.case.id).get(task.asked[0])
        if before is None or (before.grade, before.comment) != (label, said):
            sheet.keep(
                Entry(
                    "label",
                    *(task.case.id, METRIC, sheet.keeper.annotator, None),
                    label=None if label is None else float(label > 0),
                    comment=said,
                    of=task.case.id,
                    at=now(),
                    grade=label,
                )
            )
        return self._item(sheet, at) | self._sheets.progress(sheet)

    def undo(self, annotator: str) -> dict[str, Any]:
        """Take this person's last grade back, also one of an earlier session.

        Raises
        ------
        NothingToUndoError
            There is none.
        """
        return self._sheets.take_back(annotator, self._same.check, _written)

    def reveal(self, annotator: str, at: int) -> dict[str, Any]:  # noqa: ARG002 (as a run's desk)
        """Refuse: what a judge says of a pool is shown to nobody who labels it."""
        raise InputError("of a pool there is no judge's opinion to show")

    def export(self, form: str) -> str:
        """Everybody's grades as text, in the form 'csv' or 'jsonl'."""
        return exported_grades(self.folder, self._items, form)

    def _item(self, sheet: Sheet, at: int) -> dict[str, Any]:
        task = self._sheets.task(at)
        return {
            "at": at,
            "case_id": task.case.id,
            "question": task.case.question,
            "references": [],
            "passages": [],
            "answer": self._items[task.case.id].text,  # what is labelled
            "claims": [],
            "metrics": [METRIC],
            "asked": [{"metric": METRIC, "claim": None}],
            "labels": [_written(entry) for entry in sheet.said(task.case.id).values()],
            "judged": None,
            "judge_shown": False,
            "said": list(task.said) if self.adjudicate else None,
        }

    def _hash(self, item: Item) -> str | None:
        """An item's id is a hash of what it shows."""
        return item[0] if item[0] in self._items else None

    def _disputed(self) -> dict[str, tuple[dict[str, Any], ...]]:
        """What people said of each item on which they disagree, by letters in place of names."""
        graded = {
            name: of
            for name, of in read_grades(self.path, read_pool(self.path)).items()
            if name != ADJUDICATED
        }
        labels = {
            name: standing(read_journal(path).entries)
            for name, path in journals(self.folder).items()
        }
        found = {}
        for one in settled(graded).queue:
            letter = in_letters(one["item"], one["grades"])
            said = [
                {"who": letter[name], "metric": METRIC, "claim": None, "label": grade,
                 "comment": labels[name][one["item"], METRIC, None].comment}
                for name, grade in one["grades"].items()
            ]  # fmt: skip
            found[one["item"]] = tuple(sorted(said, key=lambda row: str(row["who"])))
        return found


def _task(item: PoolItem, said: tuple[dict[str, Any], ...]) -> Task:
    asked: Item = (item.item, METRIC, None)
    case = Case(id=item.item, question=item.question)
    return Task(case, Trace(case_id=item.item, retrieved=()), (METRIC,), (asked,), said)


def _written(entry: Entry) -> dict[str, Any]:
    """A grade as it is told to the page."""
    return {"metric": METRIC, "claim": None, "label": entry.grade, "comment": entry.comment}
