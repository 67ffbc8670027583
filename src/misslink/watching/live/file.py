"""The live log's file as its writer holds it: batches in, and a new file where it was deleted."""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.text import valid_text
from misslink.watching.live.format import EXPOSURE_COLUMNS, prepared, transaction

__all__ = ["Entry", "LiveFile", "Row"]

_log = logging.getLogger(__name__)
_BUSY_S = 2.0
_PLAN_COLUMNS = (
    *("experiment", "digest", "since", "control", "split", "shadow", "excluded", "ramp"),
    *("linear", "salted", "salt_check"),
)
_EXPOSURE = (
    f"INSERT OR IGNORE INTO exposures ({', '.join(EXPOSURE_COLUMNS)})"  # noqa: S608 - our own names
    f" VALUES ({', '.join('?' * len(EXPOSURE_COLUMNS))})"
)
_PLAN = (
    f"INSERT INTO plans ({', '.join(_PLAN_COLUMNS)})"  # noqa: S608 - our own names
    f" VALUES ({', '.join('?' * len(_PLAN_COLUMNS))})"
)
_FEEDBACK = (
    "INSERT INTO feedback (experiment, exposure, unit, kind, value, passage, at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)
# What a row itself is to blame for; everything else may go well later.
_BAD_ROW = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    UnicodeError,
)


@dataclass(frozen=True)
class Entry:
    """An experiment as the log holds it; made by `misslink.watching.live.writer.entry_of`."""

    experiment: str
    digest: str
    values: tuple[Any, ...]


Row = tuple[str, Entry, Any]  # "exposure" or "feedback", and its values


class LiveFile:
    """The file as the writer's thread holds it, opened anew where somebody deleted it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._plans: dict[tuple[str, str], int] = {}

    def write(self, batch: Sequence[Row], unsaid: int) -> int:
        """Write rows in one transaction; return how many are of a kind that cannot be."""
        try:
            return self._write(self._opened(), batch, unsaid)
        except BaseException:
            self.close()  # whatever state it is in; plans of a rolled back transaction are gone
            raise

    def close(self) -> None:
        """Close the file; another `write` opens it again."""
        if self._file is not None:
            self._file.close()
        self._file = None
        self._plans.clear()

    def _opened(self) -> sqlite3.Connection:
        if self._file is not None and _inode(self._path) != self._inode:
            _log.warning("%s was deleted or replaced: the log goes on in a new file", self._path)
            self.close()
        if self._file is None:
            self._file = prepared(self._path, busy_s=_BUSY_S)
            self._inode = _inode(self._path)
        return self._file

    def _write(self, file: sqlite3.Connection, batch: Sequence[Row], unsaid: int) -> int:
        bad = 0
        with transaction(file):
            for kind, entry, values in batch:
                try:
                    self._write_row(file, kind, entry, values)
                except _BAD_ROW as problem:
                    bad += 1
                    _log.warning("%s: a row of %s cannot be kept: %s", self._path, kind, problem)
            if unsaid or bad:
                reason = "no room" if unsaid else "cannot be kept"
                file.execute(
                    "INSERT INTO losses (at, rows, reason) VALUES (?, ?, ?)",
                    (time.time(), unsaid + bad, reason),
                )
        return bad

    def _write_row(self, file: sqlite3.Connection, kind: str, entry: Entry, values: Any) -> None:
        plan = self._plan(file, entry)
        if kind == "feedback":
            file.execute(_FEEDBACK, (entry.experiment, *map(_storable, values)))
            return
        row = [plan if c == "plan" else _storable(values.get(c)) for c in EXPOSURE_COLUMNS]
        if not file.execute(_EXPOSURE, row).rowcount:
            # The app gave one id twice, as for a whole batch. The first keeps it.
            row[0] = f"{row[0]}#{uuid.uuid4().hex[:12]}"
            if not file.execute(_EXPOSURE, row).rowcount:
                raise sqlite3.IntegrityError("a value that the table does not take")

    def _plan(self, file: sqlite3.Connection, entry: Entry) -> int:
        key = entry.experiment, entry.digest
        if key not in self._plans:
            latest = file.execute(
                "SELECT id, digest FROM plans WHERE experiment = ? ORDER BY id DESC LIMIT 1",
                (entry.experiment,),
            ).fetchone()
            if latest is None or latest[1] != entry.digest:
                row = (entry.experiment, entry.digest, time.time(), *entry.values)
                latest = (file.execute(_PLAN, row).lastrowid, entry.digest)
            self._plans[key] = latest[0]
        return self._plans[key]


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _storable(value: Any) -> Any:
    """Return what the file can hold: lists as JSON, half a surrogate pair as a question mark."""
    if isinstance(value, tuple | list):
        return json.dumps([None if one is None else valid_text(str(one)) for one in value])
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
