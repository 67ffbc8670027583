"""The lowest and the highest value that judging the unjudged passages could give a metric."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from misslink.retrieval.extremes import extremes
from misslink.retrieval.hits import Bools, Floats, Hits, Ints
from misslink.retrieval.metrics import RankMetric, told_by_name, without_relevant

__all__ = ["bounds"]


def bounds(metric: RankMetric, hits: Hits, *, grade: int = 1) -> tuple[Floats, Floats]:
    """Lowest and highest value of each row under every way of judging what nobody judged.

    Open are the unjudged passages that the metric reads: those in the first ``k``, or in the whole
    ranking for a metric without one. What lies deeper or was never retrieved stays not relevant,
    as the metric itself has it. Each open passage may be relevant, with the lowest grade that is,
    or not.

    For a metric that says ``rises`` the ends are none and all of them relevant. For the others
    (nDCG, MAP, R-precision, bpref) one more relevant passage far down also raises what a perfect
    ranking would reach, so both ends are looked for: for each number of relevant ones, with the
    topmost of the open passages and with the lowest of them (one pass in
    `misslink.retrieval.extremes`, but for a metric of your own). Of that number no others
    give more or less, as a metric never falls when a relevant passage moves up. The value itself
    lies between the ends: bpref, which passes over the unjudged, has it as one more way. A metric
    ``about_judgements`` has nothing open.

    Parameters
    ----------
    metric : RankMetric
    hits : Hits
        Without rows: two empty arrays.
    grade : int
        Grade of an unjudged passage that is taken for relevant, from 1; the relevance level.

    Returns
    -------
    lowest, highest : array of float, shape (rows,)
        For `Hits.per_case`; NaN where the row has no value. Of alternatives the best counts in
        both, so that for a case with several the lowest is a bound that need not be reached.

    Raises
    ------
    InputError
        A metric of another package failed.

    Examples
    --------
    >>> from misslink.retrieval import collect, parse
    >>> from misslink.types import Case, Passage
    >>> case = Case(id="c1", question="Who?", relevant={"a": 1, "x": 0})
    >>> found = [Passage(id=name, rank=rank) for rank, name in enumerate("xua", start=1)]
    >>> hits = collect([case], [found])
    >>> [end.tolist() for end in bounds(parse("mrr"), hits)]
    [[0.3333333333333333], [0.5]]
    """
    with told_by_name(metric):
        value = metric.of(hits)
        if getattr(metric, "about_judgements", False):
            return value, value
        closed = extremes(metric, hits, grade)
        lowest, highest = _searched(metric, hits, value, grade) if closed is None else closed
    lowest, highest = np.fmin(lowest, value), np.fmax(highest, value)
    if not without_relevant(metric):
        lowest[hits.needs == 0] = highest[hits.needs == 0] = np.nan
    return lowest, highest


def _searched(metric: RankMetric, hits: Hits, value: Floats, grade: int) -> tuple[Floats, Floats]:
    """The ends by computing the metric for each number of relevant ones."""
    opened = _open(hits, getattr(metric, "k", None), grade)
    most = int(opened.count.max(initial=0))
    lowest, highest = value.copy(), value.copy()
    rises = getattr(metric, "rises", False)
    for number in (0, most) if rises else range(most + 1):
        top, low = opened.place < number, opened.place >= opened.left - number
        for chosen in (top,) if rises else (top, low):  # of none and of all there is one way
            judged = metric.of(opened.judged(hits, chosen))
            lowest, highest = np.fmin(lowest, judged), np.fmax(highest, judged)
    return lowest, highest


@dataclass(frozen=True)
class _Open:
    """The open passages, by row and rank, and where they would stand among the hits.

    ``place`` counts them within their row from 0, ``left`` is how many the row has, ``count`` the
    same by row. ``mixed`` are the places of hits and then open passages in one order by row and
    rank, and ``ideal`` those of the ideal gains and then of theirs by row and falling gain.
    """

    row: Ints
    rank: Ints
    place: Ints
    left: Ints
    count: Ints
    grade: int
    mixed: Ints
    ideal: Ints
    against: Ints

    def judged(self, hits: Hits, chosen: Bools) -> Hits:
        """The hits with the chosen ones relevant and the other open ones not."""

        def together(old: Ints, new: Ints, order: Ints) -> Ints:
            return np.concatenate((old, new))[order]

        ones = np.ones(len(self.row), dtype=np.int64)
        here = self.mixed[np.concatenate((np.ones(len(hits.row), bool), chosen))[self.mixed]]
        # Which open one a gain in the ideal ranking belongs to does not matter: all are equal.
        kept = np.concatenate((np.ones(len(hits.ideal_row), bool), chosen))
        ideal = self.ideal[kept[self.ideal]]
        ideal_row = together(hits.ideal_row, self.row, ideal)
        starts = np.searchsorted(ideal_row, ideal_row)
        rest = np.concatenate((np.ones(len(hits.judged_row), bool), ~chosen))
        known = self.against[rest[self.against]]
        more = np.bincount(self.row[chosen], minlength=hits.rows)
        return replace(
            hits,
            row=together(hits.row, self.row, here),
            rank=together(hits.rank, self.rank, here),
            gain=together(hits.gain, self.grade * ones, here),
            found=together(hits.found, ones, here),
            needs=hits.needs + more,
            ideal_row=ideal_row,
            ideal_rank=np.arange(1, len(ideal_row) + 1) - starts,
            ideal_gain=together(hits.ideal_gain, self.grade * ones, ideal),
            judged_row=together(hits.judged_row, self.row, known),
            judged_rank=together(hits.judged_rank, self.rank, known),
            judged_against=np.concatenate((hits.judged_against, ones > 0))[known],
            nonrelevant=hits.nonrelevant + self.count - more,
        )


def _open(hits: Hits, k: int | None, grade: int) -> _Open:
    """The unjudged passages within the first `k`."""
    depth = hits.retrieved if k is None else np.minimum(hits.retrieved, k)
    first = np.cumsum(depth) - depth
    unjudged = np.ones(int(depth.sum()), dtype=bool)
    row, rank = hits.known
    within = rank <= depth[row]
    unjudged[first[row[within]] + rank[within] - 1] = False
    at = np.flatnonzero(unjudged)
    row = np.repeat(np.arange(hits.rows), depth)[at]
    rank = at - first[row] + 1
    count = np.bincount(row, minlength=hits.rows)
    gains = np.concatenate((hits.ideal_gain, np.full(len(row), grade)))
    return _Open(
        row=row,
        rank=rank,
        place=np.arange(len(row)) - (np.cumsum(count) - count)[row],
        left=count[row],
        count=count,
        grade=grade,
        mixed=_order(hits.row, row, np.concatenate((hits.rank, rank))),
        ideal=_order(hits.ideal_row, row, -gains),
        against=_order(hits.judged_row, row, np.concatenate((hits.judged_rank, rank))),
    )


def _order(rows: Ints, more: Ints, within: Ints) -> Ints:
    """The order of both together, by row and then by `within`."""
    return np.lexsort((within, np.concatenate((rows, more))))
