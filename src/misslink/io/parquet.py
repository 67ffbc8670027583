"""Read parquet files in batches, as Arrow arrays or as JSON-like rows."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

from misslink.errors import InputError
from misslink.io.storage import InputFile, parquet_error

PARQUET_MAGIC = b"PAR1"  # what a parquet file begins with
_BATCH_ROWS = 1024  # rows of traces are long
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # of a pandas frame, written beside its columns


def open_parquet(source: Path | IO[bytes], name: object) -> AbstractContextManager[Any]:
    """Open a parquet file; its last bytes are read at once.

    Parameters
    ----------
    source : Path or binary file
        A file must be one that can be read in any order.
    name : Path or Stored
        For messages.

    Returns
    -------
    pyarrow.parquet.ParquetFile

    Raises
    ------
    InputError
        It is not parquet, or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file: AbstractContextManager[Any] = pq.ParquetFile(source)
    except (pa.ArrowException, OSError) as problem:
        raise parquet_error(problem, name) from None
    return file


def iter_batches(
    file: Any, name: object, at_once: int, columns: Sequence[str] | None = None
) -> Iterator[Any]:
    """Yield the rows of an opened parquet file as Arrow record batches, in order.

    Parameters
    ----------
    opened : pyarrow.parquet.ParquetFile
    name : Path or Stored
        For messages.
    at_once : int
        Rows of a batch, at most.
    columns : sequence of str or None
        Those that are read. None: all.

    Raises
    ------
    InputError
        It is damaged.
    """
    import pyarrow as pa

    try:
        yield from file.iter_batches(at_once, columns=columns, use_threads=False)
    except (pa.ArrowException, OSError) as problem:
        raise parquet_error(problem, name) from None


def read_parquet_rows(
    source: Path | IO[bytes], name: InputFile
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number (from 1) and the content of each row, as a line of JSON would hold it.

    A null and a NaN are left out, of columns and of the fields of a struct; dates are text in
    ISO 8601, durations seconds, decimals numbers, bytes text in UTF-8. A pandas index is not
    among the columns.

    Parameters
    ----------
    source : Path or binary file
        A file must be one that can be read in any order.
    name : Path or Stored
        For messages.

    Raises
    ------
    InputError
        It is damaged, two columns have one name, or a value cannot be held in JSON; with its row
        and its column.
    """
    with open_parquet(source, name) as file:
        names = [
            column for column in file.schema_arrow.names if not _PANDAS_INDEX.fullmatch(column)
        ]
        twice = next((column for column in names if names.count(column) > 1), None)
        if twice is not None:
            raise InputError("two columns have this name; keep one", path=name, field=twice)
        number = 0
        for batch in iter_batches(file, name, _BATCH_ROWS, names):
            for row in _batch_rows(batch, number, name):
                number += 1
                yield number, row


def _batch_rows(batch: Any, before: int, name: InputFile) -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    header = batch.schema.names
    try:
        columns = [_json_values(column) for column in batch.columns]
    except (pa.ArrowException, ValueError, OverflowError, LookupError, RecursionError):
        raise _unreadable_value_error(batch, before, name) from None
    for row in zip(*columns, strict=True):
        yield {name: value for name, value in zip(header, row, strict=True) if value is not None}


def _unreadable_value_error(batch: Any, before: int, name: InputFile) -> InputError:
    """The first value that cannot be read, found by reading each alone."""
    import pyarrow as pa

    for index in range(batch.num_rows):
        for column, field in zip(batch.columns, batch.schema.names, strict=True):
            try:
                _json_values(column.slice(index, 1))
            except UnicodeDecodeError as problem:
                wrong = f"byte 0x{bytes(problem.object)[problem.start]:02x} is not UTF-8"
            except RecursionError:
                wrong = "this is nested too deeply to be read"
            except (pa.ArrowException, ValueError, OverflowError, LookupError) as problem:
                wrong = f"this cannot be read ({' '.join(str(problem).split())})"
            else:
                continue
            place = f"{name}, row {before + index + 1}"
            return InputError(f"{wrong}; write the file again", path=place, field=field)
    return InputError("it cannot be read; write the file again", path=name)


def _json_values(array: Any) -> list[Any]:
    """The values of an Arrow array as JSON has them, None where there is none."""
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if types.is_fixed_size_list(kind) or types.is_list_view(kind) or types.is_large_list_view(kind):
        array = array.cast(pa.large_list(kind.value_type))
        kind = array.type
    if types.is_struct(kind):
        return _struct_values(array)
    if types.is_map(kind):
        keys, items = (
            _json_values(_slice_values(array, array.keys)),
            _json_values(_slice_values(array, array.items)),
        )
        pairs = list(zip(map(_key_text, keys), items, strict=True))
        return [None if part is None else dict(part) for part in _split_lists(array, pairs)]
    if types.is_list(kind) or types.is_large_list(kind):
        return _split_lists(array, _json_values(_slice_values(array, array.values)))
    if types.is_timestamp(kind):
        array = array.cast(pa.timestamp("us", kind.tz), safe=False)
    values: list[Any] = array.to_pylist()
    plain = types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind)
    return values if plain else [_json_value(value) for value in values]


def _struct_values(array: Any) -> list[dict[str, Any] | None]:
    """Objects, without the fields that are null: a struct has no other way to leave one out."""
    names = [field.name for field in array.type]
    columns = [_json_values(child) for child in array.flatten()]
    valid = array.is_valid().to_pylist()
    if not columns:
        return [{} if given else None for given in valid]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        if given
        else None
        for given, row in zip(valid, zip(*columns, strict=True), strict=True)
    ]


def _slice_values(array: Any, values: Any) -> Any:
    """Of the values of all lists those of a slice of them."""
    offsets = array.offsets
    first = offsets[0].as_py()
    return values.slice(first, offsets[len(array)].as_py() - first)


def _split_lists(array: Any, values: list[Any]) -> list[list[Any] | None]:
    """The values list by list."""
    ends = array.offsets.to_pylist()
    first = ends[0]
    return [
        values[start - first : end - first] if given else None
        for given, start, end in zip(array.is_valid().to_pylist(), ends, ends[1:], strict=False)
    ]


def _key_text(key: Any) -> str:
    return key if isinstance(key, str) else str(_json_value(key))


def _json_value(value: Any) -> Any:
    """A value of one of the rarer kinds as JSON has it."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value if isinstance(value, str | bool | int | float) else str(value)
