"""Level 1, what the retriever found."""

from __future__ import annotations

from misslink.retrieval.bounds import bounds
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
from misslink.retrieval.outcomes import Outcome, cutoff, outcome, why_unmeasured
from misslink.retrieval.scoring import score
from misslink.retrieval.wanting import still_wanted

__all__ = [
    "Find",
    "Hits",
    "Need",
    "Outcome",
    "RankMetric",
    "bounds",
    "collect",
    "cutoff",
    "find",
    "needs",
    "outcome",
    "parse",
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
