"""What the forecast rests on, a replay or the run's own table, and what is to be said of it."""

from __future__ import annotations

from dataclasses import dataclass

from misslink.linking.whatif.forecast import FEWEST_PAIRS, Pairs, Table
from misslink.linking.whatif.today import Today
from misslink.stats.risks import risk_difference
from misslink.stats.written import percent
from misslink.types import Run

__all__ = ["Basis"]

_ASSOCIATION = (
    "The forecast takes it that a mended miss has the risk of today's hits: association, not "
    "cause, and the interval does not hold what that may be wrong by."
)
_REPLAYED = (
    "The forecast rests on {n} replayed misses: with the missed passage {still} of the unfaithful "
    "answers stayed unfaithful, and {turned} of the others became it."
)
_TOO_FEW = (
    f"The replay was not used: it takes {FEWEST_PAIRS} replayed misses with an unfaithful answer "
    "and as many with another, and it has {bad} and {good}."
)
_NO_LINK = "In this run misses do not go with more unfaithful answers, so the forecast says little."


@dataclass(frozen=True)
class Basis:
    """What a forecast is made from.

    Parameters
    ----------
    table : Table
    pairs : Pairs or None
        None: the run was not replayed, or too few of its misses were.
    notes : sequence of str
        How far the forecast is to be believed.
    """

    table: Table
    pairs: Pairs | None
    notes: tuple[str, ...]

    @classmethod
    def of(cls, run: Run, today: Today) -> Basis:
        """The replay where it is large enough, else the association of the run."""
        table, pairs = Table.of(today), Pairs.of(run.replay, run.links)
        if pairs.enough:
            still, turned = map(percent, pairs.shares)
            n = pairs.bad[1] + pairs.good[1]
            return cls(table, pairs, (_REPLAYED.format(n=n, still=still, turned=turned),))
        notes = [_ASSOCIATION]
        if run.replay:
            notes.append(_TOO_FEW.format(bad=pairs.bad[1], good=pairs.good[1]))
        apart = risk_difference(
            table.miss_bad,
            table.miss_bad + table.miss_good,
            table.hit_bad,
            table.hit_bad + table.hit_good,
        )
        if apart.low is not None and apart.low <= 0:
            notes.append(_NO_LINK)
        return cls(table, None, tuple(notes))
