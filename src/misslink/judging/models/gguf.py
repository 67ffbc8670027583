"""The head of a GGUF file: what a local model is, without loading it.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import hashlib
import struct
from functools import cache
from pathlib import Path
from typing import IO, Any

from misslink.errors import InputError

__all__ = ["context_length", "fingerprint"]

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
# How struct reads the types of numbers, by their codes.
_NUMBERS = dict(enumerate(("<B", "<b", "<H", "<h", "<I", "<i", "<f", "<?")))
_NUMBERS |= {10: "<Q", 11: "<q", 12: "<d"}
_LONGEST = 1 << 20  # bytes of one string, and items of a list; more is damage


def context_length(path: Path) -> int | None:
    """How many tokens the model in `path` was trained to take; None where its file does not say.

    Raises
    ------
    InputError
        The file is missing, is no GGUF file, or its head is damaged.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise InputError("this is no GGUF file", path=path)
            version, _, fields = struct.unpack("<IQQ", file.read(20))
            if version not in _VERSIONS:
                raise InputError(f"GGUF version {version} is not understood", path=path)
            for _ in range(fields):
                name = _string(file)
                value = _value(file, _number(file, "<I"))
                if name.endswith(".context_length"):
                    return value if type(value) is int and value > 0 else None
    except OSError as problem:
        raise InputError(
            f"the model cannot be read ({problem.strerror or problem}); check --judge", path=path
        ) from None
    except (struct.error, ValueError, KeyError):
        raise InputError("this GGUF file is damaged; fetch it again", path=path) from None
    return None


def fingerprint(path: Path) -> str:
    """SHA-256 of a file in hexadecimal digits; read once for each size and time of change."""
    about = path.stat()
    return _fingerprint(path, about.st_size, about.st_mtime_ns)


@cache
def _fingerprint(path: Path, _size: int, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _number(file: IO[bytes], form: str) -> Any:
    (value,) = struct.unpack(form, file.read(struct.calcsize(form)))
    return value


def _string(file: IO[bytes]) -> str:
    length = _number(file, "<Q")
    if length > _LONGEST:
        raise ValueError("a string that long is damage")
    return file.read(length).decode("utf-8", "replace")


def _value(file: IO[bytes], kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        inner, length = _number(file, "<I"), _number(file, "<Q")
        if length > _LONGEST:
            raise ValueError("a list that long is damage")
        return [_value(file, inner) for _ in range(length)]
    return _number(file, _NUMBERS[kind])
