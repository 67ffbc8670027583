"""Corpora: the passages an app retrieves from, brought as files or as a Chroma store."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from misslink.errors import InputError
from misslink.files.chroma import is_chroma, read_chroma
from misslink.files.jsonl import parse, read_objects, read_text
from misslink.text import content_id
from misslink.types import Passage

__all__ = ["read_corpus"]

_CHROMA = "chroma:"
_TEXTS = (".txt", ".md")
_IDS = ("id", "_id")  # the second is BEIR's
_BODIES = ("text", "page_content")  # the second is a dumped LangChain document's


class _Row(NamedTuple):
    """One passage as it stands in its file, with its place there."""

    path: object
    line: int | None
    content: Mapping[str, Any]


def read_corpus(source: str | Path) -> tuple[Passage, ...]:
    """Read a corpus.

    Parameters
    ----------
    source : str or Path
        A JSON Lines file (or one JSON array) of objects ``{"id", "text", "title"?}``, where
        ``_id`` is understood as id and a passage without any is named by its text; a ``.csv``
        file with a header and these columns; a folder, each of whose .txt and .md files is one
        passage, its path in the folder the id; or ``chroma:FOLDER`` or
        ``chroma:FOLDER:COLLECTION`` for a store of Chroma, which is not changed.

    Returns
    -------
    tuple of Passage
        In the source's order, which ``rank`` counts from 1. A title stands in front of its text,
        on a line of its own, unless the text begins with it. Whatever else a passage carries is
        its metadata.

    Raises
    ------
    InputError
        There is no such file, folder, store or collection; a line is malformed, lacks its text
        or repeats an id; or there is no passage at all.
    """
    name = str(source)
    if name.startswith(_CHROMA):
        rows: Iterable[_Row] = _from_chroma(name.removeprefix(_CHROMA))
    elif Path(source).is_dir():
        rows = _from_folder(Path(source))
    elif Path(source).suffix.lower() == ".csv":
        rows = _from_csv(Path(source))
    else:
        rows = (_Row(name, line, item) for line, item in read_objects(Path(source)))
    passages: dict[str, Passage] = {}
    lines: dict[str, int | None] = {}
    for row in rows:
        passage = _passage(row, rank=len(passages) + 1)
        if passage.id in passages:
            raise _used_twice(row, passage, lines[passage.id])
        passages[passage.id] = passage
        lines[passage.id] = row.line
    if not passages:
        raise InputError("there is no passage in it", path=name)
    return tuple(passages.values())


def _passage(row: _Row, rank: int) -> Passage:
    content = dict(row.content)
    identity = _taken(row, content, _IDS)
    text = _taken(row, content, _BODIES)
    title = content.get("title")
    if text is None and not title:
        raise _wrong(row, "text", "this field is required; add it")
    if not isinstance(text, str | None):
        raise _wrong(row, "text", "this is no text; write it in quotes")
    if not isinstance(title, str | None):
        raise _wrong(row, "title", "this is no text; write it in quotes")
    whole = _titled(title, text or "")
    if identity in (None, ""):
        identity = content_id(whole)
    elif isinstance(identity, bool) or not isinstance(identity, str | int):
        raise _wrong(row, "id", "an id is a text or a whole number")
    inner = content.pop("metadata", None)
    if not isinstance(inner, Mapping | None):
        raise _wrong(row, "metadata", "this is not an object in braces")
    data = {
        "id": str(identity),
        "text": whole,
        "rank": rank,
        "metadata": {**content, **(inner or {})},
    }
    return parse(Passage, data, row.path, row.line)


def _taken(row: _Row, content: dict[str, Any], names: tuple[str, str]) -> Any:
    """Take a field out of a passage by either of its names."""
    given = [name for name in names if name in content]
    if len(given) > 1:
        problem = f"'{names[0]}' is given too, and both mean the same; keep one of the two"
        raise _wrong(row, names[1], problem)
    return content.pop(given[0]) if given else None


def _titled(title: str | None, text: str) -> str:
    if not title or not title.strip() or text.lstrip().startswith(title.strip()):
        return text
    return f"{title.strip()}\n{text}" if text.strip() else title.strip()


def _used_twice(row: _Row, passage: Passage, first: int | None) -> InputError:
    if not any(row.content.get(name) for name in _IDS):
        where = f" (first on line {first})" if first is not None else ""
        return _wrong(row, "text", f"this text stands twice{where}; drop one, or give each an id")
    where = f" (first on line {first})" if first is not None else ""
    problem = f"the id '{passage.id}' is used twice{where}; ids name one passage each"
    return _wrong(row, "id", problem)


def _wrong(row: _Row, field: str, problem: str) -> InputError:
    return InputError(problem, path=row.path, line=row.line, field=field)


def _from_folder(folder: Path) -> Iterator[_Row]:
    if is_chroma(folder):
        raise InputError(f"this is a store of Chroma; write  {_CHROMA}{folder}", path=folder)
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in _TEXTS
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    if not files:
        lines = sorted(folder.glob("*corpus*.jsonl"))
        hint = f"; did you mean {lines[0]}?" if lines else ""
        raise InputError(f"there is no .txt or .md file in this folder{hint}", path=folder)
    for path in files:
        name = path.relative_to(folder).as_posix()
        yield _Row(path, None, {"id": name, "text": read_text(path)})


def _from_csv(path: Path) -> Iterator[_Row]:
    lines = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    with _long_cells():
        header = _next(lines, path)
        columns = [name.strip() for name in header or ()]
        if not set(columns) & {*_BODIES, "title"}:
            raise InputError(
                "there is no column 'text'; the first line names the columns, such as  id,text",
                path=path,
                line=1,
            )
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"two columns are called '{twice}'; rename one", path=path, line=1)
        begins = lines.line_num + 1
        while (cells := _next(lines, path)) is not None:
            line, begins = begins, lines.line_num + 1
            if not cells:
                continue
            if len(cells) != len(columns):
                raise InputError(
                    f"there are {len(cells)} cells under {len(columns)} columns; a text with "
                    "commas or line ends stands in double quotes",
                    path=path,
                    line=line,
                )
            content = dict(zip(columns, cells, strict=True))
            yield _Row(path, line, {name: cell for name, cell in content.items() if name and cell})


def _next(lines: Iterator[list[str]], path: Path) -> list[str] | None:
    try:
        return next(lines, None)
    except csv.Error as problem:
        line = getattr(lines, "line_num", None)
        raise InputError(f"this is not CSV ({problem})", path=path, line=line) from None


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    """Passages may be longer than what the csv module takes unless it is told."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _from_chroma(place: str) -> Iterator[_Row]:
    folder, collection = Path(place), None
    if not folder.is_dir() and ":" in place:
        before, _, collection = place.rpartition(":")
        folder = Path(before)
    for name, text, metadata in read_chroma(folder, collection):
        inner = {str(key): value for key, value in (metadata or {}).items()}
        yield _Row(folder, None, {"id": name, "text": text or "", "metadata": inner})
