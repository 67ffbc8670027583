"""What the ledger's file holds: replies by key, and what judges found out about their servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from misslink.judging.protocol import Ask, Reply
from misslink.judging.wrappers.ledger_file import open_to_write, speaking
from misslink.judging.wrappers.ledger_format import now, texts_kept
from misslink.types import Usage

__all__ = ["Replies"]

_OF_TEXTS = "SELECT id, content FROM texts WHERE id IN (SELECT value FROM json_each(?))"
_CHANCES = TypeAdapter(dict[str, dict[str, float]])


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
        self._file = open_to_write(path)

    def get(self, key: str, ask: Ask) -> Reply | None:
        """Return the reply kept under `key`, read as what `ask` may be answered with, or None.

        One whose parts are damaged comes as what cannot be read, with its words and the reason.
        """
        with speaking(self.path):
            row = self._file.execute(
                "SELECT raw, parsed, problem, prompt_tokens, completion_tokens, probabilities, "
                "answered_by FROM replies WHERE key = ?",
                (key,),
            ).fetchone()
        if row is None:
            return None
        raw, stored, problem, prompt_tokens, completion_tokens, probabilities, answered_by = row
        parsed = None
        if stored is not None:
            parsed = _read(stored, ask)
            if parsed is None:
                problem = "the reply kept in the ledger does not fit the answer schema any more"
        chances: dict[str, dict[str, float]] = {}
        if probabilities != "{}":
            try:
                chances = _CHANCES.validate_json(probabilities)
            except ValidationError:
                parsed, problem = None, "the reply kept in the ledger is damaged"
        reported = prompt_tokens is not None or completion_tokens is not None
        return Reply(
            parsed=parsed,
            raw=raw,
            usage=Usage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
            if reported
            else None,
            probabilities=chances,
            problem=problem,
            from_ledger=True,
            judge=answered_by,
        )

    def has(self, key: str) -> bool:
        """Whether a reply is kept under `key`."""
        with speaking(self.path):
            found = self._file.execute("SELECT 1 FROM replies WHERE key = ?", (key,))
            return found.fetchone() is not None

    def add(self, key: str, ask: Ask, reply: Reply, *, identity: str, judge: str) -> bool:
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

        Returns
        -------
        bool
            Whether it is this reply that is kept now.
        """
        usage = reply.usage or Usage()
        parsed = None if reply.parsed is None else reply.parsed.model_dump_json()
        probabilities = json.dumps({at: dict(of) for at, of in reply.probabilities.items()})
        with speaking(self.path), self._file as file:
            file.execute("BEGIN IMMEDIATE")
            if self.has(key):
                return False
            file.execute(
                "INSERT OR IGNORE INTO judges (identity, name) VALUES (?, ?)", (identity, judge)
            )
            file.execute(
                "INSERT INTO replies (key, judge, prompt, prompt_sha256, repeat, messages, raw,"
                " parsed, problem, prompt_tokens, completion_tokens, probabilities, answered_by,"
                " created) VALUES (?, (SELECT id FROM judges WHERE identity = ?),"
                " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(key, identity, ask.prompt.name, ask.prompt.sha256, ask.repeat),
                    texts_kept(file, ask.messages),
                    *(reply.raw, parsed, reply.problem),
                    *(usage.prompt_tokens, usage.completion_tokens, probabilities),
                    *(reply.judge, now()),
                ),
            )
        return True

    def holds(self, identity: str) -> bool:
        """Whether any reply of the judge with this identity is kept."""
        with speaking(self.path):
            found = self._file.execute(
                "SELECT 1 FROM replies WHERE judge = (SELECT id FROM judges WHERE identity = ?)"
                " LIMIT 1",
                (identity,),
            )
            return found.fetchone() is not None

    def spent(self, identity: str, limit: int) -> list[tuple[str, str, int | None, int | None]]:
        """Return what earlier replies of a judge used, the newest first.

        Parameters
        ----------
        identity : str
        limit : int
            How many rows at most.

        Returns
        -------
        list of tuple
            The messages that were sent and what was said, both as JSON (what could not be read:
            as it came), and the prompt and completion tokens that the server reported. Replies
            of which it reported nothing are left out, and so are those whose question is damaged.
        """
        with speaking(self.path):
            rows = self._file.execute(
                "SELECT messages, coalesce(parsed, raw), prompt_tokens, completion_tokens"
                " FROM replies WHERE judge = (SELECT id FROM judges WHERE identity = ?)"
                " AND coalesce(prompt_tokens, completion_tokens) IS NOT NULL"
                " ORDER BY replies.rowid DESC LIMIT ?",
                (identity, limit),
            ).fetchall()
            asked = [(_messages(messages), rest) for messages, *rest in rows]
            used = json.dumps([m["content"] for messages, _ in asked for m in messages])
            texts = dict(self._file.execute(_OF_TEXTS, (used,)).fetchall())
        return [
            (
                json.dumps(
                    [{**m, "content": texts[m["content"]]} for m in messages], ensure_ascii=False
                ),
                *rest,
            )
            for messages, rest in asked
            if messages and all(m["content"] in texts for m in messages)
        ]

    def abilities(self, identity: str) -> Mapping[str, Any] | None:
        """Return what the judge with this identity found out about its server.

        None where nothing is kept, or what is kept is damaged: then it is found out again.
        """
        with speaking(self.path):
            row = self._file.execute(
                "SELECT abilities FROM judges WHERE identity = ?", (identity,)
            ).fetchone()
        if row is None or row[0] is None:
            return None
        try:
            kept = json.loads(row[0])
        except ValueError:
            return None
        return kept if isinstance(kept, dict) else None

    def keep_abilities(self, identity: str, abilities: str) -> None:
        """Keep what a judge found out, as JSON; of one without any reply nothing is kept."""
        with speaking(self.path):
            self._file.execute(
                "UPDATE judges SET abilities = ? WHERE identity = ?", (abilities, identity)
            )

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _messages(stored: str) -> list[dict[str, Any]]:
    """The messages of a question, their texts by number; none where that cannot be read."""
    try:
        messages = json.loads(stored)
    except ValueError:
        return []
    numbered = isinstance(messages, list) and all(
        isinstance(each, dict) and isinstance(each.get("content"), int) for each in messages
    )
    return messages if numbered else []


def _read(stored: str, ask: Ask) -> BaseModel | None:
    """Read a kept answer; a judge may have given the one label that would do as well."""
    try:
        return ask.schema.model_validate_json(stored)
    except ValidationError:
        if ask.alone is None:
            return None
    try:
        return ask.alone().schema.model_validate_json(stored)
    except ValidationError:
        return None
