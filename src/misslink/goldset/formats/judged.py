"""Judgements kept apart from the questions, as BEIR and TREC do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from misslink.errors import InputError
from misslink.files.goldset import GoldSet
from misslink.retrieval.opening import open_qrels

__all__ = ["by_query", "grades", "qrels_rows"]


def by_query(path: Path) -> Mapping[str, Mapping[str, int]]:
    """Query to document to grade, from whatever `misslink retrieval` reads as qrels."""
    found = open_qrels(path)
    if isinstance(found, GoldSet):
        raise InputError("this is a gold set already, no qrels", path=path)
    return found.by_query


def grades(judged: Mapping[str, int], left_out: Counter[str]) -> dict[str, int]:
    """Grades from 0 up; a negative one says that a document was pooled and never judged."""
    left_out["negative grades (never judged)"] += sum(grade < 0 for grade in judged.values())
    return {document: grade for document, grade in judged.items() if grade >= 0}


def qrels_rows(gold: GoldSet, form: str) -> Iterator[str]:
    """A line for each grade of a gold set.

    Raises
    ------
    InputError
        An id holds a blank, a tab or a line break, and no reader would find its end.
    """
    for case in gold.cases:
        for document, grade in case.relevant.items():
            for name in (case.id, document):
                if any(sign.isspace() for sign in name) or not name.isprintable():
                    field = "id" if name == case.id else "relevant"
                    raise gold.error(
                        case.id,
                        field,
                        f"the id {name!r} holds a blank, which qrels cannot; rename it",
                    )
            yield form.format(query=case.id, document=document, grade=grade)
