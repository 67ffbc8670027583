"""Bounds of nDCG, MAP, R-precision and bpref for every number of relevant ones at once.

The general search of `misslink.retrieval.bounds` computes a metric anew for each number; on deep
rankings these sums along the ranks do it in one pass. Both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from misslink.retrieval.average_precision import AveragePrecision
from misslink.retrieval.bpref import BinaryPreference
from misslink.retrieval.depths import Ranks, before, pieces
from misslink.retrieval.hits import Bools, Floats, Hits, Ints
from misslink.retrieval.ndcg import NDCG, ExponentialNDCG
from misslink.retrieval.r_precision import RPrecision

__all__ = ["extremes"]


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
    for first, last, ranks in pieces(hits, getattr(metric, "k", None)):
        values = form(metric, ranks, grade)
        lowest[first:last], highest[first:last] = values.min(axis=1), values.max(axis=1)
    return lowest, highest


def _map(_: AveragePrecision, ranks: Ranks, __: int) -> Floats:
    """Each cut of the ranking: the open ones above it are relevant, or those below it."""
    opened = ranks.opened.astype(np.int64)
    hits = before((ranks.found > 0).astype(np.int64))  # relevant, of what was judged
    others = before(opened)
    own = ranks.found / ranks.rank
    every = (ranks.found + opened) / ranks.rank
    judged_only, with_open = before(own * hits[:, 1:]), before(every * (hits + others)[:, 1:])
    own, every = before(own), before(every)

    def below(sums: Floats) -> Floats:
        return sums[:, -1:] - sums

    number = others
    top = with_open + below(judged_only) + number * below(own)
    low = judged_only + below(with_open) - number * below(every)
    rest = others[:, -1:] - others
    return np.hstack(
        (top / np.maximum(ranks.needs + number, 1), low / np.maximum(ranks.needs + rest, 1))
    )


def _r_precision(_: RPrecision, ranks: Ranks, __: int) -> Floats:
    """Each number of relevant open ones, the topmost or the lowest."""
    found, others = before(ranks.found), before(ranks.opened.astype(np.int64))
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


def _bpref(_: BinaryPreference, ranks: Ranks, __: int) -> Floats:
    """Each number of relevant open ones, the topmost or the lowest; whole numbers to the end.

    Every relevant passage loses as many as are judged not relevant above it, but no more than
    there are relevant ones. For those that were judged these are counted one after the other, of
    which a row has few; for the open ones by sums along the ranks, as the count only rises.
    """
    opened = before(ranks.opened.astype(np.int64))
    total = opened[:, -1:]
    number = np.minimum(np.arange(int(total.max(initial=0)) + 1), total)
    needs, nonrelevant = ranks.needs + number, ranks.nonrelevant + total - number
    above = before(ranks.against.astype(np.int64))[:, :-1]
    lost_top, lost_low = np.zeros_like(number), np.zeros_like(number)
    for row, column in _one_of_each(ranks.found > 0):
        over, own = opened[row, column][:, None], above[row, column][:, None]
        worth, most = ranks.found[row, column][:, None], needs[row]
        further = np.maximum(over - number[row], 0)
        lost_top[row] += worth * np.minimum(own + further, most)
        further = np.minimum(over, total[row] - number[row])
        lost_low[row] += worth * np.minimum(own + further, most)
    steps = _Steps.of(ranks.opened, above, opened)
    lost_top += steps.capped(needs, number)
    # All open ones that are not relevant stand above those that are.
    rest = total - number
    below = steps.capped(needs - rest, total) - steps.capped(needs - rest, rest)
    lost_low += below + rest * number
    reached = ranks.found.sum(axis=1, keepdims=True) + number
    most = np.maximum(np.minimum(nonrelevant, needs), 1)
    values: Floats = np.hstack((reached - lost_top / most, reached - lost_low / most))
    values /= np.maximum(np.hstack((needs, needs)), 1)
    return values


def _one_of_each(marked: Bools) -> Iterator[tuple[Ints, Ints]]:
    """Rows and columns of the first marks of all rows, of the second ones, and so on."""
    row, column = np.nonzero(marked)
    place = np.arange(len(row)) - np.searchsorted(row, row)
    for number in range(int(place.max(initial=-1)) + 1):
        yield row[place == number], column[place == number]


@dataclass(frozen=True)
class _Steps:
    """How many are judged not relevant above each open passage of a row: numbers that only rise.

    Parameters
    ----------
    upto : array of int, shape (rows, most of these numbers + 1)
        How many open ones have this number above them or fewer.
    sums : array of int, shape (rows, open ones + 1)
        Sum of the numbers of the first, the first two, ... open ones.
    """

    upto: Ints
    sums: Ints

    @classmethod
    def of(cls, marks: Bools, above: Ints, place: Ints) -> _Steps:
        """From the open ranks, the numbers at all ranks, and the open ones before each."""
        row, column = np.nonzero(marks)
        numbers, rows = above[row, column], len(marks)
        width = int(numbers.max(initial=0)) + 1
        counted = np.bincount(row * width + numbers, minlength=rows * width).reshape(rows, width)
        sums = np.zeros((rows, int(place[:, -1].max(initial=0)) + 1), dtype=np.int64)
        sums[row, place[row, column] + 1] = numbers
        return cls(np.cumsum(counted, axis=1), np.cumsum(sums, axis=1))

    def capped(self, most: Ints, first: Ints) -> Ints:
        """Sum of the numbers of the `first` open ones, none counted higher than `most`."""
        reach = np.clip(most, 0, self.upto.shape[1] - 1)
        as_they_are = np.where(most < 0, 0, np.take_along_axis(self.upto, reach, axis=1))
        whole = np.minimum(as_they_are, first)
        return np.take_along_axis(self.sums, whole, axis=1) + most * (first - whole)


def _ndcg(metric: NDCG | ExponentialNDCG, ranks: Ranks, grade: int) -> Floats:
    """Each cut of the ranking, as for MAP; the ideal ranking by the number of relevant ones."""
    rows, k = len(ranks.found), metric.k
    discount = 1 / np.log2(ranks.rank + 1)
    worth = _worth(metric, ranks, grade)
    every = np.arange(rows)
    own = worth(every[:, None], ranks.gain) * discount
    added = worth(every, np.full(rows, grade))[:, None]
    sums = before(ranks.opened * discount)
    others = before(ranks.opened.astype(np.int64))
    gained = own.sum(axis=1, keepdims=True)
    ideal = _ideals(ranks, worth, grade, k, added, int(others[:, -1].max(initial=0)))

    def share(reached: Floats, number: Ints) -> Floats:
        best = np.take_along_axis(ideal, number, axis=1)
        return np.divide(reached, best, out=np.zeros(best.shape), where=best > 0)

    top = share(gained + added * sums, others)
    low = share(gained + added * (sums[:, -1:] - sums), others[:, -1:] - others)
    return np.minimum(np.hstack((top, low)), 1.0)


def _worth(
    metric: NDCG | ExponentialNDCG, ranks: Ranks, grade: int
) -> Callable[[Ints, Ints], Floats]:
    """What a grade gains, by row."""
    if isinstance(metric, NDCG):
        return lambda _, own: own.astype(np.float64)
    top = np.full(len(ranks.found), float(grade))
    np.maximum.at(top, ranks.ideal_row, ranks.ideal_gain)
    # Over a power of two of the row, which cancels: a large grade does not overflow.
    return lambda row, own: np.exp2(own - top[row]) - np.exp2(-top[row])


def _ideals(
    ranks: Ranks,
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


_FORMS: dict[type, Callable[[Any, Ranks, int], Floats]] = {
    AveragePrecision: _map,
    BinaryPreference: _bpref,
    NDCG: _ndcg,
    ExponentialNDCG: _ndcg,
    RPrecision: _r_precision,
}
