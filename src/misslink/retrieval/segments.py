"""Many short rankings in one flat array: sorted, searched and ranked without a loop over them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "by_row",
    "firsts_of",
    "offsets",
    "pieces",
    "ranks",
    "repeating",
    "single",
    "sorted_within",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

_MOST = 1 << 63  # no whole number of 64 bits reaches it


class Named(Protocol):
    """Ids by their place."""

    def __getitem__(self, at: int, /) -> str:
        """Return the id at a place."""
        ...


Items = Callable[[int], Iterable[tuple[str, float]]]


def offsets(lengths: Ints) -> Ints:
    """Where each segment starts, and where the last one ends."""
    start = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=start[1:])
    return start


def firsts_of(ids: Any) -> Ints:
    """Places at which an id differs from the one before; the first one's among them.

    Parameters
    ----------
    ids : pyarrow.LargeStringArray
        Without nulls; empty: no place.
    """
    import pyarrow.compute as pc

    if not len(ids):
        return np.empty(0, dtype=np.int64)
    changes = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


def pieces(start: Ints, lengths: Ints) -> Ints:
    """Places of all entries of segments that lie anywhere, one segment after the other."""
    within = np.arange(int(lengths.sum()), dtype=np.int64)
    within += np.repeat(start - offsets(lengths)[:-1], lengths)
    return within


def by_row(row: Ints, within: Ints) -> Ints:
    """The order by row, and in a row by `within`; neither is below 0.

    What is equal in both comes in any order.
    """
    width = int(within.max(initial=0)) + 1
    if (int(row.max(initial=0)) + 1) * width < _MOST:
        # The rows mostly ascend already, of which a stable sort makes use.
        return np.argsort(row * width + within, kind="stable")
    return np.lexsort((within, row))


def sorted_within(values: NDArray[Any], start: Ints) -> NDArray[Any]:
    """Values in ascending order within each segment; segments of one length in one go.

    Parameters
    ----------
    values : array, shape (start[-1],)
    start : array of int, shape (segments + 1,)
    """
    lengths = np.diff(start)
    longest = int(lengths.max(initial=0))
    if longest and lengths.min() == longest:
        return np.sort(values.reshape(-1, longest), axis=1).ravel()
    kinds = np.unique(lengths)
    ordered = values.copy()
    for length in kinds[kinds > 1].tolist():
        places = start[:-1][lengths == length][:, None] + np.arange(length)
        ordered[places] = np.sort(values[places], axis=1)
    return ordered


def repeating(values: NDArray[Any], start: Ints) -> Ints:
    """Numbers of the segments in which a value stands twice.

    Of whole numbers of 64 bits half of the bits are looked at first, in half of the time.
    """
    if values.dtype == np.uint64:
        found = _repeating(values.astype(np.uint32), start)
        lengths = np.diff(start)[found]
        kept = pieces(start[:-1][found], lengths)
        return found[_repeating(values[kept], offsets(lengths))] if len(found) else found
    return _repeating(values, start)


def _repeating(values: NDArray[Any], start: Ints) -> Ints:
    ordered = sorted_within(values, start)
    equal = np.flatnonzero(ordered[1:] == ordered[:-1])
    segment = np.searchsorted(start, equal, side="right") - 1
    return np.unique(segment[equal + 1 < start[segment + 1]])


def single(scores: Floats) -> NDArray[np.float32]:
    """Scores in single precision, as trec_eval holds them: what differs later on is tied."""
    with np.errstate(over="ignore"):  # beyond 3.4e38 all are tied, there as here
        return scores.astype(np.float32)


def ranks(
    scores: Floats, start: Ints, row: Ints, score: Floats, document: Named, items: Items
) -> Ints:
    """Ranks from 1 of some documents, by score descending, then by id descending as in trec_eval.

    A rank is one more than the number of greater scores in the row; only where scores are equal
    are ids looked at.

    Parameters
    ----------
    scores : array of float
        Of everything retrieved, row after row.
    start : array of int, shape (rows + 1,)
    row, score, document : of the same length
        The documents that are asked for.
    items : callable
        Ids and scores of a row.
    """
    ordered = sorted_within(scores, start)
    first, last = start[row], start[row + 1]
    above = _search(ordered, first, last, score, lambda here, wanted: here <= wanted)
    equal = above - _search(ordered, first, last, score, lambda here, wanted: here < wanted)
    ranked = last - above + 1
    tied = np.flatnonzero(equal > 1)
    for at, behind in zip(tied.tolist(), _behind(row, score, document, tied, items), strict=True):
        ranked[at] += behind
    return ranked


def _search(
    ordered: Floats,
    first: Ints,
    last: Ints,
    wanted: Floats,
    goes_on: Callable[[Floats, Floats], NDArray[np.bool_]],
) -> Ints:
    """Binary search of all at once, each in its own segment."""
    low, high = first.copy(), last.copy()
    while True:
        open_ = low < high
        if not open_.any():
            return low
        middle = (low + high) >> 1
        on = goes_on(ordered[np.minimum(middle, len(ordered) - 1)], wanted) & open_
        low = np.where(on, middle + 1, low)
        high = np.where(open_ & ~on, middle, high)


def _behind(row: Ints, score: Floats, document: Named, tied: Ints, items: Items) -> Iterable[int]:
    """How many documents of the same score go before each of the tied ones: those of greater id."""
    known = -1
    groups: dict[float, list[str]] = {}
    for at in tied.tolist():
        if row[at] != known:
            known = int(row[at])
            groups = {}
            for name, value in items(known):
                groups.setdefault(float(value), []).append(name)
            for names in groups.values():
                names.sort()
        names = groups[float(score[at])]
        yield len(names) - bisect_right(names, document[at])
