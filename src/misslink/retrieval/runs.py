"""Runs: the ranked documents of each query, in blocks of queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import compress, repeat
from typing import Any, Literal

import numpy as np

from misslink.errors import InputError
from misslink.io.tables import BATCH_ROWS, RetrievalTable, TableBatch
from misslink.retrieval.arrays import (
    HASH_BITS,
    ORDER_BITS,
    IntArray,
    descending,
    group_starts,
    hash_texts,
    order_by_row,
    rank_scored,
    segment_indices,
    segment_offsets,
)
from misslink.retrieval.hits import Hits
from misslink.retrieval.qrels import Qrels

Dedupe = Literal["first"] | None


@dataclass(frozen=True)
class RunBlock:
    """Some queries of a run with their judged and retrieved documents; a row is a query.

    Parameters
    ----------
    query : array of int, shape (rows,)
        Number of each query in the qrels.
    retrieved : array of int, shape (rows,)
        Length of its ranking.
    row, grade, rank : array of int, shape (judged and retrieved,)
        Rows ascending.
    unjudged : list of str
        The queries without judgments in this block.
    """

    query: IntArray
    retrieved: IntArray
    row: IntArray
    grade: IntArray
    rank: IntArray
    unjudged: list[str]


class UngroupedRunError(InputError):
    """A run that is read in batches has rows of a query in several places."""


@dataclass(frozen=True)
class RankedRun(ABC):
    """A run.

    Parameters
    ----------
    name : str
        Its name in messages.
    dedupe : {'first'} or None
        Whether a document that a ranking repeats counts where it is first, or is an error.
    unmeasured : frozenset of str
        Queries whose retrieval is unknown; they have no values.
    """

    name: str
    dedupe: Dedupe = None
    unmeasured: frozenset[str] = frozenset()

    @abstractmethod
    def blocks(self, judgements: Qrels) -> Iterator[RunBlock]:
        """Yield the run from its start at each call, some queries at a time.

        Raises
        ------
        UngroupedRunError
            A query comes again after another one, and it was judged or may repeat a document: use
            `TableRun.together`.
        InputError
            A ranking repeats a document, or the run is wrong.
        """

    def together(self) -> RankedRun:
        """Return the run with the rows of each query together."""
        return self

    @abstractmethod
    def rows(self) -> Iterator[tuple[str, str, float | None]]:
        """Yield query, document and merit, the best highest; None in the order of the rows."""


@dataclass(frozen=True)
class TableRun(RankedRun):
    """A run of a table, read by the buffers of its columns.

    If the rows of every query are together, in any order, one batch of them is in memory at a time;
    else all rows are read and sorted by query. Rows of queries without judgments may be apart if
    repeated documents are allowed.

    Parameters
    ----------
    table : RetrievalTable
    grouped : bool
        Whether the rows of every query are known to be together.
    """

    _: KW_ONLY
    table: RetrievalTable
    grouped: bool = False

    def blocks(self, judgements: Qrels) -> Iterator[RunBlock]:
        """See `RankedRun.blocks`."""
        seen = np.zeros(len(judgements), dtype=bool)
        unjudged: list[str] = []
        first = 0  # its row in the table
        for batch, starts in _whole_queries(self.table.batches()):
            queries = batch[0].take(starts).to_pylist()
            number = judgements.find(queries)
            judged = number[number >= 0]
            if seen[judged].any() or len(np.unique(judged)) < len(judged):
                raise _ungrouped_error(self.name)
            seen[judged] = True
            entries = self._matched(judgements, batch, starts, number, first)
            block = matched_block(judgements, queries, number, *entries)
            unjudged += block.unjudged
            yield block
            first += len(batch[0])
        if self.dedupe is None and not self.grouped and len(set(unjudged)) < len(unjudged):
            raise _ungrouped_error(self.name)

    def rows(self) -> Iterator[tuple[str, str, float | None]]:
        """See `RankedRun.rows`."""
        for query, document, numbers in self.table.batches():
            merit = -numbers if numbers is not None and self.table.kind == "rank" else numbers
            merits = repeat(None) if merit is None else merit.tolist()
            yield from zip(query.to_pylist(), document.to_pylist(), merits, strict=False)

    def together(self) -> TableRun:
        """See `RankedRun.together`: all in memory, in their order."""
        import pyarrow as pa

        batches = list(self.table.batches())
        query = pa.chunked_array([batch[0] for batch in batches]).combine_chunks()
        codes = query.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        document = pa.chunked_array([batch[1] for batch in batches]).combine_chunks().take(order)
        query = query.take(order)
        numbers = [batch[2] for batch in batches if batch[2] is not None]
        number = np.concatenate(numbers)[order] if numbers else None

        def sorted_batches() -> Iterator[TableBatch]:
            for start in range(0, len(query), BATCH_ROWS):
                part = slice(start, start + BATCH_ROWS)
                yield query[part], document[part], None if number is None else number[part]

        table = replace(self.table, batches=sorted_batches, source_row=lambda row: int(order[row]))
        return replace(self, table=table, grouped=True)

    def _matched(
        self, judgements: Qrels, batch: TableBatch, starts: IntArray, number: IntArray, first: int
    ) -> tuple[IntArray, ...]:
        """Return what `matched_block` takes of queries that begin at `starts`."""
        query, document, values = batch
        length = np.diff(starts, append=len(query))
        row = np.repeat(np.arange(len(starts)), length)
        judged_row, entry = judgements.entries(number)
        for code, judged_code in _codings(document, judgements, entry):
            pair = (row << HASH_BITS) | code
            wanted = (judged_row << HASH_BITS) | judged_code
            by_pair = np.argsort(pair)
            ascending = pair[by_pair]
            again = np.flatnonzero(ascending[1:] == ascending[:-1])
            place = by_pair[np.minimum(np.searchsorted(ascending, wanted), len(pair) - 1)]
            found = np.flatnonzero(pair[place] == wanted)
            place, found_documents = place[found], judgements.documents.take(entry[found])
            if document.take(place).equals(found_documents) and document.take(
                by_pair[again]
            ).equals(document.take(by_pair[again + 1])):
                break
        order = None
        if values is not None:
            by_rank = self.table.kind == "rank"
            order = np.unique(values, return_inverse=True)[1] if by_rank else descending(values)
        if len(again) and self.dedupe is None:
            at = int(np.setdiff1d(np.arange(len(pair)), _best_of_each(pair))[0])
            raise self.table.error(
                first + at, duplicate_message(query[at].as_py(), document[at].as_py())
            )
        if len(again):
            kept = _best_of_each(pair, order)
            once = query.take(kept), document.take(kept), None if values is None else values[kept]
            starts = segment_offsets(np.bincount(row[kept]))[:-1]
            return self._matched(judgements, once, starts, number, first)
        judged_row, entry = judged_row[found], entry[found]
        start = starts[judged_row]
        rank = place - start + 1
        if order is not None:
            order |= row << ORDER_BITS
            rank = rank_scored(order, order[place], start, document.take, found_documents.take)
        return length, judged_row, entry, rank


def matched_block(
    judgements: Qrels,
    queries: list[str],
    number: IntArray,
    length: IntArray,
    row: IntArray,
    entry: IntArray,
    rank: IntArray,
) -> RunBlock:
    """Return the block of some queries of a run.

    Parameters
    ----------
    judgements : Qrels
    queries : list of str
    number, length : array of int, shape (queries,)
        Number in the qrels, -1 without judgments; length of the ranking.
    row, entry, rank : array of int, shape (judged and retrieved,)
        Place of the query among these, entry of the qrels, and rank.
    """
    is_judged = number >= 0
    return RunBlock(
        query=number[is_judged],
        retrieved=length[is_judged],
        row=(np.cumsum(is_judged) - 1)[row],
        grade=judgements.grade[entry],
        rank=rank,
        unjudged=list(compress(queries, ~is_judged)),
    )


def _codings(
    document: Any, judgements: Qrels, entry: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield numbers of the documents of a run, and of some that were judged.

    First hashes, in which different documents may agree; then numbers in which none do.
    """
    import pyarrow as pa

    yield hash_texts(document), judgements.hashes[entry]
    both = pa.concat_arrays([document, judgements.documents.take(entry)]).dictionary_encode()
    code, judged_code = np.split(both.indices.to_numpy().astype(np.int64), [len(document)])
    yield code, judged_code


def _best_of_each(pair: IntArray, order: IntArray | None = None) -> IntArray:
    """Return the places of the best of equal pairs, by `order` and then the first."""
    by_pair = np.lexsort((pair,) if order is None else (order, pair))
    return np.sort(by_pair[np.diff(pair[by_pair], prepend=-1) != 0])


def empty_block(query: IntArray) -> RunBlock:
    """Return a block of queries with empty rankings."""
    none = np.empty(0, dtype=np.int64)
    return RunBlock(query, np.zeros(len(query), np.int64), none, none, none, [])


def block_hits(judgements: Qrels, block: RunBlock, relevance_level: int) -> Hits:
    """Return the hits of a block, where grades from `relevance_level` (from 1) up are relevant."""
    query = block.query
    order = order_by_row(block.row, block.rank)
    row, rank, grade = block.row[order], block.rank[order], block.grade[order]
    judged_count = np.diff(judgements.start)[query]
    judged_grade = judgements.grade[segment_indices(judgements.start[query], judged_count)]
    judged_row = np.repeat(np.arange(len(query)), judged_count)
    needs = np.bincount(judged_row[judged_grade >= relevance_level], minlength=len(query))
    low = (judged_grade >= 0) & (judged_grade < relevance_level)
    nonrelevant = np.bincount(judged_row[low], minlength=len(query))
    ideal_row = judged_row[judged_grade > 0]
    ideal_gain = judged_grade[judged_grade > 0]
    ideal_gain = ideal_gain[order_by_row(ideal_row, ideal_gain.max(initial=0) - ideal_gain)]
    ideal_start = segment_offsets(np.bincount(ideal_row, minlength=len(query)))
    # A query without judgments has no row.
    has_row = needs + nonrelevant > 0
    renumbered = np.cumsum(has_row) - 1
    gaining, judged_low = grade > 0, (grade >= 0) & (grade < relevance_level)
    return Hits(
        row=renumbered[row[gaining]],
        rank=rank[gaining],
        gain=grade[gaining],
        satisfied=(grade[gaining] >= relevance_level).astype(np.int64),
        needs=needs[has_row],
        ideal_row=renumbered[ideal_row],
        ideal_rank=np.arange(1, len(ideal_row) + 1) - ideal_start[ideal_row],
        ideal_gain=ideal_gain,
        judged_row=renumbered[row[judged_low]],
        judged_rank=rank[judged_low],
        judged_against=np.ones(int(judged_low.sum()), dtype=bool),
        nonrelevant=nonrelevant[has_row],
        retrieved=block.retrieved[has_row],
        case=np.flatnonzero(has_row),
        cases=len(query),
    )


def _whole_queries(batches: Iterator[TableBatch]) -> Iterator[tuple[TableBatch, IntArray]]:
    """Yield batches of whole queries and where each begins; the last query waits for its end."""
    waiting: list[TableBatch] = []  # rows of one query
    for query, document, number in batches:
        if not len(query):
            continue
        starts = group_starts(query)
        continues = bool(waiting) and waiting[-1][0][-1].as_py() == query[0].as_py()
        cut = int(starts[-1])
        if cut == 0 and (continues or not waiting):
            waiting.append((query, document, number))
            continue
        before = sum(len(part[0]) for part in waiting)
        starts = starts[int(continues) : -1] + before
        starts = np.append(0, starts) if waiting else starts
        if cut:
            waiting.append((query[:cut], document[:cut], None if number is None else number[:cut]))
        yield _concatenate(waiting), starts
        waiting = [(query[cut:], document[cut:], None if number is None else number[cut:])]
    if waiting:
        yield _concatenate(waiting), np.zeros(1, dtype=np.int64)


def _concatenate(parts: list[TableBatch]) -> TableBatch:
    if len(parts) == 1:
        return parts[0]
    import pyarrow as pa

    query, document = (pa.concat_arrays([part[column] for part in parts]) for column in (0, 1))
    numbers = [part[2] for part in parts if part[2] is not None]
    return query, document, np.concatenate(numbers) if numbers else None


def first_duplicate(ids: Iterable[str]) -> str:
    """Return the first id that occurs twice."""
    return next(name for name, count in Counter(ids).items() if count > 1)


def duplicate_message(query: str, document: str) -> str:
    """Return what is wrong with a ranking that repeats a document."""
    return (
        f"query '{query}' has the document '{document}' twice; a ranking names "
        "a document once (dedupe 'first' keeps the first)"
    )


def _ungrouped_error(name: str) -> UngroupedRunError:
    return UngroupedRunError(
        "the rows of a query are not together; sort the run by query", path=name
    )
