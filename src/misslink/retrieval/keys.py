"""Ids as numbers of 64 bits, so that millions are compared without a Python object for any."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Keys", "keys_of", "pair_keys"]

Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]

_WORD = 8  # bytes
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplying by it spreads the bits
_OTHER = np.uint64(0xC2B2AE3D27D4EB4F)
_DOWN = np.uint64(32)
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(_WORD + 1)], dtype=np.uint64)


def keys_of(ids: Any) -> Keys:
    """A number for every id; equal ids have equal numbers, others almost never.

    Whoever uses them compares the ids where the numbers are equal: somebody could make two ids
    that share theirs.

    Parameters
    ----------
    ids : pyarrow.LargeStringArray
        Without nulls.
    """
    if not len(ids):
        return np.empty(0, dtype=np.uint64)
    _, ends, texts = ids.buffers()
    edges = np.frombuffer(ends, dtype=np.int64)[ids.offset : ids.offset + len(ids) + 1]
    low, high = int(edges[0]), int(edges[-1])
    raw = np.zeros(high - low + _WORD, dtype=np.uint8)  # the last word may be read past its end
    if high > low:
        raw[: high - low] = np.frombuffer(texts, dtype=np.uint8)[low:high]
    words = np.ndarray((len(raw) - _WORD + 1,), dtype="<u8", buffer=raw.data, strides=(1,))
    lengths = np.diff(edges)
    keys = lengths.astype(np.uint64) * _OTHER
    at, left, places = edges[:-1] - low, lengths, None
    while len(at):
        word = words[at] & _MASKS[np.minimum(left, _WORD)]
        if places is None:
            keys = _mixed(keys, word)
        else:
            keys[places] = _mixed(keys[places], word)
        more = left > _WORD
        if not more.all():
            places = np.flatnonzero(more) if places is None else places[more]
            at, left = at[more], left[more]
        at, left = at + _WORD, left - _WORD
    return keys


def pair_keys(query: Ints, documents: Keys) -> Keys:
    """A number for every pair of a query, by its place, and a document, by its key."""
    return documents ^ ((query.astype(np.uint64) + np.uint64(1)) * _ODD)


def _mixed(keys: Keys, word: Keys) -> Keys:
    mixed = (keys ^ word) * _ODD
    mixed ^= mixed >> _DOWN
    mixed *= _OTHER
    mixed ^= mixed >> _DOWN
    return mixed
