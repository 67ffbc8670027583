"""The near misses of every rule: what is measured just on the other side of each threshold."""

from __future__ import annotations

from typing import get_args

import pytest
from scipy.stats import binom

from misslink.linking.miss_types import (
    MIN_PAIRS,
    MISS_TYPES,
    MissEvidence,
    classify_miss,
    miss_type_advice,
)
from misslink.types import CompetingPassage, MissType, RetrievalMiss

ABOVE = (CompetingPassage(passage_id="r", rank=1, score=0.2, cosine=0.8),)


def miss(*, rank=7, k=5, measured=None, above=ABOVE, pairs=50, **fields):
    lost = RetrievalMiss(
        passage_id="p", true_rank=rank, text="t", measured=measured or {}, above=above, depth=100
    )
    return MissEvidence(lost, k=k, pairs=pairs, **fields)


def miss_types(one):
    found = classify_miss(one)
    return [found.miss_type, *found.also]


def test_every_subtype_has_one_rule_and_a_recommendation():
    assert sorted(name for name in MISS_TYPES) == sorted(get_args(MissType))
    advice = [miss_type_advice(name) for name in MISS_TYPES]
    assert len(set(advice)) == len(advice)
    assert all(text.endswith((".", ".)")) for text in [*advice, miss_type_advice(None)])


def test_a_bare_rank_is_below_the_cut_off_and_nothing_more():
    assert miss_types(miss()) == ["below_cutoff"]
    assert miss_types(miss(rank=6)) == ["below_cutoff"]
    assert miss_types(miss(rank=5)) == [None]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"retrieved": True, "prompt_seen": True, "rank": 5}, "dropped_from_prompt"),
        ({"retrieved": True, "prompt_seen": True, "rank": 6}, "below_cutoff"),
        ({"retrieved": True, "prompt_seen": False, "rank": 5}, None),
        ({"retrieved": False, "prompt_seen": True, "rank": 5}, None),
        (
            {"retrieved": True, "prompt_seen": True, "rank": 9, "overtaken_by": "z"},
            "dropped_from_prompt",
        ),
    ],
)
def test_dropped_needs_to_be_retrieved_in_time_and_a_prompt_that_was_seen(fields, expected):
    assert classify_miss(miss(**fields)).miss_type == expected


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
    ("share", "dense", "words", "fits"),
    [
        (0.25, 6, 30, True),
        (0.25, 6, 29, False),  # not five times as far down
        (0.26, 6, 30, False),  # not so few words
        (0.25, 1, 5, False),  # a search by words would have found it
        (0.5, 30, 6, True),
        (0.5, 29, 6, False),
        (0.49, 30, 6, False),
        (0.5, 5, 1, False),  # the embedding would have found it
        (0.0, 6, 6, True),  # not one word shared
    ],
)
def test_vocabulary_needs_words_and_ranks_to_agree(share, dense, words, fits):
    measured = {"shared_stems": share, "dense_rank": dense, "bm25_rank": words, "pool": 100}
    assert ("vocabulary_mismatch" in miss_types(miss(measured=measured))) is fits


def test_vocabulary_cannot_be_told_without_both_ranks():
    assert miss_types(miss(measured={"shared_stems": 0.2, "bm25_rank": 90})) == ["below_cutoff"]


@pytest.mark.parametrize(
    ("measured", "pairs", "above", "fits"),
    [
        ({"cosine": 0.6, "cosine_percentile": 0.5}, 20, ABOVE, True),
        ({"cosine": 0.6, "cosine_percentile": 0.49}, 20, ABOVE, False),
        ({"cosine": 0.6, "cosine_percentile": 0.9}, 19, ABOVE, False),
        ({"cosine": 0.6, "cosine_kth": 0.6}, 0, ABOVE, True),
        ({"cosine": 0.6, "cosine_kth": 0.61}, 0, ABOVE, False),
        ({"cosine": 0.6, "cosine_kth": 0.6}, 0, (), False),  # nothing stood above it
    ],
)
def test_ranking_needs_a_usual_cosine_and_something_that_outranks_it(measured, pairs, above, fits):
    assert ("ranked_low" in miss_types(miss(measured=measured, pairs=pairs, above=above))) is fits


def test_what_outranks_it_is_named_with_scores():
    many = tuple(
        CompetingPassage(passage_id=f"r{at}", rank=at, score=at / 10) for at in range(1, 6)
    )
    reason = classify_miss(miss(measured={"cosine": 0.6, "cosine_kth": 0.5}, above=many)).reason
    assert "'r1' (rank 1, score 0.1), 'r2' (rank 2, score 0.2)" in reason
    assert reason.endswith("and 2 more")


def test_what_is_not_there_comes_before_all_that_is_measured():
    everything = miss(
        measured={**DOMAIN, "cosine_kth": 0.05, "dense_rank": 90, "bm25_rank": 2, "pool": 99},
        crowd=3, halves=("a", "b"), retrieved=True, prompt_seen=True, overtaken_by="z",
        lacking="the listed corpus of 9 passages",
    )  # fmt: skip
    assert miss_types(everything) == list(MISS_TYPES)


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (RetrievalMiss(passage_id="p"), "the retriever was not asked deeper"),
        (RetrievalMiss(passage_id="p", depth=100), "not among the first 100"),
        (RetrievalMiss(passage_id="p", depth=9, text="t", measured={"cosine": 0.25}), "0.25"),
    ],
)
def test_what_cannot_be_told_says_why(lost, told):
    found = classify_miss(MissEvidence(lost, k=5))
    assert found.miss_type is None
    assert told in found.reason
