"""What an app generated in replays and what was said of it, on disk as it comes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from misslink.errors import InputError
from misslink.types import Trace, Verdict

__all__ = ["Kept"]


class Kept:
    """The generations of replays and their verdicts, by key, in a file that is only added to.

    The verdicts are kept beside the ledger, which may be another one or none in the next replay:
    what is counted already must not cost anything to count again.

    The file is this process's until `close`: two replays of one run would each pay for the same
    generations.

    Parameters
    ----------
    path : Path or None
        Need not exist yet. None: kept in memory only.

    Raises
    ------
    InputError
        The file cannot be read or written, or another process has it; nothing has been asked.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._traces: dict[str, Trace] = {}
        self._verdicts: dict[str, tuple[Verdict, ...]] = {}
        self._file: BinaryIO | None = None
        if path is None:
            return
        try:
            # Open to the end: a run that is evaluated anew meanwhile moves it to its new folder.
            self._file = path.open("a+b", buffering=0)
            _lock(self._file, path)
            self._file.seek(0)
            text = self._file.read().decode("utf-8", errors="replace")
            if text and not text.endswith("\n"):  # the process that wrote it was killed
                self._file.write(b"\n")
        except OSError as problem:
            raise _unwritable(path, problem.strerror) from None
        for line in filter(None, text.split("\n")):
            # Half a line, or one of another version: the app is asked again.
            with contextlib.suppress(ValueError, KeyError, TypeError, ValidationError):
                data = json.loads(line)
                if "verdicts" in data:
                    said = tuple(Verdict.model_validate(one) for one in data["verdicts"])
                    self._verdicts[data["key"]] = said
                else:
                    self._traces[data["key"]] = Trace.model_validate(data["trace"])

    def get(self, key: str) -> Trace | None:
        """The trace kept under `key`; None where there is none."""
        return self._traces.get(key)

    def put(self, key: str, trace: Trace, *, intervention: str) -> None:
        """Keep a trace, on disk before it is used.

        Raises
        ------
        InputError
            The disk is full, or the file can no longer be written.
        """
        self._traces[key] = trace
        told = {"case_id": trace.case_id, "intervention": intervention}
        self._write({"key": key, **told, "trace": trace.model_dump(mode="json")})

    def verdicts(self, key: str) -> tuple[Verdict, ...] | None:
        """The verdicts kept under `key`; None where there are none."""
        return self._verdicts.get(key)

    def put_verdicts(self, key: str, verdicts: Sequence[Verdict]) -> None:
        """Keep what was said of an answer; raises as `put`."""
        self._verdicts[key] = tuple(verdicts)
        self._write({"key": key, "verdicts": [one.model_dump(mode="json") for one in verdicts]})

    def _write(self, data: Mapping[str, Any]) -> None:
        if self.path is None or self._file is None:
            return
        rest = memoryview(json.dumps(data, ensure_ascii=False).encode() + b"\n")
        try:
            if not os.fstat(self._file.fileno()).st_nlink:
                raise _unwritable(self.path, "it was removed")
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as problem:
            raise _unwritable(self.path, problem.strerror) from None

    def close(self) -> None:
        """Leave the file to others; what is kept can still be read."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _lock(file: BinaryIO, path: Path) -> None:
    """Take the lock that ends with this process, however it ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows: there, two replays of one run are not told apart
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InputError(
            "another misslink is replaying this run; wait for it, then the same command takes "
            "over its answers",
            path=path.parent,
        ) from None


def _unwritable(path: Path, why: str | None) -> InputError:
    return InputError(
        f"it cannot be written ({why}); a replay keeps the app's answers in the run "
        "folder, so make room there or copy the run elsewhere",
        path=path,
    )
