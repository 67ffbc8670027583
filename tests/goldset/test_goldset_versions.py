import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset_cases import cases, gold
from misslink.errors import InputError
from misslink.goldset.versions import diff_cases, merge_goldsets
from misslink.types import Case


@given(cases(), st.randoms())
def test_a_gold_set_in_another_order_is_no_other_one(before, chance):
    after = [
        one.model_copy(
            update={
                "relevant": dict(reversed(one.relevant.items())),
                "relevant_any": tuple(tuple(reversed(ids)) for ids in reversed(one.relevant_any)),
                "references": tuple(reversed(one.references)),
            }
        )
        for one in before
    ]
    chance.shuffle(after)
    assert is_same(before, after)
    assert diff_cases(before, after)["same"] == len(before)


@given(cases(), cases())
def test_what_one_way_adds_the_other_way_removes(one, other):
    there, back = diff_cases(one, other), diff_cases(other, one)
    only = {c.id for c in other} - {c.id for c in one}
    assert set(there["added"]) == set(back["removed"]) == only
    assert {(c["id"], c["field"]) for c in there["changed"]} == {
        (c["id"], c["field"]) for c in back["changed"]
    }
    kept = {c.id for c in one} & {c.id for c in other}
    assert there["same"] == len(kept) - len({c["id"] for c in there["changed"]})


@given(cases(), cases())
def test_the_changes_applied_to_the_first_make_the_second(before, after):
    found = diff_cases(before, after)
    made = {c.id: c for c in before if c.id not in found["removed"]}
    for change in found["changed"]:
        now = {change["field"]: change["after"]}
        made[change["id"]] = Case.model_validate({**made[change["id"]].model_dump(), **now})
    made |= {c.id: c for c in after if c.id in found["added"]}
    assert is_same(made.values(), after)


def test_a_changed_field_is_told_with_both_values():
    (change,) = diff_cases([case()], [case(category="odd")])["changed"]
    assert change == {"id": "a", "field": "category", "before": None, "after": "odd"}


def test_flipped_grades_are_told_one_by_one_with_what_was_not_judged():
    before = [case(relevant={"p": 1, "q": 2, "r": 0}, evidence={"text": 1})]
    after = [case(relevant={"p": 2, "q": 2, "s": 0}, evidence={"text": 1})]
    assert [tuple(row.values()) for row in diff_cases(before, after)["grades"]] == [
        ("a", "p", 1, 2),
        ("a", "r", 0, None),
        ("a", "s", None, 0),
    ]


def test_the_same_content_under_another_id_is_recognised():
    before = [case("a", relevant={"p": 1, "q": 2}), case("b", relevant=["z"])]
    after = [case("c", relevant={"q": 2, "p": 1}), case("b", relevant=["z"])]
    found = diff_cases(before, after)
    assert found["renamed"] == {"a": "c"}
    assert (found["added"], found["removed"]) == (["c"], ["a"])


def is_same(before, after):
    found = diff_cases(before, after)
    return not (found["added"] or found["removed"] or found["changed"])


def case(case_id="a", question="Why?", **said):
    return Case(id=case_id, question=question, **said)


@given(cases())
def test_a_set_merged_with_itself_is_itself(one):
    merged, found = merge_goldsets([gold(one), gold(one)])
    assert merged == one
    assert (found["repeated"], found["settled"]) == (len(one), [])


@given(cases(), cases(), cases())
def test_it_does_not_matter_which_two_are_merged_first(one, two, three):
    for prefer in ("first", "last"):
        left, _ = merge_goldsets(
            [gold(merge_goldsets([gold(one), gold(two)], prefer)[0]), gold(three)], prefer
        )
        right, _ = merge_goldsets(
            [gold(one), gold(merge_goldsets([gold(two), gold(three)], prefer)[0])], prefer
        )
        whole, _ = merge_goldsets([gold(one), gold(two), gold(three)], prefer)
        assert is_same(left, right)
        assert is_same(whole, left)
        assert {c.id for c in whole} == {c.id for c in (*one, *two, *three)}


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
    (merged,), found = merge_goldsets(sets, "grades-max")
    assert merged.relevant == {"p": 2, "q": 2, "r": 0}
    assert merged.evidence == {"t": 1}
    assert found["settled"] == ["a"]


def test_grades_do_not_settle_other_fields():
    with pytest.raises(InputError, match="grades-max resolves only grades"):
        merge_goldsets([gold([case()]), gold([case(category="odd")])], "grades-max")


def test_one_question_under_two_ids_is_told():
    _, found = merge_goldsets(
        [gold([case("a", "Why, though?"), case("b", "How?")]), gold([case("c", "why  though")])]
    )
    assert found["same_question"] == [["a", "c"]]


def test_questions_without_letters_are_not_all_the_same():
    _, found = merge_goldsets([gold([case("a", "?"), case("b", "!")])])
    assert found["same_question"] == []
