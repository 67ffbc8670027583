"""Writes a run as JSON, and its cases as CSV or parquet, one row per case."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from misslink.documents import summary_of
from misslink.errors import InputError
from misslink.failure_modes import FAILURE_MODES
from misslink.io.atomic import atomic_path, atomic_write
from misslink.io.rows import escape_formula
from misslink.registry import exporters
from misslink.report.human_labels import read_human_labels
from misslink.report.links import number_cases
from misslink.report.summary import next_steps
from misslink.types import Run, Verdict

_FORMAT = 1
_SUPPORTS = ("supported", "contradicted", "unsupported")
_JSON_VERDICT_FIELDS = {"status", "value", "label", "probability", "reason"}
_MISS_FIELDS = {
    *("passage_id", "grade", "true_rank", "bm25_rank", "status", "miss_type"),
    *("also", "reason", "depth", "distance"),
}


@exporters.register("json", file="report.json")
def write_json(run: Run, path: Path) -> Path:
    """Write `run` as one JSON document, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written, or two cases or traces have the same id.
    """
    text = json.dumps(build_document(run), indent=2, ensure_ascii=False, allow_nan=False)
    # UTF-8 cannot encode half a surrogate pair, which an app may produce.
    return atomic_write(f"{text}\n".encode("utf-8", "replace").decode(), path)


def build_document(run: Run) -> dict[str, Any]:
    """Return the JSON document of `run`; see `case_records` for its cases.

    Raises
    ------
    InputError
        Two cases or two traces have the same id.
    """
    from misslink.calibration.stored_calibration import corrected_shares, stored_calibrations

    _, unmeasured = summary_rank_metrics(run)
    return {
        "format": _FORMAT,
        "run": summary_of(run).run or None,
        "headline": run.headline,
        "manifest": run.manifest,
        "summary": run.summary,
        "next": [asdict(step) for step in next_steps(run)],
        "failures": _failure_mode_counts(run),
        "corrected": {
            name: {"metric": share.metric} | share.document()
            for name, share in corrected_shares(run).items()
        },
        "calibrations": stored_calibrations(run),
        "audit": run.audit,
        "unmeasured": unmeasured,
        "cases": case_records(run),
    }


def case_records(run: Run) -> list[dict[str, Any]]:
    """Return what is known of each case, in the order of the gold set.

    Parameters
    ----------
    run : Run
        Any: without traces, verdicts or links what they would say is None.

    Returns
    -------
    list of dict
        ``number`` (the place in the gold set, from 1, as in the page's addresses), ``id``,
        ``question``, ``category``, ``tags``, ``tier``; ``retrieval``, ``answer`` (the two
        outcomes), ``correct``, ``failure``, ``owner``, ``also``, ``reason``, ``basis``; ``answer_text``,
        ``error``, ``latency_s``; ``metrics`` (name to value in [0, 1], the rank metrics of the
        run's summary and every number of the judged metrics; None: not measured), ``verdicts``
        (metric to ``status``, ``value``, ``label``, ``probability``, ``reason``, the last saying
        why there is no value), ``people`` (metric to ``word``, ``share``: their mean label,
        ``stands``: whether judge and people 'agree' or 'disagree', or people are 'tied'; see
        `misslink.report.human_labels`), ``missed`` (``passage_id``, ``grade``, ``true_rank``,
        ``miss_type``, ``also``, ``reason``, ``depth``, ``distance``), ``claims`` (how many the judge
        called supported, contradicted and unsupported; None where faithfulness was not scored),
        ``retrieved`` (the passages' ids in their order; None where there is no trace).

    Raises
    ------
    InputError
        Two cases or two traces have the same id.
    """
    return list(iter_case_records(run))


def iter_case_records(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the records of `case_records` one by one, for large runs."""
    from misslink.pipeline.summary import metric_readings  # imports numpy
    from misslink.retrieval import score_cases

    ranks, _ = summary_rank_metrics(run)
    scores = score_cases(run.cases, run.traces, ranks)
    traces = {trace.case_id: trace for trace in run.traces}
    links = {link.case_id: link for link in run.links}
    verdicts: dict[str, dict[str, Verdict]] = {}
    for verdict in run.verdicts:
        verdicts.setdefault(verdict.case_id, {}).setdefault(verdict.metric, verdict)
    readings = {
        name: (metric, read)
        for metric in dict.fromkeys(verdict.metric for verdict in run.verdicts)
        for name, read in metric_readings(metric).items()
    }
    labels = read_human_labels(run)
    for number, case in enumerate(run.cases, 1):
        case_verdicts = verdicts.get(case.id, {})
        link, trace = links.get(case.id), traces.get(case.id)
        faithfulness = case_verdicts.get("faithfulness")
        claims = None
        if faithfulness is not None and faithfulness.status == "scored":
            supports: Counter[str] = Counter(claim.support for claim in faithfulness.claims)
            claims = {support: supports[support] for support in _SUPPORTS}
        yield {
            "number": number,
            "id": case.id,
            "question": case.question,
            "category": case.category,
            "tags": dict(case.tags),
            "tier": case.tier,
            "retrieval": link.retrieval if link else None,
            "answer": link.answer if link else None,
            "correct": link.correct if link else None,
            "failure": link.failure if link else None,
            "failed": link.failed if link else None,
            "owner": link.owner if link else None,
            "also": list(link.also) if link else [],
            "reason": link.reason if link else None,
            "basis": link.basis if link else None,
            "answer_text": trace.answer if trace else None,
            "error": trace.error if trace else None,
            "latency_s": trace.latency_s if trace else None,
            "metrics": {name: by_case[case.id] for name, by_case in scores.items()}
            | {
                name: read(case_verdicts[metric]) if metric in case_verdicts else None
                for name, (metric, read) in readings.items()
            },
            "verdicts": {
                name: verdict.model_dump(include=_JSON_VERDICT_FIELDS)
                for name, verdict in case_verdicts.items()
            },
            "people": {
                name: {
                    "word": label.word or None,
                    "share": label.share,
                    "stands": label.stands or None,
                }
                for name, label in labels.get(case.id, {}).items()
            },
            "missed": [
                miss.model_dump(mode="json", include=_MISS_FIELDS)
                for miss in (link.missed if link else ())
            ],
            "claims": claims,
            "retrieved": None if trace is None else [passage.id for passage in trace.retrieved],
        }


def _failure_mode_counts(run: Run) -> list[dict[str, Any]]:
    from misslink.stats import proportion  # may import scipy

    numbers = number_cases(run.cases)
    groups: dict[str, list[str]] = {}
    for link in run.links:
        if link.failure:
            groups.setdefault(link.failure, []).append(link.case_id)
    return [
        {
            "failure": key,
            "owner": mode.owner,
            "label": mode.label,
            "meaning": mode.meaning,
            "count": len(groups[key]),
            "share": proportion(len(groups[key]), sum(map(len, groups.values()))).model_dump(),
            "cases": sorted(numbers[case_id] for case_id in groups[key] if case_id in numbers),
        }
        for key, mode in FAILURE_MODES.items()
        if key in groups
    ]


def summary_rank_metrics(run: Run) -> tuple[list[str], dict[str, str]]:
    """Return the rank metrics of the run's summary, at its k, and why others cannot be computed."""
    from misslink.retrieval import parse_metric

    names, unmeasured = [], {}
    for name in summary_of(run).retrieval:
        try:
            names.append(str(parse_metric(name)))
        except InputError as unknown:  # of a plugin that is not installed here
            unmeasured[name] = unknown.problem
    return names, unmeasured


_SEPARATOR = "; "
# In the order in which they stand in the table; those that depend on the run follow.
_CASE_COLUMNS = ("number", "id", "question", "category", "tier")
_OUTCOME_COLUMNS = (
    *("retrieval", "answer", "correct", "failure", "owner", "also", "reason", "basis"),
    *("answer_text", "error", "latency_s"),
)
_TRACE_COLUMNS = ("retrieved",)
_CLAIM_COLUMNS = ("claims.supported", "claims.contradicted", "claims.unsupported")
_MISSED_FIELDS = ("passage_id", "grade", "true_rank", "status", "miss_type")
_VERDICT_FIELDS = ("status", "label", "probability")  # its value is that of the metric
_LABEL_FIELDS = ("share", "stands")


@exporters.register("csv", file="report.csv")
def write_csv(run: Run, path: Path) -> Path:
    """Write the cases of `run` as CSV, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written, or two cases or traces have the same id.
    """
    names = case_columns(run)
    rows = ([row.get(name) for name in names] for row in case_rows(run))
    write_csv_rows(path, names, rows)
    return path


def write_csv_rows(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table as CSV that a spreadsheet may open, whole or not at all."""
    # Half a surrogate pair, which a careless app may leave, is in no UTF-8 file.
    with (
        atomic_path(path) as part,
        part.open("w", encoding="utf-8", errors="replace", newline="") as file,
    ):
        out = csv.writer(file, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
        out.writerow(map(csv_cell, header))
        out.writerows(map(csv_cell, row) for row in rows)


def case_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Make one row a case, column to value, in the order of the gold set.

    Raises
    ------
    InputError
        Two cases or two traces have the same id.
    """
    return map(_flatten_record, iter_case_records(run))


def _flatten_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of `misslink.report.exports.case_records` as one row."""
    claims = record["claims"] or {}
    return {
        **{name: record[name] for name in (*_CASE_COLUMNS, *_OUTCOME_COLUMNS)},
        **{f"tags.{name}": tag for name, tag in record["tags"].items()},
        **{f"metrics.{name}": value for name, value in record["metrics"].items()},
        **{
            f"verdicts.{metric}.{field}": verdict[field]
            for metric, verdict in record["verdicts"].items()
            for field in _VERDICT_FIELDS
        },
        **{
            f"people.{metric}.{field}": label[field]
            for metric, label in record["people"].items()
            for field in _LABEL_FIELDS
        },
        **{name: claims.get(name.rpartition(".")[2]) for name in _CLAIM_COLUMNS},
        **{
            f"missed.{field}": [miss[field] for miss in record["missed"]]
            for field in _MISSED_FIELDS
        },
        **{name: record[name] for name in _TRACE_COLUMNS},
    }


def case_columns(run: Run) -> list[str]:
    """Return the columns of all rows of `run`, each kind together; every run has the others."""
    from misslink.pipeline.summary import metric_readings  # imports numpy

    case_ids = {case.id for case in run.cases}
    tags = dict.fromkeys(name for case in run.cases for name in case.tags)
    judged = dict.fromkeys(verdict.metric for verdict in run.verdicts)
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
    return [
        *_CASE_COLUMNS,
        *(f"tags.{name}" for name in tags),
        *_OUTCOME_COLUMNS,
        *(f"metrics.{name}" for name in numbers),
        *(f"verdicts.{metric}.{field}" for metric in judged for field in _VERDICT_FIELDS),
        *(f"people.{metric}.{field}" for metric in people for field in _LABEL_FIELDS),
        *_CLAIM_COLUMNS,
        *(f"missed.{field}" for field in _MISSED_FIELDS),
        *_TRACE_COLUMNS,
    ]


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


_BATCH_ROWS = 5_000  # rows in memory, and in a row group: some 10 MB
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
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = case_columns(run)
    fields = [pa.field(_valid_utf8(name), _column_type(name)) for name in names]
    schema = pa.schema(fields, metadata=_FILE_METADATA)
    with (
        atomic_path(path) as part,
        pq.ParquetWriter(part, schema, compression="zstd") as file,
    ):
        rows = case_rows(run)
        while some := list(islice(rows, _BATCH_ROWS)):
            arrays = [
                pa.array([_clean_value(row.get(name)) for row in some], field.type)
                for name, field in zip(names, fields, strict=True)
            ]
            file.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return path


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
