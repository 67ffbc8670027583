"""Level 1, what the retriever found."""

from __future__ import annotations

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
from misslink.retrieval.metrics import RankMetric, parse
from misslink.retrieval.outcomes import Outcome, cutoff, outcome, why_unmeasured
from misslink.retrieval.scoring import score
from misslink.retrieval.wanting import still_wanted

__all__ = [
    "Find",
    "Hits",
    "Need",
    "Outcome",
    "RankMetric",
    "collect",
    "cutoff",
    "find",
    "needs",
    "outcome",
    "parse",
    "relevant_ids",
    "satisfies",
    "score",
    "split_over",
    "still_wanted",
    "why_unmeasured",
]
