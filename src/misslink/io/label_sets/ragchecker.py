"""RAGChecker's meta-evaluation: pairs of answers, compared by two annotators each.

The public files are ``human_labeled_data.json``, two entries per pair (one per annotator), and
optionally ``baseline_ragchecker.json`` with RAGChecker's own scores of the same pairs
(amazon-science/RAGChecker on GitHub, data/meta_evaluation; the data are Git LFS objects). The
reduced form has one line per pair.

Source: Ru et al., RAGChecker, NeurIPS 2024; Apache-2.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io.jsonl import read_objects
from misslink.io.label_sets.importer import (
    ImportedLabelSet,
    ImportOptions,
    SourceRow,
    reject_unsupported_options,
)
from misslink.io.numbers import as_finite
from misslink.registry import importers
from misslink.types import Case, Trace

_NAME = "RAGChecker's meta-evaluation"
_EXPECTED_FILES = "its human_labeled_data.json"
_MAX_GRADE = 2  # grades go from -2 (A is much better) to 2 (B is much better)
_ANNOTATORS = ("annotator-1", "annotator-2")
_METRICS = {
    "overall": "preference_grade",
    "correctness": "preference_correctness",
    "completeness": "preference_completeness",
}
_UNMEASURED = "RAGChecker's meta-evaluation does not say what was retrieved"
_EVALUATE_SIDE = (
    "misslink evaluate --traces {dir}/traces_%s.jsonl --goldset {dir}/goldset.jsonl "
    "--judge none --out {dir}-%s"
)


@dataclass
class _AnswerPair:
    """Two answers to one question, with their comparisons."""

    row: SourceRow
    question: str
    reference: str
    systems: tuple[str, str]
    answers: tuple[str, str]
    grades: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in _METRICS})
    scored: dict[str, float] = field(default_factory=dict)  # RAGChecker's own, B minus A


@importers.register("ragchecker")
def import_ragchecker(paths: Sequence[Path], options: ImportOptions) -> ImportedLabelSet:
    """Read RAGChecker's pairs of answers, and its own scores if they are given.

    Parameters
    ----------
    paths : sequence of Path
        human_labeled_data.json, and optionally baseline_ragchecker.json; or the reduced form. Each
        is recognized by its fields.
    options : ImportOptions

    Returns
    -------
    ImportedLabelSet
        A case per pair, a file of traces for the answers A and one for B. The label of the metric
        ``preference`` is 1 if B is much better, 0.75 if it is better, and so down to 0; an
        annotator who sees no difference gives none. All grades, 0.5 for no difference, have the
        metric ``preference_grade``; the finer questions are ``preference_correctness`` and
        ``preference_completeness``, with all grades. The verdicts are RAGChecker's, if known:
        (1 + score of B - score of A) / 2.

    Raises
    ------
    InputError
        A file is something else or broken, a grade is none, or a pair has three annotators.
    """
    reject_unsupported_options(options, _NAME)
    pairs = _read_pairs(paths)
    cases, labels, verdicts = [], [], []
    sides: tuple[list[Trace], list[Trace]] = ([], [])
    for case_id, pair in pairs.items():
        tags = {"dataset": pair.row.word("dataset")}
        tags |= {"system_a": pair.systems[0], "system_b": pair.systems[1]}
        cases.append(
            Case(
                id=case_id,
                question=pair.question,
                references=(pair.reference,) if pair.reference.strip() else (),
                tags={name: value for name, value in tags.items() if value},
            )
        )
        for side, answer in zip(sides, pair.answers, strict=True):
            side.append(Trace(case_id=case_id, answer=answer, unmeasured=_UNMEASURED))
        labels += _pair_labels(case_id, pair.grades)
        verdicts += [
            {"case_id": case_id, "metric": metric, "value": (1 + score) / 2, "judge": "ragchecker"}
            for question, score in pair.scored.items()
            for metric in (*(("preference",) if question == "overall" else ()), _METRICS[question])
        ]
    graded = sum(label["metric"] == "preference_grade" for label in labels)
    decided = sum(label["metric"] == "preference" for label in labels)
    calibrate = (
        "misslink calibrate --verdicts {dir}/verdicts.jsonl --labels {dir}/labels.jsonl "
        "--metric preference"
    )
    return ImportedLabelSet(
        title="RAGChecker's meta-evaluation: pairs of answers, compared by two people each",
        source="Ru et al., RAGChecker, NeurIPS 2024, https://github.com/amazon-science/RAGChecker",
        licence="Apache-2.0",
        labels=labels,
        goldsets={"goldset.jsonl": cases},
        traces={"traces_a.jsonl": sides[0], "traces_b.jsonl": sides[1]},
        verdicts=verdicts,
        notes=(
            "A label is 1 where B is much better, 0.75 where it is better, 0.25 and 0 where A is.",
            (
                f"Of {graded} grades {graded - decided} see no difference: they are in "
                "preference_grade as 0.5, and not in preference, which asks which is better."
            ),
            "What was retrieved is not known, so only metrics without passages can be judged.",
        ),
        commands=(
            *((calibrate,) if verdicts else ()),
            _EVALUATE_SIDE % ("a", "a"),
            _EVALUATE_SIDE % ("b", "b"),
            "misslink judge pairwise {dir}-a {dir}-b --judge openai:MODEL",
        ),
    )


def _read_pairs(paths: Sequence[Path]) -> dict[str, _AnswerPair]:
    pairs: dict[str, _AnswerPair] = {}
    scores: list[tuple[str, SourceRow]] = []
    for path in paths:
        for line, entry in read_objects(path):
            row = SourceRow(entry, path, line)
            if row.has("model1", "model2", "overall_label"):
                _add_public_pair(pairs, row)
            elif row.has("model1", "model2") and "ragchecker" in row.object("model1").row:
                scores.append((f"ragchecker-{row.id('instance_id')}", row))
            elif row.has("answer_a", "answer_b", "human_overall"):
                _add_reduced_pair(pairs, row)
            else:
                raise row.unknown(_NAME, _EXPECTED_FILES)
    if not pairs:
        raise InputError(
            "these are RAGChecker's scores without people's; name human_labeled_data.json too",
            path=paths[0],
        )
    for case_id, row in scores:
        if case_id not in pairs:
            raise row.wrong("people labelled no such pair", "instance_id")
        a, b = (row.object(name).object("ragchecker").row for name in ("model1", "model2"))
        for question in _METRICS:
            before, after = (as_finite(side.get(f"{question}_label")) for side in (a, b))
            if before is not None and after is not None:
                pairs[case_id].scored[question] = _check_difference(row, question, after - before)
    return pairs


def _add_public_pair(pairs: dict[str, _AnswerPair], row: SourceRow) -> None:
    """Add the grades of one annotator."""
    case_id = f"ragchecker-{row.id('instance_id')}"
    models = row.object("model1"), row.object("model2")
    answers = models[0].text("response", blank=True), models[1].text("response", blank=True)
    if case_id not in pairs:
        systems = models[0].word("model_name") or "A", models[1].word("model_name") or "B"
        reference = row.text("gt_answer", blank=True)
        pairs[case_id] = _AnswerPair(row, row.text("query"), reference, systems, answers)
    pair = pairs[case_id]
    if pair.answers != answers:
        raise row.wrong(
            f"the pair {row.id('instance_id')} has other answers on line {pair.row.line}; "
            "download the file again",
            "instance_id",
        )
    if len(pair.grades["overall"]) == len(_ANNOTATORS):
        raise row.wrong("this pair has a third annotator; name each file once", "instance_id")
    for question in _METRICS:
        pair.grades[question].append(row.whole(f"{question}_label", -_MAX_GRADE, _MAX_GRADE))


def _add_reduced_pair(pairs: dict[str, _AnswerPair], row: SourceRow) -> None:
    case_id = row.id("id")
    if case_id in pairs:
        raise row.repeated("pair", case_id, "id")
    pair = _AnswerPair(
        row,
        row.text("question"),
        row.text("reference_answer", blank=True),
        (row.word("system_a") or "A", row.word("system_b") or "B"),
        (row.text("answer_a", blank=True), row.text("answer_b", blank=True)),
    )
    deltas = row.row.get("ragchecker_delta_b_minus_a")
    for question in _METRICS:
        column = f"human_{question}"
        grades = row.row.get(column)
        if not isinstance(grades, list) or len(grades) != len(_ANNOTATORS):
            raise row.wrong("this should be a list of two grades", column)
        pair.grades[question] += [
            row.whole_of(grade, column, -_MAX_GRADE, _MAX_GRADE) for grade in grades
        ]
        delta = as_finite(deltas.get(f"{question}_label")) if isinstance(deltas, dict) else None
        if delta is not None:
            pair.scored[question] = _check_difference(row, question, delta)
    pairs[case_id] = pair


def _check_difference(row: SourceRow, question: str, value: float) -> float:
    if not -1 <= value <= 1:
        raise row.wrong(f"a difference of {value:g} is not one of scores from 0 to 1", question)
    return value


def _pair_labels(case_id: str, grades: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    labels = []
    for question, values in grades.items():
        for annotator, grade in zip(_ANNOTATORS, values, strict=False):
            label = {
                "case_id": case_id,
                "metric": _METRICS[question],
                "label": (grade + _MAX_GRADE) / (2 * _MAX_GRADE),
                "annotator": annotator,
            }
            labels.append(label)
            if question == "overall" and grade:
                labels.append(label | {"metric": "preference"})
    return labels
