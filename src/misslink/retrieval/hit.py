"""hit@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits
from misslink.retrieval.ladder import Cutoffs

__all__ = ["Hit"]


@rank_metrics.register("hit@{k}")
@dataclass(frozen=True)
class Hit:
    """Whether anything needed is among the first k: 1 or 0.

    Formula: 1 if one of the first k passages is relevant, else 0.

    Range: 0 or 1; the mean is the share of queries with a hit.

    trec_eval: ``success_k``.

    Use it: where one good passage is enough for an answer. It is blind to everything after the
    first hit and full as soon as k is large, so it flatters a retriever that returns a lot.
    """

    k: int
    rises: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"hit@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        return self.at_cutoffs(hits, self.k)

    @staticmethod
    def at_cutoffs(hits: Hits, k: Cutoffs) -> Floats:
        """Value of each row; of several cut-offs a line each."""
        return np.minimum(hits.sums(hits.found, k), 1.0)
