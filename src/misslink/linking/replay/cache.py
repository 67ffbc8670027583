"""Answers and verdicts of replays, saved in the run folder."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from misslink.errors import InputError
from misslink.io.atomic import lock_open_file
from misslink.types import Trace, Verdict


class ReplayCache:
    """The generations of replays and their verdicts, by key, in a file that is only appended to.

    Verdicts are saved here too, because the next replay may have another response cache or none. One
    process holds the file until `close`: two replays of one run would each pay for the same generations.

    Parameters
    ----------
    path : Path or None
        Need not exist yet. None: in memory only.

    Raises
    ------
    InputError
        The file cannot be read or written, or another process holds it.
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
            lock_open_file(
                self._file,
                path.parent,
                "another misslink is replaying this run; wait for it, then the same command takes "
                "over its answers",
            )
            self._file.seek(0)
            text = self._file.read().decode("utf-8", errors="replace")
            if text and not text.endswith("\n"):  # the process that wrote it was killed
                self._file.write(b"\n")
        except OSError as problem:
            raise _write_error(path, problem.strerror) from None
        for line in filter(None, text.split("\n")):
            # Half a line, or one of another version: the app is asked again.
            with contextlib.suppress(ValueError, KeyError, TypeError, ValidationError):
                data = json.loads(line)
                if "verdicts" in data:
                    verdicts = tuple(Verdict.model_validate(row) for row in data["verdicts"])
                    self._verdicts[data["key"]] = verdicts
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
        context = {"case_id": trace.case_id, "intervention": intervention}
        self._write({"key": key, **context, "trace": trace.model_dump(mode="json")})

    def verdicts(self, key: str) -> tuple[Verdict, ...] | None:
        """The verdicts kept under `key`; None where there are none."""
        return self._verdicts.get(key)

    def store_verdicts(self, key: str, verdicts: Sequence[Verdict]) -> None:
        """Keep what was said of an answer; raises as `put`."""
        self._verdicts[key] = tuple(verdicts)
        self._write(
            {"key": key, "verdicts": [verdict.model_dump(mode="json") for verdict in verdicts]}
        )

    def _write(self, data: Mapping[str, Any]) -> None:
        if self.path is None or self._file is None:
            return
        remaining = memoryview(json.dumps(data, ensure_ascii=False).encode() + b"\n")
        try:
            if not os.fstat(self._file.fileno()).st_nlink:
                raise _write_error(self.path, "it was removed")
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
        except OSError as problem:
            raise _write_error(self.path, problem.strerror) from None

    def close(self) -> None:
        """Close and unlock the file; cached generations can still be read."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _write_error(path: Path, why: str | None) -> InputError:
    return InputError(
        f"it cannot be written ({why}); a replay keeps the app's answers in the run "
        "folder, so make room there or copy the run elsewhere",
        path=path,
    )
