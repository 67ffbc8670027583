"""The run in numbers: usage, shares that labels correct, and what few labels cannot show."""

import pytest

import misslink
from example_run import HOSTILE, estimate, example_run, missing, verdict
from misslink.calibration.verdicts import hash_verdicts
from misslink.report.json_document import current_summary
from misslink.report.overview import (
    corrected_shares,
    describe_reliability,
    level_lines,
    metric_levels,
    read_reliability,
    read_usage,
)
from misslink.report.page import build_page, render_markdown, render_page
from misslink.types import Case, Run, Trace, Usage
from proven_run import proven_run


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
    assert rows["Cost"] == "0.12 USD"
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


def run(relevant):
    """One question and two retrieved passages, of which `relevant` says something."""
    trace = {"case_id": "a", "retrieved": [{"id": "p"}, {"id": "q"}], "answer": "Yes."}
    gold = [{"id": "a", "question": "Why?", "relevant": relevant}]
    return misslink.evaluate(traces=[trace], goldset=gold, judge="none", k=2)


def test_few_judged_passages_are_told_beside_the_rank_metrics():
    given = run({"p": 1})
    assert given.summary["judged"]["judged@2"]["value"] == 0.5
    retrieval, *others = metric_levels(given)
    assert "only 0.50" in retrieval.warning
    assert "first 2 passages" in retrieval.warning
    assert not any(level.warning for level in others)
    page = build_page(given)
    assert retrieval.warning in render_page(page)
    assert "only 0.50" in render_markdown(page)


def test_a_gold_set_that_judged_everything_has_no_warning():
    given = run({"p": 1, "q": 0})
    assert given.summary["judged"]["judged@2"]["value"] == 1
    assert metric_levels(given)[0].warning == ""


@pytest.mark.parametrize("summary", [{}, {"judged": None}])
def test_a_run_that_does_not_say_has_no_warning(summary):
    given = run({"p": 1})
    told = {name: value for name, value in given.summary.items() if name != "judged"} | summary
    assert metric_levels(given.model_copy(update={"summary": told}))[0].warning == ""


def test_what_was_judged_is_no_metric_to_compare_or_gate():
    assert not any(name.startswith("judged") for name in run({"p": 1}).summary["retrieval"])


def _labelled(powered, *, own=True, good=8, summary=None, metric="faithfulness", **more):
    """Ten verdicts, `good` of them good, and a calibration of them or of another run."""
    run = Run(
        manifest={"judge": "openai:m"},
        cases=tuple(Case(id=str(n), question="Which?") for n in range(10)),
        traces=(),
        verdicts=tuple(verdict(str(n), metric, float(n < good)) for n in range(10)),
        links=(),
        summary=summary or {},
    )
    document = {
        "metric": metric,
        "n": 120,
        "threshold": 0.5,
        "confusion": {"true_good": 70, "false_bad": 10, "false_good": 12, "true_bad": 28},
        "corrected": {"prediction_powered": powered},
        "verdicts_sha256": hash_verdicts(run, metric) if own else "ab" * 32,
        **more,
    }
    return run.model_copy(update={"calibration": document})


def _shares(value=0.8):
    return {"generation": {"fully_faithful": estimate(value, 0.49, 0.94, 10)}}


def test_labels_of_the_runs_own_verdicts_are_used_with_all_of_them():
    found = corrected_shares(_labelled(estimate(0.61, 0.52, 0.7, 10, "ppi")))["fully_faithful"]

    assert found.corrected.brief == "61% [52, 70]"
    assert (found.labels, found.of) == (120, "faithful answers")
    assert found.how == "By prediction-powered inference from 120 labels of this run's verdicts."


def test_a_calibration_of_another_run_gives_its_error_rates_alone():
    """Rogan and Gladen by hand: (0.8 + 0.7 - 1) / (0.875 + 0.7 - 1)."""
    found = corrected_shares(_labelled(estimate(0.61, 0.52, 0.7, 10, "ppi"), own=False))[
        "fully_faithful"
    ]

    assert found.corrected.value == f"{round(100 * 0.5 / 0.575)}%"
    assert "120 labels of another run" in found.how


@pytest.mark.parametrize(
    ("interval", "hint"),
    [
        ((0.61, 0.52, 0.7), "The judge's 80% lies above this interval: it is too kind."),
        ((0.9, 0.85, 0.95), "The judge's 80% lies below this interval: it is too strict."),
        ((0.75, 0.7, 0.8), ""),
    ],
)
def test_a_share_that_no_truth_within_the_interval_gives_is_pointed_out(interval, hint):
    found = corrected_shares(_labelled(estimate(*interval, 10, "ppi")))["fully_faithful"]
    assert found.hint == hint
    html = render_page(build_page(_labelled(estimate(*interval, 10, "ppi"), summary=_shares())))
    assert (hint.replace("'", "&#39;") in html) if hint else "lies above" not in html


def test_labels_that_carry_no_correction_say_why():
    run = _labelled(missing(HOSTILE[0]), corrected={"prediction_powered": missing(HOSTILE[0])})
    found = corrected_shares(run)["fully_faithful"]

    assert not found.corrected.measured
    assert found.hint == ""
    html = render_page(build_page(run.model_copy(update={"summary": _shares()})))
    assert ", by annotators" in html
    assert HOSTILE[0] not in html


def test_levels_show_both_and_a_run_without_labels_neither():
    run = proven_run()
    of = {m.shown.name: m.truth for level in metric_levels(run) for m in level.metrics}
    # The summary has no share of correct answers: it stands under the metric that it is of.
    assert {name for name, one in of.items() if one} == {"fully_faithful", "correctness"}
    assert not any(m.truth for level in metric_levels(example_run()) for m in level.metrics)


def test_a_metric_without_a_share_of_its_own_is_corrected_under_its_name():
    summary = {"generation": {"answer_relevance": estimate(0.7, 0.5, 0.9, 10)}}
    run = _labelled(estimate(0.6, 0.5, 0.7, 10), metric="answer_relevance", summary=summary)

    (found,) = corrected_shares(run).values()
    assert found.of == "cases that are good by answer_relevance"
    (metric,) = next(level for level in metric_levels(run) if level.metrics).metrics
    assert metric.truth == found


def test_the_three_levels_are_a_line_each():
    lines = level_lines(proven_run())
    assert [line.level for line in lines] == ["Retrieval", "Generation", "Answer"]
    assert [[label for label, *_ in line.metrics] for line in lines] == [
        ["recall@5", "mrr"], ["fully faithful", "relevance"], ["correct"],
    ]  # fmt: skip
    assert lines[0].text.startswith("recall@5 54% [29, 78]; mrr 0.51 [0.27, 0.75]; n = 12")


def test_a_corrected_share_is_the_only_one_in_its_line():
    faithful, _ = level_lines(proven_run())[1].metrics
    truth = corrected_shares(proven_run())["fully_faithful"]
    assert faithful[1].text == truth.corrected.text
    assert faithful[2] == "by 220 labels"


def test_a_level_that_was_not_measured_gives_its_reason():
    run = example_run()
    summary = {**run.summary, "generation": {}, "answer": {}}
    lines = level_lines(run.model_copy(update={"summary": summary, "calibration": None}))
    assert lines[1].text == lines[2].text == "not measured: no judge was used"
    summary["answer"] = {"correct": missing("no reference")}
    lines = level_lines(run.model_copy(update={"summary": summary, "calibration": None}))
    assert lines[2].text == "not measured: no reference"
    empty = Run(manifest={}, cases=(), traces=(), verdicts=(), links=(), summary={})
    assert level_lines(empty) == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["labels", "references", "corpus"], " with labels, references and corpus"),
        (["references", "corpus"], " with references and corpus"),
        (["references"], " with references"),
        ([], ""),
    ],
)
def test_the_reliability_of_owners_is_one_line_where_it_was_measured(given, text):
    run = example_run()
    text = (
        "Of the named owners, 80% [62, 91] are right (n = 30), measured on planted failures of other "
        f"apps{text}."
    )

    def page(owner_right):
        reliability = {"given": given, "judge": "heuristic", "owner_right": owner_right}
        link = {**run.summary.get("link", {}), "reliability": {**reliability, "source": "bench"}}
        return build_page(run.model_copy(update={"summary": {**run.summary, "link": link}}))

    measured = page(estimate(0.8, 0.62, 0.91, 30))
    assert measured.reliability.text == text
    assert (
        measured.reliability.brief == "Of 10 owners named for planted failures, 6 to 9 are right."
    )
    assert text in render_page(measured)
    assert page(missing("not measured for this")).reliability is build_page(run).reliability is None


@pytest.mark.parametrize(
    ("judge", "right", "source"),
    [
        ("heuristic", estimate(0.9, 0.85, 0.94, 120), "selftest"),
        ("another", estimate(0.9, 0.85, 0.94, 120), "bench"),
        ("heuristic", missing("nothing was found"), "bench"),
    ],
)
def test_a_selftest_of_the_run_s_judge_replaces_the_stored_reliability(judge, right, source):
    run = example_run()
    stored = {"given": ["corpus"], "judge": "heuristic", "source": "bench",
              "owner_right": estimate(0.8, 0.62, 0.91, 30)}  # fmt: skip
    link = {**run.summary.get("link", {}), "reliability": stored}
    run = run.model_copy(
        update={
            "manifest": {**run.manifest, "judge": "heuristic"},
            "summary": {**run.summary, "link": link},
            "selftest": {"judge": judge, "owner_right": right},
        }
    )
    measured = read_reliability(run)
    assert (measured.source, measured.given) == (source, ("corpus",))
    told = current_summary(run)["link"]["reliability"]
    assert (told["source"], told["owner_right"]["n"]) == (source, measured.owner_right.n)
    line = describe_reliability(run)
    assert ("planted into this app" in line.brief) == (source == "selftest")
    assert ("may be easier or harder" in line.text) == (source == "selftest")
    assert "(n = " in line.text
    assert f"{measured.owner_right.n})" in render_markdown(build_page(run))
