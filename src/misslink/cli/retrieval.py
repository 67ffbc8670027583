"""Command `misslink retrieval`: metrics, slices and comparisons of rankings."""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from misslink.cli import options as shared
from misslink.cli import output
from misslink.cli.options import option
from misslink.errors import InputError, known_names
from misslink.io.jsonl import SourceItem
from misslink.io.storage import read_bytes
from misslink.render.format import format_p_value, pluralize
from misslink.render.table import TextTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from misslink.retrieval.evaluate import RankScores
    from misslink.types import Estimate

_DEFAULT_METRICS = "hit@5,mrr,recall@5,precision@5,ndcg@5,ndcg@10,map,judged@10"
_MIN_JUDGED = 0.9  # of the first k; below it a warning follows
_DIGITS = 4  # what trec_eval prints
_NONE = "none"
_MINUS_SIGN = "\N{MINUS SIGN}"
_NO_GROUP = "not given"
_LEFT = ("metric", "95% interval", "difference [95%]", "")  # columns of text
# What the column of query ids is called; JSON Lines of questions call it id, BEIR's _id.
_QUERY_COLUMNS = ("query_id", "qid", "q_id", "topic_id", "case_id", "queryid", "topic", "_id", "id")
_NESTED_COLUMNS = ("tags", "metadata")  # objects whose fields count as columns too
_NO_ID_COLUMN = (
    "no column holds the query ids (call it query_id); name a file that has one with --queries"
)


def retrieval(
    qrels: Path = option(
        ...,
        "--qrels",
        "Relevance judgments: TREC qrels, BEIR, gold set, CSV or parquet.",
        show_default=False,
    ),
    runs: list[Path] = option(
        ..., "--run", "TREC run, traces, CSV or parquet; repeat to compare.", show_default=False
    ),
    metrics: str = option(
        _DEFAULT_METRICS, "--metrics", "Metrics, comma-separated, with any cutoff."
    ),
    relevance_level: int = option(1, "--relevance-level", "Lowest grade of a relevant document."),
    dedupe: str | None = option(
        None,
        "--dedupe",
        "Repeated documents: 'first' counts each at its first rank.",
        show_default="an error",
    ),
    by: str | None = option(None, "--by", "Column to slice the queries by, such as category."),
    cluster: str | None = option(
        None, "--cluster", "Column of dependent queries, such as their source document."
    ),
    queries: Path | None = option(
        None, "--queries", "File with these columns.", show_default="the qrels"
    ),
    bounds: bool = option(False, "--bounds", "Show bounds that allow for unjudged documents."),
    per_query: bool = option(False, "--per-query", "Print the values of every query."),
    seed: int = shared.SEED_OPTION,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Evaluate rankings against relevance judgments, as trec_eval does."""
    from misslink.retrieval.evaluate import evaluate_run
    from misslink.retrieval.metrics import parse_metric
    from misslink.retrieval.readers import open_qrels

    names = _run_names(runs)
    selected = list(
        dict.fromkeys(str(parse_metric(name)) for name in metrics.split(",") if name.strip())
    )
    if not selected:
        raise InputError("--metrics names no metric; name some, such as recall@5,ndcg@10")
    if queries is not None and by is None and cluster is None:
        raise InputError("--queries needs --by or --cluster, which name its column; add one")
    groups = {
        column: QueryGroups.read(queries or qrels, column) for column in (by, cluster) if column
    }
    slices, clusters = groups.get(by or ""), groups.get(cluster or "")
    judged: Any = open_qrels(qrels)
    all_metrics = list(dict.fromkeys([*selected, *judged_metric_names(selected)]))
    settings: Any = {"relevance_level": relevance_level, "dedupe": dedupe, "seed": seed}
    scores = {
        name: evaluate_run(judged, path, all_metrics, bounds=bounds, **settings)
        for name, path in zip(names, runs, strict=True)
    }
    results = {
        name: _run_document(run_scores, selected, slices, clusters, per_query=per_query)
        for name, run_scores in scores.items()
    }
    comparison = None
    if len(scores) > 1:
        comparison = _comparison_document(scores, selected, clusters, seed)
    if as_json:
        several = {"runs": results, "compare": comparison}
        output.print_json(several if comparison else results[names[0]])
    else:
        _print_results(results, comparison, per_query=per_query)


def _run_names(runs: Sequence[Path]) -> list[str]:
    """The file names of the runs, or their paths where two names are the same."""
    seen: dict[Path, Path] = {}
    for run in runs:
        if (before := seen.setdefault(run.resolve(), run)) is not run:
            raise InputError(f"this is the same run as {before}; name another one", path=run)
    if len(runs) > len(ascii_uppercase):
        raise InputError(f"{len(runs)} runs are too many; name up to {len(ascii_uppercase)}")
    names = [run.name for run in runs]
    return names if len(set(names)) == len(names) else [str(run) for run in runs]


@dataclass(frozen=True)
class QueryGroups:
    """A column of a query file, and its value for each query id."""

    column: str
    values: Mapping[str, str]

    @classmethod
    def read(cls, path: Path, column: str) -> QueryGroups:
        """Read one column of a gold set, JSON Lines, CSV, TSV or parquet."""
        if path.is_dir():
            path = path / "queries.jsonl"
        groups: dict[str, str] = {}
        columns: dict[str, None] = {}
        for item in _file_rows(path):
            row = item.data
            nested = [row.get(name) for name in _NESTED_COLUMNS]  # such as a gold set's tags
            fields = {
                **{k: v for part in nested if isinstance(part, Mapping) for k, v in part.items()},
                **row,
            }
            query = next((fields[name] for name in _QUERY_COLUMNS if name in fields), None)
            columns |= dict.fromkeys(fields)
            if query is None:
                raise item.error(_NO_ID_COLUMN)
            value = fields.get(column)
            if value is None or isinstance(value, dict | list):
                continue
            before = groups.setdefault(str(query), str(value))
            if before != str(value):
                problem = f"query '{query}' has two values, '{before}' and '{value}'; keep one"
                raise item.error(problem, column)
        if not groups:
            names = [name for name in columns if name not in (*_QUERY_COLUMNS, *_NESTED_COLUMNS)]
            hint = known_names(column, names) if names else "it has no other columns"
            raise InputError(
                f"no query has a value in a column '{column}'; {hint}. Name a file that has it with "
                "--queries",
                path=path,
            )
        return cls(column, groups)

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


def _file_rows(path: Path) -> Iterator[SourceItem]:
    from misslink.io.goldset import read_goldset
    from misslink.io.rows import read_rows

    head = read_bytes(path)[: 1 << 16].decode("utf-8-sig", "replace").lstrip()
    line = head.partition("\n")[0].strip()
    # TREC qrels have no column names, whatever their first line is.
    names = {field.strip(' "') for field in re.split(r"[\t,;]", line)}
    if line and not line.startswith(("{", "[", "PAR1")) and not names & set(_QUERY_COLUMNS):
        raise InputError(_NO_ID_COLUMN, path=path)
    rows = read_rows(path, "the queries")
    first = next(rows)
    if {"question", "query"} & set(first.data) and not set(_QUERY_COLUMNS) & set(first.data):
        # The gold set's reader makes ids for questions without one.
        gold = read_goldset(path)
        for case in gold.cases:
            fields = case.model_dump(include={"id", "category", "tier", "tags"}, exclude_none=True)
            yield SourceItem(fields, str(path), gold.item(case.id).number)
        return
    yield from (first, *rows)


def _run_document(
    scores: RankScores,
    metrics: Sequence[str],
    by: QueryGroups | None,
    cluster: QueryGroups | None,
    *,
    per_query: bool,
) -> dict[str, object]:
    """Metrics, counts and warnings of one run, and bounds, slices and queries.

    `scores` also has the metrics that `judged_metric_names` adds.
    """
    clusters = cluster.clusters(scores.queries) if cluster else None

    def means(names: Sequence[str], values: Any = None, inside: Any = None) -> dict[str, object]:
        values = scores.values if values is None else values
        return {name: _mean(scores, name, values, clusters, inside).model_dump() for name in names}

    document: dict[str, Any] = {
        "metrics": means(metrics),
        "counts": dict(scores.counts),
        "judged": means(judged_metric_names(metrics)),
    }
    if cluster:
        document["cluster"] = {"column": cluster.column, "clusters": len(set(clusters or ()))}
    if scores.lowest is not None:
        low, high = means(metrics, scores.lowest), means(metrics, scores.highest)
        document["bounds"] = {name: {"low": low[name], "high": high[name]} for name in metrics}
    if by:
        groups = by.members(scores.queries).items()
        slices = {
            group: {"n": len(places), "metrics": means(metrics, inside=places)}
            for group, places in groups
        }
        document["slices"] = {by.column: slices}
    document["warnings"] = _judgement_warnings(document)
    if per_query:
        document["per_query"] = {
            query: {name: values[name] for name in metrics}
            for query, values in scores.per_query().items()
        }
    return document


def _mean(
    scores: RankScores,
    name: str,
    values: NDArray[np.float64],
    clusters: Sequence[Hashable] | None,
    inside: Sequence[int] | None,
) -> Estimate:
    """Mean over the queries that have a value, of those that are `inside`."""
    import numpy as np

    from misslink.stats import mean
    from misslink.stats.clustered import clustered_mean
    from misslink.types import Estimate, Reason

    row = scores.names.index(name)
    indexes = np.flatnonzero(scores.known[row])
    if inside is not None:
        indexes = np.intersect1d(indexes, inside)
    if not len(indexes):
        return Estimate.missing(Reason(code="no_query_value"))
    listed = values[row, indexes].tolist()
    if clusters is None:
        return mean(listed, seed=scores.seed)
    return clustered_mean(listed, [clusters[i] for i in indexes.tolist()], seed=scores.seed)


def judged_metric_names(metrics: Sequence[str]) -> list[str]:
    """Return judged@k for 10 and every cutoff of the metrics.

    >>> judged_metric_names(["recall@5", "map", "ndcg@100", "recall@100"])
    ['judged@5', 'judged@10', 'judged@100']
    """
    from misslink.retrieval.metrics import parse_metric

    cutoffs = (getattr(parse_metric(name), "k", None) for name in metrics)
    return [f"judged@{k}" for k in sorted({10, *(k for k in cutoffs if isinstance(k, int))})]


def _comparison_document(
    runs: Mapping[str, RankScores], metrics: Sequence[str], cluster: QueryGroups | None, seed: int
) -> dict[str, object]:
    """Compare every further run with the first, in the form of `misslink compare --json`.

    Metrics about judgements alone (judged@k) are not tested.
    """
    from misslink.comparison.compare_runs import flipped_ids
    from misslink.retrieval.metrics import parse_metric
    from misslink.stats.run_comparison import compare_paired_runs

    parsed = {name: parse_metric(name) for name in metrics}
    tested = [name for name in metrics if not getattr(parsed[name], "about_judgements", False)]
    low = {name for name in tested if getattr(parsed[name], "better", "high") == "low"}
    names, first = list(runs), next(iter(runs.values()))
    values = [{name: _query_values(scores, name) for name in tested} for scores in runs.values()]
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


def _query_values(scores: RankScores, name: str) -> list[float | None]:
    """The value of each query, None where it has none."""
    values, known = (array.tolist() for array in scores.query_values(name))
    return [value if has_value else None for value, has_value in zip(values, known, strict=True)]


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


def _print_results(
    documents: Mapping[str, Mapping[str, Any]],
    comparison: Mapping[str, Any] | None,
    *,
    per_query: bool,
) -> None:
    for letter, (name, document) in zip(ascii_uppercase, documents.items(), strict=False):
        _print_run(f"{letter} {name}" if comparison else name, document)
        if per_query:  # separated by tabs, for other programs
            print("\t".join(["query", *document["metrics"]]))
            for query, values in document["per_query"].items():
                numbers = [_NONE if x is None else f"{x:.{_DIGITS}f}" for x in values.values()]
                shown = output.encodable(output.strip_control(query), sys.stdout.encoding)
                print("\t".join([shown, *numbers]))
    if comparison:
        for entry in comparison["comparisons"]:
            _print_comparison(comparison["a"], entry)


def _print_run(name: str, document: Mapping[str, Any]) -> None:
    """Print the metrics, counts, slices and warnings of a run."""
    output.print_line(name, "bold")
    bounds = document.get("bounds")
    rows = []
    for metric, mean in document["metrics"].items():
        ends = [bounds[metric][end] for end in ("low", "high")] if bounds else []
        rows.append((metric, *_mean_cells(mean), *map(_value, ends)))
    columns = ("metric", "mean", "95% interval", "n", *(("lowest", "highest") if bounds else ()))
    _print_numbers(columns, rows)
    output.print_lines(_count_sentences(document["counts"], document.get("cluster")))
    for metric, mean in document["metrics"].items():
        if mean["reason"]:
            output.print_line(f"{metric}: {mean['reason']}.")
    for column, groups in document.get("slices", {}).items():
        # One group below the other, metric by metric, so that they fit 80 columns.
        means = {
            metric: {group: entry["metrics"][metric] for group, entry in groups.items()}
            for metric in document["metrics"]
        }
        rows = [
            ("" if place else metric, group, *_mean_cells(mean))
            for metric, of_group in means.items()
            for place, (group, mean) in enumerate(of_group.items())
        ]
        table = TextTable(("metric", column, "mean", "95% interval", "n"), rows, ("mean", "n"))
        output.print_table(table)
        every = [mean for of_group in means.values() for mean in of_group.values()]
        reasons = [mean["reason"] for mean in every if mean["n"] and mean["low"] is None]
        for reason in dict.fromkeys(filter(None, reasons)):
            output.print_line(f"Without an interval: {reason}.")
    for text in document["warnings"]:
        output.print_line(f"Warning: {text}", "yellow")
    print()


def _print_comparison(name: str, comparison: Mapping[str, Any]) -> None:
    """Print a run compared with the first one, `name`: differences, tests and flipped queries."""
    letter = comparison["letter"]
    output.print_line(f"{letter} {comparison['b']} against A {name}", "bold")
    rows, tests = [], []
    for metric, row in comparison["metrics"].items():
        signed = _value(row["difference"], "+.3f")
        difference = f"{signed} {_interval(row['difference'], '.3f')}".rstrip()
        values = _value(row["a"]), _value(row["b"]), difference
        rows.append((metric, *values, _p(row["p_holm"]), _winner(row), f"{row['n']:,}"))
        if row["effect"]["value"] is None:
            continue
        mcnemar, detectable = row["mcnemar"], row["detectable"]
        p_values = (row["p"], row["t_test"]["p"], row["wilcoxon"]["p"], mcnemar and mcnemar["p"])
        shown = "not known" if detectable is None else "none"
        if detectable is not None and detectable <= 1:
            shown = f"{detectable:.3f}"
        tests.append((metric, *map(_p, p_values), _value(row["effect"], ".2f"), shown))
    columns = ("metric", "A", letter, "difference [95%]", "p Holm", "", "n")
    _print_numbers(columns, rows)
    columns = ("metric", "p", "t-test", "Wilcoxon", "McNemar", "d_z", "detectable")
    if _print_numbers(columns, tests):
        output.print_line(
            "p: randomization test (sign flips). Only 'p Holm' is corrected, over all metrics and "
            "runs. d_z: Cohen's effect size of paired differences. detectable: the difference that "
            "this many queries show in 4 of 5 repetitions."
        )
    for metric, flipped in comparison["flipped"].items():
        better, worse = len(flipped["better"]), len(flipped["worse"])
        if better or worse:
            output.print_line(f"{metric}: {better:,} queries better, {worse:,} worse.")
    print()


def _print_numbers(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    numbers = [name for name in columns if name not in _LEFT]
    return output.print_table(TextTable(columns, rows, numbers))


def _count_sentences(counts: Mapping[str, Any], cluster: Mapping[str, Any] | None) -> Iterator[str]:
    def queries(name: str) -> str:
        return pluralize(counts[name], "query", "queries")

    yield f"{queries('queries')} in the qrels, {counts['evaluated']:,} evaluated."
    sentences = {
        "without_relevant": "{} without a relevant document: only metrics of labels have a value.",
        "failed": "{} without retrieval in the trace, such as after an error: no value.",
        "missing_from_run": "{} missing from the run: counted as 0.",
        "not_in_qrels": "{} of the run not in the qrels: ignored.",
    }
    yield from (text.format(queries(name)) for name, text in sentences.items() if counts[name])
    share = counts["judged_at_10"]
    if share is not None:
        yield f"Of the first 10 documents {100 * share:.0f}% are judged."
    if cluster:
        yield f"Intervals resample the {cluster['clusters']:,} clusters of '{cluster['column']}'."


def _mean_cells(mean: Mapping[str, Any]) -> tuple[str, str, str]:
    return _value(mean), _interval(mean), f"{mean['n']:,}"


def _value(estimate: Mapping[str, Any], form: str = f".{_DIGITS}f") -> str:
    value = estimate["value"]
    return _NONE if value is None else format(value, form).replace("-", _MINUS_SIGN)


def _interval(estimate: Mapping[str, Any], form: str = f".{_DIGITS}f") -> str:
    if estimate["low"] is None or estimate["high"] is None:
        return ""
    ends = (format(estimate[end], form) for end in ("low", "high"))
    return f"[{', '.join(ends)}]".replace("-", _MINUS_SIGN)


def _p(p: float | None) -> str:
    return format_p_value(p).removeprefix("p = ").removeprefix("p ")


def _winner(row: Mapping[str, Any]) -> str:
    if row["winner"] is not None:
        return "better" if row["winner"] == "b" else "worse"
    if row["p"] is None:
        return _NONE
    same = row["difference"]["value"] == 0 and row["detectable"] is None
    return "same" if same else "chance"
