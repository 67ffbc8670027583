"""How many unfaithful answers an option would avoid."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from scipy.stats import betabinom

from misslink.linking.whatif.comparison import RetrievalBaseline
from misslink.linking.whatif.effect_model import (
    EffectModel,
    MissChange,
    ReplayPairs,
    RiskTable,
    estimate_avoided,
    find_changes,
    risk_after,
)
from misslink.linking.whatif.options import LargerKOption
from town import link, run_of

TABLE = RiskTable(miss_bad=6, miss_good=4, hit_bad=2, hit_good=18)  # risks 0.6 and 0.1
PAIRS = ReplayPairs(bad=(5, 20), good=(2, 10))  # 0.25 stay unfaithful, 0.2 become it


def changed(*, mended=(), spoilt=()):
    rows = [(True, bad) for bad in mended] + [(False, bad) for bad in spoilt]
    return [MissChange(place, mended, bad) for place, (mended, bad) in enumerate(rows)]


def test_the_table_is_that_of_the_links():
    run = run_of([1, 2, None, 9, 10], bad={1, 3})
    assert EffectModel.from_run(run, RetrievalBaseline.from_run(run)).table == RiskTable(
        miss_bad=1, miss_good=2, hit_bad=1, hit_good=1
    )


def test_a_mended_case_takes_the_risk_of_the_hits():
    found = estimate_avoided(TABLE, changed(mended=[True, True, True, False]))
    assert found.value == pytest.approx(3 - 4 * 0.1)
    assert found.n == 30


def test_a_spoilt_case_takes_the_risk_of_the_misses():
    found = estimate_avoided(TABLE, changed(spoilt=[False, False, True]))
    assert found.value == pytest.approx(1 - 3 * 0.6)
    assert found.low < found.value < found.high


def test_the_interval_is_that_of_the_beta_binomial():
    mended = 12
    found = estimate_avoided(TABLE, changed(mended=[True] * 9 + [False] * 3))
    still_bad = betabinom(mended, 2 + 0.75, 18 + 0.75)
    assert found.low == 9 - still_bad.ppf(0.975)
    assert found.high == 9 - still_bad.ppf(0.025)


def test_an_option_that_changes_no_case_avoids_nothing_for_certain():
    found = estimate_avoided(TABLE, [])
    assert (found.value, found.low, found.high) == (0, 0, 0)


def test_cases_that_nobody_judged_do_not_count():
    assert estimate_avoided(TABLE, changed(mended=[True, None])) == estimate_avoided(
        TABLE, changed(mended=[True])
    )


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (RiskTable(0, 0, 2, 3), "retrieval miss"),
        (RiskTable(2, 3, 0, 0), "retrieval hit"),
        (RiskTable(0, 0, 0, 0), "no case"),
    ],
)
def test_without_misses_or_hits_there_is_no_forecast(table, reason):
    found = estimate_avoided(table, changed(mended=[True]))
    assert found.value is None
    assert reason in found.reason


def test_a_replay_says_what_becomes_of_either_kind_of_answer():
    found = estimate_avoided(TABLE, changed(mended=[True] * 8 + [False] * 5), pairs=PAIRS)
    assert found.value == pytest.approx(8 - 8 * 0.25 - 5 * 0.2)
    assert found.low < found.value < found.high
    only_bad = estimate_avoided(TABLE, changed(mended=[True] * 8), pairs=PAIRS)
    still = betabinom(8, 5.75, 15.75)
    assert (only_bad.low, only_bad.high) == (8 - still.ppf(0.975), 8 - still.ppf(0.025))


def test_a_hit_that_is_lost_has_the_pairs_read_the_other_way():
    """By Bayes' rule; the risk of the run's misses is 0.6."""
    with_passage = 0.6 * 0.25 + 0.4 * 0.2
    assert risk_after(TABLE, MissChange(0, mended=False, bad=True), PAIRS) == pytest.approx(
        0.6 * 0.25 / with_passage
    )
    assert risk_after(TABLE, MissChange(0, mended=False, bad=False), PAIRS) == pytest.approx(
        0.6 * 0.75 / (1 - with_passage)
    )


def test_a_lost_hit_that_no_replayed_miss_ended_as_has_the_risk_of_the_misses():
    never = ReplayPairs(bad=(0, 12), good=(0, 12))
    assert risk_after(TABLE, MissChange(0, mended=False, bad=True), never) == 0.6
    assert estimate_avoided(TABLE, changed(spoilt=[True]), pairs=never).value == pytest.approx(0.4)


@pytest.mark.parametrize("pairs", [None, PAIRS])
def test_the_forecast_is_the_sum_of_what_each_case_is_held_to(pairs):
    rows = changed(mended=[True, True, False], spoilt=[True, False])
    each = sum(one.bad - risk_after(TABLE, one, pairs) for one in rows)
    assert estimate_avoided(TABLE, rows, pairs=pairs).value == pytest.approx(each)


def test_the_same_seed_gives_the_same_interval():
    rows = changed(mended=[True] * 30, spoilt=[False] * 20)
    assert estimate_avoided(TABLE, rows, seed=3) == estimate_avoided(TABLE, rows, seed=3)


def replayed(case_id, observed, first):
    return {"case_id": case_id, "outcomes": {"observed": observed, "first": first}}


def test_pairs_are_of_full_misses_and_of_unfaithful_answers_alone():
    links = [link(n, "miss") for n in range(8)] + [link(8, "partial"), link(9, "hit")]
    document = {
        "cases": [
            replayed("c0", "unfaithful", "good"),
            replayed("c1", "unfaithful", "unfaithful"),
            replayed("c2", "declined", "good"),  # mended, and never unfaithful
            replayed("c3", "wrong", "unfaithful"),
            replayed("c4", "good", "wrong"),
            replayed("c5", "unfaithful", "inconclusive"),
            {"case_id": "c6", "outcomes": {"observed": "unfaithful"}},
            replayed("c8", "unfaithful", "good"),
            replayed("c9", "unfaithful", "good"),
        ]
    }
    found = ReplayPairs.from_replay(document, links)
    assert found == ReplayPairs(bad=(1, 2), good=(1, 3))
    assert not found.enough
    assert (
        ReplayPairs.from_replay(None, links)
        == ReplayPairs.from_replay({}, links)
        == ReplayPairs((0, 0), (0, 0))
    )


@pytest.mark.parametrize(
    ("bad", "good", "enough"), [(10, 10, True), (9, 50, False), (50, 9, False)]
)
def test_ten_pairs_of_each_kind_are_enough(bad, good, enough):
    assert ReplayPairs((1, bad), (1, good)).enough is enough


def test_a_larger_k_changes_the_cases_between():
    today = RetrievalBaseline.from_run(run_of([1, 5, 9, None], bad={1}))
    tried = asyncio.run(LargerKOption(6).retrieve(today))
    assert find_changes(today, tried) == (MissChange(1, mended=True, bad=True),)


def test_a_passage_that_the_app_dropped_from_the_prompt_is_not_mended_by_a_search():
    run = run_of([2, 1])
    dropped = run.traces[0].model_copy(update={"prompted": ("p1", "p2")})
    miss = run.links[0].model_copy(update={"retrieval": "miss"})
    run = run.model_copy(update={"traces": (dropped, run.traces[1]), "links": (miss, run.links[1])})
    today = RetrievalBaseline.from_run(run)
    assert find_changes(today, asyncio.run(LargerKOption(6).retrieve(today))) == ()


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
        table = RiskTable(
            int(bad_miss.sum()), int((~bad_miss).sum()), bad_hit, cases - misses - bad_hit
        )
        mended = bad_miss[: misses // 3]
        came = mended.sum() - generator.binomial(len(mended), at_hit)
        found = estimate_avoided(table, changed(mended=mended.tolist()), seed=1)
        covered += found.low <= came <= found.high
    assert covered / repetitions >= 0.93
