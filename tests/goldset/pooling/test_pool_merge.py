"""Grades put into the gold set: settled ones alone, 0 kept, a judge's only when asked for."""

from __future__ import annotations

import json

import pytest

from made_pools import goldset, grade_all, put_pool, truth
from misslink.errors import InputError
from misslink.goldset.pooling.grades import JudgeGrade, merge_pool_grades, write_prelabels


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "pool"


def test_grades_stand_in_the_gold_set_and_0_is_kept_as_judged(folder):
    pool = put_pool(folder)
    grade_all(folder, "ada")
    found = merge_pool_grades(folder)
    want = {(item.case_id, item.passage_id) for item in pool.items}
    got = {(case.id, name): grade for case in found[0] for name, grade in case.relevant.items()}
    assert set(got) == want
    assert all(grade == truth(*key) for key, grade in got.items())
    assert 0 in got.values()
    assert found[1]["merged"] == len(pool.items)
    json.dumps(found[1], allow_nan=False)


def test_a_grade_that_the_gold_set_had_otherwise_is_counted_and_the_rest_of_a_case_stays(folder):
    gold = goldset(1, relevant={"d0": 2, "d59": 1}, reference="It opens.", tags={"a": "b"})
    put_pool(folder, gold=gold, rejudge=True, random=0, stratified=0)
    grade_all(folder, "ada")
    found = merge_pool_grades(folder)
    (case,) = found[0]
    assert (case.relevant["d0"], case.relevant["d59"]) == (1, 1)
    assert (case.references, case.tags) == (("It opens.",), {"a": "b"})
    assert found[1]["changed"] == 1


def test_ties_are_left_out_and_queued_until_they_are_adjudicated(folder):
    pool = put_pool(folder)
    first = pool.items[0].item
    grade_all(folder, "ada")
    grade_all(folder, "bob", lambda item: (truth(item.case_id, item.passage_id) + 1) % 3
              if item.item == first else truth(item.case_id, item.passage_id))  # fmt: skip
    document = merge_pool_grades(folder)[1]
    assert (document["open"], document["merged"]) == (1, len(pool.items) - 1)
    assert [(one["item"], one["settled"]) for one in document["queue"]] == [(first, False)]
    assert document["agreement"]["kappa"]["n"] == len(pool.items)
    grade_all(folder, "", lambda _: 2, adjudicate=True)
    found = merge_pool_grades(folder)
    assert found[1]["queue"] == []
    assert {c.id: c for c in found[0]}[pool.items[0].case_id].relevant[
        pool.items[0].passage_id
    ] == 2


def test_what_stands_beside_the_grades_is_said(folder):
    gold = goldset(2, relevant={"gone": 1, "d1": 0}, relevant_any=[["d0", "away"]],
                   evidence="The harbour of passage 0.")  # fmt: skip
    pool = put_pool(folder, gold=gold)
    grade_all(folder, "ada", upto=1)
    write_prelabels(folder, [JudgeGrade(item.item, 0, "openai:m") for item in pool.items])
    told = merge_pool_grades(folder, accept_prelabels=True)[1]["notes"]
    for what, count in (
        ("evidence texts", 2), ("relevant_any", 2), ("are not in the corpus", 4),
        ("grades of the judge", len(pool.items) - 1),
    ):  # fmt: skip
        assert any(what in note and f"{count} " in note for note in told), what
    assert not any("grades of the judge" in note for note in merge_pool_grades(folder)[1]["notes"])


def test_who_has_not_graded_what_is_told(folder):
    pool = put_pool(folder)
    grade_all(folder, "ada")
    grade_all(folder, "bob", lambda _: None, upto=2)
    each = merge_pool_grades(folder)[1]["agreement"]["each"]
    assert each["bob"] == {"labelled": 0, "skipped": 2, "missing": len(pool.items) - 2}
    assert each["ada"]["missing"] == 0


def test_a_pool_that_nobody_labelled_is_told(folder):
    put_pool(folder)
    with pytest.raises(InputError, match="No annotator has labelled this pool"):
        merge_pool_grades(folder)


def test_a_judges_grades_are_merged_only_on_request_and_only_where_people_measured_it(folder):
    pool = put_pool(folder)
    with pytest.raises(InputError, match="No annotator has labelled"):
        merge_pool_grades(folder, accept_prelabels=True)
    grade_all(folder, "ada", upto=6)
    with pytest.raises(InputError, match="No judge has graded"):
        merge_pool_grades(folder, accept_prelabels=True)
    write_prelabels(folder, [JudgeGrade(item.item, 0, "openai:m") for item in pool.items[6:]])
    with pytest.raises(InputError, match="agreement is unknown"):
        merge_pool_grades(folder, accept_prelabels=True)
    write_prelabels(folder, [JudgeGrade(item.item, 0, "openai:m") for item in pool.items])
    kept = merge_pool_grades(folder)[1]
    assert (kept["merged"], kept["prelabels"]["n"]) == (6, 6)
    taken = merge_pool_grades(folder, accept_prelabels=True)
    assert taken[1]["merged"] == len(pool.items)
    assert taken[1]["accepted_prelabels"] == len(pool.items) - 6
    by_case = {case.id: case.relevant for case in taken[0]}
    for at, item in enumerate(pool.items):  # a person's word goes before the judge's
        want = truth(item.case_id, item.passage_id) if at < 6 else 0
        assert by_case[item.case_id][item.passage_id] == want
