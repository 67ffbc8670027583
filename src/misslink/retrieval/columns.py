"""Runs as columns, and the hits of them without a loop over all that was retrieved.

A run is taken in blocks of whole queries, so that what is needed at a time stays small however
long the run is. A block knows nothing of the unjudged documents but how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from misslink.errors import InputError
from misslink.retrieval.hits import Hits
from misslink.retrieval.qrels import Judgements
from misslink.retrieval.segments import by_row, offsets, pieces

__all__ = ["Block", "Rankings", "ScatteredError", "hits_of", "joined", "nothing_retrieved"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Block:
    """Some queries of a run with their judged and retrieved documents; a row is a query.

    Parameters
    ----------
    query : array of int, shape (rows,)
        Number of each query in the judgements.
    retrieved : array of int, shape (rows,)
        Length of its ranking.
    row, grade, rank : array of int, shape (judged and retrieved,)
        Rows ascending.
    strangers : array of unsigned int
        A key for each query that was not judged, in this block.
    """

    query: Ints
    retrieved: Ints
    row: Ints
    grade: Ints
    rank: Ints
    strangers: NDArray[np.uint64]


class ScatteredError(InputError):
    """The rows of a query do not stand together in a run that is read piece by piece."""


class Rankings(Protocol):
    """A run."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    @property
    def unmeasured(self) -> frozenset[str]:
        """Queries of which it is not known what was retrieved: they have no values."""
        ...

    def blocks(self, judgements: Judgements) -> Iterator[Block]:
        """Yield it anew at each call, every query in one block.

        Raises
        ------
        ScatteredError
            The rows of a query do not stand together: take `together`.
        """
        ...

    def together(self) -> Rankings:
        """The run with the rows of each query together, all in memory."""
        ...


def hits_of(judgements: Judgements, rankings: Rankings, *, relevance_level: int = 1) -> Hits:
    """The hits of a run: a row for each judged query that it holds.

    Parameters
    ----------
    judgements : Judgements
    rankings : Rankings
        Scored documents are ordered by score descending, then by id descending as in trec_eval;
        lists keep their order.
    relevance_level : int
        Grade from which a document is relevant, from 1. Lower ones keep their gain.

    Returns
    -------
    Hits
        Its cases are the queries in the order of the run. Without rows where the run holds no
        query that was judged.
    """
    try:
        blocks = list(rankings.blocks(judgements))
    except ScatteredError:
        blocks = list(rankings.together().blocks(judgements))
    return joined(judgements, blocks, relevance_level)


def nothing_retrieved(query: Ints) -> Block:
    """Queries of which the run holds nothing."""
    none = np.empty(0, dtype=np.int64)
    return Block(query, np.zeros(len(query), np.int64), none, none, none, none.astype(np.uint64))


def joined(judgements: Judgements, blocks: list[Block], relevance_level: int) -> Hits:
    """The hits of several blocks together."""
    first = offsets(np.array([len(block.query) for block in blocks], dtype=np.int64))
    empty = np.empty(0, dtype=np.int64)

    def together(parts: list[Ints]) -> Ints:
        return np.concatenate(parts) if parts else empty

    query = together([block.query for block in blocks])
    retrieved = together([block.retrieved for block in blocks])
    row = together([block.row + at for block, at in zip(blocks, first[:-1], strict=True)])
    grade = together([block.grade for block in blocks])
    rank = together([block.rank for block in blocks])
    order = by_row(row, rank)
    return _hits(judgements, query, retrieved, (row[order], grade[order], rank[order]),
                 relevance_level)  # fmt: skip


def _hits(
    judgements: Judgements,
    query: Ints,
    retrieved: Ints,
    found: tuple[Ints, Ints, Ints],
    relevance_level: int,
) -> Hits:
    if relevance_level < 1:
        raise InputError(f"the relevance level is {relevance_level}; it counts from 1")
    count = np.diff(judgements.start)[query]
    grades = judgements.grade[pieces(judgements.start[query], count)]
    of = np.repeat(np.arange(len(query)), count)
    needs = np.bincount(of[grades >= relevance_level], minlength=len(query))
    against = np.bincount(of[(grades >= 0) & (grades < relevance_level)], minlength=len(query))
    positive = grades > 0
    ideal_row, ideal_gain = of[positive], grades[positive]
    best_first = by_row(ideal_row, ideal_gain.max(initial=0) - ideal_gain)
    ideal_gain = ideal_gain[best_first]
    ideals = offsets(np.bincount(ideal_row, minlength=len(query)))
    # A query of which nothing was judged has no row.
    judged = needs + against > 0
    renumbered = np.cumsum(judged) - 1
    row, grade, rank = found
    gaining, weighed = grade > 0, (grade >= 0) & (grade < relevance_level)
    return Hits(
        row=renumbered[row[gaining]],
        rank=rank[gaining],
        gain=grade[gaining],
        found=(grade[gaining] >= relevance_level).astype(np.int64),
        needs=needs[judged],
        ideal_row=renumbered[ideal_row],
        ideal_rank=np.arange(1, len(ideal_row) + 1) - ideals[ideal_row],
        ideal_gain=ideal_gain,
        judged_row=renumbered[row[weighed]],
        judged_rank=rank[weighed],
        judged_against=np.ones(int(weighed.sum()), dtype=np.bool_),
        nonrelevant=against[judged],
        retrieved=retrieved[judged],
        case=np.flatnonzero(judged),
        cases=len(query),
    )
