"""The live log written: by a thread of its own, so that no request waits for a disk.

A row is in memory when `put` returns and in the file a moment later. On an orderly exit everything
is written. After a kill -9 or a power cut what the last `every_s` seconds brought is gone, 0.25 s
unless told otherwise, and what the file's being locked or full had kept waiting.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import logging
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.watching.live.assignment import SALT_ENV, Experiment, keyed_hash
from misslink.watching.live.file import Entry, LiveFile, Row
from misslink.watching.live.format import must_be_file, prepared, speaking

__all__ = ["LiveLog", "entry_of", "if_alive"]

_log = logging.getLogger(__name__)
_BATCH = 1000
_AGAIN_S = 1.0  # until a file that could not be written is tried again


def entry_of(experiment: Experiment, salt: str | None = None) -> Entry:
    """Return what the log says of an experiment, its salt only by a check.

    Parameters
    ----------
    experiment : Experiment
    salt : str or None
        As `misslink.watching.live.assignment.unit_hash` takes it.
    """
    ramp = experiment.ramp
    known = os.environ.get(SALT_ENV) if salt is None else salt
    values = (
        str(experiment.control),
        json.dumps(dict(experiment.split)),
        json.dumps(dict(experiment.shadow)),
        None if callable(experiment.excluded) else float(experiment.excluded),
        json.dumps([(at.timestamp(), share) for at, share in ramp.steps] if ramp else []),
        int(bool(ramp and ramp.linear)),
        int(bool(known)),
        keyed_hash("check", "", experiment.name, salt)[:8],
    )
    digest = hashlib.sha256(json.dumps(values).encode()).hexdigest()
    return Entry(experiment.name, digest, values)


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
            raise InputError("a live log gathers rows for more than 0 s, and holds at least one")
        self.path = Path(path)
        self.every_s = every_s
        self.most_waiting = most_waiting
        self.given_up = 0
        self.trouble: str | None = None
        self._begin_empty()
        must_be_file(self.path, may_be_new=True)
        try:
            with speaking(self.path):
                prepared(self.path, busy_s=0.2).close()
        except InputError as problem:
            if "held by another" not in problem.problem:
                raise
        atexit.register(if_alive(self.close))
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=if_alive(self._begin_empty))

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

    def exposure(self, entry: Entry, values: Mapping[str, Any]) -> None:
        """Log a request; `values` by the names of the columns, what is missing being unknown."""
        self._enqueue(("exposure", entry, values))

    def feedback(self, entry: Entry, values: tuple[Any, ...]) -> None:
        """Log feedback: exposure, unit (its hash), kind, value, passage, at."""
        self._enqueue(("feedback", entry, values))

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Write everything there is now; whether that was done within `timeout_s` seconds."""
        with self._lock:
            mark = self._put
            self._hurry.set()
            return self._lock.wait_for(lambda: self._done >= mark, timeout_s)

    def close(self, timeout_s: float = 10.0) -> bool:
        """Write everything and end the thread; whether everything was written.

        Rows that come afterwards start it anew.
        """
        with self._lock:
            thread, self._closing = self._thread, True
            self._wake.set()
            self._hurry.set()
        if thread is not None:
            thread.join(timeout_s)
        left = self.waiting
        if left:
            _log.warning("%s: %d rows were not written: %s", self.path, left, self.trouble)
        return not left

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
                    self._hurry.wait(_AGAIN_S if self.trouble else self.every_s)
                self._wake.clear()
                self._hurry.clear()
                while self._write_some(file):
                    pass
                with self._lock:
                    if self._waiting:
                        self._wake.set()
                    if self._closing and (not self._waiting or self.trouble):
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


def if_alive(method: Callable[[], Any]) -> Callable[[], None]:
    """Call a method of an object without keeping that alive."""
    known = weakref.WeakMethod(method)

    def call() -> None:
        if (bound := known()) is not None:
            bound()

    return call
