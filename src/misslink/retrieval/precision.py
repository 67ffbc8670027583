"""precision@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits
from misslink.retrieval.ladder import Cutoffs, across

__all__ = ["Precision"]


@rank_metrics.register("precision@{k}")
@dataclass(frozen=True)
class Precision:
    """Share of the first k places that hold something needed and not seen further up.

    Divided by k however few were retrieved. A passage that repeats evidence already found fills a
    place and counts as nothing.

    Formula: number of relevant passages among the first k, divided by k.

    Range: 0 to 1; no more than the number of needs divided by k.

    trec_eval: ``P_k``.

    Use it: where noise costs, since every irrelevant passage takes room in the prompt and may
    distract the model. A retriever that returns one sure passage looks perfect at k = 1 and may
    have missed all others, so read recall too.
    """

    k: int
    rises: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"precision@{self.k}"

    def of(self, hits: Hits) -> Floats:
        """Value of each row."""
        return self.at_cutoffs(hits, self.k)

    @staticmethod
    def at_cutoffs(hits: Hits, k: Cutoffs) -> Floats:
        """Value of each row; of several cut-offs a line each."""
        return hits.sums(hits.relevant, k) / across(k)
