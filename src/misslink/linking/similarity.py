"""Similarity of questions and passages: by embedding (cosine) and by words (BM25, shared stems)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from misslink.text.bm25 import Bm25Index
from misslink.text.near_duplicates import passage_stems
from misslink.text.normalization import stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from misslink.embedding import Embedder


_BLOCK_SIZE = 4_000_000  # cosines held in memory at a time, 16 MB
# Two computations of the same product differ in the seventh digit; that is no better rank.
_TOLERANCE = 1e-6


class EmbeddingSimilarity:
    """Cosines of questions and passages, both embedded once.

    Parameters
    ----------
    questions, passages : mapping of str to row
        By id, rows of the two matrices.
    question_vectors : array of float32, shape (questions, d), rows of length 1
    passage_vectors : array of float32, shape (passages, d), rows of length 1
    """

    def __init__(
        self,
        questions: Mapping[str, int],
        passages: Mapping[str, int],
        question_vectors: NDArray[np.float32],
        passage_vectors: NDArray[np.float32],
    ) -> None:
        self._questions, self._passages = questions, passages
        self._question_vectors, self._passage_vectors = question_vectors, passage_vectors

    @classmethod
    async def embed(
        cls, embedder: Embedder, questions: Mapping[str, str], passages: Mapping[str, str]
    ) -> EmbeddingSimilarity:
        """Embed texts by id, each matrix in one batch."""
        return cls(
            _row_by_id(questions),
            _row_by_id(passages),
            await embedder.queries(list(questions.values())),
            await embedder.documents(list(passages.values())),
        )

    def cosine(self, question: str, passage: str) -> float | None:
        """Of the question and the passage with these ids; None where one was not embedded."""
        return self.cosines(question, (passage,))[0]

    def knows(self, question: str, passage: str) -> bool:
        """Whether both were embedded."""
        return question in self._questions and passage in self._passages

    def cosines(self, question: str, passages: Sequence[str]) -> list[float | None]:
        """As `cosine`, to the last digit, of one question and many passages, in their order."""
        import numpy as np

        row = self._questions.get(question)
        columns = [self._passages.get(passage) for passage in passages]
        embedded = [column for column in columns if column is not None]
        if row is None or not embedded:
            return [None] * len(passages)
        # Not a matrix product, whose rounding depends on the number of rows.
        vectors = self._passage_vectors[embedded]
        products = iter(np.einsum("ij,j->i", vectors, self._question_vectors[row]).tolist())
        return [
            None if column is None else min(max(next(products), -1.0), 1.0) for column in columns
        ]

    def ranks(
        self, pairs: Sequence[tuple[str, str]], pool: Sequence[str]
    ) -> dict[tuple[str, str], int]:
        """The rank from 1 of each pair's passage among the pool's, all ordered by cosine.

        Parameters
        ----------
        pairs : sequence of (str, str)
            Ids of a question and of a passage; those not embedded have no rank.
        pool : sequence of str
            Ids of passages that were all embedded.
        """
        import numpy as np

        embedded = [pair for pair in pairs if self.knows(*pair)]
        if not embedded:
            return {}
        pool_vectors = self._passage_vectors[[self._passages[id_] for id_ in pool]]
        block = max(1, _BLOCK_SIZE // max(1, len(pool)))
        ranks: dict[tuple[str, str], int] = {}
        for start in range(0, len(embedded), block):
            part = embedded[start : start + block]
            queries = self._question_vectors[[self._questions[question] for question, _ in part]]
            passages = self._passage_vectors[[self._passages[passage] for _, passage in part]]
            own = np.einsum("ij,ij->i", queries, passages)
            above = (queries @ pool_vectors.T > own[:, None] + _TOLERANCE).sum(axis=1)
            ranks |= {pair: int(count) + 1 for pair, count in zip(part, above, strict=True)}
        return ranks


class LexicalSimilarity:
    """What questions and passages share in words.

    Parameters
    ----------
    texts : mapping of str to str
        Passages, by id; each is cut into stems when it is first needed, and once.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._stems: dict[str, tuple[str, ...]] = {}

    def shared(self, question: str, passage: str) -> float | None:
        """Share of the question's content stems that the passage with this id has.

        None where the question has no stem, or the passage no text.
        """
        question_stems = _question_stems(question)
        if not question_stems or passage not in self._texts:
            return None
        return len(question_stems.intersection(self._stems_of(passage))) / len(question_stems)

    def ranks(
        self, pairs: Iterable[tuple[str, str]], pool: Sequence[str]
    ) -> dict[tuple[str, str], int]:
        """The BM25 rank from 1 of passages among the pool's.

        Parameters
        ----------
        pairs : iterable of (str, str)
            A question, and the id of a passage of the pool; others have no rank.
        pool : sequence of str
            Ids of passages with a text. Passages that share no stem with the question rank last.
        """
        rows = _row_by_id(pool)
        by_question: dict[str, list[str]] = {}
        for question, passage in pairs:
            if passage in rows:
                by_question.setdefault(question, []).append(passage)
        if not by_question:
            return {}
        index = Bm25Index(map(self._stems_of, pool))
        ranks: dict[tuple[str, str], int] = {}
        for question, passages in by_question.items():
            scores = index.scores(stems(question))
            for passage in passages:
                own = float(scores[rows[passage]])
                above = int((scores > own * (1 + _TOLERANCE)).sum())
                ranks[question, passage] = above + 1 if own > 0 else len(rows)
        return ranks

    def _stems_of(self, passage: str) -> tuple[str, ...]:
        if passage not in self._stems:
            self._stems[passage] = passage_stems(self._texts[passage])
        return self._stems[passage]


@lru_cache(maxsize=16)  # one question is asked of several passages, one after the other
def _question_stems(question: str) -> frozenset[str]:
    return frozenset(stems(question))


def _row_by_id(names: Iterable[str]) -> dict[str, int]:
    return {name: row for row, name in enumerate(names)}
