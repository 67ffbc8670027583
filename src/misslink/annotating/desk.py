"""The desk at which people label a run: what is asked next, what was said, and what it says back.

It answers as the page's addresses do (see `misslink.annotating.server`), in plain JSON values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

from misslink.annotating.exporting import exported
from misslink.annotating.keeping import Keeper, SameRun, checked_name
from misslink.annotating.questions import BY_CLAIMS, asked_of_run, question_of
from misslink.annotating.sheet import Sheet
from misslink.annotating.tasks import (
    Task,
    content,
    finished,
    in_order,
    judged,
    planned,
    to_settle,
    written,
)
from misslink.errors import InputError
from misslink.files import read_whole
from misslink.files.label_folder import FOLDER, Seen, journals
from misslink.files.label_journal import Entry, Item, read_journal, standing
from misslink.files.labels import ADJUDICATED
from misslink.text import valid_text

__all__ = ["Desk", "NothingToUndoError"]

_LONGEST_COMMENT = 2000  # characters


class NothingToUndoError(InputError):
    """An annotator has no label to take back."""


class Desk:
    """Labelling of one run, by as many people as come.

    Parameters
    ----------
    run : Path
        The run folder; labels are kept in its folder `labels`.
    metrics : sequence of str
        What is asked. None given: see `misslink.annotating.questions.asked_of_run`.
    seed, random_share
        Of the order, see `misslink.annotating.plan.make_plan`; None: as it was drawn before.
    adjudicate : bool
        Ask about what people disagree on, in place of the whole run.

    Raises
    ------
    InputError
        It is no run, nothing of it can be labelled, or labels of it are damaged.
    """

    labels: Mapping[int, str] = MappingProxyType({1: "good", 0: "bad"})  # what may be said

    def __init__(
        self,
        run: Path,
        *,
        metrics: Sequence[str] = (),
        seed: int | None = None,
        random_share: float | None = None,
        adjudicate: bool = False,
    ) -> None:
        self.path = run
        self.folder = run / FOLDER
        self._run = read_whole(run)
        self._same = SameRun(run)
        self._seen = Seen(self._run)
        self.adjudicate = adjudicate
        self.notes: list[str] = []
        if adjudicate:
            self.tasks, self.metrics = to_settle(self.folder, self._run, metrics)
        else:
            self.metrics = asked_of_run(self._run, metrics, str(run))
            plan, self.notes = planned(self.folder, self._run, self.metrics, seed, random_share)
            self.tasks = in_order(self._run, plan, self.metrics)
        self._at = {task.case.id: at for at, task in enumerate(self.tasks)}
        self._verdicts = {(v.case_id, v.metric): v for v in self._run.verdicts}
        self._hashes: dict[Item, str | None] = {}
        self._sheets: dict[str, Sheet] = {}

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give all files free."""
        for sheet in self._sheets.values():
            sheet.keeper.close()

    def open(self, annotator: str) -> Sheet:
        """Open one person's file, which no other process may then write.

        Raises
        ------
        InputError
            The name cannot be one, or the file cannot be written.
        """
        name = ADJUDICATED if self.adjudicate else checked_name(annotator)
        if name not in self._sheets:
            self._sheets[name] = Sheet(Keeper(self.folder, name), self.tasks, self._hash)
        return self._sheets[name]

    def session(self, annotator: str) -> dict[str, Any]:
        """What is asked of whom, and how far one person is; nobody's progress without a name."""
        sheet = self.open(annotator) if annotator or self.adjudicate else None
        return {
            "run": str(self.path),
            "annotator": sheet.keeper.annotator if sheet else "",
            "mode": "adjudicate" if self.adjudicate else "label",
            "annotators": [name for name in self._annotators() if name != ADJUDICATED],
            "metrics": [
                vars(question_of(metric, place)) for place, metric in enumerate(self.metrics)
            ],
            "total": len(self.tasks),
            "done": sheet.done if sheet else 0,
            "open": sheet.open if sheet else 0 if self.tasks else None,
            "notes": [*self.notes, *(sheet.keeper.notes if sheet else ())],
        }

    def item(self, annotator: str, at: int) -> dict[str, Any]:
        """One case as this person may see it: the judge's opinion once it does no harm."""
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
        """Keep one label, and return the case again with this person's progress.

        Parameters
        ----------
        annotator : str
        at : int
            Place of the case, from 0.
        metric : str
        claim : int or None
            None: the whole answer.
        label : {1, 0, None}
            None skips it.
        comment : str
            At most 2,000 characters.

        Raises
        ------
        InputError
            Something of it cannot be, or the run is not the one that was opened.
        UnsavedError
            It could not be put on disk.
        """
        sheet, task = self.open(annotator), self._task(at)
        item = self._checked(task, metric, claim)
        if len(comment) > _LONGEST_COMMENT:
            raise InputError(f"a comment has at most {_LONGEST_COMMENT:,} characters")
        self._same.check()
        said = sheet.said(task.case.id)
        entry = Entry(
            "label",
            *(task.case.id, metric, sheet.keeper.annotator, claim),
            label=None if label is None else float(label),
            comment=valid_text(comment),
            judge_shown=sheet.looked(task.case.id, metric),
            of=self._hash(item),
            at=_now(),
        )
        before = said.get(item)
        if before is not None and before.label == entry.label:  # a comment alone
            entry = replace(entry, judge_shown=before.judge_shown)
        if before is None or (before.label, before.comment) != (entry.label, entry.comment):
            shown = finished(task, {**said, item: entry})
            sheet.keep(entry, *(self._looks(sheet, task, "shown") if shown else ()))
        return self._item(sheet, at) | self._progress(sheet)

    def undo(self, annotator: str) -> dict[str, Any]:
        """Take this person's last label back, also one of an earlier session.

        Raises
        ------
        NothingToUndoError
            There is none.
        """
        sheet = self.open(annotator)
        self._same.check()
        last = sheet.last()
        if last is None:
            raise NothingToUndoError("there is no label of yours to take back")
        who = sheet.keeper.annotator
        sheet.keep(Entry("undone", *(last.case_id, last.metric, who, last.claim), at=_now()))
        undone = {"case_id": last.case_id, **written(last)}
        return {"at": self._at[last.case_id], "undone": undone} | self._progress(sheet)

    def reveal(self, annotator: str, at: int) -> dict[str, Any]:
        """Show the judge's opinion before the case is labelled, and keep that it was shown."""
        sheet, task = self.open(annotator), self._task(at)
        self._same.check()
        if not finished(task, sheet.said(task.case.id)) and (
            looks := self._looks(sheet, task, "revealed")
        ):
            sheet.keep(*looks)
        return self._item(sheet, at, visible=True)

    def export(self, form: str) -> str:
        """Everybody's labels as text, in the form 'csv' or 'jsonl'."""
        return exported(self.folder, form, self._seen)

    def counts(self) -> dict[str, int]:
        """How many labels each annotator has given, whatever they are of."""
        found = {}
        for name, path in journals(self.folder).items():
            labels = standing(read_journal(path).entries).values()
            found[name] = sum(entry.label is not None for entry in labels)
        return {name: n for name, n in found.items() if n}

    def _item(self, sheet: Sheet, at: int, *, visible: bool = False) -> dict[str, Any]:
        task = self._task(at)
        said, revealed = sheet.said(task.case.id), sheet.revealed(task.case.id)
        opinions = {
            metric: judged(self._verdicts[task.case.id, metric])
            for metric in task.metrics
            if (task.case.id, metric) in self._verdicts
        }
        return {
            "at": at,
            **content(task, self._seen),
            "labels": [written(entry) for entry in said.values()],
            "judged": opinions if visible or revealed or finished(task, said) else None,
            "judge_shown": revealed,
            "said": list(task.said) if self.adjudicate else None,
        }

    def _progress(self, sheet: Sheet) -> dict[str, int]:
        return {"done": sheet.done, "total": len(self.tasks)}

    def _looks(self, sheet: Sheet, task: Task, event: Literal["revealed", "shown"]) -> list[Entry]:
        """That the judge's opinions of a case are seen from now on, as far as there are any."""
        case_id = task.case.id
        return [
            Entry(
                event,
                *(case_id, metric, sheet.keeper.annotator),
                of=self._hash((case_id, metric, None)),
                at=_now(),
            )
            for metric in task.metrics
            if (case_id, metric) in self._verdicts and not sheet.looked(case_id, metric)
        ]

    def _hash(self, item: Item) -> str | None:
        if item not in self._hashes:
            self._hashes[item] = self._seen.of(*item)
        return self._hashes[item]

    def _task(self, at: int) -> Task:
        if not 0 <= at < len(self.tasks):
            raise InputError(f"there is no case at {at}; there are {len(self.tasks)}, from 0 on")
        return self.tasks[at]

    def _checked(self, task: Task, metric: str, claim: int | None) -> Item:
        """The item that is labelled, if there is one."""
        if metric not in task.metrics:
            raise InputError(f"this case is asked about {', '.join(task.metrics)} alone")
        claims = len(self._seen.claims(task.case.id)) if metric == BY_CLAIMS else 0
        if claim is not None and not 0 <= claim < claims:
            raise InputError(f"there is no claim {claim} to label here; there are {claims}")
        return task.case.id, metric, claim

    def _annotators(self) -> list[str]:
        return [name for name, path in journals(self.folder).items() if path.stat().st_size]


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
