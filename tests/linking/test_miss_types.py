"""The near misses of every rule: what is measured just on the other side of each threshold."""

from typing import get_args

import pytest
from scipy.stats import binom

from misslink.linking.miss_types import (
    MIN_PAIRS,
    MISS_TYPES,
    MissEvidence,
    classify_miss,
)
from misslink.linking.missed_passages import PassagePool, find_missed_passages
from misslink.render.miss_sentences import MISS_LABELS, miss_type_advice
from misslink.render.reasons import describe_reasons
from misslink.retrieval import retrieval_outcome
from misslink.types import (
    Case,
    CompetingPassage,
    MissType,
    Passage,
    Reason,
    RetrievalMiss,
    Trace,
)

ABOVE = (CompetingPassage(passage_id="r", rank=1, score=0.2, cosine=0.8),)


def miss(*, rank=7, k=5, measured=None, above=ABOVE, pairs=50, **fields):
    lost = RetrievalMiss(
        passage_id="p", true_rank=rank, text="t", measured=measured or {}, above=above, depth=100
    )
    return MissEvidence(lost, k=k, pairs=pairs, **fields)


def miss_types(one):
    found = classify_miss(one)
    return [found.kind, *found.also]


def test_every_subtype_has_one_rule_and_a_recommendation():
    assert list(MISS_TYPES) == list(get_args(MissType))
    advice = [miss_type_advice(name) for name in MISS_LABELS]
    assert len(set(advice)) == len(advice)
    assert all(text.endswith((".", ".)")) for text in [*advice, miss_type_advice(None)])


def test_recorded_traces_have_no_retriever_that_could_be_asked_for_more():
    assert "--depth" in miss_type_advice(None)
    assert "--depth" not in miss_type_advice(None, deeper=False)
    assert "--corpus" in miss_type_advice(None, deeper=False)


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (5, [None]),
        (6, ["below_cutoff"]),
        (10, ["below_cutoff"]),
        (11, ["ranked_low"]),
        (87, ["ranked_low"]),
        (None, [None]),
    ],
)
def test_a_rank_up_to_two_times_k_is_below_the_cutoff_and_a_later_one_is_low(rank, expected):
    assert miss_types(miss(rank=rank)) == expected


@pytest.mark.parametrize(
    ("rank", "by_words", "fits"), [(11, 5, True), (11, 6, False), (None, 1, True), (5, 1, False)]
)
def test_a_keyword_match_is_within_k_by_words_and_not_by_the_retriever(rank, by_words, fits):
    found = miss_types(miss(rank=rank, measured={"bm25_rank": by_words, "pool": 1000}))
    assert (found[0] == "keyword_match") is fits


@pytest.mark.parametrize(
    ("rank", "measured", "fits"),
    [
        (None, {"dense_rank": 5, "pool": 1000}, True),
        (None, {"dense_rank": 6, "pool": 1000}, False),
        (40, {"dense_rank": 2, "pool": 1000}, False),  # it is returned at depth
        (None, {"bm25_rank": 2, "pool": 100}, True),  # all that there is was asked for
        (None, {"bm25_rank": 2, "pool": 101}, False),
    ],
)
def test_what_the_store_ranks_within_k_and_the_retriever_never_returns_is_filtered_out(
    rank, measured, fits
):
    assert ("filtered_out" in miss_types(miss(rank=rank, measured=measured))) is fits


@pytest.mark.parametrize(
    ("rank", "prompted", "expected"),
    [
        (5, ["1"], "dropped_from_prompt"),
        (12, ["1"], "dropped_from_prompt"),
        (9, ["10"], "dropped_from_prompt"),  # one behind it is there
        (6, None, "not_retrieved"),
        (None, ["1"], "not_retrieved"),
    ],
)
def test_dropped_needs_to_be_retrieved_and_a_prompt_that_was_seen(rank, prompted, expected):
    passages = [Passage(id=str(at), text=f"Text {at}.", rank=at) for at in range(1, 13)]
    case = Case(id="c", question="q?", relevant=[str(rank)])
    trace = Trace(case_id="c", retrieved=passages, prompted=prompted, answer="a")
    outcome = retrieval_outcome(case, trace, 5)
    (found,) = map(
        classify_miss, find_missed_passages(trace, outcome, PassagePool([trace], None), 5)
    )
    assert found.status == expected
    assert found.miss_type == ("below_cutoff" if rank == 6 else None)


@pytest.mark.parametrize(("crowd", "expected"), [(1, "below_cutoff"), (2, "duplicate_crowding")])
def test_copies_crowd_only_where_the_passage_would_be_in_time_without_them(crowd, expected):
    assert classify_miss(miss(rank=7, crowd=crowd)).miss_type == expected


DOMAIN = {
    "cosine": 0.1,
    "cosine_percentile": 0.1,
    "shared_stems": 0.6,
    "shared_stems_percentile": 0.5,
}


@pytest.mark.parametrize(
    ("change", "pairs", "fits"),
    [
        ({}, MIN_PAIRS, True),
        ({}, MIN_PAIRS - 1, False),
        ({"cosine_percentile": 0.11}, 50, False),
        ({"shared_stems_percentile": 0.49}, 50, False),
        ({"shared_stems": 0.0}, 50, False),
    ],
)
def test_domain_needs_a_low_cosine_shared_words_and_enough_pairs(change, pairs, fits):
    found = miss_types(miss(measured={**DOMAIN, **change}, pairs=pairs))
    assert ("domain_mismatch" in found) is fits


def test_so_many_pairs_seldom_put_an_ordinary_one_in_the_lowest_tenth():
    # At least the lowest 30% in truth, yet at most a tenth of the others below it.
    by_chance = [binom.cdf(int(n * 0.1), n, 0.3) for n in range(MIN_PAIRS, 500)]
    assert max(by_chance) < 0.05
    assert binom.cdf(1, 13, 0.3) > 0.05


@pytest.mark.parametrize(
    ("share", "words", "fits"),
    [
        (0.25, 6, True),
        (0.25, 5, False),  # a search by words finds it
        (0.26, 6, False),  # not so few words
        (0.0, 6, True),
        (0.2, None, False),  # its rank by words is not known
    ],
)
def test_worded_differently_needs_few_shared_words_and_no_match_by_words(share, words, fits):
    measured = {"shared_stems": share, "pool": 100} | ({"bm25_rank": words} if words else {})
    assert ("vocabulary_mismatch" in miss_types(miss(rank=11, measured=measured))) is fits


def test_what_outranks_it_is_named_with_scores():
    many = tuple(
        CompetingPassage(passage_id=f"r{at}", rank=at, score=at / 10) for at in range(1, 6)
    )
    reason = classify_miss(miss(rank=11, above=many)).reason
    assert "'r1' (rank 1, score 0.1), 'r2' (rank 2, score 0.2)" in reason
    assert reason.endswith("and 2 more")


def test_a_passage_lost_outside_the_retriever_has_a_status_and_no_miss_type():
    fits = {
        "measured": {**DOMAIN, "bm25_rank": 2, "pool": 99},
        "crowd": 3,
        "halves": ("a", "b"),
    }
    retriever = ["split_evidence", "duplicate_crowding", "below_cutoff", "keyword_match"]
    assert miss_types(miss(**fits)) == [*retriever, "domain_mismatch"]
    outside = Reason(code="text_not_known")
    lost = classify_miss(miss(**fits, outside=outside))
    assert (lost.miss_type, lost.also, lost.reason) == (None, (), describe_reasons([outside]))


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (RetrievalMiss(passage_id="p"), "its true rank is not known"),
        (RetrievalMiss(passage_id="p", depth=100), "not among the retriever's first 100"),
        (RetrievalMiss(passage_id="p", depth=9, text="t", measured={"cosine": 0.25}), "0.25"),
    ],
)
def test_what_cannot_be_told_says_why(lost, told):
    found = classify_miss(MissEvidence(lost, k=5))
    assert found.miss_type is None
    assert told in found.reason
