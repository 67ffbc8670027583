"""Read qrels and runs from CSV, TSV, parquet and data frames."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from misslink.errors import InputError
from misslink.io.numbers import parse_decimal, shorten_repr
from misslink.io.rows import detect_delimiter, iter_batches, iter_csv_records, open_parquet
from misslink.io.storage import decode_utf8

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


TablePurpose = Literal["qrels", "run"]
TableBatch = tuple[Any, Any, "NDArray[np.float64] | None"]
_NumberKind = Literal["grade", "score", "rank", "order"]

BATCH_ROWS = 1 << 18
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
        Source row of a row in the order of `batches`.
    """

    name: str
    kind: _NumberKind
    batches: Callable[[], Iterator[TableBatch]]
    line: Callable[[int], int | None]
    source_row: Callable[[int], int] = int

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
    normalized = [re.sub(r"[\s-]+", "_", str(column).strip().lower()) for column in header]
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


def has_header(line: str) -> bool:
    """Return whether a line names the columns of a table."""
    fields = {
        re.sub(r"[\s-]+", "_", field.strip(' "').lower()) for field in re.split(r"[\t,;]", line)
    }
    return bool(fields & set(_QUERY_COLUMNS)) and bool(fields & set(_DOCUMENT_COLUMNS))


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
        raise InputError("there is nothing in it; it needs a line of names first", path=path)
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
        raise InputError("there is no line below the names", path=path)
    table = _arrow_table(
        str(path),
        columns,
        lambda: iter(rows.to_batches(max_chunksize=BATCH_ROWS)),
        lambda row: next((line for line, _ in islice(data_records(), row, None)), None),
    )
    beir = detect_delimiter(start).join(header).strip().lower() == _BEIR_HEADER
    if beir and columns.kind == "score" and _all_whole(rows[columns.number].to_numpy()):
        raise table.error(
            None,
            "these look like the qrels of a BEIR folder (query-id, corpus-id and whole scores); "
            "give them as qrels, or call the columns of a run query_id, doc_id, score",
        )
    return table


def _all_whole(values: Any) -> bool:
    import numpy as np

    return bool(np.isfinite(values).all() and (values == np.rint(values)).all())


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
        problem = f"the {kind} {shorten_repr(text)} is no {'finite ' * (value is not None)}number"
    raise InputError(problem, path=path, line=line, field=field)


def read_parquet_table(path: Path, purpose: TablePurpose) -> RetrievalTable:
    """Read a parquet file, one batch in memory at a time."""
    with open_parquet(path, path) as file:
        header, rows = file.schema_arrow.names, file.metadata.num_rows
    columns = find_columns(header, purpose, str(path))
    if not rows:
        raise InputError("there is no row in it", path=path)

    def batches() -> Iterator[Any]:
        with open_parquet(path, path) as file:
            yield from iter_batches(file, path, BATCH_ROWS, columns.names)

    return _arrow_table(str(path), columns, batches, lambda _: None)


def _arrow_table(
    name: str,
    columns: RetrievalColumns,
    arrow_batches: Callable[[], Iterator[Any]],
    line: Callable[[int], int | None],
) -> RetrievalTable:
    def batches() -> Iterator[TableBatch]:
        row = 0
        for batch in arrow_batches():
            query, document = (
                _parse_ids(batch.column(column), table, row, column) for column in columns.names[:2]
            )
            numbers = None if columns.number is None else batch.column(columns.number)
            values = None if numbers is None else _parse_numbers(numbers, table, row, columns)
            yield query, document, values
            row += batch.num_rows

    table = RetrievalTable(name, columns.kind, batches, line)
    return table


def read_frame_table(frame: Any, purpose: TablePurpose) -> RetrievalTable:
    """Read a pandas frame, converted piece by piece."""
    name = f"the {purpose}"
    columns = find_columns(list(frame.columns), purpose, name)
    if not len(frame):
        raise InputError("there is no row in it", path=name)
    original = {str(column): column for column in frame.columns}

    def batches() -> Iterator[TableBatch]:
        import pyarrow as pa

        for start in range(0, len(frame), BATCH_ROWS):
            piece = frame.iloc[start : start + BATCH_ROWS]
            texts = []
            for column in (columns.query, columns.document):
                series = piece[original[column]]
                try:
                    ids = pa.array(series, from_pandas=True)
                except (pa.ArrowInvalid, pa.ArrowTypeError):  # ids of several types
                    plain = series.astype(object).where(series.notna(), None)
                    ids = pa.array([None if value is None else str(value) for value in plain])
                texts.append(_parse_ids(ids, table, start, column))
            number = None if columns.number is None else piece[original[columns.number]]
            values = None if number is None else _parse_numbers(number, table, start, columns)
            yield texts[0], texts[1], values

    table = RetrievalTable(name, columns.kind, batches, lambda _: None)
    return table


def _parse_ids(ids: Any, table: RetrievalTable, row: int, column: str) -> Any:
    """Return ids as an arrow array of text; whole numbers are written out."""
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
            raise table.error(None, f"the ids in '{column}' are no whole numbers") from None
    if not pa.types.is_large_string(ids.type):
        try:
            ids = ids.cast(pa.large_string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise table.error(None, f"the column '{column}' holds no ids of text") from None
    if pc.any(pc.equal(pc.binary_length(ids), 0)).as_py():
        place = pc.index(pc.binary_length(ids), 0).as_py()
        raise table.error(row + place, f"the column '{column}' is empty here; give an id")
    try:
        ids.validate(full=True)  # parquet may call text what is not UTF-8
    except pa.ArrowInvalid:
        place = next(
            index for index, raw in enumerate(ids.cast(pa.large_binary())) if not _is_utf8(raw)
        )
        raise table.error(
            row + place, f"the column '{column}' is not UTF-8 here; write the file again with text"
        ) from None
    return ids


def _is_utf8(raw: Any) -> bool:
    try:
        raw.as_py().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _parse_numbers(
    numbers: Any, table: RetrievalTable, row: int, columns: RetrievalColumns
) -> NDArray[np.float64]:
    """Return finite numbers; grades are whole, grades and ranks below 2^53."""
    import numpy as np

    try:
        raw = (
            numbers.to_numpy(zero_copy_only=False)
            if hasattr(numbers, "type")
            else numbers.to_numpy()
        )
        values = np.asarray(raw, dtype=np.float64)
    except OverflowError:  # a whole number of hundreds of digits
        place = next(index for index, value in enumerate(raw) if not _fits_float(value))
        raise table.error(row + place, _range_message(columns.kind, raw[place])) from None
    except (TypeError, ValueError) as error:
        raise table.error(
            None, f"the column '{columns.number}' holds something that is no number ({error})"
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
        problem = f"the {columns.kind} {value:g} is no finite number"
    elif str(columns.number).strip().lower() in _SCORE_COLUMNS:
        problem = (
            f"this looks like a run: its '{columns.number}' is {value:g} here, and grades are "
            "whole numbers; give it as the run, and here the qrels"
        )
    else:
        problem = f"the {columns.kind} {value:g} is no whole number"
    raise table.error(row + place, problem)


def _range_message(kind: str, value: object) -> str:
    text = shorten_repr(value.item() if hasattr(value, "item") else value)
    if kind == "score":
        return f"the {kind} {text} is no finite number"
    return f"the {kind} {text} is too large; {kind}s go up to {MAX_GRADE:.0f}"


def _fits_float(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except OverflowError:
        return False
    except (TypeError, ValueError):
        return True  # reported once the number that is too large is fixed
    return True
