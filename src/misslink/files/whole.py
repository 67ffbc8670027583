"""A file written whole or not at all: nobody ever sees half of one, or loses what was there."""

from __future__ import annotations

import os
from pathlib import Path

from misslink.errors import InputError

__all__ = ["put"]


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
    try:
        if path.is_dir():
            raise InputError("this is a folder; give another path", path=path)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(text.encode())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as problem:
        raise InputError(
            f"it cannot be written ({problem.strerror}); give another path", path=path
        ) from None
    return path
