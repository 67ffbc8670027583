"""Command `misslink retrieval`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from misslink.cli import options as shared
from misslink.cli.options import option
from misslink.cli.output import (
    check_output_path,
    encodable,
    print_json,
    print_line,
    print_table,
    strip_control,
)
from misslink.errors import InputError
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.io.goldset import GoldSet
    from misslink.render.line_chart import LineChart
    from misslink.retrieval.evaluate import RankScores
    from misslink.retrieval.qrels import Qrels


_DIGITS = 4  # what trec_eval prints
_NONE = "none"


_LEFT = ("metric", "95% interval", "difference [95%]", "")


def print_run_metrics(name: str, document: Mapping[str, Any]) -> None:
    """Print a run, as `run_document` makes it: metrics, counts, slices and warnings."""
    print_line(name, "bold")
    bounds = document.get("bounds")
    rows = []
    for metric, mean in document["metrics"].items():
        ends = [bounds[metric][end] for end in ("low", "high")] if bounds else []
        rows.append((metric, *_mean_cells(mean), *map(_format_estimate, ends)))
    columns = ("metric", "mean", "95% interval", "n", *(("lowest", "highest") if bounds else ()))
    _print_numbers(columns, rows)
    for text in _count_sentences(document):
        print_line(text)
    for metric, mean in document["metrics"].items():
        if mean["reason"]:
            print_line(f"{metric}: {mean['reason']}.")
    for column, groups in document.get("slices", {}).items():
        _print_slices(column, groups)
    for text in document["warnings"]:
        print_line(f"Warning: {text}", "yellow")
    print()


def print_per_query(document: Mapping[str, Any]) -> None:
    """Print every value, separated by tabs, for other programs."""
    metrics = list(document["metrics"])
    print("\t".join(["query", *metrics]))
    for query, values in document["per_query"].items():
        numbers = (_NONE if values[name] is None else f"{values[name]:.4f}" for name in metrics)
        print("\t".join([encodable(strip_control(query), sys.stdout.encoding), *numbers]))


def print_comparison(name: str, comparison: Mapping[str, Any]) -> None:
    """Print a run compared with the first one, `name`: differences, tests and flipped queries."""
    letter = comparison["letter"]
    print_line(f"{letter} {comparison['b']} against A {name}", "bold")
    rows, tests = [], []
    for metric, row in comparison["metrics"].items():
        difference = row["difference"]
        signed = f"{_format_signed(difference)} {_format_interval(difference, digits=3)}".rstrip()
        rows.append(
            (
                *(metric, _format_estimate(row["a"]), _format_estimate(row["b"]), signed),
                *(_format_p(row["p_holm"]), _format_winner(row), f"{row['n']:,}"),
            )
        )
        mcnemar, effect = row["mcnemar"], row["effect"]["value"]
        p_values = (row["p"], row["t_test"]["p"], row["wilcoxon"]["p"], mcnemar and mcnemar["p"])
        if effect is not None:
            size = _true_minus(f"{effect:.2f}")
            detectable = _format_detectable(row["detectable"])
            tests.append((metric, *map(_format_p, p_values), size, detectable))
    columns = ("metric", "A", letter, "difference [95%]", "p Holm", "", "n")
    _print_numbers(columns, rows)
    columns = ("metric", "p", "t-test", "Wilcoxon", "McNemar", "d_z", "detectable")
    if _print_numbers(columns, tests):
        print_line(
            "p is of the randomisation test (sign flips). It and the tests beside it are not "
            "corrected; p Holm is, over all metrics and runs. d_z is Cohen's, of paired "
            "differences. Detectable: what so many queries show in 4 of 5 repetitions.",
        )
    for metric, flipped in comparison["flipped"].items():
        better, worse = len(flipped["better"]), len(flipped["worse"])
        if better or worse:
            print_line(f"{metric}: {better:,} queries better, {worse:,} worse.")
    print()


def _print_numbers(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    numbers = [name for name in columns if name not in _LEFT]
    return print_table(TextTable(columns, rows, numbers))


def _print_slices(column: str, groups: Mapping[str, Any]) -> None:
    """One group below the other, metric by metric, so that they fit 80 columns."""
    rows = []
    for metric in next(iter(groups.values()))["metrics"]:
        for place, (group, entry) in enumerate(groups.items()):
            rows.append(("" if place else metric, group, *_mean_cells(entry["metrics"][metric])))
    columns = ("metric", column, "mean", "95% interval", "n")
    print_table(TextTable(columns, rows, ("mean", "n")))
    means = [mean for entry in groups.values() for mean in entry["metrics"].values()]
    reasons = [mean["reason"] for mean in means if mean["n"] and mean["low"] is None]
    for reason in dict.fromkeys(filter(None, reasons)):
        print_line(f"Without an interval: {reason}.")


def _mean_cells(mean: Mapping[str, Any]) -> tuple[str, str, str]:
    return _format_estimate(mean), _format_interval(mean), f"{mean['n']:,}"


def _count_sentences(document: Mapping[str, Any]) -> list[str]:
    counts = document["counts"]
    lines = [f"{_query_count(counts['queries'])} in the qrels, {counts['evaluated']:,} evaluated."]
    sentences = {
        "without_relevant": "{} without a relevant document: only judged@k has a value.",
        "failed": "{} without retrieval in the trace, such as after an error: no value.",
        "missing_from_run": "{} missing from the run: counted as 0.",
        "not_in_qrels": "{} of the run not in the qrels: ignored.",
    }
    lines += [
        text.format(_query_count(counts[key])) for key, text in sentences.items() if counts[key]
    ]
    share = counts["judged_at_10"]
    if share is not None:
        lines.append(f"Of the first 10 documents {100 * share:.0f}% are judged.")
    if cluster := document.get("cluster"):
        lines.append(
            f"Intervals resample the {cluster['clusters']:,} clusters of '{cluster['column']}'."
        )
    return lines


def _query_count(count: int) -> str:
    return f"{count:,} {'query' if count == 1 else 'queries'}"


def _format_estimate(estimate: Mapping[str, Any]) -> str:
    return _NONE if estimate["value"] is None else f"{estimate['value']:.{_DIGITS}f}"


def _format_signed(estimate: Mapping[str, Any]) -> str:
    return _NONE if estimate["value"] is None else _true_minus(f"{estimate['value']:+.3f}")


def _format_interval(estimate: Mapping[str, Any], *, digits: int = _DIGITS) -> str:
    if estimate["low"] is None or estimate["high"] is None:
        return ""
    return _true_minus(f"[{estimate['low']:.{digits}f}, {estimate['high']:.{digits}f}]")


def _true_minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def _format_p(p: float | None) -> str:
    from misslink.render.format import format_p_value

    return "" if p is None else format_p_value(p).removeprefix("p = ").removeprefix("p ")


def _format_winner(row: Mapping[str, Any]) -> str:
    if row["winner"] is not None:
        return "better" if row["winner"] == "b" else "worse"
    if row["p"] is None:
        return _NONE
    same = row["difference"]["value"] == 0 and row["detectable"] is None
    return "same" if same else "chance"


def _format_detectable(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:.3f}" if value <= 1 else "none"


_DEFAULT_METRICS = "hit@5,mrr,recall@5,precision@5,ndcg@5,ndcg@10,map,judged@10"
_DRAWN = 8  # lines that a chart can tell apart


def retrieval(
    qrels: Path = option(
        ...,
        "--qrels",
        "Relevance judgements: TREC qrels, BEIR, gold set, CSV or parquet.",
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
        "Write 'first' to count a repeated document at its first rank.",
        show_default="an error",
    ),
    by: str | None = option(None, "--by", "Column to slice the queries by, such as category."),
    cluster: str | None = option(
        None, "--cluster", "Column of dependent queries, such as their source document."
    ),
    queries: Path | None = option(
        None, "--queries", "File with these columns.", show_default="the qrels"
    ),
    bounds: bool = option(False, "--bounds", "Show the bounds given unjudged documents."),
    per_query: bool = option(False, "--per-query", "Print the values of every query."),
    curve: bool = option(False, "--curve", "Plot recall, precision and nDCG up to cutoff 100."),
    plot: Path | None = option(None, "--plot", "SVG file to write the plot to."),
    seed: int = shared.SEED_OPTION,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Evaluate rankings against relevance judgements, as trec_eval does."""
    from misslink.cli import retrieval_document as documents
    from misslink.retrieval.evaluate import evaluate_run
    from misslink.retrieval.readers import open_qrels

    names = _run_names(runs)
    selected = _metric_names(metrics)
    if plot is not None:
        _check_plot(plot, (qrels, *runs, *([queries] if queries else [])))
    if queries is not None and by is None and cluster is None:
        raise InputError("--queries needs --by or --cluster, which name its column; add one")
    groups = {
        column: documents.QueryGroups(column, documents.read_groups(queries or qrels, column))
        for column in (by, cluster)
        if column is not None
    }
    judged: Qrels | GoldSet = open_qrels(qrels)
    paths = dict(zip(names, runs, strict=True))

    def evaluate(metrics: Sequence[str], *, bounds: bool) -> dict[str, RankScores]:
        settings: dict[str, Any] = {
            "relevance_level": relevance_level,
            "dedupe": dedupe,
            "seed": seed,
        }
        return {
            name: evaluate_run(judged, path, metrics, bounds=bounds, **settings)
            for name, path in paths.items()
        }

    curve_metrics = documents.curve_metric_names() if curve or plot else []
    # Bounds take many passes over the hits, which no curve shows: then it is computed by itself.
    together = () if bounds else curve_metrics
    all_metrics = dict.fromkeys([*selected, *documents.judged_metric_names(selected), *together])
    scores = evaluate(list(all_metrics), bounds=bounds)
    results = {
        name: documents.run_document(
            run_scores,
            selected,
            by=groups.get(by or ""),
            cluster=groups.get(cluster or ""),
            per_query=per_query,
        )
        for name, run_scores in scores.items()
    }
    charts = []
    if curve_metrics:
        curve_scores = evaluate(curve_metrics, bounds=False) if bounds else scores
        charts = _curves(curve_scores, results)
    comparison = None
    if len(scores) > 1:
        by_cluster = groups.get(cluster or "")
        comparison = documents.comparison_document(scores, selected, cluster=by_cluster, seed=seed)
    if plot is not None:
        _draw_chart(charts, plot)
    if as_json:
        several = {"runs": results, "compare": comparison}
        document = several if comparison else results[names[0]]
        print_json({**document, **({"plot": str(plot)} if plot else {})})
    else:
        _print_results(results, comparison, charts if curve else [], per_query=per_query)
        if plot is not None:
            print(plot)


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


def _metric_names(metrics: str) -> list[str]:
    """The normalized names of the metrics, each once."""
    from misslink.retrieval.metrics import parse_metric

    names = [str(parse_metric(name)) for name in metrics.split(",") if name.strip()]
    if not names:
        raise InputError("--metrics names no metric; name some, such as recall@5,ndcg@10")
    return list(dict.fromkeys(names))


def _check_plot(plot: Path, read: Sequence[Path]) -> None:
    if plot.suffix.lower() != ".svg":
        raise InputError(
            "the plot is an SVG; name a file that ends in .svg",
            path=plot,
        )
    if plot.resolve() in {path.resolve() for path in read}:
        raise InputError("this file is read; name another one with --plot", path=plot)
    check_output_path(plot, "--plot")


def _curves(
    scores: Mapping[str, RankScores], documents: Mapping[str, dict[str, Any]]
) -> list[LineChart]:
    """Add the curves of each run to its document, and return the charts."""
    from misslink.cli.retrieval_document import CURVE_METRICS, metric_curves
    from misslink.render.line_chart import ChartLine, LineChart

    bands = {name: metric_curves(run_scores) for name, run_scores in scores.items()}
    for name, curves in bands.items():
        documents[name]["curve"] = {
            base: {"value": band.value, "low": band.low, "high": band.high, "n": band.n}
            for base, band in curves.items()
        }
    if len(bands) == 1:
        [(name, curves)] = bands.items()
        lines = tuple(ChartLine(f"{base}@k", curves[base]) for base in CURVE_METRICS)
        return [LineChart(f"{name} by cutoff k", lines)]
    drawn = list(bands)[:_DRAWN]
    rest = f" (the first {_DRAWN} runs)" if len(bands) > _DRAWN else ""
    return [
        LineChart(f"{base}@k{rest}", tuple(ChartLine(name, bands[name][base]) for name in drawn))
        for base in CURVE_METRICS
    ]


def _draw_chart(charts: Sequence[LineChart], path: Path) -> None:
    from misslink.io.atomic import atomic_write
    from misslink.render.line_chart import render_svg

    atomic_write(render_svg(charts), path)


def _print_results(
    documents: Mapping[str, Mapping[str, Any]],
    comparison: Mapping[str, Any] | None,
    charts: Sequence[LineChart],
    *,
    per_query: bool,
) -> None:
    from misslink.render.line_chart import render_characters

    for letter, (name, document) in zip(ascii_uppercase, documents.items(), strict=False):
        print_run_metrics(f"{letter} {name}" if comparison else name, document)
        if per_query:
            print_per_query(document)
    for entry in comparison["comparisons"] if comparison else ():
        print_comparison(comparison["a"] if comparison else "", entry)
    for chart in charts:
        for line in render_characters(chart, encoding=sys.stdout.encoding):
            print_line(line)
        print()
