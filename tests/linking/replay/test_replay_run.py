"""Whole replays over a real store and a judge's server."""

from __future__ import annotations

import json
import threading

import pytest

from misslink.errors import AppUnreachableError, InputError
from misslink.judge.config import JudgeConfig
from misslink.linking.replay.outcomes import count_generations
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


class TestCauses:
    def test_a_miss_is_confirmed_where_the_passage_makes_the_answer_good(self, server):
        app, run = towns(server, missed=("1", "2"), found=("3",))
        assert failures(run) == ["retrieval_miss", "retrieval_miss", "passed"]
        found = replayed(run, app)
        told = found.document["failures"]["retrieval_miss"]
        assert (told["cases"], told["replayed"], told["flaky"]) == (2, 2, 0)
        assert told["confirmed"]["value"] == 1.0
        assert told["interventions"]["first"]["value"] == 1.0
        assert told["interventions"]["last"]["value"] == 1.0
        assert line(found, "1") == {
            "case_id": "case-1",
            "failure": "retrieval_miss",
            "replayed_as": "retrieval_miss",
            "flaky": False,
            "confirmed": True,
            "same_answer": False,
            "outcomes": {
                "observed": "unfaithful", "unchanged": "unfaithful", "first": "good", "last": "good"
            },
            "repeats": {"first": "good"},
            "reason": "with the passage in the first place the answer is good",
        }  # fmt: skip
        assert [link.basis for link in found.links] == ["replayed", "replayed", "observed"]
        assert [link.failure for link in found.links] == failures(run)

    def test_an_app_that_ignores_its_context_is_not_mended_by_the_passage(self, server):
        app, run = towns(server, "stubborn", missed=TEN)
        found = replayed(run, app)
        assert line(found, "1")["confirmed"] is False
        assert found.document["failures"]["retrieval_miss"]["confirmed"]["value"] == 0.0
        assert found.document["causal_attributable_fraction"]["value"] == 0.0
        assert {link.basis for link in found.links} == {"observed"}

    def test_a_passage_that_is_only_read_in_the_first_place_is_found_out(self, server):
        app, run = towns(server, "hasty", missed=("1",))
        told = line(replayed(run, app), "1")["outcomes"]
        assert (told["first"], told["last"]) == ("good", "wrong")

    def test_ignored_context_is_confirmed_by_moving_the_passage_to_the_front(self, server):
        app, run = towns(server, "hasty", found=("1",))
        assert failures(run) == ["incomplete"]
        found = replayed(run, app)
        assert line(found, "1")["outcomes"] == {
            "observed": "wrong", "unchanged": "wrong", "first": "good", "alone": "good"
        }  # fmt: skip
        assert found.document["failures"]["incomplete"]["confirmed"]["value"] == 1.0

    def test_a_distracted_answer_turns_good_without_the_noise(self, server):
        app, run = towns(server, "gullible", rumoured=("1",))
        assert failures(run) == ["distracted"]
        found = replayed(run, app)
        assert line(found, "1")["outcomes"]["without_noise"] == "good"
        assert found.document["failures"]["distracted"]["confirmed"]["value"] == 1.0

    def test_an_answer_that_flips_by_itself_is_flaky_and_confirms_nothing(self, server):
        app, run = towns(server, "wavering", echoed=("1", "2"), missed=("3",))
        assert failures(run) == ["retrieval_miss"] * 3
        found = replayed(run, app)
        told = found.document["failures"]["retrieval_miss"]
        assert (told["replayed"], told["flaky"]) == (3, 2)
        assert told["confirmed"]["value"] == pytest.approx(1 / 3)
        assert told["interventions"]["last"]["n"] == 3
        assert found.document["flaky"]["value"] == pytest.approx(2 / 3)
        assert line(found, "1")["reason"] == (
            "the answer was unfaithful, and good when nothing was changed"
        )

    def test_a_good_answer_that_the_passage_spoils_counts_against_it(self, server):
        app, run = towns(server, "confused", echoed=("1", *"abcd"), missed=tuple("23456"))
        found = replayed(run, app)
        told = line(found, "1")
        assert (told["confirmed"], told["flaky"]) == (None, False)
        assert told["outcomes"] == {"observed": "good", "unchanged": "good", "first": "unfaithful"}
        # Five bad answers avoided, five made: of five bad answers none is fewer.
        assert found.document["causal_attributable_fraction"]["value"] == 0.0
        assert found.document["observed_attributable_fraction"]["reason"] == "no case with a hit"


class TestSampling:
    def test_a_smaller_sample_is_part_of_a_larger_one(self, server):
        app, run = towns(server, missed=tuple("123456789"))

        def drawn(sample):
            return {one["case_id"] for one in replayed(run, app, sample=sample).document["cases"]}

        assert drawn(1) < drawn(3) < drawn(5)

    def test_of_each_cause_so_many_are_drawn_by_seed(self, server):
        app, run = towns(server, missed=tuple("123456789"))

        def drawn(seed):
            cases = replayed(run, app, sample=3, seed=seed).document["cases"]
            return sorted(one["case_id"] for one in cases)

        assert len(drawn(0)) == 3
        assert drawn(0) == drawn(0)
        assert len({tuple(drawn(seed)) for seed in range(4)}) > 1

    def test_a_run_without_causes_has_no_numbers_and_says_why(self, server):
        app, run = towns(server, found=("1",))
        document = replayed(run, app).document
        assert document["cases"] == []
        assert document["flaky"]["reason"] == "no case was replayed"
        assert document["failures"]["retrieval_miss"]["confirmed"]["value"] is None
        assert "no case is a miss" in document["causal_attributable_fraction"]["reason"]
        json.dumps(document, allow_nan=False)

    @pytest.mark.parametrize(
        ("option", "options"),
        [("sample", {"sample": 0}), ("concurrency", {"settings": {"concurrency": 0}})],
    )
    def test_numbers_below_one_are_refused(self, server, option, options):
        app, run = towns(server, found=("1",))
        with pytest.raises(InputError, match=f"--{option} is 0"):
            replayed(run, app, **options)

    def test_cases_under_way_at_once_do_not_mix(self, server):
        app, run = towns(server, missed=tuple("123456789"))
        told = replayed(run, app, settings={"concurrency": 9}).document["failures"][
            "retrieval_miss"
        ]
        assert told["confirmed"]["value"] == 1.0


class TestApps:
    def test_a_plain_callable_is_replayed_as_a_function_that_builds_it(self, server):
        finder = retriever(corpus(missed=("1",)))

        def app_over(search):
            reader = Reader()

            def app(question):
                said = "\n".join(one.page_content for one in search(question))
                return reader.invoke(f"Passages:\n{said}\n\nQuestion: {question}").content

            return app

        run = run_of(app_over(finder.invoke), [case("1")], server)
        assert line(replayed(run, lambda retriever: app_over(retriever.invoke)), "1")["confirmed"]

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
        assert len(server.calls) == judged  # and the judge was not asked at all

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
        document = replayed(run, app, seed=1).document
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
        finder = retriever(corpus(missed=("1",)))
        whole = chain(finder | (lambda found: [one for one in found if one.id != "gold-1"]))
        run = run_of(whole, [case("1")], server)
        document = replayed(run, whole).document
        (skipped,) = document["skipped"]
        assert skipped["reason"] == "the app was handed 'gold-1', and it did not reach the prompt"
        assert document["causal_attributable_fraction"]["value"] is None


class TestJudge:
    def test_the_budget_ends_the_asking_of_judge_and_app(self, server):
        app, run = towns(server, missed=("1", "2", "3"))
        before = len(server.calls)
        found = replayed(run, app, terms=JudgeConfig(max_calls=4), settings={"concurrency": 1})
        assert len(server.calls) - before == 4
        usage = found.document["usage"]
        assert usage["calls"] == 4
        assert usage["generations"] == 6  # the sixth is the one that found the budget spent
        assert [one["case_id"] for one in found.document["cases"]] != []
        assert all("budget" in one["reason"] or "calls" in one["reason"]
                   for one in found.document["skipped"])  # fmt: skip

    def test_another_judge_judges_the_observed_answers_too(self, server):
        app, run = towns(server, missed=("1",), found=("2",))
        server.models = ("test-judge", "other-judge")
        calls = len(server.calls)
        document = replayed(run, app, judge="openai:other-judge").document
        # Observed, first and last: unchanged came out as observed, and the cache knew it.
        assert len(server.calls) - calls == 3
        causal = document["causal_attributable_fraction"]
        assert causal["value"] is None
        assert f"judged by {JUDGE}, the replay by openai:other-judge" in causal["reason"]
        assert document["cases"][0]["confirmed"] is True

    def test_what_the_cache_holds_is_not_paid_twice(self, server, tmp_path):
        app, run = towns(server, missed=("1",))
        first = replayed(run, app, cache=tmp_path / "cache.sqlite").document
        calls = len(server.calls)
        again = replayed(run, app, cache=tmp_path / "cache.sqlite").document
        assert len(server.calls) == calls
        usage = first["usage"]  # the second draw said the same, which was known
        assert again["usage"]["from_cache"] == usage["calls"] + usage["from_cache"]
        assert again["cases"] == first["cases"]


def test_partial_hits_are_replayed_and_stay_out_of_the_causal_fraction(server):
    app = chain(retriever(corpus(missed=("1",))), "stubborn")
    both = case("1").model_copy(update={"relevant": {"gold-1": 1, "guide-1": 1}})
    run = run_of(app, [both], server)
    assert (run.links[0].retrieval, run.links[0].failure) == ("partial", "retrieval_miss")
    document = replayed(run, app, settings={"k": K}).document
    assert document["failures"]["retrieval_miss"]["replayed"] == 1
    assert "no case is a miss" in document["causal_attributable_fraction"]["reason"]


LIE = "The sky over town 1 is green."


class TestNoise:
    """What turns out otherwise by itself, or only looks better, confirms nothing."""

    def scripted(self, server, *said, kind="missed"):
        """An app over one town that gives these answers in turn, and its run."""
        finder = retriever(corpus(**{kind: ("1",)}))
        answers = iter(said)

        def app(question):
            finder.invoke(question)
            return next(answers)

        return app, run_of(app, [case("1")], server)

    def test_a_lie_in_place_of_a_truth_without_evidence_is_flaky(self, server):
        # Both are unfaithful: no passage says either.
        app, run = self.scripted(server, truth("1"), LIE, truth("1"))
        found = replayed(run, app)
        assert line(found, "1")["outcomes"]["observed"] == "unfaithful"
        assert line(found, "1")["outcomes"]["unchanged"] == "unfaithful"
        assert (line(found, "1")["flaky"], line(found, "1")["confirmed"]) == (True, False)
        assert line(found, "1")["reason"] == (
            "the answer was right, and wrong when nothing was changed"
        )

    @pytest.mark.parametrize("draws", [(truth("1"), LIE), (LIE, truth("1"))])
    def test_one_good_draw_of_two_is_flaky_and_not_tried_further(self, server, draws):
        app, run = self.scripted(server, LIE, LIE, *draws)
        found = replayed(run, app)
        told = line(found, "1")
        assert (told["flaky"], told["confirmed"]) == (True, False)
        assert "was once" in told["reason"]
        assert "last" not in told["outcomes"]
        assert (
            found.document["failures"]["retrieval_miss"]["interventions"]["first"]["value"] == 0.0
        )

    def test_an_answer_that_only_got_its_evidence_is_not_mended(self, server):
        shouted = truth("1").upper().replace(" ", "  ")
        app, run = self.scripted(server, truth("1"), truth("1"), truth("1"), shouted, truth("1"))
        found = replayed(run, app)
        told = line(found, "1")
        assert (told["outcomes"]["unchanged"], told["outcomes"]["first"]) == ("unfaithful", "good")
        assert (told["flaky"], told["confirmed"], told["same_answer"]) == (False, False, True)
        assert told["reason"] == "the answer is the same; only its evidence is there now"
        of_cause = found.document["failures"]["retrieval_miss"]
        assert (of_cause["same_answer"], of_cause["confirmed"]["value"]) == (1, 0.0)
        assert of_cause["interventions"]["first"]["value"] == 0.0

    def test_nor_does_it_count_as_avoided(self, server):
        finder = retriever(corpus(missed=TEN))

        def app(question):
            finder.invoke(question)
            return truth(question.removesuffix("?").split()[-1])

        run = run_of(app, [case(town) for town in TEN], server)
        causal = replayed(run, app).document["causal_attributable_fraction"]
        assert (causal["value"], causal["n"]) == (0.0, 10)

    @pytest.mark.parametrize(
        ("kind", "group", "town"),
        [
            ("attentive", "retrieval_miss", {"missed": ("1",)}),
            ("hasty", "incomplete", {"found": ("1",)}),
            ("gullible", "distracted", {"rumoured": ("1",)}),
            ("confused", "good_miss", {"echoed": ("1",)}),
        ],
    )
    def test_a_case_costs_as_many_generations_as_is_said(self, server, kind, group, town):
        app, run = towns(server, kind, **town)
        document = replayed(run, app).document
        assert [one["replayed_as"] for one in document["cases"]] == [group]
        same_order = group == "ignored_context" and "first" not in document["cases"][0]["outcomes"]
        assert document["usage"]["generations"] == count_generations(group) - 2 * same_order


class TestContributing:
    def test_a_cause_that_only_contributes_is_tried_too(self, server):
        app, run = towns(server, "hasty", found=("1",))
        (link,) = run.links
        link = link.model_copy(update={"failure": "fabricated", "also": ("ignored_context",)})
        found = replayed(run.model_copy(update={"links": (link,)}), app)
        told = found.document["failures"]["ignored_context"]
        assert (told["cases"], told["also"], told["replayed"]) == (0, 1, 1)
        assert told["confirmed"]["value"] == 1.0
        assert line(found, "1")["failure"] == "fabricated"
        assert [link.basis for link in found.links] == ["observed"]  # fabricated is not proven

    def test_a_good_miss_stays_one_whatever_contributes(self, server):
        app, run = towns(server, echoed=("1",))
        (link,) = run.links
        link = link.model_copy(update={"also": ("distracted",)})
        found = replayed(run.model_copy(update={"links": (link,)}), app)
        assert line(found, "1")["replayed_as"] == "good_miss"


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
    told = replayed(run, app).document["cases"]
    assert [one["confirmed"] for one in told] == [True]
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
    (skipped,) = replayed(doubted, app).document["skipped"]
    assert "faithfulness is not certain" in skipped["reason"]
    damaged = {**run.manifest, "calibration": {**calibration, "sensitivity": 3}}
    run = run.model_copy(update={"manifest": damaged})
    with pytest.raises(InputError, match="has a calibration that cannot be read"):
        replayed(run, app)
