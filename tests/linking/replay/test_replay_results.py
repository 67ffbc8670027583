"""Net effects, confirmation and the causal fraction, and how often the intervals hold the truth."""

import pytest

import replay as bench
from misslink.linking.replay.results import (
    ReplayOutcome,
    ReplayRecord,
    causal_fraction,
    confirmed_cases,
    net_effect,
)
from misslink.linking.replay.sequence import CauseEvidence

GOOD, BAD = ReplayOutcome(bad=False, name="good"), ReplayOutcome(bad=True, name="wrong")
MISSED = "missed_passage"
ROUNDS = 12  # 96 replays, of which 95% are 91 and two standard errors 4
FIXED, BOTH, PLACEBO, NEITHER = (MISSED,), (MISSED, "placebo"), ("placebo",), ()


def records(*kinds, group="retrieval_miss", **more):
    """Failed answers, each with the arms that turn it good."""
    return [
        ReplayRecord(
            f"{group}-{n}",
            group,
            {"observed": BAD, MISSED: GOOD if MISSED in turning else BAD},
            placebos={MISSED: GOOD if "placebo" in turning else BAD},
            **more,
        )
        for n, turning in enumerate(kinds)
    ]


def test_the_net_effect_is_what_the_placebo_does_not_do():
    found = net_effect(records(*[FIXED] * 6, *[BOTH] * 4, *[PLACEBO] * 2, *[NEITHER] * 8))
    assert found.value == pytest.approx((6 - 2) / 20)
    assert found.low < 0 < found.value < found.high
    assert found.n == 20
    assert net_effect([]).value is None


def test_an_answer_that_was_good_by_the_same_evidence_is_not_fixed():
    (true,) = records(FIXED)
    outcomes = dict(true.outcomes) | {"observed": GOOD}
    true = ReplayRecord("c", "retrieval_miss", outcomes, placebos=true.placebos)
    assert not true.turned(MISSED)
    assert net_effect([true] * 10).value == 0.0


def test_a_good_answer_turns_where_an_arm_breaks_it():
    outcomes = {"observed": GOOD, MISSED: BAD}
    broken = ReplayRecord("c", "passed", outcomes, placebos={MISSED: GOOD})
    assert (broken.turned(MISSED), broken.turned("placebo")) == (True, False)


def test_a_bad_answer_that_is_bad_in_another_way_is_not_flaky():
    """The placebo is another prompt, and an app that never varies answers it otherwise."""

    def flaky(observed, placebo):
        return ReplayRecord("c", "m", {"observed": observed}, placebos={MISSED: placebo}).flaky

    declined = ReplayOutcome(bad=True, name="over_refused")
    assert (flaky(BAD, declined), flaky(BAD, BAD), flaky(BAD, GOOD)) == (False, False, True)
    assert flaky(BAD, ReplayOutcome(bad=None, name="inconclusive")) is None


class TestConfirmed:
    def found(self, *findings):
        return [
            ReplayRecord(str(n), "fabricated", {"observed": BAD}, finding=CauseEvidence(*finding))
            for n, finding in enumerate(findings)
        ]

    def test_the_more_causes_stand_the_less_each_needs(self):
        assert confirmed_cases(self.found(("generator", 19.0))) == set()
        assert confirmed_cases(self.found(("generator", 20.0))) == {"0"}
        two = self.found(("generator", 30.0), ("distractor", 1.0))
        assert confirmed_cases(two) == set()  # one of two cases: 40
        both = self.found(("generator", 30.0), ("distractor", 20.0))
        assert confirmed_cases(both) == {"0", "1"}

    def test_chance_is_no_cause_and_a_wrong_verdict_needs_no_test(self):
        assert confirmed_cases(self.found(("chance", 1e6))) == set()
        wrong = ReplayRecord("w", "fabricated", {"observed": GOOD}, settled=True,
                             finding=CauseEvidence("judge", float("inf")))  # fmt: skip
        assert confirmed_cases([wrong, *self.found(("generator", 20.0))]) == {"w", "0"}


class TestCausalFraction:
    def test_it_is_the_net_effect_over_all_failed_answers(self):
        found = causal_fraction(40, {"retrieval_miss": 20}, records(*[FIXED] * 10, *[NEITHER] * 10))
        assert found.value == pytest.approx(0.25)
        assert found.low < 0.25 < found.high
        assert found.n == 20

    def test_each_mode_is_weighted_back_to_the_run(self):
        drawn = records(*[FIXED] * 10) + records(*[NEITHER] * 10, group="distracted")
        found = causal_fraction(100, {"retrieval_miss": 60, "distracted": 20}, drawn)
        assert found.value == pytest.approx(0.6)

    def test_a_mode_without_a_replay_is_taken_to_be_like_the_others(self):
        drawn = records(*[FIXED] * 10)
        assert causal_fraction(
            100, {"retrieval_miss": 40, "not_indexed": 10}, drawn
        ).value == pytest.approx(0.5)

    def test_good_answers_that_the_placebo_breaks_and_the_passages_save_count(self):
        drawn = records(*[FIXED] * 4, *[BOTH] * 4, *[NEITHER] * 2)
        saved = records(*[FIXED] * 3, *[BOTH] * 7, group="passed")  # the arms that end well
        found = causal_fraction(20, {"retrieval_miss": 10, "passed": 30}, [*drawn, *saved])
        assert found.value == pytest.approx((10 * 0.4 + 30 * 0.3) / 20)
        assert found.low < found.value < found.high
        assert found.n == 20
        broken = records(*[PLACEBO] * 3, *[BOTH] * 7, group="passed")
        less = causal_fraction(20, {"retrieval_miss": 10, "passed": 30}, [*drawn, *broken])
        assert less.value == pytest.approx((10 * 0.4 - 30 * 0.3) / 20)

    def test_good_answers_that_were_not_replayed_count_as_unmoved(self):
        drawn = records(*[FIXED] * 4, *[NEITHER] * 6)
        assert causal_fraction(20, {"retrieval_miss": 10, "passed": 30}, drawn) == causal_fraction(
            20, {"retrieval_miss": 10}, drawn
        )

    def test_it_is_a_share(self):
        drawn = records(*[FIXED] * 10)
        saved = records(*[FIXED] * 10, group="passed")
        found = causal_fraction(10, {"retrieval_miss": 10, "passed": 40}, [*drawn, *saved])
        assert (found.value, found.high) == (1.0, 1.0)

    def test_the_interval_is_seeded_and_shrinks_with_cases(self):
        def width(times, seed=0):
            drawn = records(*([FIXED] * 6 + [NEITHER] * 3 + [PLACEBO]) * times)
            found = causal_fraction(20 * times, {"retrieval_miss": 10 * times}, drawn, seed=seed)
            return found.high - found.low

        assert width(1) == width(1)
        assert width(1) != width(1, seed=1)
        assert width(16) < width(1) / 3

    @pytest.mark.parametrize(
        ("failed", "missed", "replayed", "reason"),
        [
            (0, {}, 0, "no answer of the run failed"),
            (5, {}, 0, "no failed answer missed a passage"),
            (20, {"retrieval_miss": 12}, 9, "9 failed answers were replayed, and below 10"),
            (20, {"retrieval_miss": 1}, 1, "1 failed answer was replayed, and below 10"),
        ],
    )
    def test_without_enough_cases_it_says_why(self, failed, missed, replayed, reason):
        found = causal_fraction(failed, missed, records(*[FIXED] * replayed))
        assert (found.value, found.low, found.high) == (None, None, None)
        assert reason in found.reason


@pytest.mark.slow
def test_an_app_that_is_right_by_luck_in_half_of_its_prompts_is_not_underestimated():
    (scenario,) = [one for one in bench.EFFECT if one.name.startswith("good by luck")]
    found = bench.conclude(scenario, 6)
    assert abs(found.value - found.truth) < 0.12  # 0.33 without the good answers, for 0.67
    assert found.causal >= 0.8


@pytest.mark.slow
def test_a_few_simulated_replays_conclude_rightly():
    null = bench.conclude(bench.NULL[0], 5)
    assert null.confirmed + null.generator < 0.05
    assert null.net_holds_zero >= 4 / 5
    effect = bench.conclude(bench.EFFECT[0], 3)
    assert effect.confirmed > 0.5
    assert abs(effect.value - effect.truth) < 0.1


# Of 25 replays a coverage has a standard error of 4.4%, of all apps together 1.5%. Each may be 2.5 of
# its own below 95%, and so may all together: 91%.
@pytest.mark.slow
def test_passages_without_an_effect_are_confirmed_in_under_5_percent():
    found = [bench.conclude(scenario, ROUNDS) for scenario in bench.NULL]
    assert max(each.confirmed for each in found) < 0.05
    for held in ([each.net_holds_zero for each in found], [each.causal for each in found]):
        assert min(held) >= 0.83
        assert sum(held) / len(held) >= 0.91


@pytest.mark.slow
def test_the_interval_of_the_causal_fraction_covers_the_truth():
    held = [bench.conclude(scenario, ROUNDS).causal for scenario in bench.EFFECT]
    assert min(held) >= 0.83
    assert sum(held) / len(held) >= 0.91


@pytest.mark.slow
def test_a_planted_cause_is_found_with_fewer_calls_than_arms():
    by_name = {one.name: one for one in bench.PLANTED}
    found = bench.settle(by_name["noise 0.00"], 3)
    assert found.right >= 0.95
    assert found.cause >= 0.95
    assert found.confirmed >= 0.95
    assert found.calls < 3
    assert found.ruled < 0.9  # what the rules say without a replay


@pytest.mark.slow
def test_where_nothing_is_causal_nothing_is_confirmed():
    by_name = {one.name: one for one in bench.PLANTED}
    assert bench.settle(by_name["nothing is causal, noise 0.05"], 1).false <= 0.05
    assert bench.settle(by_name["nothing is causal, noise 0.35"], 1).false <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("scenario", bench.PLANTED, ids=lambda scenario: scenario.name)
def test_the_goals_hold_in_each_simulated_app(scenario):
    found = bench.settle(scenario, 3)  # 120 failures, and right owners in over 95% of them
    assert found.right is None or found.right >= 0.85
    assert found.false is None or found.false <= 0.05
    assert scenario.noise or found.calls <= 6
