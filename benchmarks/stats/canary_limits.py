"""Limits of the control charts of `misslink canary`, computed once and kept with the package.

    python benchmarks/stats/canary_limits.py            # prints what is different, some minutes
    python benchmarks/stats/canary_limits.py --write    # writes src/misslink/stats/control_limits.json

First the share of a measure's false alarms that each of its three charts may have is simulated:
normal readings, whose centre and spread were estimated, on all three charts at once. With this
share the limits of each chart are then solved for by the integral equations of its run length.
"""

from __future__ import annotations

import json
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from control_limit_equations import chart_alarm_probability, solve_limits
from misslink.stats import control_charts as control_limits
from misslink.stats.control_charts import ChartLimits

SEED = 8
HISTORIES = 40_000  # a chance of 18% has a standard error of 0.2 points
EVERY = 370.0
MEASURES = (1, 2, 3, 4, 5)
SIMULATED = (8, 10, 14, 20, 30, 50, 100, 200, 1000)  # learnt from; shares between are interpolated
LEARNT_FROM = (
    *range(8, 21),
    *range(22, 31, 2),
    33,
    36,
    40,
    45,
    50,
    60,
    80,
    100,
    150,
    200,
    300,
    500,
    1000,
)
CHANCES = (0.14, 0.18, 0.23, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # of one chart, to either side
FILE = Path(control_limits.__file__).with_name("control_limits.json")


def any_alarm(learnt_from: int, limits: ChartLimits) -> float:
    """Chance that any of the three charts alarms for the worse within EVERY normal readings."""
    rng = np.random.default_rng([SEED, learnt_from])
    off = rng.normal(size=HISTORIES) / math.sqrt(learnt_from)
    spread = np.sqrt(rng.chisquare(learnt_from - 1, HISTORIES) / (learnt_from - 1))
    average, total, seen = np.zeros(HISTORIES), np.zeros(HISTORIES), np.zeros(HISTORIES, dtype=bool)
    weight, slack = limits.weight, limits.slack
    for age in range(1, int(EVERY) + 1):
        score = (rng.normal(size=HISTORIES) - off) / spread
        tame = np.clip(score, -limits.jump, limits.jump)
        average += weight * (tame - average)
        total = np.maximum(0.0, total + tame - slack)
        bound = limits.ewma * math.sqrt(weight / (2 - weight) * (1 - (1 - weight) ** (2 * age)))
        seen |= (score > limits.jump) | (average > bound) | (total > limits.cusum)
    return float(seen.mean())


def shares_of(learnt_from: int) -> list[float]:
    """For each number of measures, the share at which all three charts keep the promise."""
    rates = -np.log1p(-np.array(CHANCES))
    together = [
        any_alarm(learnt_from, solve_limits(learnt_from, EVERY, chance=chance))
        for chance in CHANCES
    ]
    wanted = 1 / np.array(MEASURES)  # as rates: the chance is 1 - exp(-rate)
    seen = -np.log1p(-np.array(together))
    assert seen[0] < wanted.min() < wanted.max() < seen[-1], (learnt_from, together)
    found = np.exp(np.interp(np.log(wanted), np.log(seen), np.log(rates)))
    return [float(share) for share in found * np.array(MEASURES) / 2]


def row(learnt_from: int, shares: list[float]) -> dict[str, Any]:
    """One row of the table."""
    limits = [
        solve_limits(learnt_from, EVERY, chance=chart_alarm_probability(measures, share))
        for measures, share in zip(MEASURES, shares, strict=True)
    ]
    return {
        "learnt_from": learnt_from,
        "shares": shares,
        "limits": [[round(x, 4) for x in (of.ewma, of.cusum, of.jump)] for of in limits],
    }


def computed() -> dict[str, Any]:
    """Return the whole table."""
    with ProcessPoolExecutor() as pool:
        simulated = np.array(list(pool.map(shares_of, SIMULATED)))
        at = np.log(SIMULATED)
        between = [
            [round(float(np.interp(math.log(n), at, of)), 3) for of in simulated.T]
            for n in LEARNT_FROM
        ]
        rows = list(pool.map(row, LEARNT_FROM, between))
    charts = ChartLimits(1.0, 1.0, 1.0)
    return {"every": EVERY, "weight": charts.weight, "slack": charts.slack, "rows": rows}


def main(arguments: list[str]) -> None:
    """Compute, and write or compare."""
    found = computed()
    if "--write" in arguments:
        rows = ",\n".join(json.dumps(each) for each in found.pop("rows"))
        head = json.dumps(found)[:-1]
        FILE.write_text(f'{head}, "rows": [\n{rows}\n]}}\n', encoding="utf-8")
        return
    kept = {each["learnt_from"]: each for each in json.loads(FILE.read_text("utf-8"))["rows"]}
    for each in found["rows"]:
        if each != kept.get(each["learnt_from"]):
            print(f"different: {json.dumps(each)}")


if __name__ == "__main__":
    main(sys.argv[1:])
