"""Bounds of nDCG, MAP and R-precision for every number of relevant ones at once.

The general search of `misslink.retrieval.bounds` computes a metric anew for each number; on deep
rankings these sums along the ranks do it in one pass. Both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from misslink.retrieval.average_precision import AveragePrecision
from misslink.retrieval.hits import Bools, Floats, Hits, Ints
from misslink.retrieval.ndcg import NDCG, ExponentialNDCG
from misslink.retrieval.r_precision import RPrecision

__all__ = ["extremes"]

_AT_ONCE = 1 << 19  # ranks of all rows that are in memory together


@dataclass(frozen=True)
class _Ranks:
    """Some rows with a column for each rank that the metric reads.

    Parameters
    ----------
    found, gain : array of int, shape (rows, depth)
        Needs that are first satisfied there, and the grade; 0 at most ranks.
    opened : array of bool, shape (rows, depth)
        Whether nobody judged the passage there.
    needs : array of int, shape (rows, 1)
    ideal_row, ideal_rank, ideal_gain : array of int
        As those of `Hits`, rows from 0.
    """

    found: Ints
    gain: Ints
    opened: Bools
    needs: Ints
    ideal_row: Ints
    ideal_rank: Ints
    ideal_gain: Ints

    @property
    def rank(self) -> Ints:
        """Rank of each column."""
        return np.arange(1, self.found.shape[1] + 1)


def extremes(metric: Any, hits: Hits, grade: int) -> tuple[Floats, Floats] | None:
    """Lowest and highest value of each row over every number of relevant ones among the open.

    Parameters
    ----------
    metric : RankMetric
    hits : Hits
    grade : int
        Grade of an unjudged passage that is taken for relevant.

    Returns
    -------
    lowest, highest : array of float, shape (rows,)
        None for a metric of which no closed form is known.
    """
    form = _FORMS.get(type(metric))
    if form is None:
        return None
    lowest, highest = np.empty(hits.rows), np.empty(hits.rows)
    for first, last, ranks in _pieces(hits, getattr(metric, "k", None)):
        values = form(metric, ranks, grade)
        lowest[first:last], highest[first:last] = values.min(axis=1), values.max(axis=1)
    return lowest, highest


def _pieces(hits: Hits, k: int | None) -> Iterator[tuple[int, int, _Ranks]]:
    """First row, the one after the last, and the ranks between, some rows at a time."""
    depth = hits.retrieved if k is None else np.minimum(hits.retrieved, k)
    known_row, known_rank = hits.known
    by_row = np.argsort(known_row, kind="stable")
    known_row, known_rank = known_row[by_row], known_rank[by_row]
    width = max(int(depth.max(initial=0)), 1)
    step = max(_AT_ONCE // width, 1)
    for first in range(0, hits.rows, step):
        last = min(first + step, hits.rows)

        def of(rows: Ints, first: int = first, last: int = last) -> slice:
            low, high = np.searchsorted(rows, (first, last))
            return slice(int(low), int(high))

        opened = np.arange(1, width + 1) <= depth[first:last, None]
        read = opened.copy()
        own = of(known_row)
        _enter(opened, known_row[own] - first, known_rank[own], np.zeros(1, dtype=np.bool_))
        found, gain = np.zeros(opened.shape, np.int64), np.zeros(opened.shape, np.int64)
        own, ideal = of(hits.row), of(hits.ideal_row)
        _enter(found, hits.row[own] - first, hits.rank[own], hits.found[own])
        _enter(gain, hits.row[own] - first, hits.rank[own], hits.gain[own])
        yield (
            first,
            last,
            _Ranks(
                found * read,
                gain * read,
                opened,
                hits.needs[first:last, None],
                hits.ideal_row[ideal] - first,
                hits.ideal_rank[ideal],
                hits.ideal_gain[ideal],
            ),
        )


def _enter(table: Any, row: Ints, rank: Ints, value: Any) -> None:
    within = rank <= table.shape[1]
    value = np.broadcast_to(value, row.shape)
    table[row[within], rank[within] - 1] = value[within]


def _before(amount: Any) -> Any:
    """Sum down to the rank before each, and of all at the end: one column more."""
    sums = np.zeros((amount.shape[0], amount.shape[1] + 1), dtype=amount.dtype)
    np.cumsum(amount, axis=1, out=sums[:, 1:])
    return sums


def _map(_: AveragePrecision, ranks: _Ranks, __: int) -> Floats:
    """Each cut of the ranking: the open ones above it are relevant, or those below it."""
    opened = ranks.opened.astype(np.int64)
    hits = _before((ranks.found > 0).astype(np.int64))  # relevant, of what was judged
    others = _before(opened)
    own = ranks.found / ranks.rank
    every = (ranks.found + opened) / ranks.rank
    judged_only, with_open = _before(own * hits[:, 1:]), _before(every * (hits + others)[:, 1:])
    own, every = _before(own), _before(every)

    def below(sums: Floats) -> Floats:
        return sums[:, -1:] - sums

    number = others
    top = with_open + below(judged_only) + number * below(own)
    low = judged_only + below(with_open) - number * below(every)
    rest = others[:, -1:] - others
    return np.hstack(
        (top / np.maximum(ranks.needs + number, 1), low / np.maximum(ranks.needs + rest, 1))
    )


def _r_precision(_: RPrecision, ranks: _Ranks, __: int) -> Floats:
    """Each number of relevant open ones, the topmost or the lowest."""
    found, others = _before(ranks.found), _before(ranks.opened.astype(np.int64))
    total = others[:, -1:]
    number = np.minimum(np.arange(int(total.max(initial=0)) + 1), total)
    needs = ranks.needs + number
    upto = np.minimum(needs, found.shape[1] - 1)
    satisfied = np.take_along_axis(found, upto, axis=1)
    seen = np.take_along_axis(others, upto, axis=1)
    top = satisfied + np.minimum(seen, number)
    low = satisfied + np.maximum(seen - (total - number), 0)
    values: Floats = np.hstack((top, low)) / np.maximum(np.hstack((needs, needs)), 1)
    return values


def _ndcg(metric: NDCG | ExponentialNDCG, ranks: _Ranks, grade: int) -> Floats:
    """Each cut of the ranking, as for MAP; the ideal ranking by the number of relevant ones."""
    rows, k = len(ranks.found), metric.k
    discount = 1 / np.log2(ranks.rank + 1)
    worth = _worth(metric, ranks, grade)
    every = np.arange(rows)
    own = worth(every[:, None], ranks.gain) * discount
    added = worth(every, np.full(rows, grade))[:, None]
    sums = _before(ranks.opened * discount)
    others = _before(ranks.opened.astype(np.int64))
    gained = own.sum(axis=1, keepdims=True)
    ideal = _ideals(ranks, worth, grade, k, added, int(others[:, -1].max(initial=0)))

    def share(reached: Floats, number: Ints) -> Floats:
        best = np.take_along_axis(ideal, number, axis=1)
        return np.divide(reached, best, out=np.zeros(best.shape), where=best > 0)

    top = share(gained + added * sums, others)
    low = share(gained + added * (sums[:, -1:] - sums), others[:, -1:] - others)
    return np.minimum(np.hstack((top, low)), 1.0)


def _worth(
    metric: NDCG | ExponentialNDCG, ranks: _Ranks, grade: int
) -> Callable[[Ints, Ints], Floats]:
    """What a grade gains, by row."""
    if isinstance(metric, NDCG):
        return lambda _, own: own.astype(np.float64)
    top = np.full(len(ranks.found), float(grade))
    np.maximum.at(top, ranks.ideal_row, ranks.ideal_gain)
    # Over a power of two of the row, which cancels: a large grade does not overflow.
    return lambda row, own: np.exp2(own - top[row]) - np.exp2(-top[row])


def _ideals(
    ranks: _Ranks,
    worth: Callable[[Ints, Ints], Floats],
    grade: int,
    k: int,
    added: Floats,
    most: int,
) -> Floats:
    """Discounted gain of the best ranking with 0, 1, ... more relevant ones, by row."""
    rows, more = len(ranks.found), np.arange(most + 1)
    values = worth(ranks.ideal_row, ranks.ideal_gain)
    higher = ranks.ideal_gain >= grade
    row, rank = ranks.ideal_row[higher], ranks.ideal_rank[higher]
    above = np.bincount(row, minlength=rows)[:, None]
    weights = np.where(rank <= k, values[higher] / np.log2(rank + 1), 0)
    upper = np.bincount(row, weights=weights, minlength=rows)[:, None]
    deepest = min(k, int(above.max(initial=0)) + most)
    ladder = np.concatenate(([0.0], np.cumsum(1 / np.log2(np.arange(1, deepest + 1) + 1))))
    between = ladder[np.minimum(above + more, deepest)] - ladder[np.minimum(above, deepest)]
    ideal: Floats = upper + added * between
    # Lower grades, where relevance begins above 1, move down by as many.
    for each, value, place in zip(
        ranks.ideal_row[~higher], values[~higher], ranks.ideal_rank[~higher], strict=True
    ):
        moved = place + more
        ideal[each] += np.where(moved <= k, value / np.log2(moved + 1), 0)
    return ideal


_FORMS: dict[type, Callable[[Any, _Ranks, int], Floats]] = {
    AveragePrecision: _map,
    NDCG: _ndcg,
    ExponentialNDCG: _ndcg,
    RPrecision: _r_precision,
}
