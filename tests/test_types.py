"""The nouns refuse what cannot be, and read what people write."""

import pytest
from pydantic import ValidationError

from misslink.types import Case, Estimate, Passage, Trace, Verdict


def test_a_case_reads_relevant_as_id_list_or_grades():
    assert Case(question="q", relevant="a").relevant == {"a": 1}
    assert Case(question="q", relevant=["a", "b"]).relevant == {"a": 1, "b": 1}
    assert Case(question="q", relevant={"a": 2, "b": 0}).relevant == {"a": 2, "b": 0}


def test_a_case_reads_query_and_reference_by_their_other_names():
    case = Case.model_validate({"query": "q", "reference": "r"})
    assert (case.question, case.references) == ("q", ("r",))
    assert Case.model_validate({"question": "q", "reference": ["r", "s"]}).references == ("r", "s")


def test_a_missing_id_is_a_hash_of_the_question_and_so_stays_the_same():
    one, two = Case(question="What?"), Case(question="What?")
    assert one.id == two.id
    assert one.id.startswith("q-")
    assert Case(question="Other?").id != one.id


def test_a_numeric_id_becomes_text_and_a_boolean_is_refused():
    assert Case(id=7, question="q").id == "7"
    with pytest.raises(ValidationError):
        Case(id=True, question="q")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"relevant": ["a"]}, True),
        ({"relevant": {"a": 0}}, None),
        ({"evidence": ["text"]}, True),
        ({"relevant_any": [["a"]]}, True),
        ({"relevant": ["a"], "answerable": False}, False),
    ],
)
def test_a_case_that_lists_relevant_passages_expects_an_answer(fields, expected):
    assert Case.model_validate({"question": "q", **fields}).expects_answer is expected


def test_a_case_refuses_negative_grades_blank_evidence_and_unknown_fields():
    for wrong in ({"relevant": {"a": -1}}, {"evidence": [" "]}, {"relevent": ["a"]}):
        with pytest.raises(ValidationError):
            Case.model_validate({"question": "q", **wrong})


def test_context_is_what_reached_the_prompt_else_the_first_k():
    passages = tuple(Passage(id=i, rank=r) for r, i in enumerate("abcd", start=1))
    seen = Trace(case_id="1", retrieved=passages, prompted=("d", "a"))
    assert [p.id for p in seen.context(2)] == ["a", "d"]
    assert [p.id for p in Trace(case_id="1", retrieved=passages).context(2)] == ["a", "b"]
    assert Trace(case_id="1", retrieved=passages, prompted=()).context(2) == ()


def test_a_verdict_has_a_value_exactly_when_it_is_scored():
    Verdict(case_id="1", metric="m", status="scored", value=0.0, judge="j")
    for wrong in (
        {"status": "scored", "value": None},
        {"status": "failed", "value": 0.0, "reason": "r"},
        {"status": "skipped", "value": None},
    ):
        with pytest.raises(ValidationError):
            Verdict(case_id="1", metric="m", judge="j", **wrong)


def test_no_noun_takes_nan_or_infinity():
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValidationError):
            Estimate(value=value, low=0, high=1, n=1, method="m")
        with pytest.raises(ValidationError):
            Passage(id="a", rank=1, score=value)


def test_an_estimate_that_is_missing_says_why():
    assert Estimate.missing("no case").reason == "no case"
    with pytest.raises(ValidationError):
        Estimate(value=None, low=None, high=None, n=0, method="m")


@pytest.mark.parametrize(
    "invisible",
    ["\u200b", "\u2060 \u00ad", "\u3164", "\u115f\U000e0041\ufe0f", "\u202e\u202c", "\x1b"],
)
def test_what_no_reader_sees_is_blank(invisible):
    with pytest.raises(ValidationError, match="the question is blank"):
        Case(question=invisible)
    assert Case(question="Price?", references=[invisible, "12"]).references == ("12",)
    assert Trace(case_id="a", answer=invisible).answer == ""
    assert Trace(case_id="a", answer=f"12{invisible}").answer == f"12{invisible}"
