"""Level 1, what the retriever found."""

from __future__ import annotations

from misslink.retrieval.bounds import bounds
from misslink.retrieval.columns import hits_of
from misslink.retrieval.hits import Hits, collect
from misslink.retrieval.matching import (
    Find,
    Need,
    find,
    needs,
    relevant_ids,
    satisfies,
    split_over,
)
from misslink.retrieval.metrics import RankMetric, parse, spelled, values, without_relevant
from misslink.retrieval.opening import open_qrels, open_run
from misslink.retrieval.outcomes import Outcome, cutoff, outcome, why_unmeasured
from misslink.retrieval.qrels import Judgements
from misslink.retrieval.rank_scores import RankScores
from misslink.retrieval.ranking import rank
from misslink.retrieval.scoring import score
from misslink.retrieval.wanting import still_wanted

__all__ = [
    "Find",
    "Hits",
    "Judgements",
    "Need",
    "Outcome",
    "RankMetric",
    "RankScores",
    "bounds",
    "collect",
    "cutoff",
    "find",
    "hits_of",
    "needs",
    "open_qrels",
    "open_run",
    "outcome",
    "parse",
    "rank",
    "relevant_ids",
    "satisfies",
    "score",
    "spelled",
    "split_over",
    "still_wanted",
    "values",
    "why_unmeasured",
    "without_relevant",
]
