"""What `misslink whatif` searches and asks: the corpus, the embeddings, the app and the judge."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.cli.again import judge_as_in_run
from misslink.errors import AppUnreachableError, InputError

if TYPE_CHECKING:
    from misslink.embedding import Embedder
    from misslink.judging.terms import Terms
    from misslink.linking.replay.rerun import Rerunner
    from misslink.linking.whatif.checking import Deeper
    from misslink.types import Case, Passage, Run

__all__ = ["Request", "Sources", "ranking_of", "rerunner_of", "sources_of"]

_MOST_PASSAGES = 200_000  # of an app's own store that are read: 300 MB of vectors at 384 dimensions


@dataclass(frozen=True)
class Request:
    """What is asked on the command line."""

    folder: Path
    corpus: str | None
    app: str | None
    embedding: str | None
    options: tuple[str, ...] | None
    reranker: str | None
    chunk: str | None
    widths: tuple[int, ...]
    check: int
    judge: str | None
    ledger: Path | None
    concurrency: int
    id_key: str | None
    input_key: str | None
    seed: int


@dataclass(frozen=True)
class Sources:
    """The corpus, the embedding to search it with, and another one to try."""

    corpus: tuple[Passage, ...] | None
    embedder: Embedder | None
    other: Embedder | None


async def rerunner_of(
    run: Run, request: Request, app: Any, terms: Terms, held: AsyncExitStack
) -> Rerunner:
    """What asks the app again and judges its answer, closed with `held`."""
    from misslink.linking.replay import rerunner
    from misslink.prompting import Prompts

    judge = await held.enter_async_context(
        judge_as_in_run(
            run, request.judge, terms, ledger=request.ledger, concurrency=request.concurrency
        )
    )
    again = rerunner(
        run,
        request.app,
        judge,
        folder=request.folder,
        id_key=request.id_key,
        input_key=request.input_key,
        prompts=Prompts.of(terms.prompts),
        repeats=terms.repeats,
        loaded=app,
    )
    held.callback(again.close)
    return again


async def sources_of(run: Run, request: Request, app: Any) -> Sources:
    """The corpus as named, else the app's own; the app's own embedding, else the one named."""
    from misslink.embedding import open_embedder

    corpus, own = None, None
    if app is not None:
        corpus, own = await _of_app(run, request, app)
    if request.corpus:
        from misslink.files.corpus import read_corpus

        corpus = read_corpus(request.corpus)
    named = open_embedder(request.embedding) if request.embedding and corpus else None
    return Sources(corpus, own or named, named if own else None)


async def _of_app(
    run: Run, request: Request, app: Any
) -> tuple[tuple[Passage, ...] | None, Embedder | None]:
    from misslink.capture import Watcher
    from misslink.embedding import open_embedder

    id_key, input_key = _keys(run, request)
    watcher = Watcher(app, id_key=id_key, input_key=input_key)
    if run.cases:  # the app shows its store when it is asked
        trace = await watcher.watch(run.cases[0])
        if trace.error and not trace.retrieved:
            raise AppUnreachableError(
                f"{request.app} was asked so that it shows the passages it searches, and failed: "
                f"{trace.error}"
            )
    corpus = await watcher.corpus(_MOST_PASSAGES)
    if corpus is None and request.corpus is None:
        raise InputError(
            f"{request.app} does not show all the passages it searches (at most {_MOST_PASSAGES} "
            "are read); give them with --corpus"
        )
    embeddings = watcher.embeddings()
    return corpus, open_embedder(embeddings) if embeddings is not None else None


def ranking_of(run: Run, request: Request, app: Any) -> Deeper:
    """A function that gives the first passages of the app's own ranking for a case."""
    from misslink.capture import Watcher

    id_key, input_key = _keys(run, request)

    async def ranked(case: Case, width: int) -> tuple[Passage, ...]:
        watcher = Watcher(app, depth=width, id_key=id_key, input_key=input_key)
        trace = await watcher.watch(case)
        trace = await watcher.deepen(case, trace, lambda _: True)
        if trace.depth is None:
            return ()
        return (*trace.retrieved, *trace.deeper)[:width]

    return ranked


def _keys(run: Run, request: Request) -> tuple[str | None, str | None]:
    """The id key and the input key as given, else the run's."""

    def of_run(name: str) -> str | None:
        value = run.manifest.get(name)
        return value if isinstance(value, str) else None

    return request.id_key or of_run("id_key"), request.input_key or of_run("input_key")
