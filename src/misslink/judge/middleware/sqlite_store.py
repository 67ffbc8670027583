"""The response cache on disk: a SQLite file of replies, readings and claims."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import logging
import os
import platform
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from misslink.errors import InputError
from misslink.io.atomic import is_running
from misslink.io.sqlite import SqliteFormat, transaction
from misslink.judge.backends.response_parsing import DECLINED, WITHHELD
from misslink.judge.middleware.reply_store import PastUsage
from misslink.judge.protocol import Ask, Reply
from misslink.types import Usage

_log = logging.getLogger(__name__)
REPLY_COLUMNS = """
    prompt TEXT NOT NULL, prompt_sha256 TEXT NOT NULL, repeat INTEGER NOT NULL,
    messages TEXT NOT NULL, raw TEXT NOT NULL, parsed TEXT, problem TEXT,
    prompt_tokens INTEGER, completion_tokens INTEGER, probabilities TEXT NOT NULL,
    answered_by TEXT, created TEXT NOT NULL, checksum TEXT NOT NULL
"""
REPLY_COLUMN_NAMES = [column.split()[0] for column in REPLY_COLUMNS.split(",")]
# Batches in progress, their questions and claims are not merged into other caches.
CACHE_FORMAT = SqliteFormat(
    name="response cache",
    hint="choose another --cache",
    application_id=0x6D6C6E6B,  # "mlnk"
    version=6,
    schema=(
        """
        CREATE TABLE IF NOT EXISTS judges (
            id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
            abilities TEXT
        )
        """,
        f"""
        CREATE TABLE IF NOT EXISTS replies (
            key TEXT PRIMARY KEY, judge INTEGER NOT NULL REFERENCES judges, {REPLY_COLUMNS}
        )
        """,
        "CREATE INDEX IF NOT EXISTS replies_by_judge ON replies (judge)",
        """
        CREATE TABLE IF NOT EXISTS batches (
            id INTEGER PRIMARY KEY, identity TEXT NOT NULL, judge TEXT NOT NULL,
            file TEXT NOT NULL, service_id TEXT, questions INTEGER NOT NULL,
            process INTEGER NOT NULL, created TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE IF NOT EXISTS batched (
            key TEXT PRIMARY KEY, batch INTEGER NOT NULL REFERENCES batches
        )
        """,
        "CREATE INDEX IF NOT EXISTS batched_by_batch ON batched (batch)",
        # What was read from replies, by the hash of what it was made from. It can be read again, so
        # none is merged into other caches, and all go where replies are removed.
        """
        CREATE TABLE IF NOT EXISTS readings (
            key TEXT PRIMARY KEY, rules TEXT NOT NULL, content TEXT NOT NULL, checksum TEXT NOT NULL
        )
        """,
        # A process claims a question before it asks it, so that others wait for its reply.
        """
        CREATE TABLE IF NOT EXISTS claims (
            key TEXT PRIMARY KEY, claimant INTEGER NOT NULL, host TEXT NOT NULL,
            process INTEGER NOT NULL, expires REAL NOT NULL
        )
        """,
        "CREATE TABLE IF NOT EXISTS opened (id INTEGER PRIMARY KEY CHECK (id = 1), at TEXT NOT NULL)",
        # A write on every opening shows problems before money is spent.
        "REPLACE INTO opened VALUES (1, strftime('%Y-%m-%dT%H:%M:%S+00:00'))",
    ),
    wait_s=30.0,
)
_CLAIM = """
    INSERT INTO claims SELECT ?1, ?2, ?3, ?4, ?5
    WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = ?1)
    ON CONFLICT (key) DO UPDATE SET claimant = ?2, host = ?3, process = ?4, expires = ?5
    WHERE claimant = ?2 OR expires < ?6 OR (host = ?3 AND NOT is_running(process))
"""
_REFUSED = (
    "(parsed IS NULL AND (instr(ifnull(problem, ''), ?) = 1 OR instr(ifnull(problem, ''), ?) = 1))"
)
LEASE_S = 120.0  # an event loop that is blocked for less than this loses no claim


def utc_now() -> str:
    """Return the time as ISO 8601 in UTC, to the second; such texts sort by time."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def insert_reply(
    file: sqlite3.Connection, key: str, identity: str, values: Sequence[object]
) -> bool:
    """Add a reply of a stored judge; return False where one has its key."""
    added = file.execute(
        f"INSERT INTO replies SELECT ?, id, {', '.join('?' * len(values))} FROM judges"  # noqa: S608
        " WHERE identity = ? ON CONFLICT (key) DO NOTHING",
        (key, *values, identity),
    )
    return added.rowcount > 0


class CacheStore:
    """Replies by key, on disk when `put` returns; safe to share between processes.

    `path` None keeps them in memory. Every method raises InputError where the file fails.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file = CACHE_FORMAT.open(path)
        self._file.create_function("is_running", 1, is_running)
        self._claimant = secrets.randbits(63)  # an earlier process may have had our number

    @property
    def shared(self) -> bool:
        """Whether other processes may use the file."""
        return self.path is not None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with CACHE_FORMAT.errors(self.path), transaction(self._file):
            yield self._file

    def _select(self, sql: str, *values: object) -> Any:
        with CACHE_FORMAT.errors(self.path):
            return self._file.execute(sql, values).fetchone()

    def get(self, key: str, ask: Ask) -> Reply | None:
        """Return the reply stored under `key`, parsed as an answer to `ask`, or None.

        A damaged reply is removed, so that misslink asks its question again.
        """
        row = self._select(
            "SELECT raw, parsed, problem, prompt_tokens, completion_tokens, probabilities, "
            "answered_by, checksum FROM replies WHERE key = ?",
            key,
        )
        if row is None:
            return None
        *content, checksum = row
        raw, stored, problem, prompt_tokens, completion_tokens, probabilities, answered_by = content
        parsed, is_whole = None, _checksum(key, *content) == checksum
        if stored is not None and is_whole:
            try:
                parsed = ask.schema.model_validate_json(stored)
            except ValidationError:
                is_whole = False
        if not is_whole:
            _log.warning("a reply in %s was damaged; misslink asks its question again", self.path)
            self._select("DELETE FROM replies WHERE key = ?", key)
            return None
        usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
        return Reply(
            parsed=parsed,
            raw=raw,
            usage=None if usage == Usage() else usage,
            probabilities=json.loads(probabilities),
            problem=problem,
            from_cache=True,
            judge=answered_by,
        )

    def has(self, key: str) -> bool:
        """Whether a reply is stored under `key`."""
        return self._select("SELECT 1 FROM replies WHERE key = ?", key) is not None

    def put(self, key: str, ask: Ask, reply: Reply, *, identity: str, judge: str) -> bool:
        """Store `reply` under `key`; return False where another process stored one first.

        `identity` is the judge's identity as JSON, and `judge` its name.
        """
        usage = reply.usage or Usage()
        parsed = None if reply.parsed is None else reply.parsed.model_dump_json()
        probabilities = {place: dict(labels) for place, labels in reply.probabilities.items()}
        with self._transaction() as file:
            file.execute("DELETE FROM claims WHERE key = ?", (key,))
            file.execute(
                "INSERT OR IGNORE INTO judges (identity, name) VALUES (?, ?)", (identity, judge)
            )
            content = (
                *(reply.raw, parsed, reply.problem, usage.prompt_tokens, usage.completion_tokens),
                *(json.dumps(probabilities), reply.judge),
            )
            messages = json.dumps([dict(each) for each in ask.messages], ensure_ascii=False)
            values = (
                *(ask.prompt.name, ask.prompt.sha256, ask.repeat),
                *(messages, *content),
                *(utc_now(), _checksum(key, *content)),
            )
            return insert_reply(file, key, identity, values)

    def claim(self, key: str) -> bool:
        """Reserve a question for this process; False if it is answered, or another one asks it."""
        now = time.time()
        claimant = self._claimant, platform.node(), os.getpid(), now + LEASE_S
        with CACHE_FORMAT.errors(self.path):
            return self._file.execute(_CLAIM, (key, *claimant, now)).rowcount > 0

    def release(self, key: str) -> None:
        """Give up the claim to a question."""
        self._select("DELETE FROM claims WHERE key = ? AND claimant = ?", key, self._claimant)

    def lease(self) -> None:
        """Extend the claims of this process."""
        update = "UPDATE claims SET expires = ? WHERE claimant = ?"
        self._select(update, time.time() + LEASE_S, self._claimant)

    def remove_refusals(self, identity: str) -> None:
        """Remove the replies in which a judge refused to answer."""
        self._select(
            "DELETE FROM replies WHERE judge = (SELECT id FROM judges WHERE identity = ?)"  # noqa: S608
            f" AND {_REFUSED}",
            *(identity, DECLINED, WITHHELD),
        )

    def detach_unreadable(self, key: str) -> None:
        """Give a reply that could not be parsed, and is no refusal, a key that no question has."""
        self._select(
            "UPDATE replies SET key = hex(randomblob(32)) WHERE key = ? AND parsed IS NULL"  # noqa: S608
            f" AND NOT {_REFUSED}",
            *(key, DECLINED, WITHHELD),
        )

    def has_judge(self, identity: str) -> bool:
        """Whether any reply of the judge with this identity is stored."""
        sql = "SELECT 1 FROM replies JOIN judges ON judges.id = judge WHERE identity = ? LIMIT 1"
        return self._select(sql, identity) is not None

    def past_usage(self, identity: str, limit: int) -> list[PastUsage]:
        """Return what earlier replies of a judge used, newest first, at most `limit`.

        Each is the messages and the answer as JSON (the raw text where it could not be parsed),
        and the prompt and completion tokens. Replies without reported usage are left out.
        """
        with CACHE_FORMAT.errors(self.path):
            return self._file.execute(
                "SELECT messages, coalesce(parsed, raw), prompt_tokens, completion_tokens"
                " FROM replies WHERE judge = (SELECT id FROM judges WHERE identity = ?)"
                " AND coalesce(prompt_tokens, completion_tokens) IS NOT NULL"
                " ORDER BY replies.rowid DESC LIMIT ?",
                (identity, limit),
            ).fetchall()

    def abilities(self, identity: str) -> Mapping[str, Any] | None:
        """Return what this judge detected about its server; None where nothing valid is stored."""
        row = self._select("SELECT abilities FROM judges WHERE identity = ?", identity)
        try:
            abilities = json.loads(row[0]) if row and row[0] is not None else None
        except ValueError:
            return None
        return abilities if isinstance(abilities, dict) else None

    def save_abilities(self, identity: str, abilities: str) -> None:
        """Store what a judge detected, as JSON; has no effect for a judge without any reply."""
        self._select("UPDATE judges SET abilities = ? WHERE identity = ?", abilities, identity)

    def reading(self, key: str) -> str | None:
        """Return the reading stored under `key`; None where there is none, or it is damaged."""
        row = self._select("SELECT content, checksum FROM readings WHERE key = ?", key)
        return row[0] if row is not None and _checksum(key, row[0]) == row[1] else None

    def store_readings(self, readings: Mapping[str, str], rules: str) -> None:
        """Store readings by key; those of other rules are removed."""
        rows = [(key, rules, content, _checksum(key, content)) for key, content in readings.items()]
        with self._transaction() as file:
            older = file.execute("SELECT rules FROM readings LIMIT 1").fetchone()
            if older is not None and older[0] != rules:
                file.execute("DELETE FROM readings")
            file.executemany("REPLACE INTO readings VALUES (?, ?, ?, ?)", rows)

    def close(self) -> None:
        """Give up all claims and close the file."""
        with contextlib.suppress(InputError):  # a full disk: the claims expire
            self._select("DELETE FROM claims WHERE claimant = ?", self._claimant)
        self._file.close()


def _checksum(*content: Any) -> str:
    text = json.dumps(content, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
