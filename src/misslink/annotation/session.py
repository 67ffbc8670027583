"""Labels and progress of each annotator, and the labelling session of a run."""

from __future__ import annotations

import datetime as dt
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Self

from misslink.annotation.label_writer import (
    LabelWriter,
    UnchangedFolder,
    export_labels,
    labels_text,
    validate_annotator,
    validate_comment,
)
from misslink.annotation.tasks import (
    CLAIM_METRIC,
    LabelTask,
    disputed_tasks,
    is_finished,
    judge_opinion,
    label_document,
    load_or_draw_plan,
    metrics_to_label,
    question_for,
    task_content,
    tasks_in_plan_order,
)
from misslink.errors import InputError
from misslink.io import read_complete_run, read_run
from misslink.io.label_folder import (
    LABELS_FOLDER,
    ItemKey,
    JournalEntry,
    ShownContent,
    current_labels,
    journal_files,
    read_journal,
)
from misslink.io.labels import ADJUDICATED
from misslink.io.run_folder import ReadProgress
from misslink.registry import annotation_sessions

_PAUSE_SECONDS = 600  # a longer time between two labels is a pause
_MIN_TIMED = 3  # cases
ItemHash = Callable[[ItemKey], str | None]


class AnnotatorState:
    """The labels and progress of one annotator.

    The file is read once, so that every label costs the same.

    Parameters
    ----------
    writer : LabelWriter
        The annotator's open file.
    tasks : sequence of LabelTask
    hash_of : callable
        The hash of what an item shows now; None for an unknown item.
    """

    def __init__(self, writer: LabelWriter, tasks: Sequence[LabelTask], hash_of: ItemHash) -> None:
        self.writer = writer
        self._tasks = {task.case.id: (index, task) for index, task in enumerate(tasks)}
        self._hash = hash_of
        self._history: list[JournalEntry] = []  # labels that were not undone, of all items
        self._by_item: dict[ItemKey, list[JournalEntry]] = {}  # and of each
        self._labels: dict[str, dict[ItemKey, JournalEntry]] = {}
        self._done: set[int] = set()
        self._seconds: dict[str, float] = {}  # by case, from the end of the case before it
        self._started: dt.datetime | None = None  # the case that was labelled last
        self._last: tuple[str, dt.datetime | None] = "", None  # its id, and its last label
        self._looked: set[tuple[str, str]] = set()
        self._revealed: set[str] = set()
        for entry in writer.entries:
            self._count(entry)

    def save(self, *entries: JournalEntry) -> None:
        """Write entries to disk, all or none, and count them.

        Raises
        ------
        UnsavedError
            The disk is full or missing; nothing was written.
        """
        self.writer.save(*entries)
        for entry in entries:
            self._count(entry)

    def labels(self, case_id: str) -> Mapping[ItemKey, JournalEntry]:
        """The current labels of one case, including skipped ones."""
        return self._labels.get(case_id, {})

    def last(self) -> JournalEntry | None:
        """The last label that was not undone, if any."""
        return next(filter(self._is_current, reversed(self._history)), None)

    @property
    def done(self) -> int:
        """The number of finished cases."""
        return len(self._done)

    @property
    def open(self) -> int | None:
        """The index of the first unfinished case; None if all are finished."""
        return next((index for index in range(len(self._tasks)) if index not in self._done), None)

    @property
    def seconds_per_case(self) -> float | None:
        """The median time of a case, without pauses; None under three cases."""
        times = self._seconds.values()
        return statistics.median(times) if len(times) >= _MIN_TIMED else None

    def looked(self, case_id: str, metric: str) -> bool:
        """Whether the annotator has seen the judge's opinion."""
        return (case_id, metric) in self._looked

    def revealed(self, case_id: str) -> bool:
        """Whether the annotator asked to see it before labelling."""
        return case_id in self._revealed

    def _count(self, entry: JournalEntry) -> None:
        """Take an entry into the current labels, and whether its case is finished."""
        if entry.event in {"revealed", "shown"}:
            if self._is_current(entry):
                self._looked.add((entry.case_id, entry.metric))
                self._revealed.update([entry.case_id] if entry.event == "revealed" else ())
            return
        entries = self._by_item.setdefault(entry.item, [])
        if entry.event == "label":
            entries.append(entry)
            self._history.append(entry)
            self._time(entry)
        elif entries:  # undone; it usually is at the end
            taken, places = entries.pop(), range(len(self._history) - 1, -1, -1)
            del self._history[next(place for place in places if self._history[place] is taken)]
        labels = self._labels.setdefault(entry.case_id, {})
        if entries and self._is_current(entries[-1]):
            labels[entry.item] = entries[-1]
        else:
            labels.pop(entry.item, None)
        if entry.case_id in self._tasks:
            index, task = self._tasks[entry.case_id]
            self._done.discard(index)
            self._done.update([index] if is_finished(task, labels) else ())

    def _time(self, entry: JournalEntry) -> None:
        """Measure from the last label of the case before to the latest label of this one."""
        try:
            now = dt.datetime.fromisoformat(entry.at).astimezone(dt.UTC)
        except ValueError:  # imported labels may have no time
            return
        if entry.case_id != self._last[0]:
            self._started = self._last[1]
        self._last = entry.case_id, now
        seconds = (now - (self._started or now)).total_seconds()
        if self._started and 0 <= seconds <= _PAUSE_SECONDS:
            self._seconds[entry.case_id] = seconds

    def _is_current(self, entry: JournalEntry) -> bool:
        """Whether an entry is about an item of this session as it is shown now."""
        _, task = self._tasks.get(entry.case_id, (None, None))
        if task is None or entry.metric not in task.metrics:
            return False
        now = self._hash(entry.item)
        return now is not None and entry.of in {None, now}


class NothingToUndoError(InputError):
    """There is no label to undo."""


class LabelSession(ABC):
    """A labelling session, for any number of annotators; each label file is open here only.

    Parameters
    ----------
    path : Path
        The run, or the pool.
    folder : Path
        Folder of the labels.
    tasks : sequence of LabelTask
    hash_of : callable
        The hash of what an item shows now; None for an unknown item.
    unchanged : UnchangedFolder
        Checked before a label is saved.
    adjudicate : bool
        Whether disagreements are settled, under one name for everybody.
    """

    labels: Mapping[int, str]  # label to its name, such as 1 to "good"
    unit: str  # what is labelled, in the plural
    next_command: str  # what uses the labels of a {folder}
    metrics: Sequence[str]

    def __init__(
        self,
        path: Path,
        folder: Path,
        tasks: Sequence[LabelTask],
        hash_of: ItemHash,
        unchanged: UnchangedFolder,
        *,
        adjudicate: bool,
    ) -> None:
        self.path, self.folder, self.tasks, self.adjudicate = path, folder, tasks, adjudicate
        self.notes: list[str] = []
        self._hash, self._unchanged = hash_of, unchanged
        self._at = {task.case.id: index for index, task in enumerate(tasks)}
        self._open: dict[str, AnnotatorState] = {}

    @abstractmethod
    def label(
        self, annotator: str, at: int, metric: str, claim: int | None, label: int | None,
        comment: str,
    ) -> dict[str, object]:  # fmt: skip
        """Save one label, and return the item with the annotator's progress."""

    @abstractmethod
    def reveal(self, annotator: str, at: int) -> dict[str, object]:
        """Show the judge's opinion before the case is labelled, and record that it was shown."""

    @abstractmethod
    def export(self, form: str) -> str:
        """All labels as csv or jsonl."""

    @abstractmethod
    def _item(self, state: AnnotatorState, at: int) -> dict[str, object]:
        """What an annotator sees of one task."""

    @staticmethod
    @abstractmethod
    def entry_document(entry: JournalEntry) -> dict[str, object]:
        """A label for the page."""

    def __enter__(self) -> Self:
        """Return the session."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all label files."""
        for state in self._open.values():
            state.writer.close()

    def open(self, annotator: str) -> AnnotatorState:
        """Open an annotator's file, which locks it for other processes.

        Raises
        ------
        InputError
            The name is invalid, or the file cannot be written.
        """
        name = ADJUDICATED if self.adjudicate else validate_annotator(annotator)
        if name not in self._open:
            self._open[name] = AnnotatorState(
                LabelWriter(self.folder, name), self.tasks, self._hash
            )
        return self._open[name]

    def task(self, index: int) -> LabelTask:
        """Return the task at an index from 0; raise InputError if there is none."""
        if not 0 <= index < len(self.tasks):
            raise InputError(f"there is no case at {index}; there are {len(self.tasks)}, from 0 on")
        return self.tasks[index]

    def session(self, annotator: str) -> dict[str, object]:
        """Names and progress; no progress without a name."""
        state = self.open(annotator) if annotator or self.adjudicate else None
        names = [name for name, path in journal_files(self.folder).items() if path.stat().st_size]
        return {
            "annotator": state.writer.annotator if state else "",
            "mode": "adjudicate" if self.adjudicate else "label",
            "annotators": [name for name in names if name != ADJUDICATED],
            "total": len(self.tasks),
            "done": state.done if state else 0,
            "seconds_per_case": state.seconds_per_case if state else None,
            "open": state.open if state else 0 if self.tasks else None,
            "notes": [*self.notes, *(state.writer.notes if state else ())],
        }

    def progress(self, state: AnnotatorState) -> dict[str, object]:
        """The number of finished cases of an annotator, of all cases, and the time of a case."""
        done, seconds = state.done, state.seconds_per_case
        return {"done": done, "total": len(self.tasks), "seconds_per_case": seconds}

    def item(self, annotator: str, at: int) -> dict[str, object]:
        """One case; with the judge's opinion once it cannot influence the label."""
        return self._item(self.open(annotator), at)

    def undo(self, annotator: str) -> dict[str, object]:
        """Undo an annotator's last label, also one of an earlier session; return its index too.

        Raises
        ------
        NothingToUndoError
            There is none.
        InputError
            The folder holds another run or pool now.
        """
        state = self.open(annotator)
        self._unchanged.check()
        last = state.last()
        if last is None:
            raise NothingToUndoError("you have no label to undo")
        annotator = state.writer.annotator
        state.save(
            JournalEntry(
                "undone", *(last.case_id, last.metric, annotator, last.claim), at=utc_now()
            )
        )
        undone = {"case_id": last.case_id, **self.entry_document(last)}
        return {"at": self._at[last.case_id], "undone": undone} | self.progress(state)

    def counts(self) -> dict[str, int]:
        """The number of labels of each annotator."""
        counts = {}
        for name, path in journal_files(self.folder).items():
            labels = current_labels(read_journal(path).entries).values()
            counts[name] = sum(entry.label is not None for entry in labels)
        return {name: n for name, n in counts.items() if n}


def utc_now() -> str:
    """Return this moment as ISO 8601 in UTC, to the second."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


@annotation_sessions.register("run")
class AnnotationSession(LabelSession):
    """A labelling session of one run, for any number of annotators.

    Parameters
    ----------
    run : Path
        Run folder; labels go to its folder `labels`.
    metrics : sequence of str
        Metrics to label. Empty: those of `misslink.annotation.tasks.metrics_to_label`.
    seed, random_share
        As of `misslink.annotation.tasks.draw_plan`; None: those of the last order.
    adjudicate : bool
        Label only the disagreements of annotators.
    progress : callable or None
        As of `read_run`.

    Raises
    ------
    InputError
        It is no run, has nothing to label, or has damaged labels.
    """

    labels = MappingProxyType({1: "good", 0: "bad"})
    unit = "cases"
    has_plan = True
    next_command = "misslink calibrate {folder}"

    def __init__(
        self,
        run: Path,
        *,
        metrics: Sequence[str] = (),
        seed: int | None = None,
        random_share: float | None = None,
        adjudicate: bool = False,
        progress: ReadProgress | None = None,
    ) -> None:
        self._run = read_complete_run(run, progress=progress)
        folder, unchanged, notes = run / LABELS_FOLDER, UnchangedFolder(run), list[str]()
        self._seen = ShownContent(self._run)
        if adjudicate:
            tasks, self.metrics = disputed_tasks(folder, self._run, metrics)
        else:
            self.metrics = metrics_to_label(self._run, metrics, str(run))
            plan, notes = load_or_draw_plan(folder, self._run, self.metrics, seed, random_share)
            tasks = tasks_in_plan_order(self._run, plan, self.metrics)
        self._verdicts = {
            (score.case_id, score.metric): place for place, score in enumerate(self._run.scores)
        }
        content_hash = cache(lambda item: self._seen.content_hash(*item))
        super().__init__(run, folder, tasks, content_hash, unchanged, adjudicate=adjudicate)
        self.notes = notes

    @staticmethod
    def matches(folder: Path) -> bool:
        """Return whether a folder contains a run."""
        return (folder / "manifest.json").is_file()

    @staticmethod
    def write_labels(folder: Path, path: Path) -> int:
        """Write all labels of a run into a file; see `export_labels`."""
        read_run(folder)  # reports a folder that is no run
        return export_labels(folder, path)

    entry_document = staticmethod(label_document)

    def session(self, annotator: str) -> dict[str, object]:
        """What to label, and the progress of an annotator; none without a name."""
        return {
            "run": str(self.path),
            "metrics": [vars(question_for(metric)) for metric in self.metrics],
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
    ) -> dict[str, object]:
        """Save one label, and return the case with the annotator's progress.

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
            The label is invalid, or the folder holds another run now.
        UnsavedError
            The label could not be written to disk.
        """
        state, task = self.open(annotator), self.task(at)
        item = self._checked(task, metric, claim)
        comment = validate_comment(comment)
        self._unchanged.check()
        labels = state.labels(task.case.id)
        entry = JournalEntry(
            "label",
            *(task.case.id, metric, state.writer.annotator, claim),
            label=None if label is None else float(label),
            comment=comment,
            judge_shown=state.looked(task.case.id, metric),
            of=self._hash(item),
            answer_hash=self._seen.answer_hash(task.case.id),
            at=utc_now(),
        )
        before = labels.get(item)
        if before is not None and before.label == entry.label:  # a comment alone
            entry = replace(entry, judge_shown=before.judge_shown)
        if before is None or (before.label, before.comment) != (entry.label, entry.comment):
            is_complete = is_finished(task, {**labels, item: entry})
            state.save(entry, *(self._looks(state, task, "shown") if is_complete else ()))
        return self._item(state, at) | self.progress(state)

    def reveal(self, annotator: str, at: int) -> dict[str, object]:
        """Show the judge's opinion before the case is labelled, and record that it was shown."""
        state, task = self.open(annotator), self.task(at)
        self._unchanged.check()
        if not is_finished(task, state.labels(task.case.id)) and (
            looks := self._looks(state, task, "revealed")
        ):
            state.save(*looks)
        return self._item(state, at, visible=True)

    def export(self, form: str) -> str:
        """All labels as csv or jsonl."""
        return labels_text(self.folder, form, self._seen)

    def _item(self, state: AnnotatorState, at: int, *, visible: bool = False) -> dict[str, object]:
        task = self.task(at)
        labels, revealed = state.labels(task.case.id), state.revealed(task.case.id)
        opinions = {
            metric: judge_opinion(self._run.verdicts[self._verdicts[task.case.id, metric]])
            for metric in task.metrics
            if (task.case.id, metric) in self._verdicts
        }
        return {
            "at": at,
            **task_content(task, self._seen),
            "labels": [label_document(entry) for entry in labels.values()],
            "judged": opinions if visible or revealed or is_finished(task, labels) else None,
            "judge_shown": revealed,
            "said": list(task.other_labels) if self.adjudicate else None,
        }

    def _looks(
        self, state: AnnotatorState, task: LabelTask, event: Literal["revealed", "shown"]
    ) -> list[JournalEntry]:
        """Entries that record that the judge's opinions of a case were seen."""
        case_id = task.case.id
        return [
            JournalEntry(
                event,
                *(case_id, metric, state.writer.annotator),
                of=self._hash((case_id, metric, None)),
                at=utc_now(),
            )
            for metric in task.metrics
            if (case_id, metric) in self._verdicts and not state.looked(case_id, metric)
        ]

    def _checked(self, task: LabelTask, metric: str, claim: int | None) -> ItemKey:
        """The labelled item; raise InputError if there is none."""
        if metric not in task.metrics:
            raise InputError(f"this case is labelled for {', '.join(task.metrics)} only")
        claims = len(self._seen.claims(task.case.id)) if metric == CLAIM_METRIC else 0
        if claim is not None and not 0 <= claim < claims:
            raise InputError(f"there is no claim {claim} to label here; there are {claims}")
        return task.case.id, metric, claim
