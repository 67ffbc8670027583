"""A run as CSV, one row a case, for spreadsheets and data frames.

UTF-8 with a header, as RFC 4180 has it (lines end in CR LF, every cell stands between quotes).
A column is called by the path of its value in the JSON document, with dots between the keys:
``id``, ``tags.language``, ``metrics.recall@5``, ``verdicts.faithfulness.status``. What is None
there is empty here; several values stand between "; ", those of ``missed`` in the same order.

Spreadsheets run what begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break as a formula,
some also behind blanks and signs that nobody sees, and where the comma is a decimal sign they cut
cells at ``;`` that are not quoted. A text that begins so, and is no number, begins with an
apostrophe here, each of several in one cell. The JSON document has every text as it is.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from misslink.files.inert import inert
from misslink.files.whole import put
from misslink.registry import exporters
from misslink.report.document import case_records
from misslink.types import Run

__all__ = ["cell", "columns", "flat", "write"]

_BETWEEN = "; "
# In the order in which they stand in the table; those that depend on the run follow.
_FIRST = ("number", "id", "question", "category", "tier")
_OUTCOMES = (
    *("retrieval", "answer", "correct", "cause", "contributing", "reason", "basis"),
    *("answer_text", "error", "latency_s"),
)
_COUNTS = ("claims.supported", "claims.contradicted", "claims.unsupported")
_MISSED = ("passage_id", "grade", "true_rank", "subtype")
_VERDICT = ("status", "label", "probability")  # its value is that of the metric
_PEOPLE = ("share", "stands")


@exporters.register("csv")
def write(run: Run, path: Path) -> Path:
    """Write the cases of `run` as CSV, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written, or two cases or traces have the same id.
    """
    rows = [flat(record) for record in case_records(run)]
    names = columns(rows)
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    out.writerow(map(cell, names))
    out.writerows([cell(row.get(name)) for name in names] for row in rows)
    # Half a surrogate pair, which a careless app may leave, is in no UTF-8 file.
    return put(text.getvalue().encode("utf-8", "replace").decode(), path)


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of `misslink.report.document.case_records` as one row, column to value."""
    claims = record["claims"] or {}
    return {
        **{name: record[name] for name in (*_FIRST, *_OUTCOMES)},
        **{f"tags.{name}": tag for name, tag in record["tags"].items()},
        **{f"metrics.{name}": value for name, value in record["metrics"].items()},
        **{
            f"verdicts.{metric}.{field}": verdict[field]
            for metric, verdict in record["verdicts"].items()
            for field in _VERDICT
        },
        **{
            f"people.{metric}.{field}": said[field]
            for metric, said in record["people"].items()
            for field in _PEOPLE
        },
        **{name: claims.get(name.rpartition(".")[2]) for name in _COUNTS},
        **{f"missed.{field}": [one[field] for one in record["missed"]] for field in _MISSED},
    }


def columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the columns of all rows, each kind together; without any row those every run has."""
    found = dict.fromkeys(name for row in rows for name in row)
    of_run = {
        kind: [name for name in found if name.startswith(f"{kind}.")]
        for kind in ("tags", "metrics", "verdicts", "people")
    }
    return [
        *_FIRST,
        *of_run["tags"],
        *_OUTCOMES,
        *of_run["metrics"],
        *of_run["verdicts"],
        *of_run["people"],
        *_COUNTS,
        *(f"missed.{field}" for field in _MISSED),
    ]


def cell(value: object) -> str:
    """Return a value as a spreadsheet may read it.

    Examples
    --------
    >>> cell(None), cell(True), cell(0.25), cell(["a", None, 3])
    ('', 'true', '0.25', 'a; ; 3')
    >>> cell("=1+1"), cell("-3.5"), cell("-- no")
    ("'=1+1", '-3.5', "'-- no")
    >>> cell(" =1+1"), cell(["a", "=1+1"])
    ("' =1+1", "a; '=1+1")
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return _BETWEEN.join("" if one is None else inert(str(one)) for one in value)
    return inert(str(value))
