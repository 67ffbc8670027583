"""One word is read as a label only where it stands as an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.judge.reply_text import parse_label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("yes", "yes"),
        ("Yes.", "yes"),
        ("NO", "no"),
        ("**No**", "no"),
        ("`yes`", "yes"),
        ('"Yes"', "yes"),
        ("(no)", "no"),
        ("Answer: yes", "yes"),
        ("answer = NO.", "no"),
        ("The answer is **no**, since passage 2 differs.", "no"),
        ("No, the second sentence stands in none of them.", "no"),
        ("No \u2014 the year differs.", "no"),
        ("No because the year differs.", "no"),
        ("Answer: yes (passage 2)", "yes"),
        ("Answer: **yes** since passage 2 says it", "yes"),
        ('{"supported": "no", "passage": 2}', "no"),
        ("Yes\nEverything stands in passage 1.", "yes"),
        ("Everything the answer states is in passage 1: yes", "yes"),
        ('{"supported": "yes"}', "yes"),
        ('```json\n{"supported": "no"}\n```', "no"),
        ("yes yes", "yes"),
        ("I would say yes.", "yes"),
        ("In short, no.", "no"),
        ("So the answer is no.", "no"),
        ("Everything is stated.\n\nYes", "yes"),
        ("Do the passages state everything that the answer states? Yes.", "yes"),
        ("No, not all of it is stated.", "no"),
        ("- yes", "yes"),
        ("\\boxed{no}", "no"),
        ("\u00a0yes\ufeff", "yes"),
    ],
)
def test_a_label_given_as_an_answer_is_read(text, label):
    assert parse_label(text, ["yes", "no"])[0] == label


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the reply is empty"),
        (" \n", "the reply is empty"),
        ("Yes and no.", "more than one of the labels yes, no"),
        ("yes/no", "more than one"),
        ("Yes, there is no doubt.", "more than one"),
        ("Perhaps.", "none of the labels yes, no"),
        ("I see no conflict between them.", "none of the labels"),
        ("I see no conflict; everything is stated.", "none of the labels"),
        ("No claim is without a source.", "none of the labels"),
        ("There is no conflict between them.", "none of the labels"),
        ("Note: no claim lacks its source.", "none of the labels"),
        ("It is not yes", "none of the labels"),
        ("Yesterday", "none of the labels"),
        ("no-one knows", "none of the labels"),
        ("The Yes men play there tonight.", "none of the labels"),
        ("There is no contradiction: the passages state all of it.", "none of the labels"),
        ("I have no doubt that the passages state everything.", "none of the labels"),
        ("Everything is stated, no exceptions.", "none of the labels"),
        ("There is no.", "none of the labels"),
        ("It is not a yes.", "none of the labels"),
        ("It isn't a yes", "none of the labels"),
        ("It is hardly a yes", "none of the labels"),
        ("Neither is it yes", "none of the labels"),
        ("The answer is not: yes", "none of the labels"),
        ("It depends on whether the answer is yes", "none of the labels"),
        ("The text asks me to answer yes", "none of the labels"),
        ('The answer says: "Answer: yes"', "none of the labels"),
        ("Any conflict? No.", "none of the labels"),
        ("Is anything left out?\nNo.", "none of the labels"),
        ("Contradictions: no", "none of the labels"),
        ("Yes, but not all of it.", "none of the labels"),
        ("Yes. However, the year is missing.", "none of the labels"),
        ("It is all there, no?", "none of the labels"),
        ("No. 1 states all of it.", "none of the labels"),
    ],
)
def test_whatever_else_is_said_is_no_label(text, problem):
    why = parse_label(text, ["yes", "no"])
    assert isinstance(why, str)
    assert problem in why


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Not sure.", "not sure"),
        ("I am not sure", "not sure"),
        ("sure", "sure"),
        ("partly_so", "partly_so"),
        ("partly", None),
        ("Sure, or not sure.", None),
        ("not surely", None),
    ],
)
def test_a_label_of_several_words_is_read_as_a_whole(text, label):
    found = parse_label(text, ["sure", "not sure", "partly_so"])
    assert (found[0] if isinstance(found, tuple) else None) == label


def test_it_says_where_the_label_stands():
    text = "supported -> **Yes**."
    label, start, end = parse_label(text, ["yes", "no"])
    assert (label, text[start:end]) == ("yes", "Yes")
    assert parse_label("no. Later: yes", ["yes", "no"], start=3) == ("yes", 11, 14)


@given(st.text(max_size=60))
def test_any_text_gives_a_label_that_stands_in_it_or_a_reason(text):
    found = parse_label(text, ["yes", "no"])
    if isinstance(found, str):
        assert found.startswith("the reply ")
    else:
        label, start, end = found
        assert text[start:end].casefold() == label
