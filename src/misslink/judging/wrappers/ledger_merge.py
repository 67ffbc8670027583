"""Ledgers merged into one by the key of what was asked: nothing is paid twice, nothing is lost."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.addresses import shown
from misslink.files.content import File
from misslink.files.shards import files_of
from misslink.files.storage import Stored
from misslink.judging.wrappers.ledger_file import open_to_read, open_to_write, speaking
from misslink.judging.wrappers.ledger_format import OF_REPLY, texts_kept

__all__ = ["merge"]

_ENDINGS = (".sqlite", ".sqlite3", ".db")
_LOG = "-wal"  # what SQLite adds to the name of a file for what is not yet merged into it
_BESIDE = (_LOG, "-shm", "-journal")
_COLUMNS = ", ".join(["key", *(column.split()[0] for column in OF_REPLY.split(","))])
_MESSAGES = 5  # which of the columns, counted from the judge before them
_STAGED = (  # in a file that SQLite makes and removes, so that what is merged may be large
    "CREATE TEMP TABLE new_judges (identity TEXT PRIMARY KEY, name TEXT NOT NULL, abilities TEXT)",
    "CREATE TEMP TABLE new_texts (number INTEGER PRIMARY KEY, content TEXT NOT NULL)",
    f"""
    CREATE TEMP TABLE new_replies (
        identity TEXT NOT NULL,
        key TEXT PRIMARY KEY,
        {OF_REPLY}
    )
    """,
)
_INSTEAD = "leave it out"
_AT_ONCE = 1000  # replies of a transaction; a run that waits longer than 30 s to write gives up
_PAUSE_S = 0.12  # in which a run that waits looks again: SQLite does so every 0.1 s
_CACHE_KIB = 128 * 1024  # keys come in no order, and each touches another page
_TABLES = ("new_judges", "new_texts", "new_replies")


def merge(sources: Sequence[str | Path], into: Path) -> dict[str, Any]:
    """Bring the replies of other ledgers into one, each key once.

    A reply that is there stays, also where another ledger holds a different one under its key.
    Each ledger is read and found whole first, and then merged in pieces, so that a run may write
    to `into` meanwhile, or to the ledger that is read. Killed in the middle, the same call goes on.

    Parameters
    ----------
    sources : sequence of str or Path
        Ledgers, folders of .sqlite, .sqlite3 or .db files, patterns, or URLs of any of these.
    into : Path
        A ledger, made where there is none.

    Returns
    -------
    dict
        ``ledger``, ``sources`` (of each ledger ``from``, ``replies``, and how many of them were
        ``added``, were there ``already`` the same, or ``different``), and ``replies`` (that `into`
        now holds).

    Raises
    ------
    InputError
        A source is not there, is no ledger or is damaged: of it nothing is merged, what was merged
        before it stays; or `into` cannot be written.
    """
    files = _files(sources, into)
    if not into.exists():
        for file in files:  # so that none is made for what cannot be merged
            with _opened(file) if isinstance(file, Path) else contextlib.nullcontext():
                pass
    done: list[dict[str, Any]] = []
    with speaking(into), contextlib.closing(open_to_write(into)) as ledger:
        ledger.execute(f"PRAGMA main.cache_size = -{_CACHE_KIB}")
        for statement in _STAGED:
            ledger.execute(statement)
        for file in files:
            try:
                with _opened(file) as source:
                    done.append({"from": str(file), **_merged(source, ledger, file, into)})
            except InputError as wrong:
                if not done:
                    raise
                raise InputError(
                    f"{wrong.problem} (those before it, {len(done)}, are merged)", path=wrong.path
                ) from None
        (count,) = ledger.execute("SELECT count(*) FROM replies").fetchone()
    return {"ledger": str(into), "sources": done, "replies": count}


def _files(sources: Sequence[str | Path], into: Path) -> list[File]:
    """The ledgers that are named, each once, without the one that is merged into."""
    found: dict[str, File] = {}
    for source in sources:
        files = files_of(source, _ENDINGS)
        if isinstance(files[0], Path) and not files[0].exists():
            raise InputError("there is no such file", path=files[0])
        others = [
            file
            for file in files
            if not file.name.endswith(_BESIDE)
            and not (isinstance(file, Path) and _same(file, into))
        ]
        if not others:
            what = "this is the ledger that" if len(files) == 1 else "here is no ledger but the one"
            raise InputError(f"{what} is merged into; name another", path=shown(source))
        found.update((str(file), file) for file in others)
    if not found:
        raise InputError("name the ledgers to merge: files, folders, patterns or URLs")
    return list(found.values())


def _same(file: Path, into: Path) -> bool:
    return file.exists() and into.exists() and file.samefile(into)


@contextlib.contextmanager
def _opened(file: File) -> Iterator[sqlite3.Connection]:
    """A ledger to be read at one moment of its life; one in a storage is fetched first."""
    with tempfile.TemporaryDirectory(prefix="misslink-") as folder:
        path = file if isinstance(file, Path) else _fetched(file, Path(folder))
        with (
            speaking(file, _INSTEAD),
            contextlib.closing(open_to_read(path, name=file, instead=_INSTEAD)) as source,
        ):
            source.execute("BEGIN")
            yield source


def _fetched(file: Stored, folder: Path) -> Path:
    path = file.fetch(folder / "ledger.sqlite")
    log = file.beside(f"{file.name}{_LOG}")
    if log.exists():
        log.fetch(path.with_name(f"{path.name}{_LOG}"))
    return path


def _merged(
    source: sqlite3.Connection, ledger: sqlite3.Connection, file: File, into: Path
) -> dict[str, int]:
    """Merge one ledger; nothing is locked while it is read."""
    with ledger:
        ledger.execute("BEGIN")
        for table in _TABLES:
            ledger.execute(f"DELETE FROM {table}")  # noqa: S608 - no data
        _stage(source, ledger, file)
    with speaking(into):
        return _put(ledger)


def _stage(source: sqlite3.Connection, ledger: sqlite3.Connection, file: File) -> None:
    """Copy all that a ledger holds, and find out whether it is whole."""
    ledger.executemany(
        "INSERT INTO new_judges VALUES (?, ?, ?)",
        source.execute(
            "SELECT identity, name, abilities FROM judges"
            " WHERE id IN (SELECT judge FROM replies) ORDER BY id"
        ),
    )
    ledger.executemany(
        "INSERT INTO new_texts VALUES (?, ?)", source.execute("SELECT id, content FROM texts")
    )
    rows = source.execute(
        f"SELECT judges.identity, {_COLUMNS} FROM replies"  # noqa: S608 - no data
        " LEFT JOIN judges ON judges.id = replies.judge ORDER BY replies.rowid"
    )
    marks = ", ".join("?" * (1 + len(_COLUMNS.split(","))))
    ledger.executemany(
        f"INSERT INTO new_replies VALUES ({marks})",  # noqa: S608 - no data
        (_whole(row, file) for row in rows),
    )
    lost = ledger.execute(
        "SELECT new.key FROM new_replies AS new, json_each(new.messages) AS message"
        " WHERE NOT EXISTS (SELECT 1 FROM new_texts"
        " WHERE number = json_extract(message.value, '$.content')) LIMIT 1"
    ).fetchone()
    if lost is not None:
        raise _damaged(file, lost[0])


def _whole(row: tuple[Any, ...], file: File) -> tuple[Any, ...]:
    """A reply whose messages can be read."""
    try:
        messages = json.loads(row[_MESSAGES])
        numbers = [message["content"] for message in messages]
    except (TypeError, ValueError, KeyError, RecursionError):
        raise _damaged(file, row[1]) from None
    if not all(isinstance(number, int) for number in numbers):
        raise _damaged(file, row[1])
    return row


def _damaged(file: File, key: object) -> InputError:
    return InputError(
        f"this ledger is damaged: the question of the reply {str(key)[:12]} is not in it; leave "
        "it out",
        path=file,
    )


def _put(ledger: sqlite3.Connection) -> dict[str, int]:
    """Add the replies that are new."""
    (replies,) = ledger.execute("SELECT count(*) FROM new_replies").fetchone()
    (different,) = ledger.execute(
        "SELECT count(*) FROM new_replies AS new JOIN main.replies AS held USING (key)"
        " WHERE new.raw IS NOT held.raw OR new.parsed IS NOT held.parsed"
    ).fetchone()
    with ledger:
        ledger.execute("BEGIN IMMEDIATE")
        # A judge keeps what it found out about its server first.
        ledger.execute(
            "INSERT INTO main.judges (identity, name, abilities)"
            " SELECT identity, name, abilities FROM new_judges WHERE 1 ON CONFLICT (identity)"
            " DO UPDATE SET abilities = coalesce(abilities, excluded.abilities)"
        )
    last, added = 0, 0
    while True:
        with ledger:
            ledger.execute("BEGIN IMMEDIATE")
            rows = ledger.execute(
                f"SELECT rowid, identity, {_COLUMNS} FROM new_replies"  # noqa: S608 - no data
                " WHERE rowid > ? ORDER BY rowid LIMIT ?",
                (last, _AT_ONCE),
            ).fetchall()
            added += sum(_add(ledger, row[1:]) for row in rows)
        if len(rows) < _AT_ONCE:
            break
        last = rows[-1][0]
        time.sleep(_PAUSE_S)
    return {
        "replies": replies,
        "added": added,
        "already": replies - added - different,
        "different": different,
    }


def _add(ledger: sqlite3.Connection, row: tuple[Any, ...]) -> bool:
    """Add a reply, unless one is there."""
    identity, key, *rest = row
    if ledger.execute("SELECT 1 FROM main.replies WHERE key = ?", (key,)).fetchone():
        return False
    rest[_MESSAGES - 2] = _renumbered(ledger, rest[_MESSAGES - 2])
    marks = ", ".join("?" * (1 + len(rest)))
    ledger.execute(
        f"INSERT INTO main.replies (judge, {_COLUMNS}) VALUES"  # noqa: S608 - no data
        f" ((SELECT id FROM main.judges WHERE identity = ?), {marks})",
        (identity, key, *rest),
    )
    return True


def _renumbered(ledger: sqlite3.Connection, messages: str) -> str:
    """The messages with the numbers that their texts have in the ledger, where they are kept."""
    texts = []
    for message in json.loads(messages):
        (text,) = ledger.execute(
            "SELECT content FROM new_texts WHERE number = ?", (message["content"],)
        ).fetchone()
        texts.append({**message, "content": text})
    return texts_kept(ledger, texts)
