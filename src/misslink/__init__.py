"""misslink links retrieval misses to unfaithful answers in RAG apps."""

from __future__ import annotations

__version__ = "0.0.1"
