import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.retrieval import (
    LabelledNeed,
    case_needs,
    find_split,
    match_needs,
    relevant_ids,
    satisfies,
)
from misslink.text.normalization import fold
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


def rank(evidence, passages):
    found = match_needs(case_needs(case(evidence=[evidence]), passages)[0], passages)
    return found[0].rank if found else None


def test_ids_graded_above_0_are_the_needs():
    assert case_needs(case(relevant={"a": 2, "b": 0, "c": 1}), ()) == (
        (LabelledNeed("a", 2), LabelledNeed("c", 1)),
    )


def test_a_case_that_lists_nothing_relevant_needs_nothing():
    assert case_needs(case(), ()) == ()
    assert case_needs(case(relevant={"a": 0}, evidence={"never": 0}), listed("never")) == ()


def test_each_alternative_set_suffices_with_grades_from_relevant():
    asked = case(relevant={"a": 3, "z": 1}, relevant_any=[["a", "b", "b"], [], ["c"]])
    assert case_needs(asked, ()) == (
        (LabelledNeed("a", 3), LabelledNeed("b", 1)),
        (LabelledNeed("c", 1),),
    )


def test_evidence_counts_before_ids_and_is_numbered_as_in_the_gold_set():
    asked = case(relevant=["a"], evidence={"first": 1, "wrong": 0, "third": 2})
    assert case_needs(asked, listed("text")) == (
        (LabelledNeed("evidence-1", 1, "first"), LabelledNeed("evidence-3", 2, "third")),
    )


def test_ids_count_where_no_retrieved_passage_has_a_text():
    asked = case(relevant=["a"], evidence=["first"])
    assert case_needs(asked, listed("", "")) == ((LabelledNeed("a", 1),),)
    assert case_needs(asked, ())[0][0].id == "evidence-1"
    assert case_needs(case(evidence=["first"]), listed("")) == ()


def test_evidence_is_found_however_it_is_spaced_quoted_or_cased():
    need = LabelledNeed("evidence-1", 1, "Don't   use\n\u201csmart\u201d quotes")
    assert satisfies(need, listed('so: DON\u2019T use "Smart" quotes.')[0])
    assert not satisfies(need, listed("do use smart quotes")[0])


def test_an_id_is_compared_as_it_is():
    assert satisfies(LabelledNeed("Doc 1", 1), Passage(id="Doc 1", rank=1))
    assert not satisfies(LabelledNeed("Doc 1", 1), Passage(id="doc 1", rank=1, text="Doc 1"))


def test_evidence_that_folds_to_nothing_is_never_found():
    assert not satisfies(LabelledNeed("evidence-1", 1, "\u200b"), listed("anything")[0])
    with pytest.raises(ValueError, match="not empty"):
        case(evidence=["\u200b"])


@pytest.mark.parametrize("cut", range(17, len(EVIDENCE) - 16))  # a quarter of 68 characters
@pytest.mark.parametrize("overlap", [0, 12])
def test_evidence_is_found_over_two_chunks_wherever_it_is_cut(cut, overlap):
    first, second = "Before. " + EVIDENCE[:cut], EVIDENCE[cut - overlap :] + " After."
    end, start = listed(second.strip(), first.strip(), ids=["second", "first"])
    pair = find_split(LabelledNeed("evidence-1", 1, EVIDENCE), (end, start))
    assert [half.id for half in pair] == ["first", "second"]


def test_split_evidence_counts_at_the_worse_rank_and_only_with_both_halves():
    halves = listed(EVIDENCE[40:], "nothing", "And: " + EVIDENCE[:40])
    assert rank(EVIDENCE, halves) == 3
    assert rank(EVIDENCE, halves[:2]) is None
    assert relevant_ids(case(evidence=[EVIDENCE]), halves) == {"p1", "p3"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (EVIDENCE[:40], EVIDENCE[44:]),  # a hole
        (EVIDENCE[:40] + " not", EVIDENCE[40:]),  # does not end there
        (EVIDENCE[:40], "So " + EVIDENCE[40:]),  # does not begin there
        ("Nobody knows the", EVIDENCE[3:]),  # a chance ending: too short to tell
        (EVIDENCE[:55], EVIDENCE[55:]),  # and a chance beginning
        ("Breathe " + EVIDENCE[:40].replace("The", "xthe"), EVIDENCE[40:]),  # begins in a word
        (EVIDENCE[:40], EVIDENCE[40:-1] + "s"),  # ends in a word
    ],
)
def test_pieces_that_do_not_make_up_the_evidence_are_no_split(first, second):
    assert find_split(LabelledNeed("evidence-1", 1, EVIDENCE), listed(first, second)) is None


def test_an_end_of_the_evidence_that_a_longer_word_begins_with_is_none():
    evidence = EVIDENCE.rstrip(".")
    need = LabelledNeed("evidence-1", 1, evidence)
    assert find_split(need, listed(evidence[:40], evidence[40:] + ", too."))
    assert find_split(need, listed(evidence[:40], evidence[40:] + "ly.")) is None


def test_a_passage_that_has_the_evidence_whole_is_no_half():
    whole, tail = listed("So: " + EVIDENCE, "between. More.")
    assert find_split(LabelledNeed("evidence-1", 1, EVIDENCE), (whole, tail)) is None
    assert rank(EVIDENCE, (tail, whole)) == 2
    assert find_split(LabelledNeed("a", 1), (whole, tail)) is None


def test_halves_above_the_whole_count_first():
    passages = listed(EVIDENCE[:30], EVIDENCE[30:], EVIDENCE)
    assert rank(EVIDENCE, passages) == 2
    assert relevant_ids(case(evidence=[EVIDENCE]), passages) == {"p3"}


def test_rank_of_every_need_in_every_alternative():
    asked = case(relevant_any=[["a", "x"], ["c", "b"]])
    passages = listed("", "", "", ids=["b", "a", "c"])
    found = [match_needs(alternative, passages) for alternative in case_needs(asked, passages)]
    assert [{hit.need.id: hit.rank for hit in hits} for hits in found] == [
        {"a": 2},
        {"c": 3, "b": 1},
    ]
    assert relevant_ids(asked, passages) == {"a", "b", "c"}


def test_every_carrier_of_the_same_evidence_is_relevant_and_the_first_gives_the_rank():
    passages = listed("no", f"one: {EVIDENCE}", f"two: {EVIDENCE}")
    assert relevant_ids(case(evidence=[EVIDENCE]), passages) == {"p2", "p3"}
    assert rank(EVIDENCE, passages) == 2


@pytest.mark.parametrize(
    ("evidence", "text", "there"),
    [
        ("ten", "It happens often, or tenfold.", False),
        ("ten", "Often; there are ten of them.", True),
        ("ten", "a (ten-year) plan", True),
        ("7", "in 1970", False),
        ("7", "7.5 of them, or 3.7", False),
        ("7", "version 7.", True),
        ("1970", "since 1970, that is", True),
        ("exit", "calls __exit__ itself", False),
        ("__exit__()", "calls obj.__exit__()!", True),
        ("finally clause", "two finally clauses", False),
        ("\u6771\u4eac", "\u65e5\u672c\u306e\u6771\u4eac\u90fd", True),  # no blanks between words
    ],
)
def test_evidence_does_not_begin_or_end_within_a_word_or_a_number(evidence, text, there):
    assert satisfies(LabelledNeed("evidence-1", 1, evidence), listed(text)[0]) is there


@pytest.mark.parametrize(
    ("evidence", "texts"),
    [
        ("yes", ["They were happy", "Estimates differ."]),
        ("Paris", ["So said grandpa", "Risk is everywhere."]),
        ("thirty-nine characters are not enough.", ["thirty-nine characters", "are not enough."]),
    ],
)
def test_short_evidence_is_not_looked_for_in_two_parts(evidence, texts):
    assert find_split(LabelledNeed("evidence-1", 1, evidence), listed(*texts)) is None


def test_texts_that_fold_to_the_same_are_one_need_with_the_better_grade():
    asked = case(evidence={"It\u2019s  so.": 1, "other": 1, "IT'S SO.": 2, "it's so. ": 0})
    assert case_needs(asked, ()) == (
        (LabelledNeed("evidence-1", 2, "It\u2019s  so."), LabelledNeed("evidence-2", 1, "other")),
    )


HALVES = EVIDENCE[:34], EVIDENCE[34:]


@pytest.mark.parametrize(
    ("first", "second", "adjoin"),
    [
        ("guide#12", "guide#13", True),
        ("guide#12", "guide#14", True),  # overlapping by more than half
        ("guide#12", "guide#19", False),
        ("guide#13", "guide#12", False),
        ("guide#12", "other#13", False),
        ("guide.pdf:6:2", "guide.pdf:7:0", True),  # over a page
        ("guide.pdf:6:2", "notes.pdf:7:0", False),
        ("p1", "q2", True),  # nothing tells
        ("9", "4", True),
        ("0b6f7c1e-9a53-4b0e-8f1d-000000000012", "77aa01d2-1c2b-4a51-9e08-000000000940", True),
    ],
)
def test_two_halves_adjoin_unless_their_ids_tell_otherwise(first, second, adjoin):
    pair = find_split(LabelledNeed("evidence-1", 1, EVIDENCE), listed(*HALVES, ids=[first, second]))
    assert (pair is not None) is adjoin


@pytest.mark.parametrize(
    ("first", "second", "adjoin"),
    [
        ({"source": "a.md"}, {"source": "b.md"}, False),
        ({"source": "a.md"}, {"source": "a.md"}, True),
        ({"source": "a.md"}, {}, True),
        ({"source": "a.md", "start_index": 100}, {"source": "a.md", "start_index": 134}, True),
        ({"source": "a.md", "start_index": 100}, {"source": "a.md", "start_index": 900}, False),
        ({"source": "a.md", "start_index": 134}, {"source": "a.md", "start_index": 100}, False),
        ({"page": 1, "start_index": 900}, {"page": 2, "start_index": 0}, True),  # counted anew
        ({"chunk_index": 4}, {"chunk_index": 5}, True),
        ({"chunk_index": 4}, {"chunk_index": 9}, False),
        ({"chunk_id": "x"}, {"chunk_id": "y"}, True),  # no number
    ],
)
def test_two_halves_adjoin_unless_their_metadata_tell_otherwise(first, second, adjoin):
    halves = [
        half.model_copy(update={"metadata": told})
        for half, told in zip(listed(*HALVES), (first, second), strict=True)
    ]
    assert (find_split(LabelledNeed("evidence-1", 1, EVIDENCE), halves) is not None) is adjoin


def test_what_the_metadata_say_of_the_document_counts_before_the_ids():
    halves = [
        half.model_copy(update={"metadata": {"source": "one.md"}})
        for half in listed(*HALVES, ids=["intro-9", "usage-1"])
    ]
    assert find_split(LabelledNeed("evidence-1", 1, EVIDENCE), halves)


WORDS = st.lists(st.sampled_from(["a", "bb", "a bb", "c-", "dd."]), min_size=14, max_size=30)


@given(WORDS, st.data())
def test_a_split_holds_every_character_of_the_evidence(words, data):
    wanted = fold(" ".join(words))
    cuts = st.integers(0, len(wanted))
    first, second, low, high = data.draw(st.tuples(cuts, cuts, cuts, cuts))
    texts = [wanted[:first], wanted[second:], wanted[min(low, high) : max(low, high)]]
    pair = find_split(LabelledNeed("evidence-1", 1, wanted), listed(*texts))
    possible = [
        (first, second)
        for first, second in itertools.permutations(map(fold, texts), 2)
        if any(
            first.endswith(wanted[:end].strip()) and second.startswith(wanted[start:].strip())
            for end in range(10, len(wanted))
            for start in range(1, min(end, len(wanted) - 10) + 1)
        )
    ]
    if pair:
        first, *middle, last = (fold(part.text) for part in pair)
        assert middle or (first, last) in possible
        assert all(part in wanted for part in middle)
        assert sum(len(part) + 1 for part in (first, *middle, last)) >= len(wanted)
        assert not any(wanted in part.text for part in pair)
