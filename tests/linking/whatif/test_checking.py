from __future__ import annotations

import asyncio
import json

import pytest
from pydantic import TypeAdapter

from misslink.embedding import Embedder
from misslink.linking.judge_calibration import Calibration
from misslink.linking.whatif import evaluate_options
from misslink.types import Estimate, Trace
from town import Hashed, corpus, passage, ranked, run_of

PLACES = [1, 2, 3, 1, 2, 3, 1, 1, *[None] * 10, 5, 6]
BAD = {0, *range(8, 16), 18}  # 1 of 8 hits, 9 of 12 misses


def weighed(run=None, **given):
    told = {"corpus": corpus(), "embedder": Embedder(Hashed()), **given}
    found = asyncio.run(evaluate_options(run or run_of(PLACES, bad=BAD), **told))
    json.dumps(found, allow_nan=False)
    return found


def test_the_forecast_is_checked_on_cases_that_are_really_generated_again():
    asked = []

    async def rerun(one, passages):
        """An app that is faithful where it is handed what it needs, but for case 9."""
        asked.append(one.id)
        held = any(passage.id in one.relevant for passage in passages)
        good = held and one.id != "c9"
        verdict = {"faithfulness": verdict_of(one.id, label=good)}
        return Trace(case_id=one.id, retrieved=passages, answer="It opens."), verdict

    found = weighed(options=["bm25"], rerun=rerun, sample=100)["forecast_error"]
    assert sorted(asked) == sorted(f"c{n}" for n in range(8, 20))
    assert (found["option"], found["affected"], found["checked"]) == ("bm25", 12, 12)
    # Unfaithful before 9 of 12, after it one; the hits' risk of 1/8 promised 12/8 after it.
    assert found["measured"] == 8
    assert found["forecast"] == pytest.approx(9 - 12 / 8)
    assert found["error"]["value"] == pytest.approx((9 - 12 / 8 - 8) / 12)
    assert found["error"]["low"] < found["error"]["value"] < found["error"]["high"]


def test_a_sample_is_no_larger_than_asked_and_what_fails_is_told():
    async def rerun(one, passages):
        return Trace(case_id=one.id, error="the app is gone"), {}

    found = weighed(options=["bm25"], rerun=rerun, sample=3)["forecast_error"]
    assert (found["checked"], found["forecast"], found["error"]["value"]) == (0, None, None)
    assert [one["reason"] for one in found["skipped"]] == ["the app is gone"] * 3


def test_where_no_passages_are_known_nothing_is_checked():
    async def rerun(one, passages):
        raise AssertionError

    found = weighed(options=["k"], widths=[6], rerun=rerun, sample=3)["forecast_error"]
    assert (found["option"], found["checked"], found["error"]["value"]) == ("k=6", 0, None)
    assert "passages are not known" in found["error"]["reason"]


def test_a_larger_k_is_checked_where_the_app_shows_its_deeper_ranks():
    handed = {}

    async def rerun(one, passages):
        handed[one.id] = passages
        verdict = {"faithfulness": verdict_of(one.id, label=True)}
        return Trace(case_id=one.id, retrieved=passages, answer="It opens."), verdict

    async def deeper(one, width):
        return ranked(range(30))[:width]

    given = {"options": ["k"], "widths": [6], "rerun": rerun, "sample": 9}
    found = weighed(deeper=deeper, **given)["forecast_error"]
    assert (found["option"], found["checked"]) == ("k=6", 2)
    assert [one.id for one in handed["c18"]] == [f"p{n}" for n in range(6)]


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
    weighed(run, options=["k"], widths=[5], rerun=rerun, sample=9)
    assert [one.text for one in handed["c18"]] == [passage(n).text for n in (30, 31, 32, 33, 18)]


def test_a_new_answer_that_the_calibrated_judge_is_not_sure_of_does_not_count():
    async def rerun(one, passages):
        verdict = verdict_of(one.id, label=True).model_copy(update={"probability": 0.55})
        return Trace(case_id=one.id, retrieved=passages, answer="It opens."), {
            "faithfulness": verdict
        }

    rate = Estimate(value=0.9, low=0.8, high=0.95, n=50, method="wilson")
    known = Calibration("faithfulness", 0.5, rate, rate, (0.4, 0.6))
    run = run_of(PLACES, bad=BAD)
    manifest = {
        **run.manifest,
        "calibration": TypeAdapter(Calibration).dump_python(known, mode="json"),
    }
    calibrated = run.model_copy(update={"manifest": manifest})
    given = {"options": ["bm25"], "rerun": rerun, "sample": 5}
    found = weighed(calibrated, **given)["forecast_error"]
    assert found["checked"] == 0
    assert "not certain" in found["error"]["reason"]
    assert weighed(run, **given)["forecast_error"]["checked"] == 5


def verdict_of(case_id, *, label):
    from misslink.types import Verdict

    return Verdict(
        case_id=case_id, metric="faithfulness", status="scored", value=float(label), label=label,
        judge="exact",
    )  # fmt: skip
