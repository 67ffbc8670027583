"""Code that goes to machines which do not have it: a file and what lies beside it."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from misslink.errors import InputError

__all__ = ["LARGEST", "Parcel", "packed", "unpacked"]

LARGEST = 64 * 2**20  # bytes of files; an index or a model is better put where all nodes see it
_LEFT_OUT = {"__pycache__", "node_modules"}


@dataclass(frozen=True)
class Parcel:
    """A folder's files, and how what was named is named there.

    Parameters
    ----------
    spec : str
        ``file.py:name`` or ``package.module:name``, as seen from the folder.
    content : bytes
        The files as a zip archive.
    """

    spec: str
    content: bytes


def packed(spec: str, folder: Path) -> Parcel | None:
    """Pack the code that a spec names.

    Of ``path/to/file.py:name`` that is the file's folder; of ``package.module:name`` the package,
    where it lies in `folder`. Hidden files, byte code, links and virtual environments stay.

    Parameters
    ----------
    spec : str
    folder : Path
        Where paths start.

    Returns
    -------
    Parcel or None
        None where it names nothing here: the workers have it installed, or say that they do not.

    Raises
    ------
    InputError
        The files are more than 64 MiB.
    """
    target, _, name = spec.rpartition(":")
    if target.endswith(".py") or "/" in target:
        file = (folder / Path(target).expanduser()).resolve()
        if not file.is_file():
            return None
        return Parcel(f"{file.name}:{name}", _zipped(file.parent, file.parent, spec))
    top = target.partition(".")[0]
    if top and (folder / top).is_dir():
        return Parcel(spec, _zipped(folder, folder / top, spec))
    if top and (folder / f"{top}.py").is_file():
        return Parcel(spec, _zipped(folder, folder, spec))
    return None


def unpacked(parcel: Parcel, within: Path | None = None) -> Path:
    """Unpack into a new folder, and return it.

    Parameters
    ----------
    parcel : Parcel
    within : Path or None
        Where the folder is made. None: among the machine's temporary files.
    """
    folder = Path(tempfile.mkdtemp(prefix="misslink-app-", dir=within))
    with zipfile.ZipFile(io.BytesIO(parcel.content)) as archive:
        archive.extractall(folder)
    return folder


def _zipped(root: Path, within: Path, spec: str) -> bytes:
    content, size = io.BytesIO(), 0
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in _files(within):
            size += file.stat().st_size
            if size > LARGEST:
                raise InputError(
                    f"{within} goes to the cluster with {spec}, and is more than "
                    f"{LARGEST // 2**20} MiB; put the app's code in a folder of its own, and its "
                    "data where every node finds them"
                )
            # Not archive.write: that refuses files dated before 1980.
            archive.writestr(file.relative_to(root).as_posix(), file.read_bytes())
    return content.getvalue()


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(
            name
            for name in folders
            if name not in _LEFT_OUT
            and not name.startswith(".")
            and not (here / name / "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            file = here / name
            if not name.startswith(".") and file.is_file() and not file.is_symlink():
                yield file
