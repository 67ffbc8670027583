"""--engine batch on the command line: what it would save, and what it cannot do."""

import json

import pytest

from batch_server import BatchServer
from judged_app import COMMAND, PRICES, short_cases
from misslink.judge.batch.service import BatchStore
from misslink.judge.config import DEFAULT_CACHE

BATCH = (*COMMAND, "--engine", "batch")


@pytest.fixture
def server(monkeypatch):
    with BatchServer() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def test_one_command_shows_the_saving_before_anything_is_submitted(misslink, server):
    short_cases(3)
    code, out, _ = misslink(*BATCH, "--dry-run", *PRICES, "--judge-option", "batch-price=0.25")
    assert code == 0
    assert "The judge would be asked 3 questions" in out
    assert " live.\n" in out
    assert "In batches: 2 questions, in 1 batch or more, files of about 0.00" in out
    assert "at 25% of the price all cost about 0.00" in " ".join(out.split())
    assert out.endswith("No judge call was made.\n")
    _, out, _ = misslink(*BATCH, "--dry-run")
    assert "a token costs 50% of the price; price_in and price_out show" in " ".join(out.split())
    code, out, _ = misslink(*BATCH, "--dry-run", *PRICES, "--json")
    batch = json.loads(out)["batch"]
    assert (batch["questions"], batch["batches"], batch["price"]) == (2, 1, 0.5)
    assert batch["cost"] + batch["saving"] == pytest.approx(json.loads(out)["cost"])
    _, out, _ = misslink(*BATCH, "--dry-run", "--case", "case-0")
    assert "In batches: no questions; the only question is sent live, as a probe of the" in out
    assert (server.requests, server.calls) == ([], [])


def test_without_batches_a_dry_run_speaks_of_none(misslink, server):
    short_cases(2)
    code, out, _ = misslink(*COMMAND, "--dry-run", *PRICES)
    assert (code, "atch" in out, " live" in out) == (0, False, False)
    _, out, _ = misslink(*COMMAND, "--dry-run", "--json")
    assert json.loads(out)["batch"] is None
    assert server.calls == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--judge", "heuristic"), "has no batch service; --engine batch works with openai:MODEL"),
        (("--workers", "2"), "--workers goes with --engine ray; the engine 'batch' works at"),
        (("--judge-option", "batch-price=1.5"), "batch_price is 1.5; it is a share, from 0 to 1"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(misslink, server, options, told):
    short_cases(2)
    code, out, err = misslink(*BATCH, *options)
    assert (code, out) == (2, "")
    assert told in err
    assert "Traceback" not in err
    assert server.requests == []


def test_a_server_without_batches_is_bad_usage(misslink, judge_server):
    short_cases(2)
    code, _, err = misslink(*BATCH, "--base-url", judge_server.url)
    assert code == 2
    assert "has no batch API (/files and /batches); use --engine local" in err
    assert judge_server.calls == []


def test_cache_stats_lists_the_batches_whose_answers_are_not_fetched(misslink):
    notes = BatchStore(DEFAULT_CACHE, "{}", "openai:m")
    named = notes.reserve("file-1", ["a", "b"])
    notes.set_service_id(named.row, "batch_1\x1b[31m")
    notes.reserve("file-2", ["c"])
    notes.close()
    code, out, err = misslink("cache", "stats")
    day = named.created[:10]
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == [
        f"openai:m: batch batch_1[31m of {day}, answers to 2 of 2 questions not fetched",
        f"openai:m: batch without an id yet of {day}, answers to 1 of 1 questions not fetched",
    ]
    listed = json.loads(misslink("cache", "stats", "--json")[1])["batches"]
    assert [(one["waiting"], one["questions"]) for one in listed] == [(2, 2), (1, 1)]
