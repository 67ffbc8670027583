"""Personal data in logs: found, masked by kind, the same for the same, and in time for any text."""

import re
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.errors import InputError
from misslink.goldset.masking import (
    DETECTORS,
    Masker,
    parse_mask_patterns,
    read_names,
    unnumber_masks,
)
from personal_data import HARMLESS, KINDS, planted

# What a text may be made of so that a careless pattern would try every way to cut it.
STUFF = [
    "a", "1", "a.", "a@", "@", "a@a.", "0 ", "+1", "(", "1-", "::1", "1:", "eyJa.", "sk-", "://", "://a:",
    "-----BEGIN PRIVATE KEY-----", "http://a:", "DE89", "password: ", "phone ", "\u00e4", "1.1.",
    "<EMAIL_", "<EMAIL_1>", "a [at] ", " [dot] ", "=", "Bearer ", "1 1", "()", "'s", "token=",
    "a%40",
]  # fmt: skip


@pytest.mark.slow
def test_precision_and_recall_on_planted_data():
    """1,050 planted values of 7 kinds in 8 sentences, and 16 texts that only look like some."""
    found, missed, wrong_kind = Counter(), [], []
    for text, kind, value in planted(seed=1, each=150):
        masker = Masker()
        masked = masker.masked(text)
        leaks = any(part in masked for part in re.findall(r"\w{4,}", value))
        whole = re.fullmatch(
            r"<[A-Z_]+_\d+>",
            masked[len(text.split(value)[0]) :][: len(masked) - len(text) + len(value)],
        )
        if leaks or not whole or sum(masker.counts.values()) != 1:
            missed.append((kind, value, masked))
        elif kind not in masker.counts:
            wrong_kind.append((kind, value, masked))
        else:
            found[kind] += 1
    recall = {kind: found[kind] / 150 for kind in KINDS}
    masker = Masker()
    false = [text for text in HARMLESS if masker.masked(text) != text]
    precision = sum(found.values()) / (sum(found.values()) + len(wrong_kind) + len(false))
    assert all(share >= 0.99 for share in recall.values()), (recall, missed[:9], wrong_kind[:9])
    assert precision >= 0.99, (precision, false, wrong_kind[:9])
    assert not false


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("ann@x.org, Ann@X.org and bob@x.org", "<EMAIL_1>, <EMAIL_1> and <EMAIL_2>"),
        ("+49 170 1234567 is 0170 1234567", "<PHONE_1> is <PHONE_1>"),
        ("postgres://joe:p@ss@db/x", "postgres://<CREDENTIALS_1>@db/x"),
        ("https://a.example/?token=abc123&x=1", "https://a.example/?token=<SECRET_1>&x=1"),
        ("DE89 3704 0044 0532 0130 00 bitte", "<IBAN_1> bitte"),
        ("DE89 3704 1044 1532 2130 01 is none", "DE89 3704 1044 1532 2130 01 is none"),
        ("4111 1111 1111 1112 fails Luhn", "4111 1111 1111 1112 fails Luhn"),
        ("password: hunter22", "password: <SECRET_1>"),
        ("from 999.1.2.3", "from 999.1.2.3"),
        ("", ""),
    ],
)
def test_masks_are_typed_and_the_same_for_the_same(text, masked):
    assert Masker().masked(text) == masked


def test_numbers_of_masks_that_are_there_already_stay_free():
    masker = Masker()
    text = "<EMAIL_3> wrote to ann@x.org"
    masker.reserve(text)
    assert masker.masked(text) == "<EMAIL_3> wrote to <EMAIL_4>"
    assert dict(masker.counts) == {"EMAIL": 1}


def test_no_map_back_is_kept():
    masker = Masker()
    masker.masked("ann.secret@x.org and 4111 1111 1111 1111")
    held = repr({name: value for name, value in vars(masker).items() if name != "_detectors"})
    assert "ann" not in held
    assert "4111" not in held


def test_ids_keep_what_only_looks_like_a_number():
    masker = Masker()
    assert masker.masked_id("0170 1234567") == "0170 1234567"
    assert masker.masked_id("4111111111111111") == "4111111111111111"
    assert masker.masked_id("mails/ann@x.org/7") == "mails/<EMAIL_1>/7"


def test_names_are_masked_by_a_list_alone(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("Ann Lee\nBob  # of sales\n\n", encoding="utf-8")
    masker = Masker(names=read_names(path))
    assert masker.masked("ANN LEE's dog, Bob, Annabel and bobsled") == (
        "<NAME_1>'s dog, <NAME_2>, Annabel and bobsled"
    )
    assert Masker().masked("Ann Lee") == "Ann Lee"


def test_patterns_of_ones_own():
    masker = Masker(parse_mask_patterns(["customer=K-[0-9]{4}"]))
    assert masker.masked("K-1234 and K-1234, K-9") == "<CUSTOMER_1> and <CUSTOMER_1>, K-9"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("K-[0-9]", "has no name"),
        ("=x", "has no name"),
        ("A=[", "not a valid regular expression"),
        ("A=x*", "matches the empty text"),
        ("A=", "matches the empty text"),
        ("EMAIL=x", "already"),
    ],
)
def test_a_wrong_pattern_is_one_sentence(given, told):
    with pytest.raises(InputError, match=told):
        parse_mask_patterns([given])


def test_two_people_who_ask_the_same_ask_the_same():
    masker = Masker()
    one, other = masker.masked("Lost mail of a@x.org"), masker.masked("Lost mail of b@x.org")
    assert one != other
    assert unnumber_masks(one) == unnumber_masks(other)


@given(st.lists(st.one_of(st.sampled_from(STUFF), st.text(max_size=8)), max_size=30).map("".join))
def test_nothing_is_found_in_what_was_masked(text):
    masker = Masker()
    masker.reserve(text)
    once = masker.masked(text)
    again = Masker()
    again.reserve(once)
    assert again.masked(once) == once
    assert not again.counts


SLOW = """
import faulthandler, sys
from misslink.goldset.masking import Masker
faulthandler.dump_traceback_later(240, exit=True)
for stuff in {stuff!r}:
    for tail in ("", "!"):
        Masker().masked(stuff * ({length} // len(stuff)) + tail)
"""


@pytest.mark.parametrize("length", [3_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_no_text_however_long_makes_a_pattern_hang(length):
    """No clock but a limit far off: with 3,000 characters to the third power, or 100,000 squared,
    one pattern alone would be at it for longer; linear work is a fiftieth of it."""
    script = SLOW.format(stuff=STUFF, length=length)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_detector_gives_stretches_that_lie_in_the_text():
    for text, _, value in planted(seed=2, each=20):
        for detect in DETECTORS.values():
            for spot in detect(text):
                assert 0 <= spot.start < spot.end <= len(text)
        assert value in text
