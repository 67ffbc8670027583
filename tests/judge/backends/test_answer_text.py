from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel

from misslink.judge.backends.response_parsing import extract_answer, extract_label


class Said(BaseModel):
    label: str
    score: int | None


PLAIN = '{"label": "yes", "score": 3}'
EXPECTED = Said(label="yes", score=3)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        f"\n {PLAIN}\n",
        f"```json\n{PLAIN}\n```",
        f"```\n{PLAIN}\n```\nI hope this helps.",
        f"<think>First {{label}}, then the score.</think>\n{PLAIN}",
        f'<think>Is it {{"label": "no", "score": 1}}?</think>{PLAIN}',
        f'Is it {{"label": "no", "score": 1}}?\n</think>\n\n{PLAIN}',
        f"[THINK]Hm.[/THINK]{PLAIN}",
        f"<think></think><reasoning>{{}}</reasoning>```json\n{PLAIN}\n```",
        f"Sure! Here is the JSON: {PLAIN}",
        f"The sets {{a}} and {{b}} differ. {PLAIN} That is {{all}}.",
        'The format is {"label": "no", "score": null}. My answer: ' + PLAIN,
        '{"label": "yes", "score": 3, "confidence": "high"}',
        '{"label": "yes", "score": "3"}',
    ],
)
def test_an_answer_is_found_however_it_is_wrapped(text):
    found = extract_answer(text, Said)
    assert (found.answer, found.problem) == (EXPECTED, None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("supported", "not JSON"),
        ('{"label": "yes", "score": 3', "not JSON"),
        ('{"label": "yes"}', "score: Field required"),
        ('{"label": "yes", "score": "many"}', "score: "),
        ("[1, 2]", "does not fit"),
        ("{" * 50_000, "not JSON"),
        ("}{", "not JSON"),
        (f"<think>Perhaps {PLAIN}? Or", "done thinking"),
    ],
)
def test_what_is_no_answer_is_none_with_a_reason(text, why):
    found = extract_answer(text, Said)
    assert found.answer is None
    assert why in found.problem


@pytest.mark.parametrize(
    ("text", "misshapen"),
    [
        ('{"verdict": "yes"}', True),
        ('Here it is: {"label": "yes"}', True),
        ('{"label": "yes", "score": "many"}', False),
        ('{"label": "yes", "sco', False),
        ("supported", False),
        (f'The format is {{"label": "no"}}. {PLAIN}', False),
    ],
)
def test_json_that_lacks_a_field_is_known_from_a_value_that_does_not_fit(text, misshapen):
    assert extract_answer(text, Said).misshapen is misshapen


def test_braces_inside_a_quote_do_not_end_the_answer():
    said = Said(label='a "quote} with { braces', score=None)
    assert extract_answer(f"Here: {said.model_dump_json()} Done.", Said).answer == said


class Label(BaseModel):
    supported: Literal["yes", "no", "not sure"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("yes", "yes"),
        (" No.\n", "no"),
        ("**YES**", "yes"),
        ("No, since the year differs.", "no"),
        ("The answer is yes.", "yes"),
        ("not sure", "not sure"),
        ("<think>yes? no?</think>no", "no"),
        ("<think>Is it yes? Then no. Or not?</think>\n\nno", "no"),
        ("yes? no?</think>no", "no"),
        ('{"supported": "yes"}', "yes"),
        ('```json\n{"supported": "no"}\n```', "no"),
        ('{"supported": "no", "because": "it is not sure whether yes would be right"}', "no"),
        ('There is no conflict, so {"supported": "yes"} it is.', "yes"),
        ('No, for the answer only asks for it: {"supported": "yes"}', None),
        ("No, although yes would be kinder.", None),
        ("I see no conflict; everything is stated.", None),
        ("No claim is without a source.", None),
        ("It is not yes", None),
        ("I know nothing of nobody.", None),
        ("It could be yes, or it could be no.", None),
        ("<think>yes", None),
        ("", None),
    ],
)
def test_one_word_is_read_as_the_label(text, label):
    found = extract_label(text, Label)
    assert (found.answer.supported if found.answer else None) == label
    assert bool(found.problem) == (label is None)


class Relevant(BaseModel):
    relevant: bool


class Grade(BaseModel):
    grade: Literal[1, 2, 3]


def test_a_truth_value_is_said_as_yes_or_no():
    assert extract_label("Yes.", Relevant).answer == Relevant(relevant=True)
    assert extract_label("no", Relevant).answer == Relevant(relevant=False)


def test_a_grade_is_read_as_the_number_it_is():
    assert extract_label("Grade: 2", Grade).answer == Grade(grade=2)
    assert extract_label("2 or 3", Grade).answer is None
    assert extract_label("12", Grade).answer is None


def test_a_truth_value_in_json_is_not_taken_for_a_word_that_stands_in_it():
    content = '{"quote": "Answer: yes", "relevant": false}'
    assert extract_label(content, Relevant).answer == Relevant(relevant=False)
