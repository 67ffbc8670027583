"""misslink goldset pool and pool-apply: draw passages to grade, and merge the grades."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli import options, output
from misslink.errors import InputError
from misslink.event_loops import run_async
from misslink.goldset.cli.options import OUT_OPTION
from misslink.render.format import pluralize

if TYPE_CHECKING:
    from misslink.goldset.pooling.pool import GradingPool
    from misslink.goldset.pooling.rankings import RetrieverRankings
    from misslink.judge.config import JudgeConfig


_SHOWN_ITEMS = 5
_LARGE_COUNT = 100


@options.with_judge_options(*options.CHECK_OPTIONS)
def pool_command(
    goldset: Path = options.option(
        ..., "--goldset", "Gold set: file, folder, glob pattern or URL."
    ),
    corpus: str = options.field_option("corpus", default=..., show_default=False),
    out: Path = options.option(..., "--out", "Folder of the pool."),
    run: list[str] = options.option([], "--run", "Run file of a retriever; repeatable."),
    retriever: list[str] = options.option(
        [], "--retriever", "Live retriever, module:attribute; repeatable."
    ),
    depth: int = options.option(10, "--depth", "Passages of each retriever to pool.", min=1),
    random: int = options.option(
        5, "--random", "Other passages to grade per question, drawn from all.", min=0
    ),
    stratified: int = options.option(
        10, "--stratified", "Other passages to grade per question, drawn from rank bands.", min=0
    ),
    embedding: str | None = options.option(
        None, "--embedding", "Embedding for rank bands, such as minilm.", show_default="BM25"
    ),
    seed: int = options.SEED_OPTION,
    rejudge: bool = options.option(
        False, "--rejudge", "Also grade passages that the gold set grades already."
    ),
    id_key: str | None = options.field_option("id_key"),
    prelabel: str | None = options.option(
        None, "--prelabel", "Judge that grades all items too, hidden from annotators."
    ),
    cache: Path | None = options.CACHE_OPTION,
    concurrency: int = options.CONCURRENCY_OPTION,
    *,
    given: options.JudgeOptions,
    as_json: bool = options.JSON_OPTION,
) -> None:
    """Draw a pool to grade: the best of several retrievers, and a sample of other passages.

    misslink annotate POOL  opens it, blind to retrievers and ranks.  misslink goldset pool-apply
    POOL  merges the grades into the gold set and estimates each retriever's recall.
    """
    from misslink.capture import load_app
    from misslink.embedding import open_embedder
    from misslink.goldset.pooling.pool import check_pool_folder, make_pool, write_pool
    from misslink.goldset.pooling.rankings import (
        PassageRanking,
        query_retriever,
        read_rankings,
        retriever_names,
    )
    from misslink.io.corpus import read_corpus
    from misslink.io.goldset import read_goldset
    from misslink.judge.config import JudgeConfig

    config = JudgeConfig(**given)
    if not run and not retriever:
        raise InputError("No retriever is given. Add --run FILE or --retriever module:attribute.")
    if prelabel is not None and prelabel.partition(":")[0] in {"heuristic", "none"}:
        raise InputError(
            f"The judge '{prelabel}' cannot grade passages. Name a model: --prelabel openai:MODEL."
        )
    names = retriever_names([*run, *retriever])
    check_pool_folder(out)
    gold, passages = read_goldset(goldset), read_corpus(corpus)
    ids = {case.id for case in gold.cases}
    rankings = [
        read_rankings(path, name, ids, depth) for path, name in zip(run, names, strict=False)
    ]
    with output.interruptible("the same command continues"), output.redirect_app_stdout():
        apps = [load_app(spec) for spec in retriever]
        with output.progress_bars() as progress:
            for app, name in zip(apps, names[len(run) :], strict=True):
                query = partial(
                    query_retriever,
                    app,
                    name,
                    gold.cases,
                    depth,
                    id_key=id_key,
                    concurrency=concurrency,
                    progress=lambda done, total: progress("app", done, total),
                )
                rankings.append(run_async(query))
        texts = [passage.text for passage in passages]
        questions = list(dict.fromkeys(case.question for case in gold.cases))
        embedder = None if embedding is None else open_embedder(embedding)
        with nullcontext() if embedder is None else closing(embedder):
            ranking = PassageRanking(texts, embedder, questions)
        pool = make_pool(
            gold,
            passages,
            rankings,
            ranking,
            depth=depth,
            random=random,
            stratified=stratified,
            seed=seed,
            rejudge=rejudge,
            inputs=_input_names(goldset, corpus, rankings),
        )
        document = _pool_document(pool, out) | {"written": write_pool(pool, out)}
        document["prelabels"] = (
            None
            if prelabel is None
            else run_async(lambda: _prelabel(pool, out, prelabel, cache, concurrency, config))
        )
    output.print_result(document, _print_pool, as_json=as_json)


def _input_names(goldset: Path, corpus: str, rankings: list[RetrieverRankings]) -> dict[str, str]:
    from misslink.io.manifest import display_path

    kind, _, folder = corpus.partition(":")
    source = f"{kind}:{display_path(folder)}" if folder and kind == "chroma" else None
    runs = {f"retriever {run.name}": display_path(run.source) for run in rankings}
    return {"goldset": display_path(goldset), "corpus": source or display_path(corpus), **runs}


async def _prelabel(
    pool: GradingPool,
    out: Path,
    spec: str,
    cache: Path | None,
    concurrency: int,
    config: JudgeConfig,
) -> dict[str, Any]:
    from misslink.goldset.pooling.grades import prelabel_pool, write_prelabels
    from misslink.judge.prompts import Prompts
    from misslink.judge.session import open_needed_judge

    session = open_needed_judge(spec, cache=cache, concurrency=concurrency, terms=config)
    async with session as judge:
        with output.progress_bars() as progress:
            grades = await prelabel_pool(
                pool,
                judge,
                prompts=Prompts.from_spec(config.prompts),
                progress=lambda done, total: progress("judge", done, total),
            )
        write_prelabels(out, grades)
        failed = sum(grade.grade is None for grade in grades)
        return {
            "judge": judge.name,
            "labelled": len(grades) - failed,
            "failed": failed,
            "usage": judge.usage().document(),
        }


def _pool_document(pool: GradingPool, out: Path) -> dict[str, Any]:
    from dataclasses import asdict

    pooled = sum(item.stratum == 1 for item in pool.items)
    return {
        "pool": str(out),
        "questions": len(pool.goldset.cases),
        "corpus": pool.corpus,
        "items": len(pool.items),
        "pooled": pooled,
        "outside": len(pool.items) - pooled,
        "known": sum(strata[0].size for strata in pool.strata.values()),
        "depth": pool.depth,
        "random": pool.random,
        "stratified": pool.stratified,
        "seed": pool.seed,
        "bands_by": pool.bands_by,
        "retrievers": {name: len(ranked) for name, ranked in pool.rankings.items()},
        "strata": {
            case: [asdict(stratum) for stratum in strata] for case, strata in pool.strata.items()
        },
    }


def _print_pool(document: Mapping[str, Any]) -> None:

    state = "drawn" if document["written"] else "unchanged"
    lines = [
        f"Pool {state} in {document['pool']}: {document['items']} passages to grade.",
        (
            f"{document['pooled']} are among the best {document['depth']} of a retriever, "
            f"{document['outside']} are a sample of the others; {document['known']} have a grade."
        ),
    ]
    for name, cases in document["retrievers"].items():
        if cases < document["questions"]:
            lines.append(f"{name} has no ranking for {document['questions'] - cases} questions.")
    if judged := document["prelabels"]:
        lines.append(
            f"{judged['judge']} graded {judged['labelled']} and failed {judged['failed']}."
        )
    lines.append(f"Next:  misslink annotate {shlex.quote(document['pool'])}")
    for line in lines:
        output.print_line(line)


def from_run_command(
    run: Path = typer.Argument(..., help="Evaluation, also one without labels."),
    out: Path = options.option(..., "--out", "Folder of the pool."),
    as_json: bool = options.JSON_OPTION,
) -> None:
    """Draw a pool to grade from an evaluation, to make a first gold set of it.

    The passages that a search found for failed answers come first, then those in the prompts.

    misslink annotate POOL  opens it; stop at any time.  misslink goldset pool-apply POOL  writes
    the gold set.
    """
    from misslink.documents import cutoff_of
    from misslink.goldset.pooling.pool import pool_from_run, write_pool
    from misslink.io import read_complete_run
    from misslink.io.manifest import display_path

    evaluation = read_complete_run(run)
    pool = pool_from_run(evaluation, cutoff_of(evaluation), display_path(run))
    written = write_pool(pool, out)
    found = sum(len(link.missed) for link in evaluation.links if link.basis == "inferred")
    document = {"pool": str(out), "items": len(pool.items), "inferred": found, "written": written}
    output.print_result(document, _print_first_pool, as_json=as_json)


def _print_first_pool(document: Mapping[str, Any]) -> None:
    state = "drawn" if document["written"] else "unchanged"
    output.print_line(
        f"Pool {state} in {document['pool']}: {document['items']} passages to grade, first "
        f"{document['inferred']} that a search found."
    )
    output.print_line(f"Next:  misslink annotate {shlex.quote(document['pool'])}")


def pool_apply_command(
    pool: Path = typer.Argument(..., help="A graded pool."),
    out: Path = OUT_OPTION,
    accept_prelabels: bool = options.option(
        False, "--accept-prelabels", "Use the judge's grade where no annotator's is resolved."
    ),
    relevance_level: int = options.option(
        1, "--relevance-level", "Lowest grade that is relevant.", min=1, max=2
    ),
    seed: int = options.SEED_OPTION,
    overwrite: bool = options.OVERWRITE_OPTION,
    as_json: bool = options.JSON_OPTION,
) -> None:
    """Merge the grades of a pool into its gold set, and estimate each retriever's recall.

    Only resolved grades are merged; grade 0 is saved as judged not relevant. Recall is estimated
    from the passages that were drawn outside the pool.
    """
    from misslink.goldset.pooling.grades import merge_pool_grades
    from misslink.goldset.pooling.pool import is_pool
    from misslink.goldset.writer import write_goldset

    if is_pool(pool) and pool.resolve() in out.resolve().parents:
        raise InputError("This is the folder of the pool. Name another one with --out.", path=out)
    cases, document = merge_pool_grades(
        pool, accept_prelabels=accept_prelabels, relevance_level=relevance_level, seed=seed
    )
    write_goldset(cases, out, overwrite=overwrite)
    document = {"pool": str(pool), "goldset": str(out), **document}
    output.print_result(document, _print_grades, as_json=as_json)


def _print_grades(document: Mapping[str, Any]) -> None:

    from misslink.render.table import TextTable

    recall = document["recall"]
    for line in (*_grade_lines(document), *_recall_lines(recall)):
        output.print_line(line)
    rows = [
        (name, metric, *(_recall_text(estimates[key]) for key in ("estimated", "of_judged")))
        for name, metrics in recall["retrievers"].items()
        for metric, estimates in metrics.items()
    ]
    columns = ("retriever", "metric", "estimated", "of the known ones alone")
    if recall["questions"]:
        title = "Share of all relevant passages found"
        output.print_table(TextTable(columns, rows, title=title))
    for note in document["notes"]:
        output.print_line(f"Note: {note}")


def _recall_text(estimate: Mapping[str, Any]) -> str:
    return "not known" if estimate["value"] is None else output.format_estimate(estimate, "recall")


def _grade_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """What was merged, and how well annotators and judge agree."""
    grades = ", ".join(f"{count} {name}" for name, count in document["grades"].items())
    yield f"{document['merged']} grades in {document['goldset']}: {grades}."
    if document["changed"]:
        yield f"{document['changed']} of them differ from the gold set's earlier grades."
    if document["open"]:
        yield f"{document['open']} of {document['items']} passages have no resolved grade."
    agreement = document["agreement"]
    for name, counts in agreement["each"].items():
        extra = "".join(
            f", {counts[kind]} {kind}" for kind in ("skipped", "missing") if counts[kind]
        )
        yield f"{name} graded {counts['labelled']}{extra}."
    yield _estimate_line("Agreement, Krippendorff's alpha (ordinal)", agreement["alpha"])
    for pair in agreement["pairs"]:
        yield _estimate_line(f"{pair['a']} and {pair['b']}, weighted kappa", pair["kappa"])
    tied = [row for row in document["queue"] if not row["settled"]]
    if document["queue"]:
        yield (
            f"Settle {pluralize(len(document['queue']), 'passage')} on which annotators disagree, "
            f"{len(tied)} ties first:  misslink annotate POOL --adjudicate"
        )
    for row in tied[:_SHOWN_ITEMS]:
        votes = ", ".join(f"{name} {grade}" for name, grade in row["grades"].items())
        yield f"  {row['case_id']}  '{row['passage_id']}': {votes}"
    if judged := document["prelabels"]:
        title = f"{judged['judge']} and annotators, weighted kappa over {judged['n']} passages"
        yield _estimate_line(title, judged["kappa"])
        for name, shares in judged["grades"].items():
            if shares["recall"]["value"] is not None:
                yield f"  {name}: the judge finds {output.format_estimate(shares['recall'])}."
        if accepted := document["accepted_prelabels"]:
            yield f"{accepted} of its grades were used where no annotator's is resolved."


def _recall_lines(recall: Mapping[str, Any]) -> Iterator[str]:
    left_out = recall["left_out"]
    incomplete = f" ({len(left_out)} are not completely graded)" if left_out else ""
    yield (
        f"Recall over {recall['questions']} questions{incomplete}: {recall['relevant']} relevant "
        "passages are known."
    )
    for case_id, reason in islice(left_out.items(), _SHOWN_ITEMS):
        yield f"  {case_id} is left out: {reason}"
    if disputed := recall["disputed"]:
        count = pluralize(disputed, "tied passage counts", "tied passages count")
        yield f"  {count} by the share of votes; the intervals cover both outcomes."
    yield _estimate_line("Relevant passages that no retriever returned", recall["outside"])
    if sample := recall["sample"]:
        yield (
            f"  Based on {sample['relevant']:.0f} relevant of {sample['labelled']:,} graded, drawn "
            f"from {sample['passages']:,}; one may represent {_format_count(sample['weight'])}."
        )
        if sample["labelled"] < sample["passages"]:
            more = ", and ".join(
                f"[{_format_count(row['low'])}, {_format_count(row['high'])}] with {row['times']} "
                "times as many"
                for row in sample["more"]
            )
            yield f"  With more draws the interval would be about {more} (--random, --stratified)."


def _format_count(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= _LARGE_COUNT else f"{value:.3g}"


def _estimate_line(title: str, estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return f"{title}: not measured: {estimate['reason']}."
    value, low, high = (_format_count(estimate[name]) for name in ("value", "low", "high"))
    return f"{title}: {value} [{low}, {high}]."
