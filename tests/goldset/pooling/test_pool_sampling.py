"""The draw: everything pooled, exact weights outside, the same by the same seed, blind in order."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_pools import goldset, pool_of, ranked
from misslink.errors import InputError
from misslink.goldset.pooling.rankings import band_sizes, draw_passages, question_generator


def drawn(count=60, pooled=range(5), known=(), **options):
    options = {"depth": 3, "random": 3, "stratified": 6, **options}
    generator = question_generator(options.pop("seed", 0), "q")
    strata, places = draw_passages(range(count), pooled, known, generator=generator, **options)
    return SimpleNamespace(strata=strata, places=places)


@given(
    count=st.integers(1, 300), pooled=st.integers(0, 20), random=st.integers(0, 12),
    stratified=st.integers(0, 25), depth=st.integers(1, 20), seed=st.integers(0, 99),
)  # fmt: skip
def test_strata_cover_the_corpus_and_weights_add_up_to_it(
    count, pooled, random, stratified, depth, seed
):
    found = drawn(count, range(min(pooled, count)), random=random, stratified=stratified,
                  depth=depth, seed=seed)  # fmt: skip
    assert sum(stratum.size for stratum in found.strata) == count
    places = [place for place, _ in found.places]
    assert len(set(places)) == len(places)
    counts = Counter(stratum for _, stratum in found.places)
    for at, stratum in enumerate(found.strata):
        assert counts[at] == stratum.drawn <= stratum.size
    outside = count - min(pooled, count)
    assert len(places) - min(pooled, count) == min(outside, random + stratified) or stratified
    if random + stratified:
        weights = sum(found.strata[at].weight for _, at in found.places)
        assert weights == pytest.approx(count)


def test_everything_that_a_retriever_brings_is_asked_about_with_weight_1():
    found = drawn(pooled=[7, 3, 9])
    assert {place for place, at in found.places if at == 1} == {3, 7, 9}
    assert found.strata[1].weight == 1


def test_what_has_a_grade_is_neither_asked_nor_drawn():
    found = drawn(pooled=[0, 1], known=[1, 40])
    assert found.strata[0].size == 2
    assert not {1, 40} & {place for place, _ in found.places}


def test_a_band_is_drawn_from_alike_given_how_many_were_drawn():
    """Over many draws every passage of a band stands for as many as its weight says."""
    sums = np.zeros(60)
    draws = 3000
    for seed in range(draws):
        found = drawn(pooled=(), seed=seed, random=4, stratified=8)
        for place, at in found.places:
            sums[place] += found.strata[at].weight
    assert sums.mean() / draws == pytest.approx(1)
    # A weight is at most 15 here, so each mean has a standard error below sqrt(15 / 3000).
    assert np.abs(sums / draws - 1).max() < 4 * np.sqrt(15 / draws)


def test_near_bands_are_drawn_from_more_densely():
    found = drawn(5000, depth=10, random=0, stratified=8)
    assert [stratum.size for stratum in found.strata[2:]] == [10, 100, 1000, 3885]
    weights = [stratum.weight for stratum in found.strata[2:]]
    assert weights == sorted(weights)
    assert len({stratum.drawn for stratum in found.strata[2:]}) == 1


@pytest.mark.parametrize(("outside", "stratified"), [(0, 10), (1, 10), (3, 0), (11, 4), (9999, 25)])
def test_bands_are_never_empty(outside, stratified):
    sizes = band_sizes(outside, stratified, 10)
    assert sum(sizes) == outside
    assert all(sizes)


def test_the_same_seed_draws_the_same_and_another_another():
    assert pool_of().items == pool_of().items
    assert pool_of().items != pool_of(seed=1).items


def test_one_question_more_changes_no_draw_of_another():
    def of(pool):
        return {item.item: item.weight for item in pool.items if item.case_id == "q0"}

    assert of(pool_of()) == of(pool_of(gold=goldset(2)))


def test_the_order_tells_nothing_of_the_retriever():
    """Which of a question's items comes first is as often a pooled one as their share."""
    first, share = [], []
    for seed in range(300):
        items = [item for item in pool_of(seed=seed).items if item.case_id == "q0"]
        first.append(items[0].stratum == 1)
        share.append(sum(item.stratum == 1 for item in items) / len(items))
    expected = np.mean(share)
    assert abs(np.mean(first) - expected) < 4 * np.sqrt(expected * (1 - expected) / 300)


def test_questions_come_one_after_the_other_in_another_order_than_in_the_gold_set():
    order = [item.case_id for item in pool_of(gold=goldset(6)).items]
    starts = [case for at, case in enumerate(order) if at == 0 or order[at - 1] != case]
    assert sorted(starts) == [f"q{n}" for n in range(6)]
    assert starts != sorted(starts)


def test_a_grade_of_the_gold_set_is_asked_about_again_on_request():
    gold = goldset(1, relevant={"d0": 1, "d6": 0})
    runs = (ranked("a", {"q0": ["d0", "d6", "d12"]}),)
    kept = {item.passage_id for item in pool_of(gold, runs).items}
    assert not kept & {"d0", "d6"}
    again = {item.passage_id for item in pool_of(gold, runs, rejudge=True).items}
    assert {"d0", "d6", "d12"} <= again


def test_a_pool_of_which_everything_has_a_grade_is_told_with_the_way_out():
    gold = goldset(1, relevant={"d0": 1})
    with pytest.raises(InputError, match="Grade them again with --rejudge"):
        pool_of(gold, (ranked("a", {"q0": ["d0"]}),), random=0, stratified=0)
