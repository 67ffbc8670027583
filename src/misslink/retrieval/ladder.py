"""Sums over the first k of many rankings, of one cut-off or of many in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cutoffs", "Ladder", "across"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Cutoffs = int | Sequence[int] | Ints | None

_FEW = 6  # cut-offs that are faster to sum one after the other
_SHORT = 64  # entries of a row that are added up for all rows together


@dataclass(frozen=True)
class Ladder:
    """Entries of many rankings; row ascending, and in a row from the best rank down.

    Parameters
    ----------
    row, rank : array of int, shape (entries,)
        No rank comes twice in a row.
    rows : int
    """

    row: Ints
    rank: Ints
    rows: int

    def sums(self, amount: NDArray[np.generic], k: Cutoffs) -> Floats:
        """Sum of `amount`, one an entry, over the entries of each row within the first `k`.

        Parameters
        ----------
        amount : array, shape (entries,)
        k : int, sequence of int, or None
            From 1, in any order. None: the whole ranking.

        Returns
        -------
        array of float, shape (rows,) or (cut-offs, rows)
            Of many cut-offs a line each, to the last bit what each gives by itself: the entries
            are added up in the same order.
        """
        given = np.asarray(amount, dtype=np.float64)
        if k is not None and np.ndim(k):
            ks = np.asarray(k, dtype=np.int64)
            if len(ks) > _FEW:
                return self._at_each(given, ks)
            return np.array([self.sums(given, int(each)) for each in ks]).reshape(
                len(ks), self.rows
            )
        within = slice(None) if k is None else self.rank <= k
        summed = np.bincount(self.row[within], weights=given[within], minlength=self.rows)
        # Without any entry NumPy forgets the weights and counts in whole numbers.
        return np.asarray(summed, dtype=np.float64)

    def _at_each(self, amount: Floats, ks: Ints) -> Floats:
        """Go down all rankings once: what has been summed so far is the value of each cut-off."""
        running = self._running(amount)
        order = np.argsort(ks)
        first = np.searchsorted(ks[order], self.rank)  # the least cut-off that an entry is within
        kind = np.uint16 if len(ks) < 1 << 16 else np.int64  # sorted by its digits
        by_cutoff = np.argsort(first.astype(kind), kind="stable")
        edges = np.searchsorted(first[by_cutoff], np.arange(len(ks) + 1)).tolist()
        found, so_far = np.empty((len(ks), self.rows)), np.zeros(self.rows)
        for at, place in enumerate(order.tolist()):
            own = by_cutoff[edges[at] : edges[at + 1]]
            so_far[self.row[own]] = running[own]  # of several of a row the last one stays
            found[place] = so_far
        return found

    def _running(self, amount: Floats) -> Floats:
        """Sum of each row down to each entry."""
        sums = amount.copy()
        for at in self._steps:
            sums[at] += sums[at - 1]
        first, length = self._starts
        for begin, end in zip(first.tolist(), (first + length).tolist(), strict=True):
            if end - begin > _SHORT:
                rest = sums[begin + _SHORT - 1 : end]
                np.cumsum(rest, out=rest)
        return sums

    @cached_property
    def _starts(self) -> tuple[Ints, Ints]:
        """Place of the first entry, and number of entries, of rows with more than `_SHORT`."""
        first = np.flatnonzero(np.diff(self.row, prepend=-1))
        length = np.diff(first, append=len(self.row))
        long = length > _SHORT
        return first[long], length[long]

    @cached_property
    def _steps(self) -> list[Ints]:
        """Places of the second entry of every row that has two, of the third and so on."""
        first = np.flatnonzero(np.diff(self.row, prepend=-1))
        length = np.diff(first, append=len(self.row))
        steps = []
        for step in range(1, min(int(length.max(initial=0)), _SHORT)):
            more = length > step
            first, length = first[more], length[more]
            steps.append(first + step)
        return steps


def across(k: Cutoffs) -> Ints:
    """A cut-off, or many one below the other, to be held against an array of rows.

    Examples
    --------
    >>> (np.ones(3) / across([1, 2])).tolist()
    [[1.0, 1.0, 1.0], [0.5, 0.5, 0.5]]
    """
    return np.asarray(k, dtype=np.int64)[..., None]
