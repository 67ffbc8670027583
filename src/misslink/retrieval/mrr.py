"""mrr and mrr@k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits

__all__ = ["ReciprocalRank"]


@rank_metrics.register("mrr")
@rank_metrics.register("mrr@{k}")
@dataclass(frozen=True)
class ReciprocalRank:
    """1 / rank of the first passage that satisfies anything, 0 where none does.

    Its mean over the cases is the mean reciprocal rank. ``mrr`` reads the whole ranking, as
    trec_eval's ``recip_rank``; ``mrr@k`` the first k.

    References
    ----------
    Voorhees (1999), The TREC-8 question answering track report.
    """

    k: int | None = None

    def __str__(self) -> str:
        return "mrr" if self.k is None else f"mrr@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        first = np.full(hits.rows, np.inf)
        np.minimum.at(first, hits.row, hits.rank)
        if self.k is not None:
            first[first > self.k] = np.inf
        return 1 / first
