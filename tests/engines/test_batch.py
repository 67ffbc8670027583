"""The batch engine gives what the local one gives, for less, and says so before."""

import json
import logging
from pathlib import Path

import pytest

import misslink
from batch_server import BatchServer
from judge_faults import error
from killed_runs import write_inputs
from misslink.engines.batch import BatchEngine, open_batch
from misslink.errors import InputError, JudgeUnreachableError
from misslink.event_loops import run_async
from misslink.judge.batch.queue import BatchTiming
from misslink.judge.batch.service import pending_batches
from misslink.pipeline.evaluate import forecast_async

AT_ONCE = BatchEngine(BatchTiming(linger=0, first=0, longest=0))
PRICES = {"price_in": 1.0, "price_out": 4.0}
SAME = ("verdicts.jsonl", "links.jsonl", "cases.jsonl", "traces.jsonl")


@pytest.fixture
def server(tmp_path, monkeypatch):
    write_inputs(tmp_path / "inputs", 14)
    monkeypatch.chdir(tmp_path / "inputs")
    with BatchServer() as running:
        yield running


def given(server, name, *, engine=AT_ONCE, judge="openai:test-judge", **terms):
    return {
        "goldset": "gold.jsonl",
        "traces": "traces.jsonl",
        "judge": judge,
        "cache": f"{name}.sqlite",
        "engine": engine,
        "judge_config": misslink.JudgeConfig(base_url=server.url, api_key="k", **terms),
    }


def run(server, name, **options):
    return misslink.evaluate(**given(server, name, **options), out=name).summary


def foreseen(server, name, **options):
    return run_async(lambda: forecast_async(**given(server, name, **options)))


def same(a, b):
    return [Path(a, name).read_bytes() == Path(b, name).read_bytes() for name in SAME]


def garbled(body):
    """Some replies have to be repaired, and the misses are asked about."""
    asked = body["messages"]
    odd = "town 3 " in asked[-1]["content"] or "town 5 blue by day?" in asked[-1]["content"]
    return "No JSON at all." if len(asked) == 2 and odd else None


@pytest.mark.slow
@pytest.mark.parametrize("script", [None, garbled])
def test_the_run_is_that_of_the_local_engine_byte_for_byte(server, script):
    server.script = script
    batches = run(server, "batches")
    local = run(server, "local", engine="local")
    assert same("batches", "local") == [True] * 4
    assert batches["usage"]["calls"] == local["usage"]["calls"]
    assert batches["usage"]["in_batches"] == batches["usage"]["calls"] - 1


@pytest.mark.slow
def test_replies_of_batches_and_live_ones_stand_in_for_each_other(server):
    run(server, "batches")
    run(server, "local", engine="local")
    for name, other in (("batches", "local"), ("local", AT_ONCE)):
        before = len(server.calls), len(server.batches)
        again = misslink.evaluate(**given(server, name, engine=other), out=f"{name}-again")
        assert (again.summary["usage"]["calls"], again.summary["usage"]["from_cache"]) == (0, 14)
        assert (len(server.calls), len(server.batches)) == before


def test_repairs_and_second_questions_are_further_rounds(server):
    server.script = garbled
    run(server, "batches")
    first, *later = [len(batch) for batch in server.questions]
    assert first == 13
    assert later == [2]


@pytest.mark.slow
def test_samples_of_a_question_go_out_together(server):
    run(server, "batches", repeats=3)
    assert [len(batch) for batch in server.questions] == [14 * 3 - 1]
    run(server, "local", engine="local", repeats=3)
    assert same("batches", "local") == [True] * 4


def test_a_dry_run_says_what_batches_save_and_submits_nothing(server):
    before = foreseen(server, "batches", **PRICES)
    assert (server.calls, server.batches) == ([], {})
    batch = before.batch
    assert (before.calls, batch.questions, batch.batches, batch.submitted) == (14, 13, 1, 0)
    assert batch.saving == pytest.approx(before.cost * 13 / 14 / 2)
    assert batch.cost + batch.saving == pytest.approx(before.cost)
    used = run(server, "batches", **PRICES)["usage"]
    assert batch.cost == pytest.approx(used["cost"], rel=0.15)
    (one,) = server.batches.values()
    assert batch.bytes == pytest.approx(len(server.files[one["input_file_id"]]), rel=0.05)
    after = foreseen(server, "batches", **PRICES)
    assert (after.calls, after.batch.questions, after.batch.batches) == (0, 0, 0)
    assert (after.batch.bytes, after.batch.cost, after.batch.saving) == (0, 0, 0)


def test_without_prices_a_dry_run_says_the_share_alone(server):
    batch = foreseen(server, "batches", batch_price=0.4).batch
    assert (batch.price, batch.cost, batch.saving) == (0.4, None, None)
    assert foreseen(server, "batches", engine="local").batch is None


def test_what_is_out_already_is_known_to_a_dry_run(server):
    server.meddle = lambda _, path: error(500, "away") if "batch_" in path else None
    with pytest.raises(JudgeUnreachableError):
        run(server, "batches")
    batch = foreseen(server, "batches").batch
    assert (batch.questions, batch.submitted, batch.batches, batch.bytes) == (13, 13, 0, 0)


def test_an_interrupted_run_says_what_stays_out(server, caplog):
    server.meddle = lambda _, path: error(500, "away") if "batch_" in path else None
    with caplog.at_level(logging.WARNING), pytest.raises(JudgeUnreachableError):
        run(server, "batches")
    assert "13 questions are submitted as batch batch_0" in caplog.text
    assert "batch batch_0 continues at the provider; the same command fetches" in caplog.text
    server.meddle = None
    run(server, "batches")
    assert "batch batch_0: 13 of 13 answered, completed" in caplog.text
    assert len(server.batches) == 1
    assert pending_batches(Path("batches.sqlite")) == []


def test_a_judge_without_batches_is_refused_and_the_others_named(server):
    options = given(server, "batches", judge="heuristic") | {"judge_config": misslink.JudgeConfig()}
    with pytest.raises(InputError, match=r"heuristic\S* has no batch service; .*--engine local"):
        misslink.evaluate(**options)


@pytest.mark.slow
def test_a_cascade_asks_its_dear_judge_in_batches(server):
    options = {"judge": "cascade:heuristic,openai:test-judge", "cascade_check": 1.0}
    run(server, "batches", **options)
    run(server, "local", engine="local", **options)
    assert same("batches", "local") == [True] * 4
    assert len(server.batches) == 1


def test_the_manifest_says_that_it_was_asked_in_batches(server):
    run(server, "batches", **PRICES, batch_price=0.25)
    manifest = json.loads(Path("batches/manifest.json").read_text(encoding="utf-8"))
    assert manifest["engine"] == "batch"
    assert manifest["judging"]["batch_price"] == 0.25


def test_more_items_are_under_way_where_they_wait_for_a_batch_alone():
    assert AT_ONCE.at_once("app", 8) == 8
    assert AT_ONCE.at_once("judge", 8) == AT_ONCE.at_once("link", 8) == 1_000_000
    assert AT_ONCE.at_once("judge", 2_000_000) == 2_000_000


def test_what_is_of_a_cluster_is_refused():
    with pytest.raises(InputError, match="--ray-address goes with --engine ray"):
        open_batch("auto")
    with pytest.raises(InputError, match="--workers goes with --engine ray"):
        open_batch(None, 3)
    assert isinstance(open_batch(), BatchEngine)
    with pytest.raises(InputError, match=r"batch_price is 1.5; it is a share, from 0 to 1"):
        misslink.JudgeConfig(batch_price=1.5)
