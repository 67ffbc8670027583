import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from misslink.retrieval import Need, found_at, needs, relevant_ids, satisfies, split_over
from misslink.text import fold
from misslink.types import Case, Passage

EVIDENCE = "The finally clause runs on the way out, whatever happens in between."


def listed(*texts, ids=None):
    names = ids or [f"p{number}" for number in range(1, len(texts) + 1)]
    return tuple(
        Passage(id=name, text=text, rank=rank)
        for rank, (name, text) in enumerate(zip(names, texts, strict=True), start=1)
    )


def case(**fields):
    return Case(id="c", question="?", **fields)


def test_ids_graded_above_0_are_the_needs():
    assert needs(case(relevant={"a": 2, "b": 0, "c": 1}), ()) == ((Need("a", 2), Need("c", 1)),)


def test_a_case_that_lists_nothing_relevant_needs_nothing():
    assert needs(case(), ()) == ()
    assert needs(case(relevant={"a": 0}, evidence={"never": 0}), listed("never")) == ()
    assert found_at(case(), listed("text")) == ()


def test_each_alternative_set_suffices_with_grades_from_relevant():
    asked = case(relevant={"a": 3, "z": 1}, relevant_any=[["a", "b", "b"], [], ["c"]])
    assert needs(asked, ()) == ((Need("a", 3), Need("b", 1)), (Need("c", 1),))


def test_evidence_counts_before_ids_and_is_numbered_as_in_the_gold_set():
    asked = case(relevant=["a"], evidence={"first": 1, "wrong": 0, "third": 2})
    assert needs(asked, listed("text")) == (
        (Need("evidence-1", 1, "first"), Need("evidence-3", 2, "third")),
    )


def test_ids_count_where_no_retrieved_passage_has_a_text():
    asked = case(relevant=["a"], evidence=["first"])
    assert needs(asked, listed("", "")) == ((Need("a", 1),),)
    assert needs(asked, ())[0][0].id == "evidence-1"
    assert needs(case(evidence=["first"]), listed("")) == ()


def test_evidence_is_found_however_it_is_spaced_quoted_or_cased():
    need = Need("evidence-1", 1, "Don't   use\n\u201csmart\u201d quotes")
    assert satisfies(need, listed('so: DON\u2019T use "Smart" quotes.')[0])
    assert not satisfies(need, listed("do use smart quotes")[0])


def test_an_id_is_compared_as_it_is():
    assert satisfies(Need("Doc 1", 1), Passage(id="Doc 1", rank=1))
    assert not satisfies(Need("Doc 1", 1), Passage(id="doc 1", rank=1, text="Doc 1"))


def test_evidence_that_folds_to_nothing_is_never_found():
    assert not satisfies(Need("evidence-1", 1, "\u200b"), listed("anything")[0])
    assert needs(case(evidence=["\u200b"]), listed("anything")) == ()


@pytest.mark.parametrize("cut", range(20, len(EVIDENCE)))
@pytest.mark.parametrize("overlap", [0, 12])
def test_evidence_is_found_over_two_chunks_wherever_it_is_cut(cut, overlap):
    first, second = "Before. " + EVIDENCE[:cut], EVIDENCE[cut - overlap :] + " After."
    end, start = listed(second.strip(), first.strip(), ids=["second", "first"])
    pair = split_over(Need("evidence-1", 1, EVIDENCE), (end, start))
    assert [half.id for half in pair] == ["first", "second"]


def test_split_evidence_counts_at_the_worse_rank_and_only_with_both_halves():
    halves = listed(EVIDENCE[40:], "nothing", "And: " + EVIDENCE[:40])
    asked = case(evidence=[EVIDENCE])
    assert found_at(asked, halves) == ({"evidence-1": 3},)
    assert found_at(asked, halves[:2]) == ({},)
    assert relevant_ids(asked, halves) == {"p1", "p3"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (EVIDENCE[:40], EVIDENCE[44:]),  # a hole
        (EVIDENCE[:40] + " not", EVIDENCE[40:]),  # does not end there
        (EVIDENCE[:40], "So " + EVIDENCE[40:]),  # does not begin there
        ("Nobody knows the", EVIDENCE[3:]),  # a chance ending: too short to tell
    ],
)
def test_pieces_that_do_not_make_up_the_evidence_are_no_split(first, second):
    assert split_over(Need("evidence-1", 1, EVIDENCE), listed(first, second)) is None


def test_a_passage_that_has_the_evidence_whole_is_no_half():
    whole, tail = listed("So: " + EVIDENCE, "between. More.")
    assert split_over(Need("evidence-1", 1, EVIDENCE), (whole, tail)) is None
    assert found_at(case(evidence=[EVIDENCE]), (tail, whole)) == ({"evidence-1": 2},)
    assert split_over(Need("a", 1), (whole, tail)) is None


def test_halves_above_the_whole_count_first():
    passages = listed(EVIDENCE[:30], EVIDENCE[30:], EVIDENCE)
    assert found_at(case(evidence=[EVIDENCE]), passages) == ({"evidence-1": 2},)
    assert relevant_ids(case(evidence=[EVIDENCE]), passages) == {"p3"}


def test_rank_of_every_need_in_every_alternative():
    asked = case(relevant_any=[["a", "x"], ["c", "b"]])
    passages = listed("", "", "", ids=["b", "a", "c"])
    assert found_at(asked, passages) == ({"a": 2}, {"c": 3, "b": 1})
    assert relevant_ids(asked, passages) == {"a", "b", "c"}


def test_every_carrier_of_the_same_evidence_is_relevant_and_the_first_gives_the_rank():
    passages = listed("no", f"one: {EVIDENCE}", f"two: {EVIDENCE}")
    assert relevant_ids(case(evidence=[EVIDENCE]), passages) == {"p2", "p3"}
    assert found_at(case(evidence=[EVIDENCE]), passages) == ({"evidence-1": 2},)


@settings(deadline=None)
@given(st.text(alphabet="ab c", min_size=1, max_size=12), st.lists(st.text("ab c", max_size=12)))
def test_a_split_holds_every_character_of_the_evidence(evidence, texts):
    passages = listed(*texts)
    pair = split_over(Need("evidence-1", 1, evidence), passages)
    if pair:
        wanted, first, second = fold(evidence), fold(pair[0].text), fold(pair[1].text)
        assert any(
            first.endswith(wanted[:end].strip()) and second.startswith(wanted[start:].strip())
            for end in range(1, len(wanted))
            for start in range(1, end + 1)
        )
        assert wanted not in first
        assert wanted not in second
