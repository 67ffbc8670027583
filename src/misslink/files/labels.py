"""Human labels: what people said of a metric of a case, or of one claim of its answer."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError, did_you_mean, known_names
from misslink.files.label_folder import Labelled, read_folder
from misslink.files.label_journal import composed, is_name
from misslink.files.label_plan import PLAN
from misslink.files.rows import read_rows
from misslink.text import valid_text

__all__ = ["ADJUDICATED", "Label", "Labels", "as_id", "read_labels"]

ADJUDICATED = "adjudicated"  # the annotator whose word settles what the others disagree on
_NOBODY = "annotator"  # who wrote a file that names nobody

_GOOD = "1 yes y true good faithful supported relevant correct"
_BAD = (
    "0 no n false bad unfaithful unsupported contradicted hallucinated irrelevant not-relevant "
    "incorrect wrong"
)
_WORDS = dict.fromkeys(_GOOD.split(), 1.0) | dict.fromkeys(_BAD.split(), 0.0)
_FIELDS = ("case_id", "metric", "label", "annotator", "claim", "weight", "comment", "judge_shown")
_WAY_OUT = "; give a number from 0 (bad) to 1 (good), or yes or no"
_HEAVIEST = 1e12  # weight; also one over the lightest, so that no square of one overflows
_SHOWN = 40  # characters of what was found
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Label:
    """What one person said.

    Parameters
    ----------
    case_id, metric, annotator : str
    value : float
        In [0, 1]; 1 is good (faithful, relevant, correct).
    claim : int or None
        The claim's place in the verdict, from 0. None: the whole answer.
    weight : float or None
        One over the chance with which the case was drawn to be labelled. None: not given.
    comment : str
    line : int or None
        Where it stands in its file.
    judge_shown : bool
        Whether the judge's opinion had been seen when it was given.
    """

    case_id: str
    metric: str
    value: float
    annotator: str
    claim: int | None = None
    weight: float | None = None
    comment: str = ""
    line: int | None = None
    judge_shown: bool = False

    @property
    def good(self) -> bool:
        """Whether it is on the good side: one half and more."""
        return self.value >= 1 / 2


@dataclass(frozen=True)
class Labels:
    """Labels, and the file they come from."""

    items: tuple[Label, ...]
    name: str

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that are labelled, sorted."""
        return tuple(sorted({label.metric for label in self.items}))

    def of(self, metric: str) -> Labels:
        """Return the labels of one metric.

        Raises
        ------
        InputError
            There is none.
        """
        found = tuple(label for label in self.items if label.metric == metric)
        if not found:
            hint = known_names(metric, self.metrics, " in this file")
            raise InputError(f"no label is of the metric '{metric}'; {hint}", path=self.name)
        return Labels(found, self.name)

    def known(self, cases: Collection[str], whose: str, *, leave_out: bool = False) -> Labels:
        """Return the labels of known cases.

        Parameters
        ----------
        cases : collection of str
            The ids there are.
        whose : str
            Where they are from, such as 'reports/today'.
        leave_out : bool
            Leave labels of other cases out. Else one of them is an error.

        Raises
        ------
        InputError
            A label is of an unknown case, or all are.
        """
        ids = frozenset(cases)
        kept = tuple(label for label in self.items if label.case_id in ids)
        if not kept:
            raise InputError(
                f"none of its cases is in {whose}: these labels belong to another run",
                path=self.name,
            )
        unknown = next((label for label in self.items if label.case_id not in ids), None)
        if unknown and not leave_out:
            hint = did_you_mean(unknown.case_id, ids)
            way = "take it out, or give --known-only to leave such labels out"
            raise InputError(
                f"there is no case '{unknown.case_id[:_SHOWN]}' in {whose}; {hint or way}",
                path=self.name,
                line=unknown.line,
                field="case_id",
            )
        return Labels(kept, self.name)


def read_labels(source: str | Path | Iterable[Mapping[str, Any]] | Any) -> Labels:
    """Read human labels.

    Parameters
    ----------
    source : path, pandas frame, or iterable of mappings
        CSV with a header, JSON Lines or a JSON array, of ``case_id, metric, label`` and where there
        is more ``annotator, claim, weight, comment, judge_shown``; other fields are passed over. A
        label is a number from 0 to 1, or a word such as yes, no, faithful, unfaithful, correct,
        incorrect. The annotator 'adjudicated' settles what the others disagree on. Or the folder
        of labels that ``misslink annotate`` writes into a run, or one person's file in it: then
        with weights by its plan, without what was skipped and without labels of answers that the
        run no longer has, which is told as a warning.

    Returns
    -------
    Labels
        A label that stands twice counts once.

    Raises
    ------
    InputError
        The file cannot be read or is empty, a field is missing or misspelt, a label is no label,
        one person contradicts oneself, or a case has two weights.
    """
    name = str(source) if isinstance(source, str | Path) else "labels"
    if isinstance(source, str | Path) and (kept := _of_folder(Path(source))):
        return kept
    found: dict[tuple[str, str, int | None, str], Label] = {}
    weights: dict[tuple[str, str], Label] = {}
    for line, row in read_rows(source, name):
        label = _label(row, name, line)
        key = (label.case_id, label.metric, label.claim, label.annotator)
        before = found.setdefault(key, label)
        if before.value != label.value:
            problem = f"{label.annotator} labels this {label.value:g} here and {before.value:g}"
            problem += f"{_on(before)}; keep one"
            raise InputError(problem, path=name, line=line, field="label")
        _check_weight(weights.setdefault((label.case_id, label.metric), label), label, name)
    bare = next((one for one in weights.values() if one.weight is None), None)
    weighed = next((one for one in weights.values() if one.weight is not None), None)
    if bare and weighed:
        problem = f"this case has no weight, but that{_on(weighed)} has; give all or none"
        raise InputError(problem, path=name, line=bare.line, field="weight")
    return Labels(tuple(found.values()), name)


def _of_folder(path: Path) -> Labels | None:
    """The labels of a folder of journals, or of one of them; None of any other file."""
    if path.is_dir():
        return _told(read_folder(path), path)
    name = composed(path.stem)
    if path.suffix == ".jsonl" and is_name(name) and (path.parent / PLAN).is_file():
        return _told(read_folder(path.parent, only=name), path)
    return None


def _told(labelled: Labelled, path: Path) -> Labels:
    for note in labelled.notes:
        _log.warning("%s", note)
    if not labelled.kept:
        way = "label with  misslink annotate  first"
        if path.is_dir() and not (path / PLAN).is_file():
            way = "a folder must be RUN/labels, as misslink annotate fills it; else name a file"
        raise InputError(f"there is no label in it; {way}", path=path)
    items = (
        Label(
            case_id=kept.entry.case_id,
            metric=kept.entry.metric,
            value=kept.entry.label,
            annotator=kept.entry.annotator,
            claim=kept.entry.claim,
            weight=kept.weight,
            comment=kept.entry.comment,
            judge_shown=kept.entry.judge_shown,
        )
        for kept in labelled.kept
        if kept.entry.label is not None
    )
    return Labels(tuple(items), str(path))


def as_id(value: object) -> str | None:
    """Return a case id as text: a whole number as its digits, though a frame made it a float."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | str) or hasattr(value, "item"):  # numpy's numbers too
        return valid_text(str(value)).strip() or None
    return None


def _label(row: Mapping[str, Any], name: str, line: int | None) -> Label:
    def wrong(field: str, problem: str) -> InputError:
        return InputError(problem, path=name, line=line, field=field)

    for field in ("case_id", "metric", "label"):
        if field not in row:
            near = [given for given in row if did_you_mean(given, [field])]
            hint = f"; is '{near[0]}' it?" if near else "; add it"
            raise wrong(field, f"this field is required{hint}")
    for field in set(_FIELDS[3:]) - set(row):
        near = [n for n in row if n not in _FIELDS and did_you_mean(n, [field])]
        if near:
            raise wrong(near[0], f"there is no such field; did you mean '{field}'?")
    case_id = as_id(row["case_id"])
    if case_id is None:
        raise wrong("case_id", f"an id is text or a whole number, not {_written(row['case_id'])}")
    value = _value(row["label"])
    if value is None:
        way = _point(row["label"]) or _WAY_OUT
        raise wrong("label", f"{_written(row['label'])} is no label{way}")
    claim = _number(row.get("claim"))
    if "claim" in row and (claim is None or claim < 0 or claim != int(claim)):
        raise wrong("claim", f"a claim's place is 0, 1, 2, ..., not {_written(row['claim'])}")
    weight = _number(row.get("weight"))
    if "weight" in row and (weight is None or not 1 / _HEAVIEST <= weight <= _HEAVIEST):
        raise wrong(
            "weight",
            f"a weight is one over the chance of being labelled, above 0 and at most "
            f"{_HEAVIEST:.0e}, not {_written(row['weight'])}{_point(row['weight'])}",
        )
    return Label(
        case_id=case_id,
        metric=valid_text(str(row["metric"])).strip(),
        value=value,
        annotator=valid_text(str(row.get("annotator", _NOBODY))).strip(),
        claim=None if claim is None else int(claim),
        weight=weight,
        comment=valid_text(str(row.get("comment", ""))),
        line=line,
        judge_shown=_value(row.get("judge_shown")) == 1,
    )


def _check_weight(first: Label, label: Label, name: str) -> None:
    """Raise where a case has two weights."""
    if first.weight != label.weight:
        problem = f"this case has the weight {_written(label.weight)} here and "
        problem += f"{_written(first.weight)}{_on(first)}; a case has one"
        raise InputError(problem, path=name, line=label.line, field="weight")


def _value(said: object) -> float | None:
    if isinstance(said, bool) or type(said).__name__ == "bool_":
        return float(bool(said))
    if isinstance(said, str):
        word = said.strip().casefold().replace(" ", "-").replace("_", "-")
        if word in _WORDS:
            return _WORDS[word]
    number = _number(said)
    return number if number is not None and 0 <= number <= 1 else None


def _number(said: object) -> float | None:
    """The finite number that was written; None where there is none."""
    if said is None or isinstance(said, bool):
        return None
    try:
        number = float(said)  # type: ignore[arg-type]  # what is no number says so
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _point(said: object) -> str:
    """The way out of a decimal comma, as spreadsheets write it in many countries."""
    point = str(said).strip().replace(",", ".", 1)
    return f"; write {point}" if "," in str(said) and _number(point) is not None else ""


def _on(label: Label) -> str:
    return "" if label.line is None else f" on line {label.line}"


def _written(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
