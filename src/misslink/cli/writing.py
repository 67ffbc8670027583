"""Where a command may write a file, asked before any work is done for it."""

from __future__ import annotations

import os
from pathlib import Path

from misslink.errors import InputError
from misslink.files.addresses import refuse_url

__all__ = ["check_place", "is_part_of_run"]

_REPLAYS = "replays.jsonl"  # what replay keeps beside a run: generations that were paid for


def check_place(path: Path, option: str) -> None:
    """Refuse a place where no file can be put.

    Parameters
    ----------
    path : Path
        The file that is to be written.
    option : str
        What names it on the command line, such as ``--holes``.

    Raises
    ------
    InputError
        It is a folder, or it or its folder cannot be written, or there is no such folder.
    """
    refuse_url(path)
    folder = path.resolve().parent
    if path.is_dir():
        problem = "this is a folder"
    elif not folder.is_dir():
        problem = "its folder does not exist"
    elif not os.access(folder, os.W_OK | os.X_OK):
        problem = "its folder cannot be written"
    elif path.exists() and not os.access(path, os.W_OK):
        problem = "it cannot be written"
    else:
        return
    raise InputError(f"{problem}; name another file with {option}", path=path)


def is_part_of_run(path: Path) -> bool:
    """Whether a file is, or would be, one that a run folder is made of, its reports among them."""
    from misslink.files.runfolder import OURS

    at = path.resolve()
    named = at.name.casefold() in OURS | {_REPLAYS}  # some disks know no capitals
    return named and (at.parent / "manifest.json").is_file()
