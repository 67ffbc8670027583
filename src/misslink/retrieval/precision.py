"""precision@k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits

__all__ = ["Precision"]


@rank_metrics.register("precision@{k}")
@dataclass(frozen=True)
class Precision:
    """Share of the first k places that hold something needed and not seen further up.

    Divided by k however few were retrieved, as trec_eval's ``P``. A passage that repeats evidence
    already found fills a place and counts as nothing.
    """

    k: int

    def __str__(self) -> str:
        return f"precision@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        return hits.sums(np.ones(len(hits.row)), self.k) / self.k
