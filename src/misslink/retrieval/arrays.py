"""Arrays of many short rankings, and ids as 64-bit hashes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
ScoreArray = NDArray[np.floating[Any]]

_INT64_LIMIT = 1 << 63  # greater than every 64-bit integer


def segment_offsets(lengths: IntArray) -> IntArray:
    """Return where each segment starts, and where the last one ends."""
    start = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=start[1:])
    return start


def group_starts(ids: Any) -> IntArray:
    """Return 0 and every place where an id differs from the one before.

    `ids` is a large_string array without nulls; nothing is returned for an empty one.
    """
    import pyarrow.compute as pc

    if not len(ids):
        return np.empty(0, dtype=np.int64)
    changes = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


def segment_indices(start: IntArray, lengths: IntArray) -> IntArray:
    """Return the indices of all entries of segments that lie anywhere, segment by segment."""
    indices = np.arange(int(lengths.sum()), dtype=np.int64)
    indices += np.repeat(start - segment_offsets(lengths)[:-1], lengths)
    return indices


def order_by_row(row: IntArray, within: IntArray) -> IntArray:
    """Return the order by row, and in a row by `within`; neither is below 0."""
    width = int(within.max(initial=0)) + 1
    if (int(row.max(initial=0)) + 1) * width < _INT64_LIMIT:
        # The rows mostly ascend already, which a stable sort uses.
        return np.argsort(row * width + within, kind="stable")
    return np.lexsort((within, row))


def sort_within_segments(values: NDArray[Any], start: IntArray) -> NDArray[Any]:
    """Sort the values within each segment; all segments of one length together."""
    lengths = np.diff(start)
    longest = int(lengths.max(initial=0))
    if longest and lengths.min() == longest:
        return np.sort(values.reshape(-1, longest), axis=1).ravel()
    ordered = values.copy()
    for length in np.unique(lengths[lengths > 1]).tolist():
        places = start[:-1][lengths == length][:, None] + np.arange(length)
        ordered[places] = np.sort(values[places], axis=1)
    return ordered


def segments_with_duplicates(values: NDArray[Any], start: IntArray) -> IntArray:
    """Return the numbers of the segments that hold a value twice.

    Of 64-bit hashes half of the bits are compared first, in half of the time.
    """
    if values.dtype == np.uint64:
        candidates = segments_with_duplicates(values.astype(np.uint32), start)
        if not len(candidates):
            return candidates
        lengths = np.diff(start)[candidates]
        values = values[segment_indices(start[:-1][candidates], lengths)]
        return candidates[_find_duplicates(values, segment_offsets(lengths))]
    return _find_duplicates(values, start)


def _find_duplicates(values: NDArray[Any], start: IntArray) -> IntArray:
    ordered = sort_within_segments(values, start)
    equal = np.flatnonzero(ordered[1:] == ordered[:-1])
    segment = np.searchsorted(start, equal, side="right") - 1
    return np.unique(segment[equal + 1 < start[segment + 1]])


def as_single_precision(scores: ScoreArray) -> NDArray[np.float32]:
    """Return scores in single precision, like trec_eval: later digits do not break ties."""
    with np.errstate(over="ignore"):  # scores beyond 3.4e38 are tied
        return scores.astype(np.float32)


def rank_documents(
    scores: ScoreArray,
    start: IntArray,
    row: IntArray,
    score: ScoreArray,
    document: Callable[[int], str],
    row_items: Callable[[int], Iterable[tuple[str, float]]],
) -> IntArray:
    """Rank some documents from 1, by score descending, then by id descending like trec_eval.

    A rank is one more than the number of greater scores in the row; ids are compared only where
    scores are equal.

    Parameters
    ----------
    scores : array of float
        Of everything retrieved, row after row.
    start : array of int, shape (rows + 1,)
    row, score : of the same length
        Of the documents to rank.
    document : callable
        Returns the id of one of them.
    row_items : callable
        Returns the ids and scores of a row.
    """
    ordered = sort_within_segments(scores, start)
    first, last = start[row], start[row + 1]
    not_above = _search_segments(ordered, first, last, score, np.less_equal)
    equal = not_above - _search_segments(ordered, first, last, score, np.less)
    ranks = last - not_above + 1
    code = -1
    groups: dict[float, list[str]] = {}
    for index in np.flatnonzero(equal > 1).tolist():
        if row[index] != code:
            code = int(row[index])
            groups = {}
            for name, value in row_items(code):
                groups.setdefault(float(value), []).append(name)
            for names in groups.values():
                names.sort()
        names = groups[float(score[index])]
        ranks[index] += len(names) - bisect_right(names, document(index))
    return ranks


def _search_segments(
    ordered: ScoreArray,
    first: IntArray,
    last: IntArray,
    target: ScoreArray,
    precedes: Callable[[ScoreArray, ScoreArray], BoolArray],
) -> IntArray:
    """Binary search for all targets at once, each in its own segment."""
    low, high = first.copy(), last.copy()
    while True:
        unfinished = low < high
        if not unfinished.any():
            return low
        middle = (low + high) >> 1
        right = precedes(ordered[np.minimum(middle, len(ordered) - 1)], target) & unfinished
        low = np.where(right, middle + 1, low)
        high = np.where(unfinished & ~right, middle, high)


IdHashes = NDArray[np.uint64]

_WORD_BYTES = 8
# 2^64 / golden ratio: multiplying by it spreads the bits.
_GOLDEN_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_LENGTH_FACTOR = np.uint64(0x94D049BB133111EB)
_SECOND_FACTOR = np.uint64(0xC2B2AE3D27D4EB4F)
_HALF_BITS = np.uint64(32)
_SHORT_ID_BYTES = 64  # mean length up to which all words are laid out
_BLOCK_IDS = 1 << 15  # ids at a time; they fit in the processor's cache


def hash_ids(ids: Any) -> IdHashes:
    """Hash a large_string array without nulls.

    Different ids almost never share a hash, but could be made to: compare ids of equal hashes.
    """
    hashes = np.empty(len(ids), dtype=np.uint64)
    if not len(ids):
        return hashes
    _, ends, texts = ids.buffers()
    edges = np.frombuffer(ends, dtype=np.int64)[ids.offset : ids.offset + len(ids) + 1]
    text = np.frombuffer(texts if texts is not None else b"", dtype=np.uint8)
    for start in range(0, len(ids), _BLOCK_IDS):
        hashes[start : start + _BLOCK_IDS] = _hash_texts(
            text, edges[start : start + _BLOCK_IDS + 1]
        )
    return hashes


def _hash_texts(text: NDArray[np.uint8], edges: IntArray) -> IdHashes:
    """Hash adjacent texts: first and last word, length, and the words between."""
    low, high = int(edges[0]), int(edges[-1])
    if low < _WORD_BYTES or high + _WORD_BYTES > len(text):  # words may be read past either end
        raw = np.zeros(high - low + 2 * _WORD_BYTES, dtype=np.uint8)
        raw[_WORD_BYTES:-_WORD_BYTES] = text[low:high]
    else:
        raw = text[low - _WORD_BYTES : high + _WORD_BYTES]
    edges = edges - (low - _WORD_BYTES)
    words = np.ndarray((len(raw) - _WORD_BYTES + 1,), dtype="<u8", buffer=raw.data, strides=(1,))
    if len(raw) < _SHORT_ID_BYTES * len(edges):
        words = words.copy()  # NumPy looks up numbers five times as fast where they are aligned
    lengths = np.diff(edges)
    first, last = words[edges[:-1]], words[edges[1:] - _WORD_BYTES]
    short = np.flatnonzero(lengths < _WORD_BYTES)
    if len(short):
        spare = (8 * (_WORD_BYTES - lengths[short])).astype(np.uint64)
        # By all of its bits a shift is not defined: twice by half of them.
        half = spare >> np.uint64(1)
        first[short] = last[short] = (last[short] >> half) >> (spare - half)
    hashes: IdHashes = first
    hashes ^= lengths.view(np.uint64) * _LENGTH_FACTOR
    _mix_bits(hashes)
    hashes ^= last
    _mix_bits(hashes)
    for done in range(_WORD_BYTES, int(lengths.max()) - _WORD_BYTES, _WORD_BYTES):
        places = np.flatnonzero(lengths > done + _WORD_BYTES)
        more = hashes[places] ^ words[edges[places] + done]
        _mix_bits(more)
        hashes[places] = more
    return hashes


def hash_pairs(query: IntArray, documents: IdHashes) -> IdHashes:
    """Hash pairs of a query, by its number, and a document, by its hash."""
    return documents ^ ((query.astype(np.uint64) + np.uint64(1)) * _GOLDEN_FACTOR)


def _mix_bits(hashes: IdHashes) -> None:
    """Spread a difference in any bit over all bits."""
    for factor in (_GOLDEN_FACTOR, _SECOND_FACTOR):
        hashes *= factor  # moves upwards only
        hashes ^= hashes >> _HALF_BITS
