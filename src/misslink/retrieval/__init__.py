"""Rank metrics, qrels, runs and retrieval outcomes."""

from __future__ import annotations

from misslink.retrieval.bounds import metric_bounds
from misslink.retrieval.evaluate import RankScores, evaluate_run, score_cases
from misslink.retrieval.hits import Hits, collect_hits
from misslink.retrieval.matching import (
    Need,
    NeedMatch,
    case_needs,
    find_split,
    match_needs,
    relevant_ids,
    satisfies,
)
from misslink.retrieval.metrics import (
    RankMetric,
    format_metric_name,
    metric_values,
    parse_metric,
    scores_empty_queries,
)
from misslink.retrieval.outcomes import (
    RetrievalOutcome,
    match_unmet_needs,
    retrieval_cutoff,
    retrieval_outcome,
    unmeasured_reason,
)
from misslink.retrieval.qrels import Qrels
from misslink.retrieval.readers import open_qrels, open_run
from misslink.retrieval.runs import collect_run_hits

__all__ = [
    "Hits",
    "Need",
    "NeedMatch",
    "Qrels",
    "RankMetric",
    "RankScores",
    "RetrievalOutcome",
    "case_needs",
    "collect_hits",
    "collect_run_hits",
    "evaluate_run",
    "find_split",
    "format_metric_name",
    "match_needs",
    "match_unmet_needs",
    "metric_bounds",
    "metric_values",
    "open_qrels",
    "open_run",
    "parse_metric",
    "relevant_ids",
    "retrieval_cutoff",
    "retrieval_outcome",
    "satisfies",
    "score_cases",
    "scores_empty_queries",
    "unmeasured_reason",
]
