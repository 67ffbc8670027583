"""Numbers in words are the numbers in digits."""

import pytest

from misslink.text.normalization import extract_numbers, number_words_to_digits


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


def test_the_numbers_of_a_text_have_no_thousands_commas():
    assert extract_numbers("1,200 men and twelve boats at 3.5 knots") == {"1200", "12", "3.5"}
