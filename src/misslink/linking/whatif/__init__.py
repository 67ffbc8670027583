"""What-if: forecast how other retriever settings would change a run."""

from __future__ import annotations

from misslink.linking.whatif.forecast import ForecastCheck
from misslink.linking.whatif.option_evaluation import evaluate_options
from misslink.linking.whatif.options import SearchTools, check_option_names
from misslink.linking.whatif.search import Chunking, Reranker, open_reranker
from misslink.linking.whatif.triplets import make_triplets, write_triplets

__all__ = [
    "Chunking",
    "ForecastCheck",
    "Reranker",
    "SearchTools",
    "check_option_names",
    "evaluate_options",
    "make_triplets",
    "open_reranker",
    "write_triplets",
]
