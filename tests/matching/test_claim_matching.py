"""The features of a claim, worked out by hand."""

import pytest

from heuristic_examination import TOWER
from misslink.matching.claim_matching import Passages
from misslink.text.languages import leading_polarity, strip_polarity
from misslink.text.normalization import number_words_to_digits


def test_features_of_a_verbatim_copy_are_all_zero():
    match = Passages([TOWER]).match("The Eiffel Tower is 330 metres tall.")
    assert match.features == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "sentence",
    ["She became Chief Officer.News at ten.", "They run in East, Middle and West.The end is near."],
)
def test_words_that_a_page_has_run_together_are_no_new_names(sentence):
    match = Passages([sentence]).match(sentence)
    assert match.features[-1] == 0.0


def test_features_worked_out_by_hand():
    # Content words: eiffel, tower, opened, 250, lyon; opened, 250 and lyon are new.
    match = Passages([TOWER]).match("The Eiffel Tower opened 250 in Lyon.")
    novel, uncovered, number, names = match.features
    assert novel == 3 / (5 + 4)
    assert 0.5 < uncovered < 0.9
    assert (number, names) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("A loyal customer buys again.", "Customer loyalty buys again."),
        ("Vaccines reduce the severity of flu.", "Vaccination reduces how severe flu is."),
    ],
)
def test_other_forms_of_a_word_are_not_new(passage, claim):
    assert Passages([passage]).match(claim).features[0] == 0


def test_a_name_is_not_known_by_its_first_letters():
    match = Passages(["The song was recorded in Australia."]).match(
        "The song was recorded in Austria."
    )
    assert match.features == (0.0, 0.0, 0.0, 1.0)


def test_numbers_and_what_code_spells_are_compared_whole():
    held = Passages(["Read sys.platform once, in 2015 or at 10:00, for 123456 users."])
    assert held.match("Read sys.platform.").features[0] == 0
    assert held.match("Read sys.platlib.").features[0] == 1 / (2 + 4)
    assert held.match("Read for 123457 users.").features[0] == 1 / (3 + 4)


@pytest.mark.parametrize(
    ("text", "expected", "rest"),
    [
        ("Yes, there is.", True, "there is."),
        ("**Yes** \u2014 it does.", True, "it does."),
        ("No: never.", False, "never."),
        ("No it does not.", False, "it does not."),
        ("False.", False, ""),
        ("No\u2014it does not.", False, "it does not."),
        ("Nein, nie.", False, "nie."),
        ("Non-profit groups pay.", None, "Non-profit groups pay."),
        ("No changes are made.", None, "No changes are made."),
        ("True and False are constants.", None, "True and False are constants."),
        ("None.", None, "None."),
        ("", None, ""),
    ],
)
def test_a_yes_or_no_is_told_from_other_first_words(text, expected, rest):
    assert leading_polarity(text) is expected
    assert strip_polarity(text) == rest


@pytest.mark.parametrize(
    ("words", "digits"),
    [
        ("it leaves at seven", "it leaves at 7"),
        ("twenty-one men", "21 men"),
        ("two hundred and fifty men", "250 men"),
        ("one thousand two hundred", "1200"),
        ("a hundred years", "a 100 years"),
        ("two and three", "2 and 3"),
        ("the first of the twelfth", "the 1st of the 12th"),
        ("5 thousand", "5 thousand"),
        ("someone weighs tenfold", "someone weighs tenfold"),
        ("in a second", "in a second"),
    ],
)
def test_numbers_in_words_become_digits(words, digits):
    assert number_words_to_digits(words) == digits


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("Light takes 8 min 20 s.", "Light takes 500 seconds."),
        ("Light takes eight minutes and 20 seconds.", "Light takes 500 s."),
        ("The trip takes 90 minutes.", "The trip takes one and a half hours."),
        ("The tunnel is 22 km long.", "The tunnel is 22,000 m long."),
        ("The fine is $5m.", "The fine is $5,000,000."),
        ("Die Flasche fasst 1,5 Liter.", "Die Flasche fasst 1500 ml."),
        ("Der Tunnel ist 1.500 Meter lang.", "Der Tunnel ist 1500 m lang."),
        ("The walk takes 5 to 10 minutes.", "The walk takes 5 minutes."),
        ("It opened in the 1980s.", "It opened in the 1980s."),
    ],
)
def test_a_quantity_in_other_units_is_not_new(passage, claim):
    match = Passages([passage]).match(claim)
    assert (match.refusal, match.conflict, match.features[2]) == (None, None, 0.0)


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("The tunnel is 22 km long.", "The tunnel is 22 miles long."),
        ("The trip takes 90 minutes.", "The trip takes 90 hours."),
        ("The fine is 5 million dollars.", "The fine is 5 billion dollars."),
        ("Die Flasche fasst 1,5 Liter.", "Die Flasche fasst 5 Liter."),
        ("The ferry leaves at 7:30 am.", "The ferry leaves at 7:30 pm."),
        ("The lake is -5 degrees cold.", "The lake is 5 degrees cold."),
        ("The tower is 330 m tall.", "The tower is 324 m tall."),
        ("Adults pay 9 crowns, children pay 4.", "Adults pay 4 crowns, children pay 9."),
    ],
)
def test_the_same_sentence_with_another_number_or_unit_conflicts(passage, claim):
    match = Passages([passage]).match(claim)
    assert match.conflict is not None
    assert match.refusal == match.conflict


def test_a_rounder_number_in_the_same_place_is_no_conflict():
    context = Passages(["The tower is 324 m tall."])
    assert context.match("The tower is 320 m tall.").conflict is None


def test_a_number_without_a_basis_is_a_feature():
    context = Passages(["The museum has 50 rooms and 20 halls."])
    assert context.match("The museum has 70 rooms and halls.").features[2] == 0.0  # their sum
    assert context.match("The museum has 64 guards.").features[2] == 1.0
    assert context.match("The museum has 4 guards.").features[2] == 0.0  # small ones count and list
