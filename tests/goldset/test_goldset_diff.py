"""Two versions of a gold set: what changed, and what is only written in another order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from goldset_cases import cases
from misslink.goldset.diff import diff_cases, same_content
from misslink.types import Case


def case(case_id="a", **said):
    return Case(id=case_id, question="Why?", **said)


@settings(max_examples=30)  # sets are slow to make
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
    found = diff_cases(before, after)
    assert not found
    assert found.same == len(before)


@settings(max_examples=30)  # sets are slow to make
@given(cases(), cases())
def test_what_one_way_adds_the_other_way_removes(one, other):
    there, back = diff_cases(one, other), diff_cases(other, one)
    assert set(there.added) == set(back.removed) == {c.id for c in other} - {c.id for c in one}
    assert {(c.case_id, c.field) for c in there.changed} == {
        (c.case_id, c.field) for c in back.changed
    }
    kept = {c.id for c in one} & {c.id for c in other}
    assert there.same == len(kept) - len({c.case_id for c in there.changed})


@settings(max_examples=30)  # sets are slow to make
@given(cases(), cases())
def test_the_changes_applied_to_the_first_make_the_second(before, after):
    found = diff_cases(before, after)
    made = {c.id: c for c in before if c.id not in found.removed}
    for change in found.changed:
        now = {change.field: change.after}
        made[change.case_id] = Case.model_validate({**made[change.case_id].model_dump(), **now})
    made |= {c.id: c for c in after if c.id in found.added}
    assert not diff_cases(made.values(), after)


def test_a_changed_field_is_told_with_both_values():
    (change,) = diff_cases([case()], [case(category="odd")]).changed
    assert (change.case_id, change.field, change.before, change.after) == (
        *("a", "category"),
        None,
        "odd",
    )


def test_flipped_grades_are_told_one_by_one_with_what_was_not_judged():
    before = [case(relevant={"p": 1, "q": 2, "r": 0}, evidence={"text": 1})]
    after = [case(relevant={"p": 2, "q": 2, "s": 0}, evidence={"text": 1})]
    assert diff_cases(before, after).flipped == (
        ("a", "p", 1, 2),
        ("a", "r", 0, None),
        ("a", "s", None, 0),
    )


def test_the_same_content_under_another_id_is_recognised():
    before = [case("a", relevant={"p": 1, "q": 2}), case("b", relevant=["z"])]
    after = [case("c", relevant={"q": 2, "p": 1}), case("b", relevant=["z"])]
    found = diff_cases(before, after)
    assert dict(found.renamed) == {"a": "c"}
    assert (found.added, found.removed) == (("c",), ("a",))


def test_ids_say_nothing_of_content():
    assert same_content(case("a", category="odd"), case("b", category="odd"))
    assert not same_content(case("a", category="odd"), case("a"))
