"""Searches over a corpus held in memory: by words, by meaning, by both."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from misslink.judging.embedded.lexical import stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from misslink.embedding import Embedder

__all__ = ["Dense", "Lexical", "fused"]

_RRF = 60  # Cormack et al. (2009) found it best in a pilot study, and little to depend on it
_AT_ONCE = 4_000_000  # cosines held in memory at a time


class Lexical:
    """BM25 over stems, as `bm25s` computes it.

    Parameters
    ----------
    texts : sequence of str
        May be empty; then nothing is ever found.

    References
    ----------
    Robertson and Zaragoza (2009), The probabilistic relevance framework: BM25 and beyond.
    Lù (2024), BM25S: orders of magnitude faster lexical search via eager sparse scoring.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._index: Any = None

    async def rank(self, questions: Sequence[str], depth: int) -> list[list[int]]:
        """Places of the passages that share a stem with a question, best first, at most `depth`."""
        return await asyncio.to_thread(self._rank, questions, depth)

    def _rank(self, questions: Sequence[str], depth: int) -> list[list[int]]:
        import bm25s

        rows = [list(stems(text)) for text in self._texts] if self._index is None else []
        if any(rows):
            self._index = bm25s.BM25()  # Lucene's variant, as the BM25 ranks of a diagnosis have it
            self._index.index(rows, show_progress=False)
        if self._index is None:
            return [[] for _ in questions]
        found = []
        for question in questions:
            asked = [word for word in stems(question) if word in self._index.vocab_dict]
            scores = self._index.get_scores(asked) if asked else None
            found.append([] if scores is None else _best(scores, depth, above=0))
        return found


class Dense:
    """Cosines of embeddings; the corpus is embedded once.

    Parameters
    ----------
    texts : sequence of str
    embedder : Embedder
    """

    def __init__(self, texts: Sequence[str], embedder: Embedder) -> None:
        self._texts = texts
        self.embedder = embedder
        self._vectors: NDArray[np.float32] | None = None

    async def rank(self, questions: Sequence[str], depth: int) -> list[list[int]]:
        """Places of the nearest passages, best first, at most `depth`."""
        if not (self._texts and questions):
            return [[] for _ in questions]
        vectors = await self.vectors()
        asked = await self.embedder.queries(questions)
        found = []
        chunk = max(1, _AT_ONCE // len(self._texts))
        for start in range(0, len(questions), chunk):
            found += [_best(row, depth) for row in asked[start : start + chunk] @ vectors.T]
        return found

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
        found = []
        for query, places in zip(await self.embedder.queries(questions), nearest, strict=True):
            rows = list(vectors[places])
            order = maximal_marginal_relevance(query, rows, 0.5, depth)
            found.append([places[at] for at in order])
        return found

    async def vectors(self) -> NDArray[np.float32]:
        """The corpus' vectors, shape (passages, dimensions), normalised."""
        if self._vectors is None:
            self._vectors = await self.embedder.documents(self._texts)
        return self._vectors


def fused(rankings: Sequence[Sequence[int]], depth: int) -> list[int]:
    """Several rankings made one by reciprocal rank fusion: each place counts 1 / (60 + rank).

    References
    ----------
    Cormack, Clarke and Büttcher (2009), Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods.

    Examples
    --------
    >>> fused([[7, 8, 9], [9, 7]], 2)
    [7, 9]
    """
    sums: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, place in enumerate(ranking, start=1):
            sums[place] += 1 / (_RRF + rank)
    return sorted(sums, key=lambda place: (-sums[place], place))[:depth]


def _best(scores: NDArray[Any], depth: int, above: float | None = None) -> list[int]:
    """Places of the highest scores, best first; of equal ones the first in the corpus first."""
    import numpy as np

    count = min(depth, len(scores))
    if count < 1:
        return []
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    places = np.flatnonzero(scores >= least)
    if above is not None:
        places = places[scores[places] > above]
    order = np.argsort(-scores[places], kind="stable")
    best: list[int] = places[order][:count].tolist()
    return best
