"""The content words of passages, cut once for all that compares them."""

from __future__ import annotations

from functools import lru_cache

from misslink.judging.embedded.lexical import stems

__all__ = ["passage_stems"]


@lru_cache(maxsize=16_384)  # more than an index that is listed; 30 MB of passages of 1,000 letters
def passage_stems(text: str) -> tuple[str, ...]:
    """Return the content stems of a passage, in order, repetitions kept.

    As `misslink.judging.embedded.lexical.stems`. To cut a passage takes half a millisecond, and
    BM25, shared words, and near-duplicates each ask for those of every passage of the index.
    """
    return stems(text)
