"""Runs in blocks of queries, and runs from Python mappings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from misslink.errors import InputError
from misslink.retrieval import arrays
from misslink.retrieval.hits import Hits
from misslink.retrieval.qrels import Qrels, number_error, with_text_ids

Dedupe = Literal["first"] | None

_BLOCK_QUERIES = 4096
_NO_IDS = np.empty(0, dtype=np.uint64)


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
    strangers : array of unsigned int
        A hash of each query without judgments in this block.
    """

    query: arrays.IntArray
    retrieved: arrays.IntArray
    row: arrays.IntArray
    grade: arrays.IntArray
    rank: arrays.IntArray
    strangers: NDArray[np.uint64]


class UngroupedRunError(InputError):
    """A run that is read in batches has rows of a query in several places."""


class RankedRun(Protocol):
    """A run."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    @property
    def unmeasured(self) -> frozenset[str]:
        """Queries whose retrieval is unknown; they have no values."""
        ...

    def blocks(self, judgements: Qrels) -> Iterator[RunBlock]:
        """Yield the run from its start at each call, every query in one block.

        Raises
        ------
        UngroupedRunError
            The rows of a query are in several places: use `together`.
        """
        ...

    def together(self) -> RankedRun:
        """Return the run with the rows of each query together, all in memory."""
        ...


def empty_block(query: arrays.IntArray) -> RunBlock:
    """Return a block of queries with empty rankings."""
    none = np.empty(0, dtype=np.int64)
    return RunBlock(query, np.zeros(len(query), np.int64), none, none, none, _NO_IDS)


def join_blocks(judgements: Qrels, blocks: list[RunBlock], relevance_level: int) -> Hits:
    """Return the hits of several blocks together."""
    if relevance_level < 1:
        raise InputError(f"the relevance level is {relevance_level}; it counts from 1")
    blocks = blocks or [empty_block(np.empty(0, dtype=np.int64))]
    first = arrays.segment_offsets(np.array([len(block.query) for block in blocks], dtype=np.int64))
    query = np.concatenate([block.query for block in blocks])
    row = np.concatenate([block.row + offset for block, offset in zip(blocks, first, strict=False)])
    rank = np.concatenate([block.rank for block in blocks])
    order = arrays.order_by_row(row, rank)
    row, rank = row[order], rank[order]
    grade = np.concatenate([block.grade for block in blocks])[order]

    judged_count = np.diff(judgements.start)[query]
    judged_grade = judgements.grade[arrays.segment_indices(judgements.start[query], judged_count)]
    judged_row = np.repeat(np.arange(len(query)), judged_count)
    needs = np.bincount(judged_row[judged_grade >= relevance_level], minlength=len(query))
    low = (judged_grade >= 0) & (judged_grade < relevance_level)
    nonrelevant = np.bincount(judged_row[low], minlength=len(query))
    ideal_row = judged_row[judged_grade > 0]
    ideal_gain = judged_grade[judged_grade > 0]
    ideal_gain = ideal_gain[arrays.order_by_row(ideal_row, ideal_gain.max(initial=0) - ideal_gain)]
    ideal_start = arrays.segment_offsets(np.bincount(ideal_row, minlength=len(query)))
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
        retrieved=np.concatenate([block.retrieved for block in blocks])[has_row],
        case=np.flatnonzero(has_row),
        cases=len(query),
    )


@dataclass(frozen=True)
class MappingRun:
    """A run as ``{query: [document, ...]}``, best first, or ``{query: {document: score}}``.

    Ids are text or whole numbers.

    Parameters
    ----------
    rankings : mapping
    name : str
        Its name in messages.
    dedupe : {'first'} or None
        Whether a document that a list repeats counts where it is first, or is an error.
    unmeasured : frozenset of str
        Queries whose retrieval is unknown; they have no values.
    """

    rankings: Mapping[Any, Any]
    name: str = "the run"
    dedupe: Dedupe = None
    unmeasured: frozenset[str] = frozenset()

    def blocks(self, judgements: Qrels) -> Iterator[RunBlock]:
        """Yield some thousand queries at a time."""
        if not self.rankings:
            raise InputError("it has no queries", path=self.name)
        if len({str(query) for query in self.rankings}) < len(self.rankings):
            raise InputError("two of its queries have the same id", path=self.name)
        waiting: list[tuple[int, Any]] = []
        unjudged = 0
        has_scores = isinstance(next(iter(self.rankings.values())), Mapping)
        make_block = block_from_scores if has_scores else block_from_lists
        for query, raw in self.rankings.items():
            if (
                isinstance(raw, Mapping) is not has_scores
                or isinstance(raw, str | AbstractSet)
                or not hasattr(raw, "__len__")
            ):
                raise InputError(
                    f"query '{query}' has {type(raw).__name__}; give each query a list of "
                    "documents, best first, or each a dict of documents with scores",
                    path=self.name,
                )
            ranking = with_text_ids(raw, query, self.name, "a dict of documents with scores")
            number = judgements.place.get(query if type(query) is str else str(query))
            if number is None:
                self._check_unjudged(ranking, str(query))
                unjudged += 1
                continue
            waiting.append((number, ranking))
            if len(waiting) == _BLOCK_QUERIES:
                yield make_block(judgements, waiting, self)
                waiting = []
        strangers = np.arange(unjudged, dtype=np.uint64)
        yield make_block(judgements, waiting, self, strangers=strangers)

    def _check_unjudged(self, ranking: Any, query: str) -> None:
        """Reject errors in a ranking without judgments too: it may be the wrong file."""
        if not isinstance(ranking, Mapping):
            if self.dedupe is None and len(set(ranking)) < len(ranking):
                raise InputError(duplicate_message(ranking, query), path=self.name)
        elif not np.isfinite(_score_array(ranking.values(), len(ranking))).all():
            raise _score_error([(query, ranking)], self.name)

    def together(self) -> MappingRun:
        """Return itself: a query has one ranking."""
        return self


def block_from_lists(
    judgements: Qrels,
    rankings: Sequence[tuple[int, Sequence[str]]],
    run: Any,
    strangers: NDArray[np.uint64] = _NO_IDS,
) -> RunBlock:
    """Return a block of ranked lists.

    Parameters
    ----------
    judgements : Qrels
    rankings : sequence of pairs
        A query's number and its documents, best first.
    run : RankedRun
        Its ``name`` and ``dedupe`` are used.
    strangers : array of unsigned int
        See `RunBlock`.
    """
    queries, by_query = judgements.queries, judgements.by_query
    counts: list[int] = []
    grades: list[int] = []
    ranks: list[int] = []
    lengths: list[int] = []
    for number, ranking in rankings:
        place = dict(zip(ranking, range(1, len(ranking) + 1), strict=True))
        if len(place) < len(ranking):
            if run.dedupe is None:
                raise InputError(duplicate_message(ranking, queries[number]), path=run.name)
            place = {name: rank for rank, name in enumerate(dict.fromkeys(ranking), start=1)}
        judged = by_query[queries[number]]
        retrieved = judged.keys() & place.keys()
        counts.append(len(retrieved))
        grades += [judged[name] for name in retrieved]
        ranks += [place[name] for name in retrieved]
        lengths.append(len(place))
    return RunBlock(
        query=np.array([number for number, _ in rankings], dtype=np.int64),
        retrieved=np.array(lengths, dtype=np.int64),
        row=np.repeat(np.arange(len(counts)), counts),
        grade=np.array(grades, dtype=np.int64),
        rank=np.array(ranks, dtype=np.int64),
        strangers=strangers,
    )


def block_from_scores(
    judgements: Qrels,
    rankings: Sequence[tuple[int, Mapping[str, float]]],
    run: Any,
    strangers: NDArray[np.uint64] = _NO_IDS,
) -> RunBlock:
    """Return a block of documents with scores, as `block_from_lists`."""
    queries, by_query = judgements.queries, judgements.by_query
    counts: list[int] = []
    grades: list[int] = []
    judged_scores: list[float] = []
    names: list[str] = []
    for number, scores in rankings:
        judged = by_query[queries[number]]
        retrieved = judged.keys() & scores.keys()
        counts.append(len(retrieved))
        grades += [judged[name] for name in retrieved]
        judged_scores += [scores[name] for name in retrieved]
        names += retrieved
    lengths = np.array([len(scores) for _, scores in rankings], dtype=np.int64)
    start = arrays.segment_offsets(lengths)
    values = _score_array(
        chain.from_iterable(scores.values() for _, scores in rankings), int(start[-1])
    )
    if not np.isfinite(values).all():
        raise _score_error([(queries[number], scores) for number, scores in rankings], run.name)
    row = np.repeat(np.arange(len(counts)), counts)
    single = arrays.as_single_precision(values)

    def row_items(index: int) -> Iterable[tuple[str, float]]:
        return zip(
            rankings[index][1], single[start[index] : start[index + 1]].tolist(), strict=True
        )

    rank = arrays.rank_documents(
        single,
        start,
        row,
        arrays.as_single_precision(np.array(judged_scores, float)),
        names.__getitem__,
        row_items,
    )
    query = np.array([number for number, _ in rankings], dtype=np.int64)
    return RunBlock(query, lengths, row, np.array(grades, dtype=np.int64), rank, strangers)


def first_duplicate(ids: Iterable[str]) -> tuple[int, str]:
    """Return the index and the id of the first repetition."""
    seen: set[str] = set()
    for index, name in enumerate(ids):
        if name in seen:
            return index, name
        seen.add(name)
    raise ValueError("no id is repeated")


def duplicate_message(ranking: Iterable[str], query: str) -> str:
    """Return what is wrong with a ranking that repeats a document."""
    return (
        f"query '{query}' has the document '{first_duplicate(ranking)[1]}' twice; a ranking names "
        "a document once (dedupe 'first' keeps the first)"
    )


def _score_array(scores: Iterable[Any], count: int) -> NDArray[np.float64]:
    """Scores as an array; a single NaN if one is no number."""
    try:
        return np.fromiter(scores, np.float64, count)
    except (TypeError, ValueError, OverflowError):
        return np.full(1, np.nan)


def _score_error(rankings: Iterable[tuple[str, Mapping[str, Any]]], name: str) -> InputError:
    unreadable = "not a finite number"

    def problem(score: Any) -> str | None:
        return None if np.isfinite(float(score)) else unreadable

    return number_error("score", rankings, problem, unreadable, name)
