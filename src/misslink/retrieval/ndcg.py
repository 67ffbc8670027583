"""ndcg@k and ndcg_exp@k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits
from misslink.retrieval.ladder import Cutoffs

__all__ = ["NDCG", "ExponentialNDCG"]


@rank_metrics.register("ndcg@{k}")
@dataclass(frozen=True)
class NDCG:
    """Gain of the first k, discounted by rank, over that of the best ranking there could be.

    The gains are the grades as they are (linear gain), also those below the relevance level.

    Formula: the sum over the first k of grade / log2(rank + 1), divided by the same sum over the
    ideal ranking, which has the highest grades first.

    Range: 0 to 1; 1 for a ranking in the best order.

    trec_eval: ``ndcg_cut_k``.

    Use it: where grades and order matter, as they do when the model reads the first passages
    most. It alone, with ndcg_exp@k, tells a highly relevant passage from a relevant one. A
    middling value does not say whether something was missed or came late.

    References
    ----------
    Järvelin and Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques.
    """

    k: int

    def __str__(self) -> str:
        return f"ndcg@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        return self.at_cutoffs(hits, self.k)

    @staticmethod
    def at_cutoffs(hits: Hits, k: Cutoffs) -> Floats:
        """Value of each row; of several cut-offs a line each."""
        return _normalised(hits, hits.gain.astype(float), hits.ideal_gain.astype(float), k)


@rank_metrics.register("ndcg_exp@{k}")
@dataclass(frozen=True)
class ExponentialNDCG:
    """nDCG in which each grade is worth twice the one below it and a bit more.

    Formula: as ndcg@k, with 2 to the power of the grade, minus 1, in place of the grade.

    Range: 0 to 1; 1 for a ranking in the best order.

    trec_eval: none with this name; ``ndcg_cut_k`` on qrels with the grades 1, 3, 7 and so on in
    place of 1, 2, 3.

    Use it: to compare with work on learning to rank and with web search, where this gain is usual,
    or where a highly relevant passage is worth several relevant ones. With grades 0 and 1 alone it
    equals ndcg@k.

    References
    ----------
    Burges et al. (2005), Learning to rank using gradient descent.
    """

    k: int

    def __str__(self) -> str:
        return f"ndcg_exp@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        return self.at_cutoffs(hits, self.k)

    @staticmethod
    def at_cutoffs(hits: Hits, k: Cutoffs) -> Floats:
        """Value of each row; of several cut-offs a line each."""
        top = np.zeros(hits.rows)
        np.maximum.at(top, hits.ideal_row, hits.ideal_gain)

        def gains(row: np.ndarray, grade: np.ndarray) -> Floats:
            # Over the row's highest power of two, which cancels: a large grade does not overflow.
            return np.asarray(np.exp2(grade - top[row]) - np.exp2(-top[row]), dtype=np.float64)

        own, ideal = gains(hits.row, hits.gain), gains(hits.ideal_row, hits.ideal_gain)
        return _normalised(hits, own, ideal, k)


def _normalised(hits: Hits, gains: Floats, ideal_gains: Floats, k: Cutoffs) -> Floats:
    """Discounted gain of the first k over the ideal one; 0 where nothing could be gained."""
    gained = hits.sums(gains / np.log2(hits.rank + 1), k)
    ideal = hits.ideal_ladder.sums(ideal_gains / np.log2(hits.ideal_rank + 1), k)
    share = np.divide(gained, ideal, out=np.zeros(gained.shape), where=ideal > 0)
    # The same gains in another order of addition may differ in the last digit.
    return np.minimum(share, 1.0)
