"""The desk at which people label a run: what is asked next, what was said, and what it says back.

It answers as the page's addresses do (see `misslink.annotating.server`), in plain JSON values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

from misslink.annotating.exporting import exported
from misslink.annotating.keeping import SameRun
from misslink.annotating.questions import BY_CLAIMS, asked_of_run, question_of
from misslink.annotating.sheet import Sheet
from misslink.annotating.sheets import Sheets, now
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
from misslink.files.label_folder import FOLDER, Seen
from misslink.files.label_journal import Entry, Item
from misslink.text import valid_text

__all__ = ["Desk"]

_LONGEST_COMMENT = 2000  # characters


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
        self._verdicts = {(v.case_id, v.metric): v for v in self._run.verdicts}
        self._hashes: dict[Item, str | None] = {}
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
            "metrics": [
                vars(question_of(metric, place)) for place, metric in enumerate(self.metrics)
            ],
            **self._sheets.session(annotator, self.notes),
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
        sheet, task = self.open(annotator), self._sheets.task(at)
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
            at=now(),
        )
        before = said.get(item)
        if before is not None and before.label == entry.label:  # a comment alone
            entry = replace(entry, judge_shown=before.judge_shown)
        if before is None or (before.label, before.comment) != (entry.label, entry.comment):
            shown = finished(task, {**said, item: entry})
            sheet.keep(entry, *(self._looks(sheet, task, "shown") if shown else ()))
        return self._item(sheet, at) | self._sheets.progress(sheet)

    def undo(self, annotator: str) -> dict[str, Any]:
        """Take this person's last label back, also one of an earlier session.

        Raises
        ------
        NothingToUndoError
            There is none.
        """
        return self._sheets.take_back(annotator, self._same.check, written)

    def reveal(self, annotator: str, at: int) -> dict[str, Any]:
        """Show the judge's opinion before the case is labelled, and keep that it was shown."""
        sheet, task = self.open(annotator), self._sheets.task(at)
        self._same.check()
        if not finished(task, sheet.said(task.case.id)) and (
            looks := self._looks(sheet, task, "revealed")
        ):
            sheet.keep(*looks)
        return self._item(sheet, at, visible=True)

    def export(self, form: str) -> str:
        """Everybody's labels as text, in the form 'csv' or 'jsonl'."""
        return exported(self.folder, form, self._seen)

    def _item(self, sheet: Sheet, at: int, *, visible: bool = False) -> dict[str, Any]:
        task = self._sheets.task(at)
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

    def _looks(self, sheet: Sheet, task: Task, event: Literal["revealed", "shown"]) -> list[Entry]:
        """That the judge's opinions of a case are seen from now on, as far as there are any."""
        case_id = task.case.id
        return [
            Entry(
                event,
                *(case_id, metric, sheet.keeper.annotator),
                of=self._hash((case_id, metric, None)),
                at=now(),
            )
            for metric in task.metrics
            if (case_id, metric) in self._verdicts and not sheet.looked(case_id, metric)
        ]

    def _hash(self, item: Item) -> str | None:
        if item not in self._hashes:
            self._hashes[item] = self._seen.of(*item)
        return self._hashes[item]

    def _checked(self, task: Task, metric: str, claim: int | None) -> Item:
        """The item that is labelled, if there is one."""
        if metric not in task.metrics:
            raise InputError(f"this case is asked about {', '.join(task.metrics)} alone")
        claims = len(self._seen.claims(task.case.id)) if metric == BY_CLAIMS else 0
        if claim is not None and not 0 <= claim < claims:
            raise InputError(f"there is no claim {claim} to label here; there are {claims}")
        return task.case.id, metric, claim
