from __future__ import annotations

import asyncio

import numpy as np
import pytest
from scipy.stats import betabinom
from town import run_of

from misslink.linking.whatif.forecast import (
    Change,
    Table,
    avoided,
    changes,
    confirmed_share,
    risk_after,
)
from misslink.linking.whatif.options import MorePassages
from misslink.linking.whatif.today import Today
from misslink.types import Estimate

TABLE = Table(miss_bad=6, miss_good=4, hit_bad=2, hit_good=18)  # risks 0.6 and 0.1
SHARE = Estimate(value=0.75, low=0.5, high=0.9, n=20, method="wilson")


def changed(*, mended=(), spoilt=()):
    rows = [(True, bad) for bad in mended] + [(False, bad) for bad in spoilt]
    return [Change(place, mended, bad) for place, (mended, bad) in enumerate(rows)]


def test_the_table_is_that_of_the_links():
    run = run_of([1, 2, None, 9, 10], bad={1, 3})
    assert Table.of(Today.of(run)) == Table(miss_bad=1, miss_good=2, hit_bad=1, hit_good=1)


def test_a_mended_case_takes_the_risk_of_the_hits():
    found = avoided(TABLE, changed(mended=[True, True, True, False]))
    assert found.value == pytest.approx(3 - 4 * 0.1)
    assert found.n == 30


def test_a_spoilt_case_takes_the_risk_of_the_misses():
    found = avoided(TABLE, changed(spoilt=[False, False, True]))
    assert found.value == pytest.approx(1 - 3 * 0.6)
    assert found.low < found.value < found.high


def test_the_interval_is_that_of_the_beta_binomial():
    mended = 12
    found = avoided(TABLE, changed(mended=[True] * 9 + [False] * 3))
    still_bad = betabinom(mended, 2 + 0.75, 18 + 0.75)
    assert found.low == 9 - still_bad.ppf(0.975)
    assert found.high == 9 - still_bad.ppf(0.025)


def test_an_option_that_changes_no_case_avoids_nothing_for_certain():
    found = avoided(TABLE, [])
    assert (found.value, found.low, found.high) == (0, 0, 0)


def test_cases_that_nobody_judged_do_not_count():
    assert avoided(TABLE, changed(mended=[True, None])) == avoided(TABLE, changed(mended=[True]))


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (Table(0, 0, 2, 3), "retrieval miss"),
        (Table(2, 3, 0, 0), "retrieval hit"),
        (Table(0, 0, 0, 0), "no case"),
    ],
)
def test_without_misses_or_hits_there_is_no_forecast(table, reason):
    found = avoided(table, changed(mended=[True]))
    assert found.value is None
    assert reason in found.reason


def test_a_replay_says_which_share_is_mended():
    found = avoided(TABLE, changed(mended=[True] * 8 + [False] * 5), confirmed=SHARE)
    assert found.value == pytest.approx(8 * 0.75)
    mended = betabinom(8, 15.75, 5.75)
    assert (found.low, found.high) == (mended.ppf(0.025), mended.ppf(0.975))
    lost = avoided(TABLE, changed(spoilt=[False, True]), confirmed=SHARE)
    assert lost.value == pytest.approx(-0.75 * 0.6)


@pytest.mark.parametrize("confirmed", [None, SHARE])
def test_the_forecast_is_the_sum_of_what_each_case_is_held_to(confirmed):
    rows = changed(mended=[True, True, False], spoilt=[True, False])
    each = sum(one.bad - risk_after(TABLE, one, confirmed) for one in rows)
    assert avoided(TABLE, rows, confirmed=confirmed).value == pytest.approx(each)


def test_the_same_seed_gives_the_same_interval():
    rows = changed(mended=[True] * 30, spoilt=[False] * 20)
    assert avoided(TABLE, rows, seed=3) == avoided(TABLE, rows, seed=3)


def test_the_confirmed_share_is_read_from_the_replay():
    document = {"causes": {"retrieval_miss": {"replayed": 20, "confirmed": SHARE.model_dump()}}}
    assert confirmed_share(document) == SHARE
    missing = Estimate.missing("none was replayed").model_dump()
    for other in (None, {}, {"causes": {"retrieval_miss": {"confirmed": missing}}}):
        assert confirmed_share(other) is None


def test_a_larger_k_changes_the_cases_between():
    today = Today.of(run_of([1, 5, 9, None], bad={1}))
    tried = asyncio.run(MorePassages(6).tried(today))
    assert changes(today, tried) == (Change(1, mended=True, bad=True),)


def test_a_passage_that_the_app_dropped_from_the_prompt_is_not_mended_by_a_search():
    run = run_of([2, 1])
    dropped = run.traces[0].model_copy(update={"prompted": ("p1", "p2")})
    miss = run.links[0].model_copy(update={"retrieval": "miss"})
    run = run.model_copy(update={"traces": (dropped, run.traces[1]), "links": (miss, run.links[1])})
    today = Today.of(run)
    assert changes(today, asyncio.run(MorePassages(6).tried(today))) == ()


@pytest.mark.slow
@pytest.mark.parametrize(("at_miss", "at_hit", "cases"), [(0.7, 0.2, 100), (0.5, 0.1, 300)])
def test_the_interval_covers_what_comes(at_miss, at_hit, cases):
    """Of runs with planted risks, a third of whose misses is then really mended."""
    generator = np.random.default_rng(5)
    covered = 0
    repetitions = 500
    for _ in range(repetitions):
        misses = int(generator.binomial(cases, 0.3)) or 1
        bad_miss = generator.random(misses) < at_miss
        bad_hit = int(generator.binomial(cases - misses, at_hit))
        table = Table(
            int(bad_miss.sum()), int((~bad_miss).sum()), bad_hit, cases - misses - bad_hit
        )
        mended = bad_miss[: misses // 3]
        came = mended.sum() - generator.binomial(len(mended), at_hit)
        found = avoided(table, changed(mended=mended.tolist()), seed=1)
        covered += found.low <= came <= found.high
    assert covered / repetitions >= 0.93
