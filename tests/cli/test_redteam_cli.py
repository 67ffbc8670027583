"""misslink judge redteam: what it prints, and that nothing measured is no success."""

import json

import pytest

from honest_judge import fenced
from judge_faults import error
from judged_app import JUDGE
from misslink.judge.checks.redteam import AttackSuite, load_suite

WHOLE = load_suite()
SUITE = AttackSuite(WHOLE.attacks[::4], WHOLE.cases)  # a quarter, for speed
MEANINGS = (
    "obeyed: the attack makes the judge report something in the answer's favor.",
    "flipped: the verdict is good even after the quote checks, and bad without the attack.",
    "silenced: there is no verdict, so every mean would lack this answer.",
)


@pytest.fixture
def attack(misslink, judge_server, monkeypatch):
    monkeypatch.setattr("misslink.judge.checks.redteam.load_suite", lambda: SUITE)

    def run(*options):
        return misslink(
            "judge", "redteam", "--judge", JUDGE, "--base-url", judge_server.url, *options
        )

    return run


def test_a_judge_that_cannot_be_read_has_measured_nothing_and_that_is_exit_code_3(
    attack, judge_server
):
    judge_server.script = lambda _: "I would rather not."
    for options in ([], ["--json"]):
        code, out, err = attack(*options)
        assert (code, out) == (3, "")
        said = err.strip().splitlines()[-1]
        assert said.startswith(f"misslink: nothing was measured: {JUDGE} gave no verdict even")
        assert said.endswith("try it with  misslink judge ping")


@pytest.mark.slow
def test_what_a_server_says_does_not_move_the_cursor(attack, judge_server):
    """The reasons why verdicts are missing quote it."""

    def often(body):
        texts = [text for _, text in fenced(body)]
        rude = any("supported" in text for text in texts)
        return error(400, "no \x1b[2J[bold]luck") if rude else None

    judge_server.script = often
    code, out, _ = attack()
    assert code == 0
    assert "no [2J[bold]luck" in out
    assert "\x1b" not in out


@pytest.mark.slow
def test_the_words_of_the_table_are_explained_under_it_and_in_the_help(
    misslink, attack, monkeypatch
):
    _, out, _ = attack()
    for meaning in MEANINGS:
        assert meaning in out.splitlines()
    code, out, _ = misslink("judge", "redteam", "--help")
    assert code == 0
    for meaning in MEANINGS:
        assert meaning in " ".join(out.split())


@pytest.mark.slow
def test_the_cap_is_never_passed_and_what_was_not_asked_is_told(attack, judge_server):
    everything = len(SUITE.cases) * (1 + len(SUITE.attacks))
    first = len(SUITE.cases) + 20
    prices = ("--judge-option", "price-in=2", "--judge-option", "price-out=8")
    code, out, _ = attack("--json", "--judge-option", f"max-calls={first}", *prices)
    found = json.loads(out)
    assert code == 0
    assert {"judge", "attacks", "cases", "obeyed", "flipped", "by_place", "by_kind"} <= set(found)
    assert len(judge_server.calls) == found["usage"]["calls"] == first
    assert found["usage"]["not_asked"] > 0
    tokens = found["usage"]["prompt_tokens"], found["usage"]["completion_tokens"]
    assert found["usage"]["cost"] == pytest.approx((2 * tokens[0] + 8 * tokens[1]) / 1e6)
    reason = f"max_calls {first} is used up; the same command continues"
    assert 0 < found["not_read"][reason] < found["trials"]
    assert found["flipped"]["n"] == found["trials"] - found["not_read"][reason]

    whole = json.loads(attack("--json")[1])  # the same cache: nothing is asked twice
    assert whole["usage"]["not_asked"] == 0
    assert whole["not_read"] == {}
    assert len(judge_server.calls) <= everything


def test_a_cap_that_leaves_nothing_to_count_is_named(attack, judge_server):
    code, out, err = attack("--judge-option", "max-calls=0")
    assert (code, out) == (3, "")
    assert err.strip().endswith("because max_calls 0 is used up; the same command continues")
    assert judge_server.calls == []


def test_on_what_terms_it_asks_is_said_to_the_server(attack, judge_server):
    code, _, _ = attack(
        "--judge-option",
        "max-calls=1",
        "--judge-option",
        "temperature=0.5",
        "--judge-option",
        "max-tokens=700",
    )
    assert code == 3  # one reply is nothing to count
    (call,) = judge_server.calls
    assert (call.body["temperature"], call.body["max_tokens"]) == (0.5, 700)
    code, _, err = attack("--judge-option", "max-cost=1")
    assert code == 2
    assert "max_cost needs prices: add price_in and price_out" in err
