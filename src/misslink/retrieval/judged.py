"""judged@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits
from misslink.retrieval.ladder import Cutoffs, across

__all__ = ["Judged"]


@rank_metrics.register("judged@{k}")
@dataclass(frozen=True)
class Judged:
    """Share of the first k passages that anybody ever judged, relevant or not.

    It tells about the judgements, not about the ranking. Where fewer than k were retrieved it is
    the share of those.

    Formula: number of judged passages among the first k, divided by k or by the number of passages
    retrieved, whichever is smaller.

    Range: 0 to 1.

    No value: where nothing was retrieved, and where nothing at all was judged for the query. A
    query without relevant passages has one.

    trec_eval: 1 minus ``unj_k``, where at least k were retrieved; it counts the places after a
    shorter ranking as judged.

    Use it: beside every other metric. They all take an unjudged passage for an irrelevant one (but
    bpref, which passes over it), so under 90 % they say as much about the judgements as about the
    retriever.
    """

    k: int
    without_relevant: ClassVar[bool] = True
    about_judgements: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"judged@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row; NaN where nothing was retrieved."""
        return self.at_cutoffs(hits, self.k)

    @staticmethod
    def at_cutoffs(hits: Hits, k: Cutoffs) -> Floats:
        """Value of each row; of several cut-offs a line each."""
        known = hits.judged_ladder
        judged = known.sums(np.ones(len(known.row)), k)
        places = np.minimum(hits.retrieved, across(k))
        share = np.full(places.shape, np.nan)
        np.divide(judged, places, out=share, where=places > 0)
        return share
