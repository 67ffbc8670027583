"""The history of canary runs in an SQLite file."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from misslink.canary.alarms import AlarmStatus, CanaryAlarm, RunReading, detect_alarms
from misslink.canary.results import (
    COMPARED_RUNS,
    CanaryResult,
    Fingerprint,
    FinishedRun,
    RunFigures,
    compare_fingerprints,
    find_degraded,
    load_pending_runs,
    run_figures,
)
from misslink.io.sqlite import SqliteFormat, transaction
from misslink.render.format import list_first, pluralize

_MAX_LISTED = 5  # failing canaries in a note
_SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS fingerprints (
        digest TEXT PRIMARY KEY,
        embedding TEXT,
        documents BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        uid TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        at REAL NOT NULL,
        key TEXT NOT NULL,
        accepted INTEGER NOT NULL,
        n INTEGER NOT NULL,
        measured TEXT NOT NULL,
        suspects TEXT NOT NULL,
        fingerprint TEXT,
        corpus_known INTEGER NOT NULL,
        code TEXT,
        document TEXT NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS runs_by_name ON runs (name, at)",
    """
    CREATE TABLE IF NOT EXISTS results (
        run INTEGER NOT NULL REFERENCES runs,
        place INTEGER NOT NULL,
        canary TEXT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (run, place)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS alarms (
        name TEXT NOT NULL,
        measure TEXT NOT NULL,
        run INTEGER NOT NULL REFERENCES runs,
        state TEXT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (name, measure, run)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS outbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        run INTEGER NOT NULL REFERENCES runs,
        content TEXT NOT NULL,
        tries INTEGER NOT NULL DEFAULT 0,
        error TEXT
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS refused (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        run INTEGER NOT NULL REFERENCES runs,
        content TEXT NOT NULL,
        error TEXT NOT NULL
    )
    """,
)
HISTORY_FORMAT = SqliteFormat(
    name="canary history",
    hint="choose another --history",
    application_id=0x6D6C6362,  # "mlcb"
    version=1,
    schema=_SCHEMA,
)


def run_document(
    finished: FinishedRun,
    run: int,
    metrics: RunFigures,
    watched: AlarmStatus,
    degraded: Sequence[Mapping[str, Any]],
    changed: Mapping[str, Any] | None,
    suspects: Sequence[str],
) -> dict[str, Any]:
    """The document of a run that the charts were checked with; `changed`: since the run before."""
    failing = [
        {"id": result.canary, "owner": result.owner, "now": result.reason}
        for result in finished.results
        if result.healthy is False
    ]
    notes = [*finished.notes, *watched.notes]
    if failing and "health" not in watched.charts:  # the charts learn that these fail
        names = list_first([str(canary["id"]) for canary in failing], _MAX_LISTED)
        count = pluralize(len(failing), "canary fails", "canaries fail")
        fix = "fix the app or these canaries, or failing becomes normal"
        notes.append(f"{count} before the normal state is learned: {names}; {fix}")
    estimates = ("health", "coverage", "top_score", "answered")
    return {
        "name": finished.name,
        "run": run,
        "at": dt.datetime.fromtimestamp(finished.at, dt.UTC).isoformat(timespec="seconds"),
        **finished.settings,
        "canaries": len(finished.results),
        **{name: getattr(metrics, name).model_dump() for name in estimates},
        "latency_s": dict(metrics.latency),
        "degraded": list(degraded),
        "failing": failing,
        "learn": finished.learn,
        "status": watched.status,
        "reason": watched.reason,
        "alarms": [alarm_to_json(alarm) for alarm in watched.alarms],
        "changes": changed,
        "suspects": list(suspects),
        "accepted": finished.accept,
        "errors": sum(not result.answered for result in finished.results),
        "notes": notes,
        "delivered": None,
    }


def news_document(
    document: Mapping[str, Any], news: Sequence[Mapping[str, Any]], is_gone: bool
) -> dict[str, Any] | None:
    """Return the webhook payload for a run, or None without news."""
    states = {alarm["state"] for alarm in news}
    if not news and not is_gone:
        return None
    if is_gone:
        event = "unreachable"
    elif states & {"open", "held"}:
        event = "alarm"
    else:
        event = "accepted" if "accepted" in states else "recovered"
    about = ("name", "run", "at", "app", "status", "health", "coverage", "top_score", "answered")
    return {
        "event": event,
        **{key: document.get(key) for key in about},
        "news": list(news),
        "alarms": document["alarms"],
        "degraded": document["degraded"],
        "suspects": document["suspects"],
    }


def alarm_to_json(alarm: CanaryAlarm) -> dict[str, Any]:
    """An alarm as JSON values."""
    fields = {"shift": alarm.shift.model_dump(), "suspects": list(alarm.suspects)}
    return {**asdict(alarm), **fields, "sentence": alarm.sentence}


_MAX_FINGERPRINTS = 50  # versions of the corpus that are kept whole, the latest


class CanaryHistory:
    """An open history; use it in a ``with`` block.

    Parameters
    ----------
    path : Path
        Made where there is none, unless it must exist.
    must_exist : bool

    Raises
    ------
    SqliteLockedError, InputError
        As `misslink.io.sqlite.SqliteFormat.open`.
    """

    def __init__(self, path: Path, *, must_exist: bool = False) -> None:
        self.path = path
        self._file = HISTORY_FORMAT.open(path, must_exist=must_exist)
        self._file.execute("PRAGMA foreign_keys = ON")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def enter(self, finished: FinishedRun) -> tuple[dict[str, Any], int]:
        """Enter a run, after those that wait beside the history, in one transaction.

        Returns
        -------
        tuple of dict and int
            The document of the run, and how many runs waited.

        Raises
        ------
        SqliteLockedError
            Another program holds the history; nothing was entered.
        """
        with HISTORY_FORMAT.errors(self.path), transaction(self._file):
            waiting = list(load_pending_runs(self.path))
            for _, earlier in waiting:
                _record_run(self._file, earlier)
            document = _record_run(self._file, finished)
        for path, _ in waiting:
            path.unlink(missing_ok=True)
        return document, len(waiting)

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

    def comparable(self, name: str) -> tuple[RunReading, ...]:
        """The readings that the latest run of a series is compared with, and its own, in order."""
        rows = self._read(
            "SELECT key, accepted FROM runs WHERE name = ? ORDER BY id DESC LIMIT 1", name
        )
        return _load_readings(self._file, name, *rows[0]) if rows else ()

    def results(self, run: int) -> tuple[CanaryResult, ...]:
        """What a run saw of each canary, in the canary set's order."""
        rows = self._read("SELECT content FROM results WHERE run = ? ORDER BY place", run)
        return tuple(CanaryResult(**json.loads(content)) for (content,) in rows)

    def letters(self, name: str) -> dict[int, dict[str, Any]]:
        """Return the unsent webhook news of a series by their ids, the earliest first."""
        rows = self._read("SELECT id, content FROM outbox WHERE name = ? ORDER BY id", name)
        return {letter: json.loads(content) for letter, content in rows}

    def refused(self, name: str) -> list[dict[str, Any]]:
        """Return the runs of a series whose news the webhook refused, each with the error."""
        rows = self._read("SELECT run, error FROM refused WHERE name = ? ORDER BY id", name)
        return [{"run": run, "error": error} for run, error in rows]

    def mark_delivered(self, letter: int) -> None:
        """Delete news that the webhook has received."""
        self._change(("DELETE FROM outbox WHERE id = ?", (letter,)))

    def mark_failed(self, letter: int, error: str) -> None:
        """Note why news was not delivered; the next run tries again."""
        self._change(
            ("UPDATE outbox SET tries = tries + 1, error = ? WHERE id = ?", (error, letter))
        )

    def mark_refused(self, letter: int, error: str) -> None:
        """Move news that the webhook refuses to the refused ones, with the reason."""
        move = "INSERT OR IGNORE INTO refused SELECT id, name, run, content, ? FROM outbox WHERE id = ?"
        self._change((move, (error, letter)), ("DELETE FROM outbox WHERE id = ?", (letter,)))

    def _change(self, *statements: tuple[str, tuple[Any, ...]]) -> None:
        with HISTORY_FORMAT.errors(self.path), transaction(self._file):
            for statement, values in statements:
                self._file.execute(statement, values)

    def _read(self, statement: str, *values: Any) -> list[Any]:
        with HISTORY_FORMAT.errors(self.path):
            return self._file.execute(statement, values).fetchall()


def _record_run(file: sqlite3.Connection, finished: FinishedRun) -> dict[str, object]:
    name = finished.name
    recorded = file.execute("SELECT document FROM runs WHERE uid = ?", (finished.uid,)).fetchone()
    if recorded is not None:  # kept beside the history by a process that was then killed
        document: dict[str, Any] = json.loads(recorded[0])
        return document
    accepted = (
        finished.accept
        + file.execute(
            "SELECT coalesce(max(accepted), 0) FROM runs WHERE name = ?", (name,)
        ).fetchone()[0]
    )
    changed, suspects = _changes_since_last(file, finished)
    metrics = run_figures(finished.results)
    before = _previous_results(file, name, finished.key, accepted)
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
            json.dumps(metrics.values),
            json.dumps(suspects),
            _store_fingerprint(file, finished.fingerprint),
            finished.corpus_known,
            finished.code,
        ),
    ).lastrowid
    assert run is not None  # noqa: S101 (an INSERT always gives one)
    file.executemany(
        "INSERT INTO results VALUES (?, ?, ?, ?)",
        [
            (run, place, result.canary, json.dumps(asdict(result)))
            for place, result in enumerate(finished.results)
        ],
    )
    watched = detect_alarms(
        _load_readings(file, name, finished.key, accepted), learn=finished.learn
    )
    degraded = find_degraded(finished.results, before)
    document = run_document(finished, run, metrics, watched, degraded, changed, suspects)
    notes = [
        *(_close_alarms(file, name) if finished.accept else ()),
        *_update_alarms(file, name, watched),
    ]
    last = [old[0].answered for old in before.values()]
    is_gone = (any(last) or not last) and not any(result.answered for result in finished.results)
    news = news_document(document, notes, is_gone)
    file.execute("UPDATE runs SET document = ? WHERE id = ?", (json.dumps(document), run))
    if news and finished.notify:
        file.execute(
            "INSERT INTO outbox (name, run, content) VALUES (?, ?, ?)",
            (name, run, json.dumps(news)),
        )
    return document


def _changes_since_last(
    file: sqlite3.Connection, finished: FinishedRun
) -> tuple[dict[str, Any] | None, list[str]]:
    """Return what changed since the last run of the series with a known fingerprint."""
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
        before = json.loads(zlib.decompress(row[0])) if both else {}
        changed = compare_fingerprints(
            Fingerprint(before, row[1]), Fingerprint(now.documents if both else {}, now.embedding)
        )
        if changed["sentence"]:
            suspects.append(changed["sentence"])
    code = file.execute(
        "SELECT code FROM runs WHERE name = ? AND code IS NOT NULL ORDER BY id DESC LIMIT 1",
        (finished.name,),
    ).fetchone()
    if code and finished.code and code[0] != finished.code:
        suspects.append("the app's own code changed")
    return changed, suspects


def _store_fingerprint(file: sqlite3.Connection, fingerprint: Fingerprint | None) -> str | None:
    if fingerprint is None:
        return None
    packed = zlib.compress(json.dumps(dict(fingerprint.documents)).encode())
    file.execute(
        "INSERT OR IGNORE INTO fingerprints VALUES (?, ?, ?)",
        (fingerprint.digest, fingerprint.embedding, packed),
    )
    file.execute(
        "DELETE FROM fingerprints WHERE digest != ? AND digest NOT IN (SELECT fingerprint FROM "
        "runs WHERE fingerprint IS NOT NULL ORDER BY id DESC LIMIT ?)",
        (fingerprint.digest, _MAX_FINGERPRINTS),
    )
    return fingerprint.digest


def _load_readings(
    file: sqlite3.Connection, name: str, key: str, accepted: int
) -> tuple[RunReading, ...]:
    rows = file.execute(
        "SELECT id, at, measured, n, suspects FROM runs WHERE name = ? AND key = ? AND "
        "accepted = ? ORDER BY id",
        (name, key, accepted),
    )
    healthy_by_run: dict[int, dict[str, bool]] = {}
    healths = file.execute(
        "SELECT run, canary, json_extract(content, '$.healthy') AS healthy FROM results WHERE "
        "healthy IS NOT NULL AND run IN (SELECT id FROM runs WHERE name = ? AND key = ? AND "
        "accepted = ?)",
        (name, key, accepted),
    )
    for run, canary, healthy in healths:
        healthy_by_run.setdefault(run, {})[canary] = bool(healthy)
    return tuple(
        RunReading(
            run,
            time,
            json.loads(measured),
            n,
            tuple(json.loads(suspects)),
            healthy_by_run.get(run, {}),
        )
        for run, time, measured, n, suspects in rows
    )


def _previous_results(
    file: sqlite3.Connection, name: str, key: str, accepted: int
) -> dict[str, list[CanaryResult]]:
    """Each canary's results in the last comparable runs, the latest first."""
    rows = file.execute(
        "SELECT canary, content FROM results WHERE run IN (SELECT id FROM runs WHERE name = ? AND "
        "key = ? AND accepted = ? ORDER BY id DESC LIMIT ?) ORDER BY run DESC, place",
        (name, key, accepted, COMPARED_RUNS),
    )
    results: dict[str, list[CanaryResult]] = {}
    for canary, content in rows:
        results.setdefault(canary, []).append(CanaryResult(**json.loads(content)))
    return results


def _close_alarms(file: sqlite3.Connection, name: str) -> list[dict[str, Any]]:
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


def _update_alarms(
    file: sqlite3.Connection, name: str, watched: AlarmStatus
) -> list[dict[str, Any]]:
    """Alarms that opened or recovered since the history last knew; and keep all of them."""
    rows = file.execute("SELECT measure, run, state FROM alarms WHERE name = ?", (name,))
    states = {(measure, run): state for measure, run, state in rows}
    news = []
    for alarm in watched.episodes:
        was = states.get((alarm.measure, alarm.run))
        over = alarm.state == "recovered"
        if was is None or (over and was != "recovered"):
            news.append(alarm_to_json(alarm))
        file.execute(
            "REPLACE INTO alarms VALUES (?, ?, ?, ?, ?)",
            (name, alarm.measure, alarm.run, alarm.state, json.dumps(alarm_to_json(alarm))),
        )
    return news
