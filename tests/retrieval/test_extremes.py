"""The closed forms of bounds, against the general search that they stand in for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import misslink.retrieval.extremes as extremes_module
from misslink.registry import rank_metrics
from misslink.retrieval import parse
from misslink.retrieval.bounds import _searched, bounds
from misslink.retrieval.extremes import extremes
from naive_hits import hits_of_qrels

NAMES = ["map", "map@1", "map@4", "r-precision", "ndcg@1", "ndcg@3", "ndcg@30", "ndcg_exp@3"]
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
        patch.setattr(extremes_module, "_AT_ONCE", at_once)
        for name in NAMES:
            metric = parse(name)
            value = metric.of(hits)
            searched = _searched(metric, hits, value, level)
            closed = extremes(metric, hits, level)
            for end, own in zip(searched, closed, strict=True):
                has = hits.needs > 0
                assert own[has] == pytest.approx(end[has], abs=1e-12), name


def test_a_deep_ranking_has_the_ends_that_the_search_finds():
    draw = np.random.default_rng(5)
    names = [f"d{number}" for number in range(300)]
    qrels = {
        f"q{number}": {names[at]: int(draw.integers(0, 3)) for at in draw.integers(0, 300, 9)}
        for number in range(4)
    }
    run = {query: [names[at] for at in draw.permutation(300)[:250]] for query in qrels}
    hits = hits_of_qrels(qrels, run, 1)
    for name in ("map", "r-precision", "ndcg@100"):
        metric = parse(name)
        searched = _searched(metric, hits, metric.of(hits), 1)
        np.testing.assert_allclose(bounds(metric, hits), searched, rtol=0, atol=1e-12)


def test_every_metric_that_may_fall_but_bpref_has_a_closed_form():
    hits = hits_of_qrels({"q": {"a": 1}}, {"q": ["u", "a"]}, 1)
    without = {
        name.partition("@")[0]
        for name in rank_metrics.names()
        for metric in [parse(name.replace("{k}", "3").replace("{p}", "0.8"))]
        if not getattr(metric, "rises", False)
        and not getattr(metric, "about_judgements", False)
        and extremes(metric, hits, 1) is None
    }
    assert without == {"bpref"}
