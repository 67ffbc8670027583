"""What each judged metric reads from a reply."""

import pytest

from misslink.judge.protocol import Reply
from misslink.registry import judged_metrics
from misslink.types import Case, Trace
from scripted_judge import SUPPORTED, ScriptedJudge, judged, plain, referenced, verdicts

THERE = Case(id="1", question="q", answerable=True)
NOWHERE = Case(id="1", question="q", answerable=False)
ANSWERED, DECLINED = plain(SUPPORTED), plain(response="declines")


@pytest.mark.parametrize(
    ("said", "case", "value", "word", "parts"),
    [
        (ANSWERED, THERE, 1.0, "right:", (0.0, 0.0, None)),
        (DECLINED, THERE, 0.0, "over-refused:", (1.0, 1.0, None)),
        (ANSWERED, NOWHERE, 0.0, "should have abstained:", (0.0, None, 1.0)),
        (DECLINED, NOWHERE, 1.0, "right:", (1.0, None, 0.0)),
    ],
)
def test_the_outcome_is_named_and_each_mistake_counts_among_those_who_can_make_it(
    said, case, value, word, parts
):
    verdict = verdicts(said, case)[0]["abstention"]
    assert (verdict.value, verdict.label) == (value, value == 1.0)
    assert verdict.reason.startswith(word)
    names = ("declined", "over_refused", "should_have_abstained")
    assert tuple(verdict.parts[name] for name in names) == parts


@pytest.mark.parametrize(
    ("claim", "counts"),
    [
        (("The harbour has a large casino.", "unsupported", None), True),
        (("The passages do not say when the harbour closed.", "unsupported", None), False),
        (("The harbour opened its gates in 1904.", "supported", "opened in 1904"), True),
        (SUPPORTED, True),
    ],
)
def test_an_answer_that_declines_and_states_something_is_an_answer(claim, counts):
    found = verdicts(plain(claim, response="declines"), NOWHERE)[0]
    assert found["abstention"].parts["declined"] == float(not counts)
    assert found["faithfulness"].status == ("scored" if counts else "skipped")


def test_what_the_passages_say_beside_an_absence_makes_no_answer():
    claim = ("The harbour opened its gates in 1904.", "supported", "opened in 1904")
    answer = "The harbour opened its gates in 1904. The passages do not say when it closed."
    found = verdicts(plain(claim, response="declines"), NOWHERE, answer)[0]
    assert found["abstention"].parts["declined"] == 1.0


def test_metrics_with_references_call_the_same_answers_declining():
    casino = ("The harbour has a large casino.", "unsupported", None, "contradicts")
    said = referenced([casino], STATED, response="declines")
    found = verdicts(said, noisy_case(), "The harbour has a large casino.")[0]
    assert found["abstention"].parts["declined"] == 0.0
    assert found["correctness"].reason != "the answer declines"


def test_its_probability_is_that_of_what_would_have_been_right():
    given = {"response": {"answers": 0.5, "partly": 0.1, "evades": 0.1, "declines": 0.3}}
    there = verdicts(ANSWERED, THERE, probabilities=given)[0]["abstention"]
    nowhere = verdicts(ANSWERED, NOWHERE, probabilities=given)[0]["abstention"]
    assert there.probability == pytest.approx(0.7)
    assert nowhere.probability == pytest.approx(0.3)


def test_a_judge_that_does_not_weigh_declining_gives_no_probability():
    given = {"response": {"answers": 0.05, "evades": 0.95}}
    assert verdicts(DECLINED, THERE, probabilities=given)[0]["abstention"].probability is None


def referenced_case(*references):
    return Case(id="1", question="q", relevant=["a"], references=references)


def test_it_is_the_share_of_the_best_references_claims_that_is_stated():
    said = referenced(
        [("x", "silent")],
        [
            (1, "p", "states"),
            (1, "q", "omits"),
            (1, "r", "contradicts"),
            (2, "s", "states"),
            (2, "t", "states"),
            (2, "u", "omits"),
        ],
    )
    verdict = verdicts(said, referenced_case("r1", "r2"))[0]["completeness"]
    assert verdict.value == pytest.approx(2 / 3)
    assert verdict.label is False
    assert verdict.reason == "1 of 3 reference claims not stated"
    assert [(claim.text, claim.support) for claim in verdict.claims] == [
        ("s", "supported"),
        ("t", "supported"),
        ("u", "unsupported"),
    ]


def test_what_the_answer_says_besides_does_not_matter():
    said = referenced([("x", "contradicts"), ("y", "silent")], [(1, "p", "states")])
    verdict = verdicts(said, referenced_case("r"))[0]["completeness"]
    assert (verdict.value, verdict.label, verdict.reason) == (1.0, True, None)


def test_its_probability_is_that_of_the_claim_stated_least_probably():
    said = referenced([], [(1, "p", "states"), (1, "q", "states")])
    places = {
        "reference_claims.0.answer": {"states": 0.9, "omits": 0.1},
        "reference_claims.1.answer": {"states": 0.6, "omits": 0.4},
    }
    assert (
        verdicts(said, referenced_case("r"), probabilities=places)[0]["completeness"].probability
        == 0.6
    )
    del places["reference_claims.0.answer"]
    assert (
        verdicts(said, referenced_case("r"), probabilities=places)[0]["completeness"].probability
        is None
    )


def test_to_decline_states_nothing():
    verdict = verdicts(referenced([], [], response="declines"), referenced_case("r"))[0][
        "completeness"
    ]
    assert (verdict.value, verdict.label) == (0.0, False)


def test_without_a_word_on_the_references_it_has_failed_and_without_them_there_is_nothing():
    said = referenced([("x", "agrees")], [(7, "p", "states")])
    assert verdicts(said, referenced_case("r"))[0]["completeness"].status == "failed"
    assert (
        verdicts(said, referenced_case())[0]["completeness"].reason
        == "the case has no reference answer"
    )
    nowhere = Case(id="1", question="q", answerable=False, references=["r"])
    assert verdicts(said, nowhere)[0]["completeness"].status == "skipped"


@pytest.mark.parametrize(
    ("said", "value", "label"), [("yes", 1.0, True), ("partly", 0.5, False), ("no", 0.0, False)]
)
def test_yes_partly_and_no_are_1_a_half_and_0(said, value, label):
    verdict = verdicts(plain(SUPPORTED, sufficient=said))[0]["context_sufficiency"]
    assert (verdict.value, verdict.label) == (value, label)


def test_its_probability_is_that_of_yes_whatever_was_said():
    given = {"sufficient": {"yes": 0.2, "partly": 0.3, "no": 0.5}}
    found, _ = verdicts(plain(SUPPORTED, sufficient="no"), probabilities=given)
    assert found["context_sufficiency"].probability == pytest.approx(0.2)
    assert verdicts(plain(SUPPORTED, sufficient="no"))[0]["context_sufficiency"].probability is None


def test_where_the_judge_does_not_say_there_is_no_value():
    verdict = verdicts(plain(SUPPORTED))[0]["context_sufficiency"]
    assert (verdict.status, verdict.value) == ("skipped", None)
    assert verdict.reason == "the judge does not say whether the passages suffice"


def test_it_is_scored_of_an_unanswerable_question_and_of_a_declining_answer_too():
    nowhere = Case(id="1", question="q", answerable=False)
    said = plain(response="declines", sufficient="yes")
    assert verdicts(said, nowhere)[0]["context_sufficiency"].value == 1.0


def test_nothing_retrieved_is_not_sufficient_whatever_the_judge_knows_by_itself():
    case, trace = Case(id="1", question="q"), Trace(case_id="1", answer="In 1904.")
    judge = ScriptedJudge(Reply(plain(sufficient="yes"), "{}"))
    verdict = judged(case, trace, judge, "context_sufficiency")["context_sufficiency"]
    assert (verdict.value, verdict.reason) == (0.0, "no passage reached the prompt")


def test_passages_that_were_not_seen_are_not_judged():
    trace = Trace(case_id="1", answer="In 1904.", unmeasured="no retriever was called")
    judge = ScriptedJudge(Reply(plain(sufficient="yes"), "{}"))
    verdict = judged(Case(id="1", question="q"), trace, judge, "context_sufficiency")[
        "context_sufficiency"
    ]
    assert verdict.status == "skipped"
    assert judge.asked == []


@pytest.mark.parametrize(
    ("grade", "value", "label"),
    [(1, 0.0, False), (2, 0.25, False), (3, 0.5, False), (4, 0.75, True), (5, 1.0, True)],
)
def test_a_grade_of_1_to_5_is_0_to_1_and_good_from_4(grade, value, label):
    verdict = verdicts(plain(SUPPORTED, helpful=grade))[0]["helpfulness"]
    assert (verdict.value, verdict.label) == (value, label)


def test_its_probability_is_that_of_the_good_grades_together():
    given = {"helpful": {"1": 0.1, "2": 0.1, "3": 0.2, "4": 0.4, "5": 0.2}}
    verdict = verdicts(plain(SUPPORTED, helpful=3), probabilities=given)[0]["helpfulness"]
    assert verdict.probability == pytest.approx(0.6)


def test_without_a_grade_it_has_no_value():
    verdict = verdicts(plain(SUPPORTED))[0]["helpfulness"]
    assert (verdict.status, verdict.value) == ("skipped", None)
    assert verdict.reason == "the judge does not say how helpful the answer is"


def test_who_rightly_declines_is_not_graded_and_who_wrongly_declines_is():
    said = plain(response="declines", helpful=1)
    nowhere = Case(id="1", question="q", answerable=False)
    assert verdicts(said, nowhere)[0]["helpfulness"].status == "skipped"
    there = Case(id="1", question="q", answerable=True)
    assert verdicts(said, there)[0]["helpfulness"].value == 0.0


OPENED = ("The harbour opened in 1904.", "supported", "harbour opened in 1904")
TOLL = ("Ships pay a toll.", "supported", "Ships pay a toll")
CASINO = ("It has a casino.", "unsupported", None)
STATED = [(1, "r", "states")]


def noisy_case(**more):
    return Case(id="1", question="When?", references=["r"], **more)


def test_it_is_the_share_of_claims_that_no_reference_agrees_with_and_a_passage_supports():
    said = referenced([(*OPENED, "agrees"), (*TOLL, "silent"), (*CASINO, "contradicts")], STATED)
    verdict = verdicts(said, noisy_case(relevant=["a"]))[0]["noise_sensitivity"]
    assert verdict.value == pytest.approx(1 / 3), "the casino is wrong, but no passage says so"
    assert verdict.label is False
    assert [claim.text for claim in verdict.claims] == [TOLL[0]]
    assert verdict.parts["relevant"] == 0.0
    assert verdict.parts["irrelevant"] == pytest.approx(1 / 3), "b, which the gold set leaves out"
    assert verdict.parts["contradicted"] == 0.0


def test_a_wrong_claim_from_a_relevant_passage_counts_there():
    said = referenced([(*OPENED, "contradicts"), (*TOLL, "agrees")], STATED)
    verdict = verdicts(said, noisy_case(relevant=["a"]))[0]["noise_sensitivity"]
    assert verdict.value == 0.5
    assert verdict.parts == {"relevant": 0.5, "irrelevant": 0.0, "contradicted": 0.5}


def test_every_sufficient_set_makes_its_passages_relevant():
    said = referenced([(*OPENED, "silent"), (*TOLL, "silent")], STATED)
    either = noisy_case(relevant_any=[["a"], ["b"]])
    assert verdicts(said, either)[0]["noise_sensitivity"].parts["relevant"] == 1.0


def test_without_gold_passages_the_judge_says_which_are_relevant():
    claims = [(*OPENED, "silent"), (*TOLL, "silent")]
    said = referenced(claims, STATED, passages=[(1, True), (2, False)])
    parts = verdicts(said, noisy_case())[0]["noise_sensitivity"].parts
    assert (parts["relevant"], parts["irrelevant"]) == (0.5, 0.5)


def test_where_nobody_says_whether_a_passage_is_relevant_the_parts_are_unknown():
    said = referenced([(*OPENED, "silent"), (*TOLL, "silent")], STATED, passages=[(1, True)])
    verdict = verdicts(said, noisy_case())[0]["noise_sensitivity"]
    assert verdict.value == 1.0
    assert (verdict.parts["relevant"], verdict.parts["irrelevant"]) == (None, None)


def test_the_label_is_good_when_there_is_none_and_lower_is_better():
    said = referenced([(*OPENED, "agrees"), (*CASINO, "contradicts")], STATED)
    verdict = verdicts(said, noisy_case(relevant=["a"]))[0]["noise_sensitivity"]
    assert (verdict.value, verdict.label) == (0.0, True)
    assert judged_metrics.get("noise_sensitivity").better == "low"


def test_without_a_reference_a_claim_or_an_answer_there_is_nothing_to_count():
    nothing = referenced([], STATED)
    assert (
        verdicts(nothing, noisy_case())[0]["noise_sensitivity"].reason
        == "the answer makes no claim"
    )
    declined = referenced([], STATED, response="declines")
    found = verdicts(declined, noisy_case(), "I do not know.")[0]
    assert found["noise_sensitivity"].reason == "the answer declines"
    alone = Case(id="1", question="q")
    assert (
        verdicts(nothing, alone)[0]["noise_sensitivity"].reason
        == "the case has no reference answer"
    )
    nowhere = noisy_case(answerable=False)
    assert verdicts(nothing, nowhere)[0]["noise_sensitivity"].status == "skipped"


CASE = Case(id="1", question="When did the harbour open?")
COPIED = "The harbour opened in 1904. Ships pay a toll."
INVENTED = "The harbour opened in 1904. It sold 300 casino licences to Norway."


ZOO = ("It has a zoo.", "supported", "it has a zoo")
RECALLED = Case(id="1", question="When?", references=["r"])


def test_it_is_the_share_of_claims_that_are_right_and_rest_on_no_passage():
    said = referenced([(*OPENED, "agrees"), (*CASINO, "agrees"), (*CASINO, "silent")], STATED)
    verdict = verdicts(said, RECALLED)[0]["self_knowledge"]
    assert verdict.value == pytest.approx(1 / 3)
    assert verdict.label is False
    assert [(claim.text, claim.correct) for claim in verdict.claims] == [(CASINO[0], True)]


def test_a_claim_whose_quote_is_nowhere_rests_on_no_passage():
    said = referenced([(*ZOO, "agrees"), (*OPENED, "agrees")], STATED)
    assert verdicts(said, RECALLED)[0]["self_knowledge"].value == 0.5


def test_what_is_wrong_is_no_knowledge_and_lower_is_better():
    said = referenced([(*CASINO, "contradicts"), (*OPENED, "agrees")], STATED)
    verdict = verdicts(said, RECALLED)[0]["self_knowledge"]
    assert (verdict.value, verdict.label) == (0.0, True)
    assert judged_metrics.get("self_knowledge").better == "low"


def test_without_any_passage_all_that_is_right_is_the_models_own():
    said = referenced([(*OPENED, "agrees"), (*CASINO, "silent")], STATED)
    trace = Trace(case_id="1", answer="It opened in 1904. It has a casino.")
    judge = ScriptedJudge(Reply(said, "{}"))
    found = judged(RECALLED, trace, judge, "self_knowledge", "noise_sensitivity")
    assert found["self_knowledge"].value == 0.5
    assert found["noise_sensitivity"].reason == "no passage reached the prompt"
