"""Runs that are Python mappings, read by lookups of the judged documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass
from itertools import chain, count, pairwise, repeat
from typing import Any

import numpy as np

from misslink.errors import InputError
from misslink.io.tables import BATCH_ROWS
from misslink.retrieval.arrays import (
    ORDER_BITS,
    FloatArray,
    IntArray,
    as_text_array,
    descending,
    rank_scored,
    segment_offsets,
)
from misslink.retrieval.qrels import Qrels, number_error, text_queries, with_text_ids
from misslink.retrieval.runs import (
    Dedupe,
    RankedRun,
    RunBlock,
    duplicate_message,
    first_duplicate,
    matched_block,
)

_ALTERNATIVE = "a dict of documents with scores"  # to a list of ids


@dataclass(frozen=True)
class MappingRun(RankedRun):
    """A run of Python mappings.

    Parameters
    ----------
    queries : list of str
    rankings : sequence
        Of each query the documents, best first; or a mapping of documents to scores.
    has_scores : bool
        Whether they are such mappings.
    """

    _: KW_ONLY
    queries: list[str]
    rankings: list[Any]
    has_scores: bool

    @classmethod
    def of_mapping(
        cls,
        source: Mapping[Any, Any],
        name: str = "the run",
        dedupe: Dedupe = None,
        unmeasured: frozenset[str] = frozenset(),
    ) -> MappingRun:
        """Build it from ``{query: [document, ...]}``, best first, or ``{query: {document: score}}``.

        Ids are text or whole numbers.

        Raises
        ------
        InputError
            There is no query, two have the same id, or a ranking is neither; later: an id is none,
            or a score is no finite number.
        """
        if not source:
            raise InputError("it has no queries", path=name)
        rankings = list(source.values())
        has_scores = isinstance(rankings[0], Mapping)
        rejected = {
            kind
            for kind in set(map(type, rankings))
            if issubclass(kind, Mapping) is not has_scores
            or issubclass(kind, str | AbstractSet)
            or not hasattr(kind, "__len__")
        }
        for query, ranking in source.items() if rejected else ():
            if type(ranking) in rejected:
                raise InputError(
                    f"query '{query}' has {type(ranking).__name__}; give each query a list of "
                    "documents, best first, or each a dict of documents with scores",
                    path=name,
                )
        queries = text_queries(source, name)
        columns: Any = {"queries": queries, "rankings": rankings, "has_scores": has_scores}
        return cls(name, dedupe, unmeasured, **columns)

    def blocks(self, judgements: Qrels) -> Iterator[RunBlock]:
        """See `RankedRun.blocks`."""
        lengths = np.fromiter(map(len, self.rankings), np.int64, len(self.rankings))
        batch = np.cumsum(lengths) // BATCH_ROWS
        last_of_batch = np.flatnonzero(np.diff(batch, append=-1))
        judged = [*judgements.judged, {}]
        for first, last in pairwise(np.append(-1, last_of_batch).tolist()):
            yield self._block(judgements, judged, slice(first + 1, last + 1))

    def rows(self) -> Iterator[tuple[str, str, float | None]]:
        """See `RankedRun.rows`."""
        for query, ranking in zip(self.queries, self.rankings, strict=True):
            documents = with_text_ids(ranking, query, self.name, _ALTERNATIVE)
            merits = self._scores([documents]).tolist() if self.has_scores else repeat(None)
            yield from zip(repeat(query), documents, merits, strict=False)

    def _block(self, judgements: Qrels, judged: list[dict[str, int]], part: slice) -> RunBlock:
        """Match some queries; the last of `judged` has no document."""
        queries, has_scores, absent = self.queries[part], self.has_scores, repeat(math.nan)
        number = judgements.find(queries)
        block: list[Any] = []
        found: list[Any] = []  # score or rank of each judged document
        for query, ranking, place in zip(
            queries, self.rankings[part], number.tolist(), strict=True
        ):
            documents = with_text_ids(ranking, query, self.name, _ALTERNATIVE)
            values = documents if has_scores else dict(zip(documents, count(1), strict=False))
            if len(values) < len(documents):
                if self.dedupe is None:
                    twice = first_duplicate(documents)
                    raise InputError(duplicate_message(query, twice), path=self.name)
                documents = list(dict.fromkeys(documents))
                values = dict(zip(documents, count(1), strict=False))
            found += map(values.get, judged[place], absent)
            block.append(documents)
        length = np.fromiter(map(len, block), np.int64, len(block))
        row, entry = judgements.entries(number)
        scores = self._scores(block) if has_scores else None  # they are checked before found
        value = np.array(found, dtype=np.float64)
        retrieved = ~np.isnan(value)
        row, entry, value = row[retrieved], entry[retrieved], value[retrieved]
        if scores is None:
            rank = value.astype(np.int64)
        else:
            order = descending(scores)
            order |= np.repeat(np.arange(len(block)) << ORDER_BITS, length)
            own = row << ORDER_BITS | descending(value)

            def texts(places: IntArray) -> Any:
                listed = list(chain.from_iterable(block))
                return as_text_array([listed[place] for place in places.tolist()])

            def document_ids(places: IntArray) -> Any:
                return judgements.documents.take(entry[places])

            rank = rank_scored(order, own, segment_offsets(length)[row], texts, document_ids)
        return matched_block(judgements, queries, number, length, row, entry, rank)

    def _scores(self, block: list[Mapping[str, Any]]) -> FloatArray:
        """All scores, finite."""
        try:
            scores = np.fromiter(
                chain.from_iterable(documents.values() for documents in block), np.float64
            )
        except (TypeError, ValueError, OverflowError):
            scores = np.array([np.nan])
        if np.isfinite(scores).all():
            return scores
        unreadable, by_query = "not a finite number", zip(self.queries, self.rankings, strict=True)

        def problem(score: Any) -> str | None:
            return None if np.isfinite(float(score)) else unreadable

        raise number_error("score", by_query, problem, unreadable, self.name)
