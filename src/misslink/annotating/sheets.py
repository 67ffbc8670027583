"""Everybody's sheets on one desk: opened by name, counted, and taken back from."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from misslink.annotating.keeping import Keeper, checked_name
from misslink.annotating.sheet import Hash, Sheet
from misslink.annotating.tasks import Task
from misslink.errors import InputError
from misslink.files.label_folder import journals
from misslink.files.label_journal import Entry, read_journal, standing
from misslink.files.labels import ADJUDICATED

__all__ = ["NothingToUndoError", "Sheets", "now"]


class NothingToUndoError(InputError):
    """There is no label that could be taken back."""


class Sheets:
    """The sheets of all who label at one desk; each person's file is open here alone.

    Parameters
    ----------
    folder : Path
        Of the labels.
    tasks : sequence of Task
        What lies on the desk.
    hash_of : callable
        The hash of what an item shows now, None where there is no such item.
    adjudicate : bool
        Whether what people disagree on is settled: under one name, whoever does it.
    """

    def __init__(
        self, folder: Path, tasks: Sequence[Task], hash_of: Hash, *, adjudicate: bool
    ) -> None:
        self.adjudicate = adjudicate
        self._folder, self._tasks, self._hash = folder, tasks, hash_of
        self._at = {task.case.id: at for at, task in enumerate(tasks)}
        self._open: dict[str, Sheet] = {}

    def close(self) -> None:
        """Give all files free."""
        for sheet in self._open.values():
            sheet.keeper.close()

    def open(self, annotator: str) -> Sheet:
        """Open one person's file, which no other process may then write.

        Raises
        ------
        InputError
            The name cannot be one, or the file cannot be written.
        """
        name = ADJUDICATED if self.adjudicate else checked_name(annotator)
        if name not in self._open:
            self._open[name] = Sheet(Keeper(self._folder, name), self._tasks, self._hash)
        return self._open[name]

    def task(self, at: int) -> Task:
        """Return what lies at a place, from 0; InputError where nothing does."""
        if not 0 <= at < len(self._tasks):
            raise InputError(f"there is no case at {at}; there are {len(self._tasks)}, from 0 on")
        return self._tasks[at]

    def session(self, annotator: str, notes: Sequence[str]) -> dict[str, Any]:
        """Who labels, and how far they are; nobody's progress without a name."""
        sheet = self.open(annotator) if annotator or self.adjudicate else None
        known = [name for name, path in journals(self._folder).items() if path.stat().st_size]
        return {
            "annotator": sheet.keeper.annotator if sheet else "",
            "mode": "adjudicate" if self.adjudicate else "label",
            "annotators": [name for name in known if name != ADJUDICATED],
            "total": len(self._tasks),
            "done": sheet.done if sheet else 0,
            "open": sheet.open if sheet else 0 if self._tasks else None,
            "notes": [*notes, *(sheet.keeper.notes if sheet else ())],
        }

    def progress(self, sheet: Sheet) -> dict[str, int]:
        """How many cases one person has finished, and of how many."""
        return {"done": sheet.done, "total": len(self._tasks)}

    def take_back(
        self, annotator: str, check: Callable[[], None], written: Callable[[Entry], dict[str, Any]]
    ) -> dict[str, Any]:
        """Take one person's last label back, and say where it was and what it said.

        Raises
        ------
        NothingToUndoError
            There is none.
        InputError
            What `check` raises: that the desk is not the one that was opened.
        """
        sheet = self.open(annotator)
        check()
        last = sheet.last()
        if last is None:
            raise NothingToUndoError("there is no label of yours to take back")
        who = sheet.keeper.annotator
        sheet.keep(Entry("undone", *(last.case_id, last.metric, who, last.claim), at=now()))
        undone = {"case_id": last.case_id, **written(last)}
        return {"at": self._at[last.case_id], "undone": undone} | self.progress(sheet)

    def counts(self) -> dict[str, int]:
        """How many labels each annotator has given, whatever they are of."""
        found = {}
        for name, path in journals(self._folder).items():
            labels = standing(read_journal(path).entries).values()
            found[name] = sum(entry.label is not None for entry in labels)
        return {name: n for name, n in found.items() if n}


def now() -> str:
    """Return this moment as ISO 8601 in UTC, to the second."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
