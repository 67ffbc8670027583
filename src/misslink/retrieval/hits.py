"""What every rank metric reads: the hits of many cases, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from misslink.retrieval.ladder import Cutoffs, Ladder
from misslink.retrieval.matching import Need, find, needs, relevant_ids, satisfies
from misslink.retrieval.segments import by_row, offsets
from misslink.types import Case, Passage

__all__ = ["Bools", "Floats", "Hits", "Ints", "collect"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Hits:
    """The hits of many rankings; a row is one case and one alternative of what it needs.

    A hit is a passage that satisfies a need which no passage before it did: of several that carry
    the same evidence the first is a hit and the others are not. Hits and judged passages stand in
    the order of their rows, and within a row best first; what was retrieved and never judged
    leaves no trace here, so the arrays stay short.

    Parameters
    ----------
    row, rank, gain, found : array of int, shape (hits,)
        Which row the hit is of; its rank from 1; the best grade among the needs it newly
        satisfies; how many these are. Where only grades from 2 up (or higher) count as relevant,
        a passage with a lower one has its gain here and 0 in `found`, and stands among those
        judged not relevant too.
    needs : array of int, shape (rows,)
        Number of needs; 0 for a query of whose judged passages none is relevant.
    ideal_row, ideal_rank, ideal_gain : array of int, shape (ideal gains,)
        The best ranking that could be: for each row the gains from 1 down. A hit that satisfies
        several needs is one gain here, as it is one passage in the ranking; so a perfect ranking
        has an nDCG of 1.
    judged_row, judged_rank : array of int, shape (judged,)
        Row and rank of the retrieved passages that were judged and satisfy no need anew.
    judged_against : array of bool, shape (judged,)
        True for one judged not relevant; False for one that repeats what a hit above it has, or
        is relevant for another alternative.
    nonrelevant : array of int, shape (rows,)
        How many passages were judged not relevant, retrieved or not.
    retrieved : array of int, shape (rows,)
        Length of the row's ranking.
    case : array of int, shape (rows,)
        Place of the row's case among the cases that were collected, ascending.
    cases : int
        Number of these cases. One of which nothing was judged has no row.
    """

    row: Ints
    rank: Ints
    gain: Ints
    found: Ints
    needs: Ints
    ideal_row: Ints
    ideal_rank: Ints
    ideal_gain: Ints
    judged_row: Ints
    judged_rank: Ints
    judged_against: Bools
    nonrelevant: Ints
    retrieved: Ints
    case: Ints
    cases: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.needs)

    @cached_property
    def relevant(self) -> Bools:
        """Which hits satisfy a need: all, but those whose grade is too low to count."""
        return self.found > 0

    @cached_property
    def place(self) -> Ints:
        """How many relevant passages of its row there are down to each hit, itself included."""
        upto = np.cumsum(self.relevant)
        first = offsets(np.bincount(self.row, minlength=self.rows))[:-1]
        before = np.concatenate(([0], upto))[first]
        return np.asarray(upto - before[self.row], dtype=np.int64)

    @cached_property
    def known(self) -> tuple[Ints, Ints]:
        """Row and rank of every retrieved passage that was judged, relevant ones first."""
        rows = np.concatenate((self.row[self.relevant], self.judged_row))
        return rows, np.concatenate((self.rank[self.relevant], self.judged_rank))

    @cached_property
    def ladder(self) -> Ladder:
        """The hits."""
        return Ladder(self.row, self.rank, self.rows)

    @cached_property
    def ideal_ladder(self) -> Ladder:
        """The gains of the best ranking that could be."""
        return Ladder(self.ideal_row, self.ideal_rank, self.rows)

    @cached_property
    def judged_ladder(self) -> Ladder:
        """Every retrieved passage that was judged."""
        row, rank = self.known
        order = by_row(row, rank)
        return Ladder(row[order], rank[order], self.rows)

    def sums(self, amount: NDArray[np.generic], k: Cutoffs) -> Floats:
        """Sum of `amount`, one a hit, over the hits of each row that are within the first `k`.

        Of several cut-offs a line each, see `misslink.retrieval.ladder.Ladder`.
        """
        return self.ladder.sums(amount, k)

    def per_need(self, amount: Floats) -> Floats:
        """The share of `amount`, one a row, in the number of needs; 0 where nothing is needed."""
        return amount / np.maximum(self.needs, 1)

    def per_case(self, values: Floats, *, without_relevant: bool = False) -> tuple[Floats, Bools]:
        """For each case the best value among its rows, and whether it has one at all.

        Parameters
        ----------
        values : array of float, shape (..., rows)
            NaN where a row has no value.
        without_relevant : bool
            Whether a row that needs nothing has a value too.

        Returns
        -------
        array of float, shape (..., cases)
            0 where there is no value.
        array of bool, shape (..., cases)
            False where there is none.
        """
        given = ~np.isnan(values) & (without_relevant | (self.needs > 0))
        best = np.where(given, values, -np.inf)
        starts = self._first_rows
        if len(starts) < self.rows:
            best = np.maximum.reduceat(best, starts, axis=-1)
            given = np.logical_or.reduceat(given, starts, axis=-1)
        best = np.where(given, best, 0.0)
        if len(starts) == self.cases:
            return best, given
        shape = (*best.shape[:-1], self.cases)
        every, known = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        every[..., self.case[starts]], known[..., self.case[starts]] = best, given
        return every, known

    @cached_property
    def _first_rows(self) -> Ints:
        """The first row of each case that has any."""
        return np.flatnonzero(np.diff(self.case, prepend=-1))

    def best(self, values: Floats, *, without_relevant: bool = False) -> list[float | None]:
        """As `per_case`, as a list with None where a case has no value."""
        best, known = self.per_case(values, without_relevant=without_relevant)
        pairs = zip(best.tolist(), known.tolist(), strict=True)
        return [value if has else None for value, has in pairs]


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
    rows: list[tuple[int, int, int, int]] = []
    ideals: list[tuple[int, int, int]] = []
    judged: list[tuple[int, int, int]] = []
    for number, (case, ranking) in enumerate(zip(cases, rankings, strict=True)):
        alternatives = needs(case, ranking)
        if not alternatives and not _judged_at_all(case):
            continue
        judgements, against = _judgements(case, alternatives, ranking)
        for alternative in alternatives or ((),):
            row = len(rows)
            rows.append((len(alternative), number, against, len(ranking)))
            gains = _hits_of(alternative, ranking)
            hits += [(row, rank, max(grades), len(grades)) for rank, grades in gains]
            missed = sorted(need.grade for need in alternative)
            for _, grades in gains:
                for grade in grades:
                    missed.remove(grade)
            ideal = sorted([*missed, *(max(grades) for _, grades in gains)], reverse=True)
            ideals += [(row, rank, gain) for rank, gain in enumerate(ideal, start=1)]
            hit_ranks = {rank for rank, _ in gains}
            judged += [(row, *one) for one in judgements if one[0] not in hit_ranks]
    hit_row, hit_rank, gain, found = _columns(hits, 4)
    count, case_of, nonrelevant, retrieved = _columns(rows, 4)
    ideal_row, ideal_rank, ideal_gain = _columns(ideals, 3)
    judged_row, judged_rank, judged_against = _columns(judged, 3)
    return Hits(
        row=hit_row,
        rank=hit_rank,
        gain=gain,
        found=found,
        needs=count,
        ideal_row=ideal_row,
        ideal_rank=ideal_rank,
        ideal_gain=ideal_gain,
        judged_row=judged_row,
        judged_rank=judged_rank,
        judged_against=judged_against.astype(bool),
        nonrelevant=nonrelevant,
        retrieved=retrieved,
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


def _judged_at_all(case: Case) -> bool:
    """Whether anybody said of any passage what it is worth, and it can be looked for.

    Evidence of a grade above 0 that makes no need is evidence that no passage has a text for.
    """
    return bool(case.relevant or case.evidence) and not any(case.evidence.values())


def _judgements(
    case: Case, alternatives: Sequence[Sequence[Need]], ranking: Sequence[Passage]
) -> tuple[list[tuple[int, int]], int]:
    """Rank of every judged passage with 1 if against it; number of those judged not relevant."""
    wanted = [need for alternative in alternatives for need in alternative]
    relevant = {need.id for need in wanted if need.evidence is None}
    if any(need.evidence is not None for need in wanted):
        relevant |= relevant_ids(case, ranking)
    wrong = [Need(text, 0, text) for text, grade in case.evidence.items() if grade == 0]
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
    # A wrong text may be in several passages: no fewer are not relevant than were retrieved.
    return judged, max(len(ids | against), len(ids) + len(wrong))


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> list[Ints]:
    return list(np.array(rows, dtype=np.int64).reshape(len(rows), width).T)
