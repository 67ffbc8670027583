"""How near questions and passages are: by meaning (an embedding), and by words (BM25, stems)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from misslink.judging.embedded.lexical import stems
from misslink.linking.words import passage_stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from misslink.embedding import Embedder

__all__ = ["Meaning", "Words"]

_AT_ONCE = 4_000_000  # cosines held in memory at a time, 16 MB
# Two computations of the same product differ in the seventh digit; that is no better rank.
_ROUNDING = 1e-6


class Meaning:
    """Cosines of questions and passages, both embedded once.

    Parameters
    ----------
    questions, passages : mapping of str to row
        By id, rows of the two matrices.
    asked : array of float32, shape (questions, d), rows of length 1
    given : array of float32, shape (passages, d), rows of length 1
    """

    def __init__(
        self,
        questions: Mapping[str, int],
        passages: Mapping[str, int],
        asked: NDArray[np.float32],
        given: NDArray[np.float32],
    ) -> None:
        self._questions, self._passages = questions, passages
        self._asked, self._given = asked, given

    @classmethod
    async def of(
        cls, embedder: Embedder, questions: Mapping[str, str], passages: Mapping[str, str]
    ) -> Meaning:
        """Embed texts by id, each matrix in one batch."""
        asked = await embedder.queries(list(questions.values()))
        given = await embedder.documents(list(passages.values()))
        return cls(_rows(questions), _rows(passages), asked, given)

    def cosine(self, question: str, passage: str) -> float | None:
        """Of the question and the passage with these ids; None where one was not embedded."""
        return self.cosines(question, (passage,))[0]

    def knows(self, question: str, passage: str) -> bool:
        """Whether both were embedded."""
        return question in self._questions and passage in self._passages

    def cosines(self, question: str, passages: Sequence[str]) -> list[float | None]:
        """As `cosine`, to the last digit, of one question and many passages, in their order."""
        import numpy as np

        found: list[float | None] = [None] * len(passages)
        row = self._questions.get(question)
        columns = list(map(self._passages.get, passages))
        known = [column for column in columns if column is not None]
        if row is None or not known:
            return found
        # Not a product of matrices, which rounds by how many rows there are.
        products = iter(np.einsum("ij,j->i", self._given[known], self._asked[row]).tolist())
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

        known = [(q, p) for q, p in pairs if q in self._questions and p in self._passages]
        if not known:
            return {}
        among = self._given[[self._passages[name] for name in pool]]
        block = max(1, _AT_ONCE // max(1, len(pool)))
        found: dict[tuple[str, str], int] = {}
        for start in range(0, len(known), block):
            part = known[start : start + block]
            asked = self._asked[[self._questions[question] for question, _ in part]]
            own = np.einsum(
                "ij,ij->i", asked, self._given[[self._passages[name] for _, name in part]]
            )
            above = (asked @ among.T > own[:, None] + _ROUNDING).sum(axis=1)
            found |= {pair: int(count) + 1 for pair, count in zip(part, above, strict=True)}
        return found


class Words:
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
        wanted = _asked_for(question)
        if not wanted or passage not in self._texts:
            return None
        return len(wanted.intersection(self._of(passage))) / len(wanted)

    def ranks(
        self, pairs: Iterable[tuple[str, str]], pool: Sequence[str]
    ) -> dict[tuple[str, str], int]:
        """The BM25 rank from 1 of passages among the pool's.

        A passage that shares no word with its question stands last, behind all others.

        Parameters
        ----------
        pairs : iterable of (str, str)
            A question, and the id of a passage of the pool; others have no rank.
        pool : sequence of str
            Ids of passages with a text.

        References
        ----------
        Robertson and Zaragoza (2009), The probabilistic relevance framework. Computed by bm25s.
        """
        rows = _rows(pool)
        wanted: dict[str, list[str]] = {}
        for question, name in pairs:
            if name in rows:
                wanted.setdefault(question, []).append(name)
        if not wanted:
            return {}
        index, known = self._index(pool)
        found: dict[tuple[str, str], int] = {}
        for question, names in wanted.items():
            asked = [stem for stem in stems(question) if stem in known]
            scores = index.get_scores(asked) if asked else None
            for name in names:
                own = 0.0 if scores is None else float(scores[rows[name]])
                rank = len(rows)
                if scores is not None and own > 0:
                    rank = int((scores > own * (1 + _ROUNDING)).sum()) + 1
                found[question, name] = rank
        return found

    def _of(self, passage: str) -> tuple[str, ...]:
        if passage not in self._stems:
            self._stems[passage] = passage_stems(self._texts[passage])
        return self._stems[passage]

    def _index(self, pool: Sequence[str]) -> tuple[Any, set[str]]:
        import bm25s

        rows = [list(self._of(name)) for name in pool]
        index = bm25s.BM25()
        if not any(rows):  # of passages without a single word it cannot make one
            return index, set()
        index.index(rows, show_progress=False)
        return index, set(index.vocab_dict)


@lru_cache(maxsize=16)  # one question is asked of several passages, one after the other
def _asked_for(question: str) -> frozenset[str]:
    return frozenset(stems(question))


def _rows(names: Iterable[str]) -> dict[str, int]:
    return {name: row for row, name in enumerate(names)}
