from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from misslink.judging.models.reading import read_answer, read_completion
from misslink.judging.protocol import Reply
from misslink.types import Usage


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
        f"Sure! Here is the JSON: {PLAIN}",
        f"The sets {{a}} and {{b}} differ. {PLAIN} That is {{all}}.",
        'The format is {"label": "no", "score": null}. My answer: ' + PLAIN,
        '{"label": "yes", "score": 3, "confidence": "high"}',
        '{"label": "yes", "score": "3"}',
    ],
)
def test_an_answer_is_found_however_it_is_wrapped(text):
    assert read_answer(text, Said) == (EXPECTED, None)


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
    ],
)
def test_what_is_no_answer_is_none_with_a_reason(text, why):
    answer, problem = read_answer(text, Said)
    assert answer is None
    assert why in problem


def test_braces_inside_a_quote_do_not_end_the_answer():
    text = json.dumps({"label": 'a "quote} with { braces', "score": None})
    answer, _ = read_answer(f"Here: {text} Done.", Said)
    assert answer == Said(label='a "quote} with { braces', score=None)


def completion(message, finish="stop", **more):
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}], **more})


def test_a_completion_carries_parsed_raw_and_usage():
    body = completion({"content": PLAIN}, usage={"prompt_tokens": 7, "completion_tokens": 2})
    reply = read_completion(body, Said)
    assert (reply.parsed, reply.raw) == (EXPECTED, PLAIN)
    assert reply.usage == Usage(prompt_tokens=7, completion_tokens=2)
    assert reply.problem is None


def test_content_in_parts_is_joined():
    parts = [{"type": "text", "text": PLAIN[:9]}, {"type": "text", "text": PLAIN[9:]}]
    assert read_completion(completion({"content": parts}), Said).parsed == EXPECTED


@pytest.mark.parametrize(
    ("message", "finish", "why"),
    [
        ({"content": '{"label": "ye'}, "length", "cut off at the token limit"),
        ({"content": None}, "content_filter", "content filter"),
        ({"content": None, "refusal": "I must not."}, "stop", "declined to answer: I must not."),
        ({"content": ""}, "stop", "empty"),
        ({"content": "no JSON here"}, "stop", "not JSON"),
    ],
)
def test_an_unreadable_completion_says_why_and_is_known_to_have_come(message, finish, why):
    reply = read_completion(completion(message, finish), Said)
    assert reply.parsed is None
    assert why in reply.problem
    assert reply.raw
    assert reply.came


def test_a_readable_answer_stands_although_the_limit_was_reached():
    assert read_completion(completion({"content": PLAIN}, "length"), Said).parsed == EXPECTED


@pytest.mark.parametrize(
    "body",
    [
        "<html>Bad gateway</html>",
        "",
        "[]",
        "null",
        '{"error": {"message": "overloaded"}}',
        '{"choices": []}',
        '{"choices": [null]}',
        '{"choices": [{"message": null}]}',
    ],
)
def test_a_body_without_a_completion_counts_as_nothing(body):
    reply = read_completion(body, Said)
    assert reply.problem
    assert not reply.came


def test_usage_of_a_strange_shape_is_missing_not_zero():
    body = completion({"content": PLAIN}, usage={"prompt_tokens": "many"})
    assert read_completion(body, Said).usage == Usage()
    assert read_completion(completion({"content": PLAIN}, usage=[1]), Said).usage is None


def test_nothing_is_nothing():
    assert not Reply.nothing("the server hung up").came
