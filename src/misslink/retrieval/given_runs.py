"""Runs given in Python: ranked lists, or documents with scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from misslink.errors import InputError
from misslink.files.numbers import shortened
from misslink.retrieval.columns import Block
from misslink.retrieval.qrels import Judgements, refuse_other_ids
from misslink.retrieval.segments import offsets, ranks, single

__all__ = ["Dedupe", "GivenRankings", "listed", "scored"]

Dedupe = Literal["first"] | None
Ints = NDArray[np.int64]

_AT_ONCE = 4096  # queries of a block


@dataclass(frozen=True)
class GivenRankings:
    """A run as ``{query: [document, ...]}``, best first, or ``{query: {document: score}}``.

    Ids are text or whole numbers.

    Parameters
    ----------
    given : mapping
    name : str
        What it is called in messages.
    dedupe : {'first'} or None
        Whether a document that a list names twice counts where it stands first, or is an error.
    unmeasured : frozenset of str
        Queries of which it is not known what was retrieved: they have no values.
    """

    given: Mapping[Any, Any]
    name: str = "the run"
    dedupe: Dedupe = None
    unmeasured: frozenset[str] = frozenset()

    def blocks(self, judgements: Judgements) -> Iterator[Block]:
        """Yield some thousand queries at a time."""
        if not self.given:
            raise InputError("there is no query in it", path=self.name)
        if len({str(query) for query in self.given}) < len(self.given):
            raise InputError("two of its queries have the same id", path=self.name)
        known = judgements.place
        waiting: list[tuple[int, Any]] = []
        strange: list[int] = []
        kind = isinstance(next(iter(self.given.values())), Mapping)
        form = scored if kind else listed
        for query, ranking in self.given.items():
            if isinstance(ranking, Mapping) is not kind or isinstance(ranking, str | AbstractSet):
                raise _mixed(ranking, query, self.name)
            at = known.get(query if type(query) is str else str(query))
            if not hasattr(ranking, "__len__"):
                raise _mixed(ranking, query, self.name)
            if at is None:
                self._check(_with_text(ranking, query, self.name), str(query))
                strange.append(len(strange))
                continue
            waiting.append((at, _with_text(ranking, query, self.name)))
            if len(waiting) == _AT_ONCE:
                yield form(judgements, waiting, self)
                waiting = []
        query = np.array([at for at, _ in waiting], dtype=np.int64)
        last = form(judgements, waiting, self)
        strangers = np.array(strange, dtype=np.uint64)
        yield Block(query, last.retrieved, last.row, last.grade, last.rank, strangers)

    def _check(self, ranking: Any, query: str) -> None:
        """Refuse what is wrong with a ranking that nobody judged: it may be the wrong file."""
        if not isinstance(ranking, Mapping):
            if self.dedupe is None and len(set(ranking)) < len(ranking):
                raise _twice(ranking, query, self.name)
        elif not np.isfinite(_numbers(ranking.values(), len(ranking))).all():
            raise _no_score([(0, ranking)], [query], self.name)

    def together(self) -> GivenRankings:
        """Itself: a query has one ranking."""
        return self


def listed(
    judgements: Judgements, rankings: Sequence[tuple[int, Sequence[str]]], run: Any
) -> Block:
    """A block of ranked lists.

    Parameters
    ----------
    judgements : Judgements
    rankings : sequence of pairs
        A query's number and its documents, best first.
    run : object
        Its ``name`` and ``dedupe`` are looked at.
    """
    queries, by_query = judgements.queries, judgements.by_query
    counts: list[int] = []
    grades: list[int] = []
    found: list[int] = []
    lengths: list[int] = []
    for at, ranking in rankings:
        place = dict(zip(ranking, range(1, len(ranking) + 1), strict=True))
        if len(place) < len(ranking):
            if run.dedupe is None:
                raise _twice(ranking, queries[at], run.name)
            place = {name: rank for rank, name in enumerate(dict.fromkeys(ranking), start=1)}
        judged = by_query[queries[at]]
        hits = judged.keys() & place.keys()
        counts.append(len(hits))
        grades += [judged[name] for name in hits]
        found += [place[name] for name in hits]
        lengths.append(len(place))
    return Block(
        query=np.array([at for at, _ in rankings], dtype=np.int64),
        retrieved=np.array(lengths, dtype=np.int64),
        row=np.repeat(np.arange(len(counts)), counts),
        grade=np.array(grades, dtype=np.int64),
        rank=np.array(found, dtype=np.int64),
        strangers=np.empty(0, dtype=np.uint64),
    )


def scored(
    judgements: Judgements, rankings: Sequence[tuple[int, Mapping[str, float]]], run: Any
) -> Block:
    """A block of documents with scores, as `listed`."""
    queries, by_query = judgements.queries, judgements.by_query
    counts: list[int] = []
    grades: list[int] = []
    own: list[float] = []
    names: list[str] = []
    for at, scores in rankings:
        judged = by_query[queries[at]]
        hits = judged.keys() & scores.keys()
        counts.append(len(hits))
        grades += [judged[name] for name in hits]
        own += [scores[name] for name in hits]
        names += hits
    lengths = np.array([len(scores) for _, scores in rankings], dtype=np.int64)
    start = offsets(lengths)
    flat = chain.from_iterable(scores.values() for _, scores in rankings)
    values = _numbers(flat, int(start[-1]))
    if not np.isfinite(values).all():
        raise _no_score(rankings, queries, run.name)
    row = np.repeat(np.arange(len(counts)), counts)
    held_scores = single(values)

    def items(each: int) -> Iterable[tuple[str, float]]:
        held = held_scores[start[each] : start[each + 1]].tolist()
        return zip(rankings[each][1], held, strict=True)

    return Block(
        query=np.array([at for at, _ in rankings], dtype=np.int64),
        retrieved=lengths,
        row=row,
        grade=np.array(grades, dtype=np.int64),
        rank=ranks(held_scores, start, row, single(np.array(own, np.float64)), names, items),
        strangers=np.empty(0, dtype=np.uint64),
    )


def _numbers(scores: Iterable[Any], count: int) -> NDArray[np.float64]:
    """Scores as an array; a NaN alone where one is no number."""
    try:
        return np.fromiter(scores, np.float64, count)
    except (TypeError, ValueError, OverflowError):
        return np.full(1, np.nan)


def _with_text(ranking: Any, query: object, name: str) -> Any:
    """The ranking with ids of text."""
    if set(map(type, ranking)) <= {str}:
        return ranking
    refuse_other_ids(ranking, query, name, "a dict of documents with scores")
    if isinstance(ranking, Mapping):
        by_text = {str(own): score for own, score in ranking.items()}
        if len(by_text) < len(ranking):
            raise InputError(f"query '{query}' has two documents of the same id", path=name)
        return by_text
    return [str(own) for own in ranking]


def _mixed(ranking: object, query: object, name: str) -> InputError:
    return InputError(
        f"query '{query}' has {type(ranking).__name__}; give each query a list of documents, best "
        "first, or each a dict of documents with scores",
        path=name,
    )


def _twice(ranking: Sequence[str], query: str, name: str) -> InputError:
    seen: set[str] = set()
    for document in islice(ranking, len(ranking)):
        if document in seen:
            break
        seen.add(document)
    return InputError(
        f"query '{query}' has the document '{document}' twice; a ranking names a document once "
        "(dedupe 'first' keeps the first)",
        path=name,
    )


def _no_score(
    rankings: Sequence[tuple[int, Mapping[str, Any]]], queries: Sequence[str], name: str
) -> InputError:
    for at, scores in rankings:
        for document, score in scores.items():
            try:
                good = not isinstance(score, str) and np.isfinite(float(score))
            except (TypeError, ValueError, OverflowError):
                good = False
            if not good:
                return InputError(
                    f"the score {shortened(score)} of query '{queries[at]}', "
                    f"document '{document}' is no "
                    "finite number",
                    path=name,
                )
    return InputError("a score is no finite number", path=name)
