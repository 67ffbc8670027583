"""mrr and mrr@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits
from misslink.retrieval.ladder import Cutoffs

__all__ = ["ReciprocalRank"]


@rank_metrics.register("mrr")
@rank_metrics.register("mrr@{k}")
@dataclass(frozen=True)
class ReciprocalRank:
    """1 / rank of the first passage that satisfies anything, 0 where none does.

    Its mean over the cases is the mean reciprocal rank. ``mrr`` reads the whole ranking, ``mrr@k``
    the first k.

    Formula: 1 divided by the rank of the first relevant passage, 0 without one.

    Range: 0 to 1, and only the values 1, 1/2, 1/3 and so on between them.

    trec_eval: ``recip_rank`` for ``mrr``; it has no cut-off, which ``-M k`` replaces.

    Use it: where the first result is all, as for one link, one fact or one passage in the prompt.
    It says nothing about the second passage that a question needs.

    References
    ----------
    Voorhees (1999), The TREC-8 question answering track report.
    """

    k: int | None = None
    rises: ClassVar[bool] = True

    def __str__(self) -> str:
        return "mrr" if self.k is None else f"mrr@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        return self.at_cutoffs(hits, self.k)

    @staticmethod
    def at_cutoffs(hits: Hits, k: Cutoffs) -> Floats:
        """Value of each row; of several cut-offs a line each."""
        first = hits.relevant & (hits.place == 1)
        return hits.sums(first / hits.rank, k)
