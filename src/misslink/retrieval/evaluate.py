"""Evaluate rank metrics of cases and of runs, and their bounds under incomplete judgments."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np

from misslink.errors import InputError
from misslink.io.goldset import GoldSet
from misslink.parts import CaseValues, case_ids, light_items, places_of, select_items
from misslink.retrieval import runs
from misslink.retrieval.arrays import BoolArray, FloatArray, IntArray
from misslink.retrieval.hits import Hits, collect_hits
from misslink.retrieval.metrics import RankMetric, metric_errors, parse_metric
from misslink.retrieval.outcomes import compared_trace, unmeasured_reason
from misslink.retrieval.qrels import Qrels
from misslink.retrieval.readers import as_traces, open_qrels, open_run
from misslink.stats import mean
from misslink.types import Case, Estimate, Passage, Reason, Trace

_log = logging.getLogger(__name__)
_ROUNDING = 1e-9  # by which a sum of floats may leave [0, 1]
_JUDGED_METRIC = "judged@10"
_BLOCK_QUERIES = 1 << 12  # queries whose values are computed together


def evaluate_metrics(
    metrics: Sequence[RankMetric], hits: Hits, case_name: Callable[[int], str] = str
) -> tuple[FloatArray, BoolArray]:
    """Return the values of each case, and whether it has one; with alternatives the best counts.

    Parameters
    ----------
    metrics : sequence of RankMetric
        All cutoffs of one metric are computed in one pass.
    hits : Hits
    case_name : callable
        Name of a case in messages, by its number.

    Returns
    -------
    values : array of float, shape (metrics, cases)
        0 where there is no value.
    measured : array of bool, shape (metrics, cases)

    Raises
    ------
    InputError
        A metric of another package failed, or returned something else than a number from 0 to 1
        (or NaN) per row.

    Examples
    --------
    >>> from misslink.retrieval import collect_hits, parse_metric
    >>> from misslink.types import Case, Passage
    >>> case = Case(id="c1", question="Who?", relevant=["a", "b"])
    >>> hits = collect_hits([case], [[Passage(id="a", rank=1)]])
    >>> metrics = [parse_metric(name) for name in ("recall@1", "precision@2", "recall@5")]
    >>> evaluate_metrics(metrics, hits)[0].tolist()
    [[0.5], [0.5], [0.5]]
    """
    values = np.zeros((len(metrics), hits.cases))
    measured = np.zeros((len(metrics), hits.cases), dtype=bool)
    families: dict[object, list[int]] = {}  # metrics that differ in their cutoff alone
    for index, metric in enumerate(metrics):
        families.setdefault(metric.function if metric.k else index, []).append(index)
    for indices in families.values():
        family = [metrics[index] for index in indices]
        empty = family[0].without_relevant
        rows = _row_values(family, hits)
        counted = hits.needs >= (0 if empty else 1)
        outside = np.argwhere(counted & ((rows < -_ROUNDING) | (rows > 1 + _ROUNDING)))
        if len(outside):
            place, row = outside[0].tolist()
            raise InputError(
                f"the metric '{family[place]}' gave {rows[place, row]:g} for "
                f"'{case_name(int(hits.case[row]))}'; values of a rank metric lie between 0 and 1 "
                "(NaN where there is none)"
            )
        values[indices], measured[indices] = hits.per_case(
            np.clip(rows, 0.0, 1.0), without_relevant=empty
        )
    return values, measured


def _row_values(family: Sequence[RankMetric], hits: Hits) -> FloatArray:
    """Values of shape (cutoffs, rows)."""
    metric = family[0]
    shape = (hits.rows,) if len(family) == 1 else (len(family), hits.rows)
    with metric_errors(metric):
        if len(family) == 1:
            result: Any = metric.score(hits)
        else:
            result = metric.function(hits, np.array([member.k for member in family]))
    try:
        values = np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the metric '{metric}' gave no array of numbers, one a row") from None
    if values.shape != shape:
        raise InputError(
            f"the metric '{metric}' gave an array of shape {values.shape}, not {shape}: a value "
            "for each row of the hits"
        )
    return values.reshape(len(family), hits.rows)


@dataclass(frozen=True, eq=False)
class RankScores:
    """Every metric of every query of a run.

    Parameters
    ----------
    names : sequence of str
        Of the metrics.
    queries : sequence of str
        All with judgments, in the order of the qrels.
    values : array of float, shape (metrics, queries)
        0 where there is no value.
    known : array of bool, shape (metrics, queries)
        Where there is one.
    counts : mapping
        ``queries`` of the qrels; ``evaluated``: measured, with a relevant document;
        ``without_relevant``; ``missing_from_run``: with a relevant document but not in the run,
        counted 0; ``not_in_qrels``: queries of the run without judgments; ``failed``: the trace
        has no retrieval; ``judged_at_10``: mean share of judged documents among the first 10,
        None if nothing was retrieved.
    lowest, highest : array of float, shape (metrics, queries), or None
        Bounds of each value if the unjudged documents were judged.
    seed : int
        Of the intervals.
    """

    names: tuple[str, ...]
    queries: Sequence[str]
    values: FloatArray
    known: BoolArray
    counts: dict[str, int | float | None]
    lowest: FloatArray | None = None
    highest: FloatArray | None = None
    seed: int = 0
    _means: dict[str, Estimate] = field(default_factory=dict, repr=False)

    def query_values(self, name: str) -> tuple[FloatArray, BoolArray]:
        """Return the values of a metric by query, and where it has one."""
        index = self._index(name)
        return self.values[index], self.known[index]

    def mean(self, name: str) -> Estimate:
        """Return the mean over the queries with a value, with its interval."""
        if name not in self._means:
            self._means[name] = self._estimate(*self.query_values(name))
        return self._means[name]

    def means(self) -> dict[str, float | None]:
        """Return the mean of each metric, without intervals; None if no query has a value."""
        return {
            name: _exact_mean(values[measured])
            for name, values, measured in zip(self.names, self.values, self.known, strict=True)
        }

    def bounds(self, name: str) -> tuple[Estimate, Estimate]:
        """Return the means of the lowest and of the highest values.

        Raises
        ------
        ValueError
            `evaluate_run` was called without ``bounds=True``.
        """
        if self.lowest is None or self.highest is None:
            raise ValueError("evaluate_run(..., bounds=True) computes bounds")
        index = self._index(name)
        measured = self.known[index]
        return self._estimate(self.lowest[index], measured), self._estimate(
            self.highest[index], measured
        )

    def per_query(self) -> dict[str, dict[str, float | None]]:
        """Return the values by query and metric; None where there is none."""
        columns = zip(*_value_lists(self.values, self.known), strict=True)
        return {
            query: dict(zip(self.names, column, strict=True))
            for query, column in zip(self.queries, columns, strict=True)
        }

    def _estimate(self, values: FloatArray, measured: BoolArray) -> Estimate:
        if not measured.any():
            return Estimate.missing(Reason(code="no_query_value"))
        return mean(values[measured].tolist(), seed=self.seed)

    def _index(self, name: str) -> int:
        return self.names.index(str(parse_metric(name)))


def score_cases(
    cases: Sequence[Case],
    traces: Sequence[Trace],
    metrics: Sequence[str],
    *,
    absent: float | None = None,
) -> dict[str, Mapping[str, float | None]]:
    """Compute rank metrics case by case; the rank of a passage is its position in the trace.

    Parameters
    ----------
    cases : sequence of Case
    traces : sequence of Trace
        In any order, matched by ``case_id``; others are ignored.
    metrics : sequence of str
        Names such as ``recall@5``.
    absent : float or None
        Value of a case without a trace. None: not measured. In a ranking of a search engine a
        missing query found nothing: give 0 there, like trec_eval -c. A metric about the judgments
        then has its value for an empty ranking.

    Returns
    -------
    dict of str to mapping of str to float or None
        Metric name to case id to a value in [0, 1], in the order of the cases. With alternatives
        the best counts, for each metric by itself. None if the case needs nothing (but a metric of
        labels, such as ``judged@k``, has a value where a passage was judged not relevant), if the app failed before
        it retrieved anything, and (see `absent`) if there is no trace. An app that finished and
        retrieved nothing has 0.

    Raises
    ------
    InputError
        A metric is unknown, or two cases or two traces have the same id.

    Examples
    --------
    >>> from misslink.types import Passage
    >>> case = Case(id="c1", question="Who?", relevant=["b", "d"])
    >>> ranking = [Passage(id=name, rank=rank) for rank, name in enumerate("abc", start=1)]
    >>> score_cases([case], [Trace(case_id="c1", retrieved=ranking)], ["recall@3", "mrr"])
    {'recall@3': {'c1': 0.5}, 'mrr': {'c1': 0.5}}
    """
    parsed = {str(metric): metric for metric in map(parse_metric, metrics)}
    ids_by_kind = {"case": case_ids(cases), "trace": case_ids(traces)}
    for kind, ids in ids_by_kind.items():
        if len(set(ids)) < len(ids):
            name = runs.first_duplicate(ids)
            raise InputError(f"two {kind}s have the id '{name}'; remove one or rename it")
    trace_of = compared_trace(traces)
    rows = light_items(traces)
    seen = {trace.case_id for trace in rows if unmeasured_reason(trace) is None}
    without_trace = set(ids_by_kind["case"]) - set(ids_by_kind["trace"])
    measured = select_items(cases, seen)
    missing = select_items(cases, without_trace if absent is not None else ())
    scores: dict[str, dict[str, float | None]] = {
        name: dict.fromkeys(ids_by_kind["case"]) for name in parsed
    }
    rankings: Iterable[Sequence[Passage]]
    for group, rankings in (
        (missing, (() for _ in missing)),
        (measured, (trace_of(case).retrieved for case in measured)),
    ):
        ids = case_ids(group)
        values = evaluate_metrics(
            list(parsed.values()), collect_hits(group, rankings), ids.__getitem__
        )
        for (name, metric), row in zip(parsed.items(), _value_lists(*values), strict=True):
            if group is missing and not metric.about_judgements:
                row = [None if value is None else absent for value in row]  # noqa: PLW2901
            scores[name] |= dict(zip(ids, row, strict=True))
    places = places_of(cases)
    return {name: CaseValues(of_case, places) for name, of_case in scores.items()}


def evaluate_run(
    qrels: Any,
    run: Any,
    metrics: Sequence[str] | str,
    *,
    relevance_level: int = 1,
    dedupe: runs.Dedupe = None,
    bounds: bool = False,
    seed: int = 0,
) -> RankScores:
    """Compute rank metrics of a run.

    Parameters
    ----------
    qrels : path, pandas frame or arrow table, mapping, GoldSet or Qrels
        See `misslink.retrieval.open_qrels`.
    run : path, pandas frame or arrow table, mapping, traces or RankedRun
        See `misslink.retrieval.open_run`. Ranked lists keep their order. Scored documents are
        ordered by score descending, then by id descending, like trec_eval, which holds scores in
        single precision: scores that differ after the seventh digit are tied, and so are whole
        numbers above 16,777,216. If such an order matters, give lists or ranks.
    metrics : sequence of str, or str
        Names such as ``ndcg@10``; in one text separated by commas. Repeated names count once.
    relevance_level : int
        Grade from which a document is relevant, from 1.
    dedupe : {'first'} or None
        Whether a document that a ranking repeats counts where it is ranked first, or is an error.
    bounds : bool
        Also compute the lowest and highest values under incomplete judgments.
    seed : int
        Of the intervals.

    Returns
    -------
    RankScores
        A query without relevant documents has no value (but for metrics of labels, such as judged@k), nor has one whose
        trace failed before anything was retrieved (``failed`` in the counts). A query that is
        missing from the run has 0, like one with an empty ranking.

    Raises
    ------
    InputError
        The qrels or the run cannot be read, hold a document twice, a score or grade that is no
        number, or share no query; a metric is unknown or returns something else than numbers from
        0 to 1, or the relevance level is not a whole number from 1.

    Examples
    --------
    >>> scores = evaluate_run({"q1": {"a": 1, "b": 0}, "q2": {"c": 2}}, {"q1": ["b", "a"]}, "mrr")
    >>> scores.per_query(), scores.counts["missing_from_run"]
    ({'q1': {'mrr': 0.5}, 'q2': {'mrr': 0.0}}, 1)
    """
    if (
        isinstance(relevance_level, bool)
        or not isinstance(relevance_level, Integral)
        or relevance_level < 1
    ):
        raise InputError(
            f"the relevance level is {relevance_level!r}; it counts from 1, in whole numbers"
        )
    if isinstance(metrics, str):
        metrics = [name for name in metrics.split(",") if name.strip()]
    if not isinstance(metrics, Iterable):
        raise InputError(f"the metrics are {metrics!r}; give a list of names such as ndcg@10")
    parsed = {str(metric): metric for metric in map(parse_metric, metrics)}
    if not parsed:
        raise InputError("no metric is named; name some, such as ndcg@10")
    judged = open_qrels(qrels)
    if isinstance(judged, GoldSet):
        table = _ScoreTable(
            parsed, [case.id for case in judged.cases], relevance_level, bounds=bounds
        )
        return table.scores(_enter_texts(table, judged, as_traces(run, dedupe=dedupe)), seed)
    ranked = open_run(run, dedupe=dedupe)
    table = _ScoreTable(parsed, judged.queries, relevance_level, bounds=bounds)
    try:
        counts = _enter_ids(table, judged, ranked)
    except runs.UngroupedRunError:
        table = _ScoreTable(parsed, judged.queries, relevance_level, bounds=bounds)
        counts = _enter_ids(table, judged, ranked.together())
    return table.scores(counts, seed)


class _ScoreTable:
    """Values, entered block by block."""

    def __init__(
        self, metrics: dict[str, RankMetric], queries: Sequence[str], level: int, *, bounds: bool
    ) -> None:
        shape = (len(metrics), len(queries))
        self.metrics, self.queries, self.level = metrics, queries, level
        self.values, self.known = np.zeros(shape), np.zeros(shape, dtype=bool)
        self.bounds = (np.zeros(shape), np.zeros(shape)) if bounds else None
        self.relevant = np.zeros(len(queries), dtype=bool)
        self.judged_shares: list[float] = []

    def enter(self, hits: Hits, query: IntArray) -> None:
        """Enter the values of some queries."""
        self.relevant[query[hits.case[hits.needs > 0]]] = True
        metrics = [*self.metrics.values(), parse_metric(_JUDGED_METRIC)]
        values, measured = evaluate_metrics(metrics, hits, lambda case: self.queries[query[case]])
        self.values[:, query], self.known[:, query] = values[:-1], measured[:-1]
        self.judged_shares += values[-1][measured[-1]].tolist()
        if self.bounds is not None:
            for index, metric in enumerate(metrics[:-1]):
                ends = metric_bounds(metric, hits, grade=self.level)
                for bound, end in zip(self.bounds, ends, strict=True):
                    bound[index, query] = hits.per_case(
                        end, without_relevant=metric.without_relevant
                    )[0]

    def scores(self, counts: dict[str, int | float | None], seed: int) -> RankScores:
        """Return all of them."""
        counts["judged_at_10"] = _exact_mean(np.array(self.judged_shares))
        low, high = self.bounds or (None, None)
        return RankScores(
            tuple(self.metrics), self.queries, self.values, self.known, counts, low, high, seed
        )


def _enter_ids(
    table: _ScoreTable, judged: Qrels, ranked: runs.RankedRun
) -> dict[str, int | float | None]:
    """Enter a run whose relevance is given by id; return the counts."""
    missing = np.ones(len(judged), dtype=bool)
    unjudged_queries: set[str] = set()
    judged_documents = 0
    for block in ranked.blocks(judged):
        table.enter(runs.block_hits(judged, block, table.level), block.query)
        missing[block.query] = False
        unjudged_queries.update(block.unjudged)
        judged_documents += len(block.row)
    if missing.all() and not ranked.unmeasured:
        raise InputError(
            f"no query of it has judgments in {judged.name} (whose first is "
            f"'{judged.queries[0]}'); the query ids of both must agree",
            path=ranked.name,
        )
    if not judged_documents:
        _log.warning("no retrieved document was ever judged: do the ids of both agree?")
    failed = [judged.place[query] for query in ranked.unmeasured if query in judged.place]
    missing[failed] = False
    absent = np.flatnonzero(missing)
    for start in range(0, len(absent), _BLOCK_QUERIES):
        query = absent[start : start + _BLOCK_QUERIES]
        table.enter(runs.block_hits(judged, runs.empty_block(query), table.level), query)
    evaluated = int(table.relevant.sum())
    return {
        "queries": len(judged),
        "evaluated": evaluated,
        "without_relevant": len(judged) - evaluated - len(failed),
        "failed": len(failed),
        "missing_from_run": int((missing & table.relevant).sum()),
        "not_in_qrels": len(unjudged_queries),
    }


def _enter_texts(
    table: _ScoreTable, gold: GoldSet, traces: Mapping[str, Trace]
) -> dict[str, int | float | None]:
    """Enter traces of a gold set with evidence texts or alternatives; return the counts."""
    if table.level != 1:
        raise InputError(
            "a relevance level above 1 takes relevance by id; this gold set has evidence texts or "
            "alternatives",
            path=gold.name,
        )
    cases = gold.cases
    absent = np.array([case.id not in traces for case in cases])
    if absent.all():
        raise InputError(f"no trace belongs to a case of {gold.name}; the ids of both must agree")
    empty = Trace(case_id="")
    measured = [
        index
        for index, case in enumerate(cases)
        if unmeasured_reason(traces.get(case.id, empty)) is None
    ]
    rankings = [traces.get(cases[index].id, empty).retrieved for index in measured]
    hits = collect_hits([cases[index] for index in measured], rankings)
    table.enter(hits, np.array(measured, dtype=np.int64))
    evaluated = int(table.relevant.sum())
    return {
        "queries": len(cases),
        "evaluated": evaluated,
        "without_relevant": len(measured) - evaluated,
        "failed": len(cases) - len(measured),
        "missing_from_run": int((absent & table.relevant).sum()),
        "not_in_qrels": len(traces.keys() - {case.id for case in cases}),
    }


def _exact_mean(values: FloatArray) -> float | None:
    """Return the mean, independent of the order of the values; None for no values."""
    return math.fsum(values.tolist()) / len(values) if len(values) else None


def _value_lists(values: FloatArray, measured: BoolArray) -> list[list[float | None]]:
    return [
        [value if has else None for value, has in zip(*row, strict=True)]
        for row in zip(values.tolist(), measured.tolist(), strict=True)
    ]


def mean_scores(
    values: Iterable[float | None], unmatched: Reason | None = None, *, seed: int
) -> Estimate:
    """Mean of a rank metric over the cases that have a value; missing where none has."""
    scores = [value for value in values if value is not None]
    if not scores:
        return Estimate.missing(unmatched or Reason(code="no_relevant_ranking"))
    return mean(scores, seed=seed)


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
        value = metric.score(hits)
        if metric.about_judgements:
            return value, value
        unjudged = _Unjudged(hits, metric.k, grade)
        most = int(unjudged.count.max(initial=0))
        lowest, highest = value.copy(), value.copy()
        for number in (0, most) if metric.rises else range(most + 1):
            topmost = unjudged.place < number
            bottom = unjudged.place >= unjudged.count[unjudged.row] - number
            for relevant in (topmost,) if metric.rises else (topmost, bottom):
                judged = metric.score(unjudged.judge(relevant))
                lowest, highest = np.fmin(lowest, judged), np.fmax(highest, judged)
    unknown = np.isnan(value) if metric.without_relevant else hits.needs == 0
    lowest[unknown] = highest[unknown] = np.nan
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
