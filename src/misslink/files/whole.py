"""A file written whole or not at all: nobody ever sees half of one, or loses what was there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from misslink.errors import InputError
from misslink.files.addresses import refuse_url

__all__ = ["placed", "put"]


def put(text: str, path: Path) -> Path:
    """Write a text aside, then put it in place.

    Parameters
    ----------
    text : str
        Written as UTF-8.
    path : Path
        The file; its folder is made, a file that is there is replaced.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    InputError
        The file cannot be written; one that was there is as it was.
    """
    with placed(path) as part:
        part.write_bytes(text.encode())
    return path


@contextmanager
def placed(path: Path) -> Iterator[Path]:
    """Give a path to write to, whose file then takes the place of `path`.

    Parameters
    ----------
    path : Path
        The file; its folder is made, a file that is there is replaced.

    Yields
    ------
    Path
        Beside `path`; what is written there is gone where writing it ends in an error.

    Raises
    ------
    InputError
        The file cannot be written; one that was there is as it was.
    """
    refuse_url(path)
    try:
        if path.is_dir():
            raise InputError("this is a folder; give another path", path=path)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as problem:
        why = problem.strerror or problem
        raise InputError(f"it cannot be written ({why}); give another path", path=path) from None
