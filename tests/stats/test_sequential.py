"""Looking early is allowed: some look errs in 5 % of experiments at most, and differences show."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from misslink.stats.experiments import (
    MIN_SEQUENTIAL_UNITS,
    TUNED_FOR,
    balanced_units,
    sequential_boundary,
    sequential_test,
    unit_values,
    units_needed,
    welch_test,
)

LOOKS = range(MIN_SEQUENTIAL_UNITS, 1501, 50)


def found_by_some_look(control, variant, **more):
    return any(sequential_test(control[:size], variant[:size], **more).p <= 0.05 for size in LOOKS)


@pytest.mark.parametrize(
    ("draw", "is_share"),
    [
        (lambda rng: rng.normal(size=1500), False),
        (lambda rng: (rng.random(1500) < 0.1) * 1.0, True),
        (lambda rng: rng.lognormal(0, 1, 1500), False),
    ],
    ids=["normal", "binary", "skewed"],
)
def test_looking_all_the_time_errs_seldom_where_the_usual_test_errs_often(draw, is_share):
    rng = np.random.default_rng(3)
    pairs = [(draw(rng), draw(rng)) for _ in range(200)]
    errs = sum(found_by_some_look(a, b, is_share=is_share) for a, b in pairs)
    usual = sum(any(welch_test(a[:n], b[:n])[1] <= 0.05 for n in LOOKS) for a, b in pairs)
    # At a true 5 % more than 19 of 200 has a chance under 1 %.
    assert errs <= stats.binom.ppf(0.99, 200, 0.05)
    assert usual > 2 * stats.binom.ppf(0.5, 200, 0.05)


def test_a_real_difference_is_found():
    rng = np.random.default_rng(4)
    hits = sum(
        found_by_some_look(rng.normal(size=1500), rng.normal(0.2, 1, 1500)) for _ in range(60)
    )
    assert hits >= 54


def test_p_is_the_inverse_of_the_normal_mixtures_likelihood_ratio():
    """Against the integral over the mixture, done numerically."""
    rng = np.random.default_rng(5)
    a, b = rng.normal(0, 1, 400), rng.normal(0.5, 2, 300)
    found = sequential_test(a, b)
    error = math.sqrt(a.var(ddof=1) / 400 + b.var(ddof=1) / 300)
    units = balanced_units(400, 300)
    # The boundary is where the ratio is 1 / alpha; it gives the mixture's variance.
    wide = -2 * math.log(0.05)
    eta = units * (wide + math.log(wide + 1)) / TUNED_FOR
    spread = error * math.sqrt(eta)

    def ratio(effect):
        here = stats.norm.pdf(found.difference.value, effect, error)
        return (
            here
            / stats.norm.pdf(found.difference.value, 0, error)
            * stats.norm.pdf(effect, 0, spread)
        )

    mixed = integrate.quad(ratio, -3, 3, points=[found.difference.value])[0]
    assert found.p == pytest.approx(1 / mixed, rel=1e-6)


def test_the_interval_leaves_out_0_exactly_where_p_is_below_alpha():
    rng = np.random.default_rng(6)
    for effect in np.linspace(0, 0.5, 40):
        found = sequential_test(rng.normal(size=200), rng.normal(effect, 1, 200), alpha=0.1)
        outside = not found.difference.low <= 0 <= found.difference.high
        assert outside == (found.p < 0.1)


def test_it_is_narrowest_against_a_fixed_size_near_what_it_is_tuned_for():
    widths = {
        units: sequential_boundary(units, tuned_for=1000)
        for units in (10, 100, 1000, 10_000, 100_000)
    }
    assert min(widths, key=widths.get) in (1000, 10_000)
    own = sequential_boundary(1000, tuned_for=1000)
    assert own <= min(
        sequential_boundary(1000, tuned_for=other) for other in (250, 500, 2000, 4000)
    )
    assert own > stats.norm.ppf(0.975)


def test_nothing_is_decided_before_there_are_enough_units():
    few = sequential_test(np.zeros(MIN_SEQUENTIAL_UNITS - 1), np.ones(500))
    assert (few.p, few.difference.low) == (None, None)
    assert str(MIN_SEQUENTIAL_UNITS) in few.difference.reason
    assert sequential_test(np.empty(0), np.ones(500)).difference.value is None
    assert sequential_test(np.ones(60), np.ones(60)).difference.reason == "all units are alike"


def test_a_share_of_none_has_an_interval_of_some_width():
    found = sequential_test(np.zeros(500), np.zeros(500), is_share=True)
    assert found.difference.low < 0 < found.difference.high < 0.02
    assert found.p == 1


def test_a_relative_margin_compares_with_more_than_controls_mean():
    rng = np.random.default_rng(7)
    a, b = rng.normal(10, 1, 300), rng.normal(11, 1, 300)
    found = sequential_test(a, b, times=1.1).difference
    assert found.value == pytest.approx(b.mean() - 1.1 * a.mean())
    assert found.low < 0 < found.high


def test_at_the_units_said_the_difference_is_seen_in_4_of_5():
    units = units_needed(0.2, error=math.sqrt(4 / 400), units=400)
    half = sequential_boundary(units) * math.sqrt(4 / units)
    assert stats.norm.sf((half - 0.2) / math.sqrt(4 / units)) == pytest.approx(0.8, abs=0.01)
    assert units_needed(0.0, 0.1, 100) is None


@pytest.mark.parametrize("alpha", [0, 1, -1, 2])
def test_an_alpha_that_is_no_chance_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        sequential_boundary(100, alpha=alpha)


@pytest.mark.slow
def test_users_who_come_back_between_looks_do_not_make_it_err():
    """A user's ratio changes from look to look, as no independent value would."""
    rng = np.random.default_rng(8)
    errs = 0
    for _ in range(120):
        users = 1000
        pleased, is_b = rng.beta(1, 1, users), rng.random(users) < 0.5
        who = np.repeat(np.arange(users), rng.geometric(0.3, users))
        back = rng.exponential(0.2, len(who)) * (rng.random(len(who)) < 0.7)
        when = rng.random(users)[who] + back
        ups = rng.random(len(who)) < pleased[who]
        for until in np.linspace(0.15, 1.5, 30):
            now = when <= until
            below = np.bincount(who[now], minlength=users)
            above = np.bincount(who[now], weights=ups[now], minlength=users)
            a, b = ((below > 0) & (is_b == side) for side in (False, True))
            sides = (unit_values(above[side], below[side]) for side in (a, b))
            p = sequential_test(*sides, is_share=True).p
            if p is not None and p <= 0.05:
                errs += 1
                break
    assert errs <= stats.binom.ppf(0.99, 120, 0.05)


@pytest.mark.parametrize("share", [0.1, 0.02])
def test_a_small_side_that_has_seen_nothing_rare_yet_is_not_called_better(share):
    rng = np.random.default_rng(4)
    erred = 0
    for _ in range(150):
        values = (rng.random(4000) < 0.02).astype(float)
        is_variant = rng.random(4000) < share
        looks = (
            sequential_test(values[:size][~is_variant[:size]], values[:size][is_variant[:size]]).p
            for size in range(500, 4001, 250)
        )
        erred += any(p is not None and p <= 0.05 for p in looks)
    assert erred <= stats.binom.ppf(0.99, 150, 0.05)
