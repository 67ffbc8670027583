"""A run as CSV, one row a case, for spreadsheets and data frames.

UTF-8 with a header, as RFC 4180 has it (lines end in CR LF, every cell stands between quotes).
A column is called by the path of its value in the JSON document, with dots between the keys:
``id``, ``tags.language``, ``metrics.recall@5``, ``verdicts.faithfulness.status``. What is None
there is empty here; several values stand between "; ", those of ``missed`` in the same order.

`misslink.report.parquet` has the same columns under the same names.

Spreadsheets run what begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break as a formula,
some also behind blanks and signs that nobody sees, and where the comma is a decimal sign they cut
cells at ``;`` that are not quoted. A text that begins so, and is no number, begins with an
apostrophe here, each of several in one cell. The JSON document has every text as it is.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from misslink.files.inert import inert
from misslink.files.whole import placed
from misslink.registry import exporters
from misslink.report.document import each_record, measured_ranks
from misslink.report.labelled import labelled
from misslink.types import Run

__all__ = ["cell", "columns", "rows", "write"]

_BETWEEN = "; "
# In the order in which they stand in the table; those that depend on the run follow.
_FIRST = ("number", "id", "question", "category", "tier")
_OUTCOMES = (
    *("retrieval", "answer", "correct", "cause", "contributing", "reason", "basis"),
    *("answer_text", "error", "latency_s"),
)
_LAST = ("retrieved",)
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
    names = columns(run)
    # Half a surrogate pair, which a careless app may leave, is in no UTF-8 file.
    with (
        placed(path) as part,
        part.open("w", encoding="utf-8", errors="replace", newline="") as file,
    ):
        out = csv.writer(file, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
        out.writerow(map(cell, names))
        out.writerows([cell(row.get(name)) for name in names] for row in rows(run))
    return path


def rows(run: Run) -> Iterator[dict[str, Any]]:
    """Make one row a case, column to value, in the order of the gold set.

    Raises
    ------
    InputError
        Two cases or two traces have the same id.
    """
    return map(_flat, each_record(run))


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of `misslink.report.document.case_records` as one row."""
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
        **{name: record[name] for name in _LAST},
    }


def columns(run: Run) -> list[str]:
    """Return the columns of all rows of `run`, each kind together; every run has the others."""
    from misslink.summary import numbers_of  # brings numpy

    known = {case.id for case in run.cases}
    tags = dict.fromkeys(name for case in run.cases for name in case.tags)
    judged = dict.fromkeys(verdict.metric for verdict in run.verdicts)
    numbers = dict.fromkeys(
        [*measured_ranks(run)[0], *(name for metric in judged for name in numbers_of(metric))]
    )
    people = dict.fromkeys(
        metric for case_id, said in labelled(run).items() if case_id in known for metric in said
    )
    return [
        *_FIRST,
        *(f"tags.{name}" for name in tags),
        *_OUTCOMES,
        *(f"metrics.{name}" for name in numbers),
        *(f"verdicts.{metric}.{field}" for metric in judged for field in _VERDICT),
        *(f"people.{metric}.{field}" for metric in people for field in _PEOPLE),
        *_COUNTS,
        *(f"missed.{field}" for field in _MISSED),
        *_LAST,
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
