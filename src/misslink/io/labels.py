"""Read human labels from CSV, JSON Lines, data frames or a run's label folder."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError, did_you_mean, known_names
from misslink.io.jsonl import SourceItem
from misslink.io.label_folder import PLAN_FILE, is_annotator_name, normalize_name, read_label_folder
from misslink.io.numbers import parse_number
from misslink.io.rows import read_rows
from misslink.text.normalization import valid_text

ADJUDICATED = "adjudicated"  # the annotator whose word settles what the others disagree on
_DEFAULT_ANNOTATOR = "annotator"  # of a file without annotators

_GOOD_WORDS = "1 yes y true good faithful supported relevant correct"
_BAD_WORDS = (
    "0 no n false bad unfaithful unsupported contradicted hallucinated irrelevant not-relevant "
    "incorrect wrong"
)
_WORD_VALUES = dict.fromkeys(_GOOD_WORDS.split(), 1.0) | dict.fromkeys(_BAD_WORDS.split(), 0.0)
_LABEL_FIELDS = (
    "case_id",
    "metric",
    "label",
    "annotator",
    "claim",
    "weight",
    "stratum",
    "comment",
    "judge_shown",
    "answer_hash",
)
_LABEL_HINT = "; give a number from 0 (bad) to 1 (good), or yes or no"
_MAX_WEIGHT = 1e12  # weight; also one over the lightest, so that no square of one overflows
_MAX_CHARACTERS = 40  # characters of what was found
_SHA256 = re.compile("[0-9a-f]{64}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Label:
    """The label of one annotator.

    Parameters
    ----------
    case_id, metric, annotator : str
    value : float
        In [0, 1]; 1 is good (faithful, relevant, correct).
    claim : int or None
        The claim's place in the verdict, from 0. None: the whole answer.
    weight : float or None
        One over the chance with which the case was drawn to be labelled. None: not given.
    stratum : str or None
        What so many cases were drawn from at random, each with this weight. None: not given.
    comment : str
    line : int or None
        Its line in the file.
    judge_shown : bool
        Whether the judge's opinion had been seen when it was given.
    answer_hash : str or None
        SHA-256 of the labelled answer. None: not given.
    """

    case_id: str
    metric: str
    value: float
    annotator: str
    claim: int | None = None
    weight: float | None = None
    stratum: str | None = None
    comment: str = ""
    line: int | None = None
    judge_shown: bool = False
    answer_hash: str | None = None

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

    @property
    def cases(self) -> frozenset[str]:
        """The cases that are labelled."""
        return frozenset(label.case_id for label in self.items)

    def select_metric(self, metric: str) -> Labels:
        """Return the labels of one metric.

        Raises
        ------
        InputError
            There is none.
        """
        labels = tuple(label for label in self.items if label.metric == metric)
        if not labels:
            hint = known_names(metric, self.metrics, " in this file")
            raise InputError(f"no label is of the metric '{metric}'; {hint}", path=self.name)
        return Labels(labels, self.name)

    def check_metrics(self, known: Collection[str]) -> None:
        """Raise InputError for a label of an unknown metric, which would be ignored."""
        for label in self.items:
            if label.metric not in known:
                hint = known_names(label.metric, sorted(known), " metrics")
                raise InputError(
                    f"there is no metric '{label.metric[:_MAX_CHARACTERS]}'; {hint}",
                    path=self.name,
                    line=label.line,
                    field="metric",
                )

    def select_cases(
        self, cases: Collection[str], whose: str, *, leave_out: bool = False
    ) -> Labels:
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
        known_labels = tuple(label for label in self.items if label.case_id in ids)
        if not known_labels:
            raise InputError(
                f"none of its cases is in {whose}: these labels belong to another run",
                path=self.name,
            )
        unknown = next((label for label in self.items if label.case_id not in ids), None)
        if unknown and not leave_out:
            hint = did_you_mean(unknown.case_id, ids)
            way = "take it out, or give --known-only to leave such labels out"
            raise InputError(
                f"there is no case '{unknown.case_id[:_MAX_CHARACTERS]}' in {whose}; {hint or way}",
                path=self.name,
                line=unknown.line,
                field="case_id",
            )
        return Labels(known_labels, self.name)

    def select_answers(self, answers: Mapping[str, str | None], whose: str) -> Labels:
        """Return the labels of these answers, and those that do not say which answer they are of.

        Parameters
        ----------
        answers : mapping of str to str or None
            By case the hash of its answer. None: it is not known.
        whose : str
            Where they are from, such as 'reports/today'.

        Raises
        ------
        InputError
            All labels are of other answers.
        """
        known = tuple(
            label
            for label in self.items
            if None in (label.answer_hash, answers.get(label.case_id))
            or label.answer_hash == answers[label.case_id]
        )
        if self.items and not known:
            raise InputError(
                f"all {len(self.items):,} labels are of other answers than those of {whose}; label "
                "these with  misslink annotate, or name the run that was labelled",
                path=self.name,
            )
        return Labels(known, self.name)


def read_labels(source: str | Path | Iterable[Mapping[str, Any]] | Any) -> Labels:
    """Read human labels.

    Parameters
    ----------
    source : path, pandas frame, or iterable of mappings
        CSV with a header, JSON Lines or a JSON array, of ``case_id, metric, label`` and where there
        is more ``annotator, claim, weight, stratum, comment, judge_shown, answer_hash`` (SHA-256 of the answer);
        other fields are passed over. A label is a number from 0 to 1, or a word such as yes, no, faithful, unfaithful, correct,
        incorrect. The annotator 'adjudicated' settles what the others disagree on. Or the folder
        of labels that ``misslink annotate`` writes into a run, or one person's file in it: then
        with weights by its plan, without what was skipped and without labels of answers that the
        run no longer has, which is logged as a warning.

    Returns
    -------
    Labels
        A repeated label counts once.

    Raises
    ------
    InputError
        The file cannot be read or is empty, a field is missing or misspelt, a label is no label,
        an annotator contradicts themselves, or a case has two weights.
    """
    name = "labels"
    if isinstance(source, str | Path):
        path = Path(source)
        name, annotator = str(source), normalize_name(path.stem)
        if path.is_dir():
            return _journal_labels(path)
        is_journal = path.suffix == ".jsonl" and is_annotator_name(annotator)
        if is_journal and (path.parent / PLAN_FILE).is_file():
            return _journal_labels(path, only=annotator)
    labels: dict[tuple[Any, ...], Label] = {}
    weights: dict[tuple[Any, ...], Label] = {}
    for item in read_rows(source, name):
        label = _parse_label(item)
        answer = label.case_id, label.metric, label.answer_hash
        key = (*answer, label.claim, label.annotator)
        first = labels.setdefault(key, label)
        if first.value != label.value:
            problem = f"{label.annotator} labels this {label.value:g} here and {first.value:g}"
            problem += f"{_line_reference(first)}; keep one"
            raise item.error(problem, "label")
        weighed = weights.setdefault(answer, label)
        if weighed.weight != label.weight:
            problem = f"this case has the weight {_format_value(label.weight)} here and "
            problem += f"{_format_value(weighed.weight)}{_line_reference(weighed)}; a case has one"
            raise item.error(problem, "weight")
    unweighted = next((label for label in weights.values() if label.weight is None), None)
    weighted = next((label for label in weights.values() if label.weight is not None), None)
    if unweighted and weighted:
        problem = (
            f"this case has no weight, but that{_line_reference(weighted)} has; give all or none"
        )
        raise InputError(problem, path=name, line=unweighted.line, field="weight")
    return Labels(tuple(labels.values()), name)


def _journal_labels(path: Path, only: str | None = None) -> Labels:
    """The labels of a folder of journals, or of one of them."""
    weighted, notes = read_label_folder(path.parent if only else path, only=only)
    for note in notes:
        _log.warning("%s", note)
    if not weighted:
        hint = "label with  misslink annotate  first"
        if path.is_dir() and not (path / PLAN_FILE).is_file():
            hint = "a folder must be RUN/labels, as misslink annotate fills it; else name a file"
        raise InputError(f"there is no label in it; {hint}", path=path)
    labels = (
        Label(
            case_id=entry.case_id,
            metric=entry.metric,
            value=entry.label,
            annotator=entry.annotator,
            claim=entry.claim,
            weight=weight,
            stratum=stratum,
            comment=entry.comment,
            judge_shown=entry.judge_shown,
            answer_hash=entry.answer_hash,
        )
        for entry, weight, stratum in weighted
        if entry.label is not None
    )
    return Labels(tuple(labels), str(path))


def parse_id(value: object) -> str | None:
    """Return a case id as text, a whole number as its digits; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return valid_text(str(value)).strip() or None


def _parse_label(item: SourceItem) -> Label:
    row = item.data
    for field in ("case_id", "metric", "label"):
        if field not in row:
            similar = [given for given in row if did_you_mean(given, [field])]
            hint = f"; is '{similar[0]}' it?" if similar else "; give it a value"
            raise item.error(f"this field is required{hint}", field)
    for field in set(_LABEL_FIELDS[3:]) - set(row):
        similar = [n for n in row if n not in _LABEL_FIELDS and did_you_mean(n, [field])]
        if similar:
            raise item.error(f"there is no such field; did you mean '{field}'?", similar[0])
    case_id = parse_id(row["case_id"])
    if case_id is None:
        problem = f"an id is text or a whole number, not {_format_value(row['case_id'])}"
        raise item.error(problem, "case_id")
    value = _parse_value(row["label"])
    if value is None:
        way = _decimal_comma_hint(row["label"]) or _LABEL_HINT
        raise item.error(f"{_format_value(row['label'])} is not a label{way}", "label")
    claim = parse_number(row.get("claim"))
    if "claim" in row and (claim is None or claim < 0 or claim != int(claim)):
        problem = f"a claim's place is 0, 1, 2, ..., not {_format_value(row['claim'])}"
        raise item.error(problem, "claim")
    weight = parse_number(row.get("weight"))
    if "weight" in row and (weight is None or not 1 / _MAX_WEIGHT <= weight <= _MAX_WEIGHT):
        raise item.error(
            f"a weight is one over the chance of being labelled, above 0 and at most "
            f"{_MAX_WEIGHT:.0e}, not {_format_value(row['weight'])}{_decimal_comma_hint(row['weight'])}",
            "weight",
        )
    answer = row.get("answer_hash")
    answer = answer.strip().lower() if isinstance(answer, str) else answer
    if answer is not None and not (isinstance(answer, str) and _SHA256.fullmatch(answer)):
        problem = f"this is no SHA-256 of an answer: {_format_value(answer)}; give 64 hex digits"
        raise item.error(problem, "answer_hash")
    return Label(
        case_id=case_id,
        metric=valid_text(str(row["metric"])).strip(),
        value=value,
        annotator=valid_text(str(row.get("annotator", _DEFAULT_ANNOTATOR))).strip(),
        claim=None if claim is None else int(claim),
        weight=weight,
        stratum=parse_id(row.get("stratum")),
        comment=valid_text(str(row.get("comment", ""))),
        line=item.number,
        judge_shown=_parse_value(row.get("judge_shown")) == 1,
        answer_hash=answer,
    )


def _parse_value(value: object) -> float | None:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        word = value.strip().casefold().replace(" ", "-").replace("_", "-")
        if word in _WORD_VALUES:
            return _WORD_VALUES[word]
    number = parse_number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _decimal_comma_hint(value: object) -> str:
    """Return a hint on how to fix a decimal comma, which many spreadsheets write."""
    point = str(value).strip().replace(",", ".", 1)
    return f"; write {point}" if "," in str(value) and parse_number(point) is not None else ""


def _line_reference(label: Label) -> str:
    return "" if label.line is None else f" on line {label.line}"


def _format_value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."
