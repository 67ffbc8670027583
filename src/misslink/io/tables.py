"""Read qrels and runs from CSV, TSV, parquet, data frames and TREC files.

In TREC's format a line of qrels is `query 0 document grade`, and one of a run
`query Q0 document rank score tag`.
"""

from __future__ import annotations

import io
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from misslink.errors import InputError
from misslink.io.numbers import parse_decimal, shorten_repr
from misslink.io.rows import detect_delimiter, iter_batches, iter_csv_records, open_parquet
from misslink.io.storage import decode_utf8, encoding_error, open_decompressed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


TablePurpose = Literal["qrels", "run"]
TableBatch = tuple[Any, Any, "NDArray[np.float64] | None"]
_NumberKind = Literal["grade", "score", "rank", "order"]

BATCH_ROWS = 1 << 16
MAX_GRADE = float((1 << 53) - 1)  # every whole number up to it is a float of its own
_QUERY_COLUMNS = ("query_id", "qid", "q_id", "topic_id", "case_id", "queryid", "topic", "query")
_DOCUMENT_COLUMNS = (
    *("doc_id", "docno", "docid", "pid", "passage_id", "corpus_id", "document_id", "did"),
    *("doc", "document", "passage"),
)
_GRADE_COLUMNS = ("relevance", "grade", "label", "rel", "qrel")
_SCORE_COLUMNS = ("score", "sim", "similarity")
_RANK_COLUMNS = ("rank", "position")
_BEIR_HEADER = "query-id\tcorpus-id\tscore"  # of BEIR's qrels
_HEADER_BYTES = 1 << 16  # bytes of a file that hold the header
_QRELS_FIELDS = ("query", "iteration", "document", "grade")
_RUN_FIELDS = ("query", "iteration", "document", "rank", "score", "tag")
_BLOCK_BYTES = 1 << 22  # bytes read at a time: a line to be looked at makes no more than these slow
_NOT_ASCII = 0x80  # the least byte of a character that is not ASCII
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # what some programs begin a text in UTF-8 with
_COMMENT_LINE = re.compile(rb"^[ ]*#[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True)
class RetrievalColumns:
    """The columns of a qrels or run by their names.

    Parameters
    ----------
    query, document : str
    number : str or None
        Grades of qrels, scores or ranks of a run. None: a run in the order of its rows.
    kind : {'grade', 'score', 'rank', 'order'}
    """

    query: str
    document: str
    number: str | None
    kind: _NumberKind

    @property
    def names(self) -> list[str]:
        """Those that are read."""
        return [self.query, self.document, *([self.number] if self.number else [])]


@dataclass(frozen=True)
class RetrievalTable:
    """A qrels or run, one row per judged or retrieved document.

    Parameters
    ----------
    name : str
        The file, or 'the run'.
    kind : {'grade', 'score', 'rank', 'order'}
        Meaning of the number of a row.
    batches : callable
        Yields the rows from the start at each call: query ids and document ids as arrow arrays of
        text, and the numbers (None in a run in the order of its rows).
    line : callable
        Line of the file of a source row, from 0; None without lines.
    source_row : callable
        Source row of a row in the order of `batches`; None if it was no table.
    """

    name: str
    kind: _NumberKind
    batches: Callable[[], Iterator[TableBatch]]
    line: Callable[[int], int | None]
    source_row: Callable[[int], int | None] = int

    def error(self, row: int | None, problem: str) -> InputError:
        """Return an error that names the file and the line of a row."""
        source = None if row is None else self.source_row(row)
        line = None if source is None else self.line(source)
        if source is not None and line is None:
            problem = f"row {source + 1}: {problem}"
        return InputError(problem, path=self.name, line=line)


def find_columns(header: Sequence[object], purpose: TablePurpose, name: str) -> RetrievalColumns:
    """Find the columns by their names, in any case, hyphens and blanks as underscores.

    Raises
    ------
    InputError
        A required one is missing, or qrels were given as a run or a run as qrels.
    """
    normalized = list(map(_normalize_name, header))
    columns = {key: str(column) for key, column in zip(normalized, header, strict=True)}
    groups = (_QUERY_COLUMNS, _DOCUMENT_COLUMNS, _GRADE_COLUMNS, _SCORE_COLUMNS, _RANK_COLUMNS)
    used = {column for group in groups for column in group}
    if repeated := [key for key in normalized if key in used and normalized.count(key) > 1]:
        raise InputError(f"two columns are called '{columns[repeated[0]]}'; keep one", path=name)
    query, document, grade, score, rank = (
        next((columns[key] for key in group if key in columns), None) for group in groups
    )
    listed = ", ".join(map(str, header)) or "none"

    def missing(content: str, names: Sequence[str]) -> InputError:
        return InputError(
            f"no column holds the {content} (call it {names[0]}); it has: {listed}", path=name
        )

    if query is None:
        raise missing("query ids", _QUERY_COLUMNS)
    if document is None:
        raise missing("document ids", _DOCUMENT_COLUMNS)
    if purpose == "qrels":
        if grade is None and rank is not None:
            raise InputError(
                f"this is a run (it has the column '{rank}' and no grades); give it as the run, "
                "and here the qrels",
                path=name,
            )
        grade = grade or score  # BEIR calls its grades so
        if grade is None:
            raise missing("grades", _GRADE_COLUMNS)
        return RetrievalColumns(query, document, grade, "grade")
    if score is not None:
        return RetrievalColumns(query, document, score, "score")
    if rank is not None:
        return RetrievalColumns(query, document, rank, "rank")
    if grade is not None:
        raise InputError(
            f"these are qrels (they have the column '{grade}' and neither score nor rank); give "
            "them as qrels, and here the run",
            path=name,
        )
    return RetrievalColumns(query, document, None, "order")


def _normalize_name(column: object) -> str:
    return re.sub(r"[\s-]+", "_", str(column).strip(' "').lower())


def has_header(line: str) -> bool:
    """Return whether a line names the columns of a table."""
    fields = set(map(_normalize_name, re.split(r"[\t,;]", line)))
    return not (fields.isdisjoint(_QUERY_COLUMNS) or fields.isdisjoint(_DOCUMENT_COLUMNS))


def find_beir_qrels(folder: Path) -> Path:
    """Return the qrels of a BEIR folder: those of its test split, or of the only split.

    Parameters
    ----------
    folder : Path
        With ``qrels/SPLIT.tsv``, or ``qrels.tsv``; or the folder ``qrels`` itself.

    Raises
    ------
    InputError
        There are none, or those of several splits but not of the test split.
    """
    for place in (folder / "qrels", folder):
        files = sorted([*place.glob("*.tsv"), *place.glob("*.tsv.gz")])
        test = [path for path in files if path.name.split(".")[0] in {"test", "qrels"}]
        if len(test or files) == 1:
            return (test or files)[0]
        if files:
            names = ", ".join(path.name for path in files)
            raise InputError(f"there are several qrels in it ({names}); name one", path=place)
    raise InputError(
        "this folder holds no qrels (qrels/test.tsv, as BEIR has it); name the file", path=folder
    )


def read_csv_table(raw: bytes, path: Path, purpose: TablePurpose) -> RetrievalTable:
    """Read CSV or TSV with a header, separated by tabs, commas or semicolons.

    Arrow reads the columns, much faster than Python reads records. Header, lines and errors come
    from the records.

    Raises
    ------
    InputError
        It is not UTF-8, a record has more or fewer fields than the header, a number is missing or
        not finite, a grade is not whole, an id is missing, there is no record, or qrels were given
        as a run or a run as qrels; with the line.
    """
    import pyarrow as pa
    from pyarrow import csv

    start = raw[:_HEADER_BYTES].decode("utf-8-sig", "replace")
    records = iter_csv_records(start, path)
    above, header = next(
        ((line - 1, fields) for line, fields in records if any(map(str.strip, fields))), (0, None)
    )
    if header is None:
        raise InputError("the file is empty; the first line must name the columns", path=path)
    columns = find_columns(header, purpose, str(path))

    def data_records() -> Iterator[tuple[int, list[str]]]:
        for line, fields in iter_csv_records(decode_utf8(raw, path), path):
            if line > above + 1:
                yield line, fields

    types = dict.fromkeys(columns.names[:2], pa.large_string())
    if columns.number:
        types[columns.number] = pa.float64()
    try:
        rows = csv.read_csv(
            pa.BufferReader(raw),
            read_options=csv.ReadOptions(skip_rows=above),
            parse_options=csv.ParseOptions(
                delimiter=detect_delimiter(start), newlines_in_values=b'"' in raw
            ),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=columns.names,
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        _raise_first_bad_record(data_records(), path, header, columns)
        raise InputError(
            "this table cannot be read; check its columns and separators", path=path
        ) from None
    if not rows.num_rows:
        raise InputError("the file has column names and no rows", path=path)
    table = _checked_table(
        str(path),
        columns,
        lambda: (batch.columns for batch in rows.to_batches(max_chunksize=BATCH_ROWS)),
        lambda row: next((line for line, _ in islice(data_records(), row, None)), None),
    )
    if (
        columns.kind == "score"
        and detect_delimiter(start).join(header).strip().lower() == _BEIR_HEADER
        and all(score.is_integer() for score in rows[columns.number].to_pylist())
    ):
        raise table.error(
            None,
            "these look like the qrels of a BEIR folder (query-id, corpus-id and whole scores); "
            "give them as qrels, or call the columns of a run query_id, doc_id, score",
        )
    return table


def _raise_first_bad_record(
    records: Iterator[tuple[int, list[str]]],
    path: Path,
    header: Sequence[str],
    columns: RetrievalColumns,
) -> None:
    """Name the first record that Arrow refused."""
    for line, fields in records:
        if len(fields) != len(header):
            raise InputError(
                f"{len(fields)} fields, but {len(header)} names; quote texts in full",
                path=path,
                line=line,
            )
        if columns.number is None:
            continue
        text = fields[header.index(columns.number)]
        parse_table_number(text, columns.kind, path, line, columns.number)


def parse_table_number(
    text: str, kind: str, path: object, line: int, field: str | None = None
) -> float:
    """Return the finite number that a text of a table says; grades go up to 2^53 - 1.

    Parameters
    ----------
    text : str
    kind : {'grade', 'score', 'rank', 'order'}
    path, line, field
        For messages.

    Raises
    ------
    InputError
        It is none.
    """
    value = parse_decimal(text.strip(" \t"))
    if value is not None and math.isfinite(value) and (kind != "grade" or abs(value) <= MAX_GRADE):
        return value
    digits = text.strip(" \t").lstrip("+-").isdigit()
    if not text.strip():
        problem = f"there is no {kind} here; give a number"
    elif kind == "grade" and value is not None and (digits or math.isfinite(value)):
        problem = f"the grade {shorten_repr(text)} is too large; grades go up to {MAX_GRADE:.0f}"
    else:
        problem = (
            f"the {kind} {shorten_repr(text)} is not a {'finite ' * (value is not None)}number"
        )
    raise InputError(problem, path=path, line=line, field=field)


def read_parquet_table(path: Path, purpose: TablePurpose) -> RetrievalTable:
    """Read a parquet file, one batch in memory at a time."""
    with open_parquet(path, path) as file:
        header, rows = file.schema_arrow.names, file.metadata.num_rows
    columns = find_columns(header, purpose, str(path))
    if not rows:
        raise InputError("it has no rows", path=path)

    def columns_of_batches() -> Iterator[Any]:
        with open_parquet(path, path) as file:
            for batch in iter_batches(file, path, BATCH_ROWS, columns.names):
                yield [batch.column(name) for name in columns.names]

    return _checked_table(str(path), columns, columns_of_batches)


def _checked_table(
    name: str,
    columns: RetrievalColumns,
    columns_of_batches: Callable[[], Iterator[Any]],
    line: Callable[[int], int | None] = lambda _: None,
) -> RetrievalTable:
    """A table of queries, documents and maybe numbers, which are checked when they are read."""

    def batches() -> Iterator[TableBatch]:
        row = 0
        for query, document, *numbers in columns_of_batches():
            values = _parse_numbers(numbers[0], table, row, columns) if numbers else None
            yield (
                _parse_ids(query, table, row, columns.query),
                _parse_ids(document, table, row, columns.document),
                values,
            )
            row += len(query)

    table = RetrievalTable(name, columns.kind, batches, line)
    return table


def read_frame_table(frame: Any, purpose: TablePurpose) -> RetrievalTable:
    """Read a pandas frame, converted piece by piece."""
    name = f"the {purpose}"
    columns = find_columns(list(frame.columns), purpose, name)
    if not len(frame):
        raise InputError("it has no rows", path=name)
    original = {str(column): column for column in frame.columns}

    def ids(series: Any) -> Any:
        import pyarrow as pa

        try:
            return pa.array(series, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # ids of several types
            plain = series.astype(object).where(series.notna(), None)
            return pa.array([None if value is None else str(value) for value in plain])

    def columns_of_batches() -> Iterator[Any]:
        for start in range(0, len(frame), BATCH_ROWS):
            piece = frame.iloc[start : start + BATCH_ROWS]
            query, document, *number = (piece[original[column]] for column in columns.names)
            yield ids(query), ids(document), *number

    return _checked_table(name, columns, columns_of_batches)


def _parse_ids(ids: Any, table: RetrievalTable, row: int, column: str) -> Any:
    """Return ids as an arrow array of text; whole numbers are written out."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    if ids.null_count:
        missing = pc.index(ids.is_null(), True).as_py()
        raise table.error(row + missing, f"the column '{column}' is empty here; give an id")
    if pa.types.is_floating(ids.type):  # whole numbers that had missing values beside them
        try:
            ids = ids.cast(pa.int64())
        except pa.ArrowInvalid:
            raise table.error(None, f"the ids in '{column}' are not whole numbers") from None
    if not pa.types.is_large_string(ids.type):
        try:
            ids = ids.cast(pa.large_string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise table.error(None, f"the column '{column}' holds no ids of text") from None
    edges, raw = text_buffers(ids)
    if not np.diff(edges).all():
        place = int(np.diff(edges).argmin())
        raise table.error(row + place, f"the column '{column}' is empty here; give an id")
    if raw.max(initial=0) >= _NOT_ASCII:
        _check_utf8(ids, table, row, column)
    return ids


def _check_utf8(ids: Any, table: RetrievalTable, row: int, column: str) -> None:
    """Raise an InputError about the first id that is no UTF-8: parquet may call it text."""
    import pyarrow as pa

    with suppress(pa.ArrowInvalid):
        ids.validate(full=True)
        return
    for place, raw in enumerate(ids.cast(pa.large_binary()).to_pylist()):
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            problem = f"the column '{column}' is not UTF-8 here; write the file again with text"
            raise table.error(row + place, problem) from None


def text_buffers(texts: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where the texts of a large_string array begin and end, and the bytes of all."""
    import numpy as np

    _, edges, raw = texts.buffers()
    edges = np.frombuffer(edges, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return edges - edges[0], np.frombuffer(raw, np.uint8)[edges[0] : edges[-1]]


def _parse_numbers(
    numbers: Any, table: RetrievalTable, row: int, columns: RetrievalColumns
) -> NDArray[np.float64]:
    """Return finite numbers; grades are whole, grades and ranks below 2^53."""
    import numpy as np

    try:
        is_arrow = hasattr(numbers, "type")
        raw = numbers.to_numpy(zero_copy_only=False) if is_arrow else numbers.to_numpy()
        values = np.asarray(raw, dtype=np.float64)
    except OverflowError:  # a whole number of hundreds of digits
        large = (isinstance(value, int) and abs(value) > sys.float_info.max for value in raw)
        place = list(large).index(True)
        raise table.error(row + place, _range_message(columns.kind, raw[place])) from None
    except (TypeError, ValueError) as error:
        raise table.error(
            None, f"the column '{columns.number}' contains a value that is not a number ({error})"
        ) from None
    valid = np.isfinite(values)
    if columns.kind == "grade":
        valid &= values == np.rint(values)
    if columns.kind != "score":  # above it two ranks or grades would silently be one
        valid &= np.abs(values) <= MAX_GRADE
    if valid.all():
        return values
    place = int(np.argmin(valid))
    value = values[place]
    if np.isfinite(value) and value == np.rint(value):
        problem = _range_message(columns.kind, raw[place])
    elif not np.isfinite(value):
        problem = f"the {columns.kind} {value:g} is not a finite number"
    elif str(columns.number).strip().lower() in _SCORE_COLUMNS:
        problem = (
            f"this looks like a run: its '{columns.number}' is {value:g} here, and grades are "
            "whole numbers; give it as the run, and here the qrels"
        )
    else:
        problem = f"the {columns.kind} {value:g} is not a whole number"
    raise table.error(row + place, problem)


def _range_message(kind: str, value: object) -> str:
    text = shorten_repr(value.item() if hasattr(value, "item") else value)
    if kind == "score":
        return f"the {kind} {text} is not a finite number"
    return f"the {kind} {text} is too large; {kind}s go up to {MAX_GRADE:.0f}"


def read_trec_table(content: bytes | Path, path: object, purpose: TablePurpose) -> RetrievalTable:
    """Qrels or a run in TREC's format; any run of blanks and tabs separates.

    Blank lines are passed over, and those that begin with ``#`` unless they have as many columns
    as a line of data: then ``#`` begins the query's id. Text after a run's tag is not
    read, as in trec_eval. A run is ordered by its scores; its ranks are not read, but
    have to be numbers. A file is read block by block, and is never in memory as a whole.

    Raises
    ------
    InputError
        There is no line at all, or the file is of the other kind. When it is read: a line has too
        few or too many columns, a grade is not a whole number or too large, a rank or score is not
        a finite number; with the line.
    """

    def blocks() -> Iterator[bytes]:
        opened = (
            nullcontext(io.BytesIO(content))
            if isinstance(content, bytes)
            else open_decompressed(content)
        )
        with opened as file:
            mark = _BYTE_ORDER_MARK
            while block := file.read(_BLOCK_BYTES):
                whole = block if block.endswith(b"\n") else block + file.readline()
                yield whole.removeprefix(mark)
                mark = b""

    def data_lines() -> Iterator[tuple[int, list[bytes]]]:
        lines = enumerate(chain.from_iterable(map(io.BytesIO, blocks())), start=1)
        fields = ((number, line.split()) for number, line in lines)
        return ((number, each) for number, each in fields if not _is_comment(each, purpose))

    def batches() -> Iterator[TableBatch]:
        for number, block in enumerate(blocks()):
            part = _read_block_fast(block, purpose)
            if part is None:
                before = sum(earlier.count(b"\n") for earlier in islice(blocks(), number))
                part = _read_block_checked(block, path, purpose, before)
            for batch in part.to_batches(max_chunksize=BATCH_ROWS):
                query, document, value = batch.columns
                yield query, document, value.to_numpy(zero_copy_only=False)

    _reject_other_kind(next(data_lines(), None), path, purpose)
    return RetrievalTable(
        str(path),
        "grade" if purpose == "qrels" else "score",
        batches,
        lambda row: next((number for number, _ in islice(data_lines(), row, None)), None),
    )


def _reject_other_kind(
    first: tuple[int, list[bytes]] | None, path: object, purpose: TablePurpose
) -> None:
    """Refuse qrels that were given as a run, and a run as qrels, by the first line of content."""
    if first is None:
        raise InputError("the file is empty", path=path)
    number, fields = first
    if purpose == "run" and len(fields) == len(_QRELS_FIELDS):
        raise InputError(
            "these are qrels (4 columns), not a run (query Q0 document rank score tag); "
            "give them as qrels, and here the run",
            path=path,
            line=number,
        )
    if purpose == "qrels" and len(fields) >= len(_RUN_FIELDS):
        raise InputError(
            f"this is a run ({len(fields)} columns), not qrels (query 0 document grade); "
            "give it as the run, and here the qrels",
            path=path,
            line=number,
        )


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
            read_options=csv.ReadOptions(
                column_names=names, use_threads=False, block_size=_BLOCK_BYTES
            ),
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
    import numpy as np

    codes = np.frombuffer(raw, np.uint8)
    low = codes <= ord(" ")
    separators = np.count_nonzero(codes == ord(" ")) + np.count_nonzero(codes == ord("\n"))
    if (
        not low[0]
        and not (low[1:] & low[:-1]).any()
        and np.count_nonzero(low) == separators
        and b"#" not in raw
    ):
        return raw  # every other way costs more than reading the columns
    plain = raw
    if any(blank in raw for blank in b"\t\v\f"):
        plain = raw.translate(bytes.maketrans(b"\t\v\f", b"   "))
    plain = plain.replace(b"\r\n", b"\n")
    while b"  " in plain:
        plain = plain.replace(b"  ", b" ")
    plain = plain.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
    if plain.startswith(b"#") or b"\n#" in plain:
        plain = _COMMENT_LINE.sub(
            lambda line: b"" if _is_comment(line[0].split(), purpose) else line[0], plain
        )
    return plain


def _read_block_checked(raw: bytes, path: object, purpose: TablePurpose, before: int) -> Any:
    """The same columns, line by line, of a block with so many lines before it."""
    import pyarrow as pa

    kind, names = ("qrels", _QRELS_FIELDS) if purpose == "qrels" else ("runs", _RUN_FIELDS)
    rows = []
    for number, part in enumerate(io.BytesIO(raw), start=before + 1):
        columns = part.split()  # as bytes: only blanks of ASCII separate, an id may hold others
        if _is_comment(columns, purpose):
            continue
        try:
            fields = [field.decode("utf-8") for field in columns]
        except UnicodeDecodeError as problem:
            raise encoding_error(problem, path, number) from None
        if len(fields) < len(names) or (purpose == "qrels" and len(fields) > len(names)):
            wrong = (
                f"{len(fields)} {'column' if len(fields) == 1 else 'columns'}, where {kind} have "
                f"{len(names)} ({' '.join(names)})"
            )
            if len(fields) == 1 and ("," in fields[0] or ";" in fields[0]):
                column = "relevance" if purpose == "qrels" else "score"
                wrong += f"; CSV needs names in its first line, such as query_id,doc_id,{column}"
            raise InputError(wrong, path=path, line=number)
        given = dict(zip(names, fields, strict=False))
        if purpose == "run":
            parse_table_number(given["rank"], "rank", path, number)
        name = "grade" if purpose == "qrels" else "score"
        value = parse_table_number(given[name], name, path, number)
        if purpose == "qrels" and value != round(value):
            wrong = f"the grade '{given['grade']}' is not a whole number"
            raise InputError(wrong, path=path, line=number)
        rows.append((given["query"], given["document"], value))
    query, document, values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "query": pa.array(query, pa.large_string()),
            "document": pa.array(document, pa.large_string()),
            "value": pa.array(values, pa.float64()),
        }
    )
