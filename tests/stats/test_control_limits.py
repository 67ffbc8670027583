"""The table of limits is what the integral equations and a simulation say, and is used."""

import itertools
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from misslink.stats.control_charts import chart_limits, limit_table

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from control_limit_equations import chart_alarm_probability, solve_limits

ROWS = {row["learnt_from"]: row for row in limit_table()["rows"]}
EVERY = limit_table()["every"]


def test_the_table_is_whole():
    assert list(ROWS) == sorted(ROWS)
    assert min(ROWS) == 8, "a fifth of the fewest 10 may be left out"
    for row in ROWS.values():
        assert len(row["shares"]) == len(row["limits"]) == 5
        assert all(1 / 3 < share < 1 for share in row["shares"]), (
            "no three charts see all, or none, alike"
        )
        for fewer, more in itertools.pairwise(row["limits"]):
            assert all(a < b for a, b in zip(fewer, more, strict=True)), "more measures, wider"


def test_the_more_was_learnt_the_narrower_are_the_limits():
    few, some, many = (chart_limits(n, measures=5) for n in (8, 20, 1000))
    for name in ("ewma", "cusum", "jump"):
        assert getattr(few, name) > getattr(some, name) > getattr(many, name)


@pytest.mark.parametrize(("learnt_from", "measures"), [(10, 5), (50, 1)])
def test_its_limits_are_those_of_the_integral_equations(learnt_from, measures):
    share = ROWS[learnt_from]["shares"][measures - 1]
    chance = chart_alarm_probability(measures, share)
    solved = solve_limits(learnt_from, EVERY, chance=chance)
    found = chart_limits(learnt_from, measures=measures)
    for name in ("ewma", "cusum", "jump"):
        assert getattr(found, name) == pytest.approx(getattr(solved, name), abs=5e-4)


@pytest.mark.parametrize("learnt_from", [70])
def test_between_its_rows_it_is_as_good(learnt_from):
    assert learnt_from not in ROWS
    at = [math.log(n) for n in ROWS]
    share = np.interp(math.log(learnt_from), at, [row["shares"][4] for row in ROWS.values()])
    chance = chart_alarm_probability(5, float(share))
    solved = solve_limits(learnt_from, EVERY, chance=chance)
    found = chart_limits(learnt_from, measures=5)
    for name in ("ewma", "cusum", "jump"):
        assert getattr(found, name) == pytest.approx(getattr(solved, name), rel=3e-3)


@pytest.mark.parametrize(("learnt_from", "measures"), [(10, 1), (20, 5), (50, 5)])
def test_all_three_charts_together_keep_the_promise(learnt_from, measures):
    """Four standard errors of 6,000 histories are 2.5 points at most."""
    rng = np.random.default_rng(11)
    limits = chart_limits(learnt_from, measures=measures)
    learnt = rng.normal(size=(6000, learnt_from))
    centre, sd = learnt.mean(axis=1), learnt.std(axis=1, ddof=1)
    ewma, up, seen = np.zeros(6000), np.zeros(6000), np.zeros(6000, bool)
    for age in range(1, 371):
        z = (rng.normal(size=6000) - centre) / sd
        tame = np.clip(z, -limits.jump, limits.jump)
        ewma += limits.weight * (tame - ewma)
        up = np.maximum(0, up + tame - limits.slack)
        bound = limits.ewma * math.sqrt(limits.weight / (2 - limits.weight))
        bound *= math.sqrt(1 - (1 - limits.weight) ** (2 * age))
        seen |= (z > limits.jump) | (ewma > bound) | (up > limits.cusum)
    assert seen.mean() == pytest.approx(-math.expm1(-1 / measures), abs=0.025)


def test_beyond_the_table_its_last_entry_is_used():
    assert chart_limits(5000, measures=8) == chart_limits(max(ROWS), measures=5)


def test_the_usual_settings_need_no_equations():
    """A scheduled run is a new process each time, and would pay for them each time."""
    code = (
        "import sys\n"
        "from misslink.stats.control_charts import chart_limits\n"
        "chart_limits(20, measures=5)\n"
        "assert not {'scipy'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
