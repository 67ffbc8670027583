"""Texts as vectors, from any LangChain embedding model, cached by content."""

from __future__ import annotations

from misslink.embedding.cache import DEFAULT_CACHE
from misslink.embedding.embedder import Embedder, embedding_identity, embedding_name
from misslink.embedding.providers import import_without_notebook_warning, open_embedder

__all__ = [
    "DEFAULT_CACHE",
    "Embedder",
    "embedding_identity",
    "embedding_name",
    "import_without_notebook_warning",
    "open_embedder",
]
