"""A gold set in parts: nothing lost, nothing torn, the same every time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset_cases import cases
from misslink.errors import InputError
from misslink.goldset.versions import parse_parts, split_goldset
from misslink.types import Case

PARTS = {"dev": 0.7, "test": 0.3}


def can_be_split(given_cases, by):
    """Whether there are groups enough, counted another way: by spreading from the first case."""
    left = list(given_cases)
    keys = {case.id: rests_on(case) for case in left} if by == "source" else None
    if by == "tag:topic":
        tagged = [case for case in left if "topic" in case.tags]
        return bool(tagged) and len(left) - len(tagged) + 1 >= len(PARTS)  # all say the same
    if by == "category":
        return len({case.category for case in left}) >= len(PARTS)
    if by == "none":
        return len(left) >= len(PARTS)
    reached, found = {left[0].id}, set(keys[left[0].id])
    while more := {name for name, has in keys.items() if name not in reached and has & found}:
        reached |= more
        found = set().union(*(keys[name] for name in reached))
    return len(reached) < len(left)


def rests_on(case):
    listed = {p for p, grade in case.relevant.items() if grade}
    listed |= {p for ids in case.relevant_any for p in ids}
    documents = {passage.split("#")[0] for passage in listed}
    documents |= {case.tags["source"]} if "source" in case.tags else set()
    return documents | {("evidence", " ".join(t.lower().split())) for t in case.evidence}


@pytest.mark.slow
@given(cases(), st.sampled_from(["source", "category", "none", "tag:topic"]), st.integers(0, 3))
def test_every_case_is_in_just_one_part_or_there_are_too_few_groups(given_cases, by, seed):
    if not can_be_split(given_cases, by):
        with pytest.raises(InputError, match=r"too few for 2 parts|No case has the tag"):
            split_goldset(given_cases, PARTS, by=by, seed=seed)
        return
    found = split_goldset(given_cases, PARTS, by=by, seed=seed)
    dealt = [case for part in found.parts for case in part.cases]
    assert sorted(case.id for case in dealt) == sorted(case.id for case in given_cases)
    assert all(part.cases for part in found.parts)
    assert split_goldset(given_cases, PARTS, by=by, seed=seed) == found


@given(cases())
def test_no_document_and_no_evidence_is_in_two_parts(given_cases):
    alone = Case(id="alone", question="?")  # so that there are two groups
    found = split_goldset([*given_cases, alone], PARTS, by="source")
    one, other = ({key for case in part.cases for key in rests_on(case)} for part in found.parts)
    assert not one & other


def test_cases_that_share_nothing_are_together_by_way_of_a_third():
    given_cases = [
        Case(id="a", question="?", relevant=["p"]),
        Case(id="b", question="?", relevant=["p", "q"]),
        Case(id="c", question="?", relevant=["q"]),
        Case(id="d", question="?", relevant=["r"]),
    ]
    found = split_goldset(given_cases, PARTS, by="source")
    assert (found.groups, found.largest) == (2, 3)
    assert [{case.id for case in part.cases} for part in found.parts] == [{"a", "b", "c"}, {"d"}]


def test_categories_are_spread_as_the_shares_say():
    given_cases = [
        Case(
            id=str(n), question="?", relevant=[f"p{n}"], category="rare" if n % 10 == 0 else "often"
        )
        for n in range(200)
    ]
    found = split_goldset(given_cases, {"dev": 0.8, "test": 0.2}, by="source", seed=4)
    counts = [
        (len(part.cases), sum(case.category == "rare" for case in part.cases))
        for part in found.parts
    ]
    assert counts == [(160, 16), (40, 4)]


def test_the_seed_decides_which_cases_go_where():
    given_cases = [Case(id=str(n), question="?", relevant=[f"p{n}"]) for n in range(50)]
    drawn = [
        split_goldset(given_cases, PARTS, by="source", seed=seed).parts[1] for seed in range(5)
    ]
    assert len({tuple(case.id for case in part.cases) for part in drawn}) == 5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("dev=0.8", "add to 0.8"),
        ("dev=0.5,test=0.6", "add to 1.1"),
        ("dev,test=0.2", "'dev' is not name=share"),
        ("dev=half,test=0.5", "'dev=half' is not name=share"),
        ("dev=1,test=0", "'dev=1' is not name=share"),
        ("dev=nan,test=0.5", "'dev=nan' is not name=share"),
        ("../dev=0.5,test=0.5", "is a file name"),
        ("a=0.5,a=0.5", "named twice"),
    ],
)
def test_parts_that_cannot_be_are_refused(text, told):
    with pytest.raises(
        InputError, match=r"is not name=share|add to|is a file name|named twice"
    ) as refused:
        parse_parts(text)
    assert told in str(refused.value)


def test_too_few_groups_are_refused_with_a_way_out():
    one = [Case(id=name, question="?", relevant=["p"]) for name in "ab"]
    with pytest.raises(InputError, match=r"form 1 group by source, too few for 2 parts"):
        split_goldset(one, PARTS, by="source")


def test_cases_whose_document_nobody_names_are_counted():
    cases = [
        Case(id="a", question="?", evidence={"Ships dock at nine.": 1}),
        Case(id="b", question="??", evidence={"Ships leave at ten.": 1}, tags={"source": "port"}),
        Case(id="c", question="???", relevant={"port#1": 1}, evidence={"Tea is sold.": 1}),
        Case(id="d", question="????"),
    ]
    found = split_goldset(cases, {"dev": 0.5, "test": 0.5}, by="source")
    assert (found.by_evidence_alone, found.without_source) == (1, 1)
    assert split_goldset(cases, {"dev": 0.5, "test": 0.5}, by="none").by_evidence_alone == 0


@pytest.mark.parametrize("by", ["source", "category", "tag:topic"])
def test_turns_of_a_conversation_stay_together(by):
    turns = [
        Case(
            id=f"{name}/{turn}",
            question=f"{name} {turn}?",
            group=name,
            category=f"{turn}{name}",
            relevant=[f"{name}-{turn}"],
            tags={"topic": f"{name}{turn}"},
        )
        for name in "abcdef"
        for turn in (1, 2, 3)
    ]
    split = split_goldset(turns, {"dev": 0.5, "test": 0.5}, by=by)
    dev, test = ({case.group for case in part.cases} for part in split.parts)
    assert (split.groups, len(dev) + len(test), dev & test) == (6, 6, set())
    assert split_goldset(turns, {"dev": 0.5, "test": 0.5}, by="none").groups == 18
