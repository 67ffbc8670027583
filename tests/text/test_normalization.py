"""Folding, locating and cutting text."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import misslink
from misslink.render.html import show_marks
from misslink.text.normalization import (
    _HIDDEN,
    _SELECTORS,
    _WORD,
    STOPWORDS,
    _cut_runs,
    _fold_character,
    content_words,
    drop_invisible,
    fold,
    fold_with_offsets,
    has_content,
    locate,
    sentence_spans,
    stems,
)

ODD = st.text(
    alphabet=st.sampled_from(list("aB1 -'\n\t`")) | st.characters(exclude_categories=("Cs",)),
    max_size=40,
)


def cut(text):
    return [text[start:end] for start, end in sentence_spans(text)]


@given(ODD)
def test_the_fast_folding_equals_the_one_that_keeps_offsets(text):
    folded, places = fold_with_offsets(text)
    assert folded == fold(text)
    assert list(places) == sorted(places)
    for character, place in zip(folded, places, strict=True):
        assert character in "".join(("^", *_fold_character(text[place])))


@given(ODD, st.text(alphabet=" .,;:!?'\"()[]_-a", max_size=6))
def test_what_stands_around_the_words_changes_no_content_word(text, around):
    whole = f"{around}{text}{around[::-1]}"
    words = [part for word in _WORD.findall(fold(whole)) for part in _cut_runs(word)]
    assert content_words(whole) == tuple(word for word in words if word not in STOPWORDS)


def test_a_number_inside_of_a_japanese_sentence_is_a_word_of_its_own():
    assert stems("本は12冊まで") == ("本", "12", "冊")  # no particles
    assert stems("青森のりんごを食べる") == (
        "青森",
        "りん",
        "んこ",
        "食",
    )  # folded: no voicing marks
    assert stems("開館しました") == stems("開館した") == stems("開館") == ("開館",)
    assert content_words("冊") == stems("冊") == ("冊",)
    assert stems("naïve cafés") == ("naiv", "caf")


@given(ODD, ODD, ODD)
def test_what_is_located_folds_to_what_was_sought(before, needle, after):
    found = locate(needle, f"{before} {needle} {after}")
    if not fold(needle):
        assert found is None
    elif found is not None:
        start, end = found
        assert fold(needle) in fold(f"{before} {needle} {after}"[start:end])


@given(ODD)
def test_sentences_are_in_order_apart_and_lose_no_letter(text):
    spans = sentence_spans(text)
    assert all(start < end for start, end in spans)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    kept = "".join(text[start:end] for start, end in spans)
    assert "".join(kept.split()) == "".join(text.split())


def test_texts_that_differ_in_quotes_dashes_accents_and_blanks_fold_alike():
    assert fold("The \u201cCaf\u00e9\u201d \u2013  it\u2019s\nopen") == 'the "cafe" - it\'s open'


def test_a_word_hyphenated_at_the_end_of_a_line_is_joined():
    assert fold("a con-\n  text manager") == "a context manager"
    assert locate("context", "a con-\n  text manager") == (2, 13)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is. Two is.", ["One is.", "Two is."]),
        ("Dr. Who met e.g. Rose. They left.", ["Dr. Who met e.g. Rose.", "They left."]),
        ("It is on p. 4. See pp. 7-9.", ["It is on p. 4.", "See pp. 7-9."]),
        ("It opens at 7 p.m. The gate is shut.", ["It opens at 7 p.m.", "The gate is shut."]),
        ("Version 3.11 is out. Get it.", ["Version 3.11 is out.", "Get it."]),
        (
            "Steps:\n1. Open the lid.\n2. Close it.",
            ["Steps:", "1. Open the lid.", "2. Close it."],
        ),
        ("He was born in 1999. The town grew.", ["He was born in 1999.", "The town grew."]),
        ("Similar:\n\t+ A ball\n\t+ A car", ["Similar:", "+ A ball", "+ A car"]),
        ("Here it is:\nA ball.", ["Here it is:", "A ball."]),
        (
            "\u5730\u7403\u662f\u5706\u7684\u3002\u5b83\u5f88\u5927\u3002",
            ["\u5730\u7403\u662f\u5706\u7684\u3002", "\u5b83\u5f88\u5927\u3002"],
        ),
        ("a line that was\nwrapped by hand", ["a line that was\nwrapped by hand"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences_and_list_items(text, expected):
    assert cut(text) == expected


@given(
    st.lists(
        st.sampled_from(["the", "Is", "it's", "Caf\u00e9", "7", "...", "", "\u200b", "_"]) | ODD
    )
)
def test_a_text_has_content_exactly_where_it_has_content_words(words):
    text = " ".join(words)
    assert has_content(text) == bool(content_words(text))


def test_content_words_are_folded_and_without_stopwords():
    assert content_words("The Caf\u00e9 is in the U.S. and it isn't open") == (
        "cafe",
        "u.s",
        "isn't",
        "open",
    )


def test_a_struck_out_sign_is_not_the_sign():
    assert fold("x \u2260 5") == fold("x =\u0338 5") != fold("x = 5")


def test_a_full_width_angle_folds_to_the_plain_one_so_that_fenced_texts_verify():
    assert locate("</passage_1>", "a \uff1c/passage_1> b") == (2, 14)


@given(ODD)
def test_every_folded_character_knows_where_it_came_from(text):
    folded, places = fold_with_offsets(text)
    assert folded == fold(text)
    assert len(places) == len(folded)
    assert list(places) == sorted(places)


def test_characters_that_display_as_nothing_are_those_of_unicode():
    regex = pytest.importorskip("regex")
    # The planes between and after have no characters but those of private use.
    everything = "".join(map(chr, (*range(0x40000), *range(0xE0000, 0xE2000))))
    ignorable = set(regex.findall(r"\p{Default_Ignorable_Code_Point}", everything))
    assert set(everything) - set(drop_invisible(everything)) == ignorable | set(
        "\ufff9\ufffa\ufffb"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u3164b\u115f", "a[U+3164]b[U+115F]"),
        ("\u2764\ufe0f\u200d\U0001f525", "\u2764\ufe0f\u200d\U0001f525"),  # one picture
        ("a\U000e0101\U000e0102", "a\U000e0101[U+E0102]"),  # of several selectors one can count
    ],
)
def test_a_page_marks_what_displays_as_nothing(text, shown):
    assert show_marks(text) == shown


@pytest.mark.source
def test_the_scripts_of_the_report_mark_the_same_characters():
    script = Path(misslink.__file__).parent / "report" / "templates" / "report.js"
    line = next(x for x in script.read_text("utf-8").splitlines() if x.startswith("const HIDDEN"))
    written = re.sub(r"\\u\{?([0-9a-f]+)\}?", lambda code: chr(int(code[1], 16)), line)
    assert f"/[{_HIDDEN}]|(?<=[{_SELECTORS}])[{_SELECTORS}]/gu" in written
