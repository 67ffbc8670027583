"""Try other retrievers on a run's questions."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from misslink.api.saved_run import RunJudging, SavedRun, config_as_in_run
from misslink.capture import Watcher, load_app
from misslink.capture.app import read_app_config
from misslink.documents import WhatIf, manifest_of
from misslink.embedding import Embedder, open_embedder
from misslink.errors import AppUnreachableError, InputError
from misslink.event_loops import run_async
from misslink.io.corpus import read_corpus
from misslink.io.manifest import display_path
from misslink.io.storage import redact_url
from misslink.judge.config import DEFAULT_CACHE, JudgeConfig
from misslink.judge.protocol import Judge
from misslink.linking.replay import open_rerunner
from misslink.linking.whatif import (
    Chunking,
    ForecastCheck,
    SearchTools,
    check_option_names,
    evaluate_options,
    open_reranker,
)
from misslink.linking.whatif.forecast import DeeperSearch
from misslink.pipeline.config import Progress
from misslink.types import Case, Passage, Run

_log = logging.getLogger(__name__)
_MAX_PASSAGES = 200_000  # read from an app's own store: 300 MB of vectors at 384 dimensions


def whatif(
    run: Run | SavedRun | str | Path,
    *,
    corpus: str | Path | Sequence[Passage] | None = None,
    app: Any = None,
    options: Sequence[str] | None = None,
    passages: Sequence[int] = (),
    embedding: str | None = None,
    reranker: str | None = None,
    chunk: str | None = None,
    check: int = 0,
    judge: str | Judge | None = None,
    judge_config: JudgeConfig | None = None,
    concurrency: int = 8,
    cache: str | Path = DEFAULT_CACHE,
    seed: int = 0,
    id_key: str | None = None,
    input_key: str | None = None,
    app_config: str | Path | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> WhatIf:
    """Try other retrievers on a run's questions, and forecast avoided failures.

    Parameters
    ----------
    run : Run or path
        A run, or its folder, to which the result is added: ``whatif.json`` and the report.
    corpus : path, sequence of Passage, or None
        What the app searches, with the same ids. None: what `app` lists; without an app the corpus
        of the run; else only what the traces show is tried.
    app : Runnable, callable, str or None
        The app whose own corpus and embedding are used.
    options : sequence of str or None
        Of ``k``, ``bm25``, ``dense``, ``hybrid``, ``rerank``, ``mmr``, ``chunk`` and
        ``embedding``. None: all that are possible.
    passages : sequence of int
        Numbers of passages to try. Default: 2, 3 and 5 times as many as today.
    embedding : str or None
        Embedding to try: ``minilm``, ``PROVIDER:MODEL`` or ``FILE.py:NAME``.
    reranker : str or None
        Cross-encoder to try: a folder, a name or ``FILE.py:NAME``.
    chunk : str or None
        Characters of a chunk and its overlap, such as ``600/0``.
    check : int
        Number of changed and of unchanged cases to run again with the best option, by `app`.
    judge : str, Judge or None
        For `check`, as of `misslink.evaluate`. None: the run's own.
    judge_config : JudgeConfig or None
        Address, key, retries, rate and budget of the judge. None: those of the run.
    concurrency : int
        Cases in progress at once.
    cache : path
        Response cache of the judge.
    seed : int
        Random seed for samples and intervals.
    id_key, input_key, app_config
        As of `misslink.evaluate`. None: those of the run.
    progress : callable or None
        Called with the stage, how many options are done, and how many there are.

    Returns
    -------
    WhatIf
        The ``baseline``, and the ``options``, best first.

    Raises
    ------
    InputError
        An option is unknown or cannot be tried, or the corpus is not that of the gold set.

    Examples
    --------
    >>> import misslink
    >>> tried = misslink.whatif("reports/today", corpus="corpus.jsonl")  # doctest: +SKIP
    >>> best = tried.options[0]  # doctest: +SKIP
    >>> best.name, best.metrics["recall@5"].difference.value  # doctest: +SKIP
    ('hybrid', 0.11)
    """
    saved = SavedRun.open(run)
    if corpus is None and app is None:
        corpus = _corpus_of_run(saved.run)
    _check_sources(app, corpus, check=check, needs_corpus=bool(embedding or reranker or chunk))
    check_option_names(options or ())
    config = judge_config or config_as_in_run(saved.run, judge)
    judging = RunJudging(saved.run, judge, config, Path(cache), concurrency)
    settings = judging.rerun_settings(
        id_key=id_key, input_key=input_key, app_config=app_config
    ).for_run(saved.run)
    keys = {
        "id_key": settings.id_key,
        "input_key": settings.input_key,
        "settings": None if app is None else read_app_config(settings.app_config),
    }

    async def work() -> WhatIf:
        chunking = Chunking.parse(chunk) if chunk else None
        model = open_reranker(reranker) if reranker else None
        # Loaded once: a file that builds its index would build it twice.
        loaded = load_app(app) if isinstance(app, str) else app
        async with AsyncExitStack() as stack:
            deeper = rerun = None
            if check:
                deeper = _deeper_search(loaded, keys)
                rerun = open_rerunner(
                    saved.run,
                    app,
                    await stack.enter_async_context(judging.open()),
                    settings=settings,
                    folder=saved.folder,
                    loaded=loaded,
                )
                stack.callback(rerun.close)
            searched, own = None, None
            if loaded is not None:
                searched, own = await _app_sources(
                    saved.run, loaded, keys, _name_of(app), corpus is not None
                )
            if corpus is not None:
                searched = read_corpus(corpus) if isinstance(corpus, str | Path) else tuple(corpus)
            named = open_embedder(embedding) if embedding and searched else None
            for embedder in (own, named):
                if embedder is not None:
                    stack.callback(embedder.close)
            result = await evaluate_options(
                saved.run,
                searched,
                SearchTools(
                    embedder=own or named,
                    other=named if own else None,
                    reranker=model,
                    chunking=chunking,
                    widths=tuple(passages),
                ),
                options=options,
                check=ForecastCheck(rerun, check, deeper) if rerun else None,
                seed=seed,
                tick=progress or (lambda *_: None),
            )
        source = result.corpus
        if source is not None and isinstance(corpus, str | Path):
            source = source.replace(source=redact_url(display_path(corpus)))
        path = None if app is None else _name_of(app)
        result = result.replace(run=saved.name, app=path, corpus=source)
        saved.save("whatif", result.document())
        return result

    return run_async(work)


def _name_of(app: Any) -> str:
    """How outputs call an app: its import path, or the type of an object."""
    return display_path(app) if isinstance(app, str) else type(app).__qualname__


def _corpus_of_run(run: Run) -> str | None:
    """The corpus with which the run was evaluated; None without one, or if it is no longer there."""
    corpus = manifest_of(run).corpus
    if not corpus or "://" in corpus or Path(corpus.removeprefix("chroma:")).exists():
        return corpus or None
    _log.warning("%s, the corpus of the run, is not there; name it with --corpus", corpus)
    return None


def _check_sources(app: Any, corpus: Any, *, check: int, needs_corpus: bool) -> None:
    if check and app is None:
        raise InputError("--check calls the app again; name it with --app, such as app.py:chain")
    if needs_corpus and corpus is None and app is None:
        raise InputError(
            "--embedding, --reranker and --chunk need the corpus; name it with --corpus, or the "
            "app with --app"
        )


async def _app_sources(
    run: Run, app: Any, keys: dict[str, Any], name: str, corpus_is_named: bool
) -> tuple[tuple[Passage, ...] | None, Embedder | None]:
    """The corpus and the embedding of an app."""
    watcher = Watcher(app, **keys)
    if run.cases:  # the app shows its store when it is called
        trace = await watcher.watch(run.cases[0])
        if trace.error and not trace.retrieved:
            raise AppUnreachableError(
                f"{name} was called to find the passages it searches, and failed: {trace.error}"
            )
    corpus = await watcher.corpus(_MAX_PASSAGES)
    if corpus is None and not corpus_is_named:
        raise InputError(
            f"{name} does not show all the passages it searches (at most {_MAX_PASSAGES} are "
            "read); give them with --corpus"
        )
    embeddings = watcher.embeddings()
    return corpus, open_embedder(embeddings) if embeddings is not None else None


def _deeper_search(app: Any, keys: dict[str, Any]) -> DeeperSearch:
    """A function that returns the first passages of the app's own ranking for a case."""

    async def search(case: Case, width: int) -> tuple[Passage, ...]:
        watcher = Watcher(app, depth=width, **keys)
        trace = await watcher.watch(case)
        trace = await watcher.deepen(case, trace, lambda _: True)
        if trace.depth is None:
            return ()
        return (*trace.retrieved, *trace.deeper)[:width]

    return search
