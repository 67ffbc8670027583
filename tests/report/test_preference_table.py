"""A judge's preferences between two runs, in sentences."""

from __future__ import annotations

from misslink.judge.checks.pairwise import PairOutcome, summarize_preferences
from misslink.report.comparison import describe_preferences

A, B, TIE = (PairOutcome(side, side, (side, side)) for side in ("a", "b", "tie"))
TURNED = PairOutcome("t", "tie", ("a", "b"))


def sentences_of(*outcomes, not_asked=0):
    sides = {"a": 0, "b": 0, "tie": 0}
    found = {
        **summarize_preferences(outcomes),
        "judge": "j",
        "not_asked": not_asked,
        "by_order": {"a_first": sides, "b_first": sides},
    }
    return list(describe_preferences(("A", "B"), found))


def test_a_share_says_of_how_many_it_is():
    """Wilson's interval of 1 in 3 is 6.1 to 79.2%; of 1 in 4, 4.6 to 69.9%."""
    said = sentences_of(A, A, B, TURNED)
    assert said[0] == (
        "The judge preferred B in 33% [6, 79] of the 3 decided cases, p = 1.00 (sign test)."
    )
    assert said[1] == "Only the order of the two answers decided in 25% [5, 70] of the 4 pairs."


def test_one_decided_case_is_one():
    assert " of the 1 decided case, p = 1.00" in sentences_of(B)[0]


def test_without_a_decided_case_there_is_no_preference():
    said = sentences_of(TIE)
    assert said[0] == "No preference: no case was decided."
    assert said[1].endswith(" of the 1 pair.")


def test_without_a_pair_nothing_is_made_up():
    said = sentences_of(PairOutcome("n", None, reason="the judge failed"), not_asked=2)
    assert said[1].startswith("How far the order of the two answers decides is not known: ")
    assert said[2] == "3 cases left out: the judge failed; not asked."


def test_no_preferences_are_none():
    assert list(describe_preferences(("A", "B"), None)) == []
