"""Gold sets and traces in one file or in shards: on this disk, or in a storage fsspec reaches."""

from __future__ import annotations

import glob
import io
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel

from misslink.errors import InputError
from misslink.files import parquet
from misslink.files.addresses import shown, url_of
from misslink.files.content import File, opened
from misslink.files.jsonl import NOTHING, names_of, nested_json, objects_in
from misslink.files.storage import stored

__all__ = ["Item", "Places", "files_of", "items_in", "read_items", "shards_of"]

_log = logging.getLogger(__name__)

_PARQUET = (".parquet",)
_LINES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst")
_PASSED = (".", "_")  # what a name that holds no rows begins with, such as _SUCCESS
_OF_A_RUN = {"cases.jsonl", "traces.jsonl", "verdicts.jsonl", "links.jsonl"}
_MAGIC = re.compile(r"[*?\[]")


class Item(NamedTuple):
    """One object, and where it stands.

    Parameters
    ----------
    data : Any
    file : str
        As it may be shown; of what is given in Python its name.
    number : int or None
        Its line from 1, or its row in parquet. None: given in Python.
    in_row : bool
        Whether it is of parquet.
    """

    data: Any
    file: str
    number: int | None = None
    in_row: bool = False

    @property
    def path(self) -> str:
        """What a message names: the file, and the row, which is no line."""
        return f"{self.file}, row {self.number}" if self.in_row else self.file

    @property
    def line(self) -> int | None:
        """The line a message names."""
        return None if self.in_row else self.number


class Places:
    """Where each of many things stands, by its id, to be told when an id comes twice.

    Its ``lines``, ``files`` and ``in_rows`` are as of `misslink.files.goldset.GoldSet`.
    """

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.files: dict[str, str] = {}
        self.in_rows = False
        self._only: str | None = None

    def add(self, key: str, item: Item) -> None:
        """Note where one stands; what is given in Python stands nowhere."""
        if item.number is None:
            return
        if self._only is None:
            self._only, self.in_rows = item.file, item.in_row
        elif item.file != self._only and not self.files:
            self.files = dict.fromkeys(self.lines, self._only)
        if self.files or item.file != self._only:
            self.files[key] = item.file
        self.lines[key] = item.number

    def first(self, key: str, item: Item) -> str:
        """Say where one stands that `item` repeats; nothing where that is not known."""
        number = self.lines.get(key)
        if number is None:
            return ""
        place = f"{'in row' if self.in_rows else 'on line'} {number}"
        file = self.files.get(key, self._only)
        return place if file == item.file else f"{place} of {file}"


def read_items(source: str | Path, model: type[BaseModel]) -> Iterator[Item]:
    """Yield every object of a file or of shards, one after another.

    Parameters
    ----------
    source : str or Path
        As `shards_of` takes it. A file of JSON Lines (also packed by gzip or zstd), a JSON array
        or parquet, told apart by what is in it.
    model : type
        What the objects will become. Of parquet, JSON in a text column becomes what it says where
        the field is a list or an object.

    Raises
    ------
    InputError
        Nothing is there, or a file cannot be read; with its line or row.
    """
    empty = True
    files = shards_of(source)
    for file in files:
        for item in items_in(file, model):
            empty = False
            yield item
    if empty:
        tables = files[0].name.lower().endswith(_PARQUET)
        raise InputError("there is no row in it" if tables else NOTHING, path=shown(source))


def items_in(file: File, model: type[BaseModel]) -> Iterator[Item]:
    """Yield the objects of one file, as `read_items`; of an empty one nothing.

    Raises
    ------
    InputError
        It cannot be read; with the line or row.
    """
    name = str(file)
    with opened(file) as content:
        if not content.peek(len(parquet.MARK)).startswith(parquet.MARK):
            for line, data in objects_in(content, file):
                yield Item(data, name, line)
            return
        nested = _nested(model)
        # What is packed, piped or served whole cannot be read from its end, as parquet is.
        anywhere = content.seekable() and type(content.raw).__name__ != "GzipFile"
        source = content if anywhere else io.BytesIO(content.read())
        for number, data in parquet.rows(source, file):
            item = Item(data, name, number, in_row=True)
            for field in nested & data.keys():
                if isinstance(data[field], str):
                    data[field] = nested_json(data[field], item.path, field)
            yield item


def shards_of(source: str | Path) -> tuple[File, ...]:
    """Return the files that hold a gold set or traces, in the order in which they are read.

    Parameters
    ----------
    source : str or Path
        A file; a folder of .jsonl (also .jsonl.gz, .jsonl.zst) or .parquet files; a pattern such
        as ``gold/part-*.parquet``; or the URL of any of these. Shards are read in the order of
        their names, numbers by their value. Names that begin with a dot or an underscore are
        passed over, and in a folder every file of another kind.

    Raises
    ------
    InputError
        There is no such file, no shard, or shards of both kinds.
    """
    files = files_of(source, (*_LINES, *_PARQUET))
    if {file.name for file in files} >= _OF_A_RUN:
        raise InputError(
            f"this is a run folder; name one file in it, such as {shown(source)}/cases.jsonl",
            path=shown(source),
        )
    tables = [file for file in files if file.name.lower().endswith(_PARQUET)]
    if 0 < len(tables) < len(files):
        other = next(file for file in files if file not in tables)
        raise InputError(
            f"{tables[0].name} is parquet and {other.name} is not; keep one of the two kinds",
            path=shown(source),
        )
    return files


def files_of(source: str | Path, endings: tuple[str, ...]) -> tuple[File, ...]:
    """Return the files that a path, a pattern or a URL names, in the order of their names.

    Parameters
    ----------
    source : str or Path
    endings : tuple of str
        Of the files that are meant in a folder, in lower case.

    Raises
    ------
    InputError
        A folder holds none, or a pattern fits none. That a file is not there shows when it is read.
    """
    url = url_of(source)
    found, kind = _local(Path(source)) if url is None else stored(url)
    if kind == "file":
        return tuple(found)
    files = [file for file in found if not file.name.startswith(_PASSED)]
    if kind == "folder":
        _warn_of_alike(files, endings, shown(source))
        files = [file for file in files if file.name.lower().endswith(endings)]
    if not files:
        problem = (
            f"this folder holds no file that ends in {', '.join(endings)}; name a file or another "
            "folder (a pattern such as FOLDER/*/*.parquet looks into the folders in it)"
            if kind == "folder"
            else "no file fits this pattern; name a file, a folder or another pattern"
        )
        raise InputError(problem, path=shown(source))
    return tuple(sorted(files, key=lambda file: _natural(str(file))))


def _local(path: Path) -> tuple[Sequence[File], str]:
    try:
        if path.is_dir():
            # A link to nothing stays among them, so that a shard that is gone is told of.
            return [one for one in path.iterdir() if one.is_file() or not one.exists()], "folder"
        if path.exists() or not _MAGIC.search(str(path)):
            return [path], "file"
        found = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207 - it may be absolute
        return [one for one in found if one.is_file() or not one.exists()], "pattern"
    except OSError as problem:
        raise InputError(f"it cannot be read: {problem.strerror}", path=path) from None


def _warn_of_alike(files: Sequence[File], endings: tuple[str, ...], folder: str) -> None:
    """Warn of what in a folder is passed over and may be a shard, such as part-2.parquet.tmp."""
    kinds = {ending.split(".")[1] for ending in endings}
    alike = [
        file.name
        for file in files
        if not file.name.lower().endswith(endings) and kinds & set(file.name.lower().split("."))
    ]
    if alike:
        _log.warning(
            "%s: files whose names do not end in %s are passed over (%d, such as %s)",
            folder,
            ", ".join(endings),
            len(alike),
            alike[0],
        )


def _natural(name: str) -> tuple[list[str | int], str]:
    """What names are sorted by, so that part-2 stands before part-10."""
    parts = re.split("([0-9]+)", name)
    return [int(part) if at % 2 else part for at, part in enumerate(parts)], name


def _nested(model: type[BaseModel]) -> frozenset[str]:
    """The names of the fields that hold lists or objects, by all their names."""
    names = set()
    for field, info in model.model_fields.items():
        kinds = get_args(info.annotation) or (info.annotation,)
        if any(
            get_origin(kind) in {tuple, dict}
            or (isinstance(kind, type) and issubclass(kind, BaseModel))
            for kind in (info.annotation, *kinds)
        ):
            names |= set(names_of(field, info))
    return frozenset(names)
