"""Gold sets written: one case a line, only what it says, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from misslink.errors import InputError
from misslink.files.whole import put
from misslink.types import Case

__all__ = ["as_lines", "check_free", "objects_as_lines", "write_goldset"]


def as_lines(items: Iterable[BaseModel]) -> str:
    r"""Return cases or traces as JSON Lines, without the fields that say nothing.

    >>> as_lines([Case(id="a", question="Why?", relevant={"p": 2})])
    '{"id":"a","question":"Why?","relevant":{"p":2}}\n'
    """
    return "".join(item.model_dump_json(exclude_defaults=True) + "\n" for item in items)


def objects_as_lines(items: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as JSON Lines."""
    return "".join(
        json.dumps(dict(item), ensure_ascii=False, allow_nan=False) + "\n" for item in items
    )


def write_goldset(cases: Iterable[Case], path: Path, *, overwrite: bool = False) -> Path:
    """Write a gold set that `read_goldset` reads back without loss.

    Parameters
    ----------
    cases : iterable of Case
        At least one: an empty file is no gold set.
    path : Path
        Its folder is made.
    overwrite : bool
        Whether a file that holds something else may be replaced.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    InputError
        There is no case, the file holds something else, or it cannot be written.
    """
    text = as_lines(cases)
    if not text:
        raise InputError("there is no case to write", path=path)
    if not overwrite:
        check_free(text, path)
    return put(text, path)


def check_free(text: str, path: Path) -> None:
    """Refuse a file that holds something else than a text.

    Raises
    ------
    InputError
        It does, or it cannot be read.
    """
    if not path.is_file():
        return
    try:
        held = path.read_bytes()
    except OSError as problem:
        raise InputError(f"it cannot be read ({problem.strerror})", path=path) from None
    if held.strip() and held != text.encode():
        raise InputError(
            "there is a file already; name another one, or replace it with --overwrite", path=path
        )
