"""Vectors kept by content, so that no text is embedded twice.

They cost only time to compute again. So whatever is wrong with the file, the work goes on without
it, and one warning says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DEFAULT_CACHE", "Kind", "VectorCache"]

DEFAULT_CACHE = Path(".misslink/embeddings.sqlite")
Kind = Literal["document", "query"]

_log = logging.getLogger("misslink")
_BUSY_S = 10.0  # how long another process may write; longer than any batch takes
_APPLICATION = 0x6D6C7665  # 'mlve' in the file's header: these are misslink's vectors
_ASKED = 5_000  # texts a query; their digests are one JSON text of a third of a megabyte
_FLOATS = "<f4"  # as they stand in the file, whatever machine reads it
_TABLES = """
CREATE TABLE IF NOT EXISTS models (
  id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, name TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS vectors (
  model INTEGER NOT NULL, kind TEXT NOT NULL, sha256 TEXT NOT NULL, vector BLOB NOT NULL,
  PRIMARY KEY (model, kind, sha256)
);
"""


class VectorCache:
    """The vectors of one embedding model, by kind and text.

    Several processes may share a file. Where it cannot be used, vectors are kept for the life of
    this object.

    Parameters
    ----------
    path : Path or None
        An SQLite file; its folder is made. None keeps vectors in memory.
    identity, name : str
        Of the model: what it is known by, and what people call it.
    """

    def __init__(self, path: Path | None, *, identity: str, name: str) -> None:
        self.path = path
        self._identity, self._name = identity, name
        self._file = self._opened(path)

    def get(self, kind: Kind, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors that are kept, by text."""
        import numpy as np

        by_digest = {_digest(text): text for text in texts}
        found: dict[str, NDArray[np.float32]] = {}
        digests = list(by_digest)
        for start in range(0, len(digests), _ASKED):
            asked = json.dumps(digests[start : start + _ASKED])
            for digest, blob in self._rows(kind, asked):
                if isinstance(blob, bytes) and blob and len(blob) % 4 == 0:
                    vector = np.frombuffer(blob, dtype=_FLOATS).astype(np.float32)
                    if np.isfinite(vector).all():
                        found[by_digest[digest]] = vector
        return found

    def add(self, kind: Kind, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep vectors by text, in place of what was kept."""
        rows = [
            (kind, _digest(text), vector.astype(_FLOATS).tobytes(), self._identity)
            for text, vector in vectors.items()
        ]
        try:
            self._write(rows)
        except sqlite3.Error as trouble:
            self._do_without(trouble)
            self._write(rows)

    def forget(self) -> None:
        """Drop every vector of this model."""
        try:
            with self._file as file:
                file.execute(
                    "DELETE FROM vectors WHERE model = (SELECT id FROM models WHERE identity = ?)",
                    (self._identity,),
                )
        except sqlite3.Error as trouble:
            self._do_without(trouble)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _rows(self, kind: Kind, digests: str) -> list[tuple[str, object]]:
        try:
            return self._file.execute(
                "SELECT sha256, vector FROM vectors WHERE model ="
                " (SELECT id FROM models WHERE identity = ?) AND kind = ?"
                " AND sha256 IN (SELECT value FROM json_each(?))",
                (self._identity, kind, digests),
            ).fetchall()
        except sqlite3.Error as trouble:
            self._do_without(trouble)
            return []

    def _write(self, rows: Iterable[tuple[str, str, bytes, str]]) -> None:
        with self._file as file:
            file.execute("BEGIN IMMEDIATE")
            file.execute(
                "INSERT OR IGNORE INTO models (identity, name) VALUES (?, ?)",
                (self._identity, self._name),
            )
            file.executemany(
                "INSERT OR REPLACE INTO vectors (kind, sha256, vector, model)"
                " VALUES (?, ?, ?, (SELECT id FROM models WHERE identity = ?))",
                rows,
            )

    def _opened(self, path: Path | None) -> sqlite3.Connection:
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                return _prepared(str(path))
            except (OSError, sqlite3.Error) as trouble:
                self._warn(trouble)
        return _prepared(":memory:")

    def _do_without(self, trouble: sqlite3.Error) -> None:
        """Go on in memory; from then on nothing more can go wrong with the file."""
        self._warn(trouble)
        with contextlib.suppress(sqlite3.Error):
            self._file.close()
        self._file = _prepared(":memory:")

    def _warn(self, trouble: Exception) -> None:
        said = getattr(trouble, "strerror", None) or str(trouble)
        _log.warning(
            "%s: embeddings cannot be kept there (%s), so they are computed again next time",
            self.path,
            said,
        )


def _prepared(where: str) -> sqlite3.Connection:
    """Open a file, make it a cache where it is new, and refuse another program's."""
    file = sqlite3.connect(
        where,
        timeout=_BUSY_S,
        isolation_level=None,
        # Used by one event loop, which need not run in the thread that opened it (a notebook).
        check_same_thread=False,
    )
    try:
        if _is_new(file):
            # Two processes that open a new file at once cannot both switch it; one serves both.
            with contextlib.suppress(sqlite3.OperationalError):
                file.execute("PRAGMA journal_mode = WAL")
            file.executescript(
                f"BEGIN IMMEDIATE; PRAGMA application_id = {_APPLICATION}; {_TABLES} COMMIT;"
            )
        file.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        file.close()
        raise
    return file


def _is_new(file: sqlite3.Connection) -> bool:
    """Whether there is nothing in it yet; another program's database is refused."""
    # In this order: another process that makes it a cache just now writes both at once.
    (tables,) = file.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = file.execute("PRAGMA application_id").fetchone()
    if tables and application != _APPLICATION:
        raise sqlite3.DatabaseError("it is another program's database")
    return not tables


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
