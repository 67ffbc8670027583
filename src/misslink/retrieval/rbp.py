"""rbp@p and rbp_residual@p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits

__all__ = ["RankBiasedPrecision", "RankBiasedResidual"]


@rank_metrics.register("rbp@{p}")
@dataclass(frozen=True)
class RankBiasedPrecision:
    """What somebody gains who reads on from each passage to the next with probability p.

    Relevance is yes or no, by the relevance level. Nothing is known to lie beyond the end of a
    ranking, so a ranking of finite length never reaches 1: rbp_residual@p says how much is open.

    Formula: (1 - p) times the sum, over the relevant passages retrieved, of p to the power of
    rank - 1.

    Range: 0 to 1, never quite 1; the reader looks at 1 / (1 - p) passages on average.

    trec_eval: ``rbp`` (p = 0.9 unless told), where all relevant passages have grade 1; on graded
    qrels it scales the grades instead of cutting them at a level.

    Use it: where the reader, or the model, gives less and less weight to what comes later, and
    where judgements are incomplete: p = 0.5 for an impatient reader, 0.8 for one of five passages,
    0.95 for one of twenty.

    References
    ----------
    Moffat and Zobel (2008), Rank-biased precision for measurement of retrieval effectiveness.
    """

    p: float
    rises: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"rbp@{self.p}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        weight = (1 - self.p) * np.power(self.p, hits.rank - 1)
        return hits.sums(hits.relevant * weight, None)


@rank_metrics.register("rbp_residual@{p}")
@dataclass(frozen=True)
class RankBiasedResidual:
    """How much higher rbp@p would be if everything unknown were relevant.

    Unknown are the retrieved passages that were never judged, and all that would follow
    after the end of the ranking. It tells about the judgements, not about the ranking, and a lower
    one is better.

    Formula: 1 minus (1 - p) times the sum, over all judged passages retrieved, of p to the power
    of rank - 1.

    Range: 0 to 1; 1 for an empty ranking.

    trec_eval: ``rbp_resid``, which has p = 0.9; where every passage is judged it prints 0
    and leaves out what would follow after the end, which is p to the power of the ranking's length.

    Use it: beside every rbp@p. Where it is larger than the difference between two retrievers, the
    judgements do not decide between them.

    References
    ----------
    Moffat and Zobel (2008), Rank-biased precision for measurement of retrieval effectiveness.
    """

    p: float
    about_judgements: ClassVar[bool] = True
    better: ClassVar[str] = "low"

    def __str__(self) -> str:
        return f"rbp_residual@{self.p}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        row, rank = hits.known
        weight = (1 - self.p) * np.power(self.p, rank - 1)
        known = np.bincount(row, weights=weight, minlength=hits.rows)
        return np.maximum(1 - known, 0.0)
