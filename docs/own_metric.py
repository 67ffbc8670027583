"""complete@k: an example of a rank metric; docs/metrics.md shows this file."""

import numpy as np

from misslink.retrieval import Hits, register_metric


@register_metric("complete@{k}")
def complete(hits: Hits, k: int | np.ndarray) -> np.ndarray:
    """Whether all relevant passages are among the first k: 1 or 0."""
    return (hits.sums(hits.satisfied, k) == hits.needs).astype(float)
