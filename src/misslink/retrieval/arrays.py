"""Arrays of many short rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misslink.errors import InputError
from misslink.io.tables import text_buffers

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
ScoreArray = NDArray[np.floating[Any]]

_INT64_LIMIT = 1 << 63  # greater than every 64-bit integer
HASH_BITS = 40
ORDER_BITS = 32
_HASHED_BYTES = (
    256  # of a text, and its end; what is between is left to the comparison of the texts
)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, odd


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


def hash_texts(texts: Any) -> IntArray:
    """Return a number of `HASH_BITS` for each text of a large_string array.

    Computed on the bytes of all texts together, eight at a time: the first eight, those that follow,
    and the last eight, which may overlap these. Different texts may have the same number, so compare
    those whose numbers agree.
    """
    edges, raw = text_buffers(texts)
    padded = np.zeros(len(raw) + 8, dtype=np.uint8)
    padded[: len(raw)] = raw
    words: Any = np.ndarray(len(raw) + 1, "<u8", padded.data, strides=(1,))  # one from each byte on
    start, length = edges[:-1], np.diff(edges)

    def mix(hashed: NDArray[np.uint64], word: NDArray[np.uint64]) -> NDArray[np.uint64]:
        word ^= hashed
        word *= _MIX
        word ^= word >> np.uint64(32)
        return word

    word = words[start]
    short = np.flatnonzero(length < 8)
    word[short] <<= (8 * (8 - length[short])).astype(np.uint64)  # without the next text's bytes
    hashed = mix(length.astype(np.uint64), word)
    for at in range(8, min(int(length.max(initial=0)) - 8, _HASHED_BYTES), 8):
        part = np.flatnonzero(length > at + 8)
        hashed[part] = mix(hashed[part], words[start[part] + at])
    hashed = mix(hashed, words[start + np.maximum(length - 8, 0)] * (length > 8))
    return (hashed * _MIX >> np.uint64(64 - HASH_BITS)).view(np.int64)


def rank_scored(
    order: IntArray,
    own: IntArray,
    start: IntArray,
    texts: Callable[[IntArray], Any],
    document_ids: Callable[[IntArray], Any],
) -> IntArray:
    """Return the ranks from 1 of some entries among those of their rows.

    Parameters
    ----------
    order : array of int, shape (entries,)
        By which all entries are ranked, ascending; the numbers of a row are below those of the
        next.
    own, start : array of int, shape (ranked,)
        That number of each entry to be ranked, and where its row begins.
    texts, document_ids : callable
        Take places in `order` and in `own`, and return the ids as an arrow array of text: tied
        entries are ranked by id descending, like trec_eval.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    ordered = order if (order[1:] >= order[:-1]).all() else np.sort(order)
    ahead = np.searchsorted(ordered, own)
    tied = np.flatnonzero(np.append(ordered, -1)[ahead + 1] == own)
    if len(tied):
        groups, group = np.unique(own[tied], return_inverse=True)
        entry = np.flatnonzero(np.isin(order, groups))
        both = pa.concat_arrays([texts(entry), document_ids(tied)])
        by_text = pc.rank(both, "descending", tiebreaker="min").to_numpy().astype(np.int64)
        width = len(both) + 1
        ladder = np.sort(np.searchsorted(groups, order[entry]) * width + by_text[: len(entry)])
        first, step = group * width, by_text[len(entry) :]
        ahead[tied] += np.searchsorted(ladder, first + step) - np.searchsorted(ladder, first)
    return np.asarray(ahead - start + 1, dtype=np.int64)


def descending(scores: ScoreArray) -> IntArray:
    """Return numbers of `ORDER_BITS` that fall where the scores rise, in single precision."""
    bits = (as_single_precision(scores) + np.float32(0)).view(np.int32)  # -0 is 0
    ascending = bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))
    return np.int64(0x7FFFFFFF) - ascending


def as_single_precision(scores: ScoreArray) -> NDArray[np.float32]:
    """Return scores in single precision, like trec_eval: later digits do not break ties."""
    with np.errstate(over="ignore"):  # scores beyond 3.4e38 are tied
        return scores.astype(np.float32)


def check_text(ids: Iterable[str], name: str) -> None:
    """Raise what `as_text_array` raises, and a TypeError where one of the ids is no text."""
    if not "".join(ids).isascii():  # faster than a look at each
        as_text_array(ids, name)


def as_text_array(ids: Iterable[str], name: str = "") -> Any:
    """Return ids as a large_string array.

    Raises
    ------
    InputError
        One is not valid Unicode; `name` says where.
    """
    import pyarrow as pa

    try:
        return pa.array(ids, pa.large_string())
    except UnicodeEncodeError as error:
        raise InputError(
            f"the id {error.object!r} has half of a character (a lone surrogate); correct it",
            path=name,
        ) from None
