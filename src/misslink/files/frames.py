"""Qrels and runs in pandas frames, arrow tables and parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files import parquet
from misslink.files.tables import (
    AT_ONCE,
    Batch,
    Purpose,
    Table,
    as_numbers,
    as_text,
    columns_of,
)

__all__ = ["frame_table", "parquet_table"]


def frame_table(frame: Any, purpose: Purpose) -> Table:
    """A pandas frame, whose rows are turned over piece by piece."""
    name = f"the {'qrels' if purpose == 'qrels' else 'run'}"
    columns = columns_of(list(frame.columns), purpose, name)
    if not len(frame):
        raise InputError("there is no row in it", path=name)
    own = {str(column): column for column in frame.columns}

    def batches() -> Iterator[Batch]:
        import pyarrow as pa

        for start in range(0, len(frame), AT_ONCE):
            piece = frame.iloc[start : start + AT_ONCE]
            texts = []
            for column in (columns.query, columns.document):
                series = piece[own[column]]
                try:
                    given = pa.array(series, from_pandas=True)
                except (pa.ArrowInvalid, pa.ArrowTypeError):  # ids of several kinds
                    plain = series.astype(object).where(series.notna(), None)
                    given = pa.array([None if each is None else str(each) for each in plain])
                texts.append(as_text(given, table, start, column))
            number = None if columns.number is None else piece[own[columns.number]]
            values = None if number is None else as_numbers(number, table, start, columns)
            yield texts[0], texts[1], values

    table = Table(name, columns.kind, batches, lambda _: None)
    return table


def parquet_table(path: Path, purpose: Purpose) -> Table:
    """A parquet file, of which a batch is held in memory at a time."""
    with parquet.opened_parquet(path, path) as opened:
        header, rows = opened.schema_arrow.names, opened.metadata.num_rows
    columns = columns_of(header, purpose, str(path))
    if not rows:
        raise InputError("there is no row in it", path=path)

    def batches() -> Iterator[Batch]:
        row = 0
        with parquet.opened_parquet(path, path) as opened:
            for batch in parquet.batches(opened, path, AT_ONCE, columns.names):
                query, document = (_in_utf8(batch, name, table, row) for name in columns.names[:2])
                given = None if columns.number is None else batch.column(columns.number)
                number = None if given is None else as_numbers(given, table, row, columns)
                yield query, document, number
                row += batch.num_rows

    table = Table(str(path), columns.kind, batches, lambda _: None)
    return table


def _in_utf8(batch: Any, column: str, table: Table, row: int) -> Any:
    """Ids as text; a parquet file is read whether or not what it calls text is in UTF-8."""
    import pyarrow as pa

    texts = as_text(batch.column(column), table, row, column)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        at = next(at for at, raw in enumerate(texts.cast(pa.large_binary())) if not _decodes(raw))
        raise table.error(
            row + at, f"the column '{column}' is not UTF-8 here; write the file anew with text"
        ) from None
    return texts


def _decodes(raw: Any) -> bool:
    try:
        raw.as_py().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
