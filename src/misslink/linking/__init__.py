"""Why a case failed, how often failures come with retrieval misses, and what would fix them."""

from __future__ import annotations
