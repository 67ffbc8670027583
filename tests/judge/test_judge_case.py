"""One case: a verdict per metric, from one reply or from several samples."""

import asyncio
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from misslink.judge.examination import ExaminedPassage
from misslink.judge.judge_case import combine_samples, judge_case
from misslink.judge.judged_metric import (
    Finding,
    JudgedMetric,
    Subject,
    failed_finding,
    skipped_finding,
)
from misslink.judge.protocol import Reply
from misslink.registry import judged_metrics
from misslink.types import Case, Claim, Trace, Usage, Verdict
from scripted_judge import (
    FALSE_QUOTE,
    INVENTED,
    PASSAGES,
    SUPPORTED,
    ScriptedJudge,
    plain,
    referenced,
    verdicts,
)


def test_one_call_serves_all_metrics_and_its_cost_stands_on_one_verdict():
    said = plain(SUPPORTED, passages=[(1, True), (2, False)])
    found, judge = verdicts(said, usage=Usage(prompt_tokens=7), raw="raw")
    assert len(judge.asked) == 1
    assert sum(v.usage is not None for v in found.values()) == 1
    assert sum(v.raw is not None for v in found.values()) == 1


def test_faithfulness_is_the_share_of_claims_with_a_quote_that_is_there():
    found, _ = verdicts(plain(SUPPORTED, INVENTED, FALSE_QUOTE))
    verdict = found["faithfulness"]
    assert verdict.value == pytest.approx(1 / 3)
    assert verdict.label is False
    assert [claim.support for claim in verdict.claims] == [
        "supported",
        "unsupported",
        "unsupported",
    ]
    assert verdicts(plain(SUPPORTED))[0]["faithfulness"].label is True


def test_the_probability_of_an_answer_is_that_of_its_least_probable_claim():
    both = {"claims.0.support": {"supported": 0.9}, "claims.1.support": {"supported": 0.2}}
    assert verdicts(plain(SUPPORTED, INVENTED), probabilities=both)[0][
        "faithfulness"
    ].probability == pytest.approx(0.2)
    one = {"claims.0.support": {"supported": 0.9}}
    found, _ = verdicts(plain(SUPPORTED, INVENTED), probabilities=one)
    assert found["faithfulness"].probability is None, "a claim without one leaves it unknown"
    lied = {f"claims.{n}.support": {"supported": 0.99} for n in range(2)}
    found, _ = verdicts(plain(SUPPORTED, FALSE_QUOTE), probabilities=lied)
    overruled = found["faithfulness"]
    assert (overruled.label, overruled.probability) == (False, None), (
        "it was of a word not believed"
    )


@pytest.mark.parametrize(
    ("response", "value"), [("answers", 1.0), ("partly", 0.5), ("evades", 0.0)]
)
def test_answer_relevance_follows_the_response(response, value):
    found, _ = verdicts(plain(SUPPORTED, response=response))
    assert found["answer_relevance"].value == value


def test_context_relevance_leaves_out_what_the_judge_left_out():
    found, _ = verdicts(plain(SUPPORTED, passages=[(2, True), (9, True)]))
    assert found["context_relevance"].passages == {"a": None, "b": 1.0}
    assert found["context_relevance"].value == 1.0
    found, _ = verdicts(plain(SUPPORTED))
    assert found["context_relevance"].status == "failed"


def test_utilization_counts_needed_passages_that_a_supported_claim_rests_on():
    both = Case(id="1", question="q", relevant=["a", "b", "c"])
    found, _ = verdicts(plain(SUPPORTED), both)
    assert found["context_utilization"].value == 0.5, "c never reached the prompt"
    evidence = Case(id="1", question="q", evidence=["opened in 1904"])
    assert verdicts(plain(SUPPORTED), evidence)[0]["context_utilization"].value == 1.0
    unlisted, _ = verdicts(plain(SUPPORTED, passages=[(1, True), (2, True)]))
    assert unlisted["context_utilization"].value == 0.5, "without gold the judge says what counts"
    absent = Case(id="1", question="q", relevant=["z"])
    assert verdicts(plain(SUPPORTED), absent)[0]["context_utilization"].status == "skipped"


def test_of_several_sufficient_sets_the_one_that_is_used_best_counts():
    either = Case(id="1", question="q", relevant_any=[["a"], ["b", "a"]])
    verdict = verdicts(plain(SUPPORTED), either)[0]["context_utilization"]
    assert (verdict.value, verdict.passages) == (1.0, {"a": 1.0}), "b adds nothing that was needed"
    unused = Case(id="1", question="q", relevant_any=[["c"], ["b"]])
    assert verdicts(plain(SUPPORTED), unused)[0]["context_utilization"].value == 0.0


def test_correctness_is_f1_against_the_best_reference():
    case = Case(id="1", question="q", relevant=["a"], references=["r1", "r2"])
    said = referenced(
        [("x", "agrees"), ("y", "silent"), ("z", "silent"), ("w", "agrees")],
        [(1, "p", "states"), (1, "q", "omits"), (2, "r", "states"), (9, "s", "states")],
    )
    verdict = verdicts(said, case)[0]["correctness"]
    assert verdict.parts == {"precision": 0.5, "recall": 1.0}
    assert verdict.value == pytest.approx(2 / 3)
    assert verdict.label is True
    assert [(claim.text, claim.support) for claim in verdict.claims] == [("r", "supported")]


def test_an_answer_that_contradicts_its_reference_is_wrong_however_much_it_states():
    case = Case(id="1", question="q", relevant=["a"], references=["r1"])
    said = referenced(
        [("x", "agrees"), ("y", "contradicts")], [(1, "p", "states"), (1, "q", "states")]
    )
    assert verdicts(said, case)[0]["correctness"].label is False


def test_a_claim_may_contradict_one_of_several_references_and_be_right_by_another():
    case = Case(id="1", question="q", relevant=["a"], references=["r1", "r2"])
    said = referenced(
        [("x", "contradicts")], [(1, "p", "states"), (2, "q", "contradicts"), (2, "r", "omits")]
    )
    assert verdicts(said, case)[0]["correctness"].label is True


def test_right_by_one_reference_is_right_however_much_it_states_of_a_contradicted_one():
    case = Case(id="1", question="q", relevant=["a"], references=["r1", "r2"])
    said = referenced(
        [("x", "agrees")],
        [
            (1, "p", "states"),
            (1, "q", "states"),
            (1, "r", "contradicts"),
            (2, "s", "states"),
            (2, "t", "omits"),
        ],
    )
    verdict = verdicts(said, case)[0]["correctness"]
    assert (verdict.label, verdict.parts["recall"]) == (True, 0.5)
    assert [claim.text for claim in verdict.claims] == ["s", "t"]


def test_an_answer_without_a_claim_is_as_correct_as_what_it_states():
    case = Case(id="1", question="q", relevant=["a"], references=["Yes."])
    verdict = verdicts(referenced([], [(1, "Yes.", "states")]), case, answer="Yes.")[0][
        "correctness"
    ]
    assert (verdict.value, verdict.label, verdict.parts["precision"]) == (1.0, True, None)


def test_a_declining_answer_has_no_faithfulness_even_if_the_judge_lists_claims():
    found, _ = verdicts(plain(INVENTED, response="declines"))
    assert found["faithfulness"].reason == "the answer declines"


def test_a_judge_that_raises_loses_its_reply_and_not_the_run():
    class Broken(ScriptedJudge):
        async def ask(self, ask):
            raise KeyError("choices")

    case = Case(id="1", question="q")
    trace = Trace(case_id="1", retrieved=PASSAGES, answer="It opened in 1904.")
    metric = judged_metrics.get("faithfulness")
    (verdict,) = asyncio.run(judge_case(Subject(case, trace, 5), [metric], Broken(None)))
    assert (verdict.status, verdict.value) == ("failed", None)
    assert verdict.reason == "the judge raised KeyError: 'choices'"


def test_declining_is_no_claim_wrong_where_there_is_an_answer_and_right_where_there_is_none():
    there = Case(id="1", question="q", relevant=["a"], references=["r"])
    found, _ = verdicts(referenced([], [], response="declines"), there)
    assert found["faithfulness"].status == "skipped"
    assert (found["correctness"].value, found["correctness"].label) == (0.0, False)
    assert found["abstention"].value == 0.0
    nowhere = Case(id="1", question="q", answerable=False, references=["none"])
    found, judge = verdicts(plain(response="declines"), nowhere)
    assert found["abstention"].value == 1.0
    assert found["correctness"].status == "skipped"
    assert "references" not in judge.asked[0].messages[1]["content"]


def test_where_the_gold_set_does_not_say_abstention_has_no_value_but_is_seen():
    found, _ = verdicts(plain(response="declines"))
    assert found["abstention"].status == "skipped"
    assert found["abstention"].parts == {
        "declined": 1.0,
        "over_refused": None,
        "should_have_abstained": None,
    }


def test_a_reply_that_cannot_be_read_fails_every_metric_with_its_text_kept():
    found, _ = verdicts(None, raw="Sure! Here is", problem="no JSON in it")
    assert {v.status for v in found.values()} == {"failed", "skipped"}
    failed = [v for v in found.values() if v.status == "failed"]
    assert all(v.raw == "Sure! Here is" and v.reason == "no JSON in it" for v in failed)
    assert all(v.value is None for v in found.values())


@pytest.mark.parametrize(
    ("answer", "reason"), [(None, "the trace has no answer"), ("  ", "the answer is empty")]
)
def test_without_an_answer_the_judge_is_not_asked(answer, reason):
    found, judge = verdicts(None, answer=answer)
    assert judge.asked == []
    assert found["faithfulness"].reason == reason


def test_a_judge_that_gives_something_else_than_was_asked_fails_with_a_reason():
    found, _ = verdicts(ExaminedPassage(passage=1, relevant=True))
    assert {verdict.status for verdict in found.values()} <= {"failed", "skipped"}
    assert found["faithfulness"].reason == ("the judge gave ExaminedPassage instead of Examination")


def test_an_empty_answer_declines_without_asking_anybody():
    case = Case(id="1", question="When?", relevant=["a"], references=["In 1904."])
    found, judge = verdicts(plain(SUPPORTED), case, answer=" ")
    assert judge.asked == []
    assert (found["abstention"].value, found["abstention"].parts["over_refused"]) == (0.0, 1.0)
    assert (found["correctness"].value, found["correctness"].label) == (0.0, False)
    assert found["completeness"].value == 0.0
    assert found["faithfulness"].reason == "the answer is empty"
    assert {v.status for v in found.values()} == {"scored", "skipped"}


def test_context_relevance_is_as_probable_as_any_relevant_passage():
    chances = {
        "passages.0.relevant": {"true": 0.5, "false": 0.5},
        "passages.1.relevant": {"true": 0.2, "false": 0.8},
    }
    said = plain(SUPPORTED, passages=[(1, True), (2, False)])
    found, _ = verdicts(said, probabilities=chances)
    assert found["context_relevance"].probability == pytest.approx(0.6)
    del chances["passages.1.relevant"]
    assert verdicts(said, probabilities=chances)[0]["context_relevance"].probability is None


def test_a_metric_whose_value_is_no_share_is_refused_and_named_by_its_place():
    class Percent(JudgedMetric):
        name = "percent"

        def read(self, _subject, _reply):
            return Finding("scored", value=97.0, label=True)

    case, trace = Case(id="c", question="When?"), Trace(case_id="c", answer="In 1904.")
    metrics = [judged_metrics.get("faithfulness"), Percent()]
    with pytest.raises(ValidationError) as refused:
        asyncio.run(
            judge_case(Subject(case, trace, 5), metrics, ScriptedJudge(Reply(plain(SUPPORTED), "")))
        )
    assert [error["loc"] for error in refused.value.errors()] == [(1, "value")]


def scored(value, label=None, **more):
    return Finding("scored", value=value, label=label, **more)


def test_one_sample_stays_as_it_is():
    only = scored(0.3, label=False, reason="one of three")
    assert combine_samples([only]) == (only, 0)
    assert combine_samples([failed_finding("not JSON")]) == (failed_finding("not JSON"), 0)


def test_three_samples_by_hand():
    claims = [(Claim(text=text, support="supported"),) for text in "abc"]
    samples = [
        scored(0.5, label=False, probability=0.4, claims=claims[0], parts={"recall": 0.2, "x": 1}),
        scored(1.0, label=True, probability=0.8, claims=claims[1], parts={"recall": 0.4}),
        scored(0.9, label=True, probability=None, claims=claims[2], parts={"recall": None}),
    ]
    found, place = combine_samples(samples)
    assert place == 1  # the first with the most frequent label
    assert found.claims == claims[1]
    assert found.label is True
    assert found.value == pytest.approx(0.8)
    assert found.probability == pytest.approx(0.6)  # of the two that give one
    assert found.parts == {"recall": pytest.approx(0.3), "x": 1}
    assert found.repeats.values == (0.5, 1.0, 0.9)
    assert found.repeats.labels == (False, True, True)
    # Deviations -0.3, 0.2, 0.1: squares sum to 0.14, over n - 1 = 2.
    assert found.repeats.spread == pytest.approx(math.sqrt(0.07))
    assert found.repeats.flipped == pytest.approx(1 / 3)
    assert found.reason is None


def test_a_tie_is_bad_and_half_of_it_flipped():
    found, place = combine_samples([scored(1.0, label=True), scored(0.0, label=False)])
    assert (found.label, found.value, place) == (False, 0.5, 1)
    assert found.repeats.flipped == 0.5


def test_a_failed_sample_is_in_no_mean_and_its_reason_is_kept():
    samples = [
        failed_finding("not JSON"),
        scored(0.4, label=False, reason="2 of 5"),
        scored(0.6, label=False),
    ]
    found, place = combine_samples(samples)
    assert (found.status, found.value, found.label, place) == ("scored", 0.5, False, 1)
    assert found.reason == "2 of 5; 1 of 3 samples have no value (failed: not JSON)"
    assert found.repeats.values == (None, 0.4, 0.6)
    assert found.repeats.labels == (None, False, False)
    assert found.repeats.spread == pytest.approx(math.sqrt(0.02))
    assert found.repeats.flipped == 0.0


def test_one_value_among_samples_without_one_has_no_spread_and_cannot_flip():
    found, place = combine_samples(
        [skipped_finding("the budget is spent"), scored(1.0, label=True), failed_finding("cut off")]
    )
    assert (found.value, found.label, place) == (1.0, True, 1)
    assert found.repeats.spread is None
    assert found.repeats.flipped is None
    assert found.reason == "2 of 3 samples have no value (skipped: the budget is spent)"


@pytest.mark.parametrize(
    ("samples", "status", "place"),
    [
        ([failed_finding("a"), skipped_finding("b"), skipped_finding("c")], "skipped", 1),
        ([skipped_finding("a"), failed_finding("b"), failed_finding("c")], "failed", 1),
        ([skipped_finding("a"), failed_finding("b")], "failed", 1),
        ([skipped_finding("a"), skipped_finding("b")], "skipped", 0),
    ],
)
def test_without_any_value_the_most_frequent_status_stands(samples, status, place):
    found, at = combine_samples(samples)
    assert (found.status, at, found.value, found.label) == (status, place, None, None)
    assert found.reason == samples[place].reason
    assert found.repeats.values == (None,) * len(samples)
    assert found.repeats.flipped is None


def test_a_vote_needs_a_value():
    odd = Finding("failed", label=True, reason="said and withdrawn")
    found, _ = combine_samples([odd, odd, scored(0.0, label=False)])
    assert found.label is False
    assert found.repeats.labels == (None, None, False)


def test_scores_without_labels_have_no_label_and_no_flips():
    found, place = combine_samples([scored(0.2), scored(0.8)])
    assert (found.label, found.value, place) == (None, 0.5, 0)
    assert found.repeats.flipped is None


def test_no_sample_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        combine_samples([])


shares = st.floats(0, 1)
findings = st.one_of(
    st.builds(
        scored,
        shares,
        st.sampled_from([True, False, None]),
        probability=st.one_of(st.none(), shares),
        parts=st.one_of(st.none(), st.dictionaries(st.sampled_from("pr"), shares)),
    ),
    st.sampled_from([failed_finding("not JSON"), skipped_finding("no claims")]),
)


@given(st.lists(findings, min_size=2, max_size=7))
def test_whatever_the_samples_the_verdict_is_whole(samples):
    found, place = combine_samples(samples)
    # A Verdict refuses a value outside [0, 1], NaN, and a missing value without a reason.
    Verdict(
        case_id="1",
        metric="m",
        judge="j",
        status=found.status,
        value=found.value,
        label=found.label,
        probability=found.probability,
        parts=found.parts or {},
        reason=found.reason,
        repeats=found.repeats,
    )
    assert samples[place].status == found.status
    values = [sample.value for sample in samples if sample.value is not None]
    assert (found.value is None) == (not values)
    if values:
        assert min(values) <= found.value <= max(values)
        assert found.value == pytest.approx(np.mean(values))
    if len(values) > 1:
        assert found.repeats.spread == pytest.approx(np.std(values, ddof=1), abs=1e-12)
    labels = [s.label for s in samples if s.value is not None and s.label is not None]
    if labels:
        assert found.label in labels
        assert labels.count(found.label) >= labels.count(not found.label)
    if len(labels) > 1:
        differing = labels.count(not found.label)
        assert found.repeats.flipped == pytest.approx(differing / len(labels))
        assert found.repeats.flipped <= 0.5


@given(st.lists(findings, min_size=2, max_size=5))
def test_the_order_of_the_samples_changes_neither_value_nor_label(samples):
    numbers = {
        (
            found.status,
            found.value,
            found.label,
            found.probability,
            found.repeats.spread,
            found.repeats.flipped,
        )
        for found, _ in map(combine_samples, itertools.islice(itertools.permutations(samples), 24))
    }
    assert len(numbers) == 1


@given(findings, st.integers(2, 6))
def test_samples_that_agree_have_the_verdict_of_one(sample, times):
    found, place = combine_samples([sample] * times)
    assert (found.value, found.label, found.probability) == (
        sample.value,
        sample.label,
        sample.probability,
    )
    assert (found.reason, place) == (sample.reason, 0)
    assert found.repeats.spread in {None, 0.0}
    assert found.repeats.flipped in {None, 0.0}


def test_claims_are_those_of_the_reply_and_not_of_one_that_is_gone():
    trace = Trace(case_id="1", retrieved=PASSAGES, answer="It opened in 1904. It has a casino.")
    subject = Subject(Case(id="1", question="When did it open?"), trace, 5)
    for _ in range(20):
        for said in (SUPPORTED, INVENTED):
            (claim,) = subject.claims(Reply(plain(said), "{}"))
            assert claim.text == said[0]
