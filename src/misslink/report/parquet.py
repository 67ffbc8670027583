"""The cases of a run as parquet, one row a case: what pandas, duckdb and their like read.

The columns are those of the CSV (`misslink.report.table`), under the same names and with types of
their own: numbers, truth values, and lists for what has several values (those of ``missed`` in the
same order). What is None in the JSON document is null. Texts are as they are, but for half a
surrogate pair, which no UTF-8 holds. A page that tells only the worst cases of a run leads here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.whole import placed
from misslink.registry import exporters
from misslink.report.table import columns, rows
from misslink.types import Run

__all__ = ["refuse_foreign", "write"]

_AT_ONCE = 5_000  # rows in memory, and in a row group: some 10 MB
_MARK = {b"misslink": b"cases"}  # tells a file of ours from one that happens to be called so
_WHOLE = ("number", "claims.supported", "claims.contradicted", "claims.unsupported")
_SEVERAL = ("contributing", "missed.passage_id", "missed.subtype", "retrieved")
_WHOLE_SEVERAL = ("missed.grade", "missed.true_rank")


@exporters.register("parquet")
def write(run: Run, path: Path) -> Path:
    """Write the cases of `run` as parquet, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written, or two cases or traces have the same id.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = columns(run)
    fields = [pa.field(_utf8(name), _type(name)) for name in names]
    schema = pa.schema(fields, metadata=_MARK)
    with (
        placed(path) as part,
        pq.ParquetWriter(part, schema, compression="zstd") as file,
    ):
        for some in _batches(rows(run)):
            arrays = [
                pa.array([_clean(row.get(name)) for row in some], field.type)
                for name, field in zip(names, fields, strict=True)
            ]
            file.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return path


def refuse_foreign(path: Path) -> None:
    """Raise where a file stands that this module did not write, and that nobody gave up.

    Parameters
    ----------
    path : Path
        Chosen by misslink, not by its user, so that nothing of theirs may be written over.

    Raises
    ------
    InputError
        There is such a file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        return
    try:
        ours = (pq.read_schema(path).metadata or {}).items() >= _MARK.items()
    except (OSError, pa.ArrowInvalid):  # a folder, or no parquet
        ours = False
    if not ours:
        raise InputError(
            "this is in the place of the page's table of all cases, and misslink did not write "
            "it; move it, or give the page another path",
            path=path,
        )


def _type(column: str) -> Any:
    import pyarrow as pa

    if column in _WHOLE:
        return pa.int64()
    if column in _SEVERAL:
        return pa.list_(pa.string())
    if column in _WHOLE_SEVERAL:
        return pa.list_(pa.int64())
    kind, _, rest = column.partition(".")
    field = rest.rpartition(".")[2]
    if column == "correct" or (kind == "verdicts" and field == "label"):
        return pa.bool_()
    if column == "latency_s" or kind == "metrics":
        return pa.float64()
    number = (kind, field) in {("verdicts", "probability"), ("people", "share")}
    return pa.float64() if number else pa.string()


def _batches(all_rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    left = iter(all_rows)
    while some := list(islice(left, _AT_ONCE)):
        yield some


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else _utf8(value)
    if isinstance(value, list):
        return [_clean(one) for one in value]
    return value


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
