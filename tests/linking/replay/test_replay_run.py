"""Whole replays over a real store and a judge's server."""

import json
import threading

import pytest

from misslink.errors import AppUnreachableError, InputError
from misslink.judge.calibration import Calibration
from misslink.judge.config import JudgeConfig
from misslink.linking.replay import RerunSettings, forecast_subjects
from misslink.linking.replay.results import replay_outcome
from misslink.linking.replay.runner import draw_cases
from replayed_app import (
    JUDGE,
    TEN,
    K,
    Reader,
    case,
    chain,
    corpus,
    failures,
    line,
    replayed,
    retriever,
    run_of,
    towns,
    truth,
)

EIGHT = tuple("12345678")  # as many as a net effect needs for its interval to exclude 0


class TestArms:
    @pytest.mark.slow
    def test_a_miss_is_confirmed_where_the_passage_alone_makes_the_answer_good(self, server):
        app, run = towns(server, missed=EIGHT, found=("9",))
        assert failures(run) == ["retrieval_miss"] * 8 + ["passed"]
        found = replayed(run, app)
        mode = found.replay.document()["failures"]["retrieval_miss"]
        assert (mode["cases"], mode["replayed"]) == (8, 8)
        values = [mode[name]["value"] for name in ("fixed", "placebo_fixed", "net_fixed")]
        assert values == [1.0, 0.0, 1.0]
        assert mode["net_fixed"]["low"] > 0
        assert mode["confirmed"]["value"] == 1.0
        told = line(found, "1")
        assert told.pop("e") > 20
        assert told == {
            "case_id": "case-1",
            "failure": "retrieval_miss",
            "turned": True,
            "flaky": False,
            "confirmed": True,
            "cause": "missed_passage",
            "owner": "retriever",
            "outcomes": {
                "observed": "unfaithful", "missed_passage": "good", "placebo": "unfaithful",
            },
            "tried": {"missed_passage": 1, "placebo": 2},
            "held": {"missed_passage": 1, "placebo": 0},
            "note": None,
        }  # fmt: skip
        assert found.replay.document()["calls_per_failure"] == 3.0
        assert found.replay.document()["owners"] == {"retriever": 8}
        arms = {row["arm"]: row for row in found.replay.document()["arms"]}
        assert (arms["missed_passage"]["tried"], arms["perfect_context"]["tried"]) == (8, 0)
        assert arms["missed_passage"]["held"]["value"] == 1.0
        assert arms["missed_passage"]["placebo_held"]["value"] == 0.0
        assert [link.basis for link in found.links] == ["replayed"] * 8 + ["observed"]
        assert [link.failure for link in found.links] == failures(run)
        again = replayed(run.model_copy(update={"links": found.links}), app, sample=1)
        assert sorted(link.basis for link in again.links) == ["observed"] * 8 + ["replayed"]
        (one, *_) = again.replay.document()["cases"]  # alone it needs more answers
        assert one["tried"] == {"missed_passage": 4, "placebo": 3}

    @pytest.mark.slow
    def test_an_app_that_ignores_its_context_is_not_fixed_by_the_passage(self, server):
        app, run = towns(server, "stubborn", missed=TEN)
        found = replayed(run, app)
        assert found.replay.document()["failures"]["retrieval_miss"]["confirmed"]["value"] == 0.0
        assert found.replay.document()["causal_fraction"]["value"] == 0.0
        assert found.replay.document()["owners"] == {"generator": 10}
        assert line(found, "1")["outcomes"]["perfect_context"] == "unfaithful"
        assert {link.basis for link in found.links} == {"observed"}

    @pytest.mark.slow
    def test_an_app_that_any_change_of_the_prompt_makes_honest_confirms_nothing(self, server):
        finder = retriever(corpus(missed=EIGHT))
        own = {}

        def moody(question):
            town = question.removesuffix("?").split()[-1]
            found = [one.id for one in finder.invoke(question)]
            if found == own.setdefault(town, found):
                return LIE.replace("town 1", f"town {town}")
            return truth(town)

        run = run_of(moody, [case(town) for town in EIGHT], server)
        found = replayed(run, moody)
        mode = found.replay.document()["failures"]["retrieval_miss"]
        assert (mode["fixed"]["value"], mode["placebo_fixed"]["value"]) == (1.0, 1.0)
        assert (mode["net_fixed"]["value"], mode["confirmed"]["value"]) == (0.0, 0.0)
        assert found.replay.document()["flaky"]["value"] == 1.0
        assert line(found, "1")["cause"] is None
        assert found.replay.document()["owners"] == {}

    @pytest.mark.slow
    def test_the_causal_fraction_is_over_all_failed_answers(self, server):
        app, run = towns(server, "hasty", missed=TEN, found=("11", "12"))
        assert failures(run).count("retrieval_miss") == 10
        assert len([mode for mode in failures(run) if mode != "passed"]) == 12
        document = replayed(run, app).replay.document()
        assert document["failed"] == 12
        assert document["causal_fraction"]["value"] == pytest.approx(10 / 12)
        assert document["failures"]["retrieval_miss"]["net_fixed"]["value"] == 1.0

    @pytest.mark.slow
    def test_an_answer_that_flips_by_itself_is_flaky_and_confirms_nothing(self, server):
        app, run = towns(server, "wavering", echoed=EIGHT)
        assert failures(run) == ["ignored_context"] * 8  # an unlisted passage holds the answer
        found = replayed(run, app)
        mode = found.replay.document()["failures"]["ignored_context"]
        assert found.replay.document()["flaky"]["value"] == 1.0
        assert (mode["fixed"]["value"], mode["confirmed"]["value"]) == (1.0, 0.0)

    @pytest.mark.slow
    def test_good_answers_that_the_passage_breaks_are_shown_beside(self, server):
        app, run = towns(server, "confused", echoed=tuple("abcde"))
        assert failures(run) == ["passed"] * 5
        found = replayed(run, app).replay.document()
        assert found["broken"]["value"] == 1.0
        assert found["placebo_broken"]["value"] == 0.0
        assert found["net_broken"]["low"] > 0
        assert found["causal_fraction"]["reason"] == "no answer of the run failed"
        assert found["cases"][0]["confirmed"] is None

    @pytest.mark.slow
    def test_partial_hits_are_replayed_with_what_they_missed(self, server):
        names = (*"1234567", "x")
        app = chain(retriever(corpus(missed=names)), "stubborn")
        cases = [
            case(town).model_copy(update={"relevant": {f"gold-{town}": 1, f"guide-{town}": 1}})
            for town in names
        ]
        run = run_of(app, cases, server)
        assert {link.retrieval for link in run.links} == {"partial"}
        document = replayed(run, app, settings={"k": K}).replay.document()
        assert sum(mode["replayed"] for mode in document["failures"].values()) == 8

    @pytest.mark.slow
    def test_what_another_failure_mode_missed_counts_and_its_owner_is_the_retriever(self, missed):
        app, run = missed
        links = [link.model_copy(update={"failure": "fabricated"}) for link in run.links]
        document = replayed(run.model_copy(update={"links": tuple(links)}), app).replay.document()
        mode = document["failures"]["fabricated"]
        assert mode["net_fixed"]["value"] == 1.0
        assert mode["confirmed"]["value"] == 0.0  # the generator, as the run names it
        assert document["owners"] == {"retriever": 10}
        assert document["causal_fraction"]["value"] == 1.0


class TestSampling:
    @pytest.mark.slow
    def test_a_smaller_sample_is_part_of_a_larger_one_and_the_seed_decides(self, missed):
        app, run = missed

        def drawn(sample, seed=0):
            return {plan.case.id for plan in draw_cases(run, K, sample, seed)[0]}

        assert drawn(1) < drawn(3) < drawn(5)
        some, others, _ = draw_cases(run, K, 3, 0)  # the others have what earlier replays kept
        assert sorted(p.case.id for p in (*some, *others)) == sorted(drawn(len(run.cases)))
        assert others
        assert len({frozenset(drawn(3, seed)) for seed in range(4)}) > 1
        replays = replayed(run, app, sample=3, seed=1).replay.document()["cases"]
        assert sorted(one["case_id"] for one in replays) == sorted(drawn(3, 1))

    def test_a_run_without_causes_has_no_numbers_and_says_why(self, server):
        app, run = towns(server, found=("1",))
        document = replayed(run, app).replay.document()
        assert document["cases"] == []
        assert document["flaky"]["reason"] == "no case was replayed"
        assert document["failures"]["retrieval_miss"]["confirmed"]["value"] is None
        assert document["causal_fraction"]["reason"] == "no answer of the run failed"
        json.dumps(document, allow_nan=False)

    @pytest.mark.parametrize(
        ("option", "options"),
        [("sample", {"sample": 0}), ("concurrency", {"settings": {"concurrency": 0}})],
    )
    def test_numbers_below_one_are_refused(self, server, option, options):
        app, run = towns(server, found=("1",))
        with pytest.raises(InputError, match=f"--{option} is 0"):
            replayed(run, app, **options)

    @pytest.mark.slow
    def test_cases_under_way_at_once_do_not_mix(self, missed):
        app, run = missed
        mode = replayed(run, app, settings={"concurrency": 10}).replay.document()["failures"][
            "retrieval_miss"
        ]
        assert mode["confirmed"]["value"] == 1.0


class TestApps:
    def test_a_plain_callable_is_replayed_as_a_function_that_builds_it(self, server):
        finder = retriever(corpus(missed=("1", "2")))

        def app_over(search):
            reader = Reader()

            def app(question):
                said = "\n".join(one.page_content for one in search(question))
                return reader.invoke(f"Passages:\n{said}\n\nQuestion: {question}").content

            return app

        run = run_of(app_over(finder.invoke), [case("1"), case("2")], server)
        assert line(replayed(run, lambda retriever: app_over(retriever.invoke)), "1")["turned"]

    def test_an_app_whose_retriever_cannot_be_replaced_is_refused(self, server):
        finder = retriever(corpus(missed=tuple("12345")))
        answers = []

        def app(question):
            found = []
            thread = threading.Thread(target=lambda: found.extend(finder.invoke(question)))
            thread.start()
            thread.join()
            answers.append(question)
            return {"answer": "The sky is green.", "retrieved": found}

        # By evidence: this app's store cannot be asked for the text of what was missed.
        cases = [case(town).model_copy(update={"evidence": {truth(town): 1}}) for town in "12345"]
        run = run_of(app, cases, server)
        answers.clear()
        judged = len(server.calls)
        with pytest.raises(InputError, match=r"in the first 3 cases .* def build\(retriever\)"):
            replayed(run, app)
        assert len(answers) == 3
        assert len(server.calls) - judged <= 3  # whether the verdict holds

    def test_a_case_in_which_the_app_does_not_search_is_skipped_and_not_unconfirmed(self, server):
        finder = retriever(corpus(missed=("1", "2")))
        whole = chain(finder)
        asked = []

        def app(question):
            asked.append(question)
            # In the replay, which comes after the two of the run, it knows town 2 by heart.
            if "town 2" in question and len(asked) > 2:
                return truth("2")
            return whole.invoke(question)

        run = run_of(app, [case("1"), case("2")], server)
        document = replayed(run, app, seed=1).replay.document()
        assert [one["case_id"] for one in document["cases"]] == ["case-1"]
        (skipped,) = document["skipped"]
        assert skipped["case_id"] == "case-2"
        assert "called no retriever that misslink could replace" in skipped["reason"]
        assert document["failures"]["retrieval_miss"]["replayed"] == 1

    def test_an_app_that_fails_throughout_is_out_of_reach(self, server):
        app, run = towns(server, missed=("1", "2"))

        def broken(question):
            raise ConnectionError("no model")

        with pytest.raises(AppUnreachableError, match="ConnectionError: no model"):
            replayed(run, broken)
        del app

    def test_an_intervention_that_does_not_reach_the_prompt_says_nothing(self, server):
        finder = retriever(corpus(missed=("1", "2")))
        whole = chain(finder | (lambda found: [one for one in found if one.id != "gold-1"]))
        run = run_of(whole, [case("1"), case("2")], server)
        document = replayed(run, whole).replay.document()
        (skipped,) = document["skipped"]
        assert skipped["reason"] == "'gold-1' was injected and did not reach the prompt"
        assert document["causal_fraction"]["value"] is None

    def test_where_no_case_can_be_replayed_it_says_why_and_calls_nothing(self, server):
        app, run = towns(server, missed=("1",))
        traces = [trace.model_copy(update={"unmeasured": "none seen"}) for trace in run.traces]
        calls = len(server.calls)
        with pytest.raises(InputError, match=r"none of the 1 failed cases can .* case-1: what was"):
            replayed(run.model_copy(update={"traces": tuple(traces)}), app)
        assert len(server.calls) == calls


class TestJudge:
    def test_the_budget_ends_the_asking_of_judge_and_app(self, server):
        app, run = towns(server, missed=("1", "2", "3"))
        before = len(server.calls)
        found = replayed(run, app, terms=JudgeConfig(max_calls=4), settings={"concurrency": 1})
        assert len(server.calls) - before == 4
        usage = found.replay.document()["usage"]
        assert usage["calls"] == 4
        assert usage["generations"] <= 6  # the last is the one that found the budget spent
        assert [one["case_id"] for one in found.replay.document()["cases"]] != []
        assert all("budget" in one["reason"] or "calls" in one["reason"]
                   for one in found.replay.document()["skipped"])  # fmt: skip

    @pytest.mark.slow
    def test_the_forecast_is_what_a_replay_then_costs(self, server):
        app, run = towns(server, missed=("1", "2", "3"), echoed=("4",), found=("5",))
        generations, subjects = forecast_subjects(run, RerunSettings(), sample=2, seed=0)
        asked = {subject.examination.key for subject in subjects}
        calls = len(server.calls)
        usage = replayed(run, app, sample=2).replay.document()["usage"]
        assert generations == 12 * 2 + 2  # at most: two failures, and a good answer after a miss
        assert usage["generations"] == 10
        assert len(asked) >= len(server.calls) - calls > 0

    @pytest.mark.slow
    def test_every_answer_is_judged_by_the_missed_passage_too(self, server):
        # True without evidence in each arm: the passage changes nothing but what the judge sees.
        finder = retriever(corpus(missed=TEN))

        def app(question):
            finder.invoke(question)
            return truth(question.removesuffix("?").split()[-1])

        run = run_of(app, [case(town) for town in TEN], server)
        assert set(failures(run)) == {"retrieval_miss"}
        found = replayed(run, app)
        assert set(line(found, "1")["outcomes"].values()) == {"good"}
        assert (line(found, "1")["turned"], line(found, "1")["confirmed"]) == (False, False)
        causal = found.replay.document()["causal_fraction"]
        assert (causal["value"], causal["n"]) == (0.0, 10)

    @pytest.mark.slow
    def test_with_another_judge_there_is_no_causal_fraction(self, missed, server):
        app, run = missed
        server.models = ("test-judge", "other-judge")
        document = replayed(run, app, judge="openai:other-judge").replay.document()
        causal = document["causal_fraction"]
        assert causal["value"] is None
        assert f"judged by {JUDGE}, the replay by openai:other-judge" in causal["reason"]
        assert document["cases"][0]["confirmed"] is True

    @pytest.mark.slow
    def test_what_the_cache_holds_is_not_paid_twice(self, server, tmp_path):
        app, run = towns(server, missed=("1", "2"))
        first = replayed(run, app, cache=tmp_path / "cache.sqlite").replay.document()
        calls = len(server.calls)
        again = replayed(run, app, cache=tmp_path / "cache.sqlite").replay.document()
        assert len(server.calls) == calls
        usage = first["usage"]
        assert again["usage"]["from_cache"] == usage["calls"] + usage["from_cache"]
        assert again["cases"] == first["cases"]


LIE = "The sky over town 1 is green."


def test_verdicts_in_the_uncertain_band_of_the_runs_calibration_say_nothing(server):
    app, run = towns(server, missed=("1",), found=("3",))
    certain = {"value": 0.9, "low": 0.8, "high": 1.0, "n": 50, "method": "wilson", "reason": None}
    calibration = {
        "metric": "faithfulness",
        "threshold": 0.5,
        "sensitivity": certain,
        "specificity": certain,
        "uncertain_band": [0.0, 1.0],
    }
    told = replayed(run, app).replay.document()["cases"]
    assert [one["turned"] for one in told] == [True]
    probable = tuple(
        verdict.model_copy(update={"probability": 0.4})
        if verdict.metric == "faithfulness"
        else verdict
        for verdict in run.verdicts
        if verdict.metric not in {"correctness", "completeness"}
    )
    doubted = run.model_copy(
        update={"manifest": {**run.manifest, "calibration": calibration}, "verdicts": probable}
    )
    of_case = {verdict.metric: verdict for verdict in probable if verdict.case_id == "case-1"}
    outcome = replay_outcome(
        run.cases[0], run.traces[0], of_case, K, calibration=Calibration.of_run(doubted)
    )
    assert (outcome.bad, outcome.name) == (None, "inconclusive")
    assert "faithfulness is not certain" in outcome.reason
    damaged = {**run.manifest, "calibration": {**calibration, "sensitivity": 3}}
    run = run.model_copy(update={"manifest": damaged})
    with pytest.raises(InputError, match=r"manifest\.json.*sensitivity"):
        replayed(run, app)
