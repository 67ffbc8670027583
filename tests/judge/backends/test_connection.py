from __future__ import annotations

import pytest

from misslink.errors import InputError
from misslink.judge.backends.connection import resolve_address

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_judge_in_the_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


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
