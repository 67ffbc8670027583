"""Gold sets merged by id: nothing doubled, nothing decided silently."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from goldset_cases import cases, gold
from misslink.errors import InputError
from misslink.goldset.diff import diff_cases, merge_goldsets
from misslink.types import Case


def case(case_id="a", question="Why?", **said):
    return Case(id=case_id, question=question, **said)


@settings(max_examples=30)  # sets are slow to make
@given(cases())
def test_a_set_merged_with_itself_is_itself(one):
    found = merge_goldsets([gold(one), gold(one)])
    assert found.cases == one
    assert (found.repeated, found.settled) == (len(one), ())


@settings(max_examples=30)  # sets are slow to make
@given(cases(), cases(), cases())
def test_it_does_not_matter_which_two_are_merged_first(one, two, three):
    for prefer in ("first", "last"):
        left = merge_goldsets(
            [gold(merge_goldsets([gold(one), gold(two)], prefer).cases), gold(three)], prefer
        )
        right = merge_goldsets(
            [gold(one), gold(merge_goldsets([gold(two), gold(three)], prefer).cases)], prefer
        )
        whole = merge_goldsets([gold(one), gold(two), gold(three)], prefer)
        assert not diff_cases(left.cases, right.cases)
        assert not diff_cases(whole.cases, left.cases)
        assert {c.id for c in whole.cases} == {c.id for c in (*one, *two, *three)}


def test_what_two_sets_say_differently_is_refused_with_both_places():
    one = gold([case("z"), case(relevant={"p": 1})], "one.jsonl")
    other = gold([case(relevant={"p": 2})], "two.jsonl")
    with pytest.raises(InputError) as refused:
        merge_goldsets([one, other])
    told = str(refused.value)
    assert told.startswith("two.jsonl, line 1, field 'relevant': The case 'a' differs")
    assert "from one.jsonl, line 2" in told
    assert "--prefer first, last, grades-max" in told


def test_the_highest_grade_of_each_passage_holds_on_request():
    sets = [
        gold([case(relevant={"p": 1, "q": 2}, evidence={"t": 0})]),
        gold([case(relevant={"p": 2, "r": 0}, evidence={"t": 1})]),
    ]
    found = merge_goldsets(sets, "grades-max")
    assert found.cases[0].relevant == {"p": 2, "q": 2, "r": 0}
    assert found.cases[0].evidence == {"t": 1}
    assert found.settled == ("a",)


def test_grades_do_not_settle_other_fields():
    with pytest.raises(InputError, match="grades-max resolves only grades"):
        merge_goldsets([gold([case()]), gold([case(category="odd")])], "grades-max")


def test_one_question_under_two_ids_is_told():
    found = merge_goldsets(
        [gold([case("a", "Why, though?"), case("b", "How?")]), gold([case("c", "why  though")])]
    )
    assert found.same_question == (("a", "c"),)


def test_questions_without_letters_are_not_all_the_same():
    assert merge_goldsets([gold([case("a", "?"), case("b", "!")])]).same_question == ()
