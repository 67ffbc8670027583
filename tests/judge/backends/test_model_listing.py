from __future__ import annotations

import pytest

from misslink.judge.backends.connection import ModelListing, parse_model_listing, parse_price
from misslink.judge.config import Price


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
    assert parse_model_listing(listing({"id": "m", **entry}), "m").context_length == length


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
    assert parse_model_listing(listing({"id": "m", "pricing": pricing}), "m").price == price


def test_of_several_models_the_one_that_is_named_is_meant():
    said = listing({"id": "a", "max_model_len": 1}, {"id": "b", "max_model_len": 2})
    assert parse_model_listing(said, "b").context_length == 2
    assert parse_model_listing(said, "c") == ModelListing()


def test_the_only_model_is_meant_whatever_it_is_called():
    assert (
        parse_model_listing(
            listing({"id": "/models/m.gguf", "max_model_len": 1}), "m"
        ).context_length
        == 1
    )


@pytest.mark.parametrize("said", [None, "no JSON", [], {}, {"data": None}, {"data": ["m"]}])
def test_what_is_no_listing_says_nothing(said):
    assert parse_model_listing(said, "m") == ModelListing()


@pytest.mark.parametrize("said", [None, 1, {}, {"prompt": "1", "completion": 2}])
def test_what_is_no_price_is_none(said):
    assert parse_price(said) is None


def test_a_kept_price_is_read_again():
    assert parse_price({"prompt": 1, "completion": 0.5}) == Price(1.0, 0.5)
