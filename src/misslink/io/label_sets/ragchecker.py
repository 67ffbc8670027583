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
from typing import Annotated, Any

from pydantic import BaseModel, Field

from misslink.errors import InputError
from misslink.io.jsonl import SourceItem
from misslink.io.label_sets import importer
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


_Grade = Annotated[importer.Whole, Field(ge=-_MAX_GRADE, le=_MAX_GRADE)]
_Grades = Annotated[list[_Grade], Field(min_length=2, max_length=2)]  # of two annotators


class _RagCheckerAnswer(BaseModel):
    model_name: importer.Word = None
    response: str


class _RagCheckerPublicRow(BaseModel):
    """The grades of one annotator."""

    instance_id: importer.Id
    dataset: importer.Word = None
    query: importer.Text
    gt_answer: str
    model1: _RagCheckerAnswer
    model2: _RagCheckerAnswer
    overall_label: _Grade
    correctness_label: _Grade
    completeness_label: _Grade


class _Scores(BaseModel):
    ragchecker: dict[str, Any]


class _ScoredRow(BaseModel):
    """RAGChecker's own scores."""

    instance_id: importer.Id
    model1: _Scores
    model2: _Scores


class _RagCheckerReducedRow(BaseModel):
    id: importer.Id
    dataset: importer.Word = None
    question: importer.Text
    reference_answer: str
    system_a: importer.Word = None
    answer_a: str
    system_b: importer.Word = None
    answer_b: str
    human_overall: _Grades
    human_correctness: _Grades
    human_completeness: _Grades
    ragchecker_delta_b_minus_a: dict[str, Any] | None = None


_FORMS: dict[type[_RagCheckerPublicRow | _ScoredRow | _RagCheckerReducedRow], tuple[str, ...]] = {
    _RagCheckerPublicRow: ("model1", "model2", "overall_label"),
    _ScoredRow: ("model1", "model2"),
    _RagCheckerReducedRow: ("answer_a", "answer_b", "human_overall"),
}


@dataclass
class _AnswerPair:
    """Two answers to one question, with their comparisons."""

    row: SourceItem
    question: str
    reference: str
    tags: tuple[str | None, str, str]  # the data set and the two systems
    answers: tuple[str, str]
    grades: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in _METRICS})
    scored: dict[str, float] = field(default_factory=dict)  # RAGChecker's own, B minus A


@importers.register("ragchecker")
def import_ragchecker(
    paths: Sequence[Path], options: importer.ImportOptions
) -> importer.ImportedLabelSet:
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
    options.require_support(_NAME)
    pairs = _read_pairs(paths)
    cases, labels, verdicts = [], [], []
    sides: tuple[list[Trace], list[Trace]] = ([], [])
    for case_id, pair in pairs.items():
        tags = dict(zip(("dataset", "system_a", "system_b"), pair.tags, strict=True))
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
    return importer.ImportedLabelSet(
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
    scores: list[tuple[SourceItem, _ScoredRow]] = []
    for path in paths:
        for item, row in importer.read_rows_of(path, _NAME, _EXPECTED_FILES, _FORMS):
            if isinstance(row, _RagCheckerPublicRow):
                _add_public_pair(pairs, item, row)
            elif isinstance(row, _ScoredRow):
                scores.append((item, row))
            else:
                _add_reduced_pair(pairs, item, row)
    if not pairs:
        raise InputError(
            "these are RAGChecker's scores without people's; name human_labeled_data.json too",
            path=paths[0],
        )
    for item, scored in scores:
        pair = pairs.get(f"ragchecker-{scored.instance_id}")
        if pair is None:
            raise item.error("people labelled no such pair", "instance_id")
        a, b = scored.model1.ragchecker, scored.model2.ragchecker
        for question in _METRICS:
            before, after = (as_finite(side.get(f"{question}_label")) for side in (a, b))
            if before is not None and after is not None:
                _add_score(pair, item, question, after - before)
    return pairs


def _add_public_pair(
    pairs: dict[str, _AnswerPair], item: SourceItem, row: _RagCheckerPublicRow
) -> None:
    a, b = row.model1, row.model2
    tags = row.dataset, a.model_name or "A", b.model_name or "B"
    answers = a.response, b.response
    pair = _AnswerPair(item, row.query, row.gt_answer, tags, answers)
    pair = pairs.setdefault(f"ragchecker-{row.instance_id}", pair)
    if pair.answers != answers:
        raise item.error(
            f"the pair {row.instance_id} has other answers on line {pair.row.number}; "
            "download the file again",
            "instance_id",
        )
    if len(pair.grades["overall"]) == len(_ANNOTATORS):
        raise item.error("this pair has a third annotator; name each file once", "instance_id")
    for question, grades in pair.grades.items():
        grades.append(getattr(row, f"{question}_label"))


def _add_reduced_pair(
    pairs: dict[str, _AnswerPair], item: SourceItem, row: _RagCheckerReducedRow
) -> None:
    if row.id in pairs:
        raise item.error(f"'{row.id}' occurs twice; name each file once", "id")
    tags = row.dataset, row.system_a or "A", row.system_b or "B"
    answers = row.answer_a, row.answer_b
    pair = _AnswerPair(item, row.question, row.reference_answer, tags, answers)
    for question in _METRICS:
        pair.grades[question] += getattr(row, f"human_{question}")
        delta = as_finite((row.ragchecker_delta_b_minus_a or {}).get(f"{question}_label"))
        if delta is not None:
            _add_score(pair, item, question, delta)
    pairs[row.id] = pair


def _add_score(pair: _AnswerPair, item: SourceItem, question: str, difference: float) -> None:
    if not -1 <= difference <= 1:
        raise item.error(
            f"a difference of {difference:g} is not one of scores from 0 to 1", question
        )
    pair.scored[question] = difference


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
