"""Bounds under incomplete judgements, against every way in which they could be completed."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.registry import rank_metrics
from misslink.retrieval import collect_hits, format_metric_name, metric_bounds, parse_metric
from misslink.retrieval.metrics import RankMetric
from misslink.types import Case, Passage
from naive_hits import hits_of_qrels

EVERY = sorted(
    {format_metric_name(name, k, 0.8) for name in rank_metrics.names() for k in ("1", "3", "10")}
)
documents = "abcdefg"
orders = st.permutations(documents).flatmap(
    lambda order: st.integers(1, len(order)).map(lambda length: list(order[:length]))
)
grades = st.dictionaries(st.sampled_from([*documents, "x", "y"]), st.integers(0, 3), max_size=7)


def ends(name, relevant, ids, level=1):
    hits = hits_of_qrels({"q": relevant}, {"q": ids}, level)
    low, high = metric_bounds(parse_metric(name), hits, grade=level)
    return low[0], high[0]


@pytest.mark.slow
@given(grades.filter(lambda relevant: any(relevant.values())), orders)
def test_bounds_are_reached_and_nothing_lies_outside(relevant, ids):
    for name in EVERY:
        metric = parse_metric(name)
        if metric.about_judgements:
            continue
        seen = ids[: metric.k]
        opened = [document for document in seen if document not in relevant]
        as_it_is = metric.score(hits_of_qrels({"q": relevant}, {"q": ids}))[0]
        reached = [as_it_is]
        for said in itertools.product((0, 1), repeat=len(opened)):
            judged = relevant | dict(zip(opened, said, strict=True))
            reached.append(metric.score(hits_of_qrels({"q": judged}, {"q": ids}))[0])
        assert ends(name, relevant, ids) == pytest.approx((min(reached), max(reached)), abs=1e-12)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("hit@1", 0, 1),
        ("mrr", 1 / 2, 1),
        ("precision@4", 1 / 4, 3 / 4),
        ("recall@3", 1, 1),  # of one needed passage; more that are found leave it at 1
        ("rbp@0.5", 1 / 4, 1 / 2 + 1 / 4 + 1 / 8),
        ("map", 1 / 2, 1),
        ("judged@3", 1 / 3, 1 / 3),
    ],
)
def test_bounds_worked_by_hand(name, low, high):
    assert ends(name, {"a": 1}, ["u", "a", "v"]) == pytest.approx((low, high))


def test_a_row_without_a_value_of_its_own_has_no_bounds():
    """A metric of labels says itself where it has none, such as where none is of a passage."""

    def against(hits):
        found = np.bincount(hits.judged_row[hits.judged_against], minlength=hits.rows)
        return np.where(hits.nonrelevant > 0, found / np.maximum(hits.nonrelevant, 1), np.nan)

    metric = RankMetric("against", against, without_relevant=True, better="low")
    judged = {"one": {"a": 1}, "two": {"a": 1, "x": 0, "y": 0}, "three": {"x": 0}}
    hits = hits_of_qrels(judged, {query: ["x", "u", "a"] for query in judged}, 1)
    low, high = metric_bounds(metric, hits)
    assert np.isnan([low[0], high[0]]).all()
    assert (low[1:].tolist(), high[1:].tolist()) == ([1 / 2, 1], [2 / 3, 1])


def test_a_relevant_passage_far_down_can_lower_what_a_perfect_start_reached():
    low, high = ends("map", {"a": 1, **dict.fromkeys(documents[1:], 0)}, [*documents, "u"])
    assert (low, high) == pytest.approx(((1 + 2 / 8) / 2, 1))


def test_where_everything_was_judged_the_bounds_are_the_value():
    for name in EVERY:
        low, high = ends(name, {"a": 2, "b": 0, "c": 1}, ["b", "a"])
        assert (
            low
            == high
            == parse_metric(name).score(
                hits_of_qrels({"q": {"a": 2, "b": 0, "c": 1}}, {"q": ["b", "a"]})
            )
        )


def test_a_query_without_relevant_passages_has_no_bounds_and_a_short_list_does_not_stretch():
    hits = hits_of_qrels({"q": {"a": 0}, "r": {"b": 1}}, {"q": ["u"], "r": ["b", "u"]})
    low, high = metric_bounds(parse_metric("precision@5"), hits)
    assert hits.best(low) == [None, 1 / 5]
    assert hits.best(high) == [None, 2 / 5]


def test_of_alternatives_the_best_counts_in_both_ends():
    asked = Case(id="c", question="?", relevant_any=[["b"], ["c"]])
    hits = collect_hits(
        [asked], [[Passage(id=name, rank=n) for n, name in enumerate("ubc", start=1)]]
    )
    low, high = metric_bounds(parse_metric("mrr"), hits)
    assert (hits.best(low), hits.best(high)) == ([1 / 2], [1])


def test_an_unjudged_passage_counts_with_the_grade_of_the_relevance_level():
    relevant = {"a": 2, "b": 2}
    low, high = ends("ndcg@1", relevant, ["u"], level=2)
    assert (low, high) == (0, 1)
    assert ends("ndcg@1", relevant, ["u"], level=1) == (0, 1 / 2)


@pytest.mark.slow
@given(st.lists(st.tuples(grades, orders), min_size=2, max_size=4))
def test_several_queries_have_the_bounds_that_each_has_alone(pairs):
    qrels = {str(n): relevant for n, (relevant, _) in enumerate(pairs)}
    hits = hits_of_qrels(qrels, {str(n): ids for n, (_, ids) in enumerate(pairs)})
    for name in EVERY:
        together = metric_bounds(parse_metric(name), hits)
        for row, (relevant, ids) in enumerate(pairs):
            alone = ends(name, relevant, ids)
            assert [end[row] for end in together] == pytest.approx(alone, abs=1e-12, nan_ok=True)
