"""Import and export a gold set by the name of a format, or by its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.goldset.formats.base import FormatOptions, GoldSetFormat, ImportedGoldSet, formats
from misslink.goldset.logs.requests import read_log_rows
from misslink.io.goldset import GoldSet

_GOLDSET_FIELDS = {"relevant", "relevant_any", "evidence", "references", "answerable"}
_TABLE_SUFFIXES = {".csv", ".parquet", ".pq"}
_SHOWN_FIELDS = 10


def import_goldset(
    source: Path, name: str = "auto", options: FormatOptions | None = None
) -> tuple[str, ImportedGoldSet]:
    """Read a gold set of another tool.

    Parameters
    ----------
    source : Path
        A file or a folder.
    name : str
        A registered format, or 'auto'.
    options : FormatOptions, optional

    Returns
    -------
    str
        The format's name.
    ImportedGoldSet

    Raises
    ------
    InputError
        The format is unknown or cannot be detected, or the source is wrong: then with the line.
    """
    if not source.exists():
        raise InputError("File or folder not found. Check the path.", path=source)
    if name == "auto":
        name = detect_format(source)
    imported = _format_named(name).read(source, options or FormatOptions())
    left_out = {why: count for why, count in imported.left_out.items() if count}
    return name, replace(imported, left_out=left_out)


def export_goldset(
    gold: GoldSet, name: str, target: Path, options: FormatOptions | None = None
) -> dict[str, int]:
    """Write a gold set for another tool.

    Returns
    -------
    dict of str to int
        What the format does not support, with counts of cases.

    Raises
    ------
    InputError
        The format is unknown, an id does not fit it, or the target cannot be written.
    """
    return _format_named(name).write(gold, target, options or FormatOptions())


def detect_format(source: Path) -> str:
    """Return the name of the format of a file or folder, by its content.

    Raises
    ------
    InputError
        No format matches, or it is already a gold set of misslink.
    """
    row = None if source.is_dir() else _first_row(source)
    fields = set(row or ())
    is_goldset = fields & {"question", "query"} and fields & _GOLDSET_FIELDS
    if is_goldset and source.suffix not in _TABLE_SUFFIXES:
        raise InputError("This is a gold set already. It needs no import.", path=source)
    for name in formats.names():
        if _format_named(name).matches(source, row):
            return name
    shown = f" (fields: {', '.join(list(row)[:_SHOWN_FIELDS])})" if row else ""
    raise InputError(
        f"The format is not recognized{shown}. Name it with --format: "
        f"{', '.join(formats.names())}.",
        path=source,
    )


def _format_named(name: str) -> GoldSetFormat:
    format_: GoldSetFormat = formats.get(name)()
    return format_


def _first_row(source: Path) -> Mapping[str, Any] | None:
    """The first row of a file; None for a file without rows, such as TREC topics."""
    try:
        with source.open("rb") as file:
            head = file.read(2000).lstrip()
    except OSError as problem:
        raise InputError(f"Cannot read the file: {problem.strerror}.", path=source) from None
    suffix = source.suffix.casefold()
    if head[:1] == b"<" or suffix in {".tsv", ".arrow"}:
        return None
    if head[:1] not in {b"{", b"["} and suffix not in {*_TABLE_SUFFIXES, ".gz"}:
        return None
    return next(read_log_rows(source), (None, None))[1]
