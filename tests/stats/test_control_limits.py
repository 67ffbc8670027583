"""The table of limits is what the integral equations and a simulation say, and is used."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

from misslink.stats.control_limits import chance_of_a_chart, limits_for, table
from misslink.stats.run_length import solved_limits


def test_the_table_is_whole():
    known = table()
    assert known.learnt_from == tuple(sorted(known.learnt_from))
    assert known.learnt_from[0] == 8, "a fifth of the fewest 10 may be left out"
    for row, limits in zip(known.shares, known.limits, strict=True):
        assert len(row) == len(limits) == 5
        assert all(1 / 3 < share < 1 for share in row), "no three charts see all, or none, alike"
        for fewer, more in itertools.pairwise(limits):
            assert all(a < b for a, b in zip(fewer, more, strict=True)), "more measures, wider"


def test_the_more_was_learnt_the_narrower_are_the_limits():
    few, some, many = (limits_for(n, measures=5) for n in (8, 20, 1000))
    for name in ("ewma", "cusum", "jump"):
        assert getattr(few, name) > getattr(some, name) > getattr(many, name)


@pytest.mark.parametrize(("learnt_from", "measures"), [(10, 5), (50, 1)])
def test_its_limits_are_those_of_the_integral_equations(learnt_from, measures):
    known = table()
    share = known.shares[known.learnt_from.index(learnt_from)][measures - 1]
    chance = chance_of_a_chart(measures, share)
    solved = solved_limits(learnt_from, known.every, chance=chance)
    found = limits_for(learnt_from, measures=measures)
    for name in ("ewma", "cusum", "jump"):
        assert getattr(found, name) == pytest.approx(getattr(solved, name), abs=5e-4)


@pytest.mark.parametrize("learnt_from", [70])
def test_between_its_rows_it_is_as_good(learnt_from):
    assert learnt_from not in table().learnt_from
    at = [math.log(n) for n in table().learnt_from]
    share = np.interp(math.log(learnt_from), at, [row[4] for row in table().shares])
    chance = chance_of_a_chart(5, float(share))
    solved = solved_limits(learnt_from, table().every, chance=chance)
    found = limits_for(learnt_from, measures=5)
    for name in ("ewma", "cusum", "jump"):
        assert getattr(found, name) == pytest.approx(getattr(solved, name), rel=3e-3)


@pytest.mark.parametrize(("learnt_from", "measures"), [(10, 1), (20, 5), (50, 5)])
def test_all_three_charts_together_keep_the_promise(learnt_from, measures):
    """Four standard errors of 6,000 histories are 2.5 points at most."""
    rng = np.random.default_rng(11)
    limits = limits_for(learnt_from, measures=measures)
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


def test_any_other_setting_is_solved_for():
    rarer = limits_for(20, 2000.0, measures=3)
    usual = limits_for(20, measures=3)
    assert rarer.jump > usual.jump
    assert rarer.cusum > usual.cusum


def test_the_usual_settings_need_no_equations():
    """A scheduled run is a new process each time, and would pay for them each time."""
    code = (
        "import sys\n"
        "from misslink.stats.control_limits import limits_for\n"
        "limits_for(20, 370.0, measures=5)\n"
        "assert not {'scipy', 'misslink.stats.run_length'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
