"""misslink judge audit: what it asks, keeps and prints, and the biases that it finds."""

import json
from pathlib import Path

import pytest

from honest_judge import fenced
from judged_app import PRICES, write_inputs
from misslink.io import read_run

CASES = 6
BLUE = "By day the sky over town {} is blue and clear."
FILLERS = (
    "Clouds over the northern hills are white in winter.",
    "Grass along the river bank stays green all summer.",
    "Market stalls in the old square open before sunrise.",
)


def passages(n):
    return [f"{BLUE.format(n)} {FILLERS[0]}", FILLERS[1], FILLERS[2]]


def answer(n):
    """Of every other case a sentence is in no passage."""
    return BLUE.format(n) + (" The moon over it is made of copper and cheese." if n % 2 else "")


@pytest.fixture
def run(evaluate):
    write_inputs(CASES, passages, answer)
    evaluate()
    return Path("run")


@pytest.fixture
def audit(misslink, run):
    def ask(*options, expect=0):
        code, out, err = misslink("judge", "audit", run, *options)
        assert code == expect, err
        assert "Traceback" not in err
        return out if expect == 0 else err

    return ask


def kept():
    return json.loads(Path("run/audit.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_an_honest_judge_is_moved_by_nothing_and_a_second_audit_costs_nothing(audit, judge_server):
    """Base questions are those of the run; per case two fillers, two orders, one repeat."""
    before = judge_server.answered
    first = json.loads(audit("--json"))
    assert first == kept()
    assert (first["cases"], first["good"], first["bad"]) == (CASES, CASES // 2, CASES // 2)
    assert set(first["metrics"]) == {"faithfulness", "answer_relevance"}
    assert set(first["metrics"]["faithfulness"]) == {
        "padding", "passage_order", "passage_shuffle", "again",
    }  # fmt: skip
    for changes in first["metrics"].values():
        for entry in changes.values():
            assert (entry["n"], entry["flipped"]["value"], entry["finding"]) == (CASES, 0.0, None)
    assert first["preferences"] == {}
    assert judge_server.answered - before == first["usage"]["calls"] == CASES * 5
    assert first["usage"]["from_cache"] == CASES
    second = json.loads(audit("--json"))
    assert second["usage"]["calls"] == 0
    varying = {"created": None, "usage": None}
    assert {**second, **varying} == {**first, **varying}
    assert read_run("run").audit == second


def test_a_judge_that_fails_altogether_keeps_nothing(misslink, run, judge_server):
    judge_server.script = lambda _: "I would rather not say."
    asked = ("judge", "audit", run, "--judge-option", "retries=0", "--cache", "other.sqlite")
    code, _, err = misslink(*asked)
    assert code == 3
    assert "nothing was measured: no verdict could be compared" in err
    assert not Path("run/audit.json").exists()


@pytest.mark.slow
def test_a_spent_budget_is_told_and_more_of_it_goes_on(audit, judge_server):
    out = audit("--judge-option", "max-calls=12")
    assert "questions were not asked because the budget or the time is used up" in out
    assert sum(kept()["metrics"]["faithfulness"]["again"]["left_out"].values()) > 0
    first = kept()["usage"]["calls"]
    audit()
    assert kept()["usage"]["calls"] == CASES * 5 - first
    assert kept()["metrics"]["faithfulness"]["again"]["n"] == CASES


@pytest.mark.slow
def test_a_dry_run_asks_nothing_and_names_what_would_be_asked(audit, judge_server):
    before = judge_server.answered
    found = json.loads(audit("--dry-run", "--json", *PRICES))
    assert judge_server.answered == before
    assert (found["calls"], found["from_cache"]) == (CASES * 5, CASES)
    assert found["cost"] > 0
    assert not Path("run/audit.json").exists()
    audit("--json")
    assert kept()["usage"]["calls"] == found["calls"]


@pytest.mark.slow
def test_against_another_run_the_order_of_answers_is_swapped(
    audit, evaluate, misslink, judge_server
):
    """The judge likes what is shown first; so every pair's verdict changes with the order."""
    write_inputs(CASES, passages, lambda n: f"{answer(n)} {FILLERS[1]}")
    evaluate("--out", "other")

    def first_wins(body):
        return {"better": "first"} if "first" in dict(fenced(body)) else None

    judge_server.script = first_wins
    out = audit("--against", "other")
    found = kept()["preferences"]["answer_order"]
    assert (found["n"], found["flipped"]["value"], found["places"]) == (
        CASES, 1.0, {"first": CASES, "second": 0},
    )  # fmt: skip
    assert f"always the first in {CASES}, always the second in 0" in " ".join(out.split())


def test_a_judge_that_cannot_compare_is_refused_before_it_is_asked_anything(misslink, monkeypatch):
    write_inputs(6, passages, answer)
    inputs = ("--goldset", "gold.jsonl", "--judge", "heuristic", "--out", "run")
    assert misslink("evaluate", "app.py:app", *inputs)[0] == 0

    def asked(*_, **__):
        raise AssertionError("it was asked")

    monkeypatch.setattr("misslink.judge.checks.audit.audit_cases", asked)
    code, _, err = misslink("judge", "audit", "run", "--against", "run")
    assert code == 2
    assert "cannot compare two answers" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--metric", "faithfullness"), "did you mean 'faithfulness'"),
        (("--metric", "noise_sensitivity"), "the metric 'noise_sensitivity' cannot be audited"),
        (("--metric", "correctness"), "no case of this run has an answer with a verdict of"),
    ],
)
def test_mistakes_are_told_in_a_sentence(audit, options, said, judge_server):
    before = judge_server.answered
    assert said in audit(*options, expect=2)
    assert judge_server.answered == before


@pytest.mark.slow
def test_the_table_fits_eighty_columns(audit, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = audit().splitlines()
    table = [
        line for line in lines if line.startswith((" padding", " reversed", "padding", "reversed"))
    ]
    assert len(table) == 4  # of faithfulness and answer relevance
    assert all(len(line) <= 80 for line in lines if "\u2500" in line or line in table)
