"""recall@k."""

from __future__ import annotations

from dataclasses import dataclass

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits

__all__ = ["Recall"]


@rank_metrics.register("recall@{k}")
@dataclass(frozen=True)
class Recall:
    """Share of what the case needs that the first k passages satisfy.

    trec_eval's ``recall``, where relevance is given by id.
    """

    k: int

    def __str__(self) -> str:
        return f"recall@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        return hits.sums(hits.found, self.k) / hits.needs
