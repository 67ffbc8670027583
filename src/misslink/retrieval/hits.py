"""What every rank metric reads: the hits of many cases, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from misslink.retrieval.matching import Need, find, needs
from misslink.types import Case, Passage

__all__ = ["Hits", "collect"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Hits:
    """The hits of many rankings; a row is one case and one alternative of what it needs.

    A hit is a passage that satisfies a need which no passage before it did: of several that carry
    the same evidence the first is a hit and the others are not. Hits stand in the order of their
    rows, and within a row best first; everything else that was retrieved leaves no trace here, so
    the arrays stay short.

    Parameters
    ----------
    row, rank, gain, found : array of int, shape (hits,)
        Which row the hit is of; its rank from 1; the best grade among the needs it newly
        satisfies; how many these are.
    needs : array of int, shape (rows,)
        Number of needs, at least 1.
    ideal_row, ideal_rank, ideal_gain : array of int, shape (ideal gains,)
        The best ranking that could be: for each row the gains from 1 down. A hit that satisfies
        several needs is one gain here, as it is one passage in the ranking; so a perfect ranking
        has an nDCG of 1.
    case : array of int, shape (rows,)
        Place of the row's case among the cases that were collected, ascending.
    cases : int
        Number of these cases. One that needs nothing has no row.
    """

    row: Ints
    rank: Ints
    gain: Ints
    found: Ints
    needs: Ints
    ideal_row: Ints
    ideal_rank: Ints
    ideal_gain: Ints
    case: Ints
    cases: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.needs)

    def sums(self, amount: NDArray[np.generic], k: int | None) -> Floats:
        """Sum of `amount`, one a hit, over the hits of each row that are within the first `k`."""
        within = slice(None) if k is None else self.rank <= k
        weights = np.asarray(amount, dtype=float)[within]
        summed = np.bincount(self.row[within], weights=weights, minlength=self.rows)
        # Without any hit NumPy forgets the weights and counts in whole numbers.
        return np.asarray(summed, dtype=np.float64)

    def best(self, values: Floats) -> list[float | None]:
        """For each case the best value among its rows; None where it has no row.

        Parameters
        ----------
        values : array of float, shape (rows,)
        """
        found: list[float | None] = [None] * self.cases
        if self.rows:
            starts = np.flatnonzero(np.diff(self.case, prepend=-1))
            highest = np.maximum.reduceat(values, starts).tolist()
            for case, value in zip(self.case[starts].tolist(), highest, strict=True):
                found[case] = value
        return found


def collect(cases: Sequence[Case], rankings: Sequence[Sequence[Passage]]) -> Hits:
    """The hits of each case in its ranking.

    Parameters
    ----------
    cases : sequence of Case
    rankings : sequence of sequences of Passage, one a case
        Best first; an empty one has no hits.

    Returns
    -------
    Hits
        Without rows where there are no cases.
    """
    hits: list[tuple[int, int, int, int]] = []
    rows: list[tuple[int, int]] = []
    ideals: list[tuple[int, int, int]] = []
    for number, (case, ranking) in enumerate(zip(cases, rankings, strict=True)):
        for alternative in needs(case, ranking):
            row = len(rows)
            rows.append((len(alternative), number))
            gains = _hits_of(alternative, ranking)
            hits += [(row, rank, max(grades), len(grades)) for rank, grades in gains]
            missed = sorted(need.grade for need in alternative)
            for _, grades in gains:
                for grade in grades:
                    missed.remove(grade)
            ideal = sorted([*missed, *(max(grades) for _, grades in gains)], reverse=True)
            ideals += [(row, rank, gain) for rank, gain in enumerate(ideal, start=1)]
    hit_row, hit_rank, gain, found = _columns(hits, 4)
    count, case_of = _columns(rows, 2)
    ideal_row, ideal_rank, ideal_gain = _columns(ideals, 3)
    return Hits(
        row=hit_row,
        rank=hit_rank,
        gain=gain,
        found=found,
        needs=count,
        ideal_row=ideal_row,
        ideal_rank=ideal_rank,
        ideal_gain=ideal_gain,
        case=case_of,
        cases=len(cases),
    )


def _hits_of(
    alternative: Sequence[Need], ranking: Sequence[Passage]
) -> list[tuple[int, list[int]]]:
    """Rank and the grades of the needs first satisfied there, best first."""
    grades: dict[int, list[int]] = {}
    for hit in find(alternative, ranking):
        grades.setdefault(hit.rank, []).append(hit.need.grade)
    return sorted(grades.items())


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> list[Ints]:
    return list(np.array(rows, dtype=np.int64).reshape(len(rows), width).T)
