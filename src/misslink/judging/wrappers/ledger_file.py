"""The ledger's file: found, opened, and proved fit before money is spent.

It is an SQLite database in WAL mode. ``synchronous=NORMAL`` is enough for a killed process: a
commit has been handed to the operating system before the reply is used, and the system keeps it
whatever becomes of the process. Only a power cut can lose the last commits, and even that leaves
the file whole; waiting for the disk at every commit would buy nothing else.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from misslink.errors import InputError
from misslink.files.addresses import refuse_url
from misslink.judging.wrappers.ledger_format import (
    APPLICATION,
    READABLE,
    VERSION,
    bring_up_to_date,
    number,
)

__all__ = [
    "DEFAULT_LEDGER",
    "open_to_change",
    "open_to_read",
    "open_to_write",
    "speaking",
]

DEFAULT_LEDGER = Path(".misslink/ledger.sqlite")

_ANOTHER = "choose another --ledger"
_BUSY_S = 30.0
_CHECKED_BYTES = 2**30  # up to this size a file is looked through on opening: 0.6 s at most
_MEANINGS = {  # what SQLite says, and what that means to its reader
    "not a database": "this file is no ledger; move it away",
    "malformed": "this ledger is damaged; move it away",
    "readonly": "the ledger cannot be written to; make it writable",
    "unable to open": "the ledger cannot be opened; make it and its folder readable and writable",
    "full": "the ledger cannot be written, the disk is full; make room",
    "disk I/O": "the ledger cannot be written, the disk may be full or failing; make room",
    "locked": "the ledger is held by another program; wait for it",
}


def open_to_write(path: Path | None) -> sqlite3.Connection:
    """Open a ledger for a run, making it where there is none.

    Parameters
    ----------
    path : Path or None
        Its folder is made too. None opens one in memory.

    Raises
    ------
    InputError
        It cannot be written or is no ledger. A write is tried, so that this shows before money
        is spent.
    """
    if path is not None:
        refuse_url(path)
    if path is not None and path.is_dir():
        raise InputError("the ledger is a file and this is a folder; name a file in it", path=path)
    try:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            f"the ledger's folder cannot be made ({problem.strerror}); choose another --ledger",
            path=path,
        ) from None
    with speaking(path):
        return _prepared(":memory:" if path is None else str(path.absolute()), path)


def open_to_read(path: Path, *, name: object = None, instead: str = _ANOTHER) -> sqlite3.Connection:
    """Open a ledger to look into it; what is in it cannot be changed this way.

    A run may be writing to it at the same time. One of the first format is read from a copy in
    memory; one of the second has no tables for batches.

    Parameters
    ----------
    path : Path
    name : object
        What it is called in messages. None: `path`.
    instead : str
        What else its user may do, as the end of a message.

    Raises
    ------
    InputError
        There is none, it is no ledger, or it lies where nothing can be written and a run that
        was killed left its newest replies in the file beside it.
    """
    _must_exist(path)
    address = path.absolute().as_uri()
    name = path if name is None else name
    with speaking(name, instead):
        try:
            file = _checked(f"{address}?mode=rw", name, instead)
        except sqlite3.OperationalError as trouble:
            # On a medium that cannot be written SQLite has no place for its lock file; nobody
            # else can be writing there either.
            if "unable to open" not in str(trouble) and "readonly" not in str(trouble):
                raise
            _refuse_a_log(path, name, instead)
            file = _checked(f"{address}?immutable=1", name, instead)
        if number(file, "user_version") < READABLE:
            memory = _connect(":memory:")
            with contextlib.closing(file):
                file.backup(memory)
            bring_up_to_date(memory)
            file = memory
        file.execute("PRAGMA query_only = 1")
        return file


def open_to_change(path: Path) -> sqlite3.Connection:
    """Open a ledger that is there; as `open_to_write`, but none is made.

    Raises
    ------
    InputError
        There is none, it cannot be written or it is no ledger.
    """
    _must_exist(path)
    return open_to_write(path)


@contextlib.contextmanager
def speaking(path: object, instead: str = _ANOTHER) -> Iterator[None]:
    """Say in a sentence what SQLite says.

    Parameters
    ----------
    path : object
        What the ledger is called.
    instead : str
        What else its user may do.

    Raises
    ------
    InputError
        In place of every ``sqlite3.Error``.
    """
    try:
        yield
    except sqlite3.Error as trouble:
        said = str(trouble)
        meaning = next((text for words, text in _MEANINGS.items() if words in said), None)
        problem = (
            f"{meaning} or {instead}"
            if meaning
            else f"the ledger cannot be used ({said}); {instead}"
        )
        raise InputError(problem, path=path) from None


def _must_exist(path: Path) -> None:
    refuse_url(path)
    if path.is_dir():
        raise InputError("the ledger is a file and this is a folder; name a file in it", path=path)
    if not path.exists():
        raise InputError("there is no ledger here; name one with --ledger", path=path)


def _refuse_a_log(path: Path, name: object, instead: str) -> None:
    """Refuse what could be read only without the replies that are not yet merged into the file."""
    log = path.with_name(f"{path.name}-wal")
    if log.is_file() and log.stat().st_size:
        raise InputError(
            f"its newest replies lie in {log.name} beside it, which can be read only where it can "
            f"be written; copy both files into a folder that can be written, or {instead}",
            path=name,
        )


def _connect(where: str) -> sqlite3.Connection:
    return sqlite3.connect(
        where,
        timeout=_BUSY_S,
        isolation_level=None,
        # Used by one event loop, which need not run in the thread that opened it (a notebook).
        check_same_thread=False,
        uri=where.startswith("file:"),
    )


def _prepared(where: str, path: Path | None) -> sqlite3.Connection:
    """Make a new file a ledger, refuse what is none, and try a write before money is spent."""
    file = _checked(where, path, may_be_new=True)
    try:
        # Two processes that open a new file at once cannot both switch it; one success serves
        # both, and whatever else is wrong with the file shows in the write below.
        with contextlib.suppress(sqlite3.OperationalError):
            file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = NORMAL")
        bring_up_to_date(file)
        if path is not None and path.stat().st_size <= _CHECKED_BYTES:
            _look_through(file)
    except BaseException:
        file.close()
        raise
    return file


def _checked(
    where: str, path: object, instead: str = _ANOTHER, *, may_be_new: bool = False
) -> sqlite3.Connection:
    """Open a database that is a ledger of a format known here."""
    file = _connect(where)
    try:
        _refuse_what_is_none(file, path, instead, may_be_new=may_be_new)
    except BaseException:
        file.close()
        raise
    return file


def _refuse_what_is_none(
    file: sqlite3.Connection, path: object, instead: str, *, may_be_new: bool
) -> None:
    tables = file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if number(file, "application_id") != APPLICATION and (tables or not may_be_new):
        what = "another program's database" if tables else "an empty file and no ledger"
        raise InputError(f"this is {what}; {instead}", path=path)
    version = number(file, "user_version")
    if version > VERSION:
        raise InputError(
            f"this ledger was written by a newer misslink (format {version}, this one knows "
            f"{VERSION}); update misslink or {instead}",
            path=path,
        )


def _look_through(file: sqlite3.Connection) -> None:
    """Find damage now, and not in the middle of a run when a reply cannot be kept."""
    (found,) = file.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(f"malformed: {found}")
