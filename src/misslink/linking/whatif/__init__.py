"""What-if: which change of the retriever would help, and what it would save."""

from __future__ import annotations

from misslink.linking.whatif.chunking import Chunking
from misslink.linking.whatif.kinds import check_names
from misslink.linking.whatif.reranking import Reranker, open_reranker
from misslink.linking.whatif.triplets import triplets, write_triplets
from misslink.linking.whatif.weighing import whatif

__all__ = [
    "Chunking",
    "Reranker",
    "check_names",
    "open_reranker",
    "triplets",
    "whatif",
    "write_triplets",
]
