"""What a gold set holds, counted by hand."""

from __future__ import annotations

from hypothesis import given

from goldset_cases import cases
from misslink.goldset.stats import describe_goldset
from misslink.types import Case


def test_counts_are_those_of_a_small_set():
    found = describe_goldset(
        [
            Case(id="a", question="one two", relevant={"p": 2, "q": 0}, category="odd"),
            Case(id="b", question="one two three four", answerable=False, tags={"topic": "x"}),
            Case(id="c", question="one", evidence={"t": 1}, references=["yes", "no"]),
        ]
    )
    assert found["categories"] == {"": 2, "odd": 1}
    assert found["tags"] == {"topic": {"": 2, "x": 1}}
    assert found["answerable"] == {"yes": 2, "no": 1, "unknown": 0}
    assert found["with"]["relevant"] == 1
    assert found["with"]["evidence"] == 1
    assert found["grades"] == {"0": 1, "1": 1, "2": 1}
    assert list(found["relevant"].values()) == [0, 0, 0, 0.5, 1]
    assert found["question_words"]["median"] == 2


@given(cases())
def test_every_grouping_counts_every_case_once(given_cases):
    found = describe_goldset(given_cases)
    for counts in (
        found["categories"],
        found["tiers"],
        found["answerable"],
        *found["tags"].values(),
    ):
        assert sum(counts.values()) == len(given_cases)


def test_no_case_has_no_distribution():
    assert describe_goldset([])["relevant"] is None
