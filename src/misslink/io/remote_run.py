"""Run folders in a storage: upload with the manifest last, and download.

Only a manifest makes a folder a run, so a partial copy is never read as a complete one.
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
from misslink.io.storage import list_remote_files, redact_url, remote_file

_MANIFEST = "manifest.json"
_LOCAL_RUNS = Path(".misslink/runs")
_HASH_DIGITS = 8  # enough for the runs of one working folder
_WRITE_PROBE = ".misslink-trial"
_DATA_ENDINGS = (".json", ".jsonl")  # what is downloaded; reports are not


class RemoteRun:
    """The folder of a storage that a run is to be written to.

    Parameters
    ----------
    url : str

    Raises
    ------
    InputError
        The storage is unknown, or its package is not installed.
    """

    def __init__(self, url: str) -> None:
        _require_folder_url(url)
        self._url = url.rstrip("/")
        self._manifest = remote_file(f"{self._url}/{_MANIFEST}")
        self.url = redact_url(url).rstrip("/")
        name = self.url.rpartition("/")[2] or "run"
        digest = hashlib.sha256(self.url.encode()).hexdigest()[:_HASH_DIGITS]
        self.local = _LOCAL_RUNS / f"{name}-{digest}"  # where it is written, and a copy stays

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest of the remote run; None without one.

        Raises
        ------
        InputError
            The storage cannot be read, or this is no manifest.
        """
        raw = self._manifest.read()
        if raw is None:
            return None
        manifest = _parse_object(raw)
        if manifest is None:
            raise InputError("this is no manifest; name another --out", path=self._manifest)
        return manifest

    def download_newer(self, partial: Path, documents: Collection[str]) -> None:
        """Download the remote run if a new run may reuse parts of it and the local copy is older.

        So results of later commands, and the traces of a run whose judging was not finished, are
        available on a machine that did not create them, such as a nightly CI runner.

        Parameters
        ----------
        partial : Path
            A folder that does not exist, on the disk of `local`.
        documents : collection of str
            Names of the files that can be reused.

        Raises
        ------
        InputError
            The storage cannot be read.
        """
        manifest, local = self.manifest(), self.local / _MANIFEST
        local_manifest = _parse_object(local.read_bytes()) if local.is_file() else None
        if manifest is None or _created_time(manifest) <= _created_time(local_manifest or {}):
            return
        files = {file.name: file for file in list_remote_files(f"{self._url}/")[0]}
        if not manifest.get("unfinished") and not set(files).intersection(documents):
            return
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, file in files.items():
            if name.endswith(_DATA_ENDINGS):
                file.fetch(partial / name)
        shutil.rmtree(self.local, ignore_errors=True)
        partial.rename(self.local)

    def probe_writing(self) -> None:
        """Write and remove a small file, so that a missing permission shows at once.

        Raises
        ------
        InputError
            Writing is not allowed or fails.
        """
        probe = self._manifest.sibling(_WRITE_PROBE)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / _WRITE_PROBE
            path.write_bytes(b"misslink tests whether it can write here\n")
            probe.put(path)
        probe.remove()

    def upload(self, folder: Path, run_files: Collection[str]) -> None:
        """Copy a run folder; run files of a former run are removed.

        Parameters
        ----------
        folder : Path
        run_files : collection of str
            Names of the files that a run can have.

        Raises
        ------
        InputError
            It cannot be written. Then it has no manifest there, and is complete in `folder`.
        """
        files = {
            path.relative_to(folder).as_posix(): path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        manifest = files.pop(_MANIFEST)
        try:
            self._manifest.remove()
            for name in sorted(set(run_files) - set(files) - {_MANIFEST}):
                self._manifest.sibling(name).remove()
            for name, path in files.items():
                self._manifest.sibling(name).put(path)
            self._manifest.put(manifest)
        except InputError as error:
            raise InputError(
                f"{error.problem}; the run is complete in {folder}: copy it from there, "
                f"{_MANIFEST} last",
                path=error.path,
            ) from None


def _parse_object(raw: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _created_time(manifest: Mapping[str, Any]) -> dt.datetime:
    """When a run was created; without a time it is the oldest."""
    with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
        return dt.datetime.fromisoformat(manifest["created"]).astimezone()
    return dt.datetime.min.replace(tzinfo=dt.UTC)


def _require_folder_url(url: str) -> None:
    """Reject a bare scheme, and a signed URL: it names one file, and a run is a folder."""
    if not url.partition("://")[2].strip("/"):
        raise InputError("this address names no folder; write one behind it", path=redact_url(url))
    if url.startswith("http") and "?" in url:
        raise InputError(
            "a run is a folder, and an address with a ? names one file; name the folder without it",
            path=redact_url(url),
        )


@contextlib.contextmanager
def fetch_run(url: str) -> Iterator[Path]:
    """Download the files of a run to a temporary folder.

    Raises
    ------
    InputError
        It is no run folder, or cannot be read; errors in a file name it by its URL.
    """
    _require_folder_url(url)
    files = list_remote_files(f"{url.rstrip('/')}/")[0]
    if _MANIFEST not in {file.name for file in files}:
        raise InputError(
            "this is no run folder (it has no manifest.json); "
            "name one that  misslink evaluate --out  wrote",
            path=redact_url(url),
        )
    with tempfile.TemporaryDirectory(prefix="misslink-") as temporary:
        folder = Path(temporary)
        for file in files:
            if file.name.endswith(_DATA_ENDINGS):
                file.fetch(folder / file.name)
        try:
            yield folder
        except InputError as error:
            path = (error.path or "").replace(temporary, redact_url(url).rstrip("/"))
            raise InputError(
                error.problem, path=path or None, line=error.line, field=error.field
            ) from None
