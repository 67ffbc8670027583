"""recall@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits
from misslink.retrieval.ladder import Cutoffs

__all__ = ["Recall"]


@rank_metrics.register("recall@{k}")
@dataclass(frozen=True)
class Recall:
    """Share of what the case needs that the first k passages satisfy.

    Formula: number of needs that the first k passages satisfy, divided by the number of needs.

    Range: 0 to 1; no more than k divided by the number of needs where relevance is given by id.

    trec_eval: ``recall_k``, where relevance is given by id.

    Use it: where missing something is costly, as it is whenever an answer must be complete: what
    was not retrieved cannot be quoted. It costs nothing to retrieve more, so read precision too.
    """

    k: int
    rises: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"recall@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        return self.at_cutoffs(hits, self.k)

    @staticmethod
    def at_cutoffs(hits: Hits, k: Cutoffs) -> Floats:
        """Value of each row; of several cut-offs a line each."""
        return hits.per_need(hits.sums(hits.found, k))
