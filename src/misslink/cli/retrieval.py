"""misslink retrieval: level 1 by itself, of runs that a search engine wrote out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.options import AS_JSON
from misslink.cli.output import print_json
from misslink.cli.writing import check_place
from misslink.errors import InputError

if TYPE_CHECKING:
    from misslink.cli.retrieval_document import Groups
    from misslink.files.goldset import GoldSet
    from misslink.report.rank_plot import Chart
    from misslink.retrieval.qrels import Judgements
    from misslink.retrieval.rank_scores import RankScores
    from misslink.stats.bands import Band

__all__ = ["retrieval"]

_METRICS = "hit@5,mrr,recall@5,precision@5,ndcg@5,ndcg@10,map,judged@10"
_DRAWN = 8  # lines that a chart can tell apart


def retrieval(
    qrels: Path = typer.Option(
        ...,
        "--qrels",
        help="What is relevant: TREC qrels, a BEIR folder, a gold set, CSV, parquet.",
        show_default=False,
    ),
    runs: list[Path] = typer.Option(
        ...,
        "--run",
        help="What was retrieved: a TREC run, traces, CSV, parquet. Repeat it to compare runs with "
        "the first.",
        show_default=False,
    ),
    metrics: str = typer.Option(
        _METRICS, "--metrics", help="Between commas, with any cut-off, such as recall@5,ndcg@10."
    ),
    relevance_level: int = typer.Option(
        1, "--relevance-level", help="Grade from which a document is relevant."
    ),
    dedupe: str | None = typer.Option(
        None,
        "--dedupe",
        help="'first': a document that stands twice in a ranking counts where it is ranked first.",
        show_default="an error",
    ),
    by: str | None = typer.Option(
        None, "--by", help="Column to slice the queries by, such as category."
    ),
    cluster: str | None = typer.Option(
        None,
        "--cluster",
        help="Column whose queries are not independent, such as the document they are about.",
    ),
    queries: Path | None = typer.Option(
        None, "--queries", help="File with these columns.", show_default="the qrels"
    ),
    bounds: bool = typer.Option(
        False, "--bounds", help="Show what is left open by documents that nobody judged."
    ),
    per_query: bool = typer.Option(False, "--per-query", help="Tell the values of every query."),
    curve: bool = typer.Option(
        False, "--curve", help="Draw recall, precision and nDCG at every cut-off up to 100."
    ),
    plot: Path | None = typer.Option(None, "--plot", help="Write this drawing here, as SVG."),
    seed: int = typer.Option(0, "--seed", min=0, help="Of the intervals and tests."),
    as_json: bool = AS_JSON,
) -> None:
    """Score rankings against judgements, exactly as trec_eval does; it asks no model."""
    from misslink.cli.retrieval_document import compared, document_of, judged_names
    from misslink.retrieval.opening import open_qrels

    names = _names(runs)
    wanted = _wanted(metrics)
    if plot is not None:
        _check_plot(plot, (qrels, *runs, *([queries] if queries else [])))
    if queries is not None and by is None and cluster is None:
        raise InputError("--queries says which column only with --by or --cluster; add one of them")
    drawn = curve or plot is not None
    groups = {
        column: _groups(column, queries or qrels) for column in (by, cluster) if column is not None
    }
    judged, given = open_qrels(qrels), dict(zip(names, runs, strict=True))
    options = {"relevance_level": relevance_level, "dedupe": dedupe, "seed": seed}
    of_curve = _of_curve() if drawn else []
    scored = dict.fromkeys([*wanted, *judged_names(wanted), *(() if bounds else of_curve)])
    scores = _scored(judged, given, list(scored), {**options, "bounds": bounds})
    # Bounds take many passes over the hits, which no curve shows: then it is scored by itself.
    of_curves = _scored(judged, given, of_curve, options) if drawn and bounds else scores
    documents = {
        name: document_of(
            own,
            wanted,
            by=groups.get(by or ""),
            cluster=groups.get(cluster or ""),
            per_query=per_query,
        )
        for name, own in scores.items()
    }
    charts = _curves(of_curves, documents) if drawn else []
    comparison = (
        compared(scores, wanted, cluster=groups.get(cluster or ""), seed=seed)
        if len(scores) > 1
        else None
    )
    if plot is not None:
        _draw(charts, plot)
    if as_json:
        several = {"runs": documents, "compare": comparison}
        document = several if comparison else documents[names[0]]
        print_json({**document, **({"plot": str(plot)} if plot else {})})
    else:
        _print(documents, comparison, charts if curve else [], per_query=per_query)
        if plot is not None:
            print(plot)


def _names(runs: Sequence[Path]) -> list[str]:
    """What the runs are called: the names of their files, or all of their paths."""
    seen: dict[Path, Path] = {}
    for run in runs:
        if (before := seen.setdefault(run.resolve(), run)) is not run:
            raise InputError(f"this is the same run as {before}; name another one", path=run)
    if len(runs) > len(ascii_uppercase):
        raise InputError(f"{len(runs)} runs are too many; name up to {len(ascii_uppercase)}")
    names = [run.name for run in runs]
    return names if len(set(names)) == len(names) else [str(run) for run in runs]


def _wanted(metrics: str) -> list[str]:
    """The metrics by their own names, each once."""
    from misslink.retrieval.metrics import parse

    wanted = [str(parse(name)) for name in metrics.split(",") if name.strip()]
    if not wanted:
        raise InputError("--metrics names no metric; name some, such as recall@5,ndcg@10")
    return list(dict.fromkeys(wanted))


def _check_plot(plot: Path, read: Sequence[Path]) -> None:
    if plot.suffix.lower() != ".svg":
        raise InputError(
            "the drawing is SVG, which every browser shows and turns into PNG; name a file ending "
            "in .svg",
            path=plot,
        )
    if plot.resolve() in {path.resolve() for path in read}:
        raise InputError("this file is read; name another one with --plot", path=plot)
    check_place(plot, "--plot")


def _groups(column: str, path: Path) -> Groups:
    from misslink.cli.retrieval_document import Groups
    from misslink.cli.retrieval_groups import read_groups

    return Groups(column, read_groups(path, column))


def _of_curve() -> list[str]:
    """The metrics of the curve, scored in one pass over the run together with the others."""
    from misslink.cli.retrieval_document import CURVES, DEPTH

    return [f"{base}@{k}" for base in CURVES for k in range(1, DEPTH + 1)]


def _scored(
    judged: Judgements | GoldSet,
    runs: Mapping[str, Path],
    metrics: Sequence[str],
    options: Mapping[str, Any],
) -> dict[str, RankScores]:
    """Score each run by qrels that were read once."""
    from misslink.retrieval.ranking import rank

    return {name: rank(judged, run, metrics, **options) for name, run in runs.items()}


def _curves(
    scores: Mapping[str, RankScores], documents: Mapping[str, dict[str, Any]]
) -> list[Chart]:
    """Enter the curve of each run into its document, and lay them out as charts."""
    from misslink.cli.retrieval_document import CURVES, curves
    from misslink.report.rank_plot import Chart, Line

    bands: dict[str, dict[str, Band]] = {name: curves(own) for name, own in scores.items()}
    for name, of_run in bands.items():
        documents[name]["curve"] = {
            base: {"value": band.value, "low": band.low, "high": band.high, "n": band.n}
            for base, band in of_run.items()
        }
    if len(bands) == 1:
        [(name, of_run)] = bands.items()
        lines = tuple(Line(f"{base}@k", of_run[base]) for base in CURVES)
        return [Chart(f"{name} by cut-off k", lines)]
    shown = list(bands)[:_DRAWN]
    rest = f" (the first {_DRAWN} runs)" if len(bands) > _DRAWN else ""
    return [
        Chart(f"{base}@k{rest}", tuple(Line(name, bands[name][base]) for name in shown))
        for base in CURVES
    ]


def _draw(charts: Sequence[Chart], path: Path) -> None:
    from misslink.files.whole import put
    from misslink.report.rank_plot import svg

    put(svg(charts), path)


def _print(
    documents: Mapping[str, Mapping[str, Any]],
    comparison: Mapping[str, Any] | None,
    charts: Sequence[Chart],
    *,
    per_query: bool,
) -> None:
    from rich.console import Console

    from misslink.cli.retrieval_table import (
        print_chart,
        print_comparison,
        print_per_query,
        print_run,
    )

    console = Console()
    for letter, (name, document) in zip(ascii_uppercase, documents.items(), strict=False):
        print_run(console, f"{letter} {name}" if comparison else name, document)
        if per_query:
            print_per_query(console, document)
    for one in comparison["comparisons"] if comparison else ():
        print_comparison(console, comparison or {}, one)
    for chart in charts:
        print_chart(console, chart)
