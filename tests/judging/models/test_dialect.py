from __future__ import annotations

import json

import pytest

from honest_judge import small_ask
from misslink.judging.models.dialect import Dialect

SETTINGS = {"model": "m", "temperature": 0.0, "seed": 7, "max_tokens": 100}


def test_the_first_request_asks_for_a_strict_schema():
    ask = small_ask(1)
    body = Dialect().request(ask, **SETTINGS)
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "examination", "schema": ask.json_schema, "strict": True},
    }
    assert body["messages"] == [dict(message) for message in ask.messages]
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.0, 7, 100)


@pytest.mark.parametrize("structure", ["json_object", "plain"])
def test_without_a_schema_parameter_the_schema_stands_in_the_system_message(structure):
    ask = small_ask(1)
    body = Dialect(structure=structure).request(ask, **SETTINGS)
    written = body["messages"][0]["content"].splitlines()[-1]
    assert json.loads(written) == ask.json_schema
    assert body["messages"][1:] == [dict(message) for message in ask.messages[1:]]
    assert body.get("response_format") == (
        {"type": "json_object"} if structure == "json_object" else None
    )


def test_a_seed_of_none_is_not_sent():
    assert "seed" not in Dialect().request(small_ask(1), **{**SETTINGS, "seed": None})


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
    ],
)
def test_what_a_server_complains_about_is_given_up(complaint, expected):
    assert Dialect().without(complaint) == Dialect(**expected)


def test_giving_up_comes_to_an_end():
    complaints = "max_tokens temperature seed"
    dialect, steps = Dialect(), 0
    while dialect is not None:
        dialect, steps = dialect.without(complaints), steps + 1
    assert steps == 6  # limit, temperature, seed, two simpler structures, then nothing
