"""Qrels and runs as CSV or TSV with a header, such as BEIR's.

Arrow reads the columns, many times as fast as Python reads records. The names, the lines and what
is wrong are told by the records of `misslink.files.delimited`, by which labels are read too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.content import decoded
from misslink.files.delimited import delimiter_of, records
from misslink.files.numbers import decimal, shortened
from misslink.files.tables import (
    AT_ONCE,
    LARGEST_GRADE,
    Batch,
    Columns,
    Purpose,
    Table,
    as_numbers,
    as_text,
    columns_of,
)

__all__ = ["separated_table"]

_BEIR = "query-id\tcorpus-id\tscore"  # the first line of its qrels
_NAMES_WITHIN = 1 << 16  # bytes of a file in which the names stand


def separated_table(raw: bytes, path: Path, purpose: Purpose) -> Table:
    """CSV or TSV with a header, fields apart by tab, comma or semicolon.

    Raises
    ------
    InputError
        It is not UTF-8, a record has more or fewer fields than there are names, a number is none
        or not finite, a grade is not whole, an id is missing, there is no record, or it is qrels
        given as a run or the other way round; with the line.
    """
    import pyarrow as pa

    above, header = _names(raw, path)
    columns = columns_of(header, purpose, str(path))

    def line(row: int) -> int | None:
        return next((at for at, _ in islice(_records(raw, path), row, None)), None)

    table: Table
    try:
        read = _quickly(raw, above, columns)
    except (pa.ArrowInvalid, pa.ArrowKeyError) as problem:
        _blame(raw, path, header, columns)
        raise InputError(f"this table cannot be read ({problem})", path=path) from None
    if not read.num_rows:
        raise InputError("there is no line below the names", path=path)

    def batches() -> Iterator[Batch]:
        row = 0
        for batch in read.to_batches(max_chunksize=AT_ONCE):
            texts = [as_text(batch.column(name), table, row, name) for name in columns.names[:2]]
            given = None if columns.number is None else batch.column(columns.number)
            number = None if given is None else as_numbers(given, table, row, columns)
            yield texts[0], texts[1], number
            row += batch.num_rows

    table = Table(str(path), columns.kind, batches, line)
    names = delimiter_of(_start(raw)).join(header).strip().lower()
    _refuse_beir(read, table, names, columns)
    return table


def _names(raw: bytes, path: Path) -> tuple[int, list[str]]:
    """The lines above the names, and the names."""
    for line, fields in records(_start(raw), path):
        if any(field.strip() for field in fields):
            return line - 1, fields
    raise InputError("there is nothing in it; it needs a line of names first", path=path)


def _records(raw: bytes, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Those below the names."""
    above, _ = _names(raw, path)
    for line, fields in records(decoded(raw, path), path):
        if line > above + 1:
            yield line, fields


def _start(raw: bytes) -> str:
    return raw[:_NAMES_WITHIN].decode("utf-8-sig", "replace")


def _quickly(raw: bytes, above: int, columns: Columns) -> Any:
    """The columns that are wanted, by the CSV reader of Arrow."""
    import pyarrow as pa
    from pyarrow import csv

    types = dict.fromkeys(columns.names[:2], pa.large_string())
    if columns.number:
        types[columns.number] = pa.float64()
    return csv.read_csv(
        pa.BufferReader(raw),
        read_options=csv.ReadOptions(skip_rows=above),
        parse_options=csv.ParseOptions(
            delimiter=delimiter_of(_start(raw)), newlines_in_values=b'"' in raw
        ),
        convert_options=csv.ConvertOptions(
            column_types=types,
            include_columns=columns.names,
            null_values=[],
            strings_can_be_null=False,
        ),
    )


def _refuse_beir(read: Any, table: Table, names: str, columns: Columns) -> None:
    """Refuse BEIR's qrels as a run: their grades are in a column 'score'."""
    import numpy as np

    if columns.kind != "score" or names != _BEIR:
        return
    values = read[columns.number].to_numpy()
    if np.isfinite(values).all() and (values == np.rint(values)).all():
        raise table.error(
            None,
            "these look like the qrels of a BEIR folder (query-id, corpus-id and whole scores); "
            "give them as qrels, or call the columns of a run query_id, doc_id, score",
        )


def _blame(raw: bytes, path: Path, header: Sequence[str], columns: Columns) -> None:
    """Name the first line that the quick reader refused."""
    for line, fields in _records(raw, path):
        if len(fields) != len(header):
            raise InputError(
                f"{len(fields)} fields, but {len(header)} names; quote texts in full",
                path=path,
                line=line,
            )
        if columns.number is None:
            continue
        given = fields[header.index(columns.number)]
        value = decimal(given.strip(" \t"))
        if value is not None and math.isfinite(value):
            if columns.kind != "grade" or abs(value) <= LARGEST_GRADE:
                continue
            problem = (
                f"the grade {shortened(given)} is too large; grades go up to {LARGEST_GRADE:.0f}"
            )
        elif not given.strip():
            problem = f"there is no {columns.kind} here; give a number"
        else:
            problem = f"{shortened(given)} is no {'number' if value is None else 'finite number'}"
        raise InputError(problem, path=path, line=line, field=columns.number)
