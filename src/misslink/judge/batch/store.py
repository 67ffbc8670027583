"""Batches in progress, recorded in the response cache before they are submitted."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.io.atomic import is_running
from misslink.io.sqlite import transaction
from misslink.judge.middleware.cache import CACHE_FORMAT, CacheStore, utc_now
from misslink.judge.protocol import Ask, Reply

_SUBMIT_TIMEOUT = dt.timedelta(minutes=10)  # no request that creates a batch takes longer


@dataclass(frozen=True)
class StoredBatch:
    """A batch in progress, or about to be submitted.

    The server's list shows whether it exists by `token`, in its metadata, or `file`, the id of
    its input file. `service_id` is None while the server's answer is not recorded. `process`
    submits it, `created` is ISO 8601 in UTC.
    """

    row: int
    token: str
    file: str
    service_id: str | None
    questions: int
    process: int
    created: str

    @property
    def created_at(self) -> dt.datetime:
        """When it was recorded."""
        return dt.datetime.fromisoformat(self.created)

    @property
    def in_submission(self) -> bool:
        """Whether the process that recorded it may still be submitting it."""
        expired = dt.datetime.now(dt.UTC) - self.created_at > _SUBMIT_TIMEOUT
        if self.process == os.getpid() or expired:
            return False  # this process knows what it submits: an earlier one had its number
        return is_running(self.process)


class BatchStore:
    """The batches of one judge in a response cache, shared with other processes.

    `identity` is the judge's as JSON. Every method raises InputError where the file fails.
    """

    def __init__(self, path: Path, identity: str, judge: str) -> None:
        self.path = path
        self._identity = identity
        self._judge = judge
        self._file = CACHE_FORMAT.open(path)
        self._replies: CacheStore | None = None

    def cached_reply(self, key: str, ask: Ask) -> Reply | None:
        """Return the reply that another process has cached since, or None."""
        self._replies = self._replies or CacheStore(self.path)
        return self._replies.get(key, ask)

    def row_of(self, key: str) -> int | None:
        """Return the batch that contains a question, or None."""
        row = self._select("SELECT batch FROM batched WHERE key = ?", key)
        return None if row is None else int(row[0])

    def read(self, row: int) -> StoredBatch | None:
        """Return a batch; None where it is not recorded any more."""
        columns = "id, token, file, service_id, questions, process, created"
        values = self._select(f"SELECT {columns} FROM batches WHERE id = ?", row)  # noqa: S608
        return None if values is None else StoredBatch(*values)

    def reserve(self, file: str, keys: Sequence[str]) -> StoredBatch | None:
        """Record that these questions are about to be submitted.

        None where another process has submitted or answered one of them.
        """
        with self._transaction() as db:
            values = self._identity, self._judge, uuid.uuid4().hex, file, len(keys), os.getpid()
            (row,) = db.execute(
                "INSERT INTO batches (identity, judge, token, file, questions, process, created)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
                (*values, utc_now()),
            ).fetchone()
            before = db.total_changes
            db.executemany(
                "INSERT OR IGNORE INTO batched SELECT ?1, ?2"
                " WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = ?1)",
                ((key, row) for key in keys),
            )
            if db.total_changes - before < len(keys):
                db.rollback()
                return None
        return self.read(row)

    def set_service_id(self, row: int, service_id: str) -> None:
        """Record the server's id of a batch."""
        self._select("UPDATE batches SET service_id = ? WHERE id = ?", service_id, row)

    def release(self, row: int, keys: Iterable[str]) -> None:
        """Remove these questions from a batch that has no answer to them."""
        with self._transaction() as db:
            rows = ((key, row) for key in keys)
            db.executemany("DELETE FROM batched WHERE key = ? AND batch = ?", rows)

    def retain(self, row: int, keys: Iterable[str]) -> None:
        """Remove all questions of a batch but these, which it has answered."""
        with self._transaction() as db:
            db.execute("CREATE TEMP TABLE IF NOT EXISTS answered (key TEXT PRIMARY KEY)")
            db.execute("DELETE FROM answered")
            db.executemany("INSERT OR IGNORE INTO answered VALUES (?)", ((key,) for key in keys))
            db.execute(
                "DELETE FROM batched WHERE batch = ? AND key NOT IN (SELECT key FROM answered)",
                (row,),
            )

    def knows(self, key: str) -> bool:
        """Whether a question is in any batch, or its reply is cached."""
        tables = "(SELECT key FROM batched UNION ALL SELECT key FROM replies)"
        return self._select(f"SELECT 1 FROM {tables} WHERE key = ?", key) is not None  # noqa: S608

    def drop(self, row: int) -> None:
        """Remove a batch with all its questions."""
        with self._transaction() as db:
            db.execute("DELETE FROM batched WHERE batch = ?", (row,))
            db.execute("DELETE FROM batches WHERE id = ?", (row,))

    def prune(self) -> None:
        """Remove questions whose replies are cached, and batches without any question left."""
        with self._transaction() as db:
            db.execute("DELETE FROM batched WHERE key IN (SELECT key FROM replies)")
            db.execute("DELETE FROM batches WHERE id NOT IN (SELECT batch FROM batched)")

    def close(self) -> None:
        """Close the file."""
        if self._replies is not None:
            self._replies.close()
        self._file.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with CACHE_FORMAT.errors(self.path), transaction(self._file):
            yield self._file

    def _select(self, sql: str, *values: object) -> Any:
        with CACHE_FORMAT.errors(self.path):
            return self._file.execute(sql, values).fetchone()


def pending_batches(path: Path) -> list[dict[str, Any]]:
    """Return the batches of a response cache whose answers are not fetched, oldest first.

    Each has ``judge``, ``batch`` (the provider's id; None where it is not known), ``questions``,
    ``waiting`` (how many of them have no cached reply) and ``created`` (ISO 8601).
    """
    opened = CACHE_FORMAT.open_read_only(path)
    with CACHE_FORMAT.errors(path), contextlib.closing(opened) as file:
        rows = file.execute(
            "SELECT judge, service_id, questions, count(batched.key), batches.created"
            " FROM batches JOIN batched ON batched.batch = batches.id"
            " WHERE batched.key NOT IN (SELECT key FROM replies)"
            " GROUP BY batches.id ORDER BY batches.created, batches.id"
        ).fetchall()
    names = ("judge", "batch", "questions", "waiting", "created")
    return [dict(zip(names, row, strict=True)) for row in rows]
