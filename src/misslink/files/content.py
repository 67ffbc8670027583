"""What is in a file, whether gzip packed it or not, and its text."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from misslink.errors import InputError

__all__ = ["content_of", "damaged_parquet", "decoded", "not_utf8"]

_GZIP = b"\x1f\x8b"  # what a packed file begins with; no text in UTF-8 does
_WIDE = (b"\xff\xfe", b"\xfe\xff")  # what a text in UTF-16 begins with


def content_of(path: Path) -> bytes:
    """Return the bytes of a file; of one that gzip packed, by whatever name, those within.

    Raises
    ------
    InputError
        There is no such file, it cannot be read, or what gzip packed is damaged.
    """
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw.startswith(_GZIP) else raw
    except FileNotFoundError:
        raise InputError("there is no such file", path=path) from None
    except IsADirectoryError:
        raise InputError("this is a folder; name a file in it", path=path) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise InputError(
            f"this gzip file is damaged ({problem}); make it again", path=path
        ) from None
    except OSError as problem:
        raise InputError(f"it cannot be read: {problem.strerror}", path=path) from None


def damaged_parquet(problem: Exception, path: Path) -> InputError:
    """Return the error that tells, in one line, what Arrow says of a parquet file it cannot read.

    Parameters
    ----------
    problem : pyarrow.ArrowException or OSError
    path : Path
    """
    told = " ".join(str(problem).split()) or "it is damaged"
    return InputError(f"this parquet file cannot be read ({told})", path=path)


def decoded(raw: bytes, path: Path) -> str:
    """Return the text of a file in UTF-8, without the mark that some programs begin it with.

    Raises
    ------
    InputError
        It is in another encoding; with the line.
    """
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise not_utf8(problem, path) from None


def not_utf8(problem: UnicodeDecodeError, path: Path, line: int = 1) -> InputError:
    """Return the error that tells which byte is not UTF-8, and what to do.

    Parameters
    ----------
    problem : UnicodeDecodeError
    path : Path
    line : int
        Of the file, on which what was decoded begins.
    """
    raw = bytes(problem.object)
    encoding = "UTF-16" if raw.startswith(_WIDE) else "WINDOWS-1252"
    return InputError(
        f"byte 0x{raw[problem.start]:02x} is not UTF-8; save the file as UTF-8, for example "
        f"with  iconv -f {encoding} -t UTF-8",
        path=path,
        line=line + raw.count(b"\n", 0, problem.start),
    )
