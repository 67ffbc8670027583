"""Rank texts by BM25 over their stems."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_K1, _B = 1.5, 0.75
# Scores of stems in many texts are added as whole rows, which is seven times as fast.
_FREQUENT = 0.1  # of the texts
_FREQUENT_BYTES = 50_000_000


class Bm25Index:
    """BM25 in Lucene's variant (k1 = 1.5, b = 0.75).

    As `bm25s` computes it, whose import compiles with numba.

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
        import numpy as np

        stem_ids: dict[str, int] = {}
        columns: list[int] = []  # the stem of each word
        lengths: list[int] = []
        for document in documents:
            # Each stem is stored once: 100,000 passages have millions.
            columns += [stem_ids.setdefault(sys.intern(stem), len(stem_ids)) for stem in document]
            lengths.append(len(document))
        self._count = len(lengths)
        self._columns = stem_ids
        self._frequent: dict[int, NDArray[np.float32]] = {}
        length = np.array(lengths, dtype=np.int64)
        text = np.repeat(np.arange(self._count), length)
        pair = np.array(columns, dtype=np.int64) * max(self._count, 1) + text
        pair, times = np.unique(pair, return_counts=True)
        column, self._texts = np.divmod(pair, max(self._count, 1))
        frequency = np.bincount(column, minlength=len(stem_ids))
        self._start = np.concatenate(([0], np.cumsum(frequency)))
        rarity = np.log(1 + (self._count - frequency + 0.5) / (frequency + 0.5))
        relative = length[self._texts] / length.mean() if len(pair) else times
        weight = times / (_K1 * (1 - _B + _B * relative) + times)
        self._values = (rarity[column] * weight).astype(np.float32)

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

    def _postings(self, column: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The texts that have a stem, and what each scores for it."""
        place = slice(self._start[column], self._start[column + 1])
        return self._texts[place], self._values[place]

    def frequency(self, stem: str) -> int:
        """Return the number of texts that contain a stem."""
        if stem not in self._columns:
            return 0
        return len(self._postings(self._columns[stem])[0])
