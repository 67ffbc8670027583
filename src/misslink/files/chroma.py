"""The documents of a Chroma store in a folder, read from a copy so that the store stays as it is.

Chroma itself has no way to open a store without writing to it, brings an older one up to date
unasked, and refuses to open one twice in a process with different settings. The texts, the ids and
the metadata are all in its SQLite file; of that a copy is made, without the vectors' index.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError, MissingExtraError, did_you_mean

__all__ = ["is_chroma", "read_chroma"]

_FILE = "chroma.sqlite3"
_PAGE = 1_000  # rows a question; Chroma binds a variable for each


def is_chroma(folder: Path) -> bool:
    """Whether a folder holds a Chroma store."""
    return (folder / _FILE).is_file()


def read_chroma(
    folder: Path, collection: str | None = None
) -> Iterator[tuple[str, str | None, Mapping[str, Any] | None]]:
    """Yield the id, the text and the metadata of each document of a collection, oldest first.

    Parameters
    ----------
    folder : Path
    collection : str or None
        None: the only one there is.

    Raises
    ------
    InputError
        The folder is no Chroma store (none is made), or it cannot be read; there is no such
        collection, or several and none is named.
    MissingExtraError
        chromadb is not installed.
    """
    if not is_chroma(folder):
        what = "this is no store of Chroma" if folder.is_dir() else "there is no such folder"
        raise InputError(f"{what}; write  chroma:FOLDER  or  chroma:FOLDER:COLLECTION", path=folder)
    try:
        import chromadb
        from chromadb.config import Settings
    except ImportError:
        raise MissingExtraError("chromadb, which reads this store,", "langchain") from None
    with tempfile.TemporaryDirectory(prefix="misslink-chroma-") as copied:
        _copy(folder / _FILE, Path(copied) / _FILE)
        with _speaking(folder):
            client: Any = chromadb.PersistentClient(copied, Settings(anonymized_telemetry=False))
        try:
            with _speaking(folder):
                found = client.get_collection(_named(client, folder, collection))
            offset = 0
            while True:
                with _speaking(folder):
                    page = found.get(limit=_PAGE, offset=offset, include=["documents", "metadatas"])
                yield from zip(page["ids"], page["documents"], page["metadatas"], strict=True)
                if len(page["ids"]) < _PAGE:
                    return
                offset += _PAGE
        finally:
            client.close()


def _named(client: Any, folder: Path, collection: str | None) -> str:
    names: list[str] = sorted(each.name for each in client.list_collections())
    if not names:
        raise InputError("there is no collection in this store", path=folder)
    listed = ", ".join(names)
    if collection is None:
        if len(names) > 1:
            raise InputError(
                f"this store has several collections, name one:  chroma:{folder}:NAME  ({listed})",
                path=folder,
            )
        return names[0]
    if collection not in names:
        hint = did_you_mean(collection, names)
        raise InputError(
            f"there is no collection '{collection}' in this store; {hint or f'it has {listed}'}",
            path=folder,
        )
    return collection


def _copy(file: Path, to: Path) -> None:
    """Copy an SQLite file whole, even while another process writes to it."""
    address = file.absolute().as_uri()
    try:
        with (
            contextlib.closing(sqlite3.connect(f"{address}?mode=ro", uri=True)) as store,
            contextlib.closing(sqlite3.connect(to)) as copy,
        ):
            store.backup(copy)
    except sqlite3.Error as trouble:
        raise InputError(
            f"this store cannot be read ({trouble}); see that nobody holds it, that it is whole "
            "and that there is room in the folder for temporary files",
            path=file.parent,
        ) from None


@contextlib.contextmanager
def _speaking(folder: Path) -> Iterator[None]:
    """Say in a sentence what Chroma says."""
    try:
        yield
    except InputError:
        raise
    except Exception as problem:
        first = str(problem).strip().partition("\n")[0] or type(problem).__name__
        raise InputError(
            f"Chroma cannot read this store ({first}); was it written by another version?",
            path=folder,
        ) from problem
