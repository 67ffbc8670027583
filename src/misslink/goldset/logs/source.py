"""A log's rows, each with its line: CSV, JSON Lines, a JSON array or object, parquet; also gzipped.

Nothing is unpacked to disk: what stands in a log is not yet masked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.jsonl import read_text
from misslink.files.parquet import rows
from misslink.files.rows import Row, read_rows

__all__ = ["Row", "rows_of"]

_PARQUET = b"PAR1"


def rows_of(path: Path) -> Iterator[Row]:
    """Yield the rows of a file, empty fields left out.

    Parameters
    ----------
    path : Path
        What begins with ``{`` or ``[`` is JSON: an object a line, an array of them, or one object
        over several lines; parquet is known by its first bytes; any other is CSV with a header.

    Raises
    ------
    InputError
        It cannot be read, a line is malformed, or there is nothing in it.
    """
    if path.is_dir():
        raise InputError("this is a folder; name the files in it", path=path)
    if _begins(path, _PARQUET):
        yield from _of_parquet(path)
        return
    text = read_text(path)
    if "\0" in text:
        raise InputError("this is a binary file; give CSV, JSON Lines or parquet", path=path)
    whole = _one_object(text) if text.lstrip()[:1] == "{" else None
    if whole is not None:
        yield 1, whole
    else:
        yield from read_rows(path, str(path))


def _begins(path: Path, mark: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(mark)) == mark
    except FileNotFoundError:
        raise InputError("there is no such file", path=path) from None
    except OSError as problem:
        raise InputError(f"it cannot be read: {problem.strerror}", path=path) from None


def _one_object(text: str) -> dict[str, Any] | None:
    """The object that a file is, where it is one over several lines; mistakes are told later."""
    try:
        json.loads(text.lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        pass
    else:
        return None  # an object a line
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _of_parquet(path: Path) -> Iterator[Row]:
    empty = True
    for row in rows(path, path):
        empty = False
        yield row
    if empty:
        raise InputError("there is no row in it", path=path)
