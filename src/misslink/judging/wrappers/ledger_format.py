"""What is in the ledger's file: its tables, and how an older format becomes the present one."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "APPLICATION",
    "OF_REPLY",
    "READABLE",
    "VERSION",
    "bring_up_to_date",
    "now",
    "number",
    "texts_kept",
]

VERSION = 3
READABLE = 2  # from this format on replies are read alike: the third added tables for batches
APPLICATION = 0x6D6C6E6B  # "mlnk" in the file's header tells a ledger from any other database
# What a reply is kept with beside its key and its judge; a merge takes all of it over.
OF_REPLY = """
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
        answered_by TEXT,
        created TEXT NOT NULL
"""
# Messages repeat each other: the stable part of a prompt is in every question, and the whole of
# it in every sample. So each text is kept once, and a message names it by its number.
_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS judges (
        id INTEGER PRIMARY KEY,
        identity TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        abilities TEXT
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS texts (
        id INTEGER PRIMARY KEY,
        sha256 BLOB NOT NULL UNIQUE,
        content TEXT NOT NULL
    )
    """,
    f"""
    CREATE TABLE IF NOT EXISTS replies (
        key TEXT PRIMARY KEY,
        judge INTEGER NOT NULL REFERENCES judges,
        {OF_REPLY}
    )
    """,
    "CREATE INDEX IF NOT EXISTS replies_by_judge ON replies (judge)",
    # What is out at a batch service and not yet fetched. `misslink ledger merge` leaves these two
    # out: they are promises to this file, and no replies.
    """
    CREATE TABLE IF NOT EXISTS batches (
        id INTEGER PRIMARY KEY,
        identity TEXT NOT NULL,
        judge TEXT NOT NULL,
        token TEXT NOT NULL,
        file TEXT NOT NULL,
        service_id TEXT,
        questions INTEGER NOT NULL,
        process INTEGER NOT NULL,
        created TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS batched (
        key TEXT PRIMARY KEY,
        batch INTEGER NOT NULL REFERENCES batches
    )
    """,
    "CREATE INDEX IF NOT EXISTS batched_by_batch ON batched (batch)",
    "CREATE TABLE IF NOT EXISTS opened (id INTEGER PRIMARY KEY CHECK (id = 1), at TEXT NOT NULL)",
)


def bring_up_to_date(file: sqlite3.Connection) -> None:
    """Give a database the tables of this format, in one transaction that leaves a mark."""
    with file:
        file.execute("BEGIN IMMEDIATE")
        if number(file, "user_version") == 1:  # looked up in here: another process may be doing it
            _from_version_1(file)
        for table in _TABLES:
            file.execute(table)
        file.execute(f"PRAGMA application_id = {APPLICATION}")
        file.execute(f"PRAGMA user_version = {VERSION}")
        file.execute("REPLACE INTO opened VALUES (1, ?)", (now(),))


def texts_kept(file: sqlite3.Connection, messages: Sequence[Mapping[str, Any]]) -> str:
    """Keep the texts of messages, each once; return the messages, as JSON, with their numbers.

    To be called inside a transaction.
    """
    numbered = []
    for message in messages:
        content = message["content"]
        digest = hashlib.sha256(content.encode()).digest()
        known = file.execute("SELECT id FROM texts WHERE sha256 = ?", (digest,)).fetchone()
        if known is None:
            added = file.execute(
                "INSERT INTO texts (sha256, content) VALUES (?, ?)", (digest, content)
            )
            number = added.lastrowid
        else:
            number = known[0]
        numbered.append({**message, "content": number})
    return json.dumps(numbered, ensure_ascii=False)


def now() -> str:
    """Return this moment as ISO 8601 in UTC, to the second; two of them compare as texts."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def number(file: sqlite3.Connection, pragma: str) -> int:
    """Return a number from the file's header, such as ``user_version``."""
    number: int = file.execute(f"PRAGMA {pragma}").fetchone()[0]
    return number


def _from_version_1(file: sqlite3.Connection) -> None:
    """Move the replies of the first format, which wrote judge and messages out in every row."""
    file.execute("ALTER TABLE replies RENAME TO replies_1")
    file.execute("DROP INDEX IF EXISTS replies_by_identity")
    for table in _TABLES:
        file.execute(table)
    file.execute(
        "INSERT INTO judges (identity, name) SELECT identity, min(judge) FROM replies_1 "
        "GROUP BY identity"
    )
    for rowid, messages, probabilities in file.execute(
        "SELECT rowid, messages, probabilities FROM replies_1 ORDER BY rowid"
    ):
        by_place = json.loads(probabilities)
        if not all(isinstance(of_label, dict) for of_label in by_place.values()):
            by_place = {}  # one number a claim, of a label that was not named
        file.execute(
            "INSERT INTO replies (key, judge, prompt, prompt_sha256, repeat, messages, raw, parsed,"
            " problem, prompt_tokens, completion_tokens, probabilities, created)"
            " SELECT key, judges.id, prompt, prompt_sha256, repeat, ?, raw, parsed, problem,"
            " prompt_tokens, completion_tokens, ?, created"
            " FROM replies_1 JOIN judges USING (identity) WHERE replies_1.rowid = ?",
            (texts_kept(file, json.loads(messages)), json.dumps(by_place), rowid),
        )
    file.execute("DROP TABLE replies_1")
