"""misslink whatif: which change of the retriever would help, and what it would save."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.again import put_into_run, terms_as_in_run
from misslink.cli.options import AS_JSON, CONCURRENCY, ID_KEY_OF_RUN, INPUT_KEY_OF_RUN, LEDGER
from misslink.cli.output import interruptible, own_stdout, print_json, progress_bars
from misslink.cli.terms import (
    AUDIT_OF_RUN,
    CAPS,
    CASES,
    PACE,
    PRICES,
    REPEATS_OF_RUN,
    Given,
    asks_judge,
)
from misslink.cli.whatif_sources import Request, ranking_of, rerunner_of, sources_of
from misslink.cli.whatif_table import print_whatif
from misslink.cli.writing import check_place
from misslink.errors import InputError

if TYPE_CHECKING:
    from misslink.judging.terms import Terms
    from misslink.pipeline import Progress
    from misslink.types import Run

__all__ = ["whatif"]


@asks_judge(*CASES, *PACE, *PRICES, *CAPS, repeats=REPEATS_OF_RUN, audit=AUDIT_OF_RUN)
def whatif(
    run: Path = typer.Argument(..., help="A run folder."),
    corpus: str | None = typer.Option(
        None,
        "--corpus",
        help="What the app searches, with the same ids: FILE.jsonl, FILE.csv, a folder of texts, "
        "or chroma:FOLDER[:COLLECTION].",
    ),
    app: str | None = typer.Option(
        None, "--app", help="The app, whose own corpus and embedding are taken: app.py:chain."
    ),
    embedding: str | None = typer.Option(
        None,
        "--embedding",
        help="minilm, PROVIDER:MODEL or FILE.py:NAME; beside --app another one to try.",
    ),
    options: str | None = typer.Option(
        None,
        "--options",
        help="Of k, bm25, dense, hybrid, rerank, mmr, chunk, embedding; with commas.",
        show_default="what can be tried",
    ),
    reranker: str | None = typer.Option(
        None, "--reranker", help="Cross-encoder by folder or name, or FILE.py:NAME; none is off."
    ),
    chunk: str | None = typer.Option(
        None, "--chunk", help="Characters of a chunk and of its overlap: 600/0."
    ),
    k: list[int] = typer.Option(
        [], "--k", min=1, help="Passages to hand over; may be repeated.", show_default="2, 3, 5 x"
    ),
    check: int = typer.Option(
        0, "--check", min=0, help="Affected cases that are generated and judged again."
    ),
    triplets: Path | None = typer.Option(
        None, "--triplets", help="Where to write question, missed passage, hard negative."
    ),
    judge: str | None = typer.Option(
        None, "--judge", help="For --check, such as openai:MODEL.", show_default="the run's"
    ),
    concurrency: int = CONCURRENCY,
    ledger: Path | None = LEDGER,
    seed: int = typer.Option(0, "--seed", help="Of the draws."),
    id_key: str | None = ID_KEY_OF_RUN,
    input_key: str | None = INPUT_KEY_OF_RUN,
    *,
    given: Given,
    as_json: bool = AS_JSON,
) -> None:
    """Try other retrievers on the run's questions, and forecast what each would save."""
    from misslink.files import read_whole
    from misslink.pipeline import in_a_loop

    if triplets is not None:
        check_place(triplets, "--triplets")
    before = read_whole(run)
    terms = terms_as_in_run(before, judge, **given)
    names = tuple(name.strip() for name in options.split(",") if name.strip()) if options else None
    request = Request(
        folder=run,
        corpus=corpus,
        app=app,
        embedding=embedding,
        options=names,
        reranker=None if reranker == "none" else reranker,
        chunk=chunk,
        widths=tuple(k),
        check=check,
        judge=judge,
        ledger=ledger,
        concurrency=concurrency,
        id_key=id_key,
        input_key=input_key,
        seed=seed,
    )
    with interruptible("the same command goes on"), own_stdout(), progress_bars() as progress:
        document = in_a_loop(lambda: _weighed(before, request, terms, progress), concurrency)
    written = _written(before, triplets) if triplets else None
    if as_json:
        print_json(document if written is None else {**document, "triplets": written})
    else:
        print_whatif(document, written)
    _keep(request.folder, before, document)


async def _weighed(run: Run, request: Request, terms: Terms, progress: Progress) -> dict[str, Any]:
    from misslink.capture import load_app
    from misslink.files.addresses import shown
    from misslink.linking import whatif as weighing
    from misslink.manifest import shown_path

    if request.check and not request.app:
        raise InputError(
            "--check asks the app again; name it with --app, such as --app app.py:chain"
        )
    searched = request.embedding or request.reranker or request.chunk
    if searched and not (request.corpus or request.app):
        raise InputError(
            "--embedding, --reranker and --chunk need the corpus; name it with --corpus, or the "
            "app with --app"
        )
    weighing.check_names(request.options or ())
    chunking = weighing.Chunking.parse(request.chunk) if request.chunk else None
    reranker = weighing.open_reranker(request.reranker) if request.reranker else None
    # Once for all: a file that builds its index would build it anew, in place of the first.
    app = load_app(request.app) if request.app else None
    async with AsyncExitStack() as held:
        rerun, deeper = None, None
        if request.check and app is not None:
            deeper = ranking_of(run, request, app)
            rerun = await rerunner_of(run, request, app, terms, held)
        given = await sources_of(run, request, app)
        for opened in (given.embedder, given.other):
            if opened is not None:
                held.callback(opened.close)
        found = await weighing.whatif(
            run,
            given.corpus,
            embedder=given.embedder,
            other=given.other,
            reranker=reranker,
            chunking=chunking,
            widths=request.widths,
            options=request.options,
            rerun=rerun,
            deeper=deeper,
            sample=request.check,
            seed=request.seed,
            tick=progress,
        )
    corpus = found["corpus"]
    if corpus is not None and request.corpus:
        corpus = {**corpus, "source": shown(shown_path(request.corpus))}
    app = shown_path(request.app) if request.app else None
    return {**found, "run": shown_path(request.folder), "app": app, "corpus": corpus}


def _keep(folder: Path, run: Run, document: dict[str, Any]) -> None:
    """Put the result into the run folder, once it is printed."""
    try:
        put_into_run(folder, run, "whatif", document)
    except InputError as problem:
        why, semicolon, _ = problem.problem.rpartition("; choose another --out")
        if not semicolon:
            raise
        raise InputError(
            f"{why}, so the result is printed and not kept in the run; name a copy of the folder "
            "that you may write",
            path=problem.path,
        ) from None


def _written(run: Run, path: Path) -> dict[str, Any]:
    from misslink.linking.whatif import triplets, write_triplets
    from misslink.manifest import shown_path

    rows, left_out = triplets(run)
    write_triplets(path, rows)
    return {"file": shown_path(path), "triplets": len(rows), "left_out": left_out}
