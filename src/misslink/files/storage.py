"""Files in a storage that fsspec reaches, such as ``s3://`` or ``gs://``; no secret is ever told.

What is shown of a URL is what `misslink.files.addresses.shown` returns, also where a package's own
error repeats it.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError, MissingExtraError, MisslinkError, did_you_mean
from misslink.files.addresses import shown, without_secrets

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["Stored", "at", "stored"]

_REFUSED = (401, 403)
_NOT_FOUND = 404


@dataclass(frozen=True)
class Stored:
    """A file in a storage; its text is its URL without any secret.

    Parameters
    ----------
    filesystem : fsspec.AbstractFileSystem
    key : str
        How the storage names it.
    url : str
        For people, as `shown` returns it.
    """

    filesystem: Any = field(repr=False)
    key: str = field(repr=False)
    url: str

    def __str__(self) -> str:
        """The URL without any secret."""
        return self.url

    @property
    def name(self) -> str:
        """What follows the last slash."""
        return self.url.rstrip("/").rpartition("/")[2]

    def open(self) -> io.BufferedReader:
        """Open it to be read; whatever the storage says while it is read comes as a sentence.

        Raises
        ------
        InputError
            It is not there, or may not or cannot be read.
        """
        with _told(self.url):
            raw = self.filesystem.open(self.key, "rb")
        return io.BufferedReader(_Told(raw, self.url), 1 << 20)

    def read(self) -> bytes | None:
        """What it holds; None where there is none.

        Raises
        ------
        InputError
            It may not or cannot be read.
        """
        with _told(self.url):
            try:
                found: bytes = self.filesystem.cat_file(self.key)
            except FileNotFoundError:
                return None
        return found

    def exists(self) -> bool:
        """Whether there is such a file."""
        with _told(self.url):
            return bool(self.filesystem.isfile(self.key))

    def fetch(self, into: Path) -> Path:
        """Copy it to this disk.

        Raises
        ------
        InputError
            It is not there, or may not or cannot be read.
        """
        with _told(self.url):
            self.filesystem.get_file(self.key, str(into))
        return into

    def put(self, path: Path) -> None:
        """Copy a file of this disk to it; one that is there is replaced.

        Raises
        ------
        InputError
            It may not or cannot be written.
        """
        with _told(self.url, "written"):
            try:
                self.filesystem.put_file(str(path), self.key)
            except FileNotFoundError:  # where folders are things of their own
                self.filesystem.makedirs(self.key.rpartition("/")[0], exist_ok=True)
                self.filesystem.put_file(str(path), self.key)

    def remove(self) -> None:
        """Remove it, where it is there.

        Raises
        ------
        InputError
            It may not or cannot be removed.
        """
        with _told(self.url, "written"), contextlib.suppress(FileNotFoundError):
            self.filesystem.rm_file(self.key)

    def beside(self, name: str) -> Stored:
        """The file of this name in the same folder."""
        return Stored(
            self.filesystem,
            f"{self.key.rpartition('/')[0]}/{name}",
            f"{self.url.rpartition('/')[0]}/{name}",
        )


def at(url: str) -> Stored:
    """Return what stands at a URL, whether it is there or not.

    Raises
    ------
    MissingExtraError
        fsspec is not installed.
    InputError
        No such storage is known, or the package that speaks to it is not installed.
    """
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError("fsspec, which reads addresses such as s3://,", "cloud") from None
    told = shown(url)
    scheme = url.partition("://")[0].rpartition("::")[2].lower()
    known = fsspec.available_protocols()
    if scheme not in known:
        hint = did_you_mean(scheme, known) or "fsspec knows s3, gs, abfs, https and many more"
        raise InputError(f"no storage is called '{scheme}'; {hint}", path=told)
    with _told(told):
        filesystem, key = fsspec.core.url_to_fs(url)
        filesystem.invalidate_cache()
    return Stored(filesystem, key, told.rstrip("/"))


def stored(url: str) -> tuple[list[Stored], str]:
    """Return the files that a URL names, and whether it is a file, a folder or a pattern.

    Raises
    ------
    InputError
        There is nothing of the name, or the storage cannot be read.
    """
    place = at(url)
    filesystem, key = place.filesystem, place.key
    with _told(place.url):
        if url.endswith("/"):
            return _files(filesystem, filesystem.ls(key, detail=True)), "folder"
        if filesystem.isfile(key):
            return [place], "file"
        if any(mark in key for mark in ("*" if url.startswith("http") else "*?[")):
            found = filesystem.glob(key, detail=True).values()
            return _files(filesystem, found), "pattern"
        if filesystem.isdir(key):
            return _files(filesystem, filesystem.ls(key, detail=True)), "folder"
        filesystem.open(key, "rb").close()  # which says why, where a server refuses to
    raise InputError("there is nothing of this name", path=place.url)


def _files(filesystem: Any, found: Any) -> list[Stored]:
    keys = [entry["name"] for entry in found if entry["type"] == "file"]
    return [
        Stored(filesystem, key, without_secrets(filesystem.unstrip_protocol(key))) for key in keys
    ]


@contextlib.contextmanager
def _told(url: str, done: str = "read") -> Iterator[None]:
    """Say in a sentence what the package that speaks to a storage raises, whatever that is."""
    try:
        yield
    except MisslinkError:
        raise
    except Exception as problem:  # noqa: BLE001 - each package raises what it likes
        raise InputError(_sentence(problem, done), path=url) from None


def _sentence(problem: BaseException, done: str) -> str:
    cause = problem.__cause__
    if cause is not None and getattr(cause, "status", _NOT_FOUND) != _NOT_FOUND:
        return _sentence(cause, done)  # a server's refusal, told as a file that is not found
    if isinstance(problem, PermissionError) or getattr(problem, "status", None) in _REFUSED:
        return (
            f"this may not be {done}: the storage refuses it; check the credentials that its own "
            "package takes (its variables or its file)"
        )
    if isinstance(problem, FileNotFoundError):
        return "there is nothing of this name"
    if isinstance(problem, IsADirectoryError):
        return "this is a folder; name a file in it"
    said = " ".join(without_secrets(str(problem)).split())
    if isinstance(problem, ImportError):
        return f"this storage needs a package of its own ({said})"
    told = f"{type(problem).__name__}{f': {said}' if said else ''}"
    return (
        f"this storage cannot be {done} ({told}); check the address, the network and the "
        "credentials"
    )


class _Told(io.RawIOBase):
    """A file of a storage whose troubles are told as sentences."""

    def __init__(self, raw: Any, url: str) -> None:
        super().__init__()
        self._raw = raw
        self._url = url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        """Whether it is; a server that gives no parts knows no size either."""
        return bool(self._raw.seekable()) and getattr(self._raw, "size", 0) is not None

    def readinto(self, buffer: WriteableBuffer) -> int:
        with _told(self._url), memoryview(buffer) as view:
            found = self._raw.read(len(view))
            view[: len(found)] = found
            return len(found)

    def seek(self, offset: int, whence: int = 0) -> int:
        with _told(self._url):
            place: int = self._raw.seek(offset, whence)
            return place

    def tell(self) -> int:
        with _told(self._url):
            place: int = self._raw.tell()
            return place

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()
