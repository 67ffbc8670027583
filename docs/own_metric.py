"""complete@k: a rank metric of one's own, as docs/metrics.md tells it."""

import numpy as np

from misslink.retrieval import Hits, register_metric


@register_metric("complete@{k}")
def complete(hits: Hits, k: int | np.ndarray) -> np.ndarray:
    """Whether everything that the query needs is among the first k: 1 or 0."""
    return (hits.sums(hits.satisfied, k) == hits.needs).astype(float)
