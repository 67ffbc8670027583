"""The judged documents among the rows of a table, and their ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misslink.retrieval.keys import Keys, pair_keys
from misslink.retrieval.qrels import Judgements
from misslink.retrieval.segments import offsets, pieces, ranks

__all__ = ["Rows", "matches", "parts", "ranks_of"]

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

_AT_ONCE = 1 << 15  # rows that are compared at a time
_SPARSE = 16  # places of the first sieve for each judged pair


@dataclass(frozen=True)
class Rows:
    """Whole queries of a table, of which each was judged."""

    query: Ints
    start: Ints
    document: Any
    number: Floats | None
    first: Ints  # rows of the table at which the queries begin


def parts(rows: Rows) -> Iterator[Rows]:
    """Some queries at a time, so that what is made of them stays in the processor's cache."""
    if len(rows.document) <= _AT_ONCE:
        yield rows
        return
    low = 0
    while low < len(rows.query):
        high = int(np.searchsorted(rows.start, rows.start[low] + _AT_ONCE, side="right")) - 1
        high = max(high, low + 1)
        first, last = int(rows.start[low]), int(rows.start[high])
        yield Rows(
            rows.query[low:high],
            rows.start[low : high + 1] - first,
            rows.document[first:last],
            None if rows.number is None else rows.number[first:last],
            rows.first[low:high],
        )
        low = high


def matches(judgements: Judgements, rows: Rows, keys: Keys) -> tuple[Ints, Ints] | None:
    """Entries of the judgements that were retrieved, and their places among the rows.

    A sieve of a few bits of the keys leaves little more than the judged ones, and these bits also
    tell which entry it is; entries that have to share them are searched for. None where two
    different ids share a key.
    """
    import pyarrow as pa

    spread = pair_keys(rows.query, np.zeros(len(rows.query), np.uint64))
    pairs = keys ^ np.repeat(spread, np.diff(rows.start))
    start = judgements.start[rows.query]
    entry = pieces(start, judgements.start[rows.query + 1] - start)
    if not len(entry):
        return entry, entry
    judged = judgements.document_keys[entry]
    bits = int(np.ceil(np.log2(_SPARSE * len(judged))))
    mask = np.uint64((1 << bits) - 1)
    sieve, slots = np.zeros(1 << bits, dtype=np.bool_), np.empty(1 << bits, dtype=np.int32)
    own, number = (judged & mask).view(np.int64), np.arange(len(judged), dtype=np.int32)
    sieve[own] = True
    slots[own] = number
    met = (pairs & mask).view(np.int64)
    place = np.flatnonzero(sieve[met])
    at, wanted = slots[met[place]], pairs[place]
    lost = np.flatnonzero(slots[own] != number)  # another entry has the slot
    if len(lost):
        lost = lost[np.argsort(judged[lost])]
        searched = judged[lost]
        if (searched[1:] == searched[:-1]).any() or (judged[slots[own[lost]]] == searched).any():
            return None
        other = lost[np.minimum(np.searchsorted(searched, wanted), len(lost) - 1)]
        at = np.where(judged[other] == wanted, other, at)
    same = judged[at] == wanted
    entry, place = entry[at[same]], place[same]
    given = rows.document.take(pa.array(place))
    return (entry, place) if given.equals(judgements.documents.take(pa.array(entry))) else None


@dataclass(frozen=True)
class _Texts:
    """Ids of which only those asked for become Python text."""

    documents: Any
    place: Ints

    def __getitem__(self, at: int) -> str:
        name: str = self.documents[int(self.place[at])].as_py()
        return name


def _settled(scores: Floats, start: Ints, row: Ints, place: Ints) -> NDArray[np.bool_]:
    """Which places tell the rank: no score of the row rises, and none beside has the same."""
    beside = np.full(len(scores) + 1, -1, dtype=np.int8)  # how a score goes on from the one before
    np.subtract(scores[1:] > scores[:-1], scores[1:] < scores[:-1], out=beside[1:-1], dtype=np.int8)
    beside[start] = -1
    rises = np.zeros(len(start) - 1, dtype=np.bool_)
    rises[np.searchsorted(start, np.flatnonzero(beside > 0), side="right") - 1] = True
    return ~rises[row] & (beside[place] < 0) & (beside[place + 1] < 0)


def ranks_of(rows: Rows, scores: Floats, row: Ints, place: Ints) -> Ints:
    """Ranks of the documents at some places, by score descending.

    Where the scores of a row fall all along, the place tells the rank.
    """
    rank: Ints = place - rows.start[row] + 1
    doubtful = np.flatnonzero(~_settled(scores, rows.start, row, place))
    if len(doubtful):
        rank[doubtful] = _sorted_ranks(rows, scores, row[doubtful], place[doubtful])
    return rank


def _sorted_ranks(rows: Rows, scores: Floats, row: Ints, place: Ints) -> Ints:
    """The same by sorting the rows."""
    asked, own = np.unique(row, return_inverse=True)
    lengths = np.diff(rows.start)[asked]
    of_asked = scores[pieces(rows.start[asked], lengths)]
    names = _Texts(rows.document, place)

    def items(at: int) -> Iterator[tuple[str, float]]:
        return _items(rows.document, scores, rows.start, int(asked[at]))

    return ranks(of_asked, offsets(lengths), own, scores[place], names, items)


def _items(documents: Any, scores: Floats, start: Ints, row: int) -> Iterator[tuple[str, float]]:
    low, high = int(start[row]), int(start[row + 1])
    return zip(documents[low:high].to_pylist(), scores[low:high].tolist(), strict=True)
