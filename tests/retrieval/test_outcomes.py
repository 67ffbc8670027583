import pytest

from misslink.retrieval import retrieval_cutoff, retrieval_outcome
from misslink.types import Case, Passage, RetrievalMiss, Trace

CUT = "a long evidence that a chunk boundary cuts"


def passage(name, rank, text=""):
    return Passage(id=name, rank=rank, text=text)


def traced(ids, **fields):
    retrieved = [passage(name, rank) for rank, name in enumerate(ids, start=1)]
    return Trace(case_id="c", retrieved=retrieved, **fields)


def case(**fields):
    return Case(id="c", question="?", **fields)


def test_hit_when_everything_needed_is_in_the_first_k():
    found = retrieval_outcome(case(relevant=["b", "a"]), traced("axb"), 3)
    assert (found.retrieval, found.missed, found.note) == ("hit", (), None)
    assert {hit.need.id: hit.rank for hit in found.found} == {"b": 3, "a": 1}


def test_partial_tells_the_rank_of_what_was_cutoff():
    found = retrieval_outcome(case(relevant={"a": 1, "d": 2}), traced("abcd"), 2)
    assert found.retrieval == "partial"
    assert found.missed == (RetrievalMiss(passage_id="d", grade=2, true_rank=4, distance=2),)


def test_miss_tells_the_rank_found_by_asking_deeper_and_how_deep():
    deeper = [Passage(id="r", rank=17, score=0.4, text="of r")]
    found = retrieval_outcome(case(relevant=["r", "s"]), traced("ab", deeper=deeper, depth=100), 5)
    assert found.retrieval == "miss"
    assert found.missed == (
        RetrievalMiss(passage_id="r", true_rank=17, depth=100, distance=15, score=0.4, text="of r"),
        RetrievalMiss(passage_id="s", true_rank=None, depth=100),
    )


def test_what_reached_the_prompt_decides_not_k():
    asked = case(relevant=["c"])
    assert retrieval_outcome(asked, traced("abc", prompted=["c"]), 1).retrieval == "hit"
    dropped = retrieval_outcome(asked, traced("abc", prompted=["a", "b"]), 3)
    assert dropped.retrieval == "miss"
    assert dropped.missed[0].true_rank == 3


def test_a_complete_alternative_beats_a_longer_incomplete_one():
    asked = case(relevant_any=[["a", "b", "x"], ["c"]])
    assert retrieval_outcome(asked, traced("abc"), 3).retrieval == "hit"
    without = retrieval_outcome(asked, traced("ab"), 3)
    assert without.retrieval == "partial"
    assert [missed.passage_id for missed in without.missed] == ["x"]


def test_of_alternatives_that_all_miss_the_shorter_is_reported():
    found = retrieval_outcome(case(relevant_any=[["a", "b"], ["c"]]), traced("x"), 3)
    assert [missed.passage_id for missed in found.missed] == ["c"]


def test_missed_evidence_takes_the_id_of_the_passage_that_carries_it():
    asked = case(evidence={"the needle": 2, "the thread": 1})
    trace = Trace(
        case_id="c",
        retrieved=[passage("p1", 1, "hay"), passage("p2", 2, "So: the needle.")],
        depth=50,
    )
    found = retrieval_outcome(asked, trace, 1)
    assert found.missed == (
        RetrievalMiss(
            passage_id="p2",
            grade=2,
            true_rank=2,
            depth=50,
            distance=1,
            evidence="the needle",
            text="So: the needle.",
        ),
        RetrievalMiss(passage_id="evidence-2", grade=1, depth=50, evidence="the thread"),
    )


def test_evidence_found_over_two_passages_says_so():
    retrieved = [passage("p1", 1, "here is " + CUT[:15]), passage("p2", 2, CUT[15:] + " in two")]
    found = retrieval_outcome(case(evidence=[CUT]), Trace(case_id="c", retrieved=retrieved), 2)
    assert found.retrieval == "hit"
    assert found.note == "found split over passages: evidence-1 over 'p1' and 'p2'"


def test_the_half_that_did_not_reach_the_context_is_what_was_missed():
    trace = Trace(
        case_id="c",
        retrieved=[passage("p1", 1, "here is " + CUT[:15])],
        deeper=[passage("p9", 9, CUT[15:] + " in two")],
        depth=20,
    )
    (missed,) = retrieval_outcome(case(evidence=[CUT]), trace, 1).missed
    assert (missed.passage_id, missed.true_rank, missed.miss_type) == ("p9", 9, "split_evidence")


def test_a_case_that_needs_nothing():
    assert retrieval_outcome(case(relevant={"a": 0}), traced("a"), 3).retrieval == "unlabelled"
    unanswerable = case(relevant=["a"], answerable=False)
    assert retrieval_outcome(unanswerable, traced("a"), 3).retrieval == "not_needed"
    assert retrieval_outcome(case(), traced("a"), 3).note is None


def test_evidence_that_cannot_be_looked_for_is_no_miss_and_says_so():
    found = retrieval_outcome(case(evidence=["the needle"]), traced("ab"), 3)
    assert found.retrieval == "unknown"
    assert "no retrieved passage has a text" in found.note


def test_an_app_that_raised_before_it_retrieved_says_so():
    found = retrieval_outcome(case(relevant=["a"]), traced("", error="Boom"), 3)
    assert found.retrieval == "unknown"
    assert "failed before it retrieved" in found.note


def test_retrieval_that_was_not_seen_is_unknown_and_not_a_miss():
    unseen = Trace(case_id="c1", answer="a", unmeasured="no retrieval was seen")
    assert retrieval_outcome(case(relevant=["a"]), unseen, 3).retrieval == "unknown"
    nothing = Trace(case_id="c1", answer="a")
    assert retrieval_outcome(case(relevant=["a"]), nothing, 3).retrieval == "miss"


@pytest.mark.parametrize(
    ("given", "prompted", "k", "last"),
    [(3, None, 5, 3), (8, None, 5, 5), (8, 3, 5, 8), (3, 3, 5, 3), (0, None, 5, 5), (0, 0, 5, 5)],
)
def test_the_cutoff_is_what_the_app_asked_for_where_that_is_seen(given, prompted, k, last):
    passages = tuple(Passage(id=f"p{at}", rank=at) for at in range(1, given + 1))
    shown = None if prompted is None else tuple(one.id for one in passages[:prompted])
    assert retrieval_cutoff(Trace(case_id="c", retrieved=passages, prompted=shown), k) == last


def test_a_passage_that_was_retrieved_and_dropped_is_at_no_distance():
    passages = tuple(Passage(id=f"p{at}", rank=at) for at in range(1, 6))
    trace = Trace(case_id="c", retrieved=passages, prompted=("p1", "p2"))
    (lost,) = retrieval_outcome(Case(id="c", question="q", relevant={"p4": 1}), trace, 5).missed
    assert (lost.true_rank, lost.distance) == (4, None)
