"""Labelling session of one run: the next case, its labels, undo and progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

from misslink.annotation.annotators import AnnotatorState, AnnotatorStates, utc_now
from misslink.annotation.label_writer import (
    UnchangedFolder,
    export_labels,
    labels_text,
    validate_comment,
)
from misslink.annotation.questions import CLAIM_METRIC, metrics_to_label, question_for
from misslink.annotation.tasks import (
    LabelTask,
    disputed_tasks,
    is_finished,
    judge_opinion,
    label_document,
    load_or_draw_plan,
    task_content,
    tasks_in_plan_order,
)
from misslink.errors import InputError
from misslink.io import read_complete_run, read_run
from misslink.io.label_folder import LABELS_FOLDER, ItemKey, JournalEntry, ShownContent
from misslink.registry import annotation_sessions


@annotation_sessions.register("run")
class AnnotationSession:
    """A labelling session of one run, for any number of annotators.

    Parameters
    ----------
    run : Path
        Run folder; labels go to its folder `labels`.
    metrics : sequence of str
        Metrics to label. Empty: those of `misslink.annotation.questions.metrics_to_label`.
    seed, random_share
        As of `misslink.annotation.sampling_plan.draw_plan`; None: those of the last order.
    adjudicate : bool
        Label only the disagreements of annotators.

    Raises
    ------
    InputError
        It is no run, has nothing to label, or has damaged labels.
    """

    labels: Mapping[int, str] = MappingProxyType({1: "good", 0: "bad"})
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
    ) -> None:
        self.path = run
        self.folder = run / LABELS_FOLDER
        self._run = read_complete_run(run)
        self._same = UnchangedFolder(run)
        self._seen = ShownContent(self._run)
        self.adjudicate = adjudicate
        self.notes: list[str] = []
        if adjudicate:
            self.tasks, self.metrics = disputed_tasks(self.folder, self._run, metrics)
        else:
            self.metrics = metrics_to_label(self._run, metrics, str(run))
            plan, self.notes = load_or_draw_plan(
                self.folder, self._run, self.metrics, seed, random_share
            )
            self.tasks = tasks_in_plan_order(self._run, plan, self.metrics)
        self._verdicts = {(v.case_id, v.metric): v for v in self._run.verdicts}
        self._hash = cache(lambda item: self._seen.content_hash(*item))
        self._states = AnnotatorStates(self.folder, self.tasks, self._hash, adjudicate=adjudicate)
        self.open = self._states.open
        self.counts = self._states.counts

    @staticmethod
    def matches(folder: Path) -> bool:
        """Return whether a folder contains a run."""
        return (folder / "manifest.json").is_file()

    @staticmethod
    def write_labels(folder: Path, path: Path) -> int:
        """Write all labels of a run into a file; see `export_labels`."""
        read_run(folder)  # reports a folder that is no run
        return export_labels(folder, path)

    def __enter__(self) -> Self:
        """Return the session."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all label files."""
        self._states.close()

    def session(self, annotator: str) -> dict[str, Any]:
        """What to label, and the progress of an annotator; none without a name."""
        return {
            "run": str(self.path),
            "metrics": [
                vars(question_for(metric, place)) for place, metric in enumerate(self.metrics)
            ],
            **self._states.session(annotator, self.notes),
        }

    def item(self, annotator: str, at: int) -> dict[str, Any]:
        """One case; with the judge's opinion once it cannot influence the label."""
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
        state, task = self.open(annotator), self._states.task(at)
        item = self._checked(task, metric, claim)
        comment = validate_comment(comment)
        self._same.check()
        labels = state.labels(task.case.id)
        entry = JournalEntry(
            "label",
            *(task.case.id, metric, state.writer.annotator, claim),
            label=None if label is None else float(label),
            comment=comment,
            judge_shown=state.looked(task.case.id, metric),
            of=self._hash(item),
            at=utc_now(),
        )
        before = labels.get(item)
        if before is not None and before.label == entry.label:  # a comment alone
            entry = replace(entry, judge_shown=before.judge_shown)
        if before is None or (before.label, before.comment) != (entry.label, entry.comment):
            is_complete = is_finished(task, {**labels, item: entry})
            state.save(entry, *(self._looks(state, task, "shown") if is_complete else ()))
        return self._item(state, at) | self._states.progress(state)

    def undo(self, annotator: str) -> dict[str, Any]:
        """Undo the annotator's last label, also one of an earlier session.

        Raises
        ------
        NothingToUndoError
            There is none.
        """
        return self._states.undo(annotator, self._same.check, label_document)

    def reveal(self, annotator: str, at: int) -> dict[str, Any]:
        """Show the judge's opinion before the case is labelled, and record that it was shown."""
        state, task = self.open(annotator), self._states.task(at)
        self._same.check()
        if not is_finished(task, state.labels(task.case.id)) and (
            looks := self._looks(state, task, "revealed")
        ):
            state.save(*looks)
        return self._item(state, at, visible=True)

    def export(self, form: str) -> str:
        """All labels as csv or jsonl."""
        return labels_text(self.folder, form, self._seen)

    def _item(self, state: AnnotatorState, at: int, *, visible: bool = False) -> dict[str, Any]:
        task = self._states.task(at)
        labels, revealed = state.labels(task.case.id), state.revealed(task.case.id)
        opinions = {
            metric: judge_opinion(self._verdicts[task.case.id, metric])
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
