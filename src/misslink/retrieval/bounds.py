"""Lowest and highest value of a metric if the unjudged passages were judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from misslink.retrieval.arrays import BoolArray, FloatArray, IntArray
from misslink.retrieval.hits import Hits
from misslink.retrieval.metrics import RankMetric, metric_errors


def metric_bounds(
    metric: RankMetric, hits: Hits, *, grade: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and highest value of each row over all judgments of unjudged passages.

    An unjudged passage has no label and is among the first ``k``, or anywhere in the ranking for a
    metric without a cutoff. Each one is either relevant, with the lowest relevant grade, or not.
    Passages further down and passages that were not retrieved count as not relevant, as in the
    metric itself.

    For a metric with ``rises=True`` the bounds are the values if none and if all of them are
    relevant. For the others (nDCG, MAP, R-precision, bpref), a relevant passage far down also raises
    the ideal. So for each possible number of relevant ones, the metric is computed with the topmost
    and with the lowest of them. No metric falls if a relevant passage moves up, so these are the
    extremes. bpref skips unjudged passages, so its own value counts too. For a metric with
    ``about_judgements``, both bounds are its value.

    Parameters
    ----------
    metric : RankMetric
    hits : Hits
        Without rows: two empty arrays.
    grade : int
        Grade of an unjudged passage that is assumed relevant, from 1; the relevance level.

    Returns
    -------
    lowest, highest : array of float, shape (rows,)
        For `Hits.per_case`; NaN where the row has no value. With alternatives the best counts in
        both, so the lowest bound of such a case may not be reachable.

    Raises
    ------
    InputError
        A metric of another package failed.

    Examples
    --------
    >>> from misslink.retrieval import collect_hits, parse_metric
    >>> from misslink.types import Case, Passage
    >>> case = Case(id="c1", question="Who?", relevant={"a": 1, "x": 0})
    >>> ranking = [Passage(id=name, rank=rank) for rank, name in enumerate("xua", start=1)]
    >>> hits = collect_hits([case], [ranking])
    >>> [bound.tolist() for bound in metric_bounds(parse_metric("mrr"), hits)]
    [[0.3333333333333333], [0.5]]
    """
    with metric_errors(metric):
        value = metric.of(hits)
        if metric.about_judgements:
            return value, value
        unjudged = _Unjudged(hits, metric.k, grade)
        most = int(unjudged.count.max(initial=0))
        lowest, highest = value.copy(), value.copy()
        for number in (0, most) if metric.rises else range(most + 1):
            topmost = unjudged.place < number
            bottom = unjudged.place >= unjudged.count[unjudged.row] - number
            for relevant in (topmost,) if metric.rises else (topmost, bottom):
                judged = metric.of(unjudged.judge(relevant))
                lowest, highest = np.fmin(lowest, judged), np.fmax(highest, judged)
    if not metric.without_relevant:
        lowest[hits.needs == 0] = highest[hits.needs == 0] = np.nan
    return lowest, highest


class _Unjudged:
    """The unjudged passages within the first `k`, by row and rank.

    ``count`` is their number in each row, ``place`` counts them within their row from 0. The orders
    place hits, ideal gains and judged passages together with the unjudged passages that join them.
    """

    def __init__(self, hits: Hits, k: int | None, grade: int) -> None:
        depth = hits.retrieved if k is None else np.minimum(hits.retrieved, k)
        start = np.cumsum(depth) - depth
        unjudged = np.ones(int(depth.sum()), dtype=bool)
        row, rank = hits.judged_positions
        within = rank <= depth[row]
        unjudged[start[row[within]] + rank[within] - 1] = False
        index = np.flatnonzero(unjudged)
        self.hits, self.grade = hits, grade
        self.row = np.repeat(np.arange(hits.rows), depth)[index]
        self.rank = index - start[self.row] + 1
        self.count = np.bincount(self.row, minlength=hits.rows)
        self.place = np.arange(len(index)) - (np.cumsum(self.count) - self.count)[self.row]
        gains = np.concatenate((hits.ideal_gain, np.full(len(index), grade)))
        self._hit_order = self._order(hits.row, np.concatenate((hits.rank, self.rank)))
        self._ideal_order = self._order(hits.ideal_row, -gains)
        self._judged_order = self._order(
            hits.judged_row, np.concatenate((hits.judged_rank, self.rank))
        )

    def _order(self, rows: IntArray, within: IntArray) -> IntArray:
        return np.lexsort((within, np.concatenate((rows, self.row))))

    def judge(self, relevant: BoolArray) -> Hits:
        """Return the hits with these passages relevant and the other unjudged ones not."""
        hits, ones = self.hits, np.ones(len(self.row), dtype=np.int64)

        def selected(order: IntArray, chosen: BoolArray) -> IntArray:
            judged = np.ones(len(order) - len(chosen), dtype=bool)
            index: IntArray = order[np.concatenate((judged, chosen))[order]]
            return index

        def merged(judged: IntArray, added: IntArray, order: IntArray) -> IntArray:
            joined: IntArray = np.concatenate((judged, added))[order]
            return joined

        hit = selected(self._hit_order, relevant)
        # All added gains of a row are equal, so it does not matter which passage has which.
        ideal = selected(self._ideal_order, relevant)
        judged = selected(self._judged_order, ~relevant)
        ideal_row = merged(hits.ideal_row, self.row, ideal)
        added = np.bincount(self.row[relevant], minlength=hits.rows)
        return replace(
            hits,
            row=merged(hits.row, self.row, hit),
            rank=merged(hits.rank, self.rank, hit),
            gain=merged(hits.gain, self.grade * ones, hit),
            satisfied=merged(hits.satisfied, ones, hit),
            needs=hits.needs + added,
            ideal_row=ideal_row,
            ideal_rank=np.arange(1, len(ideal_row) + 1) - np.searchsorted(ideal_row, ideal_row),
            ideal_gain=merged(hits.ideal_gain, self.grade * ones, ideal),
            judged_row=merged(hits.judged_row, self.row, judged),
            judged_rank=merged(hits.judged_rank, self.rank, judged),
            judged_against=np.concatenate((hits.judged_against, ones > 0))[judged],
            nonrelevant=hits.nonrelevant + self.count - added,
        )
