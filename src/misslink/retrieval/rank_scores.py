"""What a run scored: every metric of every query, with means and intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from misslink.retrieval.metrics import parse
from misslink.stats import mean
from misslink.types import Estimate

__all__ = ["RankScores", "plain_mean"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RankScores:
    """What a run scored.

    Parameters
    ----------
    names : sequence of str
        Of the metrics.
    queries : sequence of str
        All that have judgements, in the order of the qrels.
    values : array of float, shape (metrics, queries)
        0 where there is no value.
    known : array of bool, shape (metrics, queries)
        Where there is one.
    counts : mapping
        ``queries`` of the qrels; ``evaluated``, those with a relevant document that were measured;
        ``without_relevant``; ``missing_from_run``, those with a relevant document of which the run
        holds nothing, counted 0; ``not_in_qrels``, queries of the run that were not judged;
        ``failed``, those whose trace tells no retrieval; ``judged_at_10``, the mean share of the
        first 10 documents that were ever judged, None where nothing was retrieved.
    lowest, highest : array of float, shape (metrics, queries), or None
        Of each value, had the unjudged documents been judged; where asked for.
    seed : int
        Of the intervals.
    """

    names: tuple[str, ...]
    queries: Sequence[str]
    values: Floats
    known: Bools
    counts: dict[str, int | float | None]
    lowest: Floats | None = None
    highest: Floats | None = None
    seed: int = 0
    _means: dict[str, Estimate] = field(default_factory=dict, repr=False)

    def of(self, name: str) -> tuple[Floats, Bools]:
        """Values of a metric, and where it has one; a query each."""
        at = self._place(name)
        return self.values[at], self.known[at]

    def mean(self, name: str) -> Estimate:
        """Mean over the queries that have a value, with its interval."""
        if name not in self._means:
            values, known = self.of(name)
            self._means[name] = self._estimate(values, known)
        return self._means[name]

    def means(self) -> dict[str, float | None]:
        """Mean of each metric alone; None where no query has a value."""
        return {
            name: plain_mean(self.values[at][self.known[at]]) for at, name in enumerate(self.names)
        }

    def bounds(self, name: str) -> tuple[Estimate, Estimate]:
        """Mean of the lowest and of the highest values.

        Raises
        ------
        ValueError
            They were not asked for.
        """
        if self.lowest is None or self.highest is None:
            raise ValueError("rank(..., bounds=True) computes bounds")
        at = self._place(name)
        low, high = (
            self._estimate(ends[at], self.known[at]) for ends in (self.lowest, self.highest)
        )
        return low, high

    def per_query(self) -> dict[str, dict[str, float | None]]:
        """Query to metric to value; None where it has none."""
        lists: list[list[float | None]] = []
        for values, known in zip(self.values, self.known, strict=True):
            own: list[float | None] = values.tolist()
            for at in np.flatnonzero(~known).tolist():
                own[at] = None
            lists.append(own)
        rows = zip(*lists, strict=True)
        return {
            query: dict(zip(self.names, row, strict=True))
            for query, row in zip(self.queries, rows, strict=True)
        }

    def _estimate(self, values: Floats, known: Bools) -> Estimate:
        if not known.any():
            return Estimate.missing("no query has a value")
        return mean(values[known].tolist(), seed=self.seed)

    def _place(self, name: str) -> int:
        return self.names.index(str(parse(name)))


def plain_mean(values: Floats) -> float | None:
    """Mean, the same to the last digit in whatever order the values come; None of none."""
    return math.fsum(values.tolist()) / len(values) if len(values) else None
