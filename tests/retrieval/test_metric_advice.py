"""When to look at ndcg@10: many cases, grades, and recall that no longer goes along."""

import pytest

from misslink.goldset.checks import check_goldset
from misslink.io import read_goldset
from misslink.retrieval.metric_advice import ndcg_reasons
from misslink.types import Case


def _cases(n, **fields):
    return [Case(id=str(place), question=f"Question {place}?", **fields) for place in range(n)]


@pytest.mark.parametrize(
    ("cases", "codes"),
    [
        (_cases(5_000, relevant={"p": 1}), []),
        (_cases(5_001, relevant={"p": 1}), ["many_cases"]),
        (_cases(1, relevant={"p": 2, "q": 1}), ["graded_labels"]),
        (_cases(1, relevant={"p": 2, "q": 0}) + _cases(1, relevant={"p": 1}), []),
        (_cases(1, evidence={"The ferry leaves.": 1, "At seven.": 3}), ["graded_labels"]),
    ],
)
def test_many_cases_and_grades_are_reasons(cases, codes):
    assert [reason.code for reason in ndcg_reasons(cases)] == codes


@pytest.mark.parametrize(
    ("recall", "passed", "unrelated"),
    [
        ([1, 1, 0, 0] * 200, [1, 0, 1, 0] * 200, True),
        ([1, 1, 0, 0] * 5, [1, 0, 1, 0] * 5, False),  # too few to tell
        ([1, 1, 0, 0] * 200, [1, 1, 1, 0] * 200, False),
        ([1] * 800, [1, 0] * 400, False),  # no recall to compare
        ([None] * 800, [1, 0] * 400, False),
    ],
)
def test_recall_that_answers_do_not_follow_is_a_reason(recall, passed, unrelated):
    cases = _cases(len(recall), relevant={"p": 1})
    names = [case.id for case in cases]
    found = ndcg_reasons(
        cases,
        dict(zip(names, recall, strict=True)),
        dict(zip(names, map(bool, passed), strict=True)),
    )
    assert bool(found) is unrelated


def test_the_check_of_a_gold_set_has_it_as_a_note():
    rows = [{"id": "a", "question": "Which ferry?", "relevant": {"p": 2, "q": 1}}]
    (found,) = check_goldset(read_goldset(rows))
    assert (found.check, found.severity) == ("metrics", "note")
