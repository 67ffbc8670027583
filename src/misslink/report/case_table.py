"""Writes the cases of a run as CSV or parquet, one row per case."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io.atomic import atomic_path
from misslink.io.rows import escape_formula
from misslink.registry import exporters
from misslink.report.case_facts import (
    SUPPORTS,
    CaseFacts,
    iter_case_facts,
    summary_rank_metrics,
)
from misslink.report.human_labels import read_human_labels
from misslink.types import Run

_SEPARATOR = "; "
_VERDICT_FIELDS = ("status", "label", "probability")  # its value is that of the metric
_LABEL_FIELDS = ("share", "stands")
_MISSED_FIELDS = ("passage_id", "grade", "true_rank", "status", "miss_type")
Reader = Callable[[CaseFacts], Any]


def _of(part: str, field: str) -> Reader:
    """Read a field of the link or the trace; None without one."""
    return lambda facts: getattr(getattr(facts, part), field, None)


def _of_verdict(metric: str, field: str) -> Reader:
    return lambda facts: getattr(facts.verdicts.get(metric), field, None)


def _of_label(metric: str, field: str) -> Reader:
    def read(facts: CaseFacts) -> Any:
        value = getattr(facts.people.get(metric), field, None)
        return None if value == "" else value

    return read


def _of_misses(field: str) -> Reader:
    return lambda facts: [getattr(miss, field) for miss in facts.link.missed] if facts.link else []


def _of_claims(support: str) -> Reader:
    return lambda facts: facts.claims and facts.claims[support]


def _tag(name: str) -> Reader:
    return lambda facts: facts.case.tags.get(name)


def _metric(name: str) -> Reader:
    return lambda facts: facts.metrics.get(name)


def _retrieved(facts: CaseFacts) -> list[str] | None:
    return None if facts.trace is None else [passage.id for passage in facts.trace.retrieved]


# In the order in which they stand in the table; those that depend on the run are between them.
_CASE: dict[str, Reader] = {
    "number": attrgetter("number"),
    **{name: attrgetter(f"case.{name}") for name in ("id", "question", "category", "tier")},
}
_OUTCOME: dict[str, Reader] = {
    **{
        name: _of("link", name)
        for name in (
            "retrieval",
            "answer",
            "correct",
            "failure",
            "owner",
            "also",
            "reason",
            "basis",
        )
    },
    "also": lambda facts: list(facts.link.also) if facts.link else [],
    "answer_text": _of("trace", "answer"),
    "error": _of("trace", "error"),
    "latency_s": _of("trace", "latency_s"),
}
_LAST: dict[str, Reader] = {
    **{f"claims.{support}": _of_claims(support) for support in SUPPORTS},
    **{f"missed.{field}": _of_misses(field) for field in _MISSED_FIELDS},
    "retrieved": _retrieved,
}


@exporters.register("csv", file="report.csv")
def write_csv(run: Run, path: Path) -> Path:
    """Write the cases of `run` as CSV, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written, or two cases or traces have the same id.
    """
    write_csv_rows(path, case_columns(run), (row.values() for row in case_rows(run)))
    return path


def write_csv_rows(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> int:
    """Write a table as CSV that a spreadsheet may open, whole or not at all; return how many rows."""
    # Half a surrogate pair, which a careless app may leave, is in no UTF-8 file.
    with (
        atomic_path(path) as part,
        part.open("w", encoding="utf-8", errors="replace", newline="") as file,
    ):
        out = csv.writer(file, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
        out.writerow(map(csv_cell, header))
        return sum(1 for row in rows if out.writerow(map(csv_cell, row)))


def case_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Make one row a case, column to value, in the order of the gold set.

    Raises
    ------
    InputError
        Two cases or two traces have the same id.
    """
    columns = case_columns(run)
    for facts in iter_case_facts(run):
        yield {name: read(facts) for name, read in columns.items()}


def case_columns(run: Run) -> dict[str, Reader]:
    """Return the columns of `run`, each kind together, and what reads each off a case."""
    from misslink.pipeline.summary import metric_readings  # imports numpy

    case_ids = {case.id for case in run.cases}
    tags = dict.fromkeys(name for case in run.cases for name in case.tags)
    judged = dict.fromkeys(score.metric for score in run.scores)
    numbers = dict.fromkeys(
        [
            *summary_rank_metrics(run)[0],
            *(name for metric in judged for name in metric_readings(metric)),
        ]
    )
    people = dict.fromkeys(
        metric
        for case_id, labels in read_human_labels(run).items()
        if case_id in case_ids
        for metric in labels
    )
    return {
        **_CASE,
        **{f"tags.{name}": _tag(name) for name in tags},
        **_OUTCOME,
        **{f"metrics.{name}": _metric(name) for name in numbers},
        **{
            f"verdicts.{metric}.{field}": _of_verdict(metric, field)
            for metric in judged
            for field in _VERDICT_FIELDS
        },
        **{
            f"people.{metric}.{field}": _of_label(metric, field)
            for metric in people
            for field in _LABEL_FIELDS
        },
        **_LAST,
    }


def csv_cell(value: object) -> str:
    """Return a value as a spreadsheet may read it.

    Examples
    --------
    >>> csv_cell(None), csv_cell(True), csv_cell(0.25), csv_cell(["a", None, 3])
    ('', 'true', '0.25', 'a; ; 3')
    >>> csv_cell("=1+1"), csv_cell("-3.5"), csv_cell("-- no")
    ("'=1+1", '-3.5', "'-- no")
    >>> csv_cell(" =1+1"), csv_cell(["a", "=1+1"])
    ("' =1+1", "a; '=1+1")
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return _SEPARATOR.join("" if item is None else escape_formula(str(item)) for item in value)
    return escape_formula(str(value))


_BATCH_ROWS = 5_000  # in a row group: some 10 MB
_PIECE_ROWS = 500  # that are Python objects at a time: ten times their size
_FILE_METADATA = {
    b"misslink": b"cases"
}  # tells a file of ours from one that happens to be called so
_INTEGER_COLUMNS = ("number", "claims.supported", "claims.contradicted", "claims.unsupported")
_LIST_COLUMNS = ("also", "missed.passage_id", "missed.status", "missed.miss_type", "retrieved")
_INTEGER_LIST_COLUMNS = ("missed.grade", "missed.true_rank")


@exporters.register("parquet", file="cases.parquet")
def write_parquet(run: Run, path: Path) -> Path:
    """Write the cases of `run` as parquet, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written, or two cases or traces have the same id.
    """
    import pyarrow.parquet as pq

    schema, tables = case_tables(run)
    with (
        atomic_path(path) as part,
        pq.ParquetWriter(part, schema, compression="zstd") as file,
    ):
        for table in tables:
            file.write_table(table)
    return path


def case_tables(run: Run) -> tuple[Any, Iterator[Any]]:
    """Return the Arrow schema of the cases, and their rows as tables of at most 5,000.

    Raises
    ------
    InputError
        While the tables are read: two cases or two traces have the same id.
    """
    import pyarrow as pa

    columns = case_columns(run)
    fields = [pa.field(_valid_utf8(name), _column_type(name)) for name in columns]
    schema = pa.schema(fields, metadata=_FILE_METADATA)
    # What holds texts; numbers and flags are as they should be.
    texts = [field.type in (pa.string(), pa.list_(pa.string())) for field in fields]
    reading = list(zip(columns.values(), fields, texts, strict=True))

    def pieces(cases: Iterator[CaseFacts]) -> Iterator[Any]:
        while some := list(islice(cases, _PIECE_ROWS)):
            arrays = []
            for read, field, has_text in reading:
                values: Iterable[Any] = map(read, some)
                arrays.append(
                    pa.array(map(_clean_value, values) if has_text else values, field.type)
                )
            yield pa.Table.from_arrays(arrays, schema=schema)

    def tables() -> Iterator[Any]:
        cases = iter_case_facts(run)
        while some := list(pieces(islice(cases, _BATCH_ROWS))):
            yield pa.concat_tables(some).combine_chunks()

    return schema, tables()


def check_overwritable(path: Path) -> None:
    """Raise InputError if `path` is a file that misslink did not write."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        return
    try:
        ours = (pq.read_schema(path).metadata or {}).items() >= _FILE_METADATA.items()
    except (OSError, pa.ArrowInvalid):  # a folder, or no parquet
        ours = False
    if not ours:
        raise InputError(
            "this is in the place of the page's table of all cases, and misslink did not write "
            "it; move it, or give the page another path",
            path=path,
        )


def _column_type(column: str) -> Any:
    import pyarrow as pa

    if column in _INTEGER_COLUMNS:
        return pa.int64()
    if column in _LIST_COLUMNS:
        return pa.list_(pa.string())
    if column in _INTEGER_LIST_COLUMNS:
        return pa.list_(pa.int64())
    kind, _, name = column.partition(".")
    field = name.rpartition(".")[2]
    if column == "correct" or (kind == "verdicts" and field == "label"):
        return pa.bool_()
    if column == "latency_s" or kind == "metrics":
        return pa.float64()
    number = (kind, field) in {("verdicts", "probability"), ("people", "share")}
    return pa.float64() if number else pa.string()


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else _valid_utf8(value)
    if isinstance(value, list):
        return [_clean_value(item) for item in value]
    return value


def _valid_utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
