"""What stands near a passage or a question: by meaning, where there is a model, and by words."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from misslink.embedding import Embedder, open_embedder
from misslink.embedding.minilm import PACKAGES
from misslink.goldset.generating.quality import trigrams
from misslink.judging.embedded.lexical import stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float32]

__all__ = ["Index", "embedder_of"]

_TELLING = 12  # of a passage's stems, the rarest: what it shares with its neighbours
_SAME = 0.6  # share of common trigrams of words from which on two passages say the same
_FUSED = 60  # of reciprocal rank fusion, as its authors have it
_DIGITS = 5  # of a score; what differs beyond them is rounding


def embedder_of(spec: Any) -> Embedder | None:
    """Open what `open_embedder` opens.

    Parameters
    ----------
    spec : str, Embeddings or None
        'none': by words alone. None: minilm where it is installed, else by words alone.

    Raises
    ------
    InputError, MissingExtraError
        As `open_embedder`.
    """
    if spec == "none":
        return None
    if spec is None:
        return open_embedder("minilm") if all(map(find_spec, PACKAGES)) else None
    return open_embedder(spec)


class Index:
    """A corpus in which passages are found.

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
        self._bm25, self._known = _bm25(texts)
        self._trigrams: dict[int, frozenset[str]] = {}
        self._asked: dict[str, Scores] = {}

    @classmethod
    async def of(cls, texts: Sequence[str], embedder: Embedder | None) -> Index:
        """Embed the texts and index their words.

        Raises
        ------
        InputError
            The embedding model failed.
        """
        vectors = None if embedder is None else await embedder.documents(texts)
        return cls(texts, embedder, vectors)

    async def read(self, questions: Sequence[str]) -> None:
        """Embed questions in one batch, before `near` is asked about them."""
        new = [one for one in dict.fromkeys(questions) if one not in self._asked]
        if self.embedder is not None and new:
            rows = await self.embedder.queries(new)
            self._asked |= dict(zip(new, rows, strict=True))

    def cosines(self, question: str, others: Sequence[str]) -> Scores | None:
        """Of a question to at least one other, all of them read; None without an embedding."""
        if self.embedder is None:
            return None
        import numpy as np

        table: Scores = np.stack([self._asked[other] for other in others])
        return table @ self._asked[question]

    def near(
        self, question: str, k: int, without: Collection[int] = (), answer: str = ""
    ) -> list[int]:
        """Return the places of the `k` passages nearest to a question, nearest first.

        By meaning and by BM25, fused by reciprocal rank; a passage that shares no word with it or
        with its answer has no rank by words. Blank passages are never near.

        References
        ----------
        Cormack, Clarke and Buettcher (2009), Reciprocal rank fusion outperforms Condorcet.
        """
        words = self._by_words(stems(f"{question} {answer}"))
        orders = [[at for at in _descending(words) if words[at] > 0]]
        if self._vectors is not None and question in self._asked:
            orders.append(_descending(self._vectors @ self._asked[question]))
        fused: dict[int, float] = {}
        for order in orders:
            kept = (at for at in order if at not in without and self._texts[at].strip())
            for rank, at in enumerate(_first(kept, 2 * k), start=1):
                fused[at] = fused.get(at, 0.0) + 1 / (_FUSED + rank)
        return sorted(fused, key=lambda at: (-fused[at], at))[:k]

    def neighbours(self, place: int, k: int, among: Collection[int]) -> list[int]:
        """Return the `k` passages nearest to one, of those `among`, none of which repeats another.

        By meaning where there is an embedding, else by the rarest words that they share.
        """
        if self._vectors is not None:
            scores = self._vectors @ self._vectors[place]
        else:
            scores = self._by_words(self._telling(place))
        found: list[int] = []
        for at in _descending(scores):
            if len(found) == k or scores[at] <= 0:
                break
            if at == place or at not in among:
                continue
            if not any(self._repeats(at, other) for other in (place, *found)):
                found.append(at)
        return found

    def _repeats(self, one: int, other: int) -> bool:
        first, second = self._words_of(one), self._words_of(other)
        return len(first & second) >= _SAME * min(len(first), len(second))

    def _words_of(self, at: int) -> frozenset[str]:
        if at not in self._trigrams:
            self._trigrams[at] = trigrams(self._texts[at])
        return self._trigrams[at]

    def _telling(self, place: int) -> list[str]:
        holders: dict[str, int] = {}
        for stem in set(stems(self._texts[place])):
            holders[stem] = self._held(stem)
        shared = [stem for stem, count in holders.items() if count > 1]
        return sorted(shared, key=lambda stem: (holders[stem], stem))[:_TELLING]

    def _held(self, stem: str) -> int:
        return self._known.get(stem, 0)

    def _by_words(self, wanted: Sequence[str]) -> Scores:
        import numpy as np

        asked = [stem for stem in wanted if stem in self._known]
        if self._bm25 is None or not asked:
            return np.zeros(len(self._texts), dtype=np.float32)
        scores: Scores = self._bm25.get_scores(asked)
        return scores


def _bm25(texts: Sequence[str]) -> tuple[Any, dict[str, int]]:
    """The index of words, and in how many passages each stem stands; None where there is none."""
    import bm25s

    # Each stem is held once: of 100,000 passages there are millions.
    rows = [list(map(sys.intern, stems(text))) for text in texts]
    known: dict[str, int] = {}
    for row in rows:
        for stem in set(row):
            known[stem] = known.get(stem, 0) + 1
    if not known:
        return None, known
    index = bm25s.BM25()
    index.index(rows, show_progress=False)
    return index, known


def _descending(scores: Scores) -> list[int]:
    import numpy as np

    order: list[int] = np.argsort(-np.round(scores, _DIGITS), kind="stable").tolist()
    return order


def _first(places: Any, count: int) -> list[int]:
    import itertools

    return list(itertools.islice(places, count))
