"""Write gold sets and traces as JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from misslink.errors import InputError
from misslink.io.atomic import atomic_write
from misslink.types import Case


def to_jsonl(items: Iterable[BaseModel]) -> str:
    r"""Return cases or traces as JSON Lines, without default values.

    >>> to_jsonl([Case(id="a", question="Why?", relevant={"p": 2})])
    '{"id":"a","question":"Why?","relevant":{"p":2}}\n'
    """
    return "".join(item.model_dump_json(exclude_defaults=True) + "\n" for item in items)


def objects_to_jsonl(items: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as JSON Lines."""
    return "".join(
        json.dumps(dict(item), ensure_ascii=False, allow_nan=False) + "\n" for item in items
    )


def write_goldset(cases: Iterable[Case], path: Path, *, overwrite: bool = False) -> Path:
    """Write a gold set, which `read_goldset` reads without loss.

    Parameters
    ----------
    cases : iterable of Case
        At least one.
    path : Path
        Its folder is created.
    overwrite : bool
        Whether a file with other content may be replaced.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    InputError
        There is no case, the file has other content, or it cannot be written.
    """
    text = to_jsonl(cases)
    if not text:
        raise InputError("The gold set has no cases. Write at least one.", path=path)
    if not overwrite:
        refuse_existing(text, path)
    return atomic_write(text, path)


def refuse_existing(text: str, path: Path) -> None:
    """Raise InputError for a file with other content than a text."""
    if not path.is_file():
        return
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise InputError(f"Cannot read the file: {problem.strerror}.", path=path) from None
    if content.strip() and content != text.encode():
        raise InputError("The file exists. Name another one, or add --overwrite.", path=path)
