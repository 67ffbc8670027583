"""Options compared with the run, ranked, and the best forecast checked."""

import asyncio
import json

import numpy as np
import pytest
from pydantic import TypeAdapter

from json_values import as_json
from misslink.documents import OptionMetric
from misslink.embedding import Embedder
from misslink.errors import InputError
from misslink.judge.calibration import Calibration
from misslink.linking.whatif import Chunking, ForecastCheck, SearchTools, evaluate_options
from misslink.linking.whatif.option_evaluation import (
    _EvaluatedOption,
    baseline_metrics,
    compare_metrics,
    context_tokens,
)
from misslink.linking.whatif.options import OptionResult, RetrievalBaseline
from misslink.render.retrieval_sentences import describe_option
from misslink.retrieval import score_cases
from misslink.stats import holm, paired_difference
from misslink.types import Estimate, Passage, RetrievalMiss, Trace, Verdict
from town import Hashed, case, corpus, link, passage, ranked, run_of

compare_metrics = as_json(compare_metrics)
context_tokens = as_json(context_tokens)

PLACES = [1, 2, 3, 1, 2, 3, 1, 1, *[None] * 10, 5, 6]
BAD = {0, *range(8, 16), 18}  # 1 of 8 hits, 9 of 12 misses


CORPUS = corpus()


def weighed(run=None, options=None, check=None, seed=0, corpus=CORPUS, **tools):
    tools = SearchTools(**{"embedder": Embedder(Hashed()), **tools})
    run = run or run_of(PLACES, bad=BAD)
    found = asyncio.run(
        evaluate_options(run, corpus, tools, options=options, check=check, seed=seed)
    ).document()
    json.dumps(found, allow_nan=False)
    return found


def option(document, name):
    return next(one for one in document["options"] if one["name"] == name)


def test_an_option_that_mends_the_misses_wins_and_stands_first():
    found = weighed(widths=[6])
    assert found["options"][0]["name"] in {"bm25", "dense", "hybrid"}
    bm25 = option(found, "bm25")
    assert bm25["newly_retrieved"] == 12
    assert bm25["failures_avoided"]["value"] == pytest.approx(9 - 12 / 8)
    assert bm25["metrics"]["recall@3"]["winner"] == "option"
    assert bm25["finding"].startswith("recall@3 rises from 40 to 100%, +60 points [")
    assert "about 7.5 [" in bm25["finding"]
    assert bm25["finding"].endswith("fewer failures, of 10 now.")
    larger = option(found, "k=6")
    assert larger["newly_retrieved"] == 2
    assert larger["failures_avoided"]["value"] is None
    assert larger["failures_avoided"]["reason_code"]["code"] == "longer_context_unchecked"


class Constant:
    """An embedding that finds the same passages whatever is asked."""

    model_name = "constant"

    def embed_documents(self, texts):
        return [[1.0, 0.0] for _ in texts]

    def embed_query(self, text):
        return [1.0, 0.0]


def test_what_helps_stands_before_what_does_nothing_and_what_harms_stands_last():
    run = run_of([*PLACES[:10], *[1] * 8, 5, 6], bad={0, 1, 2, 8})
    found = weighed(run, other=Embedder(Constant()), widths=[4])
    winners = [one["metrics"]["recall@3"]["winner"] for one in found["options"]]
    assert winners == sorted(winners, key=["option", None, "today"].index)
    assert winners[-1] == "today"
    assert found["options"][-1]["name"].startswith("embedding=")


def test_of_options_that_win_alike_only_a_certain_saving_comes_before_the_larger_gain():
    def one(saved, gain, winner="option"):
        difference = Estimate(value=gain, low=gain, high=gain, n=9, method="made")
        metrics = {"recall@3": OptionMetric.read({"winner": winner, "difference": difference})}
        value, low, high = saved
        estimate = Estimate(value=value, low=low, high=high, n=9, method="made")
        return _EvaluatedOption(None, None, (), 0, metrics, estimate, None)

    certain, uncertain = one((1.0, 0.5, 2), 0.2), one((3.0, -1, 6), 0.1)
    larger, harmful = one((0.0, 0, 0), 0.4), one((-2.0, -3, -1), 0.5)
    unchanged = one((9.0, 8, 10), 0.3, None)
    rows = [unchanged, harmful, uncertain, larger, certain]
    ordered = sorted(rows, key=lambda each: each.order("recall@3"))
    assert ordered == [certain, larger, uncertain, harmful, unchanged]


def test_misses_that_nobody_asked_deeper_for_are_not_left_out_in_silence():
    run = run_of(PLACES, bad=BAD)
    shallow = tuple(trace.model_copy(update={"depth": None}) for trace in run.traces)
    found = weighed(run.model_copy(update={"traces": shallow}), widths=[6], options=["k"])
    (larger,) = found["options"]
    recall = larger["metrics"]["recall@3"]
    assert (recall["a"]["n"], recall["b"]["n"], recall["difference"]["n"]) == (10, 10, 10)
    assert (recall["a"]["value"], recall["b"]["value"]) == (0.8, 1.0)
    assert found["baseline"]["recall@3"]["value"] == 0.4
    reason = "not known for 10 of 20 cases: the retriever was not asked for 6 passages"
    assert larger["finding"].endswith(f"; {reason}.")
    assert larger["failures_avoided"]["value"] is None
    assert reason in larger["failures_avoided"]["reason"]
    assert larger["newly_retrieved"] == 2  # of the cases that are known


def test_a_larger_k_over_traces_without_deeper_ranks_is_not_measurable():
    run = run_of([1, 2, 3, None, None], bad={3})
    shallow = tuple(
        trace.model_copy(update={"retrieved": trace.retrieved[:3], "deeper": (), "depth": None})
        for trace in run.traces
    )
    found = weighed(run.model_copy(update={"traces": shallow}), widths=[6], options=["k"])
    assert found["options"][0]["finding"] == (
        "recall@3 was not measured: not known for 2 of 5 cases: the retriever was not asked for 6 "
        "passages."
    )


def test_failed_cases_of_which_nothing_is_known_are_not_counted_as_unreached():
    """The passage that the only failed case lost was not searched for beyond the prompt."""
    run = run_of([1, 2, 3, None], bad={3})
    missed = (RetrievalMiss(passage_id=next(iter(run.cases[3].relevant))),)
    links = [*run.links[:3], run.links[3].model_copy(update={"missed": missed})]
    traces = [trace.model_copy(update={"deeper": (), "depth": None}) for trace in run.traces]
    deep, shallow = run.model_copy(update={"links": links}), {"links": links, "traces": traces}
    for tried, reached in ((deep, []), (run.model_copy(update=shallow), None)):
        found = weighed(tried, widths=[4], options=["k"])
        assert found["options"][0]["reached"] == reached


def test_chunks_too_short_for_what_ids_name_have_no_forecast_either():
    found = weighed(chunking=Chunking(40, 0), options=["chunk"])["options"][0]
    assert found["newly_retrieved"] is None
    assert "not known for 20 of 20 cases: it names passages longer" in found["finding"]


def test_each_metric_says_at_which_cutoff_it_was_taken():
    found = weighed(widths=[6], options=["k", "bm25"])
    assert option(found, "k=6")["metrics"]["recall@3"]["at"] == 6
    assert option(found, "bm25")["metrics"]["recall@3"]["at"] == 3
    assert option(found, "k=6")["metrics"]["mrr"]["at"] is None


def test_an_option_that_fails_is_skipped_and_the_others_stand():
    class Broken:
        name = "broken"

        async def order(self, question, texts):
            raise InputError("the reranker broken failed: the server is gone")

    found = weighed(reranker=Broken(), options=["bm25", "rerank"])
    assert [one["name"] for one in found["options"]] == ["bm25"]
    assert found["skipped"] == [
        {"name": "rerank", "reason": "the reranker broken failed: the server is gone"}
    ]
    with pytest.raises(InputError, match="server is gone"):
        weighed(reranker=Broken(), options=["rerank"])


def test_where_misses_do_not_fail_more_often_there_is_not_enough_data_to_tell():
    found = option(weighed(run_of(PLACES, bad={0, 8}), ["bm25"]), "bm25")
    assert found["failures_avoided"]["low"] <= 0 <= found["failures_avoided"]["high"]
    assert "not enough data to tell" in found["finding"]
    assert any(
        "does not include the error of this assumption" in one
        for one in weighed(options=["bm25"])["notes"]
    )


def test_the_metrics_are_those_of_level_1_paired_and_corrected_over_the_options():
    run = run_of(PLACES, bad=BAD)
    found = weighed(run, widths=[6], options=["k", "bm25"], seed=4)
    names = ["hit@3", "recall@3", "precision@3", "ndcg@3", "mrr"]
    today = score_cases(run.cases, run.traces, names)
    assert list(found["baseline"]) == ["hit@3", "recall@3", "precision@3", "ndcg@3", "mrr"]
    for name in names:
        values = list(today[name].values())
        assert found["baseline"][name]["value"] == pytest.approx(sum(values) / len(values))
    precision = option(found, "k=6")["metrics"]["precision@3"]
    assert precision["b"]["value"] == pytest.approx(10 / 20 / 6)  # precision at 6 now
    for name in names:
        rows = [one["metrics"][name] for one in found["options"]]
        assert [one["p_holm"] for one in rows] == holm([one["p"] for one in rows])
    after = [1.0 if place is not None and place <= 6 else 0.0 for place in PLACES]
    expected = paired_difference(list(today["recall@3"].values()), after, seed=4)
    assert option(found, "k=6")["metrics"]["recall@3"]["difference"] == (
        expected.difference.model_dump()
    )


def test_an_option_that_changes_too_little_says_what_could_have_been_seen():
    found = option(weighed(widths=[6], options=["k"]), "k=6")
    assert found["metrics"]["recall@3"]["winner"] is None
    assert found["finding"].startswith(
        "Not enough data to tell whether recall@3 changes: +10 points ["
    )
    assert "; 20 cases show a difference from " in found["finding"]


def test_more_passages_cost_tokens_in_proportion():
    found = weighed(widths=[6])
    now = option(found, "k=6")["context_tokens"]
    assert now["b"]["value"] == pytest.approx(2 * now["today"]["value"], rel=0.1)
    same = option(found, "bm25")["context_tokens"]
    assert same["b"]["value"] == pytest.approx(same["today"]["value"], rel=0.1)


def test_a_replay_is_used_for_the_forecast_and_said():
    places = [1, *[None] * 24]
    bad = range(1, 13)
    cases = [
        {
            "case_id": f"c{n}",
            "failure": "retrieval_miss" if n in bad else "passed",
            "outcomes": {"missed_passage": "unfaithful" if n in {1, 2, 3, 13} else "good"},
        }
        for n in range(1, 25)
    ]
    found = weighed(run_of(places, bad=bad, replay={"cases": cases}), ["bm25"])
    assert found["basis"] == "replayed"
    avoided = option(found, "bm25")["failures_avoided"]
    assert avoided["value"] == pytest.approx(12 - 12 * 3 / 12 - 12 * 1 / 12)
    assert any("3 of 12 failed cases failed again" in one for one in found["notes"])
    assert weighed(options=["bm25"])["basis"] == "association"
    few = weighed(run_of(places, bad=bad, replay={"cases": cases[3:]}), ["bm25"])
    assert few["basis"] == "association"


def test_without_a_judge_there_is_no_forecast_but_the_metrics_stand():
    run = run_of(PLACES)
    links = [one.model_copy(update={"failure": None}) for one in run.links]
    found = option(weighed(run.model_copy(update={"links": tuple(links)}), ["bm25"]), "bm25")
    assert found["failures_avoided"]["value"] is None
    assert found["failures_avoided"]["reason"]
    assert found["failures_avoided"]["reason_code"]["code"] == "nothing_judged_and_labelled"


def test_without_a_corpus_the_document_says_that_only_the_traces_were_asked():
    found = weighed(corpus=None, embedder=None)
    assert found["corpus"] is None
    assert {one["name"] for one in found["options"]} == {"k=6", "k=9", "k=15"}
    assert {one["reason"] for one in found["skipped"]} == {
        "no corpus is given; give --corpus or --app"
    }


def test_a_corpus_with_none_of_the_ids_is_refused():
    other = [Passage(id=f"x{n}", text="text", rank=n) for n in range(1, 5)]
    with pytest.raises(InputError, match="none of the 20 passages that the gold set names"):
        weighed(corpus=other)
    with pytest.raises(InputError, match="has no texts"):
        weighed(corpus=[Passage(id="p1", rank=1)])


def test_a_corpus_that_lacks_some_says_how_many():
    found = weighed(options=["bm25"], corpus=corpus()[2:])
    assert any("lacks 2 of the 20 passages" in note for note in found["notes"])


def test_a_corpus_whose_texts_have_changed_since_the_run_is_said_to_have():
    run, indexed = run_of(PLACES, bad=BAD), corpus()
    retrieved = {one.id for trace in run.traces for one in trace.retrieved}
    changed = [one for one in indexed if one.id in retrieved][:3]
    other = [
        one.model_copy(
            update={"text": one.text.upper() + (" Since May." if one in changed else "")}
        )
        for one in indexed
    ]

    def said(corpus):
        notes = weighed(run, options=["bm25"], corpus=corpus)["notes"]
        return [note for note in notes if "another text in the corpus" in note]

    assert said(indexed) == []
    (note,) = said(other)
    assert note.startswith("Retrieved passages that have another text in the corpus: 3;")


def test_a_corpus_that_lacks_most_is_refused():
    with pytest.raises(InputError, match=r"holds only 8 of the 20 passages .*lacks 'p0'"):
        weighed(corpus=corpus()[12:])


def test_a_run_of_no_cases_has_nothing_to_compare():
    found = weighed(run_of([]))
    assert found["baseline"]["recall@3"]["value"] is None
    assert "was not measured" in found["options"][0]["finding"]


def test_a_case_whose_retrieval_was_not_seen_is_left_out():
    run = run_of(PLACES, bad=BAD)
    unseen = Trace(case_id="c8", unmeasured="no retrieval was seen")
    run = run.model_copy(update={"traces": (*run.traces[:8], unseen, *run.traces[9:])})
    links = [one for one in run.links if one.case_id != "c8"]
    run = run.model_copy(update={"links": (*links, link(8, "unknown", "unfaithful"))})
    found = option(weighed(run, ["bm25"]), "bm25")
    assert found["metrics"]["recall@3"]["difference"]["n"] == 19
    assert found["newly_retrieved"] == 11
    assert found["unmeasured"] == {}


@pytest.mark.parametrize("widths", [[0], [-2, 3]])
def test_no_passages_at_all_is_no_k(widths):
    with pytest.raises(InputError, match="counts passages from 1"):
        weighed(widths=widths)


def test_evidence_counts_wherever_it_stands():
    run = run_of([1, None])
    cases = [case(n, relevant={}, evidence=[passage(n).text]) for n in range(2)]
    found = weighed(run.model_copy(update={"cases": tuple(cases)}), corpus=ranked(range(30)))
    assert option(found, "bm25")["metrics"]["recall@3"]["b"]["value"] == 1


def rerunner(asked, fails):
    async def rerun(one, passages):
        asked[one.id] = passages
        label = not fails(one, passages)
        verdict = {"faithfulness": verdict_of(one.id, label=label)}
        return Trace(case_id=one.id, retrieved=passages, answer="It opens."), verdict

    return rerun


def test_the_best_option_is_measured_on_cases_that_it_changes_and_on_others():
    asked = {}
    lacks = lambda one, passages: not any(p.id in one.relevant for p in passages)  # noqa: E731
    found = weighed(options=["bm25"], check=ForecastCheck(rerunner(asked, lacks), 100))
    assert len(asked) == 20
    check = found["check"]
    assert check["option"] == "bm25"
    assert check["changed"] == {
        "cases": 12, "checked": 12, "failed_before": 9, "failed_after": 0,
    }  # fmt: skip
    assert check["unchanged"] == {
        "cases": 8, "checked": 8, "failed_before": 1, "failed_after": 0,
    }  # fmt: skip
    avoided = found["options"][0]["failures_avoided"]
    assert (avoided["value"], avoided["n"], avoided["method"]) == (10, 20, "rerun, binomial")


def test_a_sample_is_no_larger_than_asked_and_what_fails_is_told():
    async def rerun(one, passages):
        return Trace(case_id=one.id, error="the app is gone"), {}

    found = weighed(options=["bm25"], check=ForecastCheck(rerun, 3))
    assert (found["check"]["asked"], found["check"]["reason"]) == (6, "the app is gone")
    assert found["check"]["changed"]["cases"] == 12
    assert found["check"]["changed"]["checked"] is None
    assert found["options"][0]["failures_avoided"]["method"] == "association, binomial"


def test_a_larger_k_whose_passages_are_not_known_gives_no_figure():
    async def rerun(one, passages):
        raise AssertionError

    found = weighed(options=["k"], widths=[6], check=ForecastCheck(rerun, 3))
    assert found["options"][0]["failures_avoided"]["reason_code"]["code"] == "nothing_rerun"
    assert "passages are not known" in found["check"]["reason"]


@pytest.mark.parametrize("distracts", [True, False])
def test_a_larger_k_is_checked_on_hits_too(distracts):
    asked = {}

    async def deeper(one, width):
        return ranked([int(one.id[1:]), *range(40, 60)])[:width]

    check = ForecastCheck(rerunner(asked, lambda *_: distracts), 9, deeper)
    found = weighed(options=["k"], widths=[6], check=check)
    assert len(asked) == 2 + 9
    avoided = found["options"][0]["failures_avoided"]
    assert (avoided["high"] < 0) is distracts
    assert (avoided["low"] > 0) is not distracts


def test_passages_between_need_no_app_where_the_run_or_the_corpus_knows_them():
    handed = {}

    async def rerun(one, passages):
        handed[one.id] = passages
        verdict = {"faithfulness": verdict_of(one.id, label=True)}
        return Trace(case_id=one.id, retrieved=passages, answer="It opens."), verdict

    run = run_of(PLACES, bad=BAD)
    blank = [passage(n, rank, text="") for rank, n in enumerate([30, 31, 32, 33, 18], start=1)]
    trace = run.traces[18].model_copy(
        update={"retrieved": tuple(blank[:3]), "deeper": tuple(blank[3:])}
    )
    run = run.model_copy(update={"traces": (*run.traces[:18], trace, run.traces[19])})
    weighed(run, options=["k"], widths=[5], check=ForecastCheck(rerun, 9))
    assert [one.text for one in handed["c18"]] == [passage(n).text for n in (30, 31, 32, 33, 18)]


def test_a_new_answer_that_the_calibrated_judge_is_not_sure_of_does_not_count():
    async def rerun(one, passages):
        verdict = verdict_of(one.id, label=True).model_copy(update={"probability": 0.55})
        return Trace(case_id=one.id, retrieved=passages, answer="It opens."), {
            "faithfulness": verdict
        }

    rate = Estimate(value=0.9, low=0.8, high=0.95, n=50, method="wilson")
    known = Calibration(
        metric="faithfulness",
        threshold=0.5,
        sensitivity=rate,
        specificity=rate,
        uncertain_band=(0.4, 0.6),
    )
    run = run_of(PLACES, bad=BAD)
    manifest = {
        **run.manifest,
        "calibration": TypeAdapter(Calibration).dump_python(known, mode="json"),
    }
    calibrated = run.model_copy(update={"manifest": manifest})
    given = {"options": ["bm25"], "check": ForecastCheck(rerun, 5)}
    found = weighed(calibrated, **given)["check"]
    assert found["changed"]["checked"] is None
    assert "not certain" in found["reason"]
    assert weighed(run, **given)["check"]["changed"]["checked"] == 5


def verdict_of(case_id, *, label):
    return Verdict(
        case_id=case_id, metric="faithfulness", status="scored", value=float(label), label=label,
        judge="exact",
    )  # fmt: skip


def estimate(value, low, high):
    return Estimate(value=value, low=low, high=high, n=40, method="made")


def said(
    saved, *, p=1.2e-05, p_holm=9.2e-05, tests=7, difference=(0.2, 0.1, 0.3), winner="option",
    detectable=0.08, unknown=None,
):  # fmt: skip
    compared = OptionMetric(
        at=5,
        a=estimate(0.6, 0.5, 0.7),
        b=estimate(0.8, 0.7, 0.9),
        difference=estimate(*difference),
        p=p,
        p_holm=p_holm,
        tests=tests,
        detectable=detectable,
        winner=winner,
    )
    return describe_option("recall@5", compared, saved, 22, unknown, 0)


RISES = (
    "recall@5 rises from 60 to 80%, +20 points [10, 30] (p < 0.001 alone, < 0.001 after Holm "
    "over 7 options); "
)


@pytest.mark.parametrize(
    ("saved", "end"),
    [
        ((7.0, 4, 9), "about 7 [4, 9] fewer failures, of 22 now."),
        ((7.5, 4, 9), "about 7.5 [4, 9] fewer failures, of 22 now."),
        ((-2.4, -4, -1), "about 2.4 [1, 4] more failures, on top of the 22 now."),
        ((-0.7, -4, 1), "not enough data to tell whether it avoids failures, of 22 now."),
        ((2.0, -0.0, 3), "not enough data to tell whether it avoids failures, of 22 now."),
        ((0, 0, 0), "not enough data to tell whether it avoids failures, of 22 now."),
    ],
)
def test_what_is_saved_is_said_as_certain_as_its_interval_is(saved, end):
    assert said(estimate(*saved)) == RISES + end


def test_what_was_not_forecast_says_why():
    assert said(Estimate.missing("nothing was judged")) == (
        RISES + "failures avoided are not known: nothing was judged."
    )


def test_no_detectable_difference_has_no_minus_zero_and_says_what_could_be_seen():
    found = said(
        estimate(1, 0, 3),
        difference=(-0.001, -0.04, 0.003),
        winner=None,
        p=0.4,
        p_holm=0.4,
        tests=1,
    )
    assert found == (
        "Not enough data to tell whether recall@5 changes: 0 points [\u22124, 0] (p = 0.40); 40 cases "
        "show a difference from 8 points on (80% power)."
    )


def test_a_difference_that_the_correction_hides_shows_both_p_values():
    found = said(
        estimate(1, 0, 3), difference=(0.25, 0.05, 0.45), winner=None, p=0.0625, p_holm=0.4375,
        detectable=0.38,
    )  # fmt: skip
    assert found == (
        "Not enough data to tell whether recall@5 changes: +25 points [5, 45] (p = 0.062 alone, 0.44 "
        "after Holm over 7 options); 40 cases show a difference from 38 points on (80% power, "
        "corrected)."
    )


def test_what_is_not_known_stands_in_place_of_a_forecast():
    unknown = "not known for 8 of 20 cases: nobody asked deeper"
    assert said(estimate(5, 3, 7), unknown=unknown) == (
        RISES + "not known for 8 of 20 cases: nobody asked deeper."
    )


def test_what_could_be_seen_is_at_the_level_that_the_correction_leaves():
    """The power of the paired t test, by statsmodels; four options, one of which is found."""
    from statsmodels.stats.power import TTestPower

    places = [1, 2, 3, 1, 2, 3, 1, 1, *[None] * 10, 5, 6]
    run = run_of(places)
    today = RetrievalBaseline.from_run(run)
    scores, _ = baseline_metrics(today, 0)

    def gaining(*better):
        moved = [1 if at in better else place for at, place in enumerate(places)]
        return OptionResult(run.cases, run_of(moved).traces, 3)

    options = [gaining(*range(8, 20)), gaining(8), gaining(8, 9), gaining(9, 10, 11)]
    rows = [one["recall@3"] for one in compare_metrics(today, scores, options, 0)]
    assert [row["winner"] for row in rows] == ["option", None, None, None]
    for row, gains in zip(rows[1:], (1, 2, 3), strict=True):
        spread = np.std([1] * gains + [0] * (20 - gains), ddof=1)
        effect = TTestPower().solve_power(nobs=20, alpha=0.05 / 3, power=0.8)
        assert row["detectable"] == pytest.approx(effect * spread, rel=1e-3)
        assert row["tests"] == 4


def bare(run):
    """The run, if no text of a passage had been seen."""

    def without(passages):
        return tuple(one.model_copy(update={"text": ""}) for one in passages)

    traces = tuple(t.model_copy(update={"retrieved": without(t.retrieved)}) for t in run.traces)
    return run.model_copy(update={"traces": traces})


@pytest.mark.parametrize("texts", [True, False])
def test_a_passage_without_text_costs_what_the_others_do_and_never_nothing(texts):
    """Of one passage with a text and one without; without a text today nobody knows of the two."""
    run = run_of([1])
    today = RetrievalBaseline.from_run(run if texts else bare(run))
    seen = passage(7, text="x" * 40)
    trace = Trace(case_id="c0", retrieved=(seen, passage(8, 2, text="")))
    found = context_tokens(today, OptionResult(today.cases, (trace,), 2), seed=0)["b"]
    usual = sum(len(one.text) for one in run.traces[0].retrieved) / 3 / 4
    assert found["value"] == (pytest.approx(10 + usual) if texts else None)
