"""What a question took from its passages, counted by hand."""

from __future__ import annotations

import pytest

from misslink.goldset.generation.corpus import find_verbatim, measure_copying, rewordable_stems

PASSAGE = "The ferry to Oban leaves the old pier at seven.\n\nIt carries  thirty cars <b>daily</b>."


@pytest.mark.parametrize(
    ("question", "run"),
    [
        ("When does a ship sail?", 0),
        ("When is it that the ferry to Oban leaves?", 5),
        ("THE FERRY TO OBAN LEAVES THE OLD PIER AT SEVEN?", 10),
        ("Does a ferryman leave?", 0),  # whole words alone
        ("", 0),
    ],
)
def test_the_longest_run_of_common_words(question, run):
    assert measure_copying(question, [PASSAGE]).run == run


def test_a_run_never_spans_two_passages():
    assert measure_copying("the old pier", ["the old", "pier"]).run == 2


def test_the_share_leaves_names_and_numbers_out():
    found = measure_copying(
        "Which ferry leaves Oban with thirty cars at 7 from some pier?", [PASSAGE]
    )
    assert rewordable_stems("Which ferry leaves Oban with 30 cars?") == rewordable_stems(
        "ferry leaves cars"
    )
    assert found.share == 1.0
    assert (
        measure_copying("Which boat departs with many vehicles from some harbour?", [PASSAGE]).share
        == 0
    )


def test_of_few_words_no_share_is_said():
    assert measure_copying("When does the ferry leave?", [PASSAGE]).share is None


def test_a_script_without_blanks_is_counted_in_pairs_of_characters():
    assert measure_copying("渡し船は七時に出ますか", ["渡し船は七時に出ます。"]).run == 5


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("leaves the old pier at seven", "leaves the old pier at seven"),
        ("at seven. It carries thirty cars", "at seven.\n\nIt carries  thirty cars"),
        ('"The ferry to Oban"', "The ferry to Oban"),
        ("cars \uff1cb>daily", "cars <b>daily"),  # as the fence shows it
        ("the ferry to Oban", None),  # another capital is another text
        ("leaves the old pie", None),  # cut within a word
        ("carries forty cars", None),
        ("...", None),
        ("", None),
    ],
)
def test_a_quote_is_verbatim_but_for_its_blanks(quote, found):
    at = find_verbatim(quote, PASSAGE)
    assert (None if at is None else PASSAGE[slice(*at)]) == found
