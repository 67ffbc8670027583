"""Where an export goes: a file, or a folder of its own whose files are written whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from misslink.errors import InputError
from misslink.files.whole import put

__all__ = ["folder_of", "refuse_other", "write_all", "write_one"]


def folder_of(target: Path) -> Path:
    """Return a path that may be a folder.

    Raises
    ------
    InputError
        It is a file.
    """
    if target.exists() and not target.is_dir():
        raise InputError("this is a file; this format is a folder: name a new one", path=target)
    return target


def refuse_other(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that is there already."""
    if path.is_dir():
        raise InputError("this is a folder; name a file", path=path)
    if path.exists() and not overwrite:
        raise InputError("this file is there already; name another, or add --overwrite", path=path)


def write_one(path: Path, text: str, *, overwrite: bool) -> None:
    """Write a file that is not there yet."""
    refuse_other(path, overwrite=overwrite)
    put(text, path)


def write_all(folder: Path, files: Mapping[str, str], *, overwrite: bool) -> None:
    """Write files into a folder; none of them where one is there already."""
    for name in files:
        refuse_other(folder / name, overwrite=overwrite)
    for name, text in files.items():
        put(text, folder / name)
