"""What a server said: words, labels, and answers among other text."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from pydantic import BaseModel

from misslink.judge.backends.response_parsing import (
    DECLINED,
    decode_body,
    extract_answer,
    parse_completion,
)
from misslink.judge.protocol import RetryableError
from misslink.types import Usage


class Said(BaseModel):
    label: str
    score: int | None


PLAIN = '{"label": "yes", "score": 3}'
EXPECTED = Said(label="yes", score=3)


def reply_of(body):
    return parse_completion(body).reply(Said)


def completion(message, finish="stop", **more):
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}], **more})


def test_a_completion_carries_parsed_raw_and_usage():
    body = completion({"content": PLAIN}, usage={"prompt_tokens": 7, "completion_tokens": 2})
    reply = reply_of(body)
    assert (reply.parsed, reply.raw) == (EXPECTED, PLAIN)
    assert reply.usage == Usage(prompt_tokens=7, completion_tokens=2)
    assert reply.problem is None


def test_content_in_parts_is_joined():
    parts = [{"type": "text", "text": PLAIN[:9]}, {"type": "text", "text": PLAIN[9:]}]
    assert reply_of(completion({"content": parts})).parsed == EXPECTED


@pytest.mark.parametrize(
    ("message", "finish", "why"),
    [
        ({"content": '{"label": "ye'}, "length", "cut off at the token limit (max_tokens)"),
        (
            {"content": "", "reasoning": "Hm."},
            "length",
            "cut off at the token limit (max_tokens)",
        ),
        ({"content": None, "tool_calls": [{"type": "function"}]}, "tool_calls", "a tool call"),
        ({"content": None, "function_call": {"name": "f"}}, "function_call", "a tool call"),
        ({"content": None}, "content_filter", "content filter"),
        ({"content": None, "refusal": "I must not."}, "stop", "declined to answer: I must not."),
        ({"content": ""}, "stop", "empty"),
        ({"content": "no JSON here"}, "stop", "not JSON"),
    ],
)
def test_an_unreadable_completion_says_why_and_is_known_to_have_come(message, finish, why):
    reply = reply_of(completion(message, finish))
    assert reply.parsed is None
    assert why in reply.problem
    assert reply.raw
    assert reply.came


REFUSAL = "I'm sorry, but I can't help with that."


def test_a_refusal_sent_as_the_reply_is_one():
    reply = reply_of(completion({"content": REFUSAL}))
    assert (reply.parsed, reply.raw) == (None, REFUSAL)
    assert reply.problem == f"{DECLINED}: {REFUSAL}"


def test_words_of_refusal_beside_json_are_none():
    beside = f'{REFUSAL} {{"label": 7}}'
    assert "does not fit" in reply_of(completion({"content": beside})).problem


def test_a_readable_answer_stands_although_the_limit_was_reached():
    assert reply_of(completion({"content": PLAIN}, "length")).parsed == EXPECTED


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
    with pytest.raises(RetryableError, match="the server"):
        parse_completion(body)


def test_usage_of_a_strange_shape_is_missing_not_zero():
    body = completion({"content": PLAIN}, usage={"prompt_tokens": "many"})
    assert reply_of(body).usage == Usage()
    assert reply_of(completion({"content": PLAIN}, usage=[1])).usage is None


def test_what_a_model_thought_in_a_field_of_its_own_is_no_answer():
    message = {"content": "", "reasoning_content": PLAIN, "reasoning": PLAIN}
    reply = reply_of(completion(message))
    assert reply.parsed is None
    assert "reasoning_content" in reply.raw


def test_parts_without_text_are_passed_over():
    parts = [
        {"type": "thinking", "thinking": []},
        {"text": None},
        "x",
        {"type": "text", "text": PLAIN},
    ]
    assert reply_of(completion({"content": parts})).parsed == EXPECTED


def test_half_characters_become_question_marks_that_a_file_can_hold():
    reply = reply_of(completion({"content": PLAIN.replace("yes", "\ud83d")}))
    assert reply.parsed.label == "?"
    reply.raw.encode()


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\xbd", b"\xf0\x9f"])
def test_a_reply_that_is_no_utf8_is_unreadable_and_is_known_to_have_come(bad):
    body = completion({"content": PLAIN}, usage={"prompt_tokens": 7}).encode()
    reply = reply_of(decode_body(body.replace(b"yes", bad)))
    assert (reply.parsed, reply.problem) == (None, "the reply is not valid UTF-8")
    assert reply.came
    assert reply.usage.prompt_tokens == 7
    reply.raw.encode()
    # Elsewhere than in its words it does not matter.
    beside = body.replace(b'"stop"', b'"stop", "x": "' + bad + b'"')
    assert reply_of(decode_body(beside)).parsed == EXPECTED


@pytest.mark.parametrize("body", [b"\xff", b'"\xff"', b'{"error": "\xff"}'])
def test_what_a_body_of_another_kind_says_can_be_written(body):
    with pytest.raises(RetryableError) as raised:
        parse_completion(decode_body(body))
    raised.value.problem.encode()


class Nested(BaseModel):
    parts: list[Said]
    total: int


def test_of_json_that_breaks_off_the_first_cause_is_told_and_not_that_of_a_part():
    text = f'{{"parts": [{PLAIN}, {PLAIN}], "tot'
    problem = extract_answer(text, Nested).problem
    assert problem.startswith("the reply is not JSON: Invalid JSON: EOF")
    assert "parts" in extract_answer(f'{{"parts": [{PLAIN}, 3], "total": 1}}', Nested).problem


def test_a_choice_that_is_an_error_counts_as_nothing():
    choice = {"message": {"content": None}, "error": {"message": "overloaded"}}
    with pytest.raises(RetryableError, match="overloaded"):
        parse_completion(json.dumps({"choices": [choice]}))


@pytest.mark.parametrize(
    ("content", "structure", "ignores"),
    [
        ("The sky is blue.", "json_schema", True),
        ("The sky is blue.", "json_object", True),
        ("The sky is blue.", "plain", False),
        ('{"verdict": "yes"}', "json_schema", True),
        ("{}", "json_schema", True),
        ("[1, 2]", "json_schema", True),
        ('Here it is: {"label": "yes"}', "json_schema", True),
        ('{"label": "yes", "score": "many"}', "json_schema", False),
        ("I'm sorry, but I can't help with that.", "json_schema", False),
        ('{"verdict": "yes"}', "json_object", False),
        ('{"label": "ye', "json_schema", False),
        ("", "json_schema", False),
    ],
)
def test_other_words_and_json_of_another_shape_ignore_the_format(content, structure, ignores):
    """A value that does not fit does not, and neither does broken JSON or a refusal."""
    assert parse_completion(completion({"content": content})).ignores(structure, Said) is ignores


def test_a_cut_or_declined_reply_ignores_nothing():
    assert not parse_completion(completion({"content": "The sky"}, "length")).ignores(
        "json_schema", Said
    )
    declined = parse_completion(completion({"content": "No.", "refusal": "I must not."}))
    assert not declined.ignores("json_schema", Said)


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
        (f"<think>Perhaps {PLAIN}? Or", "the reply ended during"),
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


def test_a_reply_with_a_key_twice_is_no_answer():
    text = '{"supported": "no", "supported": "yes"}'
    extracted = extract_answer(text, Label)
    assert extracted.answer is None
    assert "the key 'supported' occurs twice" in extracted.problem
