"""Runs: the ranked documents of each query, in blocks of queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from misslink.errors import InputError
from misslink.io.tables import BATCH_ROWS, RetrievalTable, TableBatch
from misslink.retrieval.arrays import (
    IntArray,
    ScoreArray,
    as_single_precision,
    as_text_array,
    group_starts,
    order_by_row,
    segment_indices,
    segment_offsets,
)
from misslink.retrieval.hits import Hits
from misslink.retrieval.qrels import Qrels, number_error, with_text_ids

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
    unjudged : arrow array of text
        The queries without judgments in this block.
    """

    query: IntArray
    retrieved: IntArray
    row: IntArray
    grade: IntArray
    rank: IntArray
    unjudged: Any


class UngroupedRunError(InputError):
    """A run that is read in batches has rows of a query in several places."""


@dataclass(frozen=True)
class RankedRun:
    """A run.

    If the rows of every query are together, in any order, one batch of them is in memory at a time;
    else all rows are read and sorted by query. Rows of queries without judgments may be apart if
    repeated documents are allowed.

    Parameters
    ----------
    table : RetrievalTable
    dedupe : {'first'} or None
        Whether a document that a ranking repeats counts where it is first, or is an error.
    grouped : bool
        Whether the rows of every query are known to be together.
    unmeasured : frozenset of str
        Queries whose retrieval is unknown; they have no values.
    empty : frozenset of str
        Queries with an empty ranking.
    """

    table: RetrievalTable
    dedupe: Dedupe = None
    grouped: bool = False
    unmeasured: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()

    @classmethod
    def of_mapping(
        cls,
        rankings: Mapping[Any, Any],
        name: str = "the run",
        dedupe: Dedupe = None,
        unmeasured: frozenset[str] = frozenset(),
    ) -> RankedRun:
        """Build it from ``{query: [document, ...]}``, best first, or ``{query: {document: score}}``.

        Ids are text or whole numbers.

        Raises
        ------
        InputError
            There is no query, two have the same id, or a ranking is neither; later: an id is none,
            or a score is no finite number.
        """
        if not rankings:
            raise InputError("it has no queries", path=name)
        if len({str(query) for query in rankings}) < len(rankings):
            raise InputError("two of its queries have the same id", path=name)
        has_scores = isinstance(next(iter(rankings.values())), Mapping)
        for query, ranking in rankings.items():
            if (
                isinstance(ranking, Mapping) is not has_scores
                or isinstance(ranking, str | AbstractSet)
                or not hasattr(ranking, "__len__")
            ):
                raise InputError(
                    f"query '{query}' has {type(ranking).__name__}; give each query a list of "
                    "documents, best first, or each a dict of documents with scores",
                    path=name,
                )

        def batches() -> Iterator[TableBatch]:
            waiting: list[tuple[str, Any]] = []
            rows = 0
            for query, ranking in rankings.items():
                alternative = "a dict of documents with scores"
                waiting.append((str(query), with_text_ids(ranking, query, name, alternative)))
                rows += len(ranking)
                if rows >= BATCH_ROWS:
                    yield _batch_of_rankings(waiting, name, has_scores=has_scores)
                    waiting, rows = [], 0
            yield _batch_of_rankings(waiting, name, has_scores=has_scores)

        kind: Literal["score", "order"] = "score" if has_scores else "order"
        table = RetrievalTable(name, kind, batches, line=lambda _: None, source_row=lambda _: None)
        empty = frozenset(str(query) for query, ranking in rankings.items() if not len(ranking))
        return cls(table, dedupe, grouped=True, unmeasured=unmeasured, empty=empty)

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.table.name

    def blocks(self, judgements: Qrels) -> Iterator[RunBlock]:
        """Yield the run from its start at each call, about a batch at a time.

        Raises
        ------
        UngroupedRunError
            A query comes again after another one, and it was judged or may repeat a document: use
            `together`.
        InputError
            A ranking repeats a document, or the table is wrong.
        """
        seen = np.zeros(len(judgements), dtype=bool)
        unjudged = [as_text_array([])]
        first = 0  # its row in the table
        for batch, starts in _whole_queries(self.table.batches()):
            ids = batch[0].take(starts)
            number = judgements.find(ids)
            judged = number[number >= 0]
            if seen[judged].any() or len(np.unique(judged)) < len(judged):
                raise _ungrouped_error(self.name)
            seen[judged] = True
            block = self._block(judgements, batch, starts, number, first)
            unjudged.append(block.unjudged)
            yield block
            first += len(batch[0])
        if self.empty:
            ids = as_text_array(sorted(self.empty), self.name)
            number = judgements.find(ids)
            judged, others = number[number >= 0], ids.filter(pa.array(number < 0))
            yield replace(empty_block(judged), unjudged=others)
        strangers = pa.chunked_array(unjudged)
        if self.dedupe is None and not self.grouped and len(strangers.unique()) < len(strangers):
            raise _ungrouped_error(self.name)

    def together(self) -> RankedRun:
        """Return the run with the rows of each query together, all in memory, in their order."""
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

    def _block(
        self, judgements: Qrels, batch: TableBatch, starts: IntArray, number: IntArray, first: int
    ) -> RunBlock:
        """Match whole queries, which begin at `starts` and have these numbers in the qrels."""
        query, document, values = batch
        row = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(query)))
        merit: ScoreArray = -np.arange(len(row), dtype=np.float64) if values is None else values
        if self.table.kind == "rank":
            merit = -merit
        elif self.table.kind == "score":
            merit = as_single_precision(merit)
        is_judged = number >= 0
        start = judgements.start[number[is_judged]]
        count = judgements.start[number[is_judged] + 1] - start
        entry = segment_indices(start, count)
        row_of_entry = np.repeat(np.flatnonzero(is_judged), count)
        both = pa.concat_arrays([document, judgements.documents.take(entry)]).dictionary_encode()
        code, judged_code = np.split(both.indices.to_numpy(), [len(row)])
        pair = row * len(both.dictionary) + code
        by_pair = np.argsort(pair, kind="stable")
        repeated = by_pair[1:][np.diff(pair[by_pair]) == 0]
        if len(repeated) and self.dedupe is None:
            at = int(repeated.min())
            raise self.table.error(
                first + at, duplicate_message(query[at].as_py(), document[at].as_py())
            )
        if len(repeated):
            best_first = np.lexsort((-merit, pair))
            kept = np.sort(best_first[np.diff(pair[best_first], prepend=-1) > 0])
            row, merit, pair, document = row[kept], merit[kept], pair[kept], document.take(kept)
            by_pair = np.argsort(pair)
        wanted = row_of_entry * len(both.dictionary) + judged_code
        place = by_pair[np.minimum(np.searchsorted(pair[by_pair], wanted), len(pair) - 1)]
        retrieved = pair[place] == wanted
        return RunBlock(
            query=number[is_judged],
            retrieved=np.bincount(row, minlength=len(number))[is_judged],
            row=(np.cumsum(is_judged) - 1)[row_of_entry[retrieved]],
            grade=judgements.grade[entry[retrieved]],
            rank=_rank_rows(row, merit, document)[place[retrieved]],
            unjudged=query.take(starts[~is_judged]),
        )


def _rank_rows(row: IntArray, merit: ScoreArray, document: Any) -> IntArray:
    """Rank the documents of each row from 1, by merit, then by id descending like trec_eval."""
    order = np.lexsort((-merit, row))
    row_in_order, merit_in_order = row[order], merit[order]
    tied_with_next = row_in_order[1:] == row_in_order[:-1]
    tied_with_next &= merit_in_order[1:] == merit_in_order[:-1]
    if tied_with_next.any():
        tied = np.flatnonzero(np.append(tied_with_next, False) | np.append(False, tied_with_next))
        group = np.cumsum(np.append(True, ~tied_with_next))[tied]
        by_id = pc.array_sort_indices(document.take(order[tied]), order="descending").to_numpy()
        order[tied] = order[tied][by_id[np.argsort(group[by_id], kind="stable")]]
    rank = np.empty(len(row), dtype=np.int64)
    rank[order] = np.arange(1, len(row) + 1)
    return rank - segment_offsets(np.bincount(row))[row]


def empty_block(query: IntArray) -> RunBlock:
    """Return a block of queries with empty rankings."""
    none = np.empty(0, dtype=np.int64)
    return RunBlock(query, np.zeros(len(query), np.int64), none, none, none, as_text_array([]))


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
    query, document = (pa.concat_arrays([part[column] for part in parts]) for column in (0, 1))
    numbers = [part[2] for part in parts if part[2] is not None]
    return query, document, np.concatenate(numbers) if numbers else None


def _batch_of_rankings(
    rankings: list[tuple[str, Any]], name: str, *, has_scores: bool
) -> TableBatch:
    """Rankings of several queries as a table; what is no finite score is an error."""
    queries = as_text_array([query for query, _ in rankings], name)
    lengths = np.array([len(ranking) for _, ranking in rankings], dtype=np.int64)
    query = queries.take(np.repeat(np.arange(len(rankings)), lengths))
    document = as_text_array(chain.from_iterable(ranking for _, ranking in rankings), name)
    if not has_scores:
        return query, document, None
    try:
        listed = chain.from_iterable(ranking.values() for _, ranking in rankings)
        score = np.fromiter(listed, np.float64, len(query))
    except (TypeError, ValueError, OverflowError):
        score = np.array([np.nan])
    if not np.isfinite(score).all():
        unreadable = "not a finite number"

        def problem(score: Any) -> str | None:
            return None if np.isfinite(float(score)) else unreadable

        raise number_error("score", rankings, problem, unreadable, name)
    return query, document, score


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
