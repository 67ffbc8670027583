"""The yes or no at the start of a text."""

import pytest

from misslink.judge.backends.heuristic.matching import (
    is_polarity_only,
    leading_polarity,
    strip_polarity,
)


@pytest.mark.parametrize(
    ("text", "expected", "rest"),
    [
        ("Yes, there is.", True, "there is."),
        ("**Yes** \u2014 it does.", True, "it does."),
        ("No: never.", False, "never."),
        ("No it does not.", False, "it does not."),
        ("False.", False, ""),
        ("No changes are made.", None, "No changes are made."),
        ("True and False are constants.", None, "True and False are constants."),
        ("None.", None, "None."),
        ("", None, ""),
    ],
)
def test_a_yes_or_no_is_told_from_other_first_words(text, expected, rest):
    assert leading_polarity(text) is expected
    assert strip_polarity(text) == rest
    assert is_polarity_only(text) == (expected is not None and not rest)
