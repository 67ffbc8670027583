"""Link the cases: measure missed passages while the app is open, and attribute failures."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from misslink.capture import Watcher
from misslink.documents import summary_of
from misslink.embedding import Embedder, open_embedder
from misslink.engines.shard import RunFacts
from misslink.errors import InputError
from misslink.linking.answer_outcome import AnswerOutcome
from misslink.linking.corpus_search import DenseSearch
from misslink.linking.embedding_map import build_embedding_map
from misslink.linking.miss_measurement import (
    FUSION_DEPTH,
    MissMeasurements,
    measure_misses,
    word_questions,
)
from misslink.linking.needs import list_needs
from misslink.linking.owners import search_queries
from misslink.parts import by_case, group_by_case
from misslink.pipeline.config import EvaluationConfig
from misslink.pipeline.context import EvaluationContext
from misslink.pipeline.shards import evaluate_shards
from misslink.pipeline.traces import MAX_LISTED, CaptureResult
from misslink.pipeline.verdicts import CalibratedRun
from misslink.render.format import shorten
from misslink.types import Case, Link, Passage, Reason, Run, Trace, Verdict

_log = logging.getLogger(__name__)
_NO_EMBEDDING_WARNING = "misses are measured without the app's embedding: %s"


class LinkResult(NamedTuple):
    """The link of every case, the measured misses, the embedding map, and warnings."""

    links: Sequence[Link]
    measured: MissMeasurements
    map: dict[str, Any] | None
    warnings: list[Reason]


@dataclass(frozen=True)
class CorpusContext:
    """The embedding and the passages of the app's index, where they are known.

    ``required`` says that the embedding was named by the user, so that it must not fail. ``saved``
    is a run that is judged again: without a corpus, what it measured of missed passages stays.
    """

    embedder: Embedder | None = None
    passages: tuple[Passage, ...] | None = None
    required: bool = False
    watcher: Watcher | None = None
    saved: Run | None = None

    async def measure(
        self, cases: Sequence[Case], traces: Sequence[Trace], k: int, seed: int
    ) -> MissMeasurements:
        """Measure every missed passage; without cosines if the app's own embedding fails.

        Raises
        ------
        InputError
            A named embedding failed.
        """
        measured = await self._measure(cases, traces, k, seed)
        if self.saved is None or self.passages is not None:
            return measured
        diagnosis, links = summary_of(self.saved).diagnosis, self.saved.links
        # Without labels the passages were missed by what the other judge's verdicts needed.
        labelled = {link.case_id: link.missed for link in links if link.retrieval != "unlabelled"}
        return replace(
            measured,
            missed={case.id: labelled.get(case.id, measured.missed[case.id]) for case in cases},
            embedding=diagnosis.embedding or None,
            corpus=diagnosis.corpus or None,
        )

    async def _measure(
        self, cases: Sequence[Case], traces: Sequence[Trace], k: int, seed: int
    ) -> MissMeasurements:
        pairs, corpus = (cases, traces), self.passages
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
        texts = [passage.text for passage in measured.pool.passages]
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
        self,
        cases: Sequence[Case],
        traces: Sequence[Trace],
        links: Sequence[Link],
        config: EvaluationConfig,
    ) -> dict[str, Any] | None:
        """Return the embedding map; None without an embedding, or if the embedding fails.

        UMAP takes longer than all else of a small run: only for a page that is written.
        """
        if config.map_method == "none":
            return None
        umap = config.map_method == "umap" and config.out is not None
        try:
            return await build_embedding_map(
                cases,
                traces,
                links,
                embedder=self.embedder,
                seed=config.seed,
                umap=umap,
            )
        except InputError as error:  # the judge calls are paid for: a picture must not lose them
            _log.warning("the report has no map: %s", error)
            return None


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
        yield CorpusContext(
            named or own, captured.corpus, required, captured.watcher, captured.saved
        )
    finally:
        if own is not None:
            own.close()


async def _open_app_embedder(watcher: Watcher) -> Embedder | None:
    """The app's own embedding, with the vectors in its store; None where it fails."""
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


async def link_cases(
    context: EvaluationContext,
    judged: CalibratedRun,
    measured: MissMeasurements,
    corpus: CorpusContext,
) -> LinkResult:
    """Return the link of every case: its failure mode, missed passages and claims.

    What the corpus is searched for is embedded for all cases at once.
    """
    traces = by_case(judged.run.traces)
    cases = word_questions(context.gold.cases, judged.run.scores)
    if cases != context.gold.cases:  # the judge read questions of a conversation otherwise
        measured = await corpus.measure(cases, judged.run.traces, context.k, context.config.seed)
    verdicts = group_by_case(judged.run.verdicts)

    def verdicts_of(case: Case) -> dict[str, Verdict]:
        return {verdict.metric: verdict for verdict in verdicts.get(case.id, ())}

    queries: dict[str, None] = {}
    for case in context.gold.cases:
        outcome = measured.outcomes[case.id]
        if outcome.retrieval == "unlabelled":
            given = case, traces[case.id], verdicts_of(case), context.k, judged.calibration
            known = AnswerOutcome.from_verdicts(*given, outcome)
            if known.failed(known.sufficient_judge) or known.declined_unlabelled:
                needs = list_needs(known, outcome)
                queries |= dict.fromkeys(search_queries(known, outcome.retrieval, needs))
    searchable = await corpus.prepare_search(measured, list(queries))
    warnings = []
    if queries and measured.corpus and not searchable.nearest:
        warnings = [
            Reason(code="searched_by_words", queries=len(queries), passages=measured.corpus)
        ]

    facts = RunFacts(
        context.k,
        context.metrics,
        context.prompts,
        calibration=judged.calibration,
        measured=searchable,
    )
    if absent := _absent_evidence(context.gold.cases, measured):
        _log.warning("%s", str(absent))
        warnings.append(absent)
    links = await evaluate_shards(context, facts, judged.run.traces, judged.run.verdicts)
    embedding_map = await corpus.map(cases, judged.run.traces, links, context.config)
    return LinkResult(links, measured, embedding_map, warnings)


def _absent_evidence(cases: Sequence[Case], measured: MissMeasurements) -> Reason | None:
    """That the whole corpus lacks some evidence: it counts as missed, and may be misquoted."""
    absent = [
        miss.evidence
        for missed in measured.missed.values()
        for miss in missed
        if miss.evidence is not None and miss.status == "not_indexed"
    ]
    if not absent:
        return None
    of = sum(grade > 0 for case in cases for grade in case.evidence.values())
    return Reason(
        code="evidence_not_in_corpus", n=len(absent), of=of, evidence=shorten(absent[0], 60)
    )
