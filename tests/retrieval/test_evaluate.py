"""Values of cases, all cutoffs of a metric at once, and faulty metrics of other packages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.errors import InputError
from misslink.registry import rank_metrics
from misslink.retrieval import (
    collect_hits,
    metric_bounds,
    parse_metric,
    register_metric,
    score_cases,
)
from misslink.retrieval.evaluate import evaluate_metrics, evaluate_run
from misslink.types import Case, Passage, Trace
from naive_hits import hits_of_qrels

CASES = [Case(id="c1", question="?", relevant=["a"]), Case(id="c2", question="?", relevant=["b"])]


def trace(case_id, *ids, **fields):
    found = [Passage(id=name, rank=rank) for rank, name in enumerate(ids, start=1)]
    return Trace(case_id=case_id, retrieved=found, **fields)


def test_traces_are_matched_by_case_id_and_strangers_ignored():
    traces = [trace("c2", "x", "b"), trace("zzz", "a"), trace("c1", "a")]
    assert score_cases(CASES, traces, ["mrr", "hit@1"]) == {
        "mrr": {"c1": 1.0, "c2": 0.5},
        "hit@1": {"c1": 1.0, "c2": 0.0},
    }


def test_a_case_without_a_trace_was_not_measured():
    assert score_cases(CASES, [trace("c1", "a")], ["recall@1"])["recall@1"] == {
        "c1": 1.0,
        "c2": None,
    }


def test_a_query_that_is_missing_from_a_ranking_written_out_can_be_given_0():
    asked = [*CASES, Case(id="none", question="?")]
    scores = score_cases(asked, [trace("c1", "a")], ["recall@1"], absent=0.0)["recall@1"]
    assert scores == {"c1": 1.0, "c2": 0.0, "none": None}


def test_an_app_that_finished_and_retrieved_nothing_has_0():
    assert score_cases(CASES[:1], [trace("c1", answer="42")], ["mrr"]) == {"mrr": {"c1": 0.0}}


def test_an_app_that_raised_before_it_retrieved_was_not_measured():
    traces = [trace("c1", error="Boom"), trace("c2", "b", error="Boom later")]
    assert score_cases(CASES, traces, ["mrr"]) == {"mrr": {"c1": None, "c2": 1.0}}


def test_a_case_that_needs_nothing_has_no_value():
    assert score_cases([Case(id="n", question="?")], [trace("n", "a")], ["mrr"]) == {
        "mrr": {"n": None}
    }


def test_position_in_the_trace_is_the_rank():
    late = Trace(case_id="c1", retrieved=[Passage(id="a", rank=7)])
    assert score_cases(CASES[:1], [late], ["mrr"]) == {"mrr": {"c1": 1.0}}


def test_the_same_metric_twice_is_one_column():
    assert list(score_cases(CASES, [], ["mrr", "mrr", "hit@2"])) == ["mrr", "hit@2"]
    assert score_cases(CASES, [], []) == {}


def test_two_traces_or_cases_with_one_id_are_refused():
    with pytest.raises(InputError, match="two traces have the id 'c1'"):
        score_cases(CASES, [trace("c1", "a"), trace("c1", "b")], ["mrr"])
    with pytest.raises(InputError, match="two cases have the id 'c1'"):
        score_cases([CASES[0], CASES[0]], [], ["mrr"])


def test_a_query_that_is_missing_was_not_judged():
    names = ["judged@3", "map"]
    scores = score_cases(CASES[:1], [], names, absent=0.0)
    assert [scores[name]["c1"] for name in names] == [None, 0.0]
    assert [score_cases(CASES[:1], [], names)[name]["c1"] for name in names] == [None] * 2


OWN = [
    name
    for name in rank_metrics.names()
    if name.endswith("@{k}") and rank_metrics.get(name).__module__.startswith("misslink.")
]
DOCUMENTS = [f"d{number}" for number in range(40)]
QRELS = st.lists(
    st.dictionaries(st.sampled_from([*DOCUMENTS, "x"]), st.integers(-1, 4), min_size=1),
    min_size=1,
    max_size=5,
)
LISTS = st.lists(st.sampled_from(DOCUMENTS), unique=True)


@given(st.data(), QRELS, st.integers(1, 3), st.integers(7, 40))
def test_a_curve_has_to_the_last_bit_what_each_cutoff_has_alone(data, qrels, level, depth):
    judged = {f"q{number}": own for number, own in enumerate(qrels)}
    run = {query: data.draw(LISTS) for query in judged}
    hits = hits_of_qrels(judged, run, level)
    for name in OWN:
        metrics = [parse_metric(name.format(k=k)) for k in range(1, depth + 1)]
        values, known = evaluate_metrics(metrics, hits)
        for at, metric in enumerate(metrics):
            also = metric.without_relevant
            own, has = hits.per_case(metric.score(hits), without_relevant=also)
            np.testing.assert_array_equal(values[at], own, err_msg=str(metric))
            np.testing.assert_array_equal(known[at], has, err_msg=str(metric))


def test_of_alternatives_the_best_counts_at_each_cutoff_by_itself():
    asked = Case(id="c", question="?", relevant_any=[["a"], ["b", "c"]])
    none = Case(id="n", question="?")
    found = [Passage(id=name, rank=at) for at, name in enumerate("bac", start=1)]
    hits = collect_hits([none, asked], [found, found])
    metrics = [parse_metric(f"recall@{k}") for k in range(1, 9)]
    values, known = evaluate_metrics(metrics, hits)
    assert values.tolist() == [[0, own] for own in (0.5, *[1] * 7)]
    assert known.tolist() == [[False, True]] * 8


def test_a_curve_among_other_metrics_keeps_every_name_at_its_values():
    qrels = {"q": {"a": 1, "b": 2}, "r": {"c": 1}}
    run = {"q": ["x", "a", "b"], "r": ["c"]}
    names = ["recall@3", "mrr", *(f"ndcg@{k}" for k in range(9, 0, -1)), "recall@1", "judged@2"]
    together = evaluate_run(qrels, run, names)
    for name in names:
        np.testing.assert_array_equal(
            together.query_values(name), evaluate_run(qrels, run, [name]).query_values(name)
        )


@pytest.fixture
def wild():
    rank_metrics.names()  # loads the built-in ones

    def register(given):
        rank_metrics._entries.pop("wild", None)
        register_metric("wild")(
            given if callable(given) else lambda hits: np.full(hits.rows, given)
        )

    yield register
    rank_metrics._entries.pop("wild", None)


@pytest.mark.parametrize("given", [2.5, -0.5, np.inf])
def test_a_value_outside_0_and_1_is_told_with_the_metric_and_the_query(wild, given):
    wild(given)
    message = rf"the metric 'wild' gave {given:g} for 'r'; .* between 0 and 1"
    with pytest.raises(InputError, match=message):
        evaluate_run({"q": {"a": 0}, "r": {"a": 1}}, {"q": ["a"], "r": ["a"]}, "wild")
    cases = [Case(id="q", question="?"), Case(id="r", question="?", relevant=["a"])]
    traces = [Trace(case_id=case.id, retrieved=[Passage(id="a", rank=1)]) for case in cases]
    with pytest.raises(InputError, match=message):
        score_cases(cases, traces, ["wild"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda hits: np.zeros(hits.rows + 1), r"array of shape \(2,\), not \(1,\)"),
        (lambda _: 0.5, r"array of shape \(\), not \(1,\)"),
        (lambda _: ["high"], "no array of numbers"),
    ],
)
def test_what_is_no_value_for_each_row_is_told(wild, given, message):
    wild(given)
    with pytest.raises(InputError, match=message):
        evaluate_run({"q": {"a": 1}}, {"q": ["a"]}, "wild")


def _fails(hits):
    raise ValueError(f"no\nvalues for {hits.rows}")


def test_a_metric_that_fails_is_told_by_its_name_and_the_fault_is_the_cause(wild):
    wild(_fails)
    message = r"the rank metric 'wild' failed \(ValueError: no values for 1\); fix it"
    hits = hits_of_qrels({"q": {"a": 1}}, {"q": ["a"]}, 1)
    for ask in (
        lambda: evaluate_run({"q": {"a": 1}}, {"q": ["a"]}, "wild"),
        lambda: metric_bounds(parse_metric("wild"), hits),
    ):
        with pytest.raises(InputError, match=message) as caught:
            ask()
        assert isinstance(caught.value.__cause__, ValueError)


def test_what_rounding_puts_outside_is_moved_to_the_edge_and_nan_is_no_value(wild):
    for raw, value in ((1 + 1e-12, 1.0), (-1e-12, 0.0), (np.nan, None)):
        wild(raw)
        assert evaluate_run({"q": {"a": 1}}, {"q": ["a"]}, "wild").per_query() == {
            "q": {"wild": value}
        }
