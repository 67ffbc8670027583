"""hit@k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits

__all__ = ["Hit"]


@rank_metrics.register("hit@{k}")
@dataclass(frozen=True)
class Hit:
    """Whether anything needed is among the first k: 1 or 0.

    Also called success@k, trec_eval's ``success``.
    """

    k: int

    def __str__(self) -> str:
        return f"hit@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        return np.minimum(hits.sums(hits.found, self.k), 1.0)
