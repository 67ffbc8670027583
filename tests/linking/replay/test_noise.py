"""What replay must not take for proof: coin flips, and answers that only got their evidence."""

from __future__ import annotations

import pytest

from misslink.errors import InputError
from misslink.linking.replay.outcomes import count_generations
from replayed_app import (
    TEN,
    case,
    corpus,
    line,
    replayed,
    retriever,
    run_of,
    towns,
    truth,
)

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
            ("hasty", "ignored_context", {"found": ("1",)}),
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
        if verdict.metric != "correctness"
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
