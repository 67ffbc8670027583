"""A cache of embedding vectors on disk, keyed by content.

Vectors only cost time to compute again. So if the file cannot be used, the work continues without
it, after one warning.
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

from misslink.errors import InputError
from misslink.io.sqlite import SqliteFormat, transaction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


DEFAULT_CACHE = Path(".misslink/embeddings.sqlite")
TextKind = Literal["document", "query"]

_log = logging.getLogger("misslink")
_TEXTS_PER_QUERY = 5_000  # their digests are one JSON text of a third of a megabyte
_FLOAT_FORMAT = "<f4"  # little-endian in the file, on any machine
_FORMAT = SqliteFormat(
    name="embedding cache",
    hint="delete the file",
    application_id=0x6D6C7665,  # 'mlve'
    version=1,
    schema=(
        """CREATE TABLE IF NOT EXISTS models (
             id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, name TEXT NOT NULL)""",
        """CREATE TABLE IF NOT EXISTS vectors (
             model INTEGER NOT NULL, kind TEXT NOT NULL, sha256 TEXT NOT NULL,
             vector BLOB NOT NULL, PRIMARY KEY (model, kind, sha256))""",
    ),
)


class VectorCache:
    """The vectors of one embedding model, by kind and text.

    Several processes may share a file. If it cannot be used, vectors are stored in memory.

    Parameters
    ----------
    path : Path or None
        An SQLite file; its folder is created. None stores vectors in memory.
    identity, name : str
        Of the model: its hash and its display name.
    """

    def __init__(self, path: Path | None, *, identity: str, name: str) -> None:
        self.path = path
        self._identity, self._name = identity, name
        self._file = _FORMAT.open(None)
        try:
            self._file = _FORMAT.open(path)
        except InputError as error:
            self._file = self._memory(error)

    def get(self, kind: TextKind, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the cached vectors, by text."""
        import numpy as np

        by_digest = {_digest(text): text for text in texts}
        vectors: dict[str, Vector] = {}
        digests = list(by_digest)
        for start in range(0, len(digests), _TEXTS_PER_QUERY):
            batch = json.dumps(digests[start : start + _TEXTS_PER_QUERY])
            for digest, blob in self._rows(kind, batch):
                if isinstance(blob, bytes) and blob and len(blob) % 4 == 0:
                    vector = np.frombuffer(blob, dtype=_FLOAT_FORMAT).astype(np.float32)
                    if np.isfinite(vector).all():
                        vectors[by_digest[digest]] = vector
        return vectors

    def add(self, kind: TextKind, vectors: Mapping[str, Vector]) -> None:
        """Store vectors by text, replacing earlier ones."""
        rows = [
            (kind, _digest(text), vector.astype(_FLOAT_FORMAT).tobytes(), self._identity)
            for text, vector in vectors.items()
        ]
        try:
            self._write(rows)
        except InputError as error:
            self._file = self._memory(error)
            self._write(rows)

    def forget(self) -> None:
        """Delete every vector of this model."""
        try:
            with _FORMAT.errors(self.path):
                self._file.execute(
                    "DELETE FROM vectors WHERE model = (SELECT id FROM models WHERE identity = ?)",
                    (self._identity,),
                )
        except InputError as error:
            self._file = self._memory(error)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _rows(self, kind: TextKind, digests: str) -> list[tuple[str, object]]:
        try:
            with _FORMAT.errors(self.path):
                return self._file.execute(
                    "SELECT sha256, vector FROM vectors WHERE model ="
                    " (SELECT id FROM models WHERE identity = ?) AND kind = ?"
                    " AND sha256 IN (SELECT value FROM json_each(?))",
                    (self._identity, kind, digests),
                ).fetchall()
        except InputError as error:
            self._file = self._memory(error)
            return []

    def _write(self, rows: Iterable[tuple[str, str, bytes, str]]) -> None:
        with _FORMAT.errors(self.path), transaction(self._file):
            self._file.execute(
                "INSERT OR IGNORE INTO models (identity, name) VALUES (?, ?)",
                (self._identity, self._name),
            )
            self._file.executemany(
                "INSERT OR REPLACE INTO vectors (kind, sha256, vector, model)"
                " VALUES (?, ?, ?, (SELECT id FROM models WHERE identity = ?))",
                rows,
            )

    def _memory(self, error: InputError) -> sqlite3.Connection:
        """Warn, close the file, and return a database in memory to use instead."""
        _log.warning(
            "%s: Embeddings are not cached, so the next run computes them again. %s",
            self.path,
            error.problem,
        )
        with contextlib.suppress(sqlite3.Error):
            self._file.close()
        return _FORMAT.open(None)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
