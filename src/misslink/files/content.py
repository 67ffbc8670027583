"""What is in a file, on this disk or in a storage, whether it is packed or not, and its text."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from misslink.errors import InputError
from misslink.files.addresses import refuse_url
from misslink.files.storage import Stored

__all__ = ["File", "content_of", "damaged_parquet", "decoded", "not_utf8", "opened"]

File = Path | Stored

_GZIP = b"\x1f\x8b"  # what a packed file begins with; no text in UTF-8 does
_ZSTD = b"\x28\xb5\x2f\xfd"
_WIDE = (b"\xff\xfe", b"\xfe\xff")  # what a text in UTF-16 begins with
_AT_ONCE = 1 << 18  # bytes


@contextlib.contextmanager
def opened(file: File) -> Iterator[io.BufferedReader]:
    """Open a file to be read piece by piece; of one that gzip or zstd packed, what is within.

    How it is packed is told by what it begins with, not by its name. Trouble that shows only
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
        with _binary(file) as raw, _unpacked(raw) as content:
            yield content
    except FileNotFoundError:
        refuse_url(str(file))
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


def _binary(file: File) -> io.BufferedReader:
    if isinstance(file, Stored):
        return file.open()
    return io.BufferedReader(file.open("rb", 0), _AT_ONCE)


def _unpacked(raw: io.BufferedReader) -> io.BufferedReader:
    head = raw.peek(len(_ZSTD))
    if head.startswith(_GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=raw), _AT_ONCE)
    if head.startswith(_ZSTD):
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(raw, "zstd"), _AT_ONCE)
    return raw


def content_of(path: Path) -> bytes:
    """Return the bytes of a file; of one that gzip or zstd packed, by whatever name, those within.

    Raises
    ------
    InputError
        There is no such file, it cannot be read, or what is packed is damaged.
    """
    with opened(path) as file:
        return file.read()


def damaged_parquet(problem: Exception, path: object) -> InputError:
    """Return the error that tells, in one line, what Arrow says of a parquet file it cannot read.

    Parameters
    ----------
    problem : pyarrow.ArrowException or OSError
    path : Path or Stored
    """
    told = " ".join(str(problem).split()) or "it is damaged"
    return InputError(f"this parquet file cannot be read ({told})", path=path)


def decoded(raw: bytes, path: object, line: int = 1) -> str:
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
        raise not_utf8(problem, path, line) from None


def not_utf8(problem: UnicodeDecodeError, path: object, line: int = 1) -> InputError:
    """Return the error that tells which byte is not UTF-8, and what to do.

    Parameters
    ----------
    problem : UnicodeDecodeError
    path : Path or Stored
    line : int
        Of the file, on which what was decoded begins.
    """
    raw = bytes(problem.object)
    encoding = "UTF-16" if line == 1 and raw.startswith(_WIDE) else "WINDOWS-1252"
    return InputError(
        f"byte 0x{raw[problem.start]:02x} is not UTF-8; save the file as UTF-8, for example "
        f"with  iconv -f {encoding} -t UTF-8",
        path=path,
        line=line + raw.count(b"\n", 0, problem.start),
    )
