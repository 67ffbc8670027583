"""Run folders in a storage: written there file by file, the manifest last, and fetched to be read.

Only a manifest makes a folder a run, so one that was half copied is never taken for a whole one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.storage import Stored, at, shown, stored

__all__ = ["StoredRun", "fetched"]

_MANIFEST = "manifest.json"
_HERE = Path(".misslink/runs")
_DIGITS = 8  # of a hash: enough for the runs of one working folder
_TRIAL = ".misslink-trial"


class StoredRun:
    """The folder of a storage that a run is to be written to.

    Parameters
    ----------
    url : str

    Raises
    ------
    InputError
        No such storage is known, or what speaks to it is not installed.
    """

    def __init__(self, url: str) -> None:
        self._manifest = at(f"{url.rstrip('/')}/{_MANIFEST}")
        self.url = shown(url).rstrip("/")
        name = self.url.rpartition("/")[2] or "run"
        digest = hashlib.sha256(self.url.encode()).hexdigest()[:_DIGITS]
        self.here = _HERE / f"{name}-{digest}"  # where it is made, and a copy stays

    def manifest(self) -> dict[str, Any] | None:
        """The manifest of the run that is there; None where there is none.

        Raises
        ------
        InputError
            The storage cannot be read, or this is no manifest.
        """
        raw = self._manifest.read()
        if raw is None:
            return None
        try:
            found = json.loads(raw)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise InputError("this is no manifest; name another --out", path=self._manifest)
        return found

    def try_writing(self) -> None:
        """Write a small file and remove it, so that it shows at once where nothing may be written.

        Raises
        ------
        InputError
            It may not or cannot be written.
        """
        trial = self._manifest.beside(_TRIAL)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / _TRIAL
            path.write_bytes(b"misslink tries whether it may write here\n")
            trial.put(path)
        trial.remove()

    def put(self, folder: Path, ours: Collection[str]) -> None:
        """Copy a run folder there; of a run that was there nothing of ours is left.

        Parameters
        ----------
        folder : Path
        ours : collection of str
            Names of the files that a run may consist of.

        Raises
        ------
        InputError
            It cannot be written. No manifest is there then, and the run is whole in `folder`.
        """
        files = {
            path.relative_to(folder).as_posix(): path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        last = files.pop(_MANIFEST)
        try:
            self._manifest.remove()
            for name in sorted(set(ours) - set(files) - {_MANIFEST}):
                self._manifest.beside(name).remove()
            for name, path in files.items():
                self._manifest.beside(name).put(path)
            self._manifest.put(last)
        except InputError as problem:
            raise InputError(
                f"{problem.problem}; the run is whole in {folder}: copy it from there, "
                f"{_MANIFEST} last",
                path=problem.path,
            ) from None


@contextlib.contextmanager
def fetched(url: str) -> Iterator[Path]:
    """Fetch the files of a run from a storage into a folder that is removed in the end.

    Raises
    ------
    InputError
        It is no run folder, or cannot be read; what is wrong with a file names it by its URL.
    """
    found: list[Stored] = stored(f"{url.rstrip('/')}/")[0]
    if _MANIFEST not in {file.name for file in found}:
        raise InputError(
            "this is no run folder (it has no manifest.json); "
            "name one that  misslink evaluate --out  wrote",
            path=shown(url),
        )
    with tempfile.TemporaryDirectory(prefix="misslink-") as temporary:
        folder = Path(temporary)
        for file in found:
            if file.name.endswith((".json", ".jsonl")):
                file.fetch(folder / file.name)
        try:
            yield folder
        except InputError as problem:
            path = (problem.path or "").replace(temporary, shown(url).rstrip("/"))
            raise InputError(
                problem.problem, path=path or None, line=problem.line, field=problem.field
            ) from None
