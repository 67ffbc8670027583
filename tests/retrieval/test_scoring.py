import pytest

from misslink.errors import InputError
from misslink.retrieval import score_cases
from misslink.types import Case, Passage, Trace

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


def test_a_query_that_is_missing_was_not_judged_and_all_of_it_is_open():
    names = ["judged@3", "rbp_residual@0.8", "map"]
    scores = score_cases(CASES[:1], [], names, absent=0.0)
    assert [scores[name]["c1"] for name in names] == [None, 1.0, 0.0]
    assert [score_cases(CASES[:1], [], names)[name]["c1"] for name in names] == [None] * 3
