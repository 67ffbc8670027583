"""A secret is taken out of a text in whatever form a server repeats it; words stay."""

import html
import json
from urllib.parse import quote

import pytest

from misslink.io.secrets import MIN_KEY_LENGTH, address_secrets, redact_keys, redact_secrets

SECRET = 'a/b+c="d\\e&é0'


def unicode_escapes(text):
    return "".join(f"\\u{ord(sign):04x}" for sign in text)


@pytest.mark.parametrize(
    "form",
    [
        str,
        json.dumps,
        lambda s: json.dumps(s, ensure_ascii=False),
        lambda s: json.dumps(json.dumps(s)),
        lambda s: json.dumps(s).replace("/", "\\/"),
        lambda s: json.dumps({"text": json.dumps(s).replace("/", "\\/")}),
        unicode_escapes,
        lambda s: unicode_escapes(s).upper().replace("\\U", "\\u"),
        lambda s: quote(s, safe=""),
        lambda s: quote(s).lower(),
        html.escape,
        lambda s: "".join(f"&#{ord(sign)};" for sign in s),
        lambda s: "".join(f"&#x{ord(sign):X};" for sign in s),
    ],
)
def test_a_secret_is_found_however_it_is_escaped(form):
    text = redact_keys(f"before {form(SECRET)} after", [SECRET])
    assert "[key]" in text
    assert "b+c" not in text
    assert "d\\" not in text
    assert text.startswith("before ")
    assert text.endswith(" after")


def test_a_reply_with_a_secret_in_it_stays_json():
    reply = json.dumps({"answer": f'Bearer {SECRET}, "so"'}).replace("/", "\\/")
    assert json.loads(redact_keys(reply, [SECRET])) == {"answer": 'Bearer [key], "so"'}


@pytest.mark.parametrize(
    ("secret", "shortest", "redacted"),
    [
        ("1234567", 8, False),
        ("12345678", 8, True),
        ("12345678", MIN_KEY_LENGTH, False),
        ("", 0, False),
    ],
)
def test_what_is_too_short_to_be_told_from_a_word_stays(secret, shortest, redacted):
    text = f"it is {secret} here"
    assert (redact_keys(text, filter(None, [secret]), shortest) != text) is redacted


def test_the_longer_of_two_secrets_goes_first():
    assert redact_keys("abcdefgh-and-more", ["abcdefgh", "abcdefgh-and-more"]) == "[key]"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host/v1", []),
        ("http://ada:pass%2Fword1@host/v1", ["pass/word1", "pass%2Fword1"]),
        ("http://team42-reader:hunter2hunter2@host/v1", ["hunter2hunter2", "team42-reader"]),
        ("http://host/v1?token=sesame-open&team=marketing", ["sesame-open"]),
        ("http://host/v1?x=9f8a7b6c5d&api-version=2024-10-21-preview", ["9f8a7b6c5d"]),
        ("http://host/v1?from=2024-10-21", []),
    ],
)
def test_of_an_address_its_secrets_are_known_and_its_words_are_not(url, expected):
    found = [secret for secret in address_secrets(url) if len(secret) >= 8]
    assert set(expected) <= set(found)
    assert not {"marketing", "2024-10-21", "2024-10-21-preview"} & set(found)
    if not expected:
        assert found == []


def test_the_header_made_of_user_and_password_is_a_secret():
    assert "YWRhOmh1bnRlcjI=" in address_secrets("http://ada:hunter2@host")


def test_addresses_in_the_environment_have_secrets_too(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:pa%2Fssw0rd@host/v1?sig=s1g-nature")
    monkeypatch.setenv("ODD_URL", "http://[not-an-address")
    text = "https://me:pa%2Fssw0rd@host/v1?sig=s1g-nature refuses pa/ssw0rd"
    assert redact_secrets(text) == "https://me:***@host/v1?sig=*** refuses ***"
