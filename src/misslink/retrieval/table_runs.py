"""Runs from tables, read in batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from misslink.io.tables import BATCH_ROWS, RetrievalTable, TableBatch
from misslink.retrieval import runs
from misslink.retrieval.arrays import (
    BoolArray,
    IdHashes,
    IntArray,
    ScoreArray,
    as_single_precision,
    group_starts,
    hash_ids,
    hash_pairs,
    rank_documents,
    segment_indices,
    segment_offsets,
    segments_with_duplicates,
)
from misslink.retrieval.qrels import Qrels

_PART_ROWS = 1 << 15  # rows compared at a time; they fit in the processor's cache
_SIEVE_FACTOR = 16  # slots of the first sieve per judged pair
_NO_HASHES = np.empty(0, np.uint64)


@dataclass(frozen=True)
class TableRun:
    """A run as a table.

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
    """

    table: RetrievalTable
    dedupe: runs.Dedupe = None
    grouped: bool = False

    @property
    def name(self) -> str:
        """The table's."""
        return self.table.name

    @property
    def unmeasured(self) -> frozenset[str]:
        """None: what a table does not hold was not retrieved."""
        return frozenset()

    def blocks(self, judgements: Qrels) -> Iterator[runs.RunBlock]:
        """Yield the rows of about a batch at a time.

        Raises
        ------
        UngroupedRunError
            A query comes again after another one, and it was judged or may repeat a document.
        """
        seen = np.zeros(len(judgements), dtype=bool)
        unjudged: list[IdHashes] = []
        row = 0
        for batch, starts in _whole_queries(self.table.batches()):
            rows, strangers = self._judged_rows(batch, starts, row, judgements, seen)
            unjudged.append(strangers)
            for part in _iter_parts(rows):
                yield self._block(judgements, part, strangers)
                strangers = _NO_HASHES  # counted once
            row += len(batch[0])
        hashes = np.concatenate(unjudged)
        if self.dedupe is None and not self.grouped and len(np.unique(hashes)) < len(hashes):
            raise _ungrouped_error(self.name)

    def together(self) -> TableRun:
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

    def _judged_rows(
        self, batch: TableBatch, starts: IntArray, row: int, judgements: Qrels, seen: BoolArray
    ) -> tuple[_Rows, IdHashes]:
        """Return the judged of whole queries, which begin at `starts`; and hashes of the others."""
        query, document, number = batch
        ids = query.take(starts)
        index = judgements.find(ids)
        judged = index >= 0
        numbers = index[judged]
        if seen[numbers].any() or len(np.unique(numbers)) < len(numbers):
            raise _ungrouped_error(self.name)
        seen[numbers] = True
        if judged.all():
            edges = np.append(starts, len(query))
            return _Rows(index, edges, document, number, starts + row), _NO_HASHES
        lengths = np.diff(np.append(starts, len(query)))
        unjudged_ids = ids.filter(pa.array(~judged))
        if self.dedupe is None:
            segments = segment_indices(starts[~judged], lengths[~judged])
            start = segment_offsets(lengths[~judged])
            listed = document.take(segments)
            for segment in segments_with_duplicates(hash_ids(listed), start).tolist():
                names = listed[int(start[segment]) : int(start[segment + 1])].to_pylist()
                first_row = row + int(starts[~judged][segment])
                self._reject_duplicate(names, unjudged_ids[segment].as_py(), first_row)
        segments = segment_indices(starts[judged], lengths[judged])
        rows = _Rows(
            numbers,
            segment_offsets(lengths[judged]),
            document.take(segments),
            None if number is None else number[segments],
            starts[judged] + row,
        )
        return rows, hash_ids(unjudged_ids)

    def _block(self, judgements: Qrels, rows: _Rows, strangers: IdHashes) -> runs.RunBlock:
        hashes = hash_ids(rows.document)
        matched = _match_judged(judgements, rows, hashes)
        if matched is None or len(segments_with_duplicates(hashes, rows.start)):
            return self._block_by_rows(judgements, rows, strangers)
        entry, place = matched
        row = np.searchsorted(rows.start, place, side="right") - 1
        if rows.number is None:
            rank = place - rows.start[row] + 1
        else:
            by_rank = self.table.kind == "rank"
            scores = -rows.number if by_rank else as_single_precision(rows.number)
            rank = _judged_ranks(rows, scores, row, place)
        grade = judgements.grade[entry]
        return runs.RunBlock(rows.query, np.diff(rows.start), row, grade, rank, strangers)

    def _block_by_rows(self, judgements: Qrels, rows: _Rows, strangers: IdHashes) -> runs.RunBlock:
        """Do the same in Python: a query has a document twice, or two ids share a hash."""
        scores = rows.number
        if scores is not None and self.table.kind != "score":
            scores = -scores
        rankings: list[tuple[int, Any]] = []
        for index, (low, high) in enumerate(pairwise(rows.start.tolist())):
            names = rows.document[low:high].to_pylist()
            query = int(rows.query[index])
            if self.dedupe is None and len(set(names)) < len(names):
                self._reject_duplicate(names, judgements.queries[query], int(rows.first[index]))
            if scores is None:
                rankings.append((query, names))
                continue
            best: dict[str, float] = {}
            for name, score in zip(names, scores[low:high].tolist(), strict=True):
                best[name] = max(score, best.get(name, score))
            rankings.append((query, best))
        make_block = runs.block_from_lists if scores is None else runs.block_from_scores
        return make_block(judgements, rankings, self, strangers)

    def _reject_duplicate(self, names: list[str], query: str, row: int) -> None:
        raise self.table.error(
            row + runs.first_duplicate(names)[0], runs.duplicate_message(names, query)
        )


@dataclass(frozen=True)
class _Rows:
    """Whole judged queries of a table; `first` is the table row at which each begins."""

    query: IntArray
    start: IntArray
    document: Any
    number: NDArray[np.float64] | None
    first: IntArray


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


def _iter_parts(rows: _Rows) -> Iterator[_Rows]:
    """Yield some queries at a time."""
    if len(rows.document) <= _PART_ROWS:
        yield rows
        return
    low = 0
    while low < len(rows.query):
        high = int(np.searchsorted(rows.start, rows.start[low] + _PART_ROWS, side="right")) - 1
        high = max(high, low + 1)
        first, last = int(rows.start[low]), int(rows.start[high])
        yield _Rows(
            rows.query[low:high],
            rows.start[low : high + 1] - first,
            rows.document[first:last],
            None if rows.number is None else rows.number[first:last],
            rows.first[low:high],
        )
        low = high


def _match_judged(
    judgements: Qrels, rows: _Rows, hashes: IdHashes
) -> tuple[IntArray, IntArray] | None:
    """Return the retrieved entries of the qrels, and their places among the rows.

    A sieve by a few bits of the hashes leaves little more than the judged documents, and these
    bits also tell which entry it is; entries that share them are searched for. None if two
    different ids share a hash.
    """
    pairs = hashes ^ np.repeat(
        hash_pairs(rows.query, np.zeros(len(rows.query), np.uint64)), np.diff(rows.start)
    )
    start = judgements.start[rows.query]
    entry = segment_indices(start, judgements.start[rows.query + 1] - start)
    if not len(entry):
        return entry, entry
    judged = judgements.document_hashes[entry]
    bits = int(np.ceil(np.log2(_SIEVE_FACTOR * len(judged))))
    mask = np.uint64((1 << bits) - 1)
    sieve, slots = np.zeros(1 << bits, dtype=bool), np.empty(1 << bits, dtype=np.int32)
    slot, number = (judged & mask).view(np.int64), np.arange(len(judged), dtype=np.int32)
    sieve[slot] = True
    slots[slot] = number
    pair_slot = (pairs & mask).view(np.int64)
    place = np.flatnonzero(sieve[pair_slot])
    index, candidates = slots[pair_slot[place]], pairs[place]
    crowded = np.flatnonzero(slots[slot] != number)  # another entry has the slot
    if len(crowded):
        crowded = crowded[np.argsort(judged[crowded])]
        searched = judged[crowded]
        if (searched[1:] == searched[:-1]).any() or (
            judged[slots[slot[crowded]]] == searched
        ).any():
            return None
        other = crowded[np.minimum(np.searchsorted(searched, candidates), len(crowded) - 1)]
        index = np.where(judged[other] == candidates, other, index)
    is_judged = judged[index] == candidates
    entry, place = entry[index[is_judged]], place[is_judged]
    equal = rows.document.take(place).equals(judgements.documents.take(entry))
    return (entry, place) if equal else None


def _judged_ranks(rows: _Rows, scores: ScoreArray, row: IntArray, place: IntArray) -> IntArray:
    """Return ranks of the documents at some places, by score descending.

    The place is the rank if the scores of the row never rise and no neighbor has the same score;
    other rows are sorted.
    """
    rank: IntArray = place - rows.start[row] + 1
    change = np.full(len(scores) + 1, -1, dtype=np.int8)  # sign of the step from the score before
    np.subtract(scores[1:] > scores[:-1], scores[1:] < scores[:-1], out=change[1:-1], dtype=np.int8)
    change[rows.start] = -1
    rises = np.zeros(len(rows.start) - 1, dtype=bool)
    rises[np.searchsorted(rows.start, np.flatnonzero(change > 0), side="right") - 1] = True
    unsure = np.flatnonzero(rises[row] | (change[place] >= 0) | (change[place + 1] >= 0))
    if not len(unsure):
        return rank
    unsure_rows, own = np.unique(row[unsure], return_inverse=True)
    lengths = np.diff(rows.start)[unsure_rows]
    row_scores = scores[segment_indices(rows.start[unsure_rows], lengths)]

    def row_items(index: int) -> Iterator[tuple[str, float]]:
        low, high = rows.start[unsure_rows[index]], rows.start[unsure_rows[index] + 1]
        names = rows.document[int(low) : int(high)].to_pylist()
        return zip(names, scores[low:high].tolist(), strict=True)

    def document(index: int) -> str:
        name: str = rows.document[int(place[unsure[index]])].as_py()
        return name

    rank[unsure] = rank_documents(
        row_scores, segment_offsets(lengths), own, scores[place[unsure]], document, row_items
    )
    return rank


def _ungrouped_error(name: str) -> runs.UngroupedRunError:
    return runs.UngroupedRunError(
        "the rows of a query are not together; sort the run by query", path=name
    )
