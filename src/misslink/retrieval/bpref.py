"""bpref."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits
from misslink.retrieval.segments import offsets

__all__ = ["BinaryPreference"]


@rank_metrics.register("bpref")
@dataclass(frozen=True)
class BinaryPreference:
    """How seldom a passage judged not relevant stands before a relevant one.

    Unjudged passages are passed over, as if they had not been retrieved.

    Formula: the sum, over the relevant passages retrieved, of 1 - min(n, R) / min(N, R), divided
    by R; n is the number of passages judged not relevant above it, N that of all judged not
    relevant, retrieved or not, and R that of the needs. With n = 0 the summand is 1.

    Range: 0 to 1; 1 where everything needed was retrieved and nothing judged not relevant stands
    before any of it.

    trec_eval: ``bpref``.

    Use it: where much of what is retrieved was never judged, with judged@k beside it. It needs
    passages that were judged not relevant: a gold set that lists only relevant ones makes it the
    recall of the whole ranking.

    References
    ----------
    Buckley and Voorhees (2004), Retrieval evaluation with incomplete information.
    """

    def __str__(self) -> str:
        return "bpref"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        against = np.flatnonzero(hits.judged_against)
        rows = hits.judged_row[against]
        # Rows and ranks as one ascending number, so that one search counts for all rows at once.
        width = int(max(hits.rank.max(initial=0), hits.judged_rank.max(initial=0))) + 1
        ladder = rows * width + hits.judged_rank[against]
        above = np.searchsorted(ladder, hits.row * width + hits.rank)
        above -= offsets(np.bincount(rows, minlength=hits.rows))[hits.row]
        needs = hits.needs[hits.row]
        most = np.minimum(hits.nonrelevant[hits.row], needs)
        worse = np.minimum(above, needs) / np.maximum(most, 1)
        return hits.per_need(hits.sums(hits.found * (1 - worse), None))
