"""Command `misslink whatif`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.cli import options as shared
from misslink.cli import output
from misslink.cli.options import JudgeOptions, option
from misslink.cli.rerun_context import config_as_in_run, open_run_judge, save_to_run
from misslink.errors import AppUnreachableError, InputError
from misslink.render.format import format_p_value
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.embedding import Embedder
    from misslink.linking.whatif.forecast import DeeperSearch
    from misslink.pipeline.config import Progress
    from misslink.types import Case, Passage, Run


_MAX_PASSAGES = 200_000  # read from an app's own store: 300 MB of vectors at 384 dimensions


@shared.with_judge_options(
    *shared.RERUN_OPTIONS, repeats=shared.REPEATS_OF_RUN, cascade_check=shared.CASCADE_CHECK_OF_RUN
)
def whatif(
    run: Path = shared.RUN_ARGUMENT,
    corpus: str | None = shared.field_option(
        "corpus", show_default="the app's, or that of the run"
    ),
    app: str | None = option(
        None, "--app", "App whose own corpus and embedding are used: app.py:chain."
    ),
    embedding: str | None = option(
        None, "--embedding", "Embedding to try: minilm, PROVIDER:MODEL or FILE.py:NAME."
    ),
    options: str | None = option(
        None,
        "--options",
        "Options to try, comma-separated: k, bm25, hybrid and others.",
        show_default="all that are possible",
    ),
    reranker: str | None = option(
        None, "--reranker", "Cross-encoder: folder, name, FILE.py:NAME, or none."
    ),
    chunk: str | None = option(None, "--chunk", "Characters of a chunk and its overlap: 600/0."),
    k: list[int] = option(
        [], "--passages", "Number of passages to try; repeatable.", min=1, show_default="2, 3, 5 x"
    ),
    check: int = option(
        0, "--check", "Number of changed and of unchanged cases to run again.", min=0
    ),
    triplets: Path | None = option(
        None, "--triplets", "File to write: question, missed passage, hard negative."
    ),
    judge: str | None = shared.JUDGE_OF_RUN,
    concurrency: int = shared.CONCURRENCY_OPTION,
    cache: Path | None = shared.CACHE_OPTION,
    seed: int = shared.SEED_OPTION,
    id_key: str | None = shared.ID_KEY_OF_RUN,
    input_key: str | None = shared.INPUT_KEY_OF_RUN,
    app_config: Path | None = shared.APP_CONFIG_OF_RUN,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Try other retrievers on a run's questions, and forecast avoided failures.

    Options: k, bm25, dense, hybrid, rerank, mmr, chunk, embedding.
    """
    from misslink.capture import load_app
    from misslink.capture.app import read_app_config
    from misslink.embedding import open_embedder
    from misslink.io import read_complete_run
    from misslink.io.corpus import read_corpus
    from misslink.io.manifest import display_path
    from misslink.io.storage import redact_url
    from misslink.judge.prompts import Prompts
    from misslink.linking.replay import RerunSettings, open_rerunner
    from misslink.linking.whatif import (
        Chunking,
        ForecastCheck,
        SearchTools,
        check_option_names,
        evaluate_options,
        open_reranker,
    )

    output.check_output_paths({"--triplets": triplets})
    before = read_complete_run(run)
    config = config_as_in_run(before, judge, **given)
    names = tuple(name.strip() for name in options.split(",") if name.strip()) if options else None
    reranker = None if reranker == "none" else reranker
    settings = RerunSettings(
        id_key=id_key,
        input_key=input_key,
        app_config=app_config,
        prompts=Prompts.from_spec(config.prompts),
        repeats=config.repeats,
    ).for_run(before)
    keys = {
        "id_key": settings.id_key,
        "input_key": settings.input_key,
        "settings": read_app_config(settings.app_config) if app else None,
    }
    corpus = corpus or (None if app else _corpus_of_run(before))
    _check_sources(app, corpus, check=check, needs_corpus=bool(embedding or reranker or chunk))
    check_option_names(names or ())

    async def work(progress: Progress) -> dict[str, Any]:
        chunking = Chunking.parse(chunk) if chunk else None
        model = open_reranker(reranker) if reranker else None
        # Loaded once: a file that builds its index would build it twice.
        loaded = load_app(app) if app else None
        async with AsyncExitStack() as stack:
            deeper = rerun = None
            if check:
                deeper = _deeper_search(loaded, keys)
                session = open_run_judge(
                    before, judge, config, cache=cache, concurrency=concurrency
                )
                rerun = open_rerunner(
                    before,
                    app,
                    await stack.enter_async_context(session),
                    settings=settings,
                    folder=run,
                    loaded=loaded,
                )
                stack.callback(rerun.close)
            passages, own = None, None
            if loaded is not None:
                passages, own = await _app_sources(before, loaded, keys, str(app), bool(corpus))
            if corpus:
                passages = read_corpus(corpus)
            named = open_embedder(embedding) if embedding and passages else None
            for embedder in (own, named):
                if embedder is not None:
                    stack.callback(embedder.close)
            document = await evaluate_options(
                before,
                passages,
                SearchTools(
                    embedder=own or named,
                    other=named if own else None,
                    reranker=model,
                    chunking=chunking,
                    widths=tuple(k),
                ),
                options=names,
                check=ForecastCheck(rerun, check, deeper) if rerun else None,
                seed=seed,
                tick=progress,
            )
        searched = document["corpus"]
        if searched is not None and corpus:
            searched = {**searched, "source": redact_url(display_path(corpus))}
        path = display_path(app) if app else None
        return {**document, "run": display_path(run), "app": path, "corpus": searched}

    document = output.run_with_progress(work)
    written = _write_triplets(before, triplets) if triplets else None
    if as_json:
        output.print_json(document if written is None else {**document, "triplets": written})
    else:
        print_whatif(document, written)
    try:  # once it is printed
        save_to_run(run, before, "whatif", document)
    except InputError as problem:
        why = problem.problem.partition(";")[0]
        raise InputError(
            f"{why}, so the result is printed and not saved in the run; name a copy of the folder "
            "that you can write to",
            path=problem.path,
        ) from None


def _write_triplets(run: Run, path: Path) -> dict[str, Any]:
    from misslink.io.manifest import display_path
    from misslink.linking.whatif import make_triplets, write_triplets

    rows, left_out = make_triplets(run)
    write_triplets(path, rows)
    return {"file": display_path(path), "triplets": len(rows), "left_out": left_out}


def _corpus_of_run(run: Run) -> str | None:
    """The corpus with which the run was evaluated; None without one, or if it is no longer there."""
    from misslink.documents import manifest_of

    corpus = manifest_of(run).corpus
    if not corpus or "://" in corpus or Path(corpus.removeprefix("chroma:")).exists():
        return corpus or None
    print(
        f"misslink: {corpus}, the corpus of the run, is not there; name it with --corpus",
        file=sys.stderr,
    )
    return None


def _check_sources(app: str | None, corpus: str | None, *, check: int, needs_corpus: bool) -> None:
    if check and not app:
        raise InputError("--check calls the app again; name it with --app, such as app.py:chain")
    if needs_corpus and not (corpus or app):
        raise InputError(
            "--embedding, --reranker and --chunk need the corpus; name it with --corpus, or the "
            "app with --app"
        )


async def _app_sources(
    run: Run, app: Any, keys: dict[str, Any], name: str, corpus_is_named: bool
) -> tuple[tuple[Passage, ...] | None, Embedder | None]:
    """The corpus and the embedding of an app."""
    from misslink.capture import Watcher
    from misslink.embedding import open_embedder

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
    from misslink.capture import Watcher

    async def search(case: Case, width: int) -> tuple[Passage, ...]:
        watcher = Watcher(app, depth=width, **keys)
        trace = await watcher.watch(case)
        trace = await watcher.deepen(case, trace, lambda _: True)
        if trace.depth is None:
            return ()
        return (*trace.retrieved, *trace.deeper)[:width]

    return search


def print_whatif(document: Mapping[str, Any], triplets: Mapping[str, Any] | None) -> None:
    """Print the options, best first, one sentence on each, and the written triplets."""
    recall, passages = f"recall@{document['k']}", document["context_passages"]
    today = document["baseline"][recall]
    # Where the run's k is not the width of its context, the metric is scaled, not that of it.
    what = "recall in the context" if document["k"] == passages else recall
    columns = (
        "option",
        f"{what} (today {passages} passages)",
        "p (Holm)",
        "tokens",
        "missed passages retrieved",
        "failures avoided",
    )
    rows = []
    for entry in document["options"]:
        metric = entry["metrics"][recall]
        value = "not measured"
        if metric["b"]["value"] is not None:
            value = output.format_estimate(metric["b"], recall)
            if metric["a"]["n"] != today["n"]:  # over fewer cases than the title's
                before = output.format_estimate(metric["a"], recall)
                value += f", today {before} of the same {metric['a']['n']} cases"
        retrieved = entry["newly_retrieved"]
        row = (
            entry["name"],
            value,
            format_p_value(metric["p_holm"]).removeprefix("p = "),
            _format_count(entry["context_tokens"]["b"], "context_tokens"),
            "not known" if retrieved is None else f"{retrieved:,}",
            _format_count(entry["failures_avoided"], "failures_avoided"),
        )
        rows.append(row)
    title = f"What if: {recall} today {output.format_estimate(today, recall)}, {passages} passages"
    output.print_table(TextTable(columns, rows, title=title), spaced=True)
    output.print_lines(_whatif_lines(document, triplets))


def _format_count(estimate: Mapping[str, Any], name: str) -> str:
    return "not known" if estimate["value"] is None else output.format_estimate(estimate, name)


def _whatif_lines(document: Mapping[str, Any], triplets: Mapping[str, Any] | None) -> Iterator[str]:
    for entry in document["options"]:
        yield f"{entry['name']}: {entry['finding']}"
    skipped: dict[str, list[str]] = {}
    for entry in document["skipped"]:
        skipped.setdefault(entry["reason"], []).append(entry["name"])
    for reason, names in skipped.items():
        yield f"{', '.join(names)}: not tried, {reason}."
    yield from document["notes"]
    if check := document["check"]:
        for name, what in (("changed", "changes"), ("unchanged", "leaves as they are")):
            stratum = check[name]
            yield (
                f"Of {stratum['cases']} cases that {check['option']} {what}, "
                f"{stratum.get('checked', 0)} were run again: {stratum.get('failed_before', 0)} "
                f"failed before, {stratum.get('failed_after', 0)} after."
            )
        if check["reason"]:
            yield f"{len(check['skipped'])} cases could not be run again: {check['reason']}."
    if triplets is not None:
        yield f"{triplets['triplets']} triplets written to {triplets['file']}."
        for reason, count in triplets["left_out"].items():
            yield f"Left out: {count} missed passages: {reason}."
