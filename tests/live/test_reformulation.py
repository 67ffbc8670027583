"""The same question in other words, soon, from the same unit."""

from __future__ import annotations

import pytest

from misslink.errors import InputError
from misslink.live.requests import ReformulationDetector

QUESTION = "How do I reset my password?"


@pytest.mark.parametrize(
    ("again", "is_one"),
    [
        ("how can I reset the password", True),
        ("password reset?", True),
        ("How do I resset my pasword?", True),
        (QUESTION, False),
        ("  how do I RESET my password? ", False),
        ("How do I delete my account?", False),
        ("and then?", False),
        ("", False),
    ],
)
def test_near_duplicates_count_and_the_very_same_does_not(again, is_one):
    known = ReformulationDetector(5)
    assert known.seen("e1", "u", QUESTION, 0.0) is None
    assert known.seen("e2", "u", again, 10.0) == ("e1" if is_one else None)


def test_it_takes_the_same_unit_the_next_question_and_the_time():
    known = ReformulationDetector(5)
    known.seen("e1", "u", QUESTION, 0.0)
    assert known.seen("e2", "other", "password reset", 1.0) is None
    assert known.seen("e3", "u", "password reset", 301.0) is None
    assert known.seen("e4", "u", QUESTION, 302.0) == "e3"
    assert known.seen("e5", "u", "something else entirely", 303.0) is None
    assert known.seen("e6", "u", QUESTION, 304.0) is None
    assert known.seen("e7", "u", "password reset", 200.0) is None  # the clock was set back


def test_only_so_many_units_are_remembered():
    known = ReformulationDetector(5, most_units=2)
    for unit in "abc":
        known.seen(f"e-{unit}", unit, QUESTION, 0.0)
    assert known.seen("again", "a", "password reset", 1.0) is None
    assert known.seen("again", "c", "password reset", 1.0) == "e-c"


def test_a_window_of_nothing_is_refused():
    with pytest.raises(InputError):
        ReformulationDetector(0)
