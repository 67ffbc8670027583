"""The features of a claim, worked out by hand."""

import pytest

from heuristic_examination import TOWER
from misslink.judge.backends.heuristic.matching import MatchingContext


def test_features_of_a_verbatim_copy_are_all_zero():
    match = MatchingContext([TOWER]).match("The Eiffel Tower is 330 metres tall.")
    assert match.features == (0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "sentence",
    ["She became Chief Officer.News at ten.", "They run in East, Middle and West.The end is near."],
)
def test_words_that_a_page_has_run_together_are_no_new_names(sentence):
    match = MatchingContext([sentence]).match(sentence)
    assert (match.invented, match.features[-1]) == ((), 0.0)


def test_features_worked_out_by_hand():
    # Content words: eiffel, tower, opened, 1890, lyon; opened, 1890 and lyon are new.
    match = MatchingContext([TOWER]).match("The Eiffel Tower opened 1890 in Lyon.")
    novel, uncovered, reordered, number, names = match.features
    assert novel == 3 / (5 + 4)
    assert 0.5 < uncovered < 0.9
    assert reordered == 3 / 4  # only (eiffel, tower) stands together in the passage
    assert (number, names) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("A loyal customer buys again.", "Customer loyalty buys again."),
        ("Vaccines reduce the severity of flu.", "Vaccination reduces how severe flu is."),
    ],
)
def test_other_forms_of_a_word_are_not_new(passage, claim):
    assert MatchingContext([passage]).match(claim).features[0] == 0


def test_a_name_is_not_known_by_its_first_letters():
    match = MatchingContext(["The song was recorded in Australia."]).match(
        "The song was recorded in Austria."
    )
    assert match.features == (0.0, 0.0, 0.0, 0.0, 1.0)
    assert match.invented == ("austria",)


def test_numbers_and_what_code_spells_are_compared_whole():
    held = MatchingContext(["Read sys.platform once, in 2015 or at 10:00, for 123456 users."])
    assert held.match("Read sys.platform.").features[0] == 0
    assert held.match("Read sys.platlib.").features[0] == 1 / (2 + 4)
    assert held.match("Read for 123457 users.").features[0] == 1 / (3 + 4)
