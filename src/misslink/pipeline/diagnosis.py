"""Measure missed passages while the app is open, and build the diagnosis."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from misslink.capture import Watcher
from misslink.errors import InputError
from misslink.linking.checklist import build_checklist
from misslink.linking.corpus_search import DenseSearch
from misslink.linking.embedding_map import build_embedding_map
from misslink.linking.miss_measurement import FUSION_DEPTH, MissMeasurements, measure_misses
from misslink.linking.missing_labels import find_missing_labels, missing_label_document
from misslink.types import Case, Link, Passage, Run, Trace

if TYPE_CHECKING:
    from misslink.embedding import Embedder
    from misslink.pipeline.stages import CaptureResult, EvaluationContext


_log = logging.getLogger(__name__)

# Passages of the app's index that are listed for ids, ranks, BM25 and chunk quality. Listing a
# larger index would take longer than evaluating the app; the passages in the traces replace it.
MAX_LISTED = 10_000

_NO_EMBEDDING_WARNING = "misses are measured without the app's embedding: %s"


@dataclass(frozen=True)
class CorpusContext:
    """The embedding and the passages of the app's index, where they are known.

    ``required`` says that the embedding was named by the user, so that it must not fail.
    """

    embedder: Embedder | None = None
    passages: tuple[Passage, ...] | None = None
    required: bool = False
    watcher: Watcher | None = None

    async def measure(
        self, cases: Sequence[Case], traces: Mapping[str, Trace], k: int, seed: int
    ) -> MissMeasurements:
        """Measure every missed passage; without cosines if the app's own embedding fails.

        Raises
        ------
        InputError
            A named embedding failed.
        """
        pairs, corpus = (cases, list(traces.values())), self.passages
        try:
            return await measure_misses(*pairs, k, embedder=self.embedder, corpus=corpus, seed=seed)
        except InputError as error:
            if self.required or self.embedder is None:
                raise
            _log.warning(_NO_EMBEDDING_WARNING, error)
            return await measure_misses(*pairs, k, embedder=None, corpus=corpus, seed=seed)

    async def prepare_search(
        self, measured: MissMeasurements, queries: Sequence[str]
    ) -> MissMeasurements:
        """Add the app's own deeper ranks, and the passages nearest to queries if all are embedded.

        An embedding that the user named also embeds a corpus that is small enough.

        Raises
        ------
        InputError
            A named embedding failed.
        """
        if self.watcher is not None:
            measured = replace(measured, deepen=self.watcher.deepen)
        texts = [passage.text for passage in measured.pool.passages] if measured.pool else []
        if self.embedder is None or not (queries and texts):
            return measured
        vectors = self.embedder.stored(texts)
        if vectors is None and not (self.required and len(texts) <= MAX_LISTED):
            return measured
        try:
            nearest = await DenseSearch(texts, self.embedder, vectors).rank(queries, FUSION_DEPTH)
        except InputError as error:
            if self.required:
                raise
            _log.warning(_NO_EMBEDDING_WARNING, error)
            return measured
        return replace(measured, nearest=dict(zip(queries, nearest, strict=True)))

    async def map(
        self, cases: Sequence[Case], traces: Mapping[str, Trace], links: Sequence[Link], seed: int
    ) -> dict[str, Any] | None:
        """Return the embedding map; None without an embedding, or if the embedding fails."""
        try:
            return await build_embedding_map(
                cases, list(traces.values()), links, embedder=self.embedder, seed=seed
            )
        except InputError as error:  # the judge calls are paid for: a picture must not lose them
            _log.warning("the report has no map: %s", error)
            return None


def open_named_embedder(name: Any) -> Embedder | None:
    """Open the embedding that the user named; None for 'app' and 'none'."""
    from misslink.embedding import open_embedder

    return None if isinstance(name, str) and name in {"app", "none"} else open_embedder(name)


@asynccontextmanager
async def open_corpus_context(
    context: EvaluationContext, captured: CaptureResult
) -> AsyncIterator[CorpusContext]:
    """Open the app's own embedding if none was named."""
    named, own = context.embedder, None
    if named is None and captured.watcher and context.config.embedding == "app":
        own = await _open_app_embedder(captured.watcher)
    try:
        required = named is not None
        yield CorpusContext(named or own, captured.corpus, required, captured.watcher)
    finally:
        if own is not None:
            own.close()


async def _open_app_embedder(watcher: Watcher) -> Embedder | None:
    """The app's own embedding, with the vectors in its store; None where it fails."""
    from misslink.embedding import open_embedder

    model = watcher.embeddings()
    if model is None:
        return None
    embedder = None
    try:
        embedder = open_embedder(model)
        embedder.know(await watcher.vectors(MAX_LISTED))
        await embedder.queries(["is it there?"])
    except InputError as error:
        _log.warning(_NO_EMBEDDING_WARNING, error)
        if embedder is not None:
            embedder.close()
        return None
    return embedder


def diagnosis_document(
    run: Run,
    links: Sequence[Link],
    measured: MissMeasurements,
    corpus: Sequence[Passage] | None,
    scores: Mapping[str, Mapping[str, float | None]],
    k: int,
    seed: int,
) -> dict[str, Any]:
    """Return the diagnosis of a judged run, as ``summary.json`` holds it."""
    cases, traces, verdicts = run.cases, run.traces, run.verdicts
    missing = find_missing_labels(cases, traces, verdicts, links, k)
    return {
        "embedding": measured.embedding,
        "corpus": measured.corpus,
        "checklist": build_checklist(cases, traces, measured, k, corpus=corpus, seed=seed),
        "missing_labels": missing_label_document(
            cases, traces, verdicts, missing, k, scores=scores, seed=seed
        ),
    }
