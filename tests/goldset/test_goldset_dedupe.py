"""One rule for questions that ask the same; rapidfuzz and all pairs are its oracles."""

import random

import numpy as np
import pytest
from rapidfuzz import fuzz

from misslink.goldset.wording import QuestionIndex, fact_key, sorted_words
from misslink.text.normalization import fold


def known(*questions, cosines=None):
    found = QuestionIndex(90, 0.95, cosines)
    for question in questions:
        found.add(question)
    return found


@pytest.mark.parametrize(
    "other",
    [
        "When does the ferry to Oban leave?",
        "when does the ferry to oban LEAVE?",
        "When does the fery to Oban leave?",
        "When leave? does the ferry to Oban",
    ],
)
def test_the_same_words_a_slip_and_another_order_are_found(other):
    assert known("When does the ferry to Oban leave?").twin(other)


@pytest.mark.parametrize(
    "other",
    [
        "When does the ferry to Iona leave?",
        "When does the ferry to Oban not leave?",
        "When does the ferry 2 to Oban leave?",
        "Who owns the pier?",
    ],
)
def test_another_name_number_or_negation_asks_something_else(other):
    same = known("When does the ferry to Oban leave?", cosines=lambda _, many: np.ones(len(many)))
    assert known("When does the ferry to Oban leave?").twin(other) is None
    if other.startswith("When"):
        assert same.twin(other) is None  # whatever an embedding says


def test_meaning_counts_where_words_do_not():
    asked = []

    def cosines(question, many):
        asked.append((question, list(many)))
        return np.array([0.2, 0.96])

    found = known("what opens early?", "who sells seats?", cosines=cosines)
    assert found.twin("where are tickets sold?").question == "who sells seats?"
    assert asked == [("where are tickets sold?", ["what opens early?", "who sells seats?"])]


def test_it_finds_one_wherever_all_pairs_have_one():
    drawn = random.Random(3)
    words = [*"abcdefgh", "ferry", "ferries", "leaves", "not", "7", "8"]
    found, before = QuestionIndex(90, 1.0), []
    for _ in range(200):
        question = " ".join(drawn.choices(words, k=5))
        wanted = [
            one for one in before
            if fold(one) == fold(question)
            or (fact_key(one) == fact_key(question) and fuzz.token_sort_ratio(one, question) >= 90)
        ]  # fmt: skip
        assert (found.twin(question) is not None) == bool(wanted)
        found.add(question)
        before.append(question)


def test_the_ratio_of_sorted_words_is_rapidfuzzs():
    one, other = "When does it leave Oban?", "it leaves Oban when?"
    ratio = fuzz.ratio(sorted_words(one), sorted_words(other))
    assert ratio == pytest.approx(fuzz.token_sort_ratio(fold(one), fold(other)))
