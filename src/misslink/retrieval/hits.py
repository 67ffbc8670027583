"""The hits of many rankings as columns, and their sums at cutoffs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from misslink.retrieval.arrays import BoolArray, FloatArray, IntArray, order_by_row, segment_offsets
from misslink.retrieval.matching import (
    LabelledNeed,
    case_needs,
    match_needs,
    relevant_ids,
    satisfies,
)
from misslink.types import Case, Passage

Cutoffs = int | Sequence[int] | IntArray | None

_FEW_CUTOFFS = 6  # faster to sum one after the other
_SHORT_ROW = 64  # entries of a row that are added up for all rows together


@dataclass(frozen=True)
class CutoffSums:
    """Sums over the first k entries of many rankings, for one cutoff or for many in one pass.

    Parameters
    ----------
    row, rank : array of int, shape (entries,)
        Rows ascending, and in a row the ranks, each once.
    rows : int
    """

    row: IntArray
    rank: IntArray
    rows: int

    def sums(self, amount: NDArray[np.generic], k: Cutoffs) -> FloatArray:
        """Return the sum of `amount` over the entries of each row within the first `k`.

        Parameters
        ----------
        amount : array, shape (entries,)
        k : int, sequence of int, or None
            From 1, in any order. None: the whole ranking.

        Returns
        -------
        array of float, shape (rows,) or (cutoffs, rows)
            Many cutoffs give to the last bit what each gives by itself: the entries are added in
            the same order.
        """
        values = np.asarray(amount, dtype=np.float64)
        if k is not None and np.ndim(k):
            cutoffs = np.asarray(k, dtype=np.int64)
            if len(cutoffs) > _FEW_CUTOFFS:
                return self._sums_at_many(values, cutoffs)
            sums = [self.sums(values, int(cutoff)) for cutoff in cutoffs]
            return np.array(sums).reshape(len(cutoffs), self.rows)
        within = slice(None) if k is None else self.rank <= k
        summed = np.bincount(self.row[within], weights=values[within], minlength=self.rows)
        # Without any entry NumPy ignores the weights and counts in whole numbers.
        return np.asarray(summed, dtype=np.float64)

    def _sums_at_many(self, amount: FloatArray, cutoffs: IntArray) -> FloatArray:
        """Go down all rankings once: the running sum is the value of each cutoff."""
        running = self._running_sums(amount)
        order = np.argsort(cutoffs)
        first = np.searchsorted(cutoffs[order], self.rank)  # the least cutoff around an entry
        digits = np.uint16 if len(cutoffs) < 1 << 16 else np.int64  # radix sort where it is short
        by_cutoff = np.argsort(first.astype(digits), kind="stable")
        edges = np.searchsorted(first[by_cutoff], np.arange(len(cutoffs) + 1)).tolist()
        sums, so_far = np.empty((len(cutoffs), self.rows)), np.zeros(self.rows)
        for index, place in enumerate(order.tolist()):
            entries = by_cutoff[edges[index] : edges[index + 1]]
            so_far[self.row[entries]] = running[entries]  # the last of several of a row stays
            sums[place] = so_far
        return sums

    def _running_sums(self, amount: FloatArray) -> FloatArray:
        """Sum of each row down to each entry."""
        sums = amount.copy()
        first = np.flatnonzero(np.diff(self.row, prepend=-1))
        length = np.diff(first, append=len(self.row))
        for begin, end in zip(
            first[length > _SHORT_ROW], (first + length)[length > _SHORT_ROW], strict=True
        ):
            np.cumsum(sums[begin:end], out=sums[begin:end])
        first, length = first[length <= _SHORT_ROW], length[length <= _SHORT_ROW]
        for step in range(1, int(length.max(initial=0))):  # the second entry of all rows, the third
            first, length = first[length > step], length[length > step]
            sums[first + step] += sums[first + step - 1]
        return sums


def as_column(k: Cutoffs) -> IntArray:
    """Return a cutoff, or many one below the other, to combine with an array of rows.

    Examples
    --------
    >>> (np.ones(3) / as_column([1, 2])).tolist()
    [[1.0, 1.0, 1.0], [0.5, 0.5, 0.5]]
    """
    return np.asarray(k, dtype=np.int64)[..., None]


@dataclass(frozen=True)
class Hits:
    """The hits of many rankings; a row is one case and one alternative of its needs.

    A hit is a passage that satisfies a need that no passage above it does: of several with the
    same evidence the first is a hit. Hits and judged passages are in the order of their rows, best
    first within a row. Passages that were never judged are not in these arrays.

    Parameters
    ----------
    row, rank, gain, satisfied : array of int, shape (hits,)
        Row of the hit; rank from 1; the best grade among the needs that it newly satisfies; how
        many these are. If only grades from 2 up (or higher) are relevant, a passage with a lower
        grade has its gain here and 0 in `satisfied`, and is among those judged not relevant too.
    needs : array of int, shape (rows,)
        Number of needs; 0 for a query whose judged passages are all not relevant.
    ideal_row, ideal_rank, ideal_gain : array of int, shape (ideal gains,)
        The ideal ranking: the gains of each row in descending order. A hit that satisfies several
        needs is one gain, as it is one passage in the ranking; so a perfect ranking has nDCG 1.
    judged_row, judged_rank : array of int, shape (judged,)
        Row and rank of the retrieved, judged passages that satisfy no further need.
    judged_against : array of bool, shape (judged,)
        True if judged not relevant; False if it repeats what a hit above it has, or is relevant
        for another alternative.
    nonrelevant : array of int, shape (rows,)
        Number of passages judged not relevant, retrieved or not.
    retrieved : array of int, shape (rows,)
        Length of the row's ranking.
    case : array of int, shape (rows,)
        Index of the row's case among the collected cases, ascending.
    cases : int
        Number of these cases. A case without any judgment has no row.
    """

    row: IntArray
    rank: IntArray
    gain: IntArray
    satisfied: IntArray
    needs: IntArray
    ideal_row: IntArray
    ideal_rank: IntArray
    ideal_gain: IntArray
    judged_row: IntArray
    judged_rank: IntArray
    judged_against: BoolArray
    nonrelevant: IntArray
    retrieved: IntArray
    case: IntArray
    cases: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.needs)

    @cached_property
    def relevant(self) -> BoolArray:
        """Which hits satisfy a need; all except those whose grade is too low."""
        return self.satisfied > 0

    @cached_property
    def place(self) -> IntArray:
        """Number of relevant passages of its row down to each hit, itself included."""
        so_far = np.cumsum(self.relevant)
        first = segment_offsets(np.bincount(self.row, minlength=self.rows))[:-1]
        before = np.concatenate(([0], so_far))[first]
        return np.asarray(so_far - before[self.row], dtype=np.int64)

    @cached_property
    def judged_positions(self) -> tuple[IntArray, IntArray]:
        """Row and rank of every retrieved passage with a judgment, relevant ones first."""
        rows = np.concatenate((self.row[self.relevant], self.judged_row))
        return rows, np.concatenate((self.rank[self.relevant], self.judged_rank))

    @cached_property
    def ideal_sums(self) -> CutoffSums:
        """Sums over the gains of the ideal ranking."""
        return CutoffSums(self.ideal_row, self.ideal_rank, self.rows)

    @cached_property
    def judged_sums(self) -> CutoffSums:
        """Sums over every retrieved passage with a judgment."""
        row, rank = self.judged_positions
        order = order_by_row(row, rank)
        return CutoffSums(row[order], rank[order], self.rows)

    @cached_property
    def _hit_sums(self) -> CutoffSums:
        return CutoffSums(self.row, self.rank, self.rows)

    def sums(self, amount: NDArray[np.generic], k: Cutoffs) -> FloatArray:
        """Return the sum of `amount` over the hits of each row within the first `k`.

        Several cutoffs give a line each, see `CutoffSums`.
        """
        return self._hit_sums.sums(amount, k)

    def per_need(self, amount: FloatArray) -> FloatArray:
        """Return `amount`, one per row, divided by the number of needs; 0 without needs."""
        return amount / np.maximum(self.needs, 1)

    @cached_property
    def _first_rows(self) -> IntArray:
        """The first row of each case."""
        return np.flatnonzero(np.diff(self.case, prepend=-1))

    def per_case(
        self, values: FloatArray, *, without_relevant: bool = False
    ) -> tuple[FloatArray, BoolArray]:
        """Return the best value of each case among its rows, and whether it has one.

        Parameters
        ----------
        values : array of float, shape (..., rows)
            NaN where a row has no value.
        without_relevant : bool
            Whether a row without needs has a value too.

        Returns
        -------
        best : array of float, shape (..., cases)
            0 where there is no value.
        measured : array of bool, shape (..., cases)
        """
        valid = ~np.isnan(values) & (without_relevant | (self.needs > 0))
        starts = self._first_rows
        if len(starts) < self.rows:  # alternatives
            values = np.maximum.reduceat(np.where(valid, values, -np.inf), starts, axis=-1)
            valid = np.logical_or.reduceat(valid, starts, axis=-1)
        values = np.where(valid, values, 0.0)
        if len(starts) == self.cases:
            return values, valid
        best, measured = np.zeros((2, *values.shape[:-1], self.cases))
        best[..., self.case[starts]], measured[..., self.case[starts]] = values, valid
        return best, measured > 0

    def best(self, values: FloatArray, *, without_relevant: bool = False) -> list[float | None]:
        """Return `per_case` as a list with None where a case has no value."""
        best, measured = self.per_case(values, without_relevant=without_relevant)
        pairs = zip(best.tolist(), measured.tolist(), strict=True)
        return [value if has else None for value, has in pairs]


def collect_hits(cases: Sequence[Case], rankings: Iterable[Sequence[Passage]]) -> Hits:
    """Return the hits of each case in its ranking.

    Parameters
    ----------
    cases : sequence of Case
    rankings : iterable of sequences of Passage, one per case
        Best first; an empty one has no hits.

    Returns
    -------
    Hits
        Without rows if there are no cases.
    """
    hits: list[tuple[int, ...]] = []
    rows: list[tuple[int, ...]] = []
    ideals: list[tuple[int, ...]] = []
    judged: list[tuple[int, ...]] = []
    for number, (case, ranking) in enumerate(zip(cases, rankings, strict=True)):
        alternatives = case_needs(case, ranking)
        # Evidence with a grade above 0 that makes no need is evidence that no passage has text for.
        has_judgments = (case.relevant or case.evidence) and not any(case.evidence.values())
        if not alternatives and not has_judgments:
            continue
        judgments, nonrelevant = _judged_ranks(case, alternatives, ranking)
        for alternative in alternatives or ((),):
            row = len(rows)
            rows.append((len(alternative), number, nonrelevant, len(ranking)))
            grades_at: dict[int, list[int]] = {}
            missed = [need.grade for need in alternative]
            for match in match_needs(alternative, ranking):
                grades_at.setdefault(match.rank, []).append(match.need.grade)
                missed.remove(match.need.grade)
            hits += [
                (row, rank, max(grades), len(grades)) for rank, grades in sorted(grades_at.items())
            ]
            gains = sorted([*missed, *map(max, grades_at.values())], reverse=True)
            ideals += [(row, rank, gain) for rank, gain in enumerate(gains, start=1)]
            judged += [(row, *judgment) for judgment in judgments if judgment[0] not in grades_at]
    hit_row, hit_rank, gain, satisfied = _as_columns(hits, 4)
    needs, case_of_row, nonrelevant_of_row, retrieved = _as_columns(rows, 4)
    ideal_row, ideal_rank, ideal_gain = _as_columns(ideals, 3)
    judged_row, judged_rank, judged_against = _as_columns(judged, 3)
    return Hits(
        row=hit_row,
        rank=hit_rank,
        gain=gain,
        satisfied=satisfied,
        needs=needs,
        ideal_row=ideal_row,
        ideal_rank=ideal_rank,
        ideal_gain=ideal_gain,
        judged_row=judged_row,
        judged_rank=judged_rank,
        judged_against=judged_against.astype(bool),
        nonrelevant=nonrelevant_of_row,
        retrieved=retrieved,
        case=case_of_row,
        cases=len(cases),
    )


def _judged_ranks(
    case: Case, alternatives: Sequence[Sequence[LabelledNeed]], ranking: Sequence[Passage]
) -> tuple[list[tuple[int, int]], int]:
    """Rank of every judged passage with 1 if not relevant; number of those not relevant."""
    needs = [need for alternative in alternatives for need in alternative]
    relevant = {need.id for need in needs if need.evidence is None}
    if any(need.evidence is not None for need in needs):
        relevant |= relevant_ids(case, ranking)
    wrong = [LabelledNeed(text, 0, text) for text, grade in case.evidence.items() if grade == 0]
    ids = {name for name, grade in case.relevant.items() if grade == 0} - relevant
    judged: list[tuple[int, int]] = []
    against: set[str] = set()
    for rank, passage in enumerate(ranking, start=1):
        if passage.id in relevant:
            judged.append((rank, 0))
        elif passage.id in ids or any(satisfies(need, passage) for need in wrong):
            judged.append((rank, int(passage.id not in against)))
            against.add(passage.id)
        elif passage.id in case.relevant:
            judged.append((rank, 0))
    # A wrong text may be in several passages: at least as many are not relevant as were retrieved.
    return judged, max(len(ids | against), len(ids) + len(wrong))


def _as_columns(rows: Sequence[tuple[int, ...]], width: int) -> list[IntArray]:
    return list(np.array(rows, dtype=np.int64).reshape(len(rows), width).T)
