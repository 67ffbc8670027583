"""Units are split by share, stay where they are, and are known in the log only by a hash."""

import datetime as dt
import hashlib
import hmac
import json
import os
import subprocess
import sys

import pytest
from scipy import stats

from misslink.errors import InputError
from misslink.live import Experiment, Ramp
from misslink.live.assignment import keyed_hash, unit_hash

UNITS = [f"user-{number}" for number in range(4000)]
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def days(number):
    return START + dt.timedelta(days=number)


@pytest.mark.parametrize(
    "split", [{"A": 1, "B": 1}, {"A": 0.9, "B": 0.1}, {"A": 70, "B": 20, "C": 10}]
)
def test_every_variant_gets_its_share(split):
    given = [Experiment("shares", split).assign(unit).variant for unit in UNITS]
    for variant, share in split.items():
        exact = stats.binomtest(given.count(variant), len(UNITS), share / sum(split.values()))
        assert exact.pvalue > 0.001


def test_two_experiments_split_units_independently():
    one, other = Experiment("one", {"A": 1, "B": 1}), Experiment("other", {"A": 1, "B": 1})
    table = [[0, 0], [0, 0]]
    for unit in UNITS:
        table["AB".index(one.assign(unit).variant)]["AB".index(other.assign(unit).variant)] += 1
    assert stats.fisher_exact(table).pvalue > 0.001


def test_another_process_with_another_hash_seed_assigns_the_same():
    code = (
        "from misslink.live import Experiment\n"
        "e = Experiment('stable', {'A': 3, 'B': 1})\n"
        "print(''.join(e.assign(f'user-{i}').variant for i in range(200)))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "4711")
    }
    here = Experiment("stable", {"A": 3, "B": 1})
    assert said == {"".join(here.assign(unit).variant for unit in UNITS[:200])}


def test_a_unit_moves_only_into_a_variant_that_grew_by_more_than_its_own():
    smaller = Experiment("grows", {"A": 8, "B": 1, "C": 1})
    larger = Experiment("grows", {"A": 5, "B": 4, "C": 1})
    grew = {"A": 0, "C": 1, "B": 2}
    moved = 0
    for unit in UNITS:
        before, after = smaller.assign(unit).variant, larger.assign(unit).variant
        assert after == before or grew[after] > grew[before]
        moved += after != before
    assert moved


def test_of_two_variants_units_move_only_into_the_one_that_grows():
    smaller, larger = (Experiment("grows", {"A": 1 - share, "B": share}) for share in (0.1, 0.4))
    for unit in UNITS:
        assert larger.assign(unit).variant in (smaller.assign(unit).variant, "B")


def test_a_third_variant_takes_units_and_moves_none_between_the_others():
    two, three = Experiment("n", {"A": 1, "B": 1}), Experiment("n", {"A": 1, "B": 1, "C": 1})
    for unit in UNITS:
        assert three.assign(unit).variant in (two.assign(unit).variant, "C")


@pytest.mark.parametrize("linear", [False, True])
def test_a_ramp_only_ever_adds_units_to_the_treatments(linear):
    ramp = Ramp([(days(0), 0.05), (days(2), 0.3), (days(4), 1.0)], linear=linear)
    experiment = Experiment("ramped", {"A": 2, "B": 1, "C": 1}, ramp=ramp)
    units = UNITS[:1000]
    before = dict.fromkeys(units, "A")
    for hour in range(-24, 24 * 6, 24):
        at = (START + dt.timedelta(hours=hour)).timestamp()
        now = {unit: experiment.assign(unit, at).variant for unit in units}
        assert all(now[unit] == before[unit] for unit in units if before[unit] != "A")
        share = experiment.planned(at)["B"]
        counted = sum(variant == "B" for variant in now.values())
        assert stats.binomtest(counted, len(units), share).pvalue > 0.001
        before = now
    assert experiment.planned(days(9).timestamp()) == {"A": 0.5, "B": 0.25, "C": 0.25}


def test_a_ramp_is_closed_before_its_first_step_and_grows_between_the_steps_if_linear():
    steps = [(days(0), 0.2), (days(2), 0.6)]
    by_step, evenly = Ramp(steps), Ramp(steps, linear=True)
    moments = [days(n).timestamp() for n in (-1, 0, 1, 2, 9)]
    assert [by_step.share(at) for at in moments] == [0, 0.2, 0.2, 0.6, 0.6]
    assert [evenly.share(at) for at in moments] == pytest.approx([0, 0.2, 0.4, 0.6, 0.6])


def test_the_excluded_get_control_and_the_others_are_not_moved():
    everyone = Experiment("holdout", {"A": 1, "B": 1})
    fewer = Experiment("holdout", {"A": 1, "B": 1}, excluded=0.2)
    given = [fewer.assign(unit) for unit in UNITS]
    left_out = [one for one in given if one.mode == "excluded"]
    assert {one.variant for one in left_out} == {"A"}
    assert stats.binomtest(len(left_out), len(UNITS), 0.2).pvalue > 0.001
    for unit, one in zip(UNITS, given, strict=True):
        assert one.mode == "excluded" or one.variant == everyone.assign(unit).variant


def test_a_predicate_excludes_by_the_id():
    experiment = Experiment("staff", {"A": 0, "B": 1}, excluded=lambda u: u.startswith("staff"))
    assert experiment.assign("staff-1").variant == "A"
    assert experiment.assign("user-1").variant == "B"


def test_a_share_of_requests_is_shadowed():
    experiment = Experiment("beside", {"A": 1}, shadow={"B": 0.25})
    counted = sum(experiment.shadows(f"request-{n}") == ["B"] for n in range(4000))
    assert stats.binomtest(counted, 4000, 0.25).pvalue > 0.001
    assert not Experiment("beside", {"A": 1}, shadow={"B": 0}).shadows("request-1")


def test_a_unit_of_broken_text_is_assigned_too():
    assert Experiment("odd", {"A": 1, "B": 1}).assign("\ud800\x00'; DROP").variant in "AB"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("", {"A": 1, "B": 1}), "name"),
        (("x\n", {"A": 1, "B": 1}), "unprintable"),
        (("x", {}), "split"),
        (("x", {"A": 1}), "at least two"),
        (("x", {"A": 0, "B": 0}), "add up to 0"),
        (("x", {"A": -1, "B": 2}), "'A' is -1"),
        (("x", {"A": float("nan"), "B": 2}), "nan"),
        (("x", {"A": True, "B": 2}), "True"),
        (("x", {"A": 1, "B": 1}, "C"), "control 'C'"),
        (("x", {"A": 1, "B": 1}, None, 1.5), "excluded"),
        (("x", {"A": 1, "B": 1}, None, 0.0, None, {"B": 0.1}), "never served"),
        (("x", {"A": 1}, None, 0.0, None, {"B": 10}), "[0, 1]"),
        (("x", {"A": 1}, None, 0.0, None, ["B"]), "shadows have shares"),
        (("x", {"A": 1, "B": 1}, None, 0.0, 0.5), "it must be a Ramp"),
        (("x", {"A": 1e308, "B": 1e308}), "from 0 to 1e+12"),
    ],
)
def test_a_wrong_experiment_is_told(arguments, said):
    with pytest.raises(InputError) as refused:
        Experiment(*arguments)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([], "at least one step"),
        (0.5, "at least one step"),
        ([0.5], "at least one step"),
        ([(dt.datetime(2026, 1, 1), 0.1)], "time zone"),  # noqa: DTZ001 - that is the mistake
        ([(days(0), 2)], "[0, 1]"),
        ([(days(1), 0.1), (days(0), 0.2)], "forward"),
        ([(days(0), 0.5), (days(1), 0.2)], "shrinks"),
    ],
)
def test_a_wrong_ramp_is_told(steps, said):
    with pytest.raises(InputError) as refused:
        Ramp(steps)
    assert said in str(refused.value)


def test_the_hash_of_a_unit_is_an_hmac_under_the_salt(monkeypatch):
    monkeypatch.delenv("MISSLINK_LIVE_SALT", raising=False)
    message = json.dumps(["unit", "exp", "ann"]).encode()
    expected = hmac.new(b"pepper", message, hashlib.sha256).hexdigest()[:32]
    assert unit_hash("ann", "exp", "pepper") == expected
    assert unit_hash("ann", "exp") == hmac.new(b"exp", message, hashlib.sha256).hexdigest()[:32]
    monkeypatch.setenv("MISSLINK_LIVE_SALT", "pepper")
    assert unit_hash("ann", "exp") == expected
    different = {unit_hash("ann", "exp"), unit_hash("ann", "two"), keyed_hash("q", "ann", "exp")}
    assert len(different) == 3
