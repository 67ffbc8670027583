"""r-precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits

__all__ = ["RPrecision"]


@rank_metrics.register("r-precision")
@dataclass(frozen=True)
class RPrecision:
    """Share of what the case needs that the first R passages satisfy, R being the number of needs.

    At that cut-off precision and recall are the same number, where relevance is given by id.

    Formula: number of needs that the first R passages satisfy, divided by R.

    Range: 0 to 1; 1 where all relevant passages stand before all others.

    trec_eval: ``Rprec``.

    Use it: where queries need very different numbers of passages, so that no single k is fair to
    all of them.

    References
    ----------
    Buckley and Voorhees (2005), Retrieval system evaluation, in TREC: Experiment and evaluation in
    information retrieval.
    """

    def __str__(self) -> str:
        return "r-precision"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        found = np.where(hits.rank <= hits.needs[hits.row], hits.found, 0)
        return hits.per_need(hits.sums(found, None))
