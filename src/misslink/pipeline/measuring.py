"""Between judging and linking: what was missed is measured, while the app is at hand."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.capture import Watcher
from misslink.errors import InputError
from misslink.linking import (
    Measured,
    checklist,
    gold_holes,
    hole_document,
    map_document,
    measure,
)
from misslink.pipeline.options import Options
from misslink.types import Case, Link, Passage, Trace, Verdict

if TYPE_CHECKING:
    from misslink.embedding import Embedder

__all__ = ["Surroundings", "diagnosis", "named_embedder", "surroundings"]

_log = logging.getLogger(__name__)

# Passages of the app's own index that are listed for ranks, BM25 and chunk quality. Of a larger
# one what the traces showed has to do: listing it would take longer than evaluating the app.
_LISTED = 10_000
_UNNAMED = frozenset({"app", "none"})
_WITHOUT = "misses are measured without the app's embedding: %s"


@dataclass(frozen=True)
class Surroundings:
    """What misses are measured against: the app's embedding and its index, where they are known.

    Parameters
    ----------
    embedder : Embedder or None
    corpus : tuple of Passage or None
        Everything the app's index holds. None: it cannot be listed, or is too large.
    wanted : bool
        Whether the embedding was named by somebody, so that it must not fail.
    """

    embedder: Embedder | None = None
    corpus: tuple[Passage, ...] | None = None
    wanted: bool = False

    async def measured(
        self, cases: Sequence[Case], traces: Mapping[str, Trace], options: Options
    ) -> Measured:
        """Measure every missed passage.

        Raises
        ------
        InputError
            An embedding that was named failed. If the app's own does, the rest is measured.
        """
        seen = list(traces.values())

        async def by(embedder: Embedder | None) -> Measured:
            return await measure(
                cases,
                seen,
                options.k,
                embedder=embedder,
                corpus=self.corpus,
                seed=options.seed,
            )

        try:
            return await by(self.embedder)
        except InputError as trouble:
            if self.wanted or self.embedder is None:
                raise
            _log.warning(_WITHOUT, trouble)
            return await by(None)

    async def map(
        self, cases: Sequence[Case], traces: Mapping[str, Trace], links: Sequence[Link], seed: int
    ) -> dict[str, Any] | None:
        """Lay questions and passages out in a plane; None without an embedding, or if it fails.

        By now everything is paid for, and a picture is no reason to lose it.
        """
        try:
            return await map_document(
                cases, list(traces.values()), links, embedder=self.embedder, seed=seed
            )
        except InputError as trouble:
            _log.warning("there is no map: %s", trouble)
            return None


def named_embedder(name: Any) -> Embedder | None:
    """Open the embedding that somebody named; None for the app's own and for none.

    Raises
    ------
    InputError
        It cannot be opened.
    """
    from misslink.embedding import open_embedder

    unnamed = isinstance(name, str) and name in _UNNAMED
    return None if unnamed else open_embedder(name)


@asynccontextmanager
async def surroundings(
    options: Options, named: Embedder | None, watcher: Watcher | None
) -> AsyncIterator[Surroundings]:
    """List the app's index, and open its own embedding where none was named."""
    corpus = await watcher.corpus(_LISTED) if watcher else None
    own = None
    if named is None and watcher is not None and options.embedding == "app":
        own = await _own_embedder(watcher)
    try:
        yield Surroundings(named or own, corpus, wanted=named is not None)
    finally:
        if own is not None:
            own.close()


async def _own_embedder(watcher: Watcher) -> Embedder | None:
    """The app's own embedding, with the vectors that its store keeps; None where it fails."""
    from misslink.embedding import open_embedder

    model = watcher.embeddings()
    if model is None:
        return None
    embedder = None
    try:
        embedder = open_embedder(model)
        embedder.know(await watcher.vectors(_LISTED))
        await embedder.queries(["is it there?"])
    except InputError as trouble:  # nobody asked for it: what it would measure is missing
        _log.warning(_WITHOUT, trouble)
        if embedder is not None:
            embedder.close()
        return None
    return embedder


def diagnosis(
    cases: Sequence[Case],
    traces: Mapping[str, Trace],
    verdicts: Sequence[Verdict],
    links: Sequence[Link],
    measured: Measured,
    around: Surroundings,
    scores: Mapping[str, Mapping[str, float | None]],
    options: Options,
) -> dict[str, Any]:
    """Return what ``misslink diagnose`` reads beside the links, as ``summary.json`` holds it."""
    seen, k, seed = list(traces.values()), options.k, options.seed
    holes = gold_holes(cases, seen, verdicts, links, k)
    return {
        "embedding": measured.embedding,
        "corpus": measured.corpus,
        "checklist": checklist(cases, seen, measured, k, corpus=around.corpus, seed=seed),
        "gold_holes": hole_document(cases, seen, verdicts, holes, k, scores=scores, seed=seed),
    }
