"""The address of a server, its errors, and what it lists of its models."""

import asyncio
from importlib.util import find_spec

import pytest

from misslink.errors import InputError
from misslink.io.network import check_network_settings, split_address
from misslink.judge.backends.connection import (
    RedirectError,
    ServerConnection,
    ServerError,
    azure_address,
    classify_failure,
    complaint_text,
    parse_model_listing,
    parse_price,
    resolve_address,
)
from misslink.judge.config import JudgeConfig, Price
from misslink.judge.session import create_judge

KEY = "sk-secret-0123456789"


@pytest.mark.parametrize("url", [None, "https://api.openai.com/v1"])
def test_openai_itself_needs_a_key_once_it_is_asked(url):
    address = resolve_address(url, None)
    with pytest.raises(InputError, match="set OPENAI_API_KEY"):
        asyncio.run(ServerConnection("openai:m", "m", address).post("/chat/completions", {}))


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "http://host:port/v1", KEY])
def test_a_base_url_that_is_no_address_is_refused_unrepeated(url):
    with pytest.raises(InputError, match="base URL") as raised:
        resolve_address(url, None)
    assert KEY not in str(raised.value)


def test_a_key_that_no_header_can_carry_is_refused():
    with pytest.raises(InputError, match="copy it again"):
        resolve_address(None, "sk-ключ")


def test_an_address_shows_no_secret():
    found = resolve_address("https://user:pass@host.example:8443/v1/?key=k", KEY)
    assert found.display_url == "https://host.example:8443/v1"
    assert "pass" not in repr(found)
    assert KEY not in repr(found)


def test_what_the_environment_holds_is_the_default(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = resolve_address(None, None)
    assert (found.display_url, found.key) == ("http://localhost:1/v1", KEY)


def test_a_key_is_taken_out_of_a_text_and_a_dummy_is_not():
    url = "http://localhost:1/v1"
    assert resolve_address(url, KEY).censored(f"my {KEY}") == "my [key]"
    assert resolve_address(url, "text").censored("a text") == "a text"
    assert resolve_address(url, None).censored("no-key-needed") == "no-key-needed"


def test_a_server_of_ones_own_is_sent_a_key_that_is_none():
    without = resolve_address("http://localhost:1/v1", None)
    assert (without.keyless, bool(without.key)) == (True, True)
    assert not resolve_address("http://localhost:1/v1", KEY).keyless


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


@pytest.mark.parametrize("said", [None, 1, {}, {"prompt": "x", "completion": 2}])
def test_what_is_no_price_is_none(said):
    assert parse_price(said) is None


def test_a_kept_price_is_read_again():
    assert parse_price({"prompt": 1, "completion": 0.5}) == Price(1.0, 0.5)


@pytest.mark.parametrize(
    ("url", "base", "query"),
    [
        ("http://h/v1", "http://h/v1", {}),
        ("http://h/v1/chat/completions", "http://h/v1", {}),
        ("http://h/v1/responses/", "http://h/v1", {}),
        ("http://h/v1/models", "http://h/v1", {}),
        ("http://u:p@h/gateway/?team=a&x=", "http://u:p@h/gateway", {"team": "a", "x": ""}),
        (
            "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
            "https://r.openai.azure.com/openai/deployments/d",
            {"api-version": "2024-10-21"},
        ),
        ("http://h/models-of-ours/v1", "http://h/models-of-ours/v1", {}),
    ],
)
def test_a_pasted_endpoint_and_a_query_are_told_from_the_base_url(url, base, query):
    assert split_address(url) == (base, query)


AZURE = {
    "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/",
    "AZURE_OPENAI_API_KEY": "an-azure-key",
    "OPENAI_API_VERSION": "2024-10-21",
}


@pytest.mark.parametrize("missing", AZURE)
def test_what_azure_needs_and_lacks_is_named(monkeypatch, missing):
    for name, value in AZURE.items():
        monkeypatch.setenv(name, value) if name != missing else monkeypatch.delenv(
            name, raising=False
        )
    with pytest.raises(InputError, match=missing) as refused:
        azure_address("judge", None, None)
    assert not any(name in str(refused.value) for name in AZURE if name != missing)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://r.openai.azure.com",
        "https://r.openai.azure.com/openai/v1/",
        "https://r.openai.azure.com/openai/deployments/other/chat/completions?api-version=x",
    ],
)
def test_an_azure_endpoint_is_read_however_it_was_pasted(monkeypatch, endpoint):
    for name, value in (AZURE | {"AZURE_OPENAI_ENDPOINT": endpoint}).items():
        monkeypatch.setenv(name, value)
    address = azure_address("my judge", None, None)
    assert address.base_url == "https://r.openai.azure.com/openai/deployments/my%20judge"
    assert address.query == {"api-version": "2024-10-21"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTP_PROXY", "http://127.0.0.1:port"),
        ("HTTPS_PROXY", "http://[::1"),
        ("https_proxy", "ftp://127.0.0.1:1"),
        ("HTTPS_PROXY", "socks4://127.0.0.1:1"),
        ("ALL_PROXY", "http://"),
        ("HTTP_PROXY", "http://127.0.0.1:99999"),
        ("SSL_CERT_FILE", "/no/such/file.pem"),
    ],
)
@pytest.mark.parametrize(
    "spec", ["openai:m", "langchain:openai:m", "systemone:http://127.0.0.1:1/v1#m"]
)
def test_a_network_setting_that_no_client_takes_is_named(monkeypatch, spec, name, value):
    monkeypatch.setenv("OPENAI_API_KEY", "made-up")
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=name):
        create_judge(spec, JudgeConfig(base_url=None))


def test_a_certificate_file_that_holds_none_is_named(monkeypatch, tmp_path):
    (tmp_path / "junk.pem").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "junk.pem"))
    with pytest.raises(InputError, match="SSL_CERT_FILE"):
        check_network_settings()


@pytest.mark.skipif(find_spec("socksio") is not None, reason="socksio is installed")
def test_a_socks_proxy_names_the_package_that_it_needs(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:1")
    with pytest.raises(InputError, match=r"ALL_PROXY.*pip install socksio"):
        check_network_settings()


def test_without_proxies_at_all_none_is_checked(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "nonsense://x")
    monkeypatch.setenv("NO_PROXY", "*")
    check_network_settings()


@pytest.mark.parametrize("answered", [False, True])
def test_a_redirect_is_named_also_in_the_middle_of_a_run(answered):
    """Found: once the server had answered, it read as a connection that is refused."""
    error = ServerError()
    error.__cause__ = RedirectError("it redirects to another host (there)")
    found = classify_failure(error, "Connection error.", "openai:m", answered=answered)
    assert "it redirects to another host (there)" in str(found)


MISTRAL = {
    "object": "error",
    "message": {
        "detail": [
            {
                "type": "extra_forbidden",
                "loc": ["body", "seed"],
                "msg": "Extra inputs are not permitted",
                "input": "temperature and response_format " * 50,
            }
        ]
    },
}


def test_the_place_of_a_validation_error_is_what_is_complained_of():
    assert complaint_text(MISTRAL) == "body.seed: Extra inputs are not permitted"
    assert complaint_text({"message": "Bad Request"}) == "Bad Request"
    assert complaint_text("<html>") == complaint_text(None) == complaint_text({}) == ""
