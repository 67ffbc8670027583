"""What an app generated in replays, on disk as it comes, so that it is never asked twice."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from pydantic import ValidationError

from misslink.errors import InputError
from misslink.types import Trace

__all__ = ["Kept"]


class Kept:
    """The generations of replays, by key, in a file of JSON lines that is only added to.

    Parameters
    ----------
    path : Path or None
        Need not exist yet. None: kept in memory only.

    Raises
    ------
    InputError
        The file cannot be read or written; nothing has been asked.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._traces: dict[str, Trace] = {}
        if path is None:
            return
        try:
            with path.open("a+b") as file:  # at once, so that no answer is asked for in vain
                file.seek(0)
                text = file.read().decode("utf-8", errors="replace")
                if text and not text.endswith("\n"):  # the process that wrote it was killed
                    file.write(b"\n")
        except OSError as problem:
            raise _unwritable(path, problem) from None
        for line in filter(None, text.split("\n")):
            # Half a line, or one of another version: the app is asked again.
            with contextlib.suppress(ValueError, KeyError, TypeError, ValidationError):
                data = json.loads(line)
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
        if self.path is None:
            return
        line = json.dumps(
            {
                "key": key,
                "case_id": trace.case_id,
                "intervention": intervention,
                "trace": trace.model_dump(mode="json"),
            },
            ensure_ascii=False,
        )
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as problem:
            raise _unwritable(self.path, problem) from None


def _unwritable(path: Path, problem: OSError) -> InputError:
    return InputError(
        f"it cannot be written ({problem.strerror}); a replay keeps the app's answers in the run "
        "folder, so make room there or copy the run elsewhere",
        path=path,
    )
