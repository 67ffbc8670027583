"""Everybody's labels of a run in one file, with their weights."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from misslink.errors import InputError, known_names
from misslink.files.inert import inert
from misslink.files.label_folder import FOLDER, Kept, Seen, read_folder
from misslink.files.whole import put

__all__ = ["export", "exported", "form_of"]

_FORMS = ("csv", "jsonl")
_COLUMNS = (
    "case_id", "metric", "claim", "label", "annotator", "weight", "comment", "judge_shown", "at",
)  # fmt: skip


def export(run: Path, path: Path) -> int:
    """Write all labels of a run into a file that `read_labels` reads.

    Parameters
    ----------
    run : Path
        The run folder.
    path : Path
        Ends with `.csv` or `.jsonl`.

    Returns
    -------
    int
        How many labels; skipped ones and those of changed answers are left out.

    Raises
    ------
    InputError
        There is no label, the ending is another, or the file cannot be written or would lie
        among the labels themselves.
    """
    form, folder = form_of(path), run / FOLDER
    if path.resolve().parent == folder.resolve():
        raise InputError("this is the folder of the labels themselves; name another", path=path)
    rows = _rows(folder, None)
    put(_text(rows, form), path)
    return len(rows)


def form_of(path: Path) -> str:
    """Return 'csv' or 'jsonl' by a file's ending.

    Raises
    ------
    InputError
        It ends otherwise.
    """
    form = path.suffix.removeprefix(".").casefold()
    if form not in _FORMS:
        raise InputError("labels are exported as .csv or .jsonl; name such a file", path=path)
    return form


def exported(folder: Path, form: str, seen: Seen | None = None) -> str:
    """Return everybody's labels as text.

    Parameters
    ----------
    folder : Path
        Of the run's labels.
    form : {'csv', 'jsonl'}
    seen : Seen or None
        As of `misslink.files.label_folder.read_folder`.

    Raises
    ------
    InputError
        There is no such form, or no label.
    """
    if form not in _FORMS:
        raise InputError(f"there is no form '{form}'; {known_names(form, _FORMS)}")
    return _text(_rows(folder, seen), form)


def _text(rows: list[dict[str, Any]], form: str) -> str:
    if form == "jsonl":
        return "".join(
            json.dumps({k: v for k, v in row.items() if v not in {None, ""}}, ensure_ascii=False)
            + "\n"
            for row in rows
        )
    file = io.StringIO(newline="")
    out = csv.DictWriter(file, _COLUMNS, lineterminator="\r\n")  # with "\n", no "\r" is quoted
    out.writeheader()
    out.writerows({**row, "comment": inert(row["comment"])} for row in rows)
    return file.getvalue()


def _rows(folder: Path, seen: Seen | None) -> list[dict[str, Any]]:
    kept = read_folder(folder, seen=seen).kept if folder.is_dir() else ()
    if not kept:
        raise InputError("nobody has labelled this run; run  misslink annotate", path=folder.parent)
    return [_row(one) for one in kept]


def _row(kept: Kept) -> dict[str, Any]:
    entry, label = kept.entry, kept.entry.label
    return {
        "case_id": entry.case_id,
        "metric": entry.metric,
        "claim": entry.claim,
        "label": int(label) if label is not None and label.is_integer() else label,
        "annotator": entry.annotator,
        "weight": kept.weight,
        "comment": entry.comment,
        "judge_shown": int(entry.judge_shown),
        "at": entry.at,
    }
