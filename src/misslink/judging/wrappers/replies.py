"""The file behind the ledger: one SQLite table of what judges have said.

It is kept in WAL mode. ``synchronous=NORMAL`` is enough for a killed process: a commit has been
handed to the operating system before the reply is used, and the system keeps it whatever becomes
of the process. Only a power cut can lose the last commits, and even that leaves the file whole;
waiting for the disk at every commit would buy nothing else.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from misslink.errors import InputError
from misslink.judging.protocol import Ask, Reply
from misslink.types import Usage

__all__ = ["Replies"]

_VERSION = 1
_APPLICATION = 0x6D6C6E6B  # "mlnk" in the file's header tells a ledger from any other database
_BUSY_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY,
    identity TEXT NOT NULL,
    judge TEXT NOT NULL,
    prompt TEXT NOT NULL,
    prompt_sha256 TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    messages TEXT NOT NULL,
    raw TEXT NOT NULL,
    parsed TEXT,
    problem TEXT,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    probabilities TEXT NOT NULL,
    created TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS replies_by_identity ON replies (identity);
CREATE TABLE IF NOT EXISTS opened (id INTEGER PRIMARY KEY CHECK (id = 1), at TEXT NOT NULL);
"""
_MEANINGS = {  # what SQLite says, and what that means to its reader
    "not a database": "this file is no ledger; move it away",
    "malformed": "this ledger is damaged; move it away",
    "readonly": "the ledger cannot be written to; make it writable",
    "unable to open": "the ledger cannot be opened; check the permissions of its folder",
    "full": "the ledger cannot be written, the disk is full; make room",
    "disk I/O": "the ledger cannot be written, the disk may be full or failing; make room",
    "locked": "the ledger is held by another program; wait for it",
}


class Replies:
    """Replies by key, on disk when `add` returns; safe to share between processes.

    Parameters
    ----------
    path : Path or None
        The file; its folder is made. None keeps them in memory.

    Raises
    ------
    InputError
        The file cannot be written or is no ledger. Every method raises it too, should the file
        fail later.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file = _open(path)

    def get(self, key: str, ask: Ask) -> Reply | None:
        """Return the reply kept under `key`, read as the schema of `ask`, or None."""
        with self._speaking():
            row = self._file.execute(
                "SELECT raw, parsed, problem, prompt_tokens, completion_tokens, probabilities "
                "FROM replies WHERE key = ?",
                (key,),
            ).fetchone()
        if row is None:
            return None
        raw, stored, problem, prompt_tokens, completion_tokens, probabilities = row
        parsed = None
        if stored is not None:
            try:
                parsed = ask.schema.model_validate_json(stored)
            except ValidationError:
                problem = "the reply kept in the ledger does not fit the answer schema any more"
        reported = prompt_tokens is not None or completion_tokens is not None
        usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
        return Reply(
            parsed=parsed,
            raw=raw,
            usage=usage if reported else None,
            probabilities=json.loads(probabilities),
            problem=problem,
            from_ledger=True,
        )

    def add(
        self, key: str, ask: Ask, reply: Reply, *, identity: str, judge: str, repeat: int
    ) -> None:
        """Keep `reply` under `key`, unless another process kept one there first.

        Parameters
        ----------
        key : str
        ask : Ask
        reply : Reply
        identity : str
            The judge's identity as JSON.
        judge : str
            Its name, for people.
        repeat : int
            Which sample of the ask this is, from 0.
        """
        usage = reply.usage or Usage()
        row = {
            "key": key,
            "identity": identity,
            "judge": judge,
            "prompt": ask.prompt.name,
            "prompt_sha256": ask.prompt.sha256,
            "repeat": repeat,
            "messages": json.dumps([dict(message) for message in ask.messages], ensure_ascii=False),
            "raw": reply.raw,
            "parsed": None if reply.parsed is None else reply.parsed.model_dump_json(),
            "problem": reply.problem,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "probabilities": json.dumps(dict(reply.probabilities)),
            "created": _now(),
        }
        columns = ", ".join(row)
        marks = ", ".join(f":{column}" for column in row)
        with self._speaking():
            self._file.execute(
                f"INSERT OR IGNORE INTO replies ({columns}) VALUES ({marks})",  # noqa: S608 - no data
                row,
            )

    def holds(self, identity: str) -> bool:
        """Whether any reply of the judge with this identity is kept."""
        with self._speaking():
            found = self._file.execute(
                "SELECT 1 FROM replies WHERE identity = ? LIMIT 1", (identity,)
            )
            return found.fetchone() is not None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextlib.contextmanager
    def _speaking(self) -> Iterator[None]:
        """Say in a sentence what SQLite says."""
        try:
            yield
        except sqlite3.Error as trouble:
            raise InputError(_sentence(trouble), path=self.path) from None


def _open(path: Path | None) -> sqlite3.Connection:
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
    try:
        # Used by one event loop, which need not run in the thread that opened it (a notebook).
        file = sqlite3.connect(
            ":memory:" if path is None else path,
            timeout=_BUSY_S,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error as trouble:
        raise InputError(_sentence(trouble), path=path) from None
    try:
        _prepare(file, path)
    except sqlite3.Error as trouble:
        file.close()
        raise InputError(_sentence(trouble), path=path) from None
    except InputError:
        file.close()
        raise
    return file


def _prepare(file: sqlite3.Connection, path: Path | None) -> None:
    """Make a new file a ledger, refuse what is none, and try a write before money is spent."""
    tables, application, version = (
        file.execute(question).fetchone()[0]
        for question in (
            "SELECT count(*) FROM sqlite_master",
            "PRAGMA application_id",
            "PRAGMA user_version",
        )
    )
    if tables and application != _APPLICATION:
        raise InputError("this is another program's database; choose another --ledger", path=path)
    if version > _VERSION:
        raise InputError(
            f"this ledger was written by a newer misslink (format {version}, this one knows "
            f"{_VERSION}); update misslink or choose another --ledger",
            path=path,
        )
    # Two processes that open a new file at once cannot both switch it; one success serves both,
    # and whatever else is wrong with the file shows in the write below.
    with contextlib.suppress(sqlite3.OperationalError):
        file.execute("PRAGMA journal_mode = WAL")
    file.execute("PRAGMA synchronous = NORMAL")
    file.executescript(
        f"BEGIN IMMEDIATE; PRAGMA application_id = {_APPLICATION}; "
        f"PRAGMA user_version = {_VERSION}; {_SCHEMA} COMMIT;"
    )
    file.execute("REPLACE INTO opened VALUES (1, ?)", (_now(),))


def _sentence(trouble: sqlite3.Error) -> str:
    said = str(trouble)
    for words, meaning in _MEANINGS.items():
        if words in said:
            return f"{meaning} or choose another --ledger"
    return f"the ledger cannot be used ({said}); choose another --ledger"


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
