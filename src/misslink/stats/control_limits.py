"""Limits of the three charts of a measure, so that false alarms are as rare as was promised.

Solving for them takes a second or more, which every run of a scheduled job would pay for. So what
the usual settings need is computed once, by benchmarks/canary_limits.py, and lies in
control_limits.json; any other settings are solved for.
"""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from misslink.stats.control_charts import Limits

__all__ = ["Table", "chance_of_a_chart", "limits_for", "table"]

_FILE = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class Table:
    """What was computed beforehand.

    Parameters
    ----------
    every, weight, slack : float
        For which settings (see `limits_for`).
    learnt_from : tuple of int
        From how many readings, ascending.
    shares, limits : tuple
        One row for each of these, in it one entry for 1, 2, 3, ... measures: the share of a
        measure's false alarms that each of its charts may have, and the limits of EWMA, CUSUM
        and jump.
    """

    every: float
    weight: float
    slack: float
    learnt_from: tuple[int, ...]
    shares: tuple[tuple[float, ...], ...]
    limits: tuple[tuple[tuple[float, float, float], ...], ...]


@lru_cache(maxsize=1)
def table() -> Table:
    """Return the table that comes with the package."""
    read = json.loads(_FILE.read_text(encoding="utf-8"))
    rows = read["rows"]
    return Table(
        every=read["every"],
        weight=read["weight"],
        slack=read["slack"],
        learnt_from=tuple(row["learnt_from"] for row in rows),
        shares=tuple(tuple(row["shares"]) for row in rows),
        limits=tuple(
            tuple((ewma, cusum, jump) for ewma, cusum, jump in row["limits"]) for row in rows
        ),
    )


def chance_of_a_chart(measures: int, share: float = 1.0) -> float:
    """Return the chance of a false alarm, to either side, that one chart of a measure may have.

    Parameters
    ----------
    measures : int
        How many measures share the false alarms, at least 1.
    share : float
        Of a measure's false alarms, what each of its charts may have, above 0 and at most 1.

    Returns
    -------
    float
        Within as many readings as shall pass between two false alarms on average.

    Examples
    --------
    Alarms are for the worse, one side of each chart. One of random times comes within their mean
    distance with a chance of 63 %.

    >>> round(chance_of_a_chart(1) / 2, 2), round(1 - math.exp(-1), 2)
    (0.43, 0.63)
    """
    return -math.expm1(-2 * share / measures)


def limits_for(
    learnt_from: int,
    false_alarm_every: float = 370.0,
    *,
    measures: int = 1,
    weight: float = 0.2,
    slack: float = 0.75,
) -> Limits:
    """Limits of the three charts of a measure whose centre and spread were estimated.

    The chance that any of the three gives a false alarm for the worse within `false_alarm_every`
    readings is ``1 - exp(-1 / measures)``, that of alarms at random times that many readings
    apart times `measures`. The charts see much of the same, but not all: by simulation each may
    have about half of what the three have together (the table's ``shares``). How often one chart
    alone alarms is solved for by `misslink.stats.run_length.solved_limits`. All that holds for
    normal readings; shares of few questions are simulated in benchmarks/canary_run_length.py.

    Parameters
    ----------
    learnt_from : int
        How many readings the centre and the standard deviation come from, at least 3.
    false_alarm_every : float
        Readings, above 1. The shares were simulated for 370 and are taken for any other, too.
    measures : int
        How many measures share these false alarms, at least 1.
    weight, slack : float
        As in `Limits`.

    Raises
    ------
    InputError
        So few readings cannot be learnt from for so rare false alarms.
    """
    known = table()
    most = len(known.shares[0])
    column = min(measures, most) - 1
    is_known = (
        (false_alarm_every, weight, slack) == (known.every, known.weight, known.slack)
        and measures <= most
        and known.learnt_from[0] <= learnt_from <= known.learnt_from[-1]
    )
    if is_known:
        ewma, cusum, jump = (
            _between(learnt_from, [row[column][chart] for row in known.limits])
            for chart in range(3)
        )
        return Limits(ewma=ewma, cusum=cusum, jump=jump, weight=weight, slack=slack)
    from misslink.stats.run_length import solved_limits

    share = _between(learnt_from, [row[column] for row in known.shares])
    chance = chance_of_a_chart(measures, share)
    return solved_limits(learnt_from, false_alarm_every, chance=chance, weight=weight, slack=slack)


def _between(learnt_from: int, column: Sequence[float]) -> float:
    """A column of the table at any n: linear in 1 / n, constant beyond its ends."""
    known = table().learnt_from
    place = bisect.bisect_left(known, learnt_from)
    if place == len(known):
        return column[-1]
    if place == 0 or known[place] == learnt_from:
        return column[place]
    before, after = known[place - 1], known[place]
    part = (1 / before - 1 / learnt_from) / (1 / before - 1 / after)
    return column[place - 1] + part * (column[place] - column[place - 1])
