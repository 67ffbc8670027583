"""Read gold sets and traces from one file or from shards, on disk or in a storage."""

from __future__ import annotations

import glob
import io
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, get_args, get_origin

from pydantic import BaseModel

from misslink.errors import InputError
from misslink.io import parquet
from misslink.io.jsonl import (
    EMPTY_FILE,
    SourceItem,
    field_names,
    iter_objects,
    parse_nested_json,
)
from misslink.io.rows import read_csv_rows, read_sheet_rows
from misslink.io.storage import (
    InputFile,
    as_url,
    decode_utf8,
    list_remote_files,
    open_decompressed,
    redact_url,
)
from misslink.types import Trace

_log = logging.getLogger(__name__)

_PARQUET_ENDINGS = (".parquet",)
_JSONL_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst")
_HIDDEN_PREFIXES = (".", "_")  # what a name that holds no rows begins with, such as _SUCCESS
_RUN_FILES = {"cases.jsonl", "traces.jsonl", "verdicts.jsonl", "links.jsonl"}
_PEEK_BYTES = 1 << 16  # bytes of a file that hold its first line
_ID_LISTS = {"relevant"}  # columns of tables whose text may be several ids
_FILE_ENDING = re.compile(r"\.[A-Za-z]\w{1,4}$")  # "Smith, J.pdf" is one file
_GLOB_MARKS = re.compile(r"[*?\[]")


class ItemLocations:
    """Locations by id, for the message about a repeated id.

    Its ``lines``, ``files`` and ``in_rows`` are as of `misslink.io.goldset.GoldSet`.
    """

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.files: dict[str, str] = {}
        self.in_rows = False
        self._only: str | None = None

    def add(self, key: str, item: SourceItem) -> None:
        """Add the location of an id; objects given in Python have none."""
        if item.number is None:
            return
        if self._only is None:
            self._only, self.in_rows = item.file, item.in_row
        elif item.file != self._only and not self.files:
            self.files = dict.fromkeys(self.lines, self._only)
        if self.files or item.file != self._only:
            self.files[key] = item.file
        self.lines[key] = item.number

    def first(self, key: str, item: SourceItem) -> str:
        """Return the location that `item` repeats; empty if it is unknown."""
        number = self.lines.get(key)
        if number is None:
            return ""
        place = f"{'in row' if self.in_rows else 'on line'} {number}"
        file = self.files.get(key, self._only)
        return place if file == item.file else f"{place} of {file}"


def read_items(source: str | Path, model: type[BaseModel]) -> Iterator[SourceItem]:
    """Yield every object of a file or of shards, one after another.

    Parameters
    ----------
    source : str or Path
        As `shards_of` takes it. A file of JSON Lines (also packed by gzip or zstd), a JSON
        array, parquet, CSV or an Excel sheet, detected by content.
    model : type
        What the objects will become. Of a table, JSON in a text column becomes what it says where
        the field is a list or an object.

    Raises
    ------
    InputError
        Nothing is there, or a file cannot be read; with its line or row.
    """
    empty = True
    files = list_shards(source)
    for file in files:
        for item in read_file_items(file, model):
            empty = False
            yield item
    if empty:
        tables = files[0].name.lower().endswith(_PARQUET_ENDINGS)
        raise InputError("there is no row in it" if tables else EMPTY_FILE, path=redact_url(source))


def read_file_items(file: InputFile, model: type[BaseModel] | None) -> Iterator[SourceItem]:
    """Yield the objects of one file, as `read_items`; of an empty one nothing.

    Without a model every text file that is not JSON is a table.

    Raises
    ------
    InputError
        It cannot be read; with the line or row.
    """
    name = str(file)
    with open_decompressed(file) as content:
        start = content.peek(_PEEK_BYTES)[:_PEEK_BYTES]
        is_parquet, is_sheet = start.startswith(parquet.PARQUET_MAGIC), start.startswith(b"PK\3\4")
        # What is packed, piped or served whole cannot be read from its end, as these are.
        source: IO[bytes] = content
        if (is_parquet or is_sheet) and not content.seekable():
            source = io.BytesIO(content.read())
        if is_parquet:
            rows = parquet.read_parquet_rows(source, file)
        elif is_sheet:
            rows = read_sheet_rows(source, file)
        elif is_csv(start, name, model):
            rows = read_csv_rows(decode_utf8(content.read(), file), file)
        else:
            for line, data in iter_objects(content, file):
                yield SourceItem(data, name, line)
            return
        nested = _nested_fields(model or Trace)
        for number, data in rows:
            item = SourceItem(data, name, number, in_row=is_parquet or is_sheet)
            for field in nested & data.keys():
                if isinstance(data[field], str):
                    data[field] = parse_nested_json(data[field], item.path, field)
                    if not is_parquet and field in _ID_LISTS and isinstance(data[field], str):
                        data[field] = _split_ids(data[field])
            yield item


def _split_ids(cell: str) -> list[str]:
    """The ids in a cell: between ``;``, ``|`` or lines, else commas that are not part of a name."""
    parts = [part.strip() for part in re.split(r"[;|\n]", cell)]
    if len(parts) == 1:
        listed = [part.strip() for part in cell.split(",")]
        endings = {bool(_FILE_ENDING.search(part)) for part in listed if part}
        if len(endings) == 1 and not any(re.search(r"\s", part) for part in listed):
            parts = listed
    return [part for part in parts if part]


def is_csv(start: bytes, name: str, model: type[BaseModel] | None) -> bool:
    """Whether a file is a table: by its name, or by a first line that names fields of `model`."""
    text = start.decode("utf-8-sig", "replace").lstrip()
    if text[:1] in {"{", "["} or not text:
        return False
    if model is None:
        return True
    names = {
        name for field, info in model.model_fields.items() for name in field_names(field, info)
    }
    cells = {cell.strip(' "') for cell in re.split(r"[,;\t]", text.splitlines()[0])}
    return re.search(r"\.[ct]sv(\.\w+)?$", name.lower()) is not None or not names.isdisjoint(cells)


def list_shards(source: str | Path) -> tuple[InputFile, ...]:
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
    files = list_files(source, (*_JSONL_ENDINGS, *_PARQUET_ENDINGS))
    if {file.name for file in files} >= _RUN_FILES:
        raise InputError(
            f"this is a run folder; name one file in it, such as {redact_url(source)}/cases.jsonl",
            path=redact_url(source),
        )
    tables = [file for file in files if file.name.lower().endswith(_PARQUET_ENDINGS)]
    if 0 < len(tables) < len(files):
        other = next(file for file in files if file not in tables)
        raise InputError(
            f"{tables[0].name} is parquet and {other.name} is not; keep one of the two kinds",
            path=redact_url(source),
        )
    return files


def list_files(source: str | Path, endings: tuple[str, ...]) -> tuple[InputFile, ...]:
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
    url = as_url(source)
    files_found, kind = _list_local_files(Path(source)) if url is None else list_remote_files(url)
    if kind == "file":
        return tuple(files_found)
    files = [file for file in files_found if not file.name.startswith(_HIDDEN_PREFIXES)]
    if kind == "folder":
        _warn_skipped_files(files, endings, redact_url(source))
        files = [file for file in files if file.name.lower().endswith(endings)]
    if not files:
        problem = (
            f"this folder holds no file that ends in {', '.join(endings)}; name a file or another "
            "folder (a pattern such as FOLDER/*/*.parquet looks into the folders in it)"
            if kind == "folder"
            else "no file fits this pattern; name a file, a folder or another pattern"
        )
        raise InputError(problem, path=redact_url(source))
    return tuple(sorted(files, key=lambda file: _natural_key(str(file))))


def _list_local_files(path: Path) -> tuple[Sequence[InputFile], str]:
    try:
        if path.is_dir():
            # A link to nothing stays among them, so that a missing shard is reported.
            return [
                entry for entry in path.iterdir() if entry.is_file() or not entry.exists()
            ], "folder"
        if path.exists() or not _GLOB_MARKS.search(str(path)):
            return [path], "file"
        matches = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207 - it may be absolute
        return [entry for entry in matches if entry.is_file() or not entry.exists()], "pattern"
    except OSError as problem:
        raise InputError(f"it cannot be read: {problem.strerror}", path=path) from None


def _warn_skipped_files(files: Sequence[InputFile], endings: tuple[str, ...], folder: str) -> None:
    """Warn of what in a folder is passed over and may be a shard, such as part-2.parquet.tmp."""
    kinds = {ending.split(".")[1] for ending in endings}
    skipped = [
        file.name
        for file in files
        if not file.name.lower().endswith(endings) and kinds & set(file.name.lower().split("."))
    ]
    if skipped:
        _log.warning(
            "%s: files whose names do not end in %s are passed over (%d, such as %s)",
            folder,
            ", ".join(endings),
            len(skipped),
            skipped[0],
        )


def _natural_key(name: str) -> tuple[list[str | int], str]:
    """Sort key with part-2 before part-10."""
    parts = re.split("([0-9]+)", name)
    return [int(part) if index % 2 else part for index, part in enumerate(parts)], name


def _nested_fields(model: type[BaseModel]) -> frozenset[str]:
    """The names of the fields that hold lists or objects, by all their names."""
    names = set()
    for field, info in model.model_fields.items():
        kinds = get_args(info.annotation) or (info.annotation,)
        if any(
            get_origin(kind) in {tuple, dict}
            or (isinstance(kind, type) and issubclass(kind, BaseModel))
            for kind in (info.annotation, *kinds)
        ):
            names |= set(field_names(field, info))
    return frozenset(names)
