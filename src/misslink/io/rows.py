"""Read objects from JSON Lines, CSV, Excel, parquet and data frames, each with its location."""

from __future__ import annotations

import codecs
import csv
import io
import logging
import re
import reprlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, get_args, get_origin

from pydantic import BaseModel

from misslink.errors import InputError, MissingExtraError
from misslink.io.jsonl import (
    EMPTY_FILE,
    SourceItem,
    describe_json,
    field_names,
    iter_objects,
    parse_nested_json,
)
from misslink.io.storage import (
    InputFile,
    decode_utf8,
    list_shards,
    open_decompressed,
    redact_url,
)
from misslink.io.values import json_value
from misslink.text.normalization import drop_invisible
from misslink.types import Case, Trace

PARQUET_MAGIC = b"PAR1"  # what a parquet file begins with
_EXCEL_MAGIC = b"PK\3\4"
_EMPTY_TABLE = "the file is empty; the first line must name the columns"
_EMPTY_FILES = {  # by how the name ends; others are JSON Lines
    ".parquet": "it has no rows",
    ".json": "it has no objects",
    ".csv": _EMPTY_TABLE,
    ".tsv": _EMPTY_TABLE,
}
_BINARY_FORMATS = {".parquet": "a parquet", ".xlsx": "an Excel"}
_DELIMITERS = ",;\t"
_MAX_FIELD_CHARACTERS = 1 << 30  # passages are long; the default of the csv module is 131,072
# Lines are cut one at a time: an `io.StringIO` would hold four bytes of each character.
_LINE_PATTERN = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_PEEK_BYTES = 1 << 16  # bytes of a file that hold its first line
_BATCH_ROWS = 1024  # rows of traces are long
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # of a pandas frame, written beside its columns
_ID_LISTS = {"relevant"}  # columns of tables whose text may be several ids
_FILE_ENDING = re.compile(r"\.[A-Za-z]\w{1,4}$")  # "Smith, J.pdf" is one file
# How pandas and NumPy print that nothing is there; "None" and "null" may be an answer.
_PRINTED_GAPS = frozenset({"nan", "NaN", "<NA>", "NaT"})
_ID_COLUMN = re.compile(r"ids?$|^relevant", re.IGNORECASE)  # where "NaN" may name a document
_FORMULA_SIGNS = frozenset("=+-@")
_FORMULA_BREAKS = frozenset("\t\r\n")
_log = logging.getLogger(__name__)
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})  # blanks, controls and joiners
_PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def open_items(
    source: object, name: str, model: type[BaseModel] | None = None
) -> tuple[str, Iterator[SourceItem]]:
    """Return the name of a source and its objects, one after another.

    Parameters
    ----------
    source : path, URL, data frame, or iterable
        Files as `list_shards` takes them: JSON Lines (also packed by gzip or zstd), a JSON array,
        parquet, CSV or an Excel sheet, detected by content.
    name : str
        What messages call objects given in Python that have no location.
    model : type
        What the objects will become; see `read_file_items`.

    Raises
    ------
    InputError
        Nothing is there, or a file cannot be read; with its line or row.
    """
    if isinstance(source, str | Path):
        return redact_url(source), _read_shards(source, model)
    rows = _as_list(source, name)
    items = [row if isinstance(row, SourceItem) else _python_item(row, name) for row in rows]
    return name, _parse_cells(items, model) if hasattr(source, "columns") else iter(items)


def _python_item(row: Any, name: str) -> SourceItem:
    """An object given in Python, such as one with values of NumPy and documents of LangChain."""
    try:
        return SourceItem(json_value(row) if isinstance(row, Mapping) else row, name)
    except RecursionError:
        return SourceItem(row, name)  # which is refused where it becomes a model
    except UnicodeDecodeError:
        raise InputError(f"{name} hold bytes that are not UTF-8; give text") from None


def _read_shards(source: str | Path, model: type[BaseModel] | None) -> Iterator[SourceItem]:
    empty = True
    files = list_shards(source)
    for file in files:
        for item in read_file_items(file, model):
            empty = False
            yield item
    if empty:
        endings = (_EMPTY_FILES.get(suffix) for suffix in Path(files[0].name.lower()).suffixes)
        raise InputError(next(filter(None, endings), EMPTY_FILE), path=redact_url(source))


def read_file_items(file: InputFile, model: type[BaseModel] | None = None) -> Iterator[SourceItem]:
    """Yield the objects of one file; of an empty one nothing.

    Parameters
    ----------
    file : Path or RemoteFile
    model : type
        What the objects will become. Of a table, JSON in a text column becomes what it says where
        the field is a list or an object. None: that of a trace, and every text file that is not
        JSON, nor named so, is a table.

    Raises
    ------
    InputError
        It cannot be read; with the line or row.
    """
    with open_decompressed(file) as content:
        start = content.peek(_PEEK_BYTES)[:_PEEK_BYTES]
        is_parquet, is_sheet = start.startswith(PARQUET_MAGIC), start.startswith(_EXCEL_MAGIC)
        kind = _BINARY_FORMATS.get(Path(str(file)).suffix.lower())
        if kind and not (is_parquet or is_sheet or _is_text(start)):
            raise InputError(f"this is not {kind} file, or it is damaged; save it again", path=file)
        # What is packed, piped or served whole cannot be read from its end, as these are.
        source: IO[bytes] = content
        if (is_parquet or is_sheet) and not content.seekable():
            source = io.BytesIO(content.read())
        if is_parquet:
            items = read_parquet_rows(source, file)
        elif is_sheet:
            items = _read_sheet_rows(source, file)
        elif _is_csv(start, str(file), model):
            text = decode_utf8(content.read(), file)
            if "\0" in text:
                raise InputError(
                    "this is a binary file; give JSON Lines, CSV, Excel or parquet", path=file
                )
            items = _named_rows(iter_csv_records(text, file), str(file))
        else:
            yield from iter_objects(content, file)
            return
        yield from _parse_cells(items, model, are_typed=is_parquet)


def _parse_cells(
    items: Iterable[SourceItem], model: type[BaseModel] | None, *, are_typed: bool = False
) -> Iterator[SourceItem]:
    """Rows whose cells are what the model has: a list or object that a text says, or a text.

    A column that could hold lists is not `are_typed` if its texts may be several ids.
    """
    nested, texts = _field_kinds((model,) if model else (Trace, Case))
    for item in items:
        data = item.data
        for field in (nested | texts) & data.keys():
            value = data[field]
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if field in texts and is_number:  # a year in a column of texts
                data[field] = str(value)
            elif field in nested and isinstance(value, str):
                data[field] = parse_nested_json(value, item, field)
                if not are_typed and field in _ID_LISTS and isinstance(data[field], str):
                    data[field] = split_ids(data[field])
        yield item


def _is_text(start: bytes) -> bool:
    """Whether a file that begins so is text, whose last character may be cut."""
    try:
        return "\0" not in codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False


def _is_csv(start: bytes, name: str, model: type[BaseModel] | None) -> bool:
    """Whether a file is a table: by its name, or by a first line that names fields of `model`."""
    text = start.decode("utf-8-sig", "replace").lstrip()
    if text[:1] in {"{", "["} or not text:
        return False
    if model is None:
        return not re.search(r"\.jsonl(\.\w+)?$", name.lower())
    if re.search(r"\.[ct]sv(\.\w+)?$", name.lower()):
        return True
    cells = {cell.strip(' "') for cell in re.split(r"[,;\t]", text.splitlines()[0])}
    fields = model.model_fields.items()
    return any(not cells.isdisjoint(field_names(field, info)) for field, info in fields)


@cache
def _field_kinds(models: tuple[type[BaseModel], ...]) -> tuple[frozenset[str], frozenset[str]]:
    """The fields that hold lists or objects, and those that hold texts, by all their names."""
    nested, texts = set[str](), set[str]()
    for field, info in (pair for model in models for pair in model.model_fields.items()):
        kinds = (info.annotation, *get_args(info.annotation))
        if any(
            get_origin(kind) in {tuple, dict}
            or (isinstance(kind, type) and issubclass(kind, BaseModel))
            for kind in kinds
        ):
            nested |= set(field_names(field, info))
        if str in kinds and get_origin(info.annotation) is not dict:
            texts |= set(field_names(field, info))
    return frozenset(nested), frozenset(texts)


def split_ids(cell: str) -> list[str]:
    """The ids in a cell: between ``;``, ``|`` or lines, else commas that are not part of a name."""
    parts = [part.strip() for part in re.split(r"[;|\n]", cell)]
    if len(parts) == 1:
        listed = [part.strip() for part in cell.split(",")]
        endings = {bool(_FILE_ENDING.search(part)) for part in listed if part}
        if len(endings) == 1 and not any(re.search(r"\s", part) for part in listed):
            parts = listed
    return [part for part in parts if part]


def read_rows(source: object, name: str) -> Iterator[SourceItem]:
    """Yield the rows of a table or of JSON Lines, without empty fields.

    Parameters
    ----------
    source : path, data frame, or iterable of mappings
        As of `open_items`.
    name : str
        What messages call rows given in Python.

    Raises
    ------
    InputError
        The file cannot be read, a line is malformed, or there is no row.
    """
    item: SourceItem | None = None
    name, items = open_items(source, name)
    for item in items:
        if not isinstance(item.data, Mapping):
            raise item.error(f"this is {describe_json(item.data)}, not an object with fields")
        yield item._replace(data=_named_values(item.data.items()))
    if item is None:
        raise InputError(f"{name} given in Python is empty")


def _named_values(fields: Iterable[tuple[Any, Any]]) -> dict[str, object]:
    """The fields that have a name and a value."""
    values = ((str(name), json_value(value)) for name, value in fields)
    return {
        name: value
        for name, value in values
        if name and value is not None and not (isinstance(value, str) and not value.strip())
    }


_INDEX_NAMES = "id", "case_id"


def _as_list(source: Any, name: str) -> list[Any]:
    """What was given in Python in place of a file, as a list; of a data frame its rows."""
    to_rows = getattr(source, "to_dicts", None)  # polars
    if to_rows is None and hasattr(source, "columns"):
        index = getattr(getattr(source, "index", None), "name", None)
        if index in _INDEX_NAMES and index not in source.columns:  # df.set_index("id")
            source = source.reset_index()
        to_rows = partial(getattr(source, "to_dict"), "records")  # noqa: B009 - pandas
    if callable(to_rows):
        if twice := [column for column, n in Counter(source.columns).items() if n > 1]:
            raise InputError(f"{name} has two columns '{twice[0]}'; keep one")
        return list(to_rows())
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InputError(
            f"{name} given in Python is {describe_json(source)}; give a list of objects"
        )
    return list(source)


def detect_delimiter(text: str) -> str:
    r"""Return comma, semicolon or tab, whichever is most frequent in the first line.

    Examples
    --------
    >>> detect_delimiter("query_id;doc_id;score, in all\nq,1;d,1;0")
    ';'
    """
    lines = (match[0] for match in _LINE_PATTERN.finditer(text))
    return max(_DELIMITERS, key=next((line for line in lines if line.strip()), "").count)


def iter_csv_records(text: str, path: object) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each record begins and its fields, the header first.

    Commas, semicolons or tabs separate. Empty lines are skipped; a quoted field may span lines.

    Raises
    ------
    InputError
        A quotation mark is not closed, or something follows a closed one; with the line.
    """
    lines = (match[0] for match in _LINE_PATTERN.finditer(text))
    reader = csv.reader(lines, delimiter=detect_delimiter(text), strict=True)
    line = 1
    while True:
        default_limit = csv.field_size_limit(_MAX_FIELD_CHARACTERS)  # of the whole process
        try:
            fields = next(reader, None)
        except csv.Error:
            raise InputError(
                "this is not valid CSV; quote texts in full", path=path, line=line
            ) from None
        finally:
            csv.field_size_limit(default_limit)
        if fields is None:
            return
        if fields:
            yield line, fields
        line = reader.line_num + 1


def _read_sheet_rows(content: IO[bytes], path: InputFile) -> Iterator[SourceItem]:
    """The rows of an Excel file's first visible sheet."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError("openpyxl, which reads Excel files,", "excel") from None
    try:
        book = openpyxl.load_workbook(content, read_only=True, data_only=True)
        sheets = sorted(book.worksheets, key=lambda sheet: sheet.sheet_state != "visible")
        rows = list(sheets[0].iter_rows(values_only=True))
        names = [sheet.title for sheet in sheets]
    except Exception as problem:
        raise InputError("This is not an Excel file. Save it again.", path=path) from problem
    if len(names) > 1:
        others = ", ".join(f"'{name}'" for name in names[1:])
        _log.warning(
            "%s: the first visible sheet, '%s', is read; %s is not", path, names[0], others
        )
    return _named_rows(enumerate(rows, 1), str(path), in_row=True)


def _named_rows(
    records: Iterable[tuple[int, Sequence[Any]]], path: str, *, in_row: bool = False
) -> Iterator[SourceItem]:
    """The records below the names of a table; empty cells and empty rows are left out."""
    header: list[str] = []
    repeated: list[str] = []
    empty = True
    gaps: Counter[str] = Counter()
    for number, cells in records:
        if not any(header):
            header = ["" if cell is None else str(cell).strip() for cell in cells]
            repeated = [name for name in header if name and header.count(name) > 1]
            _check_repeated(repeated, header, header, path)
            continue
        _check_repeated(repeated, header, cells, path)
        data = _named_values(zip(header, cells, strict=False))
        item = SourceItem(data, path, number, in_row)
        for place, (name, cell) in enumerate(zip(header, cells, strict=False)):
            text = "" if cell is None else str(cell).strip()
            # pandas numbers the rows in a first column without a name.
            if text and not name and not (place == 0 and text.isdigit()):
                raise item.error(
                    f"column {place + 1} has no name and holds {reprlib.repr(text)} here; name it "
                    "in the first line, or remove it"
                )
        for name in [name for name, value in data.items() if value in _PRINTED_GAPS]:
            if not _ID_COLUMN.search(name):
                gaps[name] += 1
                del data[name]
        if len(cells) > len(header) and not in_row and any(map(str.strip, cells)):
            raise item.error(f"{len(cells)} fields, but {len(header)} names; quote texts in full")
        if data:
            empty = False
            yield item
    for name, count in gaps.items():
        _log.warning(
            "%s: cells of the column '%s' that say 'nan' count as empty: %d", path, name, count
        )
    if empty:
        problem = "the file has column names and no rows" if any(header) else _EMPTY_TABLE
        raise InputError(problem, path=path)


def _check_repeated(
    repeated: Sequence[str], header: Sequence[str], cells: Sequence[Any], path: str
) -> None:
    """Refuse columns of one name, but for an index, which pandas writes first, and its equal column."""
    if not repeated:
        return
    values = {cell for name, cell in zip(header, cells, strict=False) if name == header[0]}
    if [*repeated] != [header[0]] * 2 or len(values) > 1:
        raise InputError("two columns have this name; keep one", path=path, field=repeated[0])


def escape_formula(text: str) -> str:
    """Return a text for CSV that no spreadsheet runs: with an apostrophe before a formula.

    Spreadsheets run what begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break, some also
    after blanks and invisible characters.

    >>> escape_formula("=1+1"), escape_formula("-3.5"), escape_formula("fine")
    ("'=1+1", '-3.5', 'fine')
    """
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")  # ends a text in many readers
    if _PLAIN_NUMBER.fullmatch(text):
        return text
    seen = drop_invisible(text)
    visible = (sign for sign in seen if unicodedata.category(sign) not in _INVISIBLE_CATEGORIES)
    # Some programs read full-width, small and raised forms as the plain ones.
    first = unicodedata.normalize("NFKC", next(visible, ""))
    return f"'{text}" if first in _FORMULA_SIGNS or text[:1] in _FORMULA_BREAKS else text


def open_parquet(source: Path | IO[bytes], name: object) -> AbstractContextManager[Any]:
    """Open a parquet file, a seekable one, as `pyarrow.parquet.ParquetFile`.

    Raises
    ------
    InputError
        It is not parquet, or damaged; `name` is the file's.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file: AbstractContextManager[Any] = pq.ParquetFile(source)
    except (pa.ArrowException, OSError) as problem:
        raise _parquet_error(problem, name) from None
    return file


def iter_batches(
    file: Any, name: object, rows: int, columns: Sequence[str] | None = None
) -> Iterator[Any]:
    """Yield batches of at most so many rows of an opened parquet file, in order.

    Raises
    ------
    InputError
        It is damaged; `name` is the file's.
    """
    import pyarrow as pa

    try:
        yield from file.iter_batches(rows, columns=columns, use_threads=False)
    except MemoryError:
        raise _too_large(name) from None
    except (pa.ArrowException, OSError) as problem:
        raise _parquet_error(problem, name) from None


def _too_large(name: object) -> InputError:
    return InputError("its rows need more memory than there is; write a smaller file", path=name)


def _parquet_error(problem: Exception, name: object) -> InputError:
    import pyarrow as pa

    reason = "it is damaged or cut off; write it again"
    if isinstance(problem, pa.ArrowNotImplementedError):
        reason = " ".join(str(problem).split())
    return InputError(f"this parquet file cannot be read: {reason}", path=name)


def read_parquet_rows(source: Path | IO[bytes], name: InputFile) -> Iterator[SourceItem]:
    """Yield each row, as a line of JSON would hold it.

    A null and a NaN are left out, of columns and of the fields of a struct; dates are text in
    ISO 8601, durations seconds, decimals numbers, bytes text in UTF-8. A pandas index is not
    among the columns.

    Raises
    ------
    InputError
        It is damaged, two columns have one name, or a value cannot be held in JSON; with its row
        and its column.
    """
    import pyarrow as pa

    with open_parquet(source, name) as file:
        columns = [
            column for column in file.schema_arrow.names if not _PANDAS_INDEX.fullmatch(column)
        ]
        twice = next((column for column in columns if columns.count(column) > 1), None)
        if twice is not None:
            raise InputError("two columns have this name; keep one", path=name, field=twice)
        item = SourceItem(None, str(name), 0, in_row=True)
        for batch in iter_batches(file, name, _BATCH_ROWS, columns):
            try:
                rows = _batch_rows(batch)
            except MemoryError:
                raise _too_large(name) from None
            except (pa.ArrowException, ValueError, OverflowError, LookupError, RecursionError):
                raise _unreadable_value_error(batch, item) from None
            for row in rows:
                item = item._replace(data=row, number=(item.number or 0) + 1)
                yield item


def _batch_rows(batch: Any) -> list[Any]:
    # Arrow converts six times as fast where it need not look for maps.
    maps = "strict" if any("map<" in str(kind) for kind in batch.schema.types) else None
    return list(map(json_value, batch.to_pylist(maps_as_pydicts=maps)))


def _unreadable_value_error(batch: Any, before: SourceItem) -> InputError:
    """The first value that cannot be read, found by reading each alone."""
    import pyarrow as pa

    for index in range(batch.num_rows):
        item = before._replace(number=(before.number or 0) + index + 1)
        for field in batch.schema.names:
            try:
                _batch_rows(batch.select([field]).slice(index, 1))
            except UnicodeDecodeError as problem:
                wrong = f"byte 0x{bytes(problem.object)[problem.start]:02x} is not UTF-8"
            except RecursionError:
                wrong = "this is nested too deeply to be read"
            except (pa.ArrowException, ValueError, OverflowError, LookupError) as problem:
                wrong = f"this cannot be read ({' '.join(str(problem).split())})"
            else:
                continue
            return item.error(f"{wrong}; write the file again", field)
    return InputError("it cannot be read; write the file again", path=before.file)
