"""Runs as tables: blocks cut where the query changes, ids compared as numbers of 64 bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misslink.files.tables import AT_ONCE, Batch, Table
from misslink.retrieval.columns import Block, ScatteredError
from misslink.retrieval.given_runs import Dedupe, listed, scored
from misslink.retrieval.judged_rows import Rows, matches, parts, ranks_of
from misslink.retrieval.keys import Keys, keys_of
from misslink.retrieval.qrels import Judgements
from misslink.retrieval.segments import firsts_of, offsets, pieces, repeating, single

__all__ = ["TableRankings"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TableRankings:
    """A run as a table.

    Where the rows of every query stand together, in whatever order, a batch of them is in memory
    at a time; else all are read and sorted by query. Those of queries that nobody judged may stand
    apart where no document that stands twice is looked for.

    Parameters
    ----------
    table : Table
    dedupe : {'first'} or None
        Whether a document that stands twice in a ranking counts where it is ranked first, or is
        an error.
    gathered : bool
        Whether the rows of every query are known to stand together.
    """

    table: Table
    dedupe: Dedupe = None
    gathered: bool = False

    @property
    def name(self) -> str:
        """The table's."""
        return self.table.name

    @property
    def unmeasured(self) -> frozenset[str]:
        """None: what a table does not hold was not retrieved."""
        return frozenset()

    def blocks(self, judgements: Judgements) -> Iterator[Block]:
        """Yield the rows of about a batch at a time.

        Raises
        ------
        ScatteredError
            A query comes a second time after another one, and it was judged or might name a
            document twice.
        """
        seen = np.zeros(len(judgements), dtype=np.bool_)
        others: list[Keys] = []
        for rows, strangers in self._rows(self.table.batches(), judgements, seen):
            others.append(strangers)
            for number, part in enumerate(parts(rows)):
                # The strangers are told once.
                yield self._block(judgements, part, strangers if number == 0 else strangers[:0])
        keys = np.concatenate(others)
        if self.dedupe is None and not self.gathered and len(np.unique(keys)) < len(keys):
            raise _scattered(self.name)

    def together(self) -> TableRankings:
        """The run with the rows of each query together, all in memory; their order is kept."""
        import pyarrow as pa

        batches = list(self.table.batches())
        query = pa.chunked_array([batch[0] for batch in batches]).combine_chunks()
        codes = query.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        taken = pa.array(order)
        document = pa.chunked_array([batch[1] for batch in batches]).combine_chunks().take(taken)
        query = query.take(taken)
        parts = [batch[2] for batch in batches if batch[2] is not None]
        number = np.concatenate(parts)[order] if parts else None

        def sorted_batches() -> Iterator[Batch]:
            for at in range(0, len(query), AT_ONCE):
                part = slice(at, at + AT_ONCE)
                yield query[part], document[part], None if number is None else number[part]

        table = replace(self.table, batches=sorted_batches, given=lambda row: int(order[row]))
        return replace(self, table=table, gathered=True)

    def _rows(
        self, batches: Iterator[Batch], judgements: Judgements, seen: NDArray[np.bool_]
    ) -> Iterator[tuple[Rows, Keys]]:
        """Whole queries: what may go on in the next batch waits for it."""
        import pyarrow as pa

        waiting: list[Batch] = []  # rows of one query
        row = 0

        def whole(parts: list[Batch], firsts: Ints) -> tuple[Rows, Keys]:
            query, document = (
                pa.concat_arrays([part[at] for part in parts]) if len(parts) > 1 else parts[0][at]
                for at in (0, 1)
            )
            numbers = [part[2] for part in parts if part[2] is not None]
            number = np.concatenate(numbers) if numbers else None
            batch = (query, document, number)
            return self._judged(batch, firsts, row, judgements, seen)

        for query, document, number in batches:
            if not len(query):
                continue
            firsts = firsts_of(query)
            same = bool(waiting) and waiting[-1][0][-1].as_py() == query[0].as_py()
            cut = int(firsts[-1])
            if cut == 0 and (same or not waiting):
                waiting.append((query, document, number))
                continue
            head = (query[:cut], document[:cut], None if number is None else number[:cut])
            parts = [*waiting, head] if cut else waiting
            before = sum(len(part[0]) for part in waiting)
            begun = firsts[int(same) : -1] + before
            yield whole(parts, np.append(0, begun) if waiting else begun)
            row += before + cut
            waiting = [(query[cut:], document[cut:], None if number is None else number[cut:])]
        if waiting:
            yield whole(waiting, np.zeros(1, dtype=np.int64))

    def _judged(
        self,
        batch: Batch,
        firsts: Ints,
        row: int,
        judgements: Judgements,
        seen: NDArray[np.bool_],
    ) -> tuple[Rows, Keys]:
        """Of whole queries, which begin at `firsts`, those judged; and the keys of the others."""
        import pyarrow as pa

        query, document, number = batch
        names = query.take(firsts)
        at = judgements.find(names)
        known = at >= 0
        numbers = at[known]
        if seen[numbers].any() or len(np.unique(numbers)) < len(numbers):
            raise _scattered(self.name)
        seen[numbers] = True
        if known.all():
            start = np.append(firsts, len(query))
            return Rows(at, start, document, number, firsts + row), np.empty(0, np.uint64)
        lengths = np.diff(np.append(firsts, len(query)))
        if self.dedupe is None:
            others = firsts[~known], lengths[~known], names.filter(pa.array(~known))
            self._check(document, *others, row)
        lengths = lengths[known]
        kept = pieces(firsts[known], lengths)
        rows = Rows(
            numbers,
            offsets(lengths),
            document.take(pa.array(kept)),
            None if number is None else number[kept],
            firsts[known] + row,
        )
        return rows, keys_of(names.filter(pa.array(~known)))

    def _check(self, document: Any, firsts: Ints, lengths: Ints, names: Any, row: int) -> None:
        """Refuse a document that stands twice for a query that nobody judged."""
        import pyarrow as pa

        listed, start = document.take(pa.array(pieces(firsts, lengths))), offsets(lengths)
        for at in repeating(keys_of(listed), start).tolist():
            own = listed[int(start[at]) : int(start[at + 1])].to_pylist()
            self._refuse(own, names[at].as_py(), row + int(firsts[at]))

    def _block(self, judgements: Judgements, rows: Rows, strangers: Keys) -> Block:
        keys = keys_of(rows.document)
        found = matches(judgements, rows, keys)
        if found is None or len(repeating(keys, rows.start)):
            return replace(self._one_by_one(judgements, rows), strangers=strangers)
        entry, place = found
        row = np.searchsorted(rows.start, place, side="right") - 1
        if rows.number is None:
            rank = place - rows.start[row] + 1
        else:
            by_rank = self.table.kind == "rank"
            scores = -rows.number if by_rank else single(rows.number)
            rank = ranks_of(rows, scores, row, place)
        return Block(rows.query, np.diff(rows.start), row, judgements.grade[entry], rank, strangers)

    def _one_by_one(self, judgements: Judgements, rows: Rows) -> Block:
        """The same in Python: some query has a document twice, or two ids share a key."""
        edges, number = rows.start.tolist(), rows.number
        signed = number if number is None or self.table.kind == "score" else -number
        given: list[tuple[int, Any]] = []
        for at, (low, high) in enumerate(pairwise(edges)):
            names = rows.document[low:high].to_pylist()
            query = int(rows.query[at])
            if self.dedupe is None and len(set(names)) < len(names):
                self._refuse(names, judgements.queries[query], int(rows.first[at]))
            if signed is None:
                given.append((query, names))
                continue
            best: dict[str, float] = {}
            for name, score in zip(names, signed[low:high].tolist(), strict=True):
                best[name] = max(score, best.get(name, score))
            given.append((query, best))
        return (
            listed(judgements, given, self) if signed is None else scored(judgements, given, self)
        )

    def _refuse(self, names: list[str], query: str, row: int) -> None:
        seen: set[str] = set()
        for at, name in enumerate(names):
            if name in seen:
                raise self.table.error(
                    row + at,
                    f"query '{query}' has the document '{name}' twice; a ranking names a document "
                    "once (dedupe 'first' keeps the first)",
                )
            seen.add(name)


def _scattered(name: str) -> ScatteredError:
    return ScatteredError(
        "the rows of a query do not stand together; sort the run by query", path=name
    )
