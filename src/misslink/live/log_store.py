"""Write a live log from a background thread."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import logging
import math
import os
import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io.sqlite import SqliteLockedError, transaction
from misslink.live.assignment import SALT_ENV, Experiment, keyed_hash
from misslink.live.log import EXPOSURE_COLUMNS, LIVE_LOG_FORMAT
from misslink.text.normalization import valid_text

_log = logging.getLogger(__name__)
_BUSY_S = 2.0
_PLAN_COLUMNS = (
    *("experiment", "digest", "since", "control", "split", "shadow", "excluded", "ramp"),
    *("linear", "salted", "salt_check"),
)
_INSERT_EXPOSURE = (
    f"INSERT OR IGNORE INTO exposures ({', '.join(EXPOSURE_COLUMNS)})"  # noqa: S608 - our own names
    f" VALUES ({', '.join('?' * len(EXPOSURE_COLUMNS))})"
)
_INSERT_PLAN = (
    f"INSERT INTO plans ({', '.join(_PLAN_COLUMNS)})"  # noqa: S608 - our own names
    f" VALUES ({', '.join('?' * len(_PLAN_COLUMNS))})"
)
_INSERT_FEEDBACK = (
    "INSERT INTO feedback (experiment, exposure, unit, kind, value, passage, at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)
# What a row itself is to blame for; everything else may go well later.
_ROW_ERRORS = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    UnicodeError,
)


@dataclass(frozen=True)
class PlanEntry:
    """An experiment as the log holds it; made by `misslink.live.log_store.plan_entry`."""

    experiment: str
    digest: str
    values: tuple[Any, ...]


Row = tuple[str, PlanEntry, Any]  # "exposure" or "feedback", and its values


class LiveFile:
    """The log file, used by the writer's thread only and reopened if another process deletes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._plans: dict[tuple[str, str], int] = {}

    def write(self, batch: Sequence[Row], unsaid: int) -> int:
        """Write rows in one transaction; return how many are of a kind that cannot be."""
        try:
            if self._file is not None and _inode(self._path) != self._inode:
                _log.warning(
                    "%s was deleted or replaced: the log continues in a new file", self._path
                )
                self.close()
            if self._file is None:
                self._file = LIVE_LOG_FORMAT.open(self._path, wait_s=_BUSY_S)
                self._inode = _inode(self._path)
            return self._write(self._file, batch, unsaid)
        except BaseException:
            self.close()  # whatever state it is in; plans of a rolled back transaction are gone
            raise

    def close(self) -> None:
        """Close the file; another `write` opens it again."""
        if self._file is not None:
            self._file.close()
        self._file = None
        self._plans.clear()

    def _write(self, file: sqlite3.Connection, batch: Sequence[Row], unsaid: int) -> int:
        bad = 0
        with transaction(file):
            for kind, entry, values in batch:
                try:
                    self._write_row(file, kind, entry, values)
                except _ROW_ERRORS as problem:
                    bad += 1
                    _log.warning("%s: a row of %s cannot be stored: %s", self._path, kind, problem)
            if unsaid or bad:
                reason = "no room" if unsaid else "cannot be stored"
                file.execute(
                    "INSERT INTO losses (at, rows, reason) VALUES (?, ?, ?)",
                    (time.time(), unsaid + bad, reason),
                )
        return bad

    def _write_row(
        self, file: sqlite3.Connection, kind: str, entry: PlanEntry, values: Any
    ) -> None:
        plan = self._plan(file, entry)
        if kind == "feedback":
            file.execute(_INSERT_FEEDBACK, (entry.experiment, *map(_storable, values)))
            return
        row = [plan if c == "plan" else _storable(values.get(c)) for c in EXPOSURE_COLUMNS]
        if not file.execute(_INSERT_EXPOSURE, row).rowcount:
            # The app gave one id twice, as for a whole batch. The first keeps it.
            row[0] = f"{row[0]}#{uuid.uuid4().hex[:12]}"
            if not file.execute(_INSERT_EXPOSURE, row).rowcount:
                raise sqlite3.IntegrityError("a value that the table does not take")

    def _plan(self, file: sqlite3.Connection, entry: PlanEntry) -> int:
        key = entry.experiment, entry.digest
        if key not in self._plans:
            latest = file.execute(
                "SELECT id, digest FROM plans WHERE experiment = ? ORDER BY id DESC LIMIT 1",
                (entry.experiment,),
            ).fetchone()
            if latest is None or latest[1] != entry.digest:
                row = (entry.experiment, entry.digest, time.time(), *entry.values)
                latest = (file.execute(_INSERT_PLAN, row).lastrowid, entry.digest)
            self._plans[key] = latest[0]
        return self._plans[key]


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _storable(value: Any) -> Any:
    """Return what the file can hold: lists as JSON, half a surrogate pair as a question mark."""
    if isinstance(value, tuple | list):
        return json.dumps([None if item is None else valid_text(str(item)) for item in value])
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


_BATCH = 1000
_RETRY_S = 1.0  # until a file that could not be written is tried again


def plan_entry(experiment: Experiment, salt: str | None = None) -> PlanEntry:
    """Return what the log says of an experiment, its salt only by a check.

    Parameters
    ----------
    experiment : Experiment
    salt : str or None
        As `misslink.live.assignment.unit_hash` takes it.
    """
    ramp = experiment.ramp
    secret = os.environ.get(SALT_ENV) if salt is None else salt
    values = (
        str(experiment.control),
        json.dumps(dict(experiment.split)),
        json.dumps(dict(experiment.shadow)),
        None if callable(experiment.excluded) else float(experiment.excluded),
        json.dumps(
            [(step_time.timestamp(), share) for step_time, share in ramp.steps] if ramp else []
        ),
        int(bool(ramp and ramp.linear)),
        int(bool(secret)),
        keyed_hash("check", "", experiment.name, salt)[:8],
    )
    digest = hashlib.sha256(json.dumps(values).encode()).hexdigest()
    return PlanEntry(experiment.name, digest, values)


class LiveLog:
    """A live log to write to; safe to share between threads, routers and processes.

    Parameters
    ----------
    path : str or Path
        An SQLite file; it and its folder are made. Not on a network drive.
    every_s : float
        How many seconds rows are gathered before they are written.
    most_waiting : int
        How many rows are held in memory while the file cannot be written. What comes on top is
        given up and counted, in the file too as soon as it can be written.

    Attributes
    ----------
    given_up : int
        Rows that were not and will not be written.
    trouble : str or None
        Why the file cannot be written at present.

    Raises
    ------
    InputError
        The file is no live log, from a newer misslink, or in a place that cannot be written; or
        a number is not above 0. A file that is merely locked is waited for in the background.
    """

    def __init__(
        self, path: str | Path, *, every_s: float = 0.25, most_waiting: int = 100_000
    ) -> None:
        if not every_s > 0 or most_waiting < 1:
            raise InputError("every_s must be above 0, and most_waiting at least 1")
        self.path = Path(path)
        self.every_s = every_s
        self.most_waiting = most_waiting
        self.given_up = 0
        self.trouble: str | None = None
        self._begin_empty()
        with contextlib.suppress(SqliteLockedError):
            LIVE_LOG_FORMAT.open(self.path, wait_s=0.2).close()
        atexit.register(call_if_alive(self.close))
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=call_if_alive(self._begin_empty))

    def _begin_empty(self) -> None:
        """Start without a thread, a connection and rows: those of a parent are the parent's."""
        self._lock = threading.Condition()
        self._waiting: list[Row] = []
        self._put = self._done = self._unsaid = 0
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """Rows that are not written yet."""
        return len(self._waiting)

    def exposure(self, entry: PlanEntry, values: Mapping[str, Any]) -> None:
        """Log a request; `values` by the names of the columns, what is missing being unknown."""
        self._enqueue(("exposure", entry, values))

    def feedback(self, entry: PlanEntry, values: tuple[Any, ...]) -> None:
        """Log feedback: exposure, unit (its hash), kind, value, passage, at."""
        self._enqueue(("feedback", entry, values))

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Write everything there is now; whether that was done within `timeout_s` seconds."""
        with self._lock:
            mark = self._put
            self._hurry.set()
            return self._lock.wait_for(lambda: self._done >= mark, timeout_s)

    def close(self, timeout_s: float = 10.0) -> bool:
        """Write all rows and stop the thread; return whether every row was written.

        Later rows start the thread again.
        """
        with self._lock:
            thread, self._closing = self._thread, True
            self._wake.set()
            self._hurry.set()
        if thread is not None:
            thread.join(timeout_s)
        waiting = self.waiting
        if waiting:
            _log.warning("%s: %d rows were not written: %s", self.path, waiting, self.trouble)
        return not waiting

    def _enqueue(self, row: Row) -> None:
        with self._lock:
            if len(self._waiting) >= self.most_waiting:
                self.given_up += 1
                self._unsaid += 1
                return
            self._waiting.append(row)
            self._put += 1
            if self._thread is None:
                self._closing = False
                self._thread = threading.Thread(
                    target=self._write_on, name="misslink-live-log", daemon=True
                )
                self._thread.start()
        if not self._wake.is_set():
            self._wake.set()

    # --- the writer's thread ----------------------------------------------------------------

    def _write_on(self) -> None:
        with contextlib.closing(LiveFile(self.path)) as file:
            while True:
                self._wake.wait()
                if not self._closing:
                    self._hurry.wait(_RETRY_S if self.trouble else self.every_s)
                self._wake.clear()
                self._hurry.clear()
                closing = self._closing  # once closed, an attempt that begins after it is the last
                while self._write_some(file):
                    pass
                with self._lock:
                    if self._waiting:
                        self._wake.set()
                    if closing and (not self._waiting or self.trouble):
                        self._thread = None
                        return

    def _write_some(self, file: LiveFile) -> bool:
        """Write a batch; whether there may be more to write."""
        with self._lock:
            batch, unsaid = self._waiting[:_BATCH], self._unsaid
        if not batch:
            return False
        try:
            bad = file.write(batch, unsaid)
        except (sqlite3.Error, OSError, InputError) as trouble:
            if self.trouble is None:
                _log.warning(
                    "the live log cannot be written, rows wait: %s: %s", self.path, trouble
                )
            self.trouble = str(trouble)
            return False
        self.trouble = None
        with self._lock:
            del self._waiting[: len(batch)]
            self._done += len(batch)
            self._unsaid += bad - unsaid
            self.given_up += bad
            self._lock.notify_all()
        return True


def call_if_alive(method: Callable[[], Any]) -> Callable[[], None]:
    """Call a method of an object without keeping that alive."""
    reference = weakref.WeakMethod(method)

    def call() -> None:
        if (bound := reference()) is not None:
            bound()

    return call
