"""Run folders in a storage: written there file by file, the manifest last, and fetched to be read.

Only a manifest makes a folder a run, so one that was half copied is never taken for a whole one.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.addresses import shown
from misslink.files.storage import Stored, at, stored

__all__ = ["StoredRun", "fetched"]

_MANIFEST = "manifest.json"
_HERE = Path(".misslink/runs")
_DIGITS = 8  # of a hash: enough for the runs of one working folder
_TRIAL = ".misslink-trial"
_READ = (".json", ".jsonl")  # what is read of a run; its pages are not


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
        _refuse_no_folder(url)
        self._url = url.rstrip("/")
        self._manifest = at(f"{self._url}/{_MANIFEST}")
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
        found = _parsed(raw)
        if found is None:
            raise InputError("this is no manifest; name another --out", path=self._manifest)
        return found

    def bring(self, aside: Path, kept: Collection[str]) -> None:
        """Fetch the run that is there, where a new one takes over something of it.

        So it is on a machine that did not make it, such as a fresh one each night: what later
        commands found of it, and the traces of one whose judging was left unfinished, stay. A run
        that lies here and is as new is the same, or a newer one.

        Parameters
        ----------
        aside : Path
            A folder that is not there, on the disk of `here`.
        kept : collection of str
            Names of the files that are taken over.

        Raises
        ------
        InputError
            The storage cannot be read.
        """
        held = self.manifest()
        if held is None or _created(held) <= _created(_read(self.here / _MANIFEST)):
            return
        found = {file.name: file for file in stored(f"{self._url}/")[0]}
        if not held.get("unfinished") and not set(found).intersection(kept):
            return
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        for name, file in found.items():
            if name.endswith(_READ):
                file.fetch(aside / name)
        shutil.rmtree(self.here, ignore_errors=True)
        aside.rename(self.here)

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


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _read(manifest: Path) -> dict[str, Any]:
    return (_parsed(manifest.read_bytes()) or {}) if manifest.is_file() else {}


def _created(manifest: Mapping[str, Any]) -> dt.datetime:
    """When a run was made; one that does not tell is older than all that do."""
    with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
        return dt.datetime.fromisoformat(manifest["created"]).astimezone()
    return dt.datetime.min.replace(tzinfo=dt.UTC)


def _refuse_no_folder(url: str) -> None:
    """Refuse a bare scheme, and a signed address: that is one file's, and a run is a folder."""
    if not url.partition("://")[2].strip("/"):
        raise InputError("this address names no folder; write one behind it", path=shown(url))
    if url.startswith("http") and "?" in url:
        raise InputError(
            "a run is a folder, and an address with a ? names one file; name the folder without it",
            path=shown(url),
        )


@contextlib.contextmanager
def fetched(url: str) -> Iterator[Path]:
    """Fetch the files of a run from a storage into a folder that is removed in the end.

    Raises
    ------
    InputError
        It is no run folder, or cannot be read; what is wrong with a file names it by its URL.
    """
    _refuse_no_folder(url)
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
            if file.name.endswith(_READ):
                file.fetch(folder / file.name)
        try:
            yield folder
        except InputError as problem:
            path = (problem.path or "").replace(temporary, shown(url).rstrip("/"))
            raise InputError(
                problem.problem, path=path or None, line=problem.line, field=problem.field
            ) from None
