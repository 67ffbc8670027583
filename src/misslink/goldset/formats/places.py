"""Where an export goes: a file, or a folder of its own whose files are written whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from misslink.errors import InputError
from misslink.files.whole import put
from misslink.goldset.formats.format import Options

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


def refuse_other(path: Path, *, overwrite: bool, read: Collection[Path] = ()) -> None:
    """Refuse a file that is there already, and one that is read in any case."""
    if path.is_dir():
        raise InputError("this is a folder; name a file", path=path)
    if path.resolve() in {each.resolve() for each in read}:
        raise InputError("this is read; name another place with --out", path=path)
    if path.exists() and not overwrite:
        raise InputError("this file is there already; name another, or add --overwrite", path=path)


def write_one(path: Path, text: str, options: Options) -> None:
    """Write a file that is not there yet, or that may be replaced."""
    refuse_other(path, overwrite=options.overwrite, read=options.read)
    put(text, path)


def write_all(folder: Path, files: Mapping[str, str], options: Options) -> None:
    """Write files into a folder; none of them where one may not be written."""
    for name in files:
        refuse_other(folder / name, overwrite=options.overwrite, read=options.read)
    for name, text in files.items():
        put(text, folder / name)
