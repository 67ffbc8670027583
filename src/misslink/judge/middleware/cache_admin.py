"""Count, export, prune and merge response caches."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from misslink.errors import InputError
from misslink.io.sqlite import transaction
from misslink.io.storage import InputFile, list_files, redact_url
from misslink.judge.middleware.sqlite_store import (
    CACHE_FORMAT,
    REPLY_COLUMN_NAMES,
    insert_reply,
)

_VACUUM_TIMEOUT_MS = 300  # shrinking the file can wait for its readers
_AGE_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_AGE_PATTERN = re.compile(r"(\d{1,5})\s*([hdw])")  # 99,999 weeks ago is still a valid date
_FROM_REPLIES = "FROM replies JOIN judges ON judges.id = replies.judge"
_EXPORTED = {
    "key": "key",
    "judge": "coalesce(answered_by, judges.name)",
    "identity": "judges.identity",
    "prompt": "json_object('name', prompt, 'sha256', prompt_sha256)",
    **{name: name for name in ("repeat", "messages", "raw", "parsed", "problem", "probabilities")},
    "usage": "json_object('prompt_tokens', prompt_tokens, 'completion_tokens', completion_tokens)",
    "created": "created",
}
_JSON_COLUMNS = "identity", "prompt", "messages", "parsed", "probabilities", "usage"
_COUNTS = (
    "count(*) AS replies, count(*) - count(replies.parsed) AS unreadable,"
    " sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,"
    " count(*) - count(coalesce(prompt_tokens, completion_tokens)) AS without_tokens,"
    " min(replies.created) AS first, max(replies.created) AS last"
)


@dataclass(frozen=True)
class CacheSelection:
    """The replies that meet every condition given; `judge` and `prompt` are names."""

    unreadable: bool = False
    older_than: dt.timedelta | None = None
    judge: str | None = None
    prompt: str | None = None

    def where(self, file: sqlite3.Connection, path: Path) -> tuple[str, dict[str, str]]:
        """Return the conditions as SQL, and its parameters.

        A judge or prompt without any reply is refused: its name is surely misspelt.
        """
        conditions, values = ["1"], {}
        if self.unreadable:
            conditions.append("replies.parsed IS NULL")
        if self.older_than is not None:
            since = dt.datetime.now(dt.UTC) - self.older_than
            conditions.append("replies.created <= :since")
            values["since"] = since.isoformat(timespec="seconds")
        for kind, column in (("judge", "judges.name"), ("prompt", "replies.prompt")):
            name = getattr(self, kind)
            if name is None:
                continue
            rows = file.execute(f"SELECT DISTINCT {column} {_FROM_REPLIES} ORDER BY 1")
            names = [row[0] for row in rows]
            if name not in names:
                raise InputError(
                    f"no reply of the {kind} '{name}' is in this cache; "
                    f"there are: {', '.join(names) or 'none'}",
                    path=path,
                )
            conditions.append(f"{column} = :{kind}")
            values[kind] = name
        return " AND ".join(conditions), values


def cache_stats(path: Path) -> dict[str, Any]:
    """Count the replies and tokens of a response cache.

    Returns
    -------
    dict
        ``cache``, ``bytes`` (of the file and its write-ahead log), and for all replies and in
        ``by_judge_and_prompt`` for each pair: ``replies``, ``unreadable``, ``prompt_tokens`` and
        ``completion_tokens`` (None where none were reported), ``without_tokens`` (replies without
        reported tokens), ``first`` and ``last`` (ISO 8601; None in an empty cache).
    """
    size = _cache_size(path)
    with _closing(CACHE_FORMAT.open_read_only(path), path) as file:
        totals = file.execute(f"SELECT {_COUNTS} FROM replies").fetchone()  # noqa: S608
        groups = file.execute(
            f"SELECT judges.name AS judge, replies.prompt, {_COUNTS} {_FROM_REPLIES}"
            " GROUP BY judges.name, replies.prompt ORDER BY judges.name, replies.prompt"
        ).fetchall()
    return {
        "cache": str(path),
        "bytes": size,
        **dict(totals),
        "by_judge_and_prompt": [dict(group) for group in groups],
    }


def export_replies(path: Path, judge: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield each cached reply with its question, oldest first; only of `judge` where it is named.

    Each has ``judge``, ``identity``, ``prompt`` (name and hash), ``repeat``, ``messages``,
    ``raw``, ``parsed`` (None where it could not be parsed), ``problem``, ``probabilities``,
    ``usage`` and ``created``.

    Raises
    ------
    InputError
        There is no cache, it or a reply in it is damaged, or it has no reply of this judge.
    """
    columns = ", ".join(f"{column} AS {name}" for name, column in _EXPORTED.items())
    with _closing(CACHE_FORMAT.open_read_only(path), path) as file:
        where, values = CacheSelection(judge=judge).where(file, path)
        for row in file.execute(
            f"SELECT {columns} {_FROM_REPLIES} WHERE {where} ORDER BY replies.rowid", values
        ):
            record = dict(row)
            key = record.pop("key")
            try:
                for name in _JSON_COLUMNS:
                    record[name] = None if record[name] is None else json.loads(record[name])
            except ValueError:
                raise InputError(
                    f"this response cache is damaged: the reply {str(key)[:12]} or its question "
                    "cannot be read; name another --cache",
                    path=path,
                ) from None
            yield record


def prune_replies(path: Path, selection: CacheSelection, *, dry_run: bool) -> dict[str, Any]:
    """Remove replies and shrink the file, or with `dry_run` only count them.

    What a judge detected about its server is removed with the last of its replies.

    Returns
    -------
    dict
        ``replies`` (removed, or to be removed), ``left``, ``removed`` (whether it was done),
        ``bytes_before``, ``bytes_after``, and ``note``: why the file could not be shrunk.

    Raises
    ------
    InputError
        No condition is given, there is no cache, it cannot be written, or it has no reply of
        this judge or to this prompt.
    """
    if selection == CacheSelection():
        raise InputError(
            "no condition selects replies to remove; give --unreadable, --older-than 30d, "
            "--only-judge NAME or --prompt NAME"
        )
    before = _cache_size(path)
    note = None
    opened = (
        CACHE_FORMAT.open_read_only(path) if dry_run else CACHE_FORMAT.open(path, must_exist=True)
    )
    with _closing(opened, path) as file:
        where, values = selection.where(file, path)
        selected = f"{_FROM_REPLIES} WHERE {where}"
        if dry_run:
            (count,) = file.execute(f"SELECT count(*) {selected}", values).fetchone()
        else:
            with transaction(file):
                count = file.execute(
                    f"DELETE FROM replies WHERE rowid IN (SELECT replies.rowid {selected})",  # noqa: S608
                    values,
                ).rowcount
                file.execute("DELETE FROM readings")  # they have the replies' words
                file.execute("DELETE FROM judges WHERE id NOT IN (SELECT judge FROM replies)")
            note = _shrink_file(file) if count else None
        (total,) = file.execute("SELECT count(*) FROM replies").fetchone()
    return {
        "cache": str(path),
        "replies": count,
        "left": total - count if dry_run else total,
        "removed": not dry_run,
        "bytes_before": before,
        "bytes_after": _cache_size(path),
        "note": note,
    }


@contextlib.contextmanager
def _closing(
    file: sqlite3.Connection, path: object, hint: str | None = None
) -> Iterator[sqlite3.Connection]:
    """Close an open cache at the end; its rows have names, and its errors name `path`."""
    file.row_factory = sqlite3.Row
    with CACHE_FORMAT.errors(path, hint), contextlib.closing(file):
        yield file


def parse_age(text: str) -> dt.timedelta:
    """Parse an age such as ``30d``, ``12h`` or ``2w``; raises InputError."""
    match = _AGE_PATTERN.fullmatch(text.strip().lower())
    if match is None:
        raise InputError(
            f"--older-than is {text!r}; write a number and h, d or w (hours, days, weeks), "
            "such as 30d"
        )
    return dt.timedelta(**{_AGE_UNITS[match[2]]: int(match[1])})


def _shrink_file(file: sqlite3.Connection) -> str | None:
    """Give space back to the disk; return why that has to wait, or None."""
    try:
        file.execute(f"PRAGMA busy_timeout = {_VACUUM_TIMEOUT_MS}")
        file.execute("VACUUM")
        (busy, *_) = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        problem = "another program reads it" if busy else None
    except sqlite3.Error as error:
        problem = str(error)
    return problem and f"the replies are removed, but the file could not be shrunk ({problem})"


def _cache_size(path: Path) -> int:
    log = path.with_name(f"{path.name}-wal")
    return sum(part.stat().st_size for part in (path, log) if part.is_file())


_CACHE_SUFFIXES = (".sqlite", ".sqlite3", ".db")
_WAL_SUFFIX = "-wal"
_SIDE_FILE_SUFFIXES = (_WAL_SUFFIX, "-shm", "-journal")
_SKIP_HINT = "leave it out"
_ROWS_PER_TRANSACTION = 1000  # a run that waits longer than 30 s to write gives up
_TRANSACTION_PAUSE_S = 0.12  # SQLite's waiting writers try again every 0.1 s
_PAGE_CACHE_KIB = 128 * 1024  # keys come in no order, and each touches another page


def merge_caches(sources: Sequence[str | Path], into: Path) -> dict[str, Any]:
    """Copy the replies of other response caches into one, each key once.

    A reply in `into` is never replaced. Each source is read and checked completely before it is
    merged, and merged in pieces, so that runs may write meanwhile. After a kill, the same call
    continues.

    Parameters
    ----------
    sources : sequence of str or Path
        Caches, folders of .sqlite, .sqlite3 or .db files, patterns, or URLs of any of these.
    into : Path
        A response cache; created if it does not exist.

    Returns
    -------
    dict
        ``cache``, ``sources`` (of each ``from``, ``replies``, and how many of them were
        ``added``, were there ``already``, or are ``different``), and ``replies`` (now in `into`).

    Raises
    ------
    InputError
        A source does not exist, is no response cache or is damaged: nothing of it is merged, and
        earlier sources stay merged; or `into` cannot be written.
    """
    files = _source_files(sources, into)
    if isinstance(files[0], Path):  # create no cache where the first source cannot be merged
        with _open_source(files[0]):
            pass
    reports: list[dict[str, Any]] = []
    with _closing(CACHE_FORMAT.open(into), into) as cache:
        cache.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KIB}")
        for file in files:
            with _open_source(file) as source:
                _check_source(source, file)
                counts = _merge_source(source, cache, into)
            reports.append({"from": str(file), "replies": counts.total(), **counts})
        (count,) = cache.execute("SELECT count(*) FROM replies").fetchone()
    return {"cache": str(into), "sources": reports, "replies": count}


def _source_files(sources: Sequence[str | Path], into: Path) -> list[InputFile]:
    """The named caches, each once, without the target."""
    caches: dict[str, InputFile] = {}
    for source in sources:
        files = list_files(source, _CACHE_SUFFIXES)
        if isinstance(files[0], Path) and not files[0].exists():
            raise InputError("there is no such file", path=files[0])
        candidates = [
            file
            for file in files
            if not file.name.endswith(_SIDE_FILE_SUFFIXES)
            and not (
                isinstance(file, Path) and file.exists() and into.exists() and file.samefile(into)
            )
        ]
        if not candidates:
            only = "this is" if len(files) == 1 else "the only cache here is"
            raise InputError(
                f"{only} the cache that is merged into; name another", path=redact_url(source)
            )
        caches.update((str(file), file) for file in candidates)
    if not caches:
        raise InputError("name the caches to merge: files, folders, patterns or URLs")
    return list(caches.values())


@contextlib.contextmanager
def _open_source(file: InputFile) -> Iterator[sqlite3.Connection]:
    """Open a consistent snapshot of a cache; a remote one is downloaded with its log first."""
    with tempfile.TemporaryDirectory(prefix="misslink-") as folder:
        if isinstance(file, Path):
            path = file
        else:
            path = file.fetch(Path(folder, "cache.sqlite"))
            log = file.sibling(f"{file.name}{_WAL_SUFFIX}")
            if log.exists():
                log.fetch(path.with_name(f"{path.name}{_WAL_SUFFIX}"))
        opened = CACHE_FORMAT.open_read_only(path, shown_path=file, hint=_SKIP_HINT)
        with _closing(opened, file, _SKIP_HINT) as source:
            source.execute("BEGIN")
            yield source


def _check_source(source: sqlite3.Connection, file: InputFile) -> None:
    """Raise where a reply lacks its judge: nothing of such a cache is merged."""
    lost = "SELECT key FROM replies WHERE judge NOT IN (SELECT id FROM judges)"
    for (key,) in source.execute(lost):
        raise InputError(
            f"this response cache is damaged: the judge of the reply {str(key)[:12]} is missing; "
            f"{_SKIP_HINT}",
            path=file,
        )


def _merge_source(
    source: sqlite3.Connection, cache: sqlite3.Connection, into: Path
) -> Counter[str]:
    """Add the replies that are new, in pieces; return how many were added, already there, different."""
    judges = source.execute(
        "SELECT identity, name, abilities FROM judges"
        " WHERE id IN (SELECT judge FROM replies) ORDER BY id"
    ).fetchall()
    with CACHE_FORMAT.errors(into), transaction(cache):
        # What the target knows about a judge's server stays.
        cache.executemany(
            "INSERT INTO judges (identity, name, abilities) VALUES (?, ?, ?) ON CONFLICT (identity)"
            " DO UPDATE SET abilities = coalesce(abilities, excluded.abilities)",
            judges,
        )
    replies = source.execute(
        f"SELECT identity, key, {', '.join(REPLY_COLUMN_NAMES)} {_FROM_REPLIES}"
        " ORDER BY replies.rowid"
    )
    counts = Counter(added=0, already=0, different=0)
    while rows := replies.fetchmany(_ROWS_PER_TRANSACTION):
        with CACHE_FORMAT.errors(into), transaction(cache):
            counts.update(_insert_reply(cache, row) for row in rows)
        time.sleep(_TRANSACTION_PAUSE_S)
    return counts


def _insert_reply(
    cache: sqlite3.Connection, row: sqlite3.Row
) -> Literal["added", "already", "different"]:
    """Add a reply, unless its key is there."""
    identity, key, *values = row
    if insert_reply(cache, key, identity, values):
        return "added"
    select = "SELECT raw, parsed FROM replies WHERE key = ?"
    earlier = tuple(cache.execute(select, (key,)).fetchone())
    return "already" if earlier == (row["raw"], row["parsed"]) else "different"
