"""Which questions are out at a batch service: noted in the ledger's file before they go."""

from __future__ import annotations

import datetime as dt
import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.judging.protocol import Ask, Reply
from misslink.judging.wrappers.ledger_file import open_to_read, open_to_write, speaking
from misslink.judging.wrappers.ledger_format import now
from misslink.judging.wrappers.replies import Replies

__all__ = ["Noted", "Notes", "pending"]

_COLUMNS = "id, token, file, service_id, questions, process, created"
_DEAD_AFTER = dt.timedelta(minutes=10)  # no request to make a batch takes longer


@dataclass(frozen=True)
class Noted:
    """A batch that is out, or was about to go.

    Parameters
    ----------
    row : int
    token, file : str
        By which the server's list shows whether it was made: the token in its metadata, the id of
        its input file.
    service_id : str or None
        What the server calls it; None where its answer was not noted.
    questions : int
    process : int
        Who was about to submit it.
    created : str
        ISO 8601 in UTC.
    """

    row: int
    token: str
    file: str
    service_id: str | None
    questions: int
    process: int
    created: str

    @property
    def at(self) -> dt.datetime:
        """When it was about to go."""
        return dt.datetime.fromisoformat(self.created)

    @property
    def in_hand(self) -> bool:
        """Whether the process that was about to submit it may still be doing so."""
        if self.process == os.getpid() or dt.datetime.now(dt.UTC) - self.at > _DEAD_AFTER:
            return False  # this very process knows what it is submitting; that is another's number
        if os.name != "posix":  # elsewhere nobody can be asked without harm
            return True
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


class Notes:
    """The batches of one judge in a ledger's file, shared with other processes.

    Parameters
    ----------
    path : Path
        The ledger.
    identity : str
        The judge's, as JSON.
    judge : str
        Its name, for people.

    Raises
    ------
    InputError
        The file cannot be written or is no ledger; every method raises it too.
    """

    def __init__(self, path: Path, identity: str, judge: str) -> None:
        self.path = path
        self._identity = identity
        self._judge = judge
        self._file = open_to_write(path)
        self._replies: Replies | None = None

    def kept(self, key: str, ask: Ask) -> Reply | None:
        """Return the reply that another process has fetched and kept since; None: there is none."""
        if self._replies is None:
            self._replies = Replies(self.path)
        return self._replies.get(key, ask)

    def row_of(self, key: str) -> int | None:
        """Return in which batch a question is out; None where in none."""
        found = self._one("SELECT batch FROM batched WHERE key = ?", key)
        return None if found is None else int(found[0])

    def read(self, row: int) -> Noted | None:
        """Return a batch; None where it is not noted any more."""
        found = self._one(f"SELECT {_COLUMNS} FROM batches WHERE id = ?", row)  # noqa: S608 - no data
        return None if found is None else Noted(*found)

    def intend(self, file: str, keys: Sequence[str]) -> Noted | None:
        """Note that these questions are about to go out, before they do.

        Returns
        -------
        Noted or None
            None where one of them is out or answered already: another process was first.
        """
        token = uuid.uuid4().hex
        with speaking(self.path), self._file as open_file:
            open_file.execute("BEGIN IMMEDIATE")
            added = open_file.execute(
                "INSERT INTO batches (identity, judge, token, file, questions, process, created)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (self._identity, self._judge, token, file, len(keys), os.getpid(), now()),
            )
            row = added.lastrowid
            before = open_file.total_changes
            open_file.executemany(
                "INSERT OR IGNORE INTO batched SELECT ?1, ?2"
                " WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = ?1)",
                ((key, row) for key in keys),
            )
            if open_file.total_changes - before < len(keys):
                open_file.rollback()
                return None
        return self.read(row) if row is not None else None

    def name(self, row: int, service_id: str) -> None:
        """Note what the server calls a batch."""
        with speaking(self.path):
            self._file.execute("UPDATE batches SET service_id = ? WHERE id = ?", (service_id, row))

    def release(self, row: int, keys: Iterable[str]) -> None:
        """Forget that these questions are out in this batch: nothing came of it."""
        with speaking(self.path), self._file as open_file:
            open_file.execute("BEGIN IMMEDIATE")
            open_file.executemany(
                "DELETE FROM batched WHERE key = ? AND batch = ?", ((key, row) for key in keys)
            )

    def keep_only(self, row: int, keys: Iterable[str]) -> None:
        """Forget all questions of a batch but these, which it has answered."""
        with speaking(self.path), self._file as open_file:
            open_file.execute("BEGIN IMMEDIATE")
            open_file.execute("CREATE TEMP TABLE IF NOT EXISTS answered (key TEXT PRIMARY KEY)")
            open_file.execute("DELETE FROM answered")
            open_file.executemany("INSERT OR IGNORE INTO answered VALUES (?)", ((k,) for k in keys))
            open_file.execute(
                "DELETE FROM batched WHERE batch = ? AND key NOT IN (SELECT key FROM answered)",
                (row,),
            )

    def knows(self, key: str) -> bool:
        """Whether a question is out in any batch, or its reply is kept."""
        sql = (
            "SELECT EXISTS (SELECT 1 FROM batched WHERE key = ?)"
            " OR EXISTS (SELECT 1 FROM replies WHERE key = ?)"
        )
        found = self._one(sql, key, key)
        return found is not None and bool(found[0])

    def drop(self, row: int) -> None:
        """Forget a batch with all its questions."""
        with speaking(self.path), self._file as open_file:
            open_file.execute("BEGIN IMMEDIATE")
            open_file.execute("DELETE FROM batched WHERE batch = ?", (row,))
            open_file.execute("DELETE FROM batches WHERE id = ?", (row,))

    def tidy(self) -> None:
        """Forget the questions whose replies are kept, and the batches with nothing to fetch."""
        with speaking(self.path), self._file as open_file:
            open_file.execute("BEGIN IMMEDIATE")
            open_file.execute("DELETE FROM batched WHERE key IN (SELECT key FROM replies)")
            open_file.execute("DELETE FROM batches WHERE id NOT IN (SELECT batch FROM batched)")

    def close(self) -> None:
        """Close the file."""
        if self._replies is not None:
            self._replies.close()
        self._file.close()

    def _one(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        with speaking(self.path):
            row: tuple[Any, ...] | None = self._file.execute(sql, values).fetchone()
        return row


def pending(path: Path) -> list[dict[str, Any]]:
    """Return the batches of a ledger whose answers are not fetched, the oldest first.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list of dict
        Of each ``judge``, ``batch`` (what its provider calls it; None where that is not known),
        ``questions``, ``waiting`` (how many of them have no reply in the ledger) and ``created``
        (ISO 8601).

    Raises
    ------
    InputError
        There is no ledger, or it cannot be read.
    """
    with speaking(path):
        file = open_to_read(path)
        try:
            if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'batched'").fetchone():
                return []  # a ledger from before there were batches
            rows = file.execute(
                "SELECT judge, service_id, questions, count(batched.key), batches.created"
                " FROM batches JOIN batched ON batched.batch = batches.id"
                " WHERE batched.key NOT IN (SELECT key FROM replies)"
                " GROUP BY batches.id ORDER BY batches.created, batches.id"
            ).fetchall()
        finally:
            file.close()
    names = ("judge", "batch", "questions", "waiting", "created")
    return [dict(zip(names, row, strict=True)) for row in rows]
