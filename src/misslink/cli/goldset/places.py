"""Where a command about gold sets may write: never over what it reads, and nothing twice."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping
from pathlib import Path

from misslink.cli.writing import check_place
from misslink.errors import InputError

__all__ = ["check_places", "refuse_shard"]


def check_places(written: Mapping[str, Path | None], read: Iterable[Path | None]) -> None:
    """Refuse files that cannot be written or are read; --overwrite does not mean those.

    Parameters
    ----------
    written : mapping of str to Path or None
        By the option that names it, such as ``--out``.
    read : iterable of Path or None
        Files and folders; what lies in such a folder is read too.

    Raises
    ------
    InputError
        See above, or two options name the same file.
    """
    inputs = {file.resolve() for path in read if path is not None for file in _read_of(path)}
    taken: dict[Path, str] = {}
    for option, path in written.items():
        if path is None:
            continue
        check_place(path, option)
        at = path.resolve()
        if at in inputs or (at.exists() and inputs.intersection(at.parents)):
            raise InputError(f"this is read; name another file with {option}", path=path)
        if at in taken:
            raise InputError(
                f"{taken[at]} and {option} name the same file; give each its own", path=path
            )
        taken[at] = option


def refuse_shard(path: Path, goldset: Path) -> None:
    """Refuse a file that is, or would become, a part of the gold set that is read.

    Raises
    ------
    InputError
    """
    at, inputs = path.resolve(), {file.resolve() for file in _read_of(goldset)}
    if at in inputs or at.parent in inputs:
        raise InputError("this is read; name another folder with --out", path=goldset)


def _read_of(path: Path) -> Iterable[Path]:
    """The files and folders that a path means, which may be a pattern."""
    fitting = [] if path.exists() else glob.glob(str(path), recursive=True)  # noqa: PTH207
    return [path, *map(Path, fitting)]
