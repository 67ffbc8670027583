"""The heuristic judge on references: what agrees, what contradicts, and what is too short for it."""

import pytest

from heuristic_examination import examined
from misslink.judge.protocol import ExaminationWithReference


def test_references_are_held_against_the_answer_and_the_answer_against_them():
    reply = examined(
        "The tower is 324 metres tall. Paris is the capital.",
        references=["The tower is 330 metres tall.", "Paris is the capital. Cats sleep."],
    )
    assert isinstance(reply.parsed, ExaminationWithReference)
    assert [c.reference for c in reply.parsed.claims] == ["contradicts", "agrees"]
    assert [(r.reference, r.text, r.answer) for r in reply.parsed.reference_claims] == [
        (1, "The tower is 330 metres tall.", "contradicts"),
        (2, "Paris is the capital.", "states"),
        (2, "Cats sleep.", "omits"),
    ]


def agreement(answer, reference, question="What does it return?"):
    said = examined(answer, question, [answer], [reference]).parsed
    return [c.reference for c in said.claims], [r.answer for r in said.reference_claims]


@pytest.mark.parametrize(
    ("answer", "reference", "agrees"),
    [
        ("It returns a non-zero value.", "None.", False),
        ("It returns zero.", "A non-zero value.", False),
        ("It returns None.", "None.", True),
        ("The name is main.", "__main__", False),
        ("The called script.", "`__main__`", False),
        ("It is `__main__`.", "__main__", True),
        ("It returns a list.", "A new list", False),
        ("It returns new lists.", "A new list", True),
        ("330", "It returns 330.", True),
        ("It returns Lyon.", "Paris", False),
        ("The called function returns 7.", "Seven.", True),  # the answer may say more
    ],
)
def test_a_short_reference_is_met_word_for_word_or_not_at_all(answer, reference, agrees):
    expected = (["agrees"], ["states"]) if agrees else (["silent"], ["omits"])
    assert agreement(answer, reference) == expected


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Yes, there is a maximum length.", "No, there is no maximum length."),
        ("Yes, there is a maximum length.", "No."),
        ("No, strings have no maximum length.", "Yes, strings have a maximum length."),
    ],
)
def test_a_yes_contradicts_a_no_whatever_else_is_shared(answer, reference):
    question = "Is there a maximum length of strings?"
    assert agreement(answer, reference, question) == (["contradicts"], ["contradicts"])


def test_a_bare_yes_or_no_is_met_by_its_like():
    question = "Is there a maximum length of strings?"
    assert agreement("No, they can grow.", "No.", question) == (["agrees"], ["states"])
    assert agreement("No.", "No, they can grow.", question) == ([], ["states"])


def test_of_several_references_one_with_the_same_answer_is_enough():
    said = examined(
        "Yes, bread is sold.", "Is bread sold?", ["Bread is sold."], ["No.", "Yes."]
    ).parsed
    assert [c.reference for c in said.claims] == ["agrees"]
    assert [r.answer for r in said.reference_claims] == ["contradicts", "states"]
