"""Near-duplicates: what counts as one, and that the fast search finds what comparing all does."""

import numpy as np
import pytest

from misslink.text import near_duplicates
from misslink.text.near_duplicates import first_duplicates, flag_duplicates, is_near_duplicate

WORDS = [f"word{at}" for at in range(400)]


def text_of(generator, length=60):
    return " ".join(generator.choice(WORDS, length))


def changed(text, generator, count):
    words = text.split()
    for at in generator.choice(len(words), count, replace=False):
        words[at] = "other"
    return " ".join(words)


def test_one_word_of_sixty_is_nearly_the_same_and_six_are_not():
    generator = np.random.default_rng(0)
    text = text_of(generator)
    assert is_near_duplicate(text, changed(text, generator, 1))
    assert not is_near_duplicate(text, changed(text, generator, 6))


def test_texts_of_a_word_or_two_are_compared_whole():
    assert is_near_duplicate("Table 1", "table  1")
    assert not is_near_duplicate("Table 1", "Table 2")
    assert not is_near_duplicate("", "")
    assert not is_near_duplicate("  ", "words enough to be compared here")


def test_japanese_texts_are_compared_without_blanks():
    text = "図書館の利用案内。本は一人12冊まで借りられます。貸出期間は二週間です。返却は入口の箱でもできます。"
    assert is_near_duplicate(text, text.replace("できます", "可能です"))
    assert not is_near_duplicate(text, "図書館への行き方。駐車場は建物の裏の川沿いにあります。")


def test_the_first_one_is_no_duplicate_and_the_others_name_it():
    assert first_duplicates(["a b c d e f", "x y z", "a b c d e f", "A b c d e f!"]) == [
        None,
        None,
        0,
        0,
    ]
    assert first_duplicates([]) == []


@pytest.mark.parametrize("shared", [0, 44, 50, 54])
def test_the_fast_search_finds_what_comparing_every_pair_finds(shared):
    """Also around the limit in texts of one template, and where a chain of copies changes."""
    generator = np.random.default_rng(3)
    template = " ".join(WORDS[:shared])
    texts = [f"{template} {text_of(generator, 60 - shared)}" for _ in range(60)]
    texts += [changed(texts[at], generator, 1 + at % 3) for at in range(36)]
    texts += [changed(texts[-1 - at], generator, 1) for at in range(36)]
    texts += ["", "  ", "one", "one", "two words", "x y z", "X y z!"]
    generator.shuffle(texts)
    expected = [
        any(is_near_duplicate(one, other) for j, other in enumerate(texts) if j != i)
        for i, one in enumerate(texts)
    ]
    assert 48 < sum(expected) < len(texts)
    assert flag_duplicates(texts) == expected
    assert flag_duplicates([]) == []


def test_texts_of_one_template_that_differ_are_not_compared(monkeypatch):
    """48 of 60 words are those of all: 2,000 texts make 2 million pairs."""
    monkeypatch.setattr(near_duplicates, "jaccard_at_least", None)
    generator = np.random.default_rng(5)
    texts = [
        f"{' '.join(WORDS[:48])} {' '.join(f'w{at}x{n}' for n in range(12))}" for at in range(2000)
    ]
    generator.shuffle(texts)
    assert not any(flag_duplicates(texts))


@pytest.mark.slow
def test_a_corpus_of_one_template_is_all_repeated():
    assert all(flag_duplicates([f"{' '.join(WORDS[:90])} page {at}" for at in range(3000)]))
