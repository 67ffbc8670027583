"""Read TREC qrels (`query 0 document grade`) and runs (`query Q0 document rank score tag`)."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from misslink.errors import InputError
from misslink.io.numbers import parse_decimal
from misslink.io.storage import encoding_error
from misslink.io.tables import (
    BATCH_ROWS,
    MAX_GRADE,
    RetrievalTable,
    TableBatch,
    TablePurpose,
    parse_table_number,
)

_QRELS_FIELDS = ("query", "iteration", "document", "grade")
_RUN_FIELDS = ("query", "iteration", "document", "rank", "score", "tag")
_BLOCK_BYTES = 1 << 24  # bytes read at a time: a line to be looked at makes no more than these slow
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # what some programs begin a text in UTF-8 with
_COMMENT_LINE = re.compile(rb"^[ ]*#[^\n]*\n?", re.MULTILINE)


def read_trec_table(raw: bytes, path: object, purpose: TablePurpose) -> RetrievalTable:
    """Qrels or a run in TREC's format; any run of blanks and tabs separates.

    Blank lines are passed over, and those that begin with ``#`` unless they have as many columns
    as a line of data: then ``#`` begins the query's id. Text after a run's tag is not
    read, as in trec_eval. A run is ordered by its scores; its ranks are not read, but
    have to be numbers.

    Raises
    ------
    InputError
        A line has too few or too many columns, a grade is no whole number or too large, a rank or
        score is no finite number, or there is no line at all; with the line.
    """
    import pyarrow as pa

    raw = raw.removeprefix(_BYTE_ORDER_MARK)
    _reject_other_kind(raw, path, purpose)
    parts = []
    for start, end in _iter_blocks(raw):
        part = _read_block_fast(raw[start:end], purpose)
        if part is None:
            part = _read_block_checked(raw[start:end], path, purpose, raw.count(b"\n", 0, start))
        parts.append(part)
    if not any(part.num_rows for part in parts):
        raise InputError("there is nothing in it", path=path)
    read = pa.concat_tables(parts)

    def batches() -> Iterator[TableBatch]:
        for batch in read.to_batches(max_chunksize=BATCH_ROWS):
            query, document, value = batch.columns
            yield query, document, value.to_numpy(zero_copy_only=False)

    def line(row: int) -> int | None:
        lines = enumerate(io.BytesIO(raw), start=1)
        content = (number for number, text in lines if not _is_comment(text.split(), purpose))
        return next((number for place, number in enumerate(content) if place == row), None)

    return RetrievalTable(str(path), "grade" if purpose == "qrels" else "score", batches, line)


def _reject_other_kind(raw: bytes, path: object, purpose: TablePurpose) -> None:
    """Refuse qrels that were given as a run, and a run as qrels, by the first line of content."""
    start = 0
    fields: list[bytes] = []
    while start < len(raw) and not fields:
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        fields = raw[start:end].split()
        fields = [] if _is_comment(fields, purpose) else fields
        start = end + 1
    if purpose == "run" and len(fields) == len(_QRELS_FIELDS):
        raise InputError(
            "these are qrels (4 columns), not a run (query Q0 document rank score tag); "
            "give them as qrels, and here the run",
            path=path,
            line=raw.count(b"\n", 0, start - 1) + 1,
        )
    if purpose == "qrels" and len(fields) >= len(_RUN_FIELDS):
        raise InputError(
            f"this is a run ({len(fields)} columns), not qrels (query 0 document grade); "
            "give it as the run, and here the qrels",
            path=path,
            line=raw.count(b"\n", 0, start - 1) + 1,
        )


def _iter_blocks(raw: bytes) -> Iterator[tuple[int, int]]:
    """Where blocks of whole lines begin and end."""
    start = 0
    while start < len(raw):
        end = raw.find(b"\n", start + _BLOCK_BYTES) + 1 or len(raw)
        yield start, end
        start = end


def _read_block_fast(raw: bytes, purpose: TablePurpose) -> Any | None:
    """All lines of a block by the CSV reader of Arrow; None where one is not plain.

    It wants one blank between two columns, so runs of blanks become one first.
    """
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    names = _QRELS_FIELDS if purpose == "qrels" else _RUN_FIELDS
    value = "grade" if purpose == "qrels" else "score"
    types = {"query": pa.large_string(), "document": pa.large_string(), value: pa.float64()}
    if purpose == "run":
        types["rank"] = pa.float64()
    try:
        read = csv.read_csv(
            pa.py_buffer(_collapse_blanks(raw, purpose)),
            read_options=csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None
    for name in types:
        if name not in {"query", "document"}:
            numbers = read[name].to_numpy()
            if not np.isfinite(numbers).all():
                return None
            if name == "grade" and (
                (numbers != np.rint(numbers)).any() or (np.abs(numbers) > MAX_GRADE).any()
            ):
                return None
    return pa.table({"query": read["query"], "document": read["document"], "value": read[value]})


def _is_comment(fields: Sequence[bytes], purpose: TablePurpose) -> bool:
    """Whether a line is blank or a remark: it begins with # and is no line of data.

    Behind the tag of a run more words may follow: such a line is data if its numbers are numbers.
    """
    if not fields or not fields[0].startswith(b"#"):
        return not fields
    if purpose == "qrels" or len(fields) <= len(_RUN_FIELDS):
        return len(fields) != len(_QRELS_FIELDS if purpose == "qrels" else _RUN_FIELDS)
    return any(parse_decimal(field.decode("utf-8", "replace")) is None for field in fields[3:5])


def _collapse_blanks(raw: bytes, purpose: TablePurpose) -> bytes:
    plain = raw
    if any(blank in raw for blank in b"\t\v\f"):
        plain = raw.translate(bytes.maketrans(b"\t\v\f", b"   "))
    if b"\r" in plain:
        plain = plain.replace(b"\r\n", b"\n")
    while b"  " in plain:
        plain = plain.replace(b"  ", b" ")
    if b" \n" in plain:
        plain = plain.replace(b" \n", b"\n")
    if b"\n " in plain:
        plain = plain.replace(b"\n ", b"\n")
    plain = plain.strip(b" ")
    if plain.startswith(b"#") or b"\n#" in plain:
        plain = _COMMENT_LINE.sub(
            lambda line: b"" if _is_comment(line[0].split(), purpose) else line[0], plain
        )
    return plain


def _read_block_checked(raw: bytes, path: object, purpose: TablePurpose, before: int) -> Any:
    """The same columns, line by line, of a block with so many lines before it."""
    import pyarrow as pa

    schema = pa.schema(
        {"query": pa.large_string(), "document": pa.large_string(), "value": pa.float64()}
    )
    return pa.Table.from_pylist([*_iter_lines(raw, path, purpose, before)], schema)


def _iter_lines(
    raw: bytes, path: object, purpose: TablePurpose, before: int
) -> Iterator[dict[str, Any]]:
    """Parse every line by itself, for errors with a line number."""
    names = _QRELS_FIELDS if purpose == "qrels" else _RUN_FIELDS
    for number, part in enumerate(io.BytesIO(raw), start=before + 1):
        try:
            # Cut as bytes: only blanks of ASCII separate, and an id may hold any other.
            columns = part.split()
            if _is_comment(columns, purpose):
                continue
            fields = [field.decode("utf-8") for field in columns]
        except UnicodeDecodeError as problem:
            raise encoding_error(problem, path, number) from None
        if len(fields) < len(names) or (purpose == "qrels" and len(fields) > len(names)):
            raise InputError(_column_count_message(columns, purpose), path=path, line=number)
        given = dict(zip(names, fields, strict=False))
        if purpose == "run":
            parse_table_number(given["rank"], "rank", path, number)
            value = parse_table_number(given["score"], "score", path, number)
        else:
            value = parse_table_number(given["grade"], "grade", path, number)
            if value != round(value):
                raise InputError(
                    f"the grade '{given['grade']}' is no whole number", path=path, line=number
                )
        yield {"query": given["query"], "document": given["document"], "value": value}


def _column_count_message(fields: Sequence[bytes], purpose: TablePurpose) -> str:
    """What is wrong with a line of too few or too many columns."""
    kind, names = ("qrels", _QRELS_FIELDS) if purpose == "qrels" else ("runs", _RUN_FIELDS)
    problem = (
        f"{len(fields)} {'column' if len(fields) == 1 else 'columns'}, where {kind} have "
        f"{len(names)} ({' '.join(names)})"
    )
    if len(fields) == 1 and any(mark in fields[0] for mark in (b",", b";")):
        number = "relevance" if purpose == "qrels" else "score"
        problem += f"; CSV needs names in its first line, such as query_id,doc_id,{number}"
    return problem
