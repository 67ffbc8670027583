"""The address of a server, its errors, and what it lists of its models."""

import pytest

from misslink.errors import InputError
from misslink.judge.backends.connection import (
    parse_model_listing,
    parse_price,
    resolve_address,
)
from misslink.judge.config import Price

KEY = "sk-secret-0123456789"


@pytest.mark.parametrize("url", [None, "https://api.openai.com/v1"])
def test_openai_itself_needs_a_key(url):
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        resolve_address("openai:m", url, None)


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "http://host:port/v1", KEY])
def test_a_base_url_that_is_no_address_is_refused_unrepeated(url):
    with pytest.raises(InputError, match="base URL") as raised:
        resolve_address("openai:m", url, None)
    assert KEY not in str(raised.value)


def test_a_key_that_no_header_can_carry_is_refused():
    with pytest.raises(InputError, match="copy it again"):
        resolve_address("openai:m", None, "sk-ключ")


def test_an_address_shows_no_secret():
    found = resolve_address("openai:m", "https://user:pass@host.example:8443/v1/?key=k", KEY)
    assert found.display_url == "https://host.example:8443/v1"
    assert "pass" not in repr(found)
    assert KEY not in repr(found)


def test_what_the_environment_holds_is_the_default(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = resolve_address("openai:m", None, None)
    assert (found.display_url, found.key) == ("http://localhost:1/v1", KEY)


def test_a_key_is_taken_out_of_a_text_and_a_dummy_is_not():
    url = "http://localhost:1/v1"
    assert resolve_address("m", url, KEY).censored(f"my {KEY}") == "my [key]"
    assert resolve_address("m", url, "text").censored("a text") == "a text"
    assert resolve_address("m", url, None).censored("no-key-needed") == "no-key-needed"


def test_a_server_of_ones_own_is_sent_a_key_that_is_none():
    without = resolve_address("m", "http://localhost:1/v1", None)
    assert (without.keyless, bool(without.key)) == (True, True)
    assert not resolve_address("m", "http://localhost:1/v1", KEY).keyless


def listing(*entries):
    return {"object": "list", "data": list(entries)}


@pytest.mark.parametrize(
    ("entry", "length"),
    [
        ({"max_model_len": 8192}, 8192),  # vLLM
        ({"meta": {"n_ctx": 4096, "n_ctx_train": 32768}}, 4096),  # llama.cpp
        ({"meta": {"n_ctx_train": 32768}}, 32768),
        ({"max_context_length": 131072, "loaded_context_length": 4096}, 4096),  # LM Studio
        ({"context_length": 128000}, 128000),  # OpenRouter
        ({"context_length": "many", "meta": []}, None),
        ({"context_length": 0}, None),
        ({"context_length": True}, None),
        ({}, None),
    ],
)
def test_the_context_length_is_read_wherever_a_server_says_it(entry, length):
    assert parse_model_listing(listing({"id": "m", **entry}), "m")[0] == length


@pytest.mark.parametrize(
    ("pricing", "price"),
    [
        ({"prompt": "0.00000015", "completion": "0.0000006"}, Price(0.15, 0.6)),
        ({"prompt": "0", "completion": "0"}, Price(0.0, 0.0)),
        ({"prompt": "-1", "completion": "-1"}, None),  # OpenRouter's own choice of a model
        ({"prompt": "NaN", "completion": "0"}, None),
        ({"prompt": "0.1"}, None),
        ({"prompt": "cheap", "completion": "0"}, None),
        ("free", None),
    ],
)
def test_prices_by_token_become_prices_by_the_million(pricing, price):
    assert parse_model_listing(listing({"id": "m", "pricing": pricing}), "m")[1] == price


def test_of_several_models_the_one_that_is_named_is_meant():
    said = listing({"id": "a", "max_model_len": 1}, {"id": "b", "max_model_len": 2})
    assert parse_model_listing(said, "b")[0] == 2
    assert parse_model_listing(said, "c") == (None, None)


def test_the_only_model_is_meant_whatever_it_is_called():
    assert parse_model_listing(listing({"id": "/models/m.gguf", "max_model_len": 1}), "m")[0] == 1


@pytest.mark.parametrize("said", [None, "no JSON", [], {}, {"data": None}, {"data": ["m"]}])
def test_what_is_no_listing_says_nothing(said):
    assert parse_model_listing(said, "m") == (None, None)


@pytest.mark.parametrize("said", [None, 1, {}, {"prompt": "1", "completion": 2}])
def test_what_is_no_price_is_none(said):
    assert parse_price(said) is None


def test_a_kept_price_is_read_again():
    assert parse_price({"prompt": 1, "completion": 0.5}) == Price(1.0, 0.5)
