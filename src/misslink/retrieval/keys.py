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
_LENGTH = np.uint64(0x94D049BB133111EB)
_OTHER = np.uint64(0xC2B2AE3D27D4EB4F)
_DOWN = np.uint64(32)
_SHORT = 64  # bytes of an id, on average, up to which all words are laid out
_AT_ONCE = 1 << 15  # ids at a time: what is made of them stays in the processor's cache


def keys_of(ids: Any) -> Keys:
    """A number for every id; equal ids have equal numbers, others almost never.

    Whoever uses them compares the ids where the numbers are equal: somebody could make two ids
    that share theirs.

    Parameters
    ----------
    ids : pyarrow.LargeStringArray
        Without nulls.
    """
    keys = np.empty(len(ids), dtype=np.uint64)
    if not len(ids):
        return keys
    _, ends, texts = ids.buffers()
    edges = np.frombuffer(ends, dtype=np.int64)[ids.offset : ids.offset + len(ids) + 1]
    text = np.frombuffer(texts if texts is not None else b"", dtype=np.uint8)
    for at in range(0, len(ids), _AT_ONCE):
        keys[at : at + _AT_ONCE] = _keys(text, edges[at : at + _AT_ONCE + 1])
    return keys


def _keys(text: NDArray[np.uint8], edges: Ints) -> Keys:
    """Of ids whose texts follow each other: first and last word, length, and words between."""
    low, high = int(edges[0]), int(edges[-1])
    if low < _WORD or high + _WORD > len(text):  # words may be read past either end
        raw = np.zeros(high - low + 2 * _WORD, dtype=np.uint8)
        raw[_WORD:-_WORD] = text[low:high]
    else:
        raw = text[low - _WORD : high + _WORD]
    edges = edges - (low - _WORD)
    words = np.ndarray((len(raw) - _WORD + 1,), dtype="<u8", buffer=raw.data, strides=(1,))
    if len(raw) < _SHORT * len(edges):
        words = words.copy()  # NumPy looks up numbers five times as fast where they are aligned
    lengths = np.diff(edges)
    first, last = words[edges[:-1]], words[edges[1:] - _WORD]
    short = np.flatnonzero(lengths < _WORD)
    if len(short):
        spare = (8 * (_WORD - lengths[short])).astype(np.uint64)
        # By all of its bits a shift is not defined: twice by half of them.
        half = spare >> np.uint64(1)
        first[short] = last[short] = (last[short] >> half) >> (spare - half)
    keys: Keys = first
    keys ^= lengths.view(np.uint64) * _LENGTH
    _mix(keys)
    keys ^= last
    _mix(keys)
    for done in range(_WORD, int(lengths.max()) - _WORD, _WORD):
        places = np.flatnonzero(lengths > done + _WORD)
        more = keys[places] ^ words[edges[places] + done]
        _mix(more)
        keys[places] = more
    return keys


def pair_keys(query: Ints, documents: Keys) -> Keys:
    """A number for every pair of a query, by its place, and a document, by its key."""
    return documents ^ ((query.astype(np.uint64) + np.uint64(1)) * _ODD)


def _mix(keys: Keys) -> None:
    """Spread what differs in any bit over all of them."""
    for factor in (_ODD, _OTHER):
        keys *= factor  # moves upwards only
        keys ^= keys >> _DOWN
