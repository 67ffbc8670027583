"""complete@k: a rank metric of one's own, as docs/metrics.md tells it."""

from dataclasses import dataclass

import numpy as np

from misslink.registry import rank_metrics
from misslink.retrieval import Hits


@rank_metrics.register("complete@{k}")
@dataclass(frozen=True)
class Complete:
    """Whether everything that the query needs is among the first k: 1 or 0."""

    k: int

    def __str__(self) -> str:
        return f"complete@{self.k}"

    def of(self, hits: Hits) -> np.ndarray:
        """Value of each row."""
        return (hits.sums(hits.satisfied, self.k) == hits.needs).astype(float)
