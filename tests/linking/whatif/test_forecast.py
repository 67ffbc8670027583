"""How many failures an option would avoid."""

import asyncio

import numpy as np
import pytest
from scipy.stats import betabinom

from misslink.linking.whatif.forecast import (
    EffectModel,
    ExposureChange,
    Transition,
    avoided_failures,
)
from misslink.linking.whatif.option_evaluation import find_changes
from misslink.linking.whatif.options import RetrievalBaseline, larger_k
from town import link, run_of

RISKS = {"miss": (6, 10), "partial": (4, 10), "hit": (2, 20)}
MODEL = EffectModel(RISKS)
REPLAYED = EffectModel(RISKS, {True: (5, 20), False: (2, 10)})  # 0.25 fail again, 0.2 come to fail


def changed(after, failed, *, better=True):
    """Cases that failed ("x"), did not ("."), or were not judged ("?")."""
    known = {"x": True, ".": False, "?": None}
    return [ExposureChange(at, after, better, known[each]) for at, each in enumerate(failed)]


def test_a_case_takes_the_risk_of_its_new_exposure():
    assert MODEL.avoided(changed("hit", "xxx.")).value == pytest.approx(3 - 0.4)
    assert MODEL.avoided(changed("partial", "x")).value == pytest.approx(1 - 0.4)
    worse = changed("miss", "..x", better=False)
    assert MODEL.avoided(worse).value == pytest.approx(1 - 3 * 0.6)


def test_the_interval_is_that_of_the_beta_binomial():
    found = MODEL.avoided(changed("hit", "x" * 12))
    after = betabinom(12, 2 + 0.75, 18 + 0.75)
    assert (found.low, found.high) == (12 - after.ppf(0.975), 12 - after.ppf(0.025))
    assert found.n == 40


def test_an_option_that_changes_no_case_avoids_nothing_for_certain():
    found = MODEL.avoided([])
    assert (found.value, found.low, found.high) == (0, 0, 0)


def test_cases_that_were_not_judged_do_not_count():
    assert MODEL.avoided(changed("hit", "x?")) == MODEL.avoided(changed("hit", "x"))


def test_without_cases_of_the_new_exposure_there_is_no_forecast():
    found = EffectModel({**RISKS, "hit": (0, 0)}).avoided(changed("hit", "x"))
    assert found.reason_code.code == "no_judged_exposure"
    empty = EffectModel(dict.fromkeys(RISKS, (0, 0))).avoided([])
    assert empty.reason_code.code == "nothing_judged_and_labelled"


def test_a_replay_says_what_becomes_of_failed_cases_and_of_others():
    found = REPLAYED.avoided(changed("hit", "x" * 8 + "." * 5))
    assert found.value == pytest.approx(8 - 8 * 0.25 - 5 * 0.2)
    assert found.method == "replay, binomial"
    assert REPLAYED.avoided(changed("partial", "x")).value == pytest.approx(0.6)


def replayed(case_id, failure, outcome):
    return {"case_id": case_id, "failure": failure, "outcomes": {"missed_passage": outcome}}


@pytest.mark.parametrize(("failed", "good", "enough"), [(10, 10, True), (9, 50, False)])
def test_a_replay_counts_with_ten_misses_of_each_kind(failed, good, enough):
    numbers = range(failed + good)
    rows = [replayed(f"c{n}", "not_indexed" if n < failed else "passed", "good") for n in numbers]
    rows += [replayed("c0", "passed", "inconclusive"), replayed("hit", "distracted", "good")]
    run = run_of([None] * len(numbers), replay={"cases": rows})
    expected = {True: (0, failed), False: (0, good)}
    assert EffectModel.from_run(run).replayed == (expected if enough else None)


def test_the_risks_are_those_of_the_links():
    run = run_of([1, 2, None, 9, 10], bad={1, 3})
    partial = link(0, "partial", "unfaithful")
    run = run.model_copy(update={"links": (*run.links, partial, link(1, "miss", "unknown"))})
    assert EffectModel.from_run(run).risks == {"miss": (1, 3), "partial": (1, 1), "hit": (1, 2)}


def test_a_larger_k_changes_the_cases_between_and_retrieves_their_passages():
    today = RetrievalBaseline.from_run(run_of([1, 5, 9, None], bad={1}))
    tried = asyncio.run(larger_k(6).retrieve(today))
    change = ExposureChange(1, "hit", better=True, failed=True)
    assert find_changes(today, tried) == ((change,), 1)


def test_a_passage_that_the_app_dropped_from_the_prompt_is_not_fixed_by_a_search():
    run = run_of([2, 1])
    dropped = run.traces[0].model_copy(update={"prompted": ("p1", "p2")})
    miss = run.links[0].model_copy(update={"retrieval": "miss"})
    run = run.model_copy(update={"traces": (dropped, run.traces[1]), "links": (miss, run.links[1])})
    today = RetrievalBaseline.from_run(run)
    assert find_changes(today, asyncio.run(larger_k(6).retrieve(today))) == ((), 0)


@pytest.mark.slow
@pytest.mark.parametrize(("at_miss", "at_hit", "cases"), [(0.7, 0.2, 100), (0.5, 0.1, 300)])
def test_the_interval_covers_what_comes(at_miss, at_hit, cases):
    """Of runs with planted risks, a third of whose misses is then really fixed."""
    generator = np.random.default_rng(5)
    covered = 0
    repetitions = 500
    for _ in range(repetitions):
        misses = int(generator.binomial(cases, 0.3)) or 1
        failed = generator.random(misses) < at_miss
        hits = cases - misses
        model = EffectModel(
            {"miss": (int(failed.sum()), misses), "hit": (generator.binomial(hits, at_hit), hits)}
        )
        fixed = failed[: misses // 3]
        came = fixed.sum() - generator.binomial(len(fixed), at_hit)
        found = model.avoided(changed("hit", ["x" if each else "." for each in fixed]), seed=1)
        covered += found.low <= came <= found.high
    assert covered / repetitions >= 0.93


def test_cases_that_no_rerun_stands_for_widen_the_interval():
    seen = avoided_failures([Transition(failed=True, cases=20, seen=(5, 10))], 10, "rerun", 0)
    unseen = avoided_failures([Transition(failed=True, cases=20, seen=(0, 0))], 10, "rerun", 0)
    assert seen.value == unseen.value == 10
    assert unseen.high - unseen.low > seen.high - seen.low
