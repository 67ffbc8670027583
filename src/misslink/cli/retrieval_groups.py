"""Which category or cluster each query is of, read from a file beside the qrels."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.errors import InputError, known_names
from misslink.files.content import content_of, damaged_parquet

__all__ = ["read_groups"]

# What the column of query ids is called; JSON Lines of questions call it id, BEIR's _id.
_QUERY = ("query_id", "qid", "q_id", "topic_id", "case_id", "queryid", "topic", "_id", "id")
_PARTS = ("tags", "metadata")  # objects whose fields count as columns too
_NO_IDS = (
    "no column holds the query ids (call it query_id); name a file that has one with --queries"
)
_FIRST_LINE = 1 << 16  # bytes in which it stands

Row = tuple[int | None, Mapping[str, Any]]


def read_groups(path: Path, column: str) -> dict[str, str]:
    """Read one column of a file that has something to say of queries.

    Parameters
    ----------
    path : Path
        A gold set, JSON Lines, CSV or TSV with a header, each plain or gzipped, or parquet; a BEIR
        folder stands for its ``queries.jsonl``.
    column : str
        Its name, such as ``category``; a tag of a gold set by its own name.

    Returns
    -------
    dict of str to str
        Query id to value; a query of which the column says nothing is not in it.

    Raises
    ------
    InputError
        There is no such column, or no column of query ids, or a query has two values; or the
        file cannot be read.
    """
    if path.is_dir():
        path = path / "queries.jsonl"
    found: dict[str, str] = {}
    known: dict[str, None] = {}
    for line, row in _rows(path):
        fields = {**_parts(row), **row}
        query = next((fields[name] for name in _QUERY if name in fields), None)
        known |= dict.fromkeys(fields)
        if query is None:
            raise InputError(_NO_IDS, path=path, line=line)
        value = fields.get(column)
        if value is None or isinstance(value, dict | list):
            continue
        before = found.setdefault(str(query), str(value))
        if before != str(value):
            problem = f"query '{query}' has two values, '{before}' and '{value}'; keep one"
            raise InputError(problem, path=path, line=line, field=column)
    if not found:
        names = [name for name in known if name not in (*_QUERY, *_PARTS)]
        told = known_names(column, names) if names else "it has no others"
        raise InputError(
            f"it says nothing of any query in a column '{column}'; {told}. Name a file that does "
            "with --queries",
            path=path,
        )
    return found


def _parts(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the objects within, such as a gold set's tags."""
    parts: Sequence[Any] = [row.get(name) for name in _PARTS]
    return {
        name: value for part in parts if isinstance(part, Mapping) for name, value in part.items()
    }


def _rows(path: Path) -> Iterator[Row]:
    from misslink.files.goldset import read_goldset
    from misslink.files.rows import read_rows

    if _is_parquet(path):
        yield from _of_parquet(path)
        return
    head = content_of(path)[:_FIRST_LINE].decode("utf-8-sig", "replace").lstrip()
    line = head.partition("\n")[0].strip()
    # TREC qrels have no names of columns, whatever stands in their first line.
    names = {field.strip(' "') for field in re.split(r"[\t,;]", line)}
    if line[:1] not in {"{", "["} and line and not names & set(_QUERY):
        raise InputError(_NO_IDS, path=path)
    rows = read_rows(path, "the queries")
    first = next(rows)
    if {"question", "query"} & set(first[1]) and not set(_QUERY) & set(first[1]):
        # The gold set's own reader knows which id it makes of a question that has none.
        gold = read_goldset(path)
        for case in gold.cases:
            own = case.model_dump(include={"id", "category", "tier", "tags"}, exclude_none=True)
            yield gold.lines.get(case.id), own
        return
    yield first
    yield from rows


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False  # why is told where it is read whole


def _of_parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as opened:
            for batch in opened.iter_batches():
                yield from ((None, _said(row)) for row in batch.to_pylist())
    except UnicodeDecodeError as problem:  # Arrow hands on whatever is called text
        told = f"byte 0x{problem.object[problem.start]:02x} in a text is not UTF-8"
        raise InputError(f"{told}; write the file anew with text", path=path) from None
    except (pa.ArrowException, OSError) as problem:
        raise damaged_parquet(problem, path) from None


def _said(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that hold something."""
    return {
        name: value
        for name, value in row.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }
