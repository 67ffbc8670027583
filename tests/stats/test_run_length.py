import math

import numpy as np
import pytest
from scipy.stats import norm

from control_limit_equations import (
    cusum_run_length,
    ewma_run_length,
    solve_limits,
)
from misslink.errors import InputError


def brook_and_evans(threshold, slack, shift, sd, states=300):
    """One side of a CUSUM as a Markov chain: Biometrika 59 (1972), section 2."""
    width = 2 * threshold / (2 * states - 1)
    start, end = np.arange(states)[:, None], np.arange(states)[None, :]

    def below(x):
        return norm.cdf((x + slack - shift) / sd)

    moves = below((end - start + 0.5) * width) - below((end - start - 0.5) * width)
    moves[:, 0] = below((0.5 - start[:, 0]) * width)
    return np.linalg.solve(np.eye(states) - moves, np.ones(states))[0]


def lucas_and_saccucci(limit, weight, shift, sd, states=401):
    """An EWMA as a Markov chain: Technometrics 32 (1990)."""
    bound = limit * math.sqrt(weight / (2 - weight))
    width = 2 * bound / states
    middle = -bound + (np.arange(states) + 0.5) * width
    centre = (1 - weight) * middle[:, None]
    upper = (middle[None, :] + width / 2 - centre) / weight
    lower = (middle[None, :] - width / 2 - centre) / weight
    moves = norm.cdf((upper - shift) / sd) - norm.cdf((lower - shift) / sd)
    return np.linalg.solve(np.eye(states) - moves, np.ones(states))[states // 2]


@pytest.mark.parametrize(
    ("shift", "published"),
    [
        (0, 465),
        (0.25, 139),
        (0.5, 38.0),
        (0.75, 17.0),
        (1, 10.4),
        (1.5, 5.75),
        (2, 4.01),
        (3, 2.57),
    ],
)
def test_a_cusum_has_the_run_lengths_of_the_textbook(shift, published):
    """Montgomery, Introduction to Statistical Quality Control: k = 0.5, h = 5."""
    assert cusum_run_length(5.0, slack=0.5, shift=shift) == pytest.approx(published, rel=0.005)


@pytest.mark.parametrize(
    ("limit", "weight", "shift", "published"),
    [
        (2.814, 0.1, 0, 500),
        (2.814, 0.1, 1, 10.3),
        (2.962, 0.2, 0, 500),
        (2.962, 0.2, 1, 10.5),
        (2.962, 0.2, 2, 3.7),
    ],
)
def test_an_ewma_has_the_run_lengths_of_the_textbook(limit, weight, shift, published):
    """Lucas and Saccucci (1990), table 3."""
    assert ewma_run_length(limit, weight=weight, shift=shift) == pytest.approx(
        published, rel=0.006, abs=0.051
    )


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.4, -1.2])
@pytest.mark.parametrize("sd", [0.7, 1.0, 1.4])
def test_both_agree_with_markov_chains_off_centre_and_with_another_spread(shift, sd):
    sides = brook_and_evans(4.0, 0.75, shift, sd), brook_and_evans(4.0, 0.75, -shift, sd)
    both = 1 / (1 / sides[0] + 1 / sides[1])
    assert cusum_run_length(4.0, slack=0.75, shift=shift, sd=sd) == pytest.approx(both, rel=2e-3)
    chain = lucas_and_saccucci(3.1, 0.2, shift, sd)
    assert ewma_run_length(3.1, weight=0.2, shift=shift, sd=sd) == pytest.approx(chain, rel=2e-3)


def test_arrays_give_what_their_elements_give():
    shifts, sds = np.array([[0.0, 0.5], [1.0, 2.0]]), np.array([[1.0, 0.8], [1.2, 1.0]])
    for length in (lambda **of: cusum_run_length(4.5, **of), lambda **of: ewma_run_length(3, **of)):
        whole = length(shift=shifts, sd=sds)
        for place in np.ndindex(2, 2):
            assert whole[place] == pytest.approx(length(shift=shifts[place], sd=sds[place]))


def test_what_never_signals_has_no_finite_run_length():
    assert cusum_run_length(30.0, slack=1.0, sd=0.1) == math.inf
    assert ewma_run_length(20.0, sd=0.1) == math.inf


def simulated(learnt_from, every, chance):
    """Chance of a signal within `every` readings of each chart, its centre and spread estimated."""
    rng = np.random.default_rng(5)
    limits = solve_limits(learnt_from, every, chance=chance)
    learnt = rng.normal(size=(6000, learnt_from))
    centre, sd = learnt.mean(axis=1), learnt.std(axis=1, ddof=1)
    ewma, up, down = np.zeros((3, 6000))
    seen = {
        "ewma": np.zeros(6000, bool),
        "cusum": np.zeros(6000, bool),
        "jump": np.zeros(6000, bool),
    }
    for _ in range(every):
        z = (rng.normal(size=6000) - centre) / sd
        ewma += limits.weight * (z - ewma)
        up, down = np.maximum(0, up + z - limits.slack), np.maximum(0, down - z - limits.slack)
        seen["ewma"] |= np.abs(ewma) > limits.ewma * math.sqrt(limits.weight / (2 - limits.weight))
        seen["cusum"] |= (up > limits.cusum) | (down > limits.cusum)
        seen["jump"] |= np.abs(z) > limits.jump
    return {name: of.mean() for name, of in seen.items()}


@pytest.mark.parametrize(("learnt_from", "chance"), [(10, 0.4), (50, 0.5)])
def test_limits_keep_their_chance_of_a_false_alarm_although_all_is_estimated(learnt_from, chance):
    """Four standard errors of 6,000 histories are 2.5 points; textbook limits miss by far more."""
    for name, found in simulated(learnt_from, 120, chance).items():
        assert found == pytest.approx(chance, abs=0.03), name


@pytest.mark.slow
def test_the_more_is_learnt_the_narrower_the_limits_down_to_those_of_known_parameters():
    chance = -math.expm1(-0.5)  # within 370 readings where alarms are 740 apart
    few, some, many = (solve_limits(n, 370.0, chance=chance) for n in (10, 20, 100_000))
    for name in ("ewma", "cusum", "jump"):
        assert getattr(few, name) > getattr(some, name) > getattr(many, name)
    assert cusum_run_length(many.cusum, slack=many.slack) == pytest.approx(740, rel=0.01)
    assert ewma_run_length(many.ewma, weight=many.weight) == pytest.approx(740, rel=0.01)
    assert many.jump == pytest.approx(norm.isf(0.5 / 740), rel=0.01)


@pytest.mark.slow
def test_a_promise_that_so_few_runs_cannot_keep_is_refused():
    with pytest.raises(InputError, match="4 runs are too few to learn from"):
        solve_limits(4, 1e9, chance=0.3)
