"""Some rankings at a time with a column for each rank, for what no sum over the hits tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from misslink.retrieval.hits import Bools, Hits, Ints

__all__ = ["Ranks", "before", "pieces"]

_AT_ONCE = 1 << 19  # ranks of all rows that are in memory together


@dataclass(frozen=True)
class Ranks:
    """Some rows with a column for each rank that the metric reads.

    Parameters
    ----------
    found, gain : array of int, shape (rows, depth)
        Needs that are first satisfied there, and the grade; 0 at most ranks.
    opened : array of bool, shape (rows, depth)
        Whether nobody judged the passage there.
    against : array of bool, shape (rows, depth)
        Whether the passage there was judged not relevant.
    needs, nonrelevant : array of int, shape (rows, 1)
    ideal_row, ideal_rank, ideal_gain : array of int
        As those of `Hits`, rows from 0.
    """

    found: Ints
    gain: Ints
    opened: Bools
    against: Bools
    needs: Ints
    nonrelevant: Ints
    ideal_row: Ints
    ideal_rank: Ints
    ideal_gain: Ints

    @property
    def rank(self) -> Ints:
        """Rank of each column."""
        return np.arange(1, self.found.shape[1] + 1)


def pieces(hits: Hits, k: int | None) -> Iterator[tuple[int, int, Ranks]]:
    """First row, the one after the last, and the ranks between, some rows at a time."""
    depth = hits.retrieved if k is None else np.minimum(hits.retrieved, k)
    known_row, known_rank = hits.known
    by_row = np.argsort(known_row, kind="stable")
    known_row, known_rank = known_row[by_row], known_rank[by_row]
    width = max(int(depth.max(initial=0)), 1)
    step = max(_AT_ONCE // width, 1)
    for first in range(0, hits.rows, step):
        last = min(first + step, hits.rows)

        def of(rows: Ints, first: int = first, last: int = last) -> slice:
            low, high = np.searchsorted(rows, (first, last))
            return slice(int(low), int(high))

        opened = np.arange(1, width + 1) <= depth[first:last, None]
        read = opened.copy()
        own = of(known_row)
        _enter(opened, known_row[own] - first, known_rank[own], np.zeros(1, dtype=np.bool_))
        found, gain = np.zeros(opened.shape, np.int64), np.zeros(opened.shape, np.int64)
        own, ideal = of(hits.row), of(hits.ideal_row)
        _enter(found, hits.row[own] - first, hits.rank[own], hits.found[own])
        _enter(gain, hits.row[own] - first, hits.rank[own], hits.gain[own])
        against, own = np.zeros_like(opened), of(hits.judged_row)
        held = hits.judged_against[own]
        _enter(against, hits.judged_row[own][held] - first, hits.judged_rank[own][held], [True])
        yield (
            first,
            last,
            Ranks(
                found * read,
                gain * read,
                opened,
                against & read,
                hits.needs[first:last, None],
                hits.nonrelevant[first:last, None],
                hits.ideal_row[ideal] - first,
                hits.ideal_rank[ideal],
                hits.ideal_gain[ideal],
            ),
        )


def _enter(table: Any, row: Ints, rank: Ints, value: Any) -> None:
    within = rank <= table.shape[1]
    value = np.broadcast_to(value, row.shape)
    table[row[within], rank[within] - 1] = value[within]


def before(amount: Any) -> Any:
    """Sum down to the rank before each, and of all at the end: one column more."""
    sums = np.zeros((amount.shape[0], amount.shape[1] + 1), dtype=amount.dtype)
    np.cumsum(amount, axis=1, out=sums[:, 1:])
    return sums
