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

from pydantic import BaseModel, ValidationError

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
# Messages repeat each other: the stable part of a prompt is in every question, and the whole of
# it in every sample. So each text is stored once, and a message refers to it by number.
# Batches in progress, their questions and claims are not merged into other caches.
CACHE_FORMAT = SqliteFormat(
    name="response cache",
    hint="choose another --cache",
    application_id=0x6D6C6E6B,  # "mlnk"
    version=5,
    schema=(
        """
        CREATE TABLE IF NOT EXISTS judges (
            id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
            abilities TEXT
        )
        """,
        """
        CREATE TABLE IF NOT EXISTS texts (
            id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, content TEXT NOT NULL
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
            token TEXT NOT NULL, file TEXT NOT NULL, service_id TEXT, questions INTEGER NOT NULL,
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
        "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, claimant INTEGER NOT NULL)",
        """
        CREATE TABLE IF NOT EXISTS claimants (
            id INTEGER PRIMARY KEY, host TEXT NOT NULL, process INTEGER NOT NULL,
            expires REAL NOT NULL
        )
        """,
        "CREATE TABLE IF NOT EXISTS opened (id INTEGER PRIMARY KEY CHECK (id = 1), at TEXT NOT NULL)",
        # A write on every opening shows problems before money is spent.
        "REPLACE INTO opened VALUES (1, strftime('%Y-%m-%dT%H:%M:%S+00:00'))",
    ),
    wait_s=30.0,
)
_SELECT_TEXTS = "SELECT id, content FROM texts WHERE id IN (SELECT value FROM json_each(?))"
_CLAIM_FREE_KEY = """
    INSERT OR IGNORE INTO claims SELECT ?, ?
    WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = ?)
"""
LEASE_S = 120.0  # an event loop that is blocked for less than this loses no claim


def utc_now() -> str:
    """Return the time as ISO 8601 in UTC, to the second; such texts sort by time."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def store_message_texts(file: sqlite3.Connection, messages: Sequence[Mapping[str, Any]]) -> str:
    """Store each new text of `messages`; return the messages as JSON, with texts as numbers.

    Call it inside a transaction.
    """
    numbered = []
    for message in messages:
        content = message["content"]
        digest = hashlib.sha256(content.encode()).digest()
        row = file.execute("SELECT id FROM texts WHERE sha256 = ?", (digest,)).fetchone()
        if row is None:
            insert = "INSERT INTO texts (sha256, content) VALUES (?, ?) RETURNING id"
            row = file.execute(insert, (digest, content)).fetchone()
        numbered.append({**message, "content": row[0]})
    return json.dumps(numbered, ensure_ascii=False)


class CacheStore:
    """Replies by key, on disk when `put` returns; safe to share between processes.

    `path` None keeps them in memory. Every method raises InputError where the file fails.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file = CACHE_FORMAT.open(path)
        self._claimant: int | None = None

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
        parsed = None if stored is None else _parse_answer(stored, ask)
        fits = (parsed is None) == (stored is None)
        if not fits or _checksum(key, content) != checksum:
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
            values = (
                *(ask.prompt.name, ask.prompt.sha256, ask.repeat),
                *(store_message_texts(file, ask.messages), *content),
                *(utc_now(), _checksum(key, content)),
            )
            marks = ", ".join("?" * len(values))
            added = file.execute(
                "INSERT OR IGNORE INTO replies VALUES"  # noqa: S608
                f" (?, (SELECT id FROM judges WHERE identity = ?), {marks})",
                (key, identity, *values),
            )
        return added.rowcount > 0

    def claim(self, key: str) -> bool:
        """Reserve a question for this process; False if it is answered, or another one asks it."""
        if self.path is None:
            return True
        if self._claimant is None:
            # Random: the number of a claimant that is gone must not become another's.
            self._claimant = secrets.randbits(63)
            self.lease()
        with CACHE_FORMAT.errors(self.path):
            free = self._file.execute(_CLAIM_FREE_KEY, (key, self._claimant, key))
            if free.rowcount:
                return True
        if self._is_claimed(key):
            return False
        with self._transaction() as file:
            if self.has(key) or self._is_claimed(key):
                return False
            file.execute("REPLACE INTO claims VALUES (?, ?)", (key, self._claimant))
        return True

    def release(self, key: str) -> None:
        """Give up the claim to a question."""
        self._select("DELETE FROM claims WHERE key = ? AND claimant = ?", key, self._claimant)

    def lease(self) -> None:
        """Extend the claims of this process, and remove those of processes that are gone."""
        now = time.time()
        with self._transaction() as file:
            file.execute("DELETE FROM claimants WHERE expires < ?", (now,))
            values = (self._claimant, platform.node(), os.getpid(), now + LEASE_S)
            file.execute("REPLACE INTO claimants VALUES (?, ?, ?, ?)", values)
            file.execute("DELETE FROM claims WHERE claimant NOT IN (SELECT id FROM claimants)")

    def _is_claimed(self, key: str) -> bool:
        """Whether another process asks this question, and has not ended since."""
        holder = self._select(
            "SELECT host, process FROM claims JOIN claimants ON claimants.id = claimant"
            " WHERE key = ? AND claimant IS NOT ? AND expires >= ?",
            *(key, self._claimant, time.time()),
        )
        return holder is not None and (holder[0] != platform.node() or is_running(holder[1]))

    def remove_refusals(self, identity: str) -> None:
        """Remove the replies in which a judge refused to answer."""
        self._select(
            "DELETE FROM replies WHERE judge = (SELECT id FROM judges WHERE identity = ?)"
            " AND parsed IS NULL AND (instr(problem, ?) = 1 OR instr(problem, ?) = 1)",
            *(identity, DECLINED, WITHHELD),
        )

    def has_judge(self, identity: str) -> bool:
        """Whether any reply of the judge with this identity is stored."""
        sql = "SELECT 1 FROM replies JOIN judges ON judges.id = judge WHERE identity = ? LIMIT 1"
        return self._select(sql, identity) is not None

    def past_usage(self, identity: str, limit: int) -> list[PastUsage]:
        """Return what earlier replies of a judge used, newest first, at most `limit`.

        Each is the messages and the answer as JSON (the raw text where it could not be parsed),
        and the prompt and completion tokens. Replies without reported usage, and those whose
        question is damaged, are left out.
        """
        with CACHE_FORMAT.errors(self.path):
            rows = self._file.execute(
                "SELECT messages, coalesce(parsed, raw), prompt_tokens, completion_tokens"
                " FROM replies WHERE judge = (SELECT id FROM judges WHERE identity = ?)"
                " AND coalesce(prompt_tokens, completion_tokens) IS NOT NULL"
                " ORDER BY replies.rowid DESC LIMIT ?",
                (identity, limit),
            ).fetchall()
            parsed = [(parse_messages(messages), usage) for messages, *usage in rows]
            numbers = json.dumps([m["content"] for messages, _ in parsed for m in messages])
            texts = dict(self._file.execute(_SELECT_TEXTS, (numbers,)).fetchall())
        return [
            (
                json.dumps(
                    [{**m, "content": texts[m["content"]]} for m in messages], ensure_ascii=False
                ),
                *usage,
            )
            for messages, usage in parsed
            if messages and all(m["content"] in texts for m in messages)
        ]

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
        return row[0] if row is not None and _reading_checksum(key, row[0]) == row[1] else None

    def store_readings(self, readings: Mapping[str, str], rules: str) -> None:
        """Store readings by key; those of other rules are removed."""
        rows = [
            (key, rules, content, _reading_checksum(key, content))
            for key, content in readings.items()
        ]
        with self._transaction() as file:
            older = file.execute("SELECT rules FROM readings LIMIT 1").fetchone()
            if older is not None and older[0] != rules:
                file.execute("DELETE FROM readings")
            file.executemany("REPLACE INTO readings VALUES (?, ?, ?, ?)", rows)

    def close(self) -> None:
        """Give up all claims and close the file."""
        if self._claimant is not None:
            with contextlib.suppress(InputError):  # a full disk: the claims expire
                self._select("DELETE FROM claimants WHERE id = ?", self._claimant)
        self._file.close()


def _checksum(key: str, content: Sequence[Any]) -> str:
    text = json.dumps([key, *content], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _reading_checksum(key: str, content: str) -> str:
    return hashlib.sha256(f"{key}{content}".encode("utf-8", "surrogatepass")).hexdigest()


def parse_messages(stored: str) -> list[dict[str, Any]]:
    """Return the stored messages of a question, with texts as numbers; empty where they are damaged."""
    try:
        messages = json.loads(stored)
    except ValueError:
        return []
    valid = isinstance(messages, list) and all(
        isinstance(message, dict) and isinstance(message.get("content"), int)
        for message in messages
    )
    return messages if valid else []


def _parse_answer(stored: str, ask: Ask) -> BaseModel | None:
    """Parse a stored answer to `ask`."""
    try:
        return ask.schema.model_validate_json(stored)
    except ValidationError:
        return None
