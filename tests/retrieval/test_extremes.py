"""The closed forms of bounds, against the general search that they stand in for."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import misslink.retrieval.depths as depths_module
from misslink.registry import rank_metrics
from misslink.retrieval import parse
from misslink.retrieval.bounds import _searched, bounds
from misslink.retrieval.extremes import extremes
from naive_hits import hits_of_qrels

NAMES = [
    *("bpref", "map", "map@1", "map@4", "r-precision"),
    *("ndcg@1", "ndcg@3", "ndcg@30", "ndcg_exp@3"),
]
DOCUMENTS = [f"d{number}" for number in range(12)]
QRELS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(st.sampled_from([*DOCUMENTS, "x", "y"]), st.integers(-1, 4), min_size=1),
    min_size=1,
)
RUNS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]), st.lists(st.sampled_from(DOCUMENTS), unique=True)
)


@settings(deadline=None, max_examples=60)
@given(QRELS, RUNS, st.integers(1, 3), st.sampled_from([1, 20, 1 << 19]))
def test_one_pass_gives_what_the_search_gives(qrels, run, level, at_once):
    hits = hits_of_qrels(qrels, {query: run.get(query, []) for query in qrels}, level)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(depths_module, "_AT_ONCE", at_once)
        for name in NAMES:
            metric = parse(name)
            value = metric.of(hits)
            searched = _searched(metric, hits, value, level)
            closed = bounds(metric, hits, grade=level)  # bpref's value is one more way
            for end, own in zip(searched, closed, strict=True):
                has = hits.needs > 0
                assert own[has] == pytest.approx(end[has], abs=1e-12), name


@settings(deadline=None, max_examples=40)
@given(QRELS, RUNS)
def test_a_passage_that_meets_several_needs_counts_as_often_in_both(qrels, run):
    once = hits_of_qrels(qrels, {query: run.get(query, []) for query in qrels}, 1)
    hits = replace(once, found=3 * once.found, needs=3 * once.needs)
    for name in ("bpref", "map"):
        metric = parse(name)
        searched = _searched(metric, hits, metric.of(hits), 1)
        has = hits.needs > 0
        for end, own in zip(searched, bounds(metric, hits), strict=True):
            assert own[has] == pytest.approx(end[has], abs=1e-12), name


JUDGED = [None, 0, 1]  # of each place of a ranking: nobody, not relevant, relevant


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_bpref_has_the_ends_of_every_judgement_of_every_short_ranking(length):
    metric, missed = parse("bpref"), {"x": 1, "y": 0}
    rankings = list(itertools.product(JUDGED, repeat=length))
    names = DOCUMENTS[:length]

    def judged(said):
        return {name: own for name, own in zip(names, said, strict=True) if own is not None}

    for more in ({"x": 1}, missed, {"x": 1, "y": 0, "z": 0}):
        qrels = {str(said): {**judged(said), **more} for said in rankings}
        run = dict.fromkeys(qrels, names)
        values = dict(zip(rankings, metric.of(hits_of_qrels(qrels, run)), strict=True))
        low, high = bounds(metric, hits_of_qrels(qrels, run))
        for at, said in enumerate(rankings):
            completed = itertools.product(*([0, 1] if own is None else [own] for own in said))
            # bpref passes over the unjudged: as it is, it is one more way.
            reached = [values[said], *(values[each] for each in completed)]
            assert (low[at], high[at]) == pytest.approx((min(reached), max(reached)), abs=1e-12)


def test_a_deep_ranking_has_the_ends_that_the_search_finds():
    draw = np.random.default_rng(5)
    names = [f"d{number}" for number in range(300)]
    qrels = {
        f"q{number}": {names[at]: int(draw.integers(0, 3)) for at in draw.integers(0, 300, 9)}
        for number in range(4)
    }
    run = {query: [names[at] for at in draw.permutation(300)[:250]] for query in qrels}
    hits = hits_of_qrels(qrels, run, 1)
    for name in ("map", "r-precision", "bpref", "ndcg@100"):
        metric = parse(name)
        searched = _searched(metric, hits, metric.of(hits), 1)
        np.testing.assert_allclose(bounds(metric, hits), searched, rtol=0, atol=1e-12)


def test_every_metric_that_may_fall_has_a_closed_form():
    hits = hits_of_qrels({"q": {"a": 1}}, {"q": ["u", "a"]}, 1)
    without = {
        name.partition("@")[0]
        for name in rank_metrics.names()
        for metric in [parse(name.replace("{k}", "3").replace("{p}", "0.8"))]
        if not getattr(metric, "rises", False)
        and not getattr(metric, "about_judgements", False)
        and extremes(metric, hits, 1) is None
    }
    assert not without
