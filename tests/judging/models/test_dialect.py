from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from honest_judge import small_ask
from misslink.judging.models.dialect import Dialect, Settling

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


def test_each_sample_of_a_question_has_a_seed_of_its_own():
    """A server that honours the seed would draw the same sample again."""
    seeds = [Dialect().request(replace(small_ask(1), repeat=n), **SETTINGS)["seed"] for n in (0, 2)]
    assert seeds == [7, 9]


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
        ("logprobs are not supported", {"logprobs": False}),
        (
            "unsupported: response_format, seed, temperature, top_logprobs and max_tokens",
            dict.fromkeys(("temperature", "seed", "logprobs"), False)
            | {"structure": "json_object", "limit": None},
        ),
    ],
)
def test_what_a_server_complains_about_is_given_up(complaint, expected):
    assert Dialect().without(complaint) == Dialect(**expected)


@pytest.mark.parametrize(
    "complaint",
    [
        "This model's maximum context length is 4096 tokens; your messages have 5000",
        "the prompt is too long",
        "The response was filtered due to the content management policy",
    ],
)
def test_a_complaint_about_the_question_gives_nothing_up(complaint):
    assert Dialect().without(complaint) is None


def test_a_question_for_one_word_is_sent_without_format_and_schema():
    ask = small_ask(1).alone()
    for structure in ("json_schema", "json_object", "plain"):
        body = Dialect(structure=structure).request(ask, **SETTINGS)
        assert "response_format" not in body
        assert body["messages"] == [dict(message) for message in ask.messages]


def test_a_name_that_no_schema_may_have_is_mended():
    ask = replace(small_ask(1), name="what is that? " + "x" * 90)
    name = Dialect().request(ask, **SETTINGS)["response_format"]["json_schema"]["name"]
    assert name == "what_is_that__" + "x" * 50


def wordings(settling, *complaints):
    """In what a question is put to a server that has these complaints, one after the other."""
    tried = [settling.dialect]
    for complaint in complaints:
        other = settling.refused(tried, complaint)
        if other is None:
            return tried, False
        tried.append(other)
    settling.accepted(tried[-1])
    return tried, True


BAREST = Dialect("plain", "max_tokens", *[False] * 4)


def test_the_third_wording_is_the_barest_and_the_last():
    tried, accepted = wordings(Settling(Dialect()), *["Bad Request"] * 9)
    assert tried == [Dialect(), Dialect(structure="json_object"), BAREST]
    assert not accepted


def test_the_barest_keeps_the_limit_unless_it_is_complained_of():
    assert wordings(Settling(Dialect()), "hm", "hm")[0][-1] == BAREST
    assert wordings(Settling(Dialect()), "hm", "max_tokens?")[0][-1].limit is None


def test_a_question_refused_in_every_wording_teaches_nothing():
    settling = Settling(Dialect())
    wordings(settling, *["Bad Request"] * 9)
    assert not settling.settled
    assert wordings(settling) == ([Dialect()], True)


def test_after_three_refusals_the_next_question_has_one_more_wording():
    settling = Settling(Dialect())
    wordings(settling, *["Bad Request"] * 9)
    assert wordings(settling, *["Bad Request"] * 9) == ([Dialect(), BAREST], False)


def test_a_settled_server_may_refuse_one_question_a_parameter():
    settling = Settling(Dialect())
    wordings(settling)
    complaint = "maximum context length is 4096, you asked for 4096 in the completion"
    assert wordings(settling, complaint) == ([Dialect(), Dialect(limit=None)], True)
    assert settling.dialect == Dialect()  # the next one is put with its limit again
    assert wordings(settling, "Bad Request") == ([Dialect()], False)


def test_what_another_question_found_out_is_taken_over():
    settling = Settling(Dialect())
    early = [settling.dialect]
    wordings(settling, "Bad Request")
    assert settling.refused(early, "Bad Request") == Dialect(structure="json_object")


def test_what_is_known_is_learnt_again():
    settling = Settling(Dialect())
    wordings(settling, "logprobs", "Bad Request")
    known = settling.known()
    other = Settling(Dialect())
    assert other.known() == {}
    other.learn(known)
    assert (other.dialect, other.settled, other.known()) == (settling.dialect, True, known)


@pytest.mark.parametrize(
    "change", [{"structure": "xml"}, {"limit": "max"}, {"seed": 1}, {"store": None}]
)
def test_what_is_no_dialect_is_not_learnt(change):
    settling = Settling(Dialect())
    settling.learn({**asdict(BAREST), **change})
    assert (settling.dialect, settling.settled) == (Dialect(), False)


def test_a_format_is_given_up_once_where_the_server_ignores_it():
    settling = Settling(Dialect())
    wordings(settling)
    settling.heard(Dialect(), obeyed=False, ignored=True)
    assert settling.dialect == Dialect(structure="plain")


def test_a_server_that_obeyed_is_not_taken_to_ignore_the_format():
    settling = Settling(Dialect())
    wordings(settling)
    settling.heard(Dialect(), obeyed=True, ignored=False)
    settling.heard(Dialect(), obeyed=False, ignored=True)
    assert settling.dialect == Dialect()
