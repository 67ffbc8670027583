"""Everybody's grades of a pool in one file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from misslink.annotating.exporting import form_of
from misslink.errors import InputError, known_names
from misslink.files.inert import inert
from misslink.files.label_folder import journals
from misslink.files.label_journal import read_journal, standing
from misslink.files.whole import put
from misslink.goldset.pooling.folder import PoolItem, labels_of, read_pool

__all__ = ["export_grades", "exported_grades"]

_FORMS = ("csv", "jsonl")
_COLUMNS = ("case_id", "passage_id", "grade", "annotator", "comment", "at")
_TEXTS = ("case_id", "passage_id", "comment")  # which a spreadsheet might take for formulas


def export_grades(pool: Path, path: Path) -> int:
    """Write all grades of a pool into a file.

    Parameters
    ----------
    pool : Path
        The pool's folder.
    path : Path
        Ends with `.csv` or `.jsonl`.

    Returns
    -------
    int
        How many grades; skipped ones are left out.

    Raises
    ------
    InputError
        It is no pool, there is no grade, the ending is another, or the file cannot be written or
        would lie in the pool itself.
    """
    form, items = form_of(path), {item.item: item for item in read_pool(pool).items}
    if pool.resolve() in path.resolve().parents:
        raise InputError("this is the folder of the pool itself; name another", path=path)
    rows = _rows(labels_of(pool), items)
    put(_text(rows, form), path)
    return len(rows)


def exported_grades(folder: Path, items: Mapping[str, PoolItem], form: str) -> str:
    """Return everybody's grades as text.

    Parameters
    ----------
    folder : Path
        Of the pool's labels.
    items : mapping of str to PoolItem
    form : {'csv', 'jsonl'}

    Raises
    ------
    InputError
        There is no such form, or no grade.
    """
    if form not in _FORMS:
        raise InputError(f"there is no form '{form}'; {known_names(form, _FORMS)}")
    return _text(_rows(folder, items), form)


def _rows(folder: Path, items: Mapping[str, PoolItem]) -> list[dict[str, Any]]:
    rows = [
        {
            "case_id": items[entry.case_id].case_id,
            "passage_id": items[entry.case_id].passage_id,
            "grade": entry.grade,
            "annotator": name,
            "comment": entry.comment,
            "at": entry.at,
        }
        for name, path in journals(folder).items()
        for entry in standing(read_journal(path).entries).values()
        if entry.grade is not None and entry.case_id in items
    ]
    if not rows:
        raise InputError(
            "nobody has labelled this pool; run  misslink annotate", path=folder.parent
        )
    return rows


def _text(rows: list[dict[str, Any]], form: str) -> str:
    if form == "jsonl":
        told = ({name: value for name, value in row.items() if value != ""} for row in rows)
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in told)
    file = io.StringIO(newline="")
    out = csv.DictWriter(file, _COLUMNS, lineterminator="\r\n")  # with "\n", no "\r" is quoted
    out.writeheader()
    out.writerows({**row, **{name: inert(row[name]) for name in _TEXTS}} for row in rows)
    return file.getvalue()
