"""What a case's answers say about its cause, and what is asked next."""

import pytest

from misslink.linking.replay.sequence import (
    ARMS,
    CHANCE,
    GENERATOR,
    MAX_CALLS,
    PLACEBO,
    Calls,
    CauseEvidence,
    confirm,
    possible_causes,
)

QUERY, MISSED, WHOLE, WITHOUT, PERFECT = ARMS
QUIET = (0, 30)  # placebos of other cases: none was good


def calls(*answers, arms=(MISSED, PERFECT)):
    made = Calls(arms, complete=PERFECT in arms)
    for arm, good in answers:
        made.add(arm, good=good)
    return made


@pytest.mark.parametrize(
    ("answers", "arms", "cause"),
    [
        ([(MISSED, True), (PLACEBO, False)], (MISSED, PERFECT), "missed_passage"),
        ([(MISSED, False), (PERFECT, False)], (MISSED, PERFECT), GENERATOR),
        ([(MISSED, False), (PERFECT, True)], (MISSED, PERFECT), "missed_passage+distractor"),
        ([(MISSED, True), (PLACEBO, True)], (MISSED, PERFECT), CHANCE),
        ([(PERFECT, True), (PLACEBO, False)], (PERFECT,), "distractor"),
        ([(WITHOUT, True), (PLACEBO, False)], (WITHOUT, PERFECT), "distractor"),
        ([(WHOLE, True), (PLACEBO, False)], (WHOLE, PERFECT), "cut_passage"),
        ([(MISSED, True), (QUERY, True)], (QUERY, MISSED, PERFECT), "query"),
        ([(MISSED, True), (QUERY, False)], (QUERY, MISSED, PERFECT), "missed_passage"),
        ([(PLACEBO, False)], (), GENERATOR),
    ],
)
def test_the_arms_that_hold_name_the_cause(answers, arms, cause):
    made = calls(*answers, arms=arms)
    made.causes = possible_causes(arms, complete=True)
    assert made.find(QUIET).cause == cause


def test_the_first_calls_follow_the_apps_steps_and_stop_at_the_arm_that_holds():
    assert calls().next_call(QUIET) == MISSED
    assert calls((MISSED, True)).next_call(QUIET) == PLACEBO
    assert calls((MISSED, False), (PLACEBO, False)).next_call(QUIET) == PERFECT
    assert calls((MISSED, True), (PLACEBO, False)).find(QUIET).e > 20
    made = calls((MISSED, True), (QUERY, False), (PLACEBO, False), arms=(QUERY, MISSED, PERFECT))
    assert made.find(QUIET).e > 10


def test_where_placebos_turn_answers_good_more_is_needed():
    pair = calls((MISSED, True), (PLACEBO, False))
    assert pair.find((0, 30)).e > pair.find((3, 30)).e > pair.find((15, 30)).e
    assert pair.find((15, 30)).e < 5
    assert calls(*[(MISSED, True), (PLACEBO, False)] * 5).find((15, 30)).e > 20


def test_a_case_that_no_answer_could_settle_is_given_up():
    assert calls().can_settle(QUIET)
    assert not calls(*[(MISSED, True), (PLACEBO, True)] * 4).can_settle((25, 30))  # chance
    assert not calls(*[(MISSED, True), (PLACEBO, False)] * (MAX_CALLS // 2)).can_settle(QUIET)
    undecided = [(MISSED, True), (MISSED, False), (PLACEBO, True), (PLACEBO, False)] * 2
    assert not calls(*undecided).can_settle((15, 30))


def test_an_app_that_is_mostly_right_by_luck_confirms_nothing():
    for answers in ([(MISSED, True), (PLACEBO, False)], [(MISSED, False), (PERFECT, False)]):
        assert calls(*answers).find((27, 30)).e < 20


def test_the_bar_falls_with_the_number_of_causes_that_stand():
    found = [CauseEvidence(GENERATOR, 25.0)] * 8 + [CauseEvidence(GENERATOR, 5.0)] * 2
    assert confirm(found, 10) == [True] * 8 + [False] * 2
    assert confirm(found[:1] + found[8:], 3) == [False] * 3
    assert confirm([], 0) == []
