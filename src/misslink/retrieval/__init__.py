"""Rank metrics, qrels, runs and retrieval outcomes."""

from __future__ import annotations

from misslink.retrieval.evaluate import (
    RankScores,
    evaluate_run,
    mean_scores,
    metric_bounds,
    score_cases,
)
from misslink.retrieval.hits import Hits, collect_hits
from misslink.retrieval.matching import (
    LabelledNeed,
    NeedMatch,
    case_needs,
    find_split,
    match_needs,
    relevant_ids,
    satisfies,
)
from misslink.retrieval.metrics import RankMetric, format_metric_name, parse_metric, register_metric
from misslink.retrieval.outcomes import (
    RetrievalOutcome,
    case_exposures,
    cluster_cases,
    compared_trace,
    match_unmet_needs,
    retrieval_cutoff,
    retrieval_outcome,
    shown_shares,
    unmatched_reason,
    unmeasured_reason,
)
from misslink.retrieval.qrels import Qrels
from misslink.retrieval.readers import open_qrels, open_run

__all__ = [
    "Hits",
    "LabelledNeed",
    "NeedMatch",
    "Qrels",
    "RankMetric",
    "RankScores",
    "RetrievalOutcome",
    "case_exposures",
    "case_needs",
    "cluster_cases",
    "collect_hits",
    "compared_trace",
    "evaluate_run",
    "find_split",
    "format_metric_name",
    "match_needs",
    "match_unmet_needs",
    "mean_scores",
    "metric_bounds",
    "open_qrels",
    "open_run",
    "parse_metric",
    "register_metric",
    "relevant_ids",
    "retrieval_cutoff",
    "retrieval_outcome",
    "satisfies",
    "score_cases",
    "shown_shares",
    "unmatched_reason",
    "unmeasured_reason",
]
