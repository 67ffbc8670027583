"""Gold sets of other tools by the format's name, or by what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.goldset import GoldSet
from misslink.goldset.formats.format import Brought, Format, Options, formats
from misslink.goldset.logs.source import rows_of

__all__ = ["bring", "guess", "take_out"]

_OURS = {"relevant", "relevant_any", "evidence", "references", "answerable"}
_TABLES = {".csv", ".parquet", ".pq"}
_SHOWN = 10


def bring(source: Path, name: str = "auto", options: Options | None = None) -> tuple[str, Brought]:
    """Read a gold set of another tool.

    Parameters
    ----------
    source : Path
        A file or a folder.
    name : str
        Of a registered format, or 'auto'.
    options : Options, optional

    Returns
    -------
    str
        The format's name.
    Brought

    Raises
    ------
    InputError
        There is no such format, it cannot be told, or the source is wrong: then with the line.
    """
    if not source.exists():
        raise InputError("there is no such file or folder", path=source)
    if name == "auto":
        name = guess(source)
    brought: Brought = _format(name).bring(source, options or Options())
    left = {why: count for why, count in brought.left_out.items() if count}
    return name, Brought(brought.cases, brought.traces, left, brought.notes)


def take_out(
    gold: GoldSet, name: str, target: Path, options: Options | None = None
) -> dict[str, int]:
    """Write a gold set for another tool.

    Returns
    -------
    dict of str to int
        What the format could not hold, and of how many cases.

    Raises
    ------
    InputError
        There is no such format, an id does not fit it, or the target cannot be written.
    """
    return _format(name).take_out(gold, target, options or Options())


def guess(source: Path) -> str:
    """Tell the format of a file or folder by what it holds.

    Raises
    ------
    InputError
        None of them knows it as its own, or it is a gold set of misslink already.
    """
    row = None if source.is_dir() else _first_row(source)
    if (
        row
        and {"question", "query"} & set(row)
        and _OURS & set(row)
        and source.suffix not in _TABLES
    ):
        raise InputError("this is a gold set already; it needs no import", path=source)
    for name in formats.names():
        if _format(name).is_it(source, row):
            return name
    told = f"; it has the fields {', '.join(list(row)[:_SHOWN])}" if row else ""
    raise InputError(
        f"its format cannot be told by what it holds{told}; name it with --format: "
        f"{', '.join(formats.names())}",
        path=source,
    )


def _format(name: str) -> Format:
    found = formats.get(name)
    made: Format = found()
    return made


def _first_row(source: Path) -> Mapping[str, Any] | None:
    """The first row of a file of rows; None where it is none, as topics are not."""
    try:
        with source.open("rb") as file:
            head = file.read(2000).lstrip()
    except OSError as problem:
        raise InputError(f"it cannot be read: {problem.strerror}", path=source) from None
    if head[:1] == b"<" or source.suffix.casefold() in {".tsv", ".arrow"}:
        return None
    if head[:1] not in {b"{", b"["} and source.suffix.casefold() not in {*_TABLES, ".gz"}:
        return None
    return next(rows_of(source), (None, None))[1]
