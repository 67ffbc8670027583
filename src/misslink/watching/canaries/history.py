"""The history of canary runs: what each found, what alarmed, and what is still to be told."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from misslink.watching.canaries.alarms import Reading, Watched, look
from misslink.watching.canaries.document import alarm_plain, news_document, run_document
from misslink.watching.canaries.fingerprint import Changed, Fingerprint, changes
from misslink.watching.canaries.finished import Finished, kept_beside
from misslink.watching.canaries.history_file import changing, open_history, speaking
from misslink.watching.canaries.outbox import Outbox
from misslink.watching.canaries.results import Result, degraded, figures, plain_result

__all__ = ["Entered", "History"]

_KEPT = 50  # versions of the corpus that are kept whole, the latest
_USUAL = 10  # comparable runs that say what is usual for a canary


@dataclass(frozen=True)
class Entered:
    """A run in the history: its document, as it is printed, and the charts it stands on."""

    document: dict[str, Any]
    watched: Watched
    taken_in: int


class History:
    """An open history; use it in a ``with`` block.

    Parameters
    ----------
    path : Path
        Made where there is none, unless it must exist.
    wait_s : float or None
        Seconds to wait for another program that holds it. None: 10.
    must_exist : bool

    Attributes
    ----------
    outbox : Outbox
        What is still to be told.

    Raises
    ------
    HeldError, InputError
        As `open_history`.
    """

    def __init__(
        self, path: Path, *, wait_s: float | None = None, must_exist: bool = False
    ) -> None:
        self.path = path
        self._file = open_history(path, wait_s=wait_s, must_exist=must_exist)
        self.outbox = Outbox(self._file, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def enter(self, finished: Finished) -> Entered:
        """Enter a run, after those that wait beside the history, in one transaction.

        Raises
        ------
        HeldError
            Another program holds the history; nothing was entered.
        """
        with changing(self._file, self.path) as file:
            waiting = list(kept_beside(self.path))
            for _, earlier in waiting:
                _enter(file, earlier)
            document, watched = _enter(file, finished)
        for path, _ in waiting:
            path.unlink(missing_ok=True)
        return Entered(document, watched, len(waiting))

    def names(self) -> tuple[str, ...]:
        """The names of all series, sorted."""
        rows = self._read("SELECT DISTINCT name FROM runs ORDER BY name")
        return tuple(name for (name,) in rows)

    def runs(self, name: str, last: int | None = None) -> tuple[dict[str, Any], ...]:
        """The documents of the last runs of a series, the earliest first.

        Parameters
        ----------
        name : str
        last : int or None
            How many, from 1. None: all.
        """
        rows = self._read(
            "SELECT document FROM runs WHERE name = ? ORDER BY id DESC LIMIT ?",
            name,
            -1 if last is None else last,
        )
        return tuple(json.loads(document) for (document,) in reversed(rows))

    def comparable(self, name: str) -> tuple[Reading, ...]:
        """The readings that the latest run of a series is compared with, and its own, in order."""
        rows = self._read(
            "SELECT key, accepted FROM runs WHERE name = ? ORDER BY id DESC LIMIT 1", name
        )
        return _readings(self._file, name, *rows[0]) if rows else ()

    def results(self, run: int) -> tuple[Result, ...]:
        """What a run saw of each canary, in the canary set's order."""
        return _results(self._file, run)

    def _read(self, statement: str, *values: Any) -> list[Any]:
        with speaking(self.path):
            return self._file.execute(statement, values).fetchall()


def _enter(file: sqlite3.Connection, finished: Finished) -> tuple[dict[str, Any], Watched]:
    name = finished.name
    known = file.execute("SELECT document FROM runs WHERE uid = ?", (finished.uid,)).fetchone()
    accepted = file.execute(
        "SELECT coalesce(max(accepted), 0) FROM runs WHERE name = ?", (name,)
    ).fetchone()[0]
    if known is not None:  # kept beside the history by a process that was then killed
        readings = _readings(file, name, finished.key, accepted)
        return json.loads(known[0]), look(readings, learn=finished.learn)
    accepted += finished.accept
    changed, suspects = _since_last(file, finished)
    found = figures(finished.results)
    before = _before(file, name, finished.key, accepted)
    run = file.execute(
        "INSERT INTO runs (uid, name, at, key, accepted, n, measured, suspects, fingerprint, "
        "corpus_known, code, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '{}')",
        (
            finished.uid,
            name,
            finished.at,
            finished.key,
            accepted,
            len(finished.results),
            json.dumps(found.values),
            json.dumps(suspects),
            _keep_fingerprint(file, finished.fingerprint),
            finished.corpus_known,
            finished.code,
        ),
    ).lastrowid
    assert run is not None  # noqa: S101 (an INSERT always gives one)
    file.executemany(
        "INSERT INTO results VALUES (?, ?, ?, ?)",
        [
            (run, place, one.canary, json.dumps(plain_result(one)))
            for place, one in enumerate(finished.results)
        ],
    )
    watched = look(_readings(file, name, finished.key, accepted), learn=finished.learn)
    lost = degraded(finished.results, before)
    document = run_document(finished, run, found, watched, lost, changed, suspects)
    told = [*(_closed(file, name) if finished.accept else ()), *_news(file, name, watched)]
    news = news_document(document, told, _is_gone(before, finished))
    file.execute("UPDATE runs SET document = ? WHERE id = ?", (json.dumps(document), run))
    if news and finished.tell:
        file.execute(
            "INSERT INTO outbox (name, run, content) VALUES (?, ?, ?)",
            (name, run, json.dumps(news)),
        )
    return document, watched


def _since_last(
    file: sqlite3.Connection, finished: Finished
) -> tuple[Changed | None, tuple[str, ...]]:
    """What changed since the last run of the series of which it is known."""
    changed = None
    suspects = []
    row = file.execute(
        "SELECT f.documents, f.embedding, r.corpus_known FROM runs r JOIN fingerprints f "
        "ON f.digest = r.fingerprint WHERE r.name = ? ORDER BY r.id DESC LIMIT 1",
        (finished.name,),
    ).fetchone()
    now = finished.fingerprint
    if row is not None and now is not None:
        both = bool(row[2]) and finished.corpus_known
        before = _unpacked(row[0]) if both else {}
        changed = changes(
            Fingerprint(before, row[1]), Fingerprint(now.documents if both else {}, now.embedding)
        )
        if not changed.is_empty:
            suspects.append(changed.sentence)
    code = file.execute(
        "SELECT code FROM runs WHERE name = ? AND code IS NOT NULL ORDER BY id DESC LIMIT 1",
        (finished.name,),
    ).fetchone()
    if code and finished.code and code[0] != finished.code:
        suspects.append("the app's own code changed")
    return changed, tuple(suspects)


def _keep_fingerprint(file: sqlite3.Connection, found: Fingerprint | None) -> str | None:
    if found is None:
        return None
    packed = zlib.compress(json.dumps(dict(found.documents)).encode())
    file.execute(
        "INSERT OR IGNORE INTO fingerprints VALUES (?, ?, ?)",
        (found.digest, found.embedding, packed),
    )
    file.execute(
        "DELETE FROM fingerprints WHERE digest != ? AND digest NOT IN (SELECT fingerprint FROM "
        "runs WHERE fingerprint IS NOT NULL ORDER BY id DESC LIMIT ?)",
        (found.digest, _KEPT),
    )
    return found.digest


def _unpacked(packed: bytes) -> dict[str, str]:
    found: dict[str, str] = json.loads(zlib.decompress(packed))
    return found


def _readings(file: sqlite3.Connection, name: str, key: str, accepted: int) -> tuple[Reading, ...]:
    rows = file.execute(
        "SELECT id, at, measured, n, suspects FROM runs WHERE name = ? AND key = ? AND "
        "accepted = ? ORDER BY id",
        (name, key, accepted),
    )
    return tuple(
        Reading(run, at, json.loads(measured), n, tuple(json.loads(suspects)))
        for run, at, measured, n, suspects in rows
    )


def _before(
    file: sqlite3.Connection, name: str, key: str, accepted: int
) -> dict[str, list[Result]]:
    """Each canary's results in the last comparable runs, the latest first."""
    runs = file.execute(
        "SELECT id FROM runs WHERE name = ? AND key = ? AND accepted = ? ORDER BY id DESC LIMIT ?",
        (name, key, accepted, _USUAL),
    ).fetchall()
    found: dict[str, list[Result]] = {}
    for (run,) in runs:
        for one in _results(file, run):
            found.setdefault(one.canary, []).append(one)
    return found


def _results(file: sqlite3.Connection, run: int) -> tuple[Result, ...]:
    rows = file.execute("SELECT content FROM results WHERE run = ? ORDER BY place", (run,))
    return tuple(Result(**json.loads(content)) for (content,) in rows)


def _is_gone(before: Mapping[str, Sequence[Result]], finished: Finished) -> bool:
    """Whether the app is gone since the last run: then it answered something, now nothing."""
    last = [old[0].answered for old in before.values() if old]
    return (any(last) or not last) and not any(one.answered for one in finished.results)


def _closed(file: sqlite3.Connection, name: str) -> list[dict[str, Any]]:
    """Close the alarms that an accepted change leaves behind, and return them."""
    rows = file.execute(
        "SELECT measure, run, content FROM alarms WHERE name = ? AND state IN ('open', 'held') "
        "ORDER BY run",
        (name,),
    ).fetchall()
    closed = []
    for measure, run, content in rows:
        closed.append({**json.loads(content), "state": "accepted", "is_new": False})
        file.execute(
            "UPDATE alarms SET state = 'accepted', content = ? WHERE name = ? AND measure = ? AND "
            "run = ?",
            (json.dumps(closed[-1]), name, measure, run),
        )
    return closed


def _news(file: sqlite3.Connection, name: str, watched: Watched) -> list[dict[str, Any]]:
    """Alarms that opened or recovered since the history last knew; and keep all of them."""
    rows = file.execute("SELECT measure, run, state FROM alarms WHERE name = ?", (name,))
    states = {(measure, run): state for measure, run, state in rows}
    news = []
    for alarm in watched.episodes:
        was = states.get((alarm.measure, alarm.run))
        over = alarm.state == "recovered"
        if was is None or (over and was != "recovered"):
            news.append(alarm_plain(alarm))
        file.execute(
            "REPLACE INTO alarms VALUES (?, ?, ?, ?, ?)",
            (name, alarm.measure, alarm.run, alarm.state, json.dumps(alarm_plain(alarm))),
        )
    return news
