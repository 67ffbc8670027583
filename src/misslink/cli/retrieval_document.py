"""Metrics, slices and comparisons that `misslink retrieval` prints, as JSON documents."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError, known_names
from misslink.io.storage import parquet_error, read_bytes
from misslink.types import Estimate, Reason

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from misslink.retrieval.evaluate import RankScores
    from misslink.stats.intervals import MeanBand


# What the column of query ids is called; JSON Lines of questions call it id, BEIR's _id.
_QUERY_COLUMNS = ("query_id", "qid", "q_id", "topic_id", "case_id", "queryid", "topic", "_id", "id")
_NESTED_COLUMNS = ("tags", "metadata")  # objects whose fields count as columns too
_NO_ID_COLUMN = (
    "no column holds the query ids (call it query_id); name a file that has one with --queries"
)
Row = tuple[int | None, Mapping[str, Any]]


def read_groups(path: Path, column: str) -> dict[str, str]:
    """Map query ids to the values of one column of a gold set, JSON Lines, CSV, TSV or parquet."""
    if path.is_dir():
        path = path / "queries.jsonl"
    groups: dict[str, str] = {}
    columns: dict[str, None] = {}
    for line, row in _file_rows(path):
        nested = [row.get(name) for name in _NESTED_COLUMNS]  # such as a gold set's tags
        fields = {
            **{k: v for part in nested if isinstance(part, Mapping) for k, v in part.items()},
            **row,
        }
        query = next((fields[name] for name in _QUERY_COLUMNS if name in fields), None)
        columns |= dict.fromkeys(fields)
        if query is None:
            raise InputError(_NO_ID_COLUMN, path=path, line=line)
        value = fields.get(column)
        if value is None or isinstance(value, dict | list):
            continue
        before = groups.setdefault(str(query), str(value))
        if before != str(value):
            problem = f"query '{query}' has two values, '{before}' and '{value}'; keep one"
            raise InputError(problem, path=path, line=line, field=column)
    if not groups:
        names = [name for name in columns if name not in (*_QUERY_COLUMNS, *_NESTED_COLUMNS)]
        hint = known_names(column, names) if names else "it has no other columns"
        raise InputError(
            f"no query has a value in a column '{column}'; {hint}. Name a file that has it with "
            "--queries",
            path=path,
        )
    return groups


def _file_rows(path: Path) -> Iterator[Row]:
    from misslink.io.goldset import read_goldset
    from misslink.io.rows import read_rows

    if _is_parquet(path):
        yield from _parquet_rows(path)
        return
    head = read_bytes(path)[: 1 << 16].decode("utf-8-sig", "replace").lstrip()
    line = head.partition("\n")[0].strip()
    # TREC qrels have no column names, whatever their first line is.
    names = {field.strip(' "') for field in re.split(r"[\t,;]", line)}
    if line[:1] not in {"{", "["} and line and not names & set(_QUERY_COLUMNS):
        raise InputError(_NO_ID_COLUMN, path=path)
    rows = read_rows(path, "the queries")
    first = next(rows)
    if {"question", "query"} & set(first[1]) and not set(_QUERY_COLUMNS) & set(first[1]):
        # The gold set's reader makes ids for questions without one.
        gold = read_goldset(path)
        for case in gold.cases:
            fields = case.model_dump(include={"id", "category", "tier", "tags"}, exclude_none=True)
            yield gold.lines.get(case.id), fields
        return
    yield first
    yield from rows


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False  # reading it as text reports why


def _parquet_rows(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as opened:
            for batch in opened.iter_batches():
                for row in batch.to_pylist():
                    yield (
                        None,
                        {
                            name: value
                            for name, value in row.items()
                            if value is not None and value == value  # noqa: PLR0124 - not NaN
                        },
                    )
    except UnicodeDecodeError as problem:  # Arrow does not check what is declared as text
        byte = problem.object[problem.start]
        raise InputError(
            f"byte 0x{byte:02x} in a text is not UTF-8; write the file with valid text", path=path
        ) from None
    except (pa.ArrowException, OSError) as problem:
        raise parquet_error(problem, path) from None


CURVE_METRICS = ("recall", "precision", "ndcg")
CURVE_DEPTH = 100  # cut-offs of a curve
_MIN_JUDGED = 0.9  # of the first k; below it a warning follows
_NO_GROUP = "not given"


@dataclass(frozen=True)
class QueryGroups:
    """A column of a query file, and its value for each query id."""

    column: str
    values: Mapping[str, str]

    def clusters(self, queries: Sequence[str]) -> list[Hashable]:
        """The cluster of each query; a query without a value is its own cluster."""
        return [self.values.get(query, (index,)) for index, query in enumerate(queries)]

    def members(self, queries: Sequence[str]) -> dict[str, list[int]]:
        """Indexes of the queries of each group, sorted by name; those without a value come last."""
        groups: dict[str, list[int]] = {}
        ungrouped: list[int] = []
        for index, query in enumerate(queries):
            group = self.values.get(query)
            (ungrouped if group is None else groups.setdefault(group, [])).append(index)
        return {
            **{group: groups[group] for group in sorted(groups)},
            **({_NO_GROUP: ungrouped} if ungrouped else {}),
        }


def run_document(
    scores: RankScores,
    metrics: Sequence[str],
    *,
    by: QueryGroups | None = None,
    cluster: QueryGroups | None = None,
    per_query: bool = False,
) -> dict[str, Any]:
    """The JSON document of one run: metrics, counts, warnings, and bounds, slices and queries.

    `scores` also has the metrics that `judged_metric_names` adds.
    """
    clusters = cluster.clusters(scores.queries) if cluster else None
    document: dict[str, Any] = {
        "metrics": {name: _run_mean(scores, name, clusters).model_dump() for name in metrics},
        "counts": dict(scores.counts),
        "judged": {
            name: _run_mean(scores, name, clusters).model_dump()
            for name in judged_metric_names(metrics)
        },
    }
    if cluster:
        document["cluster"] = {"column": cluster.column, "clusters": len(set(clusters or ()))}
    if scores.lowest is not None and scores.highest is not None:
        document["bounds"] = {
            name: {
                end: _values_mean(
                    values[scores.names.index(name)], scores, name, clusters
                ).model_dump()
                for end, values in (("low", scores.lowest), ("high", scores.highest))
            }
            for name in metrics
        }
    if by:
        document["slices"] = {by.column: _slice_document(scores, metrics, by, clusters)}
    document["warnings"] = _judgement_warnings(document)
    if per_query:
        places = [scores.names.index(name) for name in metrics]
        rows = zip(*(_query_values(scores, row) for row in places), strict=True)
        document["per_query"] = {
            query: dict(zip(metrics, row, strict=True))
            for query, row in zip(scores.queries, rows, strict=True)
        }
    return document


def judged_metric_names(metrics: Sequence[str]) -> list[str]:
    """Return judged@k for 10 and every cutoff of the metrics.

    >>> judged_metric_names(["recall@5", "map", "ndcg@100", "recall@100"])
    ['judged@5', 'judged@10', 'judged@100']
    """
    from misslink.retrieval.metrics import parse_metric

    cutoffs = (getattr(parse_metric(name), "k", None) for name in metrics)
    return [f"judged@{k}" for k in sorted({10, *(k for k in cutoffs if isinstance(k, int))})]


def curve_metric_names() -> list[str]:
    """The metrics of the curves, computed in one pass over a run with the others."""
    return [f"{base}@{k}" for base in CURVE_METRICS for k in range(1, CURVE_DEPTH + 1)]


def metric_curves(scores: RankScores) -> dict[str, MeanBand]:
    """The means of each curve metric at every cutoff from 1."""
    import numpy as np

    from misslink.stats.intervals import mean_band

    curves = {}
    for base in CURVE_METRICS:
        places = [scores.names.index(f"{base}@{k}") for k in range(1, CURVE_DEPTH + 1)]
        known = np.logical_and.reduce(scores.known[places])
        curves[base] = mean_band(scores.values[np.ix_(places, known)])
    return curves


def comparison_document(
    runs: Mapping[str, RankScores],
    metrics: Sequence[str],
    *,
    cluster: QueryGroups | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare every further run with the first, in the form of `misslink compare --json`.

    Metrics about judgements alone (judged@k) are not tested.
    """
    from misslink.compare.compare_runs import flipped_ids
    from misslink.retrieval.metrics import parse_metric
    from misslink.stats.run_comparison import compare_paired_runs

    parsed = {name: parse_metric(name) for name in metrics}
    tested = [name for name in metrics if not getattr(parsed[name], "about_judgements", False)]
    low = {name for name in tested if getattr(parsed[name], "better", "high") == "low"}
    names, first = list(runs), next(iter(runs.values()))
    values = [
        {name: _query_values(scores, scores.names.index(name)) for name in tested}
        for scores in runs.values()
    ]
    clusters = cluster.clusters(first.queries) if cluster else None
    results = compare_paired_runs(values, seed=seed, lower_is_better=low, clusters=clusters)
    comparisons = []
    for place, metric_rows in enumerate(results, start=1):
        flips = {
            name: flipped_ids(
                first.queries, values[0][name], values[place][name], lower_is_better=name in low
            )
            for name in tested
        }
        comparisons.append(
            {
                "letter": ascii_uppercase[place],
                "b": names[place],
                "paired": first.counts["evaluated"],
                "metrics": metric_rows,
                "flipped": {
                    name: flipped for name, flipped in flips.items() if flipped is not None
                },
            }
        )
    top = comparisons[0] if len(comparisons) == 1 else {}
    return {"a": names[0], **top, "comparisons": comparisons}


def _judgement_warnings(document: Mapping[str, Any]) -> list[str]:
    """Warn where so few documents are judged that the metrics depend on it."""
    shares = [
        f"{100 * mean['value']:.0f}% of the first {name.partition('@')[2]}"
        for name, mean in document["judged"].items()
        if mean["value"] is not None and mean["value"] < _MIN_JUDGED
    ]
    if not shares:
        return []
    advice = "" if "bounds" in document else "; --bounds shows the possible range"
    return [f"Only {', '.join(shares)} are judged; unjudged documents count as irrelevant{advice}."]


def _slice_document(
    scores: RankScores, metrics: Sequence[str], by: QueryGroups, clusters: Sequence[Hashable] | None
) -> dict[str, Any]:
    import numpy as np

    slices = {}
    for group, places in by.members(scores.queries).items():
        inside = np.zeros(len(scores.queries), dtype=np.bool_)
        inside[places] = True
        slices[group] = {
            "n": len(places),
            "metrics": {
                name: _values_mean(
                    scores.query_values(name)[0], scores, name, clusters, inside=inside
                ).model_dump()
                for name in metrics
            },
        }
    return slices


def _run_mean(scores: RankScores, name: str, clusters: Sequence[Hashable] | None) -> Estimate:
    if clusters is None:
        return scores.mean(name)
    return _values_mean(scores.query_values(name)[0], scores, name, clusters)


def _values_mean(
    values: NDArray[np.float64],
    scores: RankScores,
    name: str,
    clusters: Sequence[Hashable] | None,
    *,
    inside: NDArray[np.bool_] | None = None,
) -> Estimate:
    """Mean over the queries that have a value, of those that are `inside`."""
    import numpy as np

    from misslink.stats import mean
    from misslink.stats.clustered import clustered_mean

    measured = scores.query_values(name)[1]
    indexes = np.flatnonzero(measured if inside is None else measured & inside)
    if not len(indexes):
        return Estimate.missing(Reason(code="no_query_value"))
    listed = values[indexes].tolist()
    if clusters is None:
        return mean(listed, seed=scores.seed)
    return clustered_mean(listed, [clusters[i] for i in indexes.tolist()], seed=scores.seed)


def _query_values(scores: RankScores, row: int) -> list[float | None]:
    """The value of each query, None where it has none."""
    values, known = scores.values[row].tolist(), scores.known[row].tolist()
    return [value if has_value else None for value, has_value in zip(values, known, strict=True)]
