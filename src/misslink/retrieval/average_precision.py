"""map and map@k."""

from __future__ import annotations

from dataclasses import dataclass

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits
from misslink.retrieval.ladder import Cutoffs

__all__ = ["AveragePrecision"]


@rank_metrics.register("map")
@rank_metrics.register("map@{k}")
@dataclass(frozen=True)
class AveragePrecision:
    """Mean over the needs of the precision at the rank where each is first satisfied.

    A need that is never satisfied (within the first k) counts 0. Its mean over the cases is the
    mean average precision. ``map`` reads the whole ranking, ``map@k`` the first k; both divide by
    the number of all needs, also where that is more than k.

    Formula: the sum, over the relevant passages retrieved, of precision@rank at their ranks,
    divided by the number of needs.

    Range: 0 to 1; ``map@k`` no more than k divided by the number of needs where relevance is given
    by id.

    trec_eval: ``map`` and ``map_cut_k``.

    Use it: to compare whole rankings when many passages are relevant; it rewards finding all of
    them, and early. With one relevant passage it equals the reciprocal rank.

    References
    ----------
    Buckley and Voorhees (2005), Retrieval system evaluation, in TREC: Experiment and evaluation in
    information retrieval.
    """

    k: int | None = None

    def __str__(self) -> str:
        return "map" if self.k is None else f"map@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        return self.at_cutoffs(hits, self.k)

    @staticmethod
    def at_cutoffs(hits: Hits, k: Cutoffs) -> Floats:
        """Value of each row; of several cut-offs a line each."""
        return hits.per_need(hits.sums(hits.found * (hits.place / hits.rank), k))
