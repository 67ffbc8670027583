"""A run's folder of labels: everybody's journal and the plan, read as labels with weights."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.label_journal import Entry, composed, is_name, read_journal, standing
from misslink.files.label_plan import PLAN, Plan, read_plan
from misslink.files.reading import read_run
from misslink.types import Case, Claim, Passage, Run, Trace

__all__ = ["FOLDER", "Kept", "Labelled", "journals", "read_folder", "seen_of_run"]

FOLDER = "labels"  # of a run
_BY_CLAIMS = "faithfulness"  # the metric whose claims can be labelled
_BY_REFERENCES = "correctness"  # the metric that goes by the reference answers
_DIGITS = 16  # of the hash of what was labelled
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kept:
    """A label that holds, with one over the chance of being drawn; None: not known."""

    entry: Entry
    weight: float | None


@dataclass(frozen=True)
class Labelled:
    """What a folder of labels holds.

    Parameters
    ----------
    kept : tuple of Kept
        The labels that hold, by annotator, skipped ones left out.
    annotators : tuple of str
        Whose files there are, sorted.
    skipped, changed : int
        How many were skipped, and how many are of another answer than the run now has.
    notes : tuple of str
        What a reader must know, a sentence each.
    """

    kept: tuple[Kept, ...]
    annotators: tuple[str, ...]
    skipped: int
    changed: int
    notes: tuple[str, ...]


class Seen:
    """What a person saw who labelled an item of a run, as a hash.

    Parameters
    ----------
    run : Run
    """

    def __init__(self, run: Run) -> None:
        k = run.manifest.get("k")
        self._k = k if isinstance(k, int) and k > 0 else None
        self._cases = {case.id: case for case in run.cases}
        self._traces = {trace.case_id: trace for trace in run.traces}
        self._claims = {v.case_id: v.claims for v in run.verdicts if v.metric == _BY_CLAIMS}
        self._last: tuple[tuple[str, str], Any, bytes] | None = None

    def passages(self, trace: Trace) -> tuple[Passage, ...]:
        """What an answer was written from, as far as it is known."""
        return trace.context(len(trace.retrieved) if self._k is None else self._k)

    def claims(self, case_id: str) -> tuple[Claim, ...]:
        """The claims that the judge found in an answer."""
        return self._claims.get(case_id, ())

    def of(self, case_id: str, metric: str, claim: int | None) -> str | None:
        """Return the hash of what an item shows: None where the run has no such item any more."""
        case, trace = self._cases.get(case_id), self._traces.get(case_id)
        if case is None or trace is None or not (trace.answer or "").strip():
            return None
        claims = self.claims(case_id)
        if claim is not None and (metric != _BY_CLAIMS or claim >= len(claims)):
            return None
        before, after = self._around(case, trace, metric)
        shown = before.copy()
        if claim is not None:
            shown.update(f'"claim": {json.dumps(claims[claim].text)}, '.encode())
        shown.update(after)
        return str(shown.hexdigest())[:_DIGITS]

    def _around(self, case: Case, trace: Trace, metric: str) -> tuple[Any, bytes]:
        """The hash up to where a claim stands, and the rest: claims of one case come in a row.

        Both together are a JSON object with its keys sorted: answer, claim, passages, ...
        """
        key = case.id, metric
        if self._last is None or self._last[0] != key:
            head = f'{{"answer": {json.dumps(trace.answer)}, '
            rest = json.dumps(self._shown(case, trace, metric), sort_keys=True)
            self._last = key, hashlib.sha256(head.encode()), rest[1:].encode()
        return self._last[1:]

    def _shown(self, case: Case, trace: Trace, metric: str) -> dict[str, object]:
        """What is shown beside the answer and the claim; no key of it comes before theirs."""
        shown: dict[str, object] = {"question": case.question}
        if metric == _BY_REFERENCES:
            shown["references"] = list(case.references)
        elif metric != "answer_relevance":  # which is of the question and the answer alone
            shown["passages"] = [passage.text for passage in self.passages(trace)]
        return shown


def seen_of_run(folder: Path) -> Seen | None:
    """What the run shows whose labels lie in `folder`; None where they lie in no run."""
    run = folder.resolve().parent
    return Seen(read_run(run)) if (run / "manifest.json").is_file() else None


def journals(folder: Path) -> dict[str, Path]:
    """Return each annotator's file, by name."""
    found = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
    names = {composed(path.stem): path for path in found if path.is_file()}  # some disks decompose
    return {name: path for name, path in names.items() if is_name(name)}


def read_folder(folder: Path, *, only: str | None = None, seen: Seen | None = None) -> Labelled:
    """Read the labels of a folder that `misslink annotate` writes.

    Parameters
    ----------
    folder : Path
        Of a run, its folder `labels`.
    only : str or None
        The annotator whose labels are wanted; None: everybody's. Weights go by everybody's.
    seen : Seen or None
        What the run shows. None: it is read, where the folder lies in a run.

    Returns
    -------
    Labelled
        Labels of an answer that has changed since are left out and counted. Either all labels
        have weights or none has.

    Raises
    ------
    InputError
        There is no such folder, or a file of it is damaged.
    """
    if not folder.is_dir():
        raise InputError("there is no such folder", path=folder)
    seen = seen or seen_of_run(folder)
    files, notes = journals(folder), list(_foreign(folder))
    found: list[Entry] = []
    for path in files.values():
        journal = read_journal(path)
        if journal.cut:
            notes.append(f"{path}: its last line is cut off, and was not saved; it is left out")
        found += standing(journal.entries).values()
    told = [entry for entry in found if entry.label is not None]
    usable = [entry for entry in told if _is_same(entry, seen)]
    if changed := len(told) - len(usable):
        notes.append(
            f"{folder}: labels left out since the run no longer has their answers: {changed}; "
            "misslink annotate asks for them again"
        )
    plan = read_plan(folder)
    weights = None if plan is None else _weights(plan, usable)
    if usable and weights is None:
        why = "there is no plan.json" if plan is None else "some labels are not of its plan"
        notes.append(f"{folder}: {why}, so all labels count the same")
    kept = [
        Kept(entry, None if weights is None else weights[entry.case_id, entry.metric])
        for entry in usable
        if only is None or entry.annotator == only
    ]
    return Labelled(tuple(kept), tuple(files), len(found) - len(told), changed, tuple(notes))


def _foreign(folder: Path) -> Iterable[str]:
    """What lies in the folder and is none of its files; what is hidden is nobody's business."""
    ours = {PLAN, *(path.name for path in journals(folder).values())}
    for path in sorted(folder.iterdir()):
        if path.name not in ours and not path.name.startswith("."):
            yield f"{path}: this is no file of misslink annotate, and no label is read from it"


def _is_same(entry: Entry, seen: Seen | None) -> bool:
    """Whether the label is of what the run still shows."""
    if seen is None:
        return True
    now = seen.of(*entry.item)
    return now is not None and entry.of in {None, now}


def _weights(plan: Plan, entries: Iterable[Entry]) -> Mapping[tuple[str, str], float] | None:
    """The weight of each labelled case of a metric; None where one was not planned."""
    labelled: dict[str, set[str]] = {}
    for entry in entries:
        labelled.setdefault(entry.metric, set()).add(entry.case_id)
    found: dict[tuple[str, str], float] = {}
    for metric, cases in labelled.items():
        of_case = plan.weights(metric, cases)
        if not cases <= set(of_case):
            return None
        found |= {(case_id, metric): of_case[case_id] for case_id in cases}
    return found
