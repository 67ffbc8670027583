"""Qrels and runs as CSV or TSV with a header, such as BEIR's."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from misslink.errors import InputError
from misslink.files.frames import (
    AT_ONCE,
    LARGEST_GRADE,
    Batch,
    Columns,
    Purpose,
    Table,
    as_numbers,
    as_text,
    columns_of,
    shortened,
)

__all__ = ["separated_table"]

_DELIMITERS = "\t,;"


def separated_table(raw: bytes, path: Path, purpose: Purpose) -> Table:
    """CSV or TSV with a header, fields apart by tab, comma or semicolon."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    head = raw.split(b"\n", 1)[0].decode("utf-8-sig", "replace").rstrip("\r")
    delimiter = max(_DELIMITERS, key=head.count)
    header = next(csv.reader([head], delimiter=delimiter))
    columns = columns_of(header, purpose, str(path))

    def line(row: int) -> int | None:
        for number, (at, _) in enumerate(_rows(raw, delimiter)):
            if number == row:
                return at
        return None

    table: Table
    try:
        read = arrow_csv.read_csv(
            pa.BufferReader(raw),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: pa.large_string() for name in columns.names[:2]}
                | ({columns.number: pa.float64()} if columns.number else {}),
                include_columns=columns.names,
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as problem:
        _blame(raw, path, delimiter, header, columns)
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
    return table


def _rows(raw: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows below the header, each with its line."""
    reader = csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline=""), delimiter=delimiter)
    next(reader, None)
    at = reader.line_num + 1
    for fields in reader:
        if fields:
            yield at, fields
        at = reader.line_num + 1


def _blame(raw: bytes, path: Path, delimiter: str, header: Sequence[str], columns: Columns) -> None:
    """Name the first line that the quick reader refused."""
    for line, fields in _rows(raw, delimiter):
        if len(fields) != len(header):
            raise InputError(
                f"{len(fields)} fields, but {len(header)} names in line 1; quote texts in full",
                path=path,
                line=line,
            )
        given = dict(zip(header, fields, strict=True))
        if columns.number is not None:
            try:
                value = float(given[columns.number])
                if columns.kind == "grade" and abs(value) > LARGEST_GRADE:
                    raise InputError(
                        f"the grade {shortened(given[columns.number])} is too large; grades go up "
                        f"to {LARGEST_GRADE:.0f}",
                        path=path,
                        line=line,
                        field=columns.number,
                    )
                if not math.isfinite(value):
                    raise InputError(
                        f"{shortened(given[columns.number])} is no finite number",
                        path=path,
                        line=line,
                        field=columns.number,
                    )
            except ValueError:
                raise InputError(
                    f"'{given[columns.number]}' is no number",
                    path=path,
                    line=line,
                    field=columns.number,
                ) from None
