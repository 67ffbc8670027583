import json
from dataclasses import replace

import pytest

from honest_judge import small_ask
from misslink.judge.backends.request_format import RequestFormat

SETTINGS = {"model": "m", "temperature": 0.0, "seed": 7, "max_tokens": 100}


def test_the_first_request_asks_for_a_strict_schema():
    ask = small_ask(1)
    body = RequestFormat().request(ask, **SETTINGS)
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "examination", "schema": ask.json_schema, "strict": True},
    }
    assert body["messages"] == [dict(message) for message in ask.messages]
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.0, 7, 100)


@pytest.mark.parametrize("structure", ["json_object", "plain"])
def test_without_a_schema_parameter_the_schema_stands_in_the_system_message(structure):
    ask = small_ask(1)
    body = RequestFormat(structure=structure).request(ask, **SETTINGS)
    written = body["messages"][0]["content"].splitlines()[-1]
    assert json.loads(written) == ask.json_schema
    assert body["messages"][1:] == [dict(message) for message in ask.messages[1:]]
    assert body.get("response_format") == (
        {"type": "json_object"} if structure == "json_object" else None
    )


def test_each_sample_of_a_question_has_a_seed_of_its_own():
    """A server that honours the seed would draw the same sample again."""
    seeds = [
        RequestFormat().request(replace(small_ask(1), repeat=n), **SETTINGS)["seed"] for n in (0, 2)
    ]
    assert seeds == [7, 9]


@pytest.mark.parametrize(
    ("complaint", "expected"),
    [
        ("'response_format' of type 'json_schema' is not supported", {"structure": "json_object"}),
        ("Bad Request", {"structure": "json_object"}),
        ("failed to parse grammar", {"structure": "json_object"}),
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            {"limit": "max_completion_tokens"},
        ),
        ("'max_tokens' is too large: 4096", {"limit": None}),
        ("'temperature' does not support 0.0 with this model", {"temperature": False}),
        ("Unknown parameter: seed", {"seed": False}),
        ("seedling is no word here", {"structure": "json_object"}),
        ("logprobs are not supported", {"logprobs": False}),
        (
            "unsupported: response_format, seed, temperature, top_logprobs and max_tokens",
            dict.fromkeys(("temperature", "seed", "logprobs"), False) | {"limit": None},
        ),
    ],
)
def test_what_a_server_complains_about_is_given_up(complaint, expected):
    assert RequestFormat().simpler(complaint) == RequestFormat(**expected)


@pytest.mark.parametrize(
    "complaint",
    [
        "This model's maximum context length is 4096 tokens; your messages have 5000",
        "the prompt is too long",
        "The response was filtered due to the content management policy",
    ],
)
def test_a_complaint_about_the_question_gives_nothing_up(complaint):
    assert RequestFormat().simpler(complaint) is None


def test_a_name_that_no_schema_may_have_is_mended():
    ask = replace(small_ask(1), name="what is that? " + "x" * 90)
    name = RequestFormat().request(ask, **SETTINGS)["response_format"]["json_schema"]["name"]
    assert name == "what_is_that__" + "x" * 50
