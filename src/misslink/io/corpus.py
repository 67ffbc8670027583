"""Read a corpus from files or from a Chroma store.

Chroma cannot open a store without writing to it, migrates older ones, and refuses to open one twice
in a process with different settings. The texts, ids and metadata are all in its SQLite file; a copy
of that is read, without the vector index.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError, MissingExtraError, did_you_mean
from misslink.io.jsonl import SourceItem, read_text
from misslink.io.rows import open_items
from misslink.text.normalization import content_id
from misslink.types import Passage

_CHROMA_PREFIX = "chroma:"
_CHROMA_FILE = "chroma.sqlite3"
_PAGE_ROWS = 1_000  # Chroma binds a variable for each row of a query
_TEXT_ENDINGS = (".txt", ".md")
_ID_FIELDS = ("id", "_id")  # the second is BEIR's
_TEXT_FIELDS = ("text", "page_content")  # the second is LangChain's


def read_corpus(source: str | Path) -> tuple[Passage, ...]:
    """Read a corpus.

    Parameters
    ----------
    source : str or Path
        A JSON Lines file (or one JSON array) of objects ``{"id", "text", "title"?}``, where
        ``_id`` is accepted as id and a passage without one gets an id from its text; a table (CSV,
        Excel, parquet) with these columns; a folder whose .txt and .md files are one passage
        each, with the path in the folder as id; or ``chroma:FOLDER`` or
        ``chroma:FOLDER:COLLECTION`` for a Chroma store, which is not changed.

    Returns
    -------
    tuple of Passage
        In the source's order; ``rank`` counts from 1. A title precedes its text on a line of its
        own, unless the text begins with it. Other fields are its metadata.

    Raises
    ------
    InputError
        There is no such file, folder, store or collection; a line is malformed, lacks its text
        or repeats an id; or there is no passage at all.
    """
    name = str(source)
    if name.startswith(_CHROMA_PREFIX):
        rows: Iterable[SourceItem] = _read_chroma_rows(name.removeprefix(_CHROMA_PREFIX))
    elif Path(source).is_dir():
        rows = _read_folder_rows(Path(source))
    else:
        rows = open_items(source, name, Passage)[1]
    passages: dict[str, Passage] = {}
    places: dict[str, SourceItem] = {}
    for row in rows:
        passage = _build_passage(row, rank=len(passages) + 1)
        if passage.id in passages:
            where = places[passage.id].first_place(row)
            first = where and f" (first {where})"
            if any(row.data.get(field) for field in _ID_FIELDS):
                raise row.error(
                    f"the id '{passage.id}' is used twice{first}; each passage needs its own id",
                    "id",
                )
            raise row.error(f"this text occurs twice{first}; drop one, or give each an id", "text")
        passages[passage.id] = passage
        places[passage.id] = row._replace(data=None)
    if not passages:
        raise InputError("it has no passages", path=name)
    return tuple(passages.values())


def _build_passage(row: SourceItem, rank: int) -> Passage:
    content = dict(row.data)
    name = _pop_field(row, content, _ID_FIELDS)
    text = _pop_field(row, content, _TEXT_FIELDS)
    title = content.get("title")
    if text is None and not title:
        raise row.error("this field is required; add it", "text")
    if not isinstance(text, str | None):
        raise row.error("this is not a text; write it in quotes", "text")
    if not isinstance(title, str | None):
        raise row.error("this is not a text; write it in quotes", "title")
    text, title = text or "", (title or "").strip()
    if title and not text.lstrip().startswith(title):
        text = f"{title}\n{text}" if text.strip() else title
    if name in (None, ""):
        name = content_id(text)
    elif isinstance(name, bool) or not isinstance(name, str | int):
        raise row.error("an id is a text or a whole number", "id")
    metadata = content.pop("metadata", None)
    if not isinstance(metadata, Mapping | None):
        raise row.error("this is not an object in braces", "metadata")
    data = {
        "id": str(name),
        "text": text,
        "rank": rank,
        "metadata": {**content, **(metadata or {})},
    }
    return row._replace(data=data).parse(Passage)


def _pop_field(row: SourceItem, content: dict[str, Any], names: tuple[str, str]) -> Any:
    """Remove a field of a passage by either of its names."""
    present = [name for name in names if name in content]
    if len(present) > 1:
        problem = f"'{names[0]}' means the same; keep one of the two"
        raise row.error(problem, names[1])
    return content.pop(present[0]) if present else None


def _read_folder_rows(folder: Path) -> Iterator[SourceItem]:
    if is_chroma_store(folder):
        raise InputError(f"this is a Chroma store; write  {_CHROMA_PREFIX}{folder}", path=folder)
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in _TEXT_ENDINGS
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    if not files:
        candidates = sorted(folder.glob("*corpus*.jsonl"))
        hint = f"; did you mean {candidates[0]}?" if candidates else ""
        raise InputError(f"there is no .txt or .md file in this folder{hint}", path=folder)
    for path in files:
        name = path.relative_to(folder).as_posix()
        yield SourceItem({"id": name, "text": read_text(path)}, str(path))


def is_chroma_store(folder: Path) -> bool:
    """Return whether a folder holds a Chroma store."""
    return (folder / _CHROMA_FILE).is_file()


def _read_chroma_rows(place: str) -> Iterator[SourceItem]:
    """The documents of ``FOLDER`` or ``FOLDER:COLLECTION``, oldest first."""
    folder, collection = Path(place), None
    if not folder.is_dir() and ":" in place:
        before, _, collection = place.rpartition(":")
        folder = Path(before)
    if not is_chroma_store(folder):
        problem = "this is not a Chroma store" if folder.is_dir() else "there is no such folder"
        raise InputError(
            f"{problem}; write  chroma:FOLDER  or  chroma:FOLDER:COLLECTION", path=folder
        )
    try:
        import chromadb
        from chromadb.config import Settings
    except ImportError:
        raise MissingExtraError("chromadb, which reads this store,", "langchain") from None
    with tempfile.TemporaryDirectory(prefix="misslink-chroma-") as copy:
        _copy_sqlite(folder / _CHROMA_FILE, Path(copy) / _CHROMA_FILE)
        with _chroma_errors(folder):
            client: Any = chromadb.PersistentClient(copy, Settings(anonymized_telemetry=False))
        try:
            with _chroma_errors(folder):
                documents = client.get_collection(_collection_name(client, folder, collection))
                count = documents.count()
            for offset in range(0, count, _PAGE_ROWS):
                with _chroma_errors(folder):
                    page = documents.get(
                        limit=_PAGE_ROWS, offset=offset, include=["documents", "metadatas"]
                    )
                rows = zip(page["ids"], page["documents"], page["metadatas"], strict=True)
                for name, text, metadata in rows:
                    fields = {str(key): value for key, value in (metadata or {}).items()}
                    data = {"id": name, "text": text or "", "metadata": fields}
                    yield SourceItem(data, str(folder))
        finally:
            client.close()


def _collection_name(client: Any, folder: Path, collection: str | None) -> str:
    names: list[str] = sorted(entry.name for entry in client.list_collections())
    if not names:
        raise InputError("there is no collection in this store", path=folder)
    if collection is None and len(names) > 1:
        raise InputError(
            f"this store has several collections, name one:  chroma:{folder}:NAME  "
            f"({', '.join(names)})",
            path=folder,
        )
    if collection is not None and collection not in names:
        hint = did_you_mean(collection, names) or f"it has {', '.join(names)}"
        raise InputError(
            f"there is no collection '{collection}' in this store; {hint}", path=folder
        )
    return collection or names[0]


def _copy_sqlite(file: Path, target: Path) -> None:
    """Copy an SQLite file completely, even while another process writes to it."""
    url = file.absolute().as_uri()
    try:
        with (
            contextlib.closing(sqlite3.connect(f"{url}?mode=ro", uri=True)) as store,
            contextlib.closing(sqlite3.connect(target)) as copy,
        ):
            store.backup(copy)
    except sqlite3.Error:
        raise InputError(
            "this store cannot be read; check that no other program locks it, that it "
            "is complete and that there is space in the folder for temporary files",
            path=file.parent,
        ) from None


@contextlib.contextmanager
def _chroma_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(
            f"Chroma cannot read this store ({reason}); was it written by another version?",
            path=folder,
        ) from error
