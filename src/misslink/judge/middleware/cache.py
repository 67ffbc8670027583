"""The response cache: judge replies on disk, read before calling the judge."""

from __future__ import annotations

import asyncio
import contextlib
import copy
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
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from misslink.errors import InputError
from misslink.io.atomic import is_running
from misslink.io.sqlite import SqliteFormat, transaction
from misslink.io.storage import as_url
from misslink.judge.backends.response_parsing import DECLINED, WITHHELD
from misslink.judge.middleware.reply_store import PastUsage, ReplyStore
from misslink.judge.protocol import Ask, Judge, JudgeLayer, Reply, judge_info, unwrap_judge
from misslink.judge.readings import Readings
from misslink.registry import reply_stores
from misslink.text.normalization import valid_text
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
_LEASE_S = 120.0  # an event loop that is blocked for less than this loses no claim
_CLAIM_POLL_S = 0.1


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
            if self.has(key):
                return False
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
            file.execute(
                "INSERT INTO replies VALUES"  # noqa: S608
                f" (?, (SELECT id FROM judges WHERE identity = ?), {marks})",
                (key, identity, *values),
            )
        return True

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
            values = (self._claimant, platform.node(), os.getpid(), now + _LEASE_S)
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


def open_reply_store(cache: Path | None) -> ReplyStore:
    """Open the store of a cache: by the scheme of its address, else the SQLite file of a path."""
    url = None if cache is None else as_url(cache)
    if url is None or (scheme := url.partition("://")[0]) not in reply_stores:
        return CacheStore(cache)
    store: ReplyStore = reply_stores.get(scheme)(url)
    return store


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
    """Parse a stored answer to `ask`, or to its one-label form."""
    for asked in filter(None, (lambda: ask, ask.alone)):
        with contextlib.suppress(ValidationError):
            return asked().schema.model_validate_json(stored)
    return None


_MAX_TOKENS = 2**53  # larger counts are wrong, and some JSON readers cannot represent them


class CachedJudge(JudgeLayer):
    """A judge that answers each question once; later the reply comes from the cache.

    The cache key is the SHA-256 of the judge's identity, the ask's key and the number of the
    repetition. Replies that could not be parsed are cached too: they were paid for, and a
    deterministic judge would repeat them. Failed calls are not cached. Several processes may
    share one file, and a question in flight in this process is awaited, not repeated.

    What the judge detected about its server (``abilities``) is stored with its replies, so that a
    resumed run asks as the first one did. `path` None caches in memory only.

    With `claims`, of several processes that need one reply the first asks, and the others wait.
    With `retry_refused`, questions that the judge refused earlier are repeated.
    """

    def __init__(
        self, judge: Judge, path: Path | None, *, claims: bool = True, retry_refused: bool = False
    ) -> None:
        super().__init__(judge)
        self.path = path
        self.calls = 0  # questions put to the judge since opening
        self.from_cache = 0  # questions answered from the cache since opening
        self._tokens: dict[str, int] = {}
        self._identity = identity_json(judge)
        self._in_flight: dict[str, asyncio.Task[Reply]] = {}
        self._store = open_reply_store(path)
        if retry_refused:
            self._store.remove_refusals(self._identity)
        self.readings = Readings(self._store if path is not None else None)
        self._claims = claims and self._store.shared
        self._renewal: asyncio.Task[None] | None = None
        self._inner = unwrap_judge(judge)
        self._abilities: Mapping[str, Any] | None = None
        abilities = self._store.abilities(self._identity)
        learn = judge_info(self._inner).learn
        if abilities is not None and learn is not None:
            learn(abilities)
            self._abilities = copy.deepcopy(abilities)

    async def ask(self, ask: Ask) -> Reply:
        """Return the judge's reply to `ask`, from the cache where it is there."""
        key = cache_key(ask, self._identity)
        cached = self._store.get(key, ask)
        if cached is not None:
            self.from_cache += 1
            return cached
        running = self._in_flight.get(key)
        if running is not None:
            reply = await asyncio.shield(running)
            if reply.came:
                self.from_cache += 1
                return replace(reply, from_cache=True)
            return reply
        task = asyncio.create_task(self._ask_and_store(key, ask))
        self._in_flight[key] = task
        task.add_done_callback(lambda done: self._remove_task(key, done))
        # Shielded: a call in flight is paid for, so its reply is cached even if no caller waits.
        return await asyncio.shield(task)

    def is_cached(self, ask: Ask) -> bool:
        """Whether a reply of this judge to `ask` is cached, so that asking it costs nothing."""
        return self._store.has(cache_key(ask, self._identity))

    def has_replies(self) -> bool:
        """Whether any reply of this judge is cached, so that a repeated run may need no judge."""
        return self._store.has_judge(self._identity)

    def past_usage(self, limit: int) -> list[PastUsage]:
        """Return what earlier replies of this judge used; see `CacheStore.past_usage`."""
        return self._store.past_usage(self._identity, limit)

    def usage(self) -> dict[str, int | None]:
        """Return ``calls``, ``from_cache``, ``prompt_tokens`` and ``completion_tokens``.

        The tokens are None where there were calls and no reply reported any.
        """
        unknown = None if self.calls else 0
        return {
            "calls": self.calls,
            "from_cache": self.from_cache,
            "prompt_tokens": self._tokens.get("prompt_tokens", unknown),
            "completion_tokens": self._tokens.get("completion_tokens", unknown),
        }

    async def close(self) -> None:
        """Close the judge, which may let calls in flight finish, then the file."""
        await super().close()
        if self._renewal is not None:
            self._renewal.cancel()
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.readings.flush()
        self._store.close()

    async def _ask_and_store(self, key: str, ask: Ask) -> Reply:
        if not self._claims:
            return await self._ask_and_add(key, ask)
        while not self._store.claim(key):
            if (cached := self._store.get(key, ask)) is not None:
                self.from_cache += 1
                return cached
            await asyncio.sleep(_CLAIM_POLL_S)
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew_claims())
        try:
            reply = await self._ask_and_add(key, ask)
        except BaseException:
            with contextlib.suppress(InputError):  # where the disk is full, the claim expires
                self._store.release(key)
            raise
        if not reply.came:
            self._store.release(key)
        return reply

    async def _renew_claims(self) -> None:
        while True:
            await asyncio.sleep(_LEASE_S / 4)
            self._store.lease()

    async def _ask_and_add(self, key: str, ask: Ask) -> Reply:
        reply = await self.judge.ask(ask)
        if reply.from_cache:  # another process asked meanwhile, and cached it in the same file
            self.from_cache += 1
            return reply
        reply = _storable_reply(reply)
        self.calls += 1
        for name, count in reply.usage or ():
            if count is not None:
                self._tokens[name] = self._tokens.get(name, 0) + count
        if not reply.came:
            return reply
        added = self._store.put(key, ask, reply, identity=self._identity, judge=self.name)
        self._save_abilities()
        # Where another process was first, both continue with the reply in the file.
        stored = None if added else self._store.get(key, ask)
        return reply if stored is None else replace(stored, from_cache=False)

    def _save_abilities(self) -> None:
        abilities = judge_info(self._inner).abilities
        if abilities and abilities != self._abilities:
            self._store.save_abilities(self._identity, json.dumps(dict(abilities), sort_keys=True))
            self._abilities = copy.deepcopy(abilities)

    def _remove_task(self, key: str, task: asyncio.Task[Reply]) -> None:
        self._in_flight.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not report it


def identity_json(judge: Judge) -> str:
    """Return a judge's identity as JSON with sorted keys."""
    return json.dumps(dict(judge.identity), sort_keys=True, ensure_ascii=False)


def cache_key(ask: Ask, identity: str) -> str:
    """Return the key of the reply to `ask` by the judge with this `identity_json`."""
    return hashlib.sha256(f"{ask.key}:{ask.repeat}:{identity}".encode()).hexdigest()


def _storable_reply(reply: Reply) -> Reply:
    """Return the reply as a file can store it, so that a resumed run reads the very same.

    A server may send unpaired surrogates, and implausible token counts.
    """
    usage = reply.usage and Usage(
        **{n: c for n, c in reply.usage if c is not None and 0 <= c <= _MAX_TOKENS}
    )
    return replace(
        reply,
        parsed=reply.parsed and _serializable_model(reply.parsed),
        raw=reply.raw if reply.raw.isascii() else valid_text(reply.raw),
        problem=reply.problem and valid_text(reply.problem),
        usage=None if usage == Usage() else usage,
    )


def _serializable_model(parsed: BaseModel) -> BaseModel:
    try:
        parsed.model_dump_json()
    except PydanticSerializationError:
        text = valid_text(json.dumps(parsed.model_dump(), ensure_ascii=False))
        return type(parsed).model_validate_json(text)
    return parsed
