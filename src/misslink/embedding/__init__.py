"""Texts as vectors, by any embedding model of LangChain, computed once and kept by content."""

from misslink.embedding.cache import DEFAULT_CACHE
from misslink.embedding.embedder import Embedder
from misslink.embedding.identity import identity_of, name_of
from misslink.embedding.opening import open_embedder

__all__ = ["DEFAULT_CACHE", "Embedder", "identity_of", "name_of", "open_embedder"]
