"""Sentence similarity by MiniLM, from weights that a package carries: no download, no network."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from misslink.embedding.minilm import PACKAGES, load_minilm, not_installed

__all__ = ["SentenceSimilarity"]

_NEEDED_BY = "embedded:minilm"
KEPT = 50_000  # sentences whose vectors are kept, about 80 MB
DIGITS = 4  # vectors differ in the seventh digit with the batch they were computed in


class SentenceSimilarity:
    """Cosine similarity of sentences; the packages are imported with the first ones.

    Raises
    ------
    MissingExtraError
        sentence-transformers or the package with the weights is not installed.
    """

    def __init__(self) -> None:
        if not all(map(find_spec, PACKAGES)):
            raise not_installed(_NEEDED_BY)
        self._model: Any = None
        self._vectors: OrderedDict[str, Any] = OrderedDict()
        # The tokenizer cannot be used by two threads at once.
        self._lock = threading.Lock()

    def nearest(self, claims: Sequence[str], sentences: Sequence[str]) -> list[float]:
        """For each claim the similarity of the nearest sentence, in [-1, 1].

        Without sentences there is nothing similar: 0 for each claim.
        """
        if not claims or not sentences:
            return [0.0] * len(claims)
        with self._lock:
            vectors = self._encode([*claims, *sentences])
        import numpy as np

        table = np.stack(vectors[: len(claims)]) @ np.stack(vectors[len(claims) :]).T
        return [round(float(row.max()), DIGITS) for row in table]

    def _encode(self, texts: Sequence[str]) -> list[Any]:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            model = self._model = self._model or load_minilm(_NEEDED_BY)
            encoded = model.encode(new, normalize_embeddings=True, show_progress_bar=False)
            self._vectors.update(zip(new, encoded, strict=True))
        for text in texts:
            self._vectors.move_to_end(text)
        found = [self._vectors[text] for text in texts]
        while len(self._vectors) > KEPT:
            self._vectors.popitem(last=False)
        return found
