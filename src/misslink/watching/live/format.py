"""The live log's file: its tables, and what is said of a file that is no such log.

An SQLite database in WAL mode, so that several processes may write while others read. Schema 1::

    plans     id, experiment, digest, since, control, split, shadow, excluded, ramp, linear,
              salted, salt_check
              what an experiment was like; split and shadow are JSON objects, ramp is a JSON list
    exposures number (in the order of writing), id, plan, unit, variant, served, mode, outcome,
              open_share, at, latency_s, error, of, prompt_tokens, completion_tokens, cost,
              retrieved, teams, question_hash, question, answer
              one request to one variant; retrieved and teams are JSON lists; an id is an
              experiment's own, since one request may pass several
    feedback  number, experiment, exposure, unit, kind, value, passage, at
    losses    number, at, rows, reason
              rows that a writer had to give up

What the columns mean stands in `misslink.watching.live.records`. Times are seconds since 1970.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from misslink.errors import InputError

__all__ = [
    "EXPOSURE_COLUMNS",
    "connected",
    "must_be_file",
    "opened_to_read",
    "prepared",
    "speaking",
    "transaction",
]

VERSION = 1
APPLICATION = 0x6D6C6C76  # "mllv" in the file's header tells a live log from any other database
EXPOSURE_COLUMNS = (
    *("id", "plan", "unit", "variant", "served", "mode", "outcome", "open_share", "at"),
    *("latency_s", "error", "of", "prompt_tokens", "completion_tokens", "cost", "retrieved"),
    *("teams", "question_hash", "question", "answer"),
)
_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS plans (
        id INTEGER PRIMARY KEY,
        experiment TEXT NOT NULL,
        digest TEXT NOT NULL,
        since REAL NOT NULL,
        control TEXT NOT NULL,
        split TEXT NOT NULL,
        shadow TEXT NOT NULL,
        excluded REAL,
        ramp TEXT NOT NULL,
        linear INTEGER NOT NULL,
        salted INTEGER NOT NULL,
        salt_check TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS exposures (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        plan INTEGER NOT NULL REFERENCES plans,
        unit TEXT,
        variant TEXT,
        served TEXT,
        mode TEXT NOT NULL,
        outcome TEXT NOT NULL,
        open_share REAL NOT NULL,
        at REAL NOT NULL,
        latency_s REAL,
        error TEXT,
        of TEXT,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        cost REAL,
        retrieved TEXT,
        teams TEXT,
        question_hash TEXT,
        question TEXT,
        answer TEXT,
        UNIQUE (id, plan)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS feedback (
        number INTEGER PRIMARY KEY,
        experiment TEXT NOT NULL,
        exposure TEXT,
        unit TEXT,
        kind TEXT NOT NULL,
        value REAL NOT NULL,
        passage TEXT,
        at REAL NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS losses (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        rows INTEGER NOT NULL,
        reason TEXT NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS exposures_by_plan ON exposures (plan)",
    "CREATE INDEX IF NOT EXISTS feedback_by_experiment ON feedback (experiment)",
)
_MEANINGS = {  # what SQLite says, and what that means to its reader
    "not a database": "this file is no live log; name another",
    "malformed": "this live log is damaged; move it away",
    "no such": "this live log is damaged, a part of it is missing; move it away",
    "readonly": "the live log cannot be written to; make it and its folder writable",
    "unable to open": "the live log cannot be opened; make it and its folder readable and writable",
    "full": "the live log cannot be written, the disk is full; make room",
    "disk I/O": "the live log cannot be written, the disk may be full or failing; make room",
    "locked": "the live log is held by another program; wait for it, or close what holds it",
}


def connected(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Connect to a file that may be new; waits `busy_s` seconds for other writers."""
    return sqlite3.connect(
        str(path.absolute()), timeout=busy_s, isolation_level=None, check_same_thread=False
    )


def prepared(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Open a log to write, making it where there is none.

    Raises
    ------
    InputError
        It is no live log, or from a newer misslink.
    sqlite3.Error, OSError
        It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = connected(path, busy_s=busy_s)
    try:
        _refuse_what_is_none(file, path, may_be_new=True)
        # Two processes that open a new file at once cannot both switch it; one success serves
        # both, and whatever else is wrong with the file shows in the write below.
        with contextlib.suppress(sqlite3.OperationalError):
            file.execute("PRAGMA journal_mode = WAL")
        # A commit has been handed to the operating system, which keeps it whatever becomes of
        # the process; only a power cut can lose the last ones, and the file stays whole.
        file.execute("PRAGMA synchronous = NORMAL")
        with transaction(file):
            for table in _TABLES:
                file.execute(table)
            file.execute(f"PRAGMA application_id = {APPLICATION}")
            file.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        file.close()
        raise
    return file


@contextlib.contextmanager
def transaction(file: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing."""
    with file:
        file.execute("BEGIN IMMEDIATE")
        yield


def opened_to_read(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Open a log that is there; what is in it cannot be changed this way.

    Raises
    ------
    InputError
        There is none, it is no live log, or from a newer misslink.
    """
    must_be_file(path)
    address = path.absolute().as_uri()
    try:
        return _read_from(f"{address}?mode=rw", path, busy_s)
    except sqlite3.OperationalError as trouble:
        # On a medium that cannot be written SQLite has no place for its lock file; nobody
        # else can be writing there either.
        if "unable to open" not in str(trouble) and "readonly" not in str(trouble):
            raise
        return _read_from(f"{address}?immutable=1", path, busy_s)


def must_be_file(path: Path, *, may_be_new: bool = False) -> None:
    """Refuse a folder, and a file that is not there.

    Raises
    ------
    InputError
    """
    if path.is_dir():
        raise InputError("the live log is a file and this is a folder; name a file", path=path)
    if not may_be_new and not path.exists():
        raise InputError(
            "there is no live log here; a Router or Interleaved with log=... writes one", path=path
        )


@contextlib.contextmanager
def speaking(path: Path) -> Iterator[None]:
    """Say in a sentence what SQLite or the system says.

    Raises
    ------
    InputError
        In place of every ``sqlite3.Error`` and ``OSError``.
    """
    try:
        yield
    except sqlite3.Error as trouble:
        said = str(trouble)
        meaning = next((text for words, text in _MEANINGS.items() if words in said), None)
        raise InputError(meaning or f"the live log cannot be used ({said})", path=path) from None
    except OSError as trouble:
        raise InputError(
            f"the live log cannot be used ({trouble.strerror}); name another file", path=path
        ) from None


def _read_from(address: str, path: Path, busy_s: float) -> sqlite3.Connection:
    file = sqlite3.connect(address, timeout=busy_s, isolation_level=None, uri=True)
    try:
        _refuse_what_is_none(file, path, may_be_new=False)
        file.execute("PRAGMA query_only = 1")
    except BaseException:
        file.close()
        raise
    return file


def _refuse_what_is_none(file: sqlite3.Connection, path: Path, *, may_be_new: bool) -> None:
    tables = file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if _number(file, "application_id") != APPLICATION and (tables or not may_be_new):
        what = "another program's database" if tables else "an empty file and no live log"
        raise InputError(f"this is {what}; name another file", path=path)
    version = _number(file, "user_version")
    if version > VERSION:
        raise InputError(
            f"this live log was written by a newer misslink (format {version}, this one knows "
            f"{VERSION}); update misslink",
            path=path,
        )


def _number(file: sqlite3.Connection, pragma: str) -> int:
    number: int = file.execute(f"PRAGMA {pragma}").fetchone()[0]
    return number
