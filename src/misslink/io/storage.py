"""Files on disk or in a storage that fsspec reaches: their content, packed or not."""

from __future__ import annotations

import contextlib
import glob
import gzip
import io
import logging
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError, MissingExtraError, MisslinkError, did_you_mean
from misslink.io.secrets import redact_addresses

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_log = logging.getLogger(__name__)

# A scheme has two letters or more (C:/ is a disk), and may stand before another (zip::s3).
_URL = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]+::)*[A-Za-z][A-Za-z0-9+.-]+):(/+)(?=[^/]|\Z)")


def as_url(source: str | Path) -> str | None:
    """Return the URL; None for a path of this disk.

    A `Path` made of a URL has lost a slash of it, which is put back.

    >>> as_url("s3://bucket/gold"), as_url(Path("s3://bucket/gold")), as_url("gold/part-1.jsonl")
    ('s3://bucket/gold', 's3://bucket/gold', None)
    """
    text = str(source)
    match = _URL.match(text)
    if match is None:
        return None
    if len(match[2]) > 1:
        return text
    slashes = ":///" if match[1].lower() == "file" else "://"
    whole = f"{match[1]}{slashes}{text[match.end() :]}"
    return re.sub(r"(::[A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])", r"\1://", whole)


def redact_url(source: str | Path) -> str:
    """Return a path or URL as it may be written down: without password, token and signature.

    >>> redact_url("https://ada:secret@example.org/gold.jsonl?sig=0123")
    'https://example.org/gold.jsonl'
    >>> redact_url("s3://bucket/part-?.parquet")
    's3://bucket/part-?.parquet'
    """
    url = as_url(source)
    if url is None:
        return redact_addresses(str(source))
    # As a whole, for a name in it may hold blanks and quotes, by which the end of one is found
    # that stands in a sentence.
    marks = "?#" if "http" in url.partition("://")[0].rpartition("::")[2].lower() else ""
    for mark in marks:
        url = url.partition(mark)[0]
    return redact_addresses(url)


def require_local_path(source: str | Path) -> None:
    """Refuse a URL where a file or folder of this disk is needed.

    Raises
    ------
    InputError
        It is one; a path made of it would make folders that are called as it begins.
    """
    if as_url(source) is not None:
        raise InputError(
            "this is an address, and here a file or folder of this disk is needed; name one",
            path=redact_url(source),
        )


_DENIED_STATUSES = (401, 403)
_NOT_FOUND = 404


@dataclass(frozen=True)
class RemoteFile:
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
        with _storage_errors(self.url):
            raw = self.filesystem.open(self.key, "rb")
        return io.BufferedReader(_RemoteReader(raw, self.url), 1 << 20)

    def read(self) -> bytes | None:
        """What it holds; None where there is none.

        Raises
        ------
        InputError
            It may not or cannot be read.
        """
        with _storage_errors(self.url):
            try:
                content: bytes = self.filesystem.cat_file(self.key)
            except FileNotFoundError:
                return None
        return content

    def exists(self) -> bool:
        """Whether there is such a file."""
        with _storage_errors(self.url):
            return bool(self.filesystem.isfile(self.key))

    def fetch(self, target: Path) -> Path:
        """Copy it to this disk.

        Raises
        ------
        InputError
            It is not there, or may not or cannot be read.
        """
        with _storage_errors(self.url):
            self.filesystem.get_file(self.key, str(target))
        return target

    def put(self, path: Path) -> None:
        """Copy a file of this disk to it; one that is there is replaced.

        Raises
        ------
        InputError
            It may not or cannot be written.
        """
        with _storage_errors(self.url, "written"):
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
        with _storage_errors(self.url, "written"), contextlib.suppress(FileNotFoundError):
            self.filesystem.rm_file(self.key)

    def sibling(self, name: str) -> RemoteFile:
        """The file of this name in the same folder."""
        return RemoteFile(
            self.filesystem,
            f"{self.key.rpartition('/')[0]}/{name}",
            f"{self.url.rpartition('/')[0]}/{name}",
        )


def remote_file(url: str) -> RemoteFile:
    """Return the file at a URL, whether it exists or not.

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
    shown_url = redact_url(url)
    scheme = url.partition("://")[0].rpartition("::")[2].lower()
    protocols = fsspec.available_protocols()
    if scheme not in protocols:
        hint = did_you_mean(scheme, protocols) or "fsspec knows s3, gs, abfs, https and many more"
        raise InputError(f"no storage is called '{scheme}'; {hint}", path=shown_url)
    with _storage_errors(shown_url):
        filesystem, key = fsspec.core.url_to_fs(url)
        filesystem.invalidate_cache()
    return RemoteFile(filesystem, key, shown_url.rstrip("/"))


def list_remote_files(url: str) -> tuple[list[RemoteFile], str]:
    """Return the files that a URL names, and whether it is a file, a folder or a pattern.

    Raises
    ------
    InputError
        There is nothing of the name, or the storage cannot be read.
    """
    place = remote_file(url)
    filesystem, key = place.filesystem, place.key
    with _storage_errors(place.url):
        is_folder = url.endswith("/")
        if not is_folder and filesystem.isfile(key):
            return [place], "file"
        if not is_folder and any(
            mark in key for mark in ("*" if url.startswith("http") else "*?[")
        ):
            entries, kind = filesystem.glob(key, detail=True).values(), "pattern"
        elif is_folder or filesystem.isdir(key):
            entries, kind = filesystem.ls(key, detail=True), "folder"
        else:
            filesystem.open(key, "rb").close()  # which says why, where a server refuses to
            raise InputError("there is no file or folder with this name", path=place.url)
        keys = [entry["name"] for entry in entries if entry["type"] == "file"]
        shown = [redact_addresses(filesystem.unstrip_protocol(key)) for key in keys]
        return list(map(RemoteFile, repeat(filesystem), keys, shown)), kind


@contextlib.contextmanager
def _storage_errors(url: str, done: str = "read") -> Iterator[None]:
    """Raise InputError in place of any error of the storage's package."""
    try:
        yield
    except MisslinkError:
        raise
    except Exception as problem:  # noqa: BLE001 - each package raises what it likes
        raise InputError(_error_message(problem, done), path=url) from None


def _error_message(problem: BaseException, done: str) -> str:
    cause = problem.__cause__
    if cause is not None and getattr(cause, "status", _NOT_FOUND) != _NOT_FOUND:
        return _error_message(cause, done)  # a server's refusal, reported as a missing file
    if isinstance(problem, PermissionError) or getattr(problem, "status", None) in _DENIED_STATUSES:
        return (
            f"the storage does not allow this to be {done}; check the credentials that its own "
            "package takes (its variables or its file)"
        )
    if isinstance(problem, FileNotFoundError):
        return "there is no file or folder with this name"
    if isinstance(problem, IsADirectoryError):
        return "this is a folder; name a file in it"
    reason = " ".join(redact_addresses(str(problem)).split())
    if isinstance(problem, ImportError):
        return f"this storage needs another package ({reason})"
    detail = f"{type(problem).__name__}{f': {reason}' if reason else ''}"
    return (
        f"this storage cannot be {done} ({detail}); check the address, the network and the "
        "credentials"
    )


class _RemoteReader(io.RawIOBase):
    """A file of a storage whose errors become InputErrors."""

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
        with _storage_errors(self._url), memoryview(buffer) as view:
            chunk = self._raw.read(len(view))
            view[: len(chunk)] = chunk
            return len(chunk)

    def seek(self, offset: int, whence: int = 0) -> int:
        with _storage_errors(self._url):
            place: int = self._raw.seek(offset, whence)
            return place

    def tell(self) -> int:
        with _storage_errors(self._url):
            place: int = self._raw.tell()
            return place

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


InputFile = Path | RemoteFile

_GZIP_MAGIC = b"\x1f\x8b"  # what a packed file begins with; no text in UTF-8 does
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # what a text in UTF-16 begins with
_BUFFER_BYTES = 1 << 18  # bytes
_MAX_RATIO = 300  # of unpacked to packed bytes; JSON that repeats its passages reaches 100
_MAX_BOMB_BYTES = 1 << 26  # bytes that may be unpacked whatever the ratio


@contextlib.contextmanager
def open_decompressed(file: InputFile) -> Iterator[io.BufferedReader]:
    """Open a file to be read piece by piece; of one that gzip or zstd packed, what is within.

    The first bytes tell the compression, not the name. Errors that show only
    while it is read comes as a sentence too.

    Parameters
    ----------
    file : Path or Stored

    Raises
    ------
    InputError
        There is no such file, it cannot be read, or what is packed is damaged.
    """
    try:
        opened: Any = (
            file.open() if isinstance(file, RemoteFile) else file.open("rb", _BUFFER_BYTES)
        )
        with opened as raw:
            head = raw.peek(len(_ZSTD_MAGIC))
            if head.startswith(_GZIP_MAGIC):
                packed: Any = gzip.GzipFile(fileobj=raw)
            elif head.startswith(_ZSTD_MAGIC):
                import pyarrow as pa

                packed = pa.CompressedInputStream(raw, "zstd")
            else:
                yield raw
                return
            unpacked: Any = _UnpackedReader(packed, raw, file)
            with io.BufferedReader(unpacked, _BUFFER_BYTES) as content:
                yield content
    except FileNotFoundError:
        require_local_path(str(file))
        raise InputError("there is no such file", path=file) from None
    except IsADirectoryError:
        raise InputError("this is a folder; name a file in it", path=file) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise InputError(
            f"this gzip file is damaged ({problem}); make it again", path=file
        ) from None
    except OSError as problem:
        if problem.strerror is None:  # Arrow's, of a stream that it unpacks
            raise InputError(
                f"this zstd file is damaged ({' '.join(str(problem).split())}); make it again",
                path=file,
            ) from None
        raise InputError(f"it cannot be read: {problem.strerror}", path=file) from None


class _UnpackedReader(io.RawIOBase):
    """What is within a packed file, unless that is a bomb."""

    def __init__(self, unpacked: Any, packed: io.BufferedReader, file: InputFile) -> None:
        super().__init__()
        self._unpacked, self._packed, self._file = unpacked, packed, file
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        with memoryview(buffer) as view:
            chunk = self._unpacked.read(len(view))
            view[: len(chunk)] = chunk
        self._count += len(chunk)
        if self._count > max(_MAX_BOMB_BYTES, _MAX_RATIO * self._packed.tell()):
            raise InputError(
                f"this unpacks to more than {_MAX_RATIO} times its size; unpack it yourself, and "
                "name the unpacked file",
                path=self._file,
            )
        return len(chunk)

    def close(self) -> None:
        self._unpacked.close()
        super().close()


def read_bytes(path: InputFile) -> bytes:
    """Return the bytes of a file; of one that gzip or zstd packed, by whatever name, those within.

    Raises
    ------
    InputError
        There is no such file, it cannot be read, or what is packed is damaged.
    """
    with open_decompressed(path) as file:
        return file.read()


def decode_utf8(raw: bytes, path: object, line: int = 1) -> str:
    """Return the text of a file in UTF-8, without the mark that some programs begin it with.

    Parameters
    ----------
    raw : bytes
    path : Path or Stored
    line : int
        On which `raw` begins; the mark is looked for on the first.

    Raises
    ------
    InputError
        It is in another encoding; with the line.
    """
    try:
        return raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as problem:
        raise encoding_error(problem, path, line) from None


def encoding_error(problem: UnicodeDecodeError, path: object, line: int = 1) -> InputError:
    """Return the error that says which byte is not UTF-8, and what to do.

    Parameters
    ----------
    problem : UnicodeDecodeError
    path : Path or Stored
    line : int
        Of the file, on which what was decoded begins.
    """
    raw = bytes(problem.object)
    encoding = "UTF-16" if line == 1 and raw.startswith(_UTF16_MARKS) else "WINDOWS-1252"
    return InputError(
        f"byte 0x{raw[problem.start]:02x} is not UTF-8; save the file as UTF-8, for example "
        f"with  iconv -f {encoding} -t UTF-8",
        path=path,
        line=line + raw.count(b"\n", 0, problem.start),
    )


_SHARD_ENDINGS = (
    *(".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst"),
    ".parquet",
)
_HIDDEN_PREFIXES = (".", "_")  # what a name that holds no rows begins with, such as _SUCCESS
_RUN_FILES = {"cases.jsonl", "traces.jsonl", "verdicts.jsonl", "links.jsonl"}
_GLOB_MARKS = re.compile(r"[*?\[]")


def list_shards(source: str | Path) -> tuple[InputFile, ...]:
    """Return the files that hold a gold set or traces, in the order in which they are read.

    Parameters
    ----------
    source : str or Path
        A file; a folder of .jsonl (also .jsonl.gz, .jsonl.zst) or .parquet files; a pattern such
        as ``gold/part-*.parquet``; or the URL of any of these. Shards are read in the order of
        their names, numbers by their value. Names that begin with a dot or an underscore are
        passed over, and in a folder every file of another kind.

    Raises
    ------
    InputError
        There is no such file, no shard, or shards of both kinds.
    """
    files = list_files(source, _SHARD_ENDINGS)
    if {file.name for file in files} >= _RUN_FILES:
        raise InputError(
            f"this is a run folder; name one file in it, such as {redact_url(source)}/cases.jsonl",
            path=redact_url(source),
        )
    tables = [file for file in files if file.name.lower().endswith(".parquet")]
    if 0 < len(tables) < len(files):
        other = next(file for file in files if file not in tables)
        raise InputError(
            f"{tables[0].name} is parquet and {other.name} is not; keep one of the two kinds",
            path=redact_url(source),
        )
    return files


def list_files(source: str | Path, endings: tuple[str, ...]) -> tuple[InputFile, ...]:
    """Return the files that a path, a pattern or a URL names, in the order of their names.

    Parameters
    ----------
    source : str or Path
    endings : tuple of str
        Of the files that are meant in a folder, in lower case.

    Raises
    ------
    InputError
        A folder holds none, or a pattern fits none. That a file is not there shows when it is read.
    """
    url = as_url(source)
    listed, kind = _list_local_files(Path(source)) if url is None else list_remote_files(url)
    if kind == "file":
        return tuple(listed)
    files = [file for file in listed if not file.name.startswith(_HIDDEN_PREFIXES)]
    if kind == "folder":
        passed_over = [file.name for file in files if not file.name.lower().endswith(endings)]
        files = [file for file in files if file.name.lower().endswith(endings)]
        # What may be a shard, such as part-2.parquet.tmp.
        kinds = {ending.split(".")[1] for ending in endings}
        unsure = [name for name in passed_over if kinds & set(name.lower().split("."))]
        if unsure:
            _log.warning(
                "%s: files whose names do not end in %s are passed over (%d, such as %s)",
                redact_url(source),
                ", ".join(endings),
                len(unsure),
                unsure[0],
            )
    if not files:
        problem = (
            f"this folder holds no file that ends in {', '.join(endings)}; name a file or another "
            "folder (a pattern such as FOLDER/*/*.parquet looks into the folders in it)"
            if kind == "folder"
            else "no file matches this pattern; name a file, a folder or another pattern"
        )
        raise InputError(problem, path=redact_url(source))
    return tuple(sorted(files, key=_natural_key))


def _list_local_files(path: Path) -> tuple[Sequence[InputFile], str]:
    try:
        if path.is_dir():
            entries: Iterable[Path] = path.iterdir()
            kind = "folder"
        elif path.exists() or not _GLOB_MARKS.search(str(path)):
            return [path], "file"
        else:
            matches = glob.iglob(str(path), recursive=True)  # noqa: PTH207 - it may be absolute
            entries, kind = map(Path, matches), "pattern"
        # A link to nothing stays among them, so that a missing shard is reported.
        return [entry for entry in entries if entry.is_file() or not entry.exists()], kind
    except OSError as problem:
        raise InputError(f"it cannot be read: {problem.strerror}", path=path) from None


def _natural_key(file: InputFile) -> tuple[list[str | int], str]:
    """Sort key with part-2 before part-10."""
    parts = re.split("([0-9]+)", str(file))
    return [int(part) if index % 2 else part for index, part in enumerate(parts)], str(file)
