"""Look into a ledger, copy it out, and thin it; no judge and no key is needed for any of it."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.judging.wrappers.ledger_file import open_to_change, open_to_read, speaking

__all__ = ["Selection", "age", "export", "prune", "stats"]

_PATIENCE_MS = 300  # for whoever reads just now; shrinking can wait
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"(\d{1,5})\s*([hdw])")  # 99,999 weeks ago there still was a date
_FROM = "FROM replies JOIN judges ON judges.id = replies.judge"
_COUNTS = (
    "count(*), count(*) - count(replies.parsed), sum(prompt_tokens), sum(completion_tokens),"
    " count(*) - count(coalesce(prompt_tokens, completion_tokens)),"
    " min(replies.created), max(replies.created)"
)
_COUNTED = (
    *("replies", "unreadable", "prompt_tokens", "completion_tokens", "without_tokens"),
    *("first", "last"),
)


@dataclass(frozen=True)
class Selection:
    """Which replies are meant: those that meet every condition given.

    Parameters
    ----------
    unreadable : bool
        Only replies that could not be read as an answer.
    older_than : timedelta or None
        Only replies that came at least so long ago.
    judge, prompt : str or None
        Only replies of the judge, or to the prompt, of this name.
    """

    unreadable: bool = False
    older_than: dt.timedelta | None = None
    judge: str | None = None
    prompt: str | None = None

    def where(self) -> tuple[str, dict[str, str]]:
        """Return the conditions as SQL, and its parameters."""
        conditions, values = ["1"], {}
        if self.unreadable:
            conditions.append("replies.parsed IS NULL")
        if self.older_than is not None:
            since = dt.datetime.now(dt.UTC) - self.older_than
            conditions.append("replies.created <= :since")
            values["since"] = since.isoformat(timespec="seconds")
        if self.judge is not None:
            conditions.append("judges.name = :judge")
            values["judge"] = self.judge
        if self.prompt is not None:
            conditions.append("replies.prompt = :prompt")
            values["prompt"] = self.prompt
        return " AND ".join(conditions), values


def stats(path: Path) -> dict[str, Any]:
    """Count what a ledger holds.

    Parameters
    ----------
    path : Path

    Returns
    -------
    dict
        ``ledger``, ``bytes`` (of the file and of what is not yet merged into it), and for all
        replies and in ``by_judge_and_prompt`` for each pair: ``replies``, ``unreadable``,
        ``prompt_tokens`` and ``completion_tokens`` (None where none were reported),
        ``without_tokens`` (replies of which none were reported), ``first`` and ``last`` (ISO 8601;
        None in an empty ledger).

    Raises
    ------
    InputError
        There is no ledger, or it cannot be read.
    """
    size = _size(path)
    with speaking(path), contextlib.closing(open_to_read(path)) as file:
        whole = file.execute(f"SELECT {_COUNTS} FROM replies").fetchone()  # noqa: S608 - no data
        groups = file.execute(
            f"SELECT judges.name, replies.prompt, {_COUNTS} {_FROM}"
            " GROUP BY judges.name, replies.prompt ORDER BY judges.name, replies.prompt"
        ).fetchall()
    return {
        "ledger": str(path),
        "bytes": size,
        **dict(zip(_COUNTED, whole, strict=True)),
        "by_judge_and_prompt": [
            {"judge": judge, "prompt": prompt, **dict(zip(_COUNTED, counts, strict=True))}
            for judge, prompt, *counts in groups
        ],
    }


def export(path: Path, judge: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield every kept reply with what was asked, oldest first, one at a time.

    Parameters
    ----------
    path : Path
    judge : str or None
        Only replies of the judge of this name.

    Yields
    ------
    dict
        ``judge``, ``identity``, ``prompt`` (name and hash), ``repeat``, ``messages``, ``raw``,
        ``parsed`` (None where it could not be read), ``problem``, ``probabilities``, ``usage``,
        ``created``.

    Raises
    ------
    InputError
        There is no ledger, it or a reply in it cannot be read, or it holds no reply of this judge.
    """
    chosen = Selection(judge=judge)
    with speaking(path), contextlib.closing(open_to_read(path)) as file:
        _known(file, chosen, path)
        where, values = chosen.where()
        rows = file.execute(
            "SELECT key, coalesce(answered_by, judges.name), judges.identity, prompt,"
            " prompt_sha256, repeat, messages, raw, parsed, problem, probabilities, prompt_tokens,"
            f" completion_tokens, created {_FROM} WHERE {where} ORDER BY replies.rowid",
            values,
        )
        for key, *row in rows:
            try:
                told = _told(file, row)
            except (TypeError, ValueError, KeyError):
                raise InputError(
                    f"this ledger is damaged: the reply {str(key)[:12]} or its question cannot be "
                    "read; name another --ledger",
                    path=path,
                ) from None
            yield told


def prune(path: Path, chosen: Selection, *, dry_run: bool) -> dict[str, Any]:
    """Remove replies, and give the room back to the disk.

    What a judge found out about its server goes with the last of its replies.

    Parameters
    ----------
    path : Path
    chosen : Selection
        Which replies.
    dry_run : bool
        Only count them.

    Returns
    -------
    dict
        ``replies`` (removed, or that would be), ``left``, ``removed`` (whether it was done),
        ``bytes_before``, ``bytes_after``, and ``note``: why the file is no smaller, where it
        could not be shrunk.

    Raises
    ------
    InputError
        No condition is given, there is no ledger, it cannot be written, or it holds no reply of
        this judge or to this prompt.
    """
    if chosen == Selection():
        raise InputError(
            "say which replies go: --unreadable, --older-than 30d, --judge NAME or --prompt NAME"
        )
    before = _size(path)
    where, values = chosen.where()
    note = None
    opened = open_to_read(path) if dry_run else open_to_change(path)
    with speaking(path), contextlib.closing(opened) as file:
        _known(file, chosen, path)
        if dry_run:
            count = file.execute(f"SELECT count(*) {_FROM} WHERE {where}", values).fetchone()[0]
        else:
            count = _remove(file, where, values)
            note = _shrink(file) if count else None
        total = file.execute("SELECT count(*) FROM replies").fetchone()[0]
    return {
        "ledger": str(path),
        "replies": count,
        "left": total - count if dry_run else total,
        "removed": not dry_run,
        "bytes_before": before,
        "bytes_after": _size(path),
        "note": note,
    }


def age(text: str) -> dt.timedelta:
    """Read an age such as ``30d``, ``12h`` or ``2w``.

    Raises
    ------
    InputError
        It is none.
    """
    found = _AGE.fullmatch(text.strip().lower())
    if found is None:
        raise InputError(
            f"--older-than is {text!r}; write a number and h, d or w for hours, days or weeks, "
            "such as 30d"
        )
    return dt.timedelta(**{_UNITS[found.group(2)]: int(found.group(1))})


def _known(file: sqlite3.Connection, chosen: Selection, path: Path) -> None:
    """Refuse a judge or prompt of which nothing is kept: its name is surely misspelt."""
    for what, name, column in (
        ("judge", chosen.judge, "judges.name"),
        ("prompt", chosen.prompt, "replies.prompt"),
    ):
        if name is None:
            continue
        there = [row[0] for row in file.execute(f"SELECT DISTINCT {column} {_FROM} ORDER BY 1")]
        if name not in there:
            raise InputError(
                f"no reply of the {what} '{name}' is kept here; "
                f"there are: {', '.join(there) or 'none at all'}",
                path=path,
            )


def _told(file: sqlite3.Connection, row: Sequence[Any]) -> dict[str, Any]:
    judge, identity, prompt, sha256, repeat, messages, raw, parsed, *rest = row
    problem, probabilities, prompt_tokens, completion_tokens, created = rest
    written = []
    for message in json.loads(messages):
        number = message["content"]
        (text,) = file.execute("SELECT content FROM texts WHERE id = ?", (number,)).fetchone()
        written.append({**message, "content": text})
    return {
        "judge": judge,
        "identity": json.loads(identity),
        "prompt": {"name": prompt, "sha256": sha256},
        "repeat": repeat,
        "messages": written,
        "raw": raw,
        "parsed": None if parsed is None else json.loads(parsed),
        "problem": problem,
        "probabilities": json.loads(probabilities),
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens},
        "created": created,
    }


def _remove(file: sqlite3.Connection, where: str, values: dict[str, str]) -> int:
    picked = f"SELECT replies.rowid {_FROM} WHERE {where}"
    with file:
        file.execute("BEGIN IMMEDIATE")
        removal = f"DELETE FROM replies WHERE rowid IN ({picked})"  # noqa: S608 - no data
        gone = file.execute(removal, values).rowcount
        file.execute("DELETE FROM judges WHERE id NOT IN (SELECT judge FROM replies)")
        file.execute(
            "DELETE FROM texts WHERE id NOT IN (SELECT json_extract(value, '$.content')"
            " FROM replies, json_each(replies.messages))"
        )
    return gone


def _shrink(file: sqlite3.Connection) -> str | None:
    """Give room back to the disk; a reason where that has to wait, for the removal stands."""
    try:
        file.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
        file.execute("VACUUM")
        (busy, *_) = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        trouble = "another program reads it" if busy else None
    except sqlite3.Error as error:
        trouble = str(error)
    if trouble is None:
        return None
    return f"the replies are gone, but the file could not be made smaller now ({trouble})"


def _size(path: Path) -> int:
    beside = path.with_name(f"{path.name}-wal")
    return sum(part.stat().st_size for part in (path, beside) if part.is_file())
