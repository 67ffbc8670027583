"""Rank texts by BM25 over their stems."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Scores of stems in many texts are added as whole rows, which is seven times as fast.
_FREQUENT = 0.1  # of the texts
_FREQUENT_BYTES = 50_000_000


class Bm25Index:
    """BM25 in Lucene's variant (k1 = 1.5, b = 0.75), as `bm25s` computes it.

    Parameters
    ----------
    documents : iterable of sequence of str
        The stems of each text, repetitions kept. There may be none.

    References
    ----------
    Robertson and Zaragoza (2009), The probabilistic relevance framework: BM25 and beyond.
    Lù (2024), BM25S: orders of magnitude faster lexical search via eager sparse scoring.

    Examples
    --------
    >>> scores = Bm25Index([["ferry", "holm"], ["bakery"]]).scores(["ferry", "zebra"])
    >>> [f"{score:.3f}" for score in scores]
    ['0.241', '0.000']
    """

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        import bm25s

        # Each stem is stored once: 100,000 passages have millions.
        rows = [list(map(sys.intern, document)) for document in documents]
        self._count = len(rows)
        self._index: Any = bm25s.BM25()
        self._columns: dict[str, int] = {}
        self._frequent: dict[int, NDArray[np.float32]] = {}
        if any(rows):  # bm25s cannot index texts without words
            self._index.index(rows, create_empty_token=False, show_progress=False)
            self._columns = self._index.vocab_dict

    def scores(self, query: Iterable[str]) -> NDArray[np.float32]:
        """Return the score of each text; 0 where it shares no stem with the query.

        Parameters
        ----------
        query : iterable of str
            Stems; a repeated one counts as often as it stands there.
        """
        import numpy as np

        scores = np.zeros(self._count, dtype=np.float32)
        for column in (self._columns[stem] for stem in query if stem in self._columns):
            texts, values = self._postings(column)
            if column in self._frequent:
                scores += self._frequent[column]
            elif len(texts) < _FREQUENT * self._count:
                np.add.at(scores, texts, values)
            else:
                whole = np.zeros(self._count, dtype=np.float32)
                whole[texts] = values
                scores += whole
                if (len(self._frequent) + 1) * whole.nbytes <= _FREQUENT_BYTES:
                    self._frequent[column] = whole
        return scores

    def _postings(self, column: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The texts that have a stem, and what each scores for it."""
        table = self._index.scores
        place = slice(table["indptr"][column], table["indptr"][column + 1])
        return table["indices"][place], table["data"][place]

    def frequency(self, stem: str) -> int:
        """Return the number of texts that contain a stem."""
        if stem not in self._columns:
            return 0
        return len(self._postings(self._columns[stem])[0])
