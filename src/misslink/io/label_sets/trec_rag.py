"""TREC RAG: passages graded for relevance by assessors, and by a language model.

The public files are qrels as trec_eval reads them, ``topic iteration document grade`` separated by
blanks: one of the assessors, one of a model such as UMBRELA. Grades go from 0 to 3 (2024) or to 4
(2025). The reduced form is tab-separated with the header ``query_id, doc_id, human`` and a column
with the model's name.

Source: TREC 2024 and 2025 Retrieval-Augmented Generation tracks, NIST; Upadhyay et al., UMBRELA,
2024.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io.jsonl import SourceItem, read_text
from misslink.io.label_sets.importer import ImportedLabelSet, ImportOptions, read_tsv
from misslink.io.numbers import shorten_repr
from misslink.registry import importers

_EXPECTED_FILES = "two files of qrels, people's first"
_COLUMNS = ("query_id", "doc_id", "human")
_QRELS_FIELDS = ("topic", "iteration", "document", "grade")
_MAX_GRADE_2024, _MAX_GRADE_2025 = 3, 4
_MODEL_FILE_NAME = re.compile(r"umbrela|llm|auto|gpt|model", re.IGNORECASE)

_Grades = dict[tuple[str, str], int]  # by topic and document


@importers.register("trec-rag")
def import_trec_rag(paths: Sequence[Path], options: ImportOptions) -> ImportedLabelSet:
    """Read the qrels of assessors and those of a model, or the reduced form.

    Parameters
    ----------
    paths : sequence of Path
        Two files of qrels. The model's has 'umbrela', 'llm', 'auto', 'gpt' or 'model' in its name;
        if that does not decide, the first file is the assessors'.
    options : ImportOptions

    Returns
    -------
    ImportedLabelSet
        A case per pair of topic and document, named TOPIC/DOCUMENT. The qrels hold no texts, so
        there is no gold set and no trace, but the model's grades are verdicts. Values and labels
        of ``relevance`` are grades over the highest one (3, or 4 if there is one), so that 2 and
        more is relevant. A grade below 0 counts as 0.

    Raises
    ------
    InputError
        A file is something else or broken, a pair has two grades, the files share no pair, or
        there are not two of them.
    """
    options.require_support("TREC RAG")
    people, model, judge, origin = _read_grades(paths)
    both = len(people.keys() & model.keys())
    if not both:
        raise InputError(
            "these grade no passage that the first file grades; give qrels of the same topics",
            path=paths[-1],
        )
    highest = {*people.values(), *model.values()}
    most = _MAX_GRADE_2025 if _MAX_GRADE_2025 in highest else _MAX_GRADE_2024
    verdicts: list[dict[str, Any]] = [
        {**_case_fields(pair), "value": grade / most, "judge": judge}
        for pair, grade in model.items()
    ]
    skipped = {"status": "skipped", "reason": "the model did not grade it", "judge": judge}
    verdicts += [{**_case_fields(pair), **skipped} for pair in people if pair not in model]
    return ImportedLabelSet(
        title="TREC RAG: passages graded for relevance by people and by a language model",
        source="TREC Retrieval-Augmented Generation track, NIST, https://trec-rag.github.io",
        licence="as NIST states with the qrels",
        labels=[
            {**_case_fields(pair), "label": grade / most, "annotator": "assessor"}
            for pair, grade in people.items()
        ],
        verdicts=verdicts,
        notes=(
            origin,
            (
                f"{both:,} passages are graded by both, {len(people) - both:,} by people alone, "
                f"{len(model) - both:,} by the model alone."
            ),
            f"A value is the grade over {most}; 2 and more is from 0.5 on, and so relevant.",
            "The qrels hold no texts, so only the model can be compared with the labels here.",
        ),
        commands=(
            (
                "misslink calibrate --verdicts {dir}/verdicts.jsonl --labels {dir}/labels.jsonl "
                "--metric relevance"
            ),
        ),
    )


def _case_fields(pair: tuple[str, str]) -> dict[str, str]:
    return {"case_id": "/".join(pair), "metric": "relevance"}


def _read_grades(paths: Sequence[Path]) -> tuple[_Grades, _Grades, str, str]:
    """The assessors' grades, the model's, the model's name, and which file was taken for whose."""
    if len(paths) == 1:
        combined = _read_combined_table(paths[0])
        if combined is None:
            raise InputError(
                f"one file of grades has nothing to be compared with; give {_EXPECTED_FILES}",
                path=paths[0],
            )
        people, model, judge = combined
        return people, model, judge, f"'human' is people's, '{judge}' the model's."
    if len(paths) != 2:
        raise InputError(f"{len(paths)} files are given; give {_EXPECTED_FILES}")
    by_model = [bool(_MODEL_FILE_NAME.search(path.name)) for path in paths]
    first, second = (paths[1], paths[0]) if by_model == [True, False] else (paths[0], paths[1])
    basis = "its name" if sum(by_model) == 1 else "the order"
    origin = f"{second.name} is taken for the model's by {basis}, {first.name} for people's."
    return _read_qrels(first), _read_qrels(second), second.stem, origin


def _read_qrels(path: Path) -> _Grades:
    grades: _Grades = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        fields = line.split()
        if not fields:
            continue
        row = SourceItem(dict(zip(_QRELS_FIELDS, fields, strict=False)), str(path), number)
        if len(fields) != len(_QRELS_FIELDS):
            raise row.error(
                f"this is not a line of qrels ({len(fields)} words where there should be topic, "
                f"iteration, document and grade); give {_EXPECTED_FILES}"
            )
        _add_grade(grades, row, ("topic", "document"), "grade")
    if not grades:
        raise InputError("the file is empty; give a file of qrels", path=path)
    return grades


def _read_combined_table(path: Path) -> tuple[_Grades, _Grades, str] | None:
    """The grades of a table with both; None if the file is none."""
    text = read_text(path)
    header = [name.strip() for name in text.partition("\n")[0].split("\t")]
    model_columns = [name for name in header if name not in _COLUMNS]
    if not set(_COLUMNS) <= set(header) or len(model_columns) != 1:
        return None
    people: _Grades = {}
    model: _Grades = {}
    for row in read_tsv(path, text, header):
        _add_grade(people, row, _COLUMNS[:2], "human")
        _add_grade(model, row, _COLUMNS[:2], model_columns[0])
    return people, model, model_columns[0]


def _add_grade(grades: _Grades, row: SourceItem, names: tuple[str, str], field: str) -> None:
    topic, document = (row.data[name].strip() for name in names)
    for name, text in zip(names, (topic, document), strict=True):
        if not text:
            raise row.error("an id is text or a whole number", name)
    written = row.data[field].strip()
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", written) or abs(int(written)) > _MAX_GRADE_2025:
        raise row.error(
            f"{shorten_repr(written)} is not a whole number from -{_MAX_GRADE_2025} to "
            f"{_MAX_GRADE_2025}",
            field,
        )
    grade = max(0, int(written))
    first = grades.setdefault((topic, document), grade)
    if first != grade:
        raise row.error(f"{topic} and {document} have the grade {first} and {grade}; keep one")
