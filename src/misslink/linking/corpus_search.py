"""Searches over a corpus in memory: by words, by meaning, and both fused."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from misslink.text.bm25 import Bm25Index
from misslink.text.normalization import stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from misslink.embedding import Embedder

# Cormack et al. (2009) found it best in a pilot study, and little to depend on it.
_RRF_CONSTANT = 60
_BLOCK_SIZE = 4_000_000  # cosines held in memory at a time, 16 MB
# Two computations of the same score differ in the seventh digit; that is no better rank.
_TOLERANCE = 1e-6


class LexicalSearch:
    """BM25 over stems.

    Parameters
    ----------
    texts : sequence of str
        May be empty; then nothing is ever found.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @cached_property
    def _index(self) -> Bm25Index:
        return Bm25Index(map(stems, self._texts))

    async def rank(self, questions: Sequence[str], depth: int) -> list[list[int]]:
        """Places of the passages that share a stem with a question, best first, at most `depth`."""

        def first(question: str) -> list[int]:
            return top_places(self._index.scores(stems(question)), depth, above=0)

        return await asyncio.to_thread(lambda: list(map(first, questions)))


class DenseSearch:
    """Cosines of embeddings; the corpus is embedded once.

    Parameters
    ----------
    texts : sequence of str
    embedder : Embedder
    vectors : array of float32, shape (texts, d), rows of length 1, or None
        None: the texts are embedded when they are first searched.
    """

    def __init__(
        self, texts: Sequence[str], embedder: Embedder, vectors: NDArray[np.float32] | None = None
    ) -> None:
        self._texts = texts
        self.embedder = embedder
        self._vectors = vectors

    async def rank(self, questions: Sequence[str], depth: int) -> list[list[int]]:
        """Places of the nearest passages, best first, at most `depth`."""
        if not (self._texts and questions):
            return [[] for _ in questions]
        vectors = await self.vectors()
        queries = await self.embedder.queries(questions)
        return [top_places(row, depth) for row in cosine_rows(queries, vectors)]

    async def diverse(self, questions: Sequence[str], depth: int, pool: int) -> list[list[int]]:
        """The nearest `pool` passages in the order of maximal marginal relevance, lambda 0.5.

        References
        ----------
        Carbonell and Goldstein (1998), The use of MMR, diversity-based reranking for reordering
        documents and producing summaries.
        """
        from langchain_core.vectorstores.utils import maximal_marginal_relevance

        nearest = await self.rank(questions, max(pool, depth))
        if not any(nearest):
            return nearest
        vectors = await self.vectors()
        rankings = []
        for query, places in zip(await self.embedder.queries(questions), nearest, strict=True):
            rows = list(vectors[places])
            order = maximal_marginal_relevance(query, rows, 0.5, depth)
            rankings.append([places[index] for index in order])
        return rankings

    async def vectors(self) -> NDArray[np.float32]:
        """The corpus' vectors, shape (passages, dimensions), normalised."""
        if self._vectors is None:
            self._vectors = await self.embedder.documents(self._texts)
        return self._vectors


def cosine_rows(
    queries: NDArray[np.float32], vectors: NDArray[np.float32]
) -> Iterator[NDArray[np.float32]]:
    """The cosines of each query with all vectors, the rows of both of length 1."""
    block = max(1, _BLOCK_SIZE // max(1, len(vectors)))
    for start in range(0, len(queries), block):
        yield from queries[start : start + block] @ vectors.T


def rank_at(place: int, scores: NDArray[np.float32]) -> int:
    """The rank from 1 of a place by its score; of equal ones all have the first rank."""
    own = float(scores[place])
    return 1 + int((scores > own + _TOLERANCE * max(1.0, own)).sum())


def fuse_rankings(rankings: Sequence[Sequence[int]], depth: int) -> list[int]:
    """Several rankings fused by reciprocal rank: each place counts 1 / (60 + rank).

    References
    ----------
    Cormack, Clarke and Büttcher (2009), Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods.

    Examples
    --------
    >>> fuse_rankings([[7, 8, 9], [9, 7]], 2)
    [7, 9]
    """
    sums: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, place in enumerate(ranking, start=1):
            sums[place] += 1 / (_RRF_CONSTANT + rank)
    return sorted(sums, key=lambda place: (-sums[place], place))[:depth]


def top_places(scores: NDArray[Any], depth: int, above: float | None = None) -> list[int]:
    """Places of the highest scores, best first; of equal ones the first in the corpus first."""
    import numpy as np

    count = min(depth, len(scores))
    if count < 1:
        return []
    # At least `count` scores are as high as the `count`-th highest maximum of a chunk.
    starts = np.arange(0, len(scores), max(1, len(scores) // (8 * count)))
    maxima = np.maximum.reduceat(scores, starts)
    least = np.partition(maxima, len(maxima) - count)[len(maxima) - count]
    places = np.flatnonzero(scores >= least)
    if above is not None:
        places = places[scores[places] > above]
    order = np.argsort(-scores[places], kind="stable")
    best: list[int] = places[order][:count].tolist()
    return best
