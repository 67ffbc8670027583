"""Pack the code of an app or judge for machines that do not have it."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from misslink.errors import InputError

MAX_BUNDLE_BYTES = (
    64 * 2**20
)  # bytes of files; an index or a model is better put where all nodes see it
_EXCLUDED_FOLDERS = {"__pycache__", "node_modules"}


@dataclass(frozen=True)
class CodeSource:
    """An app or a judge as a worker finds it.

    Parameters
    ----------
    spec : str or None
        Where it is imported from: ``file.py:name`` or ``package.module:name``, as seen from the
        folder of `archive` if there is one.
    pickled : bytes or None
        The thing itself, where it was given as an object.
    archive : bytes or None
        Its code as a zip archive, for a worker that does not see the driver's folder.
    """

    spec: str | None
    pickled: bytes | None = field(default=None, repr=False)
    archive: bytes | None = field(default=None, repr=False)


def pack_code(spec: str, folder: Path) -> CodeSource | None:
    """Pack the code that a spec names.

    Of ``path/to/file.py:name`` that is the file's folder; of ``package.module:name`` the package, if
    it is in `folder`. Hidden files, byte code, links and virtual environments are left out. None
    where the spec names nothing in `folder`: then the workers need it installed. Raises InputError
    above 64 MiB.
    """
    target, _, name = spec.rpartition(":")
    if target.endswith(".py") or "/" in target:
        file = (folder / Path(target).expanduser()).resolve()
        if not file.is_file():
            return None
        archive = _zip_folder(file.parent, file.parent, spec)
        return CodeSource(f"{file.name}:{name}", archive=archive)
    top = target.partition(".")[0]
    if top and (folder / top).is_dir():
        return CodeSource(spec, archive=_zip_folder(folder, folder / top, spec))
    if top and (folder / f"{top}.py").is_file():
        return CodeSource(spec, archive=_zip_folder(folder, folder, spec))
    return None


def unpack_code(archive: bytes, within: Path | None = None) -> Path:
    """Unpack into a new folder in `within`, else among the machine's temporary files."""
    folder = Path(tempfile.mkdtemp(prefix="misslink-app-", dir=within))
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        files.extractall(folder)
    return folder


def _zip_folder(root: Path, within: Path, spec: str) -> bytes:
    content, size = io.BytesIO(), 0
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in _bundle_files(within):
            size += file.stat().st_size
            if size > MAX_BUNDLE_BYTES:
                raise InputError(
                    f"{within} is uploaded to the cluster with {spec}, and is larger than "
                    f"{MAX_BUNDLE_BYTES // 2**20} MiB. Move the app's code to a separate folder, and its data "
                    "to a path that every node can read"
                )
            # Not archive.write: that refuses files dated before 1980.
            archive.writestr(file.relative_to(root).as_posix(), file.read_bytes())
    return content.getvalue()


def _bundle_files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        directory = Path(place)
        folders[:] = sorted(
            name
            for name in folders
            if name not in _EXCLUDED_FOLDERS
            and not name.startswith(".")
            and not (directory / name / "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            file = directory / name
            if not name.startswith(".") and file.is_file() and not file.is_symlink():
                yield file
