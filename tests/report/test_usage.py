"""What the run took: nothing that is not known is a number."""

from __future__ import annotations

import pytest

from example_run import HOSTILE, verdict
from misslink.report.overview import read_usage
from misslink.types import Case, Run, Trace, Usage


def _run(judge="openai:m", usage=None, latencies=(), judging=None, **parts):
    cases = tuple(Case(id=str(n), question=f"Question {n}?") for n in range(len(latencies)))
    traces = tuple(Trace(case_id=str(n), latency_s=took) for n, took in enumerate(latencies))
    given = {
        "manifest": {"judge": judge, "judging": judging},
        "cases": cases,
        "traces": traces,
        "verdicts": (),
        "links": (),
        "summary": {"usage": usage or {}},
    }
    return Run(**{**given, **parts})


def _spent(calls=20, prompt=900, cost=None, **more):
    known = {"calls": calls, "from_cache": 3, "prompt_tokens": prompt, "completion_tokens": 80}
    return {**known, "cost": cost, **more}


def test_calls_tokens_and_what_the_cache_spared_are_told():
    rows = dict(read_usage(_run(usage=_spent(cost=0.1234))).judge)

    assert rows["Asked of the judge"] == "20 questions"
    assert rows["From the cache, free"] == "3 replies"
    assert rows["Prompt tokens"] == "900"
    assert rows["Cost"].startswith("0.1234 ")
    assert "Not asked" not in rows


@pytest.mark.parametrize(
    ("judge", "spent", "judging", "said"),
    [
        ("openai:m", _spent(), None, "not known: no prices were given"),
        ("openai:m", _spent(prompt=None), {"price_in": 2.0},
         "not known: the judge did not report its tokens"),
        ("openai:m", _spent(calls=0), None, "nothing: no question was paid for in this run"),
        ("heuristic", _spent(), None, "nothing: the heuristic judge runs on this machine"),
        ("cascade:heuristic,openai:m", _spent(), None, "not known: no prices were given"),
    ],
)  # fmt: skip
def test_a_cost_that_is_not_known_is_not_zero(judge, spent, judging, said):
    assert dict(read_usage(_run(judge, spent, judging=judging)).judge)["Cost"] == said


def test_questions_that_were_not_put_are_counted():
    rows = dict(read_usage(_run(usage=_spent(not_asked=7))).judge)
    assert rows["Not asked"] == "7 questions: budget or time was used up"


def test_all_replies_behind_the_verdicts_are_summed_over_those_that_say():
    said = (
        verdict("0", "faithfulness", 1.0, usage=Usage(prompt_tokens=10)),
        verdict("1", "faithfulness", 1.0, usage=Usage(prompt_tokens=5, completion_tokens=2)),
        verdict("2", "faithfulness", 1.0),
    )
    rows = dict(read_usage(_run(usage=_spent(), verdicts=said)).judge)
    assert rows["Prompt tokens, all verdicts, whenever paid for"] == "15 (n = 2)"
    assert rows["Written tokens, all verdicts, whenever paid for"] == "2 (n = 1)"


def test_the_95th_percentile_is_a_time_that_was_taken():
    """Of 20 times the 19th; interpolated it would be 19.05, and 109 with one of 200 s."""
    for last in (20, 200):
        rows = dict(read_usage(_run("none", latencies=[*range(1, 20), last])).app)
        assert rows["95% take at most"] == "19 s, n = 20"


def test_latency_is_a_median_with_its_interval_and_few_have_no_95th_percentile():
    rows = dict(read_usage(_run("none", latencies=[1, 2, 3, 4, 5, 6, 7])).app)

    # Of 7 values the binomial distribution cuts none from either side: from least to greatest.
    assert rows["Time per answer, median"] == "4 s [1 s, 7 s], n = 7"
    assert rows["95% take at most"] == "not known: 7 times, and it takes 20"


def test_few_latencies_have_no_interval_and_say_so():
    rows = dict(read_usage(_run("none", latencies=[0.25, 0.5])).app)
    assert rows["Time per answer, median"] == (
        "375 ms (2 values are too few for an interval), n = 2"
    )


def test_the_slowest_cases_lead_to_themselves():
    run = _run("none", latencies=[1, 9, None, 3, 8, 2, 7])
    run = run.model_copy(
        update={"cases": (*run.cases[:1], Case(id="1", question=HOSTILE[0]), *run.cases[2:])}
    )
    slow = read_usage(run).slowest

    assert [(number, time) for number, _, time in slow] == [
        (2, "9 s"), (5, "8 s"), (7, "7 s"), (4, "3 s"), (6, "2 s"),
    ]  # fmt: skip
    assert slow[0][1] == HOSTILE[0]


def test_a_run_of_which_nothing_is_known_has_no_section():
    assert read_usage(_run("none")) is None


def test_traces_without_a_latency_are_not_timed():
    found = read_usage(_run(usage=_spent(), latencies=[None, None]))
    assert dict(found.app) == {"Time per answer": "not known: no trace has a latency"}
    assert found.slowest == ()
