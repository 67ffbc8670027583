"""Rows of files of other tools: with the column that is needed, or the nearest name told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.errors import InputError, did_you_mean
from misslink.goldset.logs.source import Row, rows_of

__all__ = ["one_of", "rows_with"]

_SHOWN = 10


def one_of(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    """What stands under the first of some names that is there; None where none is."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def rows_with(path: Path, needed: Sequence[str], known: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a file.

    Parameters
    ----------
    path : Path
    needed : sequence of str
        One of these names is in some row.
    known : sequence of str
        What columns of the format are called.

    Raises
    ------
    InputError
        The file cannot be read, or no row has a needed name: then with the nearest known name.
    """
    seen: dict[str, None] = {}
    for line, row in rows_of(path):
        seen |= dict.fromkeys(row)
        yield line, row
    if not set(needed) & set(seen):
        hints = [f"'{name}': {hint}" for name in seen if (hint := did_you_mean(name, known))]
        told = "; ".join(hints[:3]) or f"it has {', '.join(list(seen)[:_SHOWN]) or 'none'}"
        raise InputError(f"there is no column '{needed[0]}' in it ({told})", path=path)
