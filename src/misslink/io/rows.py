"""Read rows with named fields from CSV, JSON Lines, a JSON array or a data frame."""

from __future__ import annotations

import csv
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from misslink.errors import InputError, MissingExtraError
from misslink.io.jsonl import EMPTY_FILE, as_list, iter_objects
from misslink.io.storage import InputFile, decode_utf8, open_decompressed

Row = tuple[int | None, dict[str, Any]]

_DELIMITERS = ",;\t"
_MAX_FIELD_CHARACTERS = 1 << 30  # passages are long; the default of the csv module is 131,072
# Lines are cut one at a time: an `io.StringIO` would hold four bytes of each character.
_LINE_PATTERN = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_PEEK_BYTES = 1 << 16  # in which the first character other than a blank is
_FORMULA_SIGNS = frozenset("=+-@")
_FORMULA_BREAKS = frozenset("\t\r\n")
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})  # blanks, controls and joiners
_PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def detect_delimiter(text: str) -> str:
    r"""Return comma, semicolon or tab, whichever is most frequent in the first line.

    Examples
    --------
    >>> detect_delimiter("query_id;doc_id;score, in all\nq,1;d,1;0")
    ';'
    """
    lines = (match[0] for match in _LINE_PATTERN.finditer(text))
    return max(_DELIMITERS, key=next((line for line in lines if line.strip()), "").count)


def iter_csv_records(
    text: str, path: InputFile, *, delimiter: str | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each record begins and its fields, the header first.

    Empty lines are skipped; a quoted field may span lines.

    Parameters
    ----------
    text : str
    path : Path
        For messages.
    delimiter : str or None
        None: detected.

    Raises
    ------
    InputError
        A quotation mark is not closed, or something follows a closed one; with the line.
    """
    lines = (match[0] for match in _LINE_PATTERN.finditer(text))
    reader = csv.reader(lines, delimiter=delimiter or detect_delimiter(text), strict=True)
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
    visible = (sign for sign in text if unicodedata.category(sign) not in _INVISIBLE_CATEGORIES)
    # Some programs read full-width, small and raised forms as the plain ones.
    first = unicodedata.normalize("NFKC", next(visible, ""))
    return f"'{text}" if first in _FORMULA_SIGNS or text[:1] in _FORMULA_BREAKS else text


def read_rows(source: object, name: str) -> Iterator[Row]:
    """Yield each row with its line; None for rows without lines.

    Parameters
    ----------
    source : path, pandas frame, or iterable of mappings
        A file that begins with ``{`` or ``[`` is JSON, any other is CSV with a header, separated by
        commas, semicolons or tabs. Empty fields and NaN are left out.
    name : str
        What messages call rows given in Python.

    Raises
    ------
    InputError
        The file cannot be read, a line is malformed, or there is no row.
    """
    if isinstance(source, str | Path):
        yield from _read_file_rows(Path(source))
        return
    items = as_list(source, name)
    if not items:
        raise InputError(f"{name} given in Python is empty")
    for item in items:
        if not isinstance(item, Mapping):
            raise InputError(f"{name} given in Python holds {type(item).__name__}, not an object")
        yield None, _drop_blank(item.items())


def _read_file_rows(path: Path) -> Iterator[Row]:
    with open_decompressed(path) as content:
        start = content.peek(_PEEK_BYTES)[:_PEEK_BYTES].decode("utf-8-sig", "replace").lstrip()
        if start[:1] in {"{", "["}:
            line: int | None = None
            for line, item in iter_objects(content, path):
                yield line, _drop_blank(item.items())
            if line is None:
                raise InputError(EMPTY_FILE, path=path)
            return
        text = decode_utf8(content.read(), path)
    yield from read_csv_rows(text, path)


def read_csv_rows(text: str, path: InputFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line and the fields of each record below the names; empty fields are left out."""
    records = iter_csv_records(text, path)
    header: list[str] = []
    while not any(header):
        record = next(records, None)
        if record is None:
            raise InputError("there is nothing in it; it needs a line of names first", path=path)
        header = [name.strip() for name in record[1]]
    repeated = [name for name in header if name and header.count(name) > 1]
    if repeated:
        raise InputError("two columns have this name; keep one", path=path, field=repeated[0])
    empty = True
    for line, fields in records:
        if any(field.strip() for field in fields):
            if len(fields) > len(header):
                raise InputError(
                    f"{len(fields)} fields, but {len(header)} names; quote texts in full",
                    path=path,
                    line=line,
                )
            empty = False
            yield line, _drop_blank(zip(header, fields, strict=False))
    if empty:
        raise InputError("there is no line below the names", path=path)


def read_sheet_rows(content: IO[bytes], path: InputFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the cells of each row of an Excel file's first sheet, as of CSV.

    Raises
    ------
    InputError
        The file is damaged, or has no row below the names.
    MissingExtraError
        openpyxl is not installed.
    """
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError("openpyxl, which reads Excel files,", "excel") from None
    try:
        book = openpyxl.load_workbook(content, read_only=True, data_only=True)
        rows = list(book.worksheets[0].iter_rows(values_only=True))
    except Exception as problem:
        raise InputError("This is not an Excel file. Save it again.", path=path) from problem
    number, header = next(
        ((n, row) for n, row in enumerate(rows, 1) if not all(map(_is_blank, row))), (0, ())
    )
    names = ["" if _is_blank(name) else str(name).strip() for name in header]
    if repeated := [name for name in names if name and names.count(name) > 1]:
        raise InputError("two columns have this name; keep one", path=path, field=repeated[0])
    fields = [_drop_blank(zip(names, row, strict=False)) for row in rows[number:]]
    if not any(fields):
        raise InputError("there is no line below the names", path=path)
    yield from ((n, row) for n, row in enumerate(fields, number + 1) if row)


def _drop_blank(fields: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    return {str(name): value for name, value in fields if str(name) and not _is_blank(value)}


def _is_blank(value: object) -> bool:
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    if type(value).__name__ in {"NAType", "NaTType"}:  # missing values of pandas
        return True
    return isinstance(value, float) and math.isnan(value)
