"""TREC RAG: passages graded for relevance by people, and by a language model.

The public files are qrels as trec_eval reads them, ``topic iteration document grade`` apart by
blanks: one of the assessors, one of a model such as UMBRELA. Grades go from 0 to 3 (2024) or to 4
(2025). The reduced form is tab-separated with the header ``query_id, doc_id, human`` and a column
with the model's name.

Source: TREC 2024 and 2025 Retrieval-Augmented Generation tracks, NIST; Upadhyay et al., UMBRELA,
2024.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.jsonl import read_text
from misslink.files.public.fields import Entry
from misslink.files.public.imported import Imported, Wanted, refuse_unasked
from misslink.registry import importers

__all__ = ["trec_rag"]

_NAME = "TREC RAG"
_FORMS = "two files of qrels, people's first"
_COLUMNS = ("query_id", "doc_id", "human")
_QRELS = 4
_LOW, _MOST = 3, 4  # the highest grade of 2024 and that of 2025
_BY_MODEL = re.compile(r"umbrela|llm|auto|gpt|model", re.IGNORECASE)

_Pair = tuple[str, str]


@importers.register("trec-rag")
def trec_rag(paths: Sequence[Path], wanted: Wanted) -> Imported:
    """Read the qrels of people and those of a model, or the reduced form.

    Parameters
    ----------
    paths : sequence of Path
        Two files of qrels. Whose they are is told by their names where one of them has 'umbrela',
        'llm', 'auto', 'gpt' or 'model' in it; else the first is people's.
    wanted : Wanted

    Returns
    -------
    Imported
        A case a pair of topic and document, named TOPIC/DOCUMENT; neither text is in the qrels, so
        there is no gold set and no trace, but the model's grades are verdicts. Values and labels
        of ``relevance`` are grades over the highest one (3, or 4 where one is found), so that 2 and
        more is relevant. A grade below 0 counts as 0.

    Raises
    ------
    InputError
        A file is something else or broken, a pair has two grades, the files share no pair, or
        there are not two of them.
    """
    refuse_unasked(wanted, _NAME)
    people, model, judge, whose = _read(paths)
    both = [pair for pair in people if pair in model]
    if not both:
        raise InputError(
            "these grade no passage that the first file grades; give qrels of the same topics",
            path=paths[-1],
        )
    most = _MOST if _MOST in {*people.values(), *model.values()} else _LOW
    verdicts: list[dict[str, Any]] = [
        {**_case(pair), "value": grade / most, "judge": judge} for pair, grade in model.items()
    ]
    alone = [pair for pair in people if pair not in model]
    verdicts += [
        {**_case(pair), "status": "skipped", "reason": "the model did not grade it", "judge": judge}
        for pair in alone
    ]
    labels = [
        {**_case(pair), "label": grade / most, "annotator": "assessor"}
        for pair, grade in people.items()
    ]
    return Imported(
        title="TREC RAG: passages graded for relevance by people and by a language model",
        source="TREC Retrieval-Augmented Generation track, NIST, https://trec-rag.github.io",
        licence="as NIST states with the qrels",
        labels=labels,
        verdicts=verdicts,
        notes=(
            whose,
            (
                f"{len(both):,} passages are graded by both, {len(alone):,} by people alone, "
                f"{len(model) - len(both):,} by the model alone."
            ),
            f"A value is the grade over {most}; 2 and more is from 0.5 on, and so relevant.",
            "The qrels hold no texts, so no judge but the model can be held against them here.",
        ),
        commands=(
            (
                "misslink calibrate --verdicts {dir}/verdicts.jsonl --labels {dir}/labels.jsonl "
                "--metric relevance"
            ),
        ),
    )


def _case(pair: _Pair) -> dict[str, str]:
    return {"case_id": "/".join(pair), "metric": "relevance"}


def _read(paths: Sequence[Path]) -> tuple[Mapping[_Pair, int], Mapping[_Pair, int], str, str]:
    """People's grades, the model's, what the model is called, and whose which file is taken for."""
    if len(paths) == 1:
        found = _of_both(paths[0])
        if found is None:
            raise InputError(
                f"one file of grades has nothing to be held against; give {_FORMS}", path=paths[0]
            )
        people, model, judge = found
        return people, model, judge, f"'human' is people's, '{judge}' the model's."
    if len(paths) != 2:  # noqa: PLR2004 (people's and the model's)
        raise InputError(f"{len(paths)} files are given; give {_FORMS}")
    named = [bool(_BY_MODEL.search(path.name)) for path in paths]
    first, second = (paths[1], paths[0]) if named == [True, False] else (paths[0], paths[1])
    by = "its name" if sum(named) == 1 else "the order"
    whose = f"{second.name} is taken for the model's by {by}, {first.name} for people's."
    return _qrels(first), _qrels(second), second.stem, whose


def _qrels(path: Path) -> dict[_Pair, int]:
    grades: dict[_Pair, int] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        fields = line.split()
        if not fields:
            continue
        entry = Entry(
            dict(zip(("topic", "iteration", "document", "grade"), fields, strict=False)),
            path,
            number,
        )
        if len(fields) != _QRELS:
            raise entry.wrong(
                f"this is no line of qrels ({len(fields)} words where there should be topic, "
                f"iteration, document and grade); give {_FORMS}"
            )
        _enter(grades, entry, (fields[0], fields[2]), entry.whole("grade", -_MOST, _MOST))
    if not grades:
        raise InputError("there is nothing in it; give a file of qrels", path=path)
    return grades


def _of_both(path: Path) -> tuple[dict[_Pair, int], dict[_Pair, int], str] | None:
    """The grades of a table with both; None where the file is none."""
    lines = read_text(path).split("\n")
    header = [name.strip() for name in lines[0].split("\t")]
    others = [name for name in header if name not in _COLUMNS]
    if not set(_COLUMNS) <= set(header) or len(others) != 1:
        return None
    people: dict[_Pair, int] = {}
    model: dict[_Pair, int] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        fields = line.rstrip("\r").split("\t")
        entry = Entry(dict(zip(header, fields, strict=False)), path, number)
        if len(fields) != len(header):
            raise entry.wrong(
                f"{len(fields)} fields where the first line names {len(header)}; download the "
                "file again"
            )
        pair = (entry.id("query_id"), entry.id("doc_id"))
        _enter(people, entry, pair, entry.whole("human", -_MOST, _MOST))
        _enter(model, entry, pair, entry.whole(others[0], -_MOST, _MOST))
    if not people:
        raise InputError("there is no line below the names", path=path)
    return people, model, others[0]


def _enter(grades: dict[_Pair, int], entry: Entry, pair: _Pair, grade: int) -> None:
    known = grades.setdefault(pair, max(0, grade))
    if known != max(0, grade):
        raise entry.wrong(f"{' and '.join(pair)} have the grade {known} and {grade}; keep one")
