"""ndcg@k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits

__all__ = ["NDCG"]


@rank_metrics.register("ndcg@{k}")
@dataclass(frozen=True)
class NDCG:
    """Gain of the first k, discounted by rank, over that of the best ranking there could be.

    The sum of grade / log2(rank + 1), with the grades as they are (linear gain), divided by the
    same sum over the ideal ranking: trec_eval's ``ndcg_cut``.

    References
    ----------
    Järvelin and Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques.
    """

    k: int

    def __str__(self) -> str:
        return f"ndcg@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        gained = hits.sums(hits.gain / np.log2(hits.rank + 1), self.k)
        within = hits.ideal_rank <= self.k
        discounted = hits.ideal_gain[within] / np.log2(hits.ideal_rank[within] + 1)
        ideal = np.bincount(hits.ideal_row[within], weights=discounted, minlength=hits.rows)
        # The same gains in another order of addition may differ in the last digit.
        return np.minimum(gained / ideal, 1.0)
