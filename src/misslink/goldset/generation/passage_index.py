"""Find the passages nearest to a passage or a question, by embedding and by BM25."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from misslink.embedding import Embedder, open_embedder
from misslink.embedding.providers import MINILM_PACKAGES
from misslink.goldset.generation.corpus import word_trigrams
from misslink.linking.corpus_search import fuse_rankings
from misslink.text.bm25 import Bm25Index
from misslink.text.normalization import stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float32]


_RAREST_STEMS = 12  # of a passage, to find its neighbors by words
_REPEAT_SHARE = 0.6  # of common word trigrams, from which on two passages say the same
_SCORE_DECIMALS = 5  # further ones are rounding


def open_optional_embedder(spec: Any) -> Embedder | None:
    """Open an embedder; see `open_embedder`.

    Parameters
    ----------
    spec : str, Embeddings or None
        'none': return None. None: minilm where it is installed, else None.

    Raises
    ------
    InputError, MissingExtraError
        As `open_embedder`.
    """
    if spec is None:
        spec = "minilm" if all(map(find_spec, MINILM_PACKAGES)) else "none"
    return None if spec == "none" else open_embedder(spec)


class PassageIndex:
    """Finds passages of a corpus.

    Parameters
    ----------
    texts : sequence of str
    embedder : Embedder or None
    vectors : array of float32, shape (texts, d), rows of length 1, or None

    Attributes
    ----------
    embedder : Embedder or None
    """

    def __init__(
        self, texts: Sequence[str], embedder: Embedder | None, vectors: Scores | None
    ) -> None:
        self._texts = texts
        self.embedder = embedder
        self._vectors = vectors
        self._queries: dict[str, Scores] = {}
        self._trigrams: dict[int, frozenset[str]] = {}
        self._bm25 = Bm25Index(map(stems, texts))

    @classmethod
    async def build(cls, texts: Sequence[str], embedder: Embedder | None) -> PassageIndex:
        """Embed the texts and index their words.

        Raises
        ------
        InputError
            The embedding model failed.
        """
        vectors = None if embedder is None else await embedder.documents(texts)
        return cls(texts, embedder, vectors)

    async def read(self, questions: Sequence[str]) -> None:
        """Embed questions in one batch, before they are used in `near` or `cosines`."""
        new = [question for question in dict.fromkeys(questions) if question not in self._queries]
        if self.embedder is not None and new:
            rows = await self.embedder.queries(new)
            self._queries |= dict(zip(new, rows, strict=True))

    def cosines(self, question: str, others: Sequence[str]) -> Scores | None:
        """Return the cosines of a question to at least one other; None without an embedder."""
        if self.embedder is None:
            return None
        import numpy as np

        table: Scores = np.stack([self._queries[other] for other in others])
        return table @ self._queries[question]

    def near(
        self, question: str, k: int, without: Collection[int] = (), answer: str = ""
    ) -> list[int]:
        """Return the indices of the `k` passages nearest to a question, nearest first."""
        words = self._bm25.scores(stems(f"{question} {answer}"))
        orders = [[place for place in _rank_descending(words) if words[place] > 0]]
        if self._vectors is not None and question in self._queries:
            orders.append(_rank_descending(self._vectors @ self._queries[question]))
        allowed = (
            (p for p in order if p not in without and self._texts[p].strip()) for order in orders
        )
        return fuse_rankings([list(islice(places, 2 * k)) for places in allowed], k)

    def neighbours(self, place: int, k: int, among: Collection[int]) -> list[int]:
        """Return the `k` passages of `among` nearest to passage `place`, without repeated texts."""
        if self._vectors is not None:
            scores = self._vectors @ self._vectors[place]
        else:
            counts = {stem: self._bm25.frequency(stem) for stem in stems(self._texts[place])}
            shared = [stem for stem, count in counts.items() if count > 1]
            shared.sort(key=lambda stem: (counts[stem], stem))
            scores = self._bm25.scores(shared[:_RAREST_STEMS])
        near: list[int] = []
        for other in _rank_descending(scores):
            if len(near) == k or scores[other] <= 0:
                break
            if other == place or other not in among:
                continue
            if not any(self._is_repeat(other, earlier) for earlier in (place, *near)):
                near.append(other)
        return near

    def _is_repeat(self, place: int, other: int) -> bool:
        for index in (place, other):
            if index not in self._trigrams:
                self._trigrams[index] = word_trigrams(self._texts[index])
        first, second = self._trigrams[place], self._trigrams[other]
        return len(first & second) >= _REPEAT_SHARE * min(len(first), len(second))


def _rank_descending(scores: Scores) -> list[int]:
    import numpy as np

    order: list[int] = np.argsort(-np.round(scores, _SCORE_DECIMALS), kind="stable").tolist()
    return order
