"""Rows with named fields, from CSV, JSON Lines, a JSON array or a pandas frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.content import decoded, opened
from misslink.files.delimited import records
from misslink.files.jsonl import NOTHING, as_items, objects_in

__all__ = ["Row", "read_rows"]

Row = tuple[int | None, dict[str, Any]]

_HEAD = 1 << 16  # bytes within which something stands that is no blank


def read_rows(source: object, name: str) -> Iterator[Row]:
    """Yield each row with its line, where it has one.

    Parameters
    ----------
    source : path, pandas frame, or iterable of mappings
        A file that begins with ``{`` or ``[`` is JSON, any other is CSV with a header, its fields
        apart by comma, semicolon or tab. Empty fields and NaN are left out.
    name : str
        What rows given in Python are called in messages.

    Raises
    ------
    InputError
        The file cannot be read, a line is malformed, or there is no row.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        yield from _of_file(path)
        return
    to_dict = getattr(source, "to_dict", None)
    if hasattr(source, "columns") and callable(to_dict):
        source = to_dict("records")
    items = as_items(source, name)
    if not items:
        raise InputError(f"{name} given in Python is empty")
    for item in items:
        if not isinstance(item, Mapping):
            raise InputError(f"{name} given in Python holds {type(item).__name__}, not an object")
        yield None, _given(item.items())


def _of_file(path: Path) -> Iterator[Row]:
    with opened(path) as content:
        head = content.peek(_HEAD)[:_HEAD].decode("utf-8-sig", "replace").lstrip()
        if head[:1] in {"{", "["}:
            empty = True
            for line, item in objects_in(content, path):
                empty = False
                yield line, _given(item.items())
            if empty:
                raise InputError(NOTHING, path=path)
        else:
            yield from _of_csv(path, decoded(content.read(), path))


def _of_csv(path: Path, text: str) -> Iterator[Row]:
    found = records(text, path)
    _, record = next((one for one in found if any(name.strip() for name in one[1])), (1, []))
    header = [name.strip() for name in record]
    if not any(header):
        raise InputError("there is nothing in it; it needs a line of names first", path=path)
    twice = [name for name in header if name and header.count(name) > 1]
    if twice:
        raise InputError("two columns have this name; keep one", path=path, field=twice[0])
    empty = True
    for line, fields in found:
        if any(field.strip() for field in fields):
            if len(fields) > len(header):
                raise InputError(
                    f"{len(fields)} fields, but {len(header)} names; quote texts in full",
                    path=path,
                    line=line,
                )
            empty = False
            yield line, _given(zip(header, fields, strict=False))
    if empty:
        raise InputError("there is no line below the names", path=path)


def _given(fields: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """The fields that hold something."""
    return {str(name): value for name, value in fields if str(name) and not _blank(value)}


def _blank(value: object) -> bool:
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    if type(value).__name__ in {"NAType", "NaTType"}:  # pandas says missing in its own way
        return True
    return isinstance(value, float) and math.isnan(value)
