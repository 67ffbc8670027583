"""Level 1 by itself: a run held against qrels."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misslink.errors import InputError
from misslink.files.goldset import GoldSet
from misslink.retrieval.bounds import bounds as bounds_of
from misslink.retrieval.columns import Block, Rankings, ScatteredError, joined, nothing_retrieved
from misslink.retrieval.families import per_case
from misslink.retrieval.given_runs import Dedupe
from misslink.retrieval.hits import Hits, collect
from misslink.retrieval.metrics import RankMetric, parse, without_relevant
from misslink.retrieval.opening import as_traces, open_qrels, open_run
from misslink.retrieval.outcomes import why_unmeasured
from misslink.retrieval.qrels import Judgements
from misslink.retrieval.rank_scores import RankScores, plain_mean
from misslink.types import Trace

__all__ = ["rank"]

_log = logging.getLogger(__name__)

Ints = NDArray[np.int64]

_JUDGED = "judged@10"
_AT_ONCE = 1 << 12  # queries whose values are computed together


def rank(
    qrels: Any,
    run: Any,
    metrics: Sequence[str] | str,
    *,
    relevance_level: int = 1,
    dedupe: Dedupe = None,
    bounds: bool = False,
    seed: int = 0,
) -> RankScores:
    """Score a run.

    Parameters
    ----------
    qrels : path, pandas frame or arrow table, mapping, GoldSet or Judgements
        See `misslink.retrieval.open_qrels`.
    run : path, pandas frame or arrow table, mapping, traces or Rankings
        See `misslink.retrieval.open_run`. Ranked lists keep their order; scored documents are
        ordered by score descending, then by id descending, as trec_eval does, which holds scores
        in single precision: two that differ after the seventh digit are tied, whole numbers above
        16,777,216 among them. Where such an order must hold, give lists or ranks.
    metrics : sequence of str, or str
        Names such as ``ndcg@10``; one that is named twice counts once. In one text they stand
        between commas.
    relevance_level : int
        Grade from which a document is relevant, from 1.
    dedupe : {'first'} or None
        Whether a document that stands twice in a ranking counts where it is ranked first, or is
        an error.
    bounds : bool
        Whether the lowest and highest values under incomplete judgements are computed too.
    seed : int
        Of the intervals.

    Returns
    -------
    RankScores
        A query without relevant documents has no value (but of judged@k), nor has one whose trace
        failed before anything was retrieved (``failed`` of the counts); one that is missing from
        the run has 0, as one with an empty ranking.

    Raises
    ------
    InputError
        The qrels or the run cannot be read, hold a document twice, a score or grade that is no
        number, or have no query in common; a metric is unknown or gives something else than numbers
        from 0 to 1, or the relevance level is no whole number from 1.

    Examples
    --------
    >>> scores = rank({"q1": {"a": 1, "b": 0}, "q2": {"c": 2}}, {"q1": ["b", "a"]}, ["mrr"])
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
    parsed = {str(metric): metric for metric in map(parse, metrics)}
    if not parsed:
        raise InputError("no metric is named; name some, such as ndcg@10")
    judged = open_qrels(qrels)
    if isinstance(judged, GoldSet):
        traces = as_traces(run, dedupe=dedupe)
        return _by_texts(judged, traces, parsed, relevance_level, bounds=bounds, seed=seed)
    rankings = open_run(run, dedupe=dedupe)
    try:
        return _by_ids(judged, rankings, parsed, relevance_level, bounds=bounds, seed=seed)
    except ScatteredError:
        whole = rankings.together()
        return _by_ids(judged, whole, parsed, relevance_level, bounds=bounds, seed=seed)


class _Sheet:
    """Values as they come in, block by block."""

    def __init__(
        self, metrics: dict[str, RankMetric], queries: Sequence[str], *, bounds: bool
    ) -> None:
        shape = (len(metrics), len(queries))
        self.metrics, self.queries = metrics, queries
        self.values, self.known = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        self.ends = (np.zeros(shape), np.zeros(shape)) if bounds else None
        self.relevant = np.zeros(len(queries), dtype=np.bool_)
        self.judged = np.zeros(len(queries)), np.zeros(len(queries), dtype=np.bool_)

    def enter(self, hits: Hits, query: Ints, level: int) -> None:
        """Enter the values of some queries."""
        self.relevant[query[hits.case[hits.needs > 0]]] = True
        every = list(self.metrics.values())
        if _JUDGED not in self.metrics:
            every.append(parse(_JUDGED))
        values, known = per_case(every, hits, lambda case: self.queries[query[case]])
        own = np.ix_(np.arange(len(self.metrics)), query)
        self.values[own], self.known[own] = values[: len(own[0])], known[: len(own[0])]
        if self.ends is not None:
            for at, metric in enumerate(self.metrics.values()):
                also = without_relevant(metric)
                for end, found in zip(self.ends, bounds_of(metric, hits, grade=level), strict=True):
                    end[at, query] = hits.per_case(found, without_relevant=also)[0]
        at = next(at for at, metric in enumerate(every) if str(metric) == _JUDGED)
        self.judged[0][query], self.judged[1][query] = values[at], known[at]

    def scores(self, counts: dict[str, int | float | None], seed: int) -> RankScores:
        """All of them."""
        shares, known = self.judged
        counts["judged_at_10"] = plain_mean(shares[known])
        low, high = self.ends or (None, None)
        return RankScores(
            tuple(self.metrics), self.queries, self.values, self.known, counts, low, high, seed
        )


def _by_ids(
    judged: Judgements,
    rankings: Rankings,
    metrics: dict[str, RankMetric],
    level: int,
    *,
    bounds: bool,
    seed: int,
) -> RankScores:
    sheet = _Sheet(metrics, judged.queries, bounds=bounds)
    missing = np.ones(len(judged), dtype=np.bool_)
    strangers, met = [np.empty(0, np.uint64)], 0
    for blocks in _gathered(rankings.blocks(judged)):
        query = np.concatenate([block.query for block in blocks])
        sheet.enter(joined(judged, blocks, level), query, level)
        missing[query] = False
        strangers += [block.strangers for block in blocks]
        met += sum(len(block.row) for block in blocks)
    if missing.all() and not rankings.unmeasured:
        raise InputError(
            f"no query of it has judgements in {judged.name} (whose first is "
            f"'{judged.queries[0]}'); the query ids of both must agree",
            path=rankings.name,
        )
    if not met:
        _log.warning("no retrieved document was ever judged: do the ids of both agree?")
    unseen = np.array(
        [judged.place.get(query, -1) for query in rankings.unmeasured], dtype=np.int64
    )
    missing[unseen[unseen >= 0]] = False
    for part in _parts(np.flatnonzero(missing)):
        sheet.enter(joined(judged, [nothing_retrieved(part)], level), part, level)
    evaluated = int(sheet.relevant.sum())
    unmeasured = sum(1 for at in unseen.tolist() if at >= 0)
    counts: dict[str, int | float | None] = {
        "queries": len(judged),
        "evaluated": evaluated,
        "without_relevant": len(judged) - evaluated - unmeasured,
        "failed": unmeasured,
        "missing_from_run": int((missing & sheet.relevant).sum()),
        "not_in_qrels": len(np.unique(np.concatenate(strangers))),
    }
    return sheet.scores(counts, seed)


def _gathered(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    """As many blocks as make some thousand queries, so that a metric is seldom called."""
    waiting: list[Block] = []
    for block in blocks:
        waiting.append(block)
        if sum(len(each.query) for each in waiting) >= _AT_ONCE:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _parts(query: Ints) -> Iterator[Ints]:
    for at in range(0, len(query), _AT_ONCE):
        yield query[at : at + _AT_ONCE]


def _by_texts(
    gold: GoldSet,
    traces: Mapping[str, Trace],
    metrics: dict[str, RankMetric],
    level: int,
    *,
    bounds: bool,
    seed: int,
) -> RankScores:
    """By evidence texts and alternatives, which take the passages themselves."""
    if level != 1:
        raise InputError(
            "a relevance level above 1 takes relevance by id; this gold set has evidence texts or "
            "alternatives",
            path=gold.name,
        )
    cases = gold.cases
    if not any(case.id in traces for case in cases):
        raise InputError(f"no trace belongs to a case of {gold.name}; the ids of both must agree")
    seen = [case.id not in traces or why_unmeasured(traces[case.id]) is None for case in cases]
    asked = np.flatnonzero(seen)
    lists = [
        traces[case.id].retrieved if case.id in traces else ()
        for case, ok in zip(cases, seen, strict=True)
        if ok
    ]
    sheet = _Sheet(metrics, [case.id for case in cases], bounds=bounds)
    sheet.enter(collect([cases[at] for at in asked.tolist()], lists), asked, level)
    absent = np.array([case.id not in traces for case in cases])
    evaluated = int(sheet.relevant.sum())
    counts: dict[str, int | float | None] = {
        "queries": len(cases),
        "evaluated": evaluated,
        "without_relevant": len(asked) - evaluated,
        "failed": len(cases) - len(asked),
        "missing_from_run": int((absent & sheet.relevant).sum()),
        "not_in_qrels": len(traces.keys() - {case.id for case in cases}),
    }
    return sheet.scores(counts, seed)
