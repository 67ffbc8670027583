"""The history's file: an SQLite database in WAL mode, opened and proved fit before the app is run.

A run is entered in one transaction, so that a process that is killed leaves all of it or nothing.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from misslink.errors import InputError
from misslink.files.addresses import refuse_url

__all__ = [
    "APPLICATION",
    "VERSION",
    "HeldError",
    "changing",
    "open_history",
    "speaking",
]

VERSION = 1
_WAIT_S = 10.0
APPLICATION = 0x6D6C6362  # "mlcb" in the file's header tells a history from any other database
_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS fingerprints (
        digest TEXT PRIMARY KEY,
        embedding TEXT,
        documents BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        uid TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        at REAL NOT NULL,
        key TEXT NOT NULL,
        accepted INTEGER NOT NULL,
        n INTEGER NOT NULL,
        measured TEXT NOT NULL,
        suspects TEXT NOT NULL,
        fingerprint TEXT,
        corpus_known INTEGER NOT NULL,
        code TEXT,
        document TEXT NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS runs_by_name ON runs (name, at)",
    """
    CREATE TABLE IF NOT EXISTS results (
        run INTEGER NOT NULL REFERENCES runs,
        place INTEGER NOT NULL,
        canary TEXT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (run, place)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS alarms (
        name TEXT NOT NULL,
        measure TEXT NOT NULL,
        run INTEGER NOT NULL REFERENCES runs,
        state TEXT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (name, measure, run)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS outbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        run INTEGER NOT NULL REFERENCES runs,
        content TEXT NOT NULL,
        tries INTEGER NOT NULL DEFAULT 0,
        error TEXT
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS refused (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        run INTEGER NOT NULL REFERENCES runs,
        content TEXT NOT NULL,
        error TEXT NOT NULL
    )
    """,
)
_MEANINGS = {  # what SQLite says, and what that means to its reader
    "not a database": "this file is no canary history; move it away",
    "malformed": "this history is damaged; move it away",
    "readonly": "the history cannot be written to; make it writable",
    "unable to open": "the history cannot be opened; make it and its folder readable and writable",
    "full": "the history cannot be written, the disk is full; make room",
    "disk I/O": "the history cannot be written, the disk may be full or failing; make room",
}


class HeldError(InputError):
    """Another program holds the history, and did not let go of it in time."""


def open_history(
    path: Path, *, wait_s: float | None = None, must_exist: bool = False
) -> sqlite3.Connection:
    """Open a history, making it where there is none.

    Parameters
    ----------
    path : Path
        Its folder is made too.
    wait_s : float or None
        Seconds to wait for another program that holds it, then and at each statement. None: 10.
    must_exist : bool
        Whether none is made.

    Raises
    ------
    HeldError
        Another program holds it.
    InputError
        It cannot be used, is no history, or was written by a newer misslink.
    """
    refuse_url(path)
    if path.is_dir():
        raise InputError("the history is a file and this is a folder; name a file in it", path=path)
    if must_exist and not path.exists():
        raise InputError(
            "there is no history here; make one with  misslink canary run , or name it with "
            "--history",
            path=path,
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            f"the history's folder cannot be made ({problem.strerror}); choose another --history",
            path=path,
        ) from None
    with speaking(path):
        file = sqlite3.connect(
            str(path.absolute()),
            timeout=_WAIT_S if wait_s is None else wait_s,
            isolation_level=None,
        )
        try:
            _prepare(file, path)
        except BaseException:
            file.close()
            raise
        return file


@contextlib.contextmanager
def speaking(path: Path) -> Iterator[None]:
    """Say in a sentence what SQLite says.

    Raises
    ------
    HeldError
        In place of SQLite's "database is locked".
    InputError
        In place of every other ``sqlite3.Error``.
    """
    try:
        yield
    except sqlite3.Error as trouble:
        said = str(trouble)
        if "locked" in said or "busy" in said:
            raise HeldError(
                "the history is held by another program; wait for it or choose another --history",
                path=path,
            ) from None
        meaning = next((text for words, text in _MEANINGS.items() if words in said), None)
        problem = f"{meaning} or" if meaning else f"the history cannot be used ({said});"
        raise InputError(f"{problem} choose another --history", path=path) from None


@contextlib.contextmanager
def changing(file: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """One transaction on a history: all of it is kept, or nothing.

    Raises
    ------
    HeldError, InputError
        As `speaking`.
    """
    with speaking(path), file:
        file.execute("BEGIN IMMEDIATE")
        yield file


def _prepare(file: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no history known here; give a new file its tables; try a write."""
    tables = file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    application = file.execute("PRAGMA application_id").fetchone()[0]
    version = file.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION and (tables or version):
        raise InputError("this is another program's database; choose another --history", path=path)
    if version > VERSION:
        raise InputError(
            f"this history was written by a newer misslink (format {version}, this one knows "
            f"{VERSION}); update misslink or choose another --history",
            path=path,
        )
    # Two processes that open a new file at once cannot both switch it; one success serves both.
    with contextlib.suppress(sqlite3.OperationalError):
        file.execute("PRAGMA journal_mode = WAL")
    file.execute("PRAGMA synchronous = NORMAL")
    file.execute("PRAGMA foreign_keys = ON")
    with file:
        file.execute("BEGIN IMMEDIATE")
        for table in _TABLES:
            file.execute(table)
        file.execute(f"PRAGMA application_id = {APPLICATION}")
        file.execute(f"PRAGMA user_version = {VERSION}")
