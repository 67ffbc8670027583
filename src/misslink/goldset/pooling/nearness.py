"""How near every passage of a corpus is to a question: by words (BM25) or by meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from misslink.judging.embedded.lexical import stems

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from misslink.embedding import Embedder

__all__ = ["ByMeaning", "ByWords"]


class ByWords:
    """BM25 over stems, as `bm25s` computes it.

    Parameters
    ----------
    texts : sequence of str

    References
    ----------
    Robertson and Zaragoza (2009), The probabilistic relevance framework: BM25 and beyond.
    """

    name = "bm25"

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s

        rows = [list(stems(text)) for text in texts]
        self._count = len(rows)
        self._index: Any = None
        if any(rows):  # of passages without a single word it cannot make one
            self._index = bm25s.BM25()
            self._index.index(rows, show_progress=False)

    def order(self, question: str) -> NDArray[np.int64]:
        """Places of all passages, nearest first; of equal ones the first in the corpus first."""
        asked = [one for one in stems(question) if self._index and one in self._index.vocab_dict]
        if not asked:
            return np.arange(self._count)
        return np.argsort(-self._index.get_scores(asked), kind="stable")


class ByMeaning:
    """Cosines of embeddings, of which every text is embedded once.

    Parameters
    ----------
    name : str
        Of the model.
    questions : mapping of str to row
    asked, given : array of float32
        Unit vectors of the questions and of the passages.
    """

    def __init__(
        self,
        name: str,
        questions: dict[str, int],
        asked: NDArray[np.float32],
        given: NDArray[np.float32],
    ) -> None:
        self.name = name
        self._questions, self._asked, self._given = questions, asked, given

    @classmethod
    def of(cls, embedder: Embedder, questions: Sequence[str], texts: Sequence[str]) -> ByMeaning:
        """Embed questions and passages."""

        async def both() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            return await embedder.queries(questions), await embedder.documents(texts)

        asked, given = asyncio.run(both())
        return cls(embedder.name, {text: at for at, text in enumerate(questions)}, asked, given)

    def order(self, question: str) -> NDArray[np.int64]:
        """Places of all passages, nearest first; of equal ones the first in the corpus first."""
        found = self._given @ self._asked[self._questions[question]]
        return np.argsort(-found, kind="stable")
