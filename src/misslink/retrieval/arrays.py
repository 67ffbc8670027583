"""Arrays of many short rankings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misslink.errors import InputError

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


def as_single_precision(scores: ScoreArray) -> NDArray[np.float32]:
    """Return scores in single precision, like trec_eval: later digits do not break ties."""
    with np.errstate(over="ignore"):  # scores beyond 3.4e38 are tied
        return scores.astype(np.float32)


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
