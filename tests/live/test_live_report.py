"""What a live log says: whose figures count, what is decided, and what is odd is told."""

import json
import math
import random

import pytest

import misslink
from live_logs import DAY, SALT, report, rows, simulated
from misslink.comparison.compare_runs import compare_runs
from misslink.comparison.pairing import NamedRun
from misslink.errors import InputError
from misslink.io.run_folder import read_complete_run
from misslink.live import Experiment
from misslink.live.assignment import SALT_ENV
from misslink.live.log_store import plan_entry

AB = Experiment("x", {"A": 1, "B": 1}, control="A")
ENTRY = plan_entry(AB, SALT)


def seen(number, unit, variant, **more):
    return {
        "id": f"q{number}",
        "unit": unit,
        "variant": variant,
        "served": variant,
        "at": 1000.0 + number,
        "latency_s": 1.0,
        **more,
    }


def thumb(number, value, at=2000.0, kind="thumbs"):
    return (f"q{number}", None, kind, value, None, at)


def summary(folder, **metrics):
    folder.mkdir()
    estimates = {
        name: {
            "value": value,
            "low": value - 0.03,
            "high": value + 0.03,
            "n": 900,
            "method": "wilson",
            "reason": None,
        }
        for name, value in metrics.items()
    }
    text = json.dumps({"judge": "openai:some", "generation": estimates})
    (folder / "summary.json").write_text(text, encoding="utf-8")
    return folder


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [each for one in value for each in numbers(one)]
    return [value] if isinstance(value, float) else []


def test_a_better_variant_within_its_guardrails_is_shipped(path):
    simulated(path, 1500, (0.4, 0.7))
    found = report(path, guardrails=["latency:at_most=0.2", "errors:at_most=0.02"])
    verdict = found["verdict"]
    assert (verdict["decision"], verdict["variant"]) == ("ship", "B")
    assert found["comparisons"][0]["metrics"]["satisfaction"]["winner"] == "variant"
    assert all(map(math.isfinite, numbers(found)))
    json.dumps(found, allow_nan=False)


@pytest.mark.slow
def test_a_worse_variant_and_one_that_breaks_a_guardrail_are_not(path, tmp_path):
    simulated(path, 1500, (0.7, 0.4))
    assert report(path)["verdict"]["decision"] == "keep"
    broken = simulated(tmp_path / "b.sqlite", 1500, (0.4, 0.7), failing=0.1)
    found = report(broken, guardrails=["errors:at_most=0.01"])
    assert found["verdict"]["decision"] == "keep"
    assert "errors" in found["verdict"]["sentence"]
    assert found["variants"][1]["fell_back"] > 50


def test_without_a_difference_it_goes_on_and_says_for_how_long(path):
    simulated(path, 300)
    found = report(path, detect=0.1)
    needed = found["comparisons"][0]["metrics"]["satisfaction"]["needed"]
    assert found["verdict"]["decision"] == "go_on"
    about = float(f"{needed['more_units']:.1e}")
    assert found["verdict"]["headline"] == (
        f"No winner yet. Keep going for about {about:,.0f} more users."
    )
    assert needed["effect"] == 0.1
    # 14 days brought those of now.
    assert needed["more_days"] == pytest.approx(
        14 * needed["more_units"] / needed["units_now"], rel=0.02
    )


def test_a_broken_sample_ratio_stops_everything(path):
    simulated(path, 1000, (0.3, 0.8))
    with_more = [seen(n, f"u{n}", "B" if n % 3 else "A") for n in range(900)]
    rows(path.with_name("r.sqlite"), ENTRY, with_more, [thumb(n, 1.0) for n in range(900)])
    found = report(path.with_name("r.sqlite"))
    assert found["sample_ratio"]["broken"]
    assert found["verdict"]["decision"] == "stop"
    assert "A 300 (expected 450)" in found["verdict"]["sentence"]


@pytest.mark.slow
def test_offline_and_live_that_disagree_are_told(path, tmp_path):
    simulated(path, 1500, (0.4, 0.7))
    a, b = summary(tmp_path / "a", fully_faithful=0.9), summary(tmp_path / "b", fully_faithful=0.6)
    found = report(path, offline=[f"A={a}", f"B={b}"])
    first = found["comparisons"][0]["disagreements"][0]
    assert (first["offline_winner"], first["live_winner"], first["is_clear"]) == ("A", "B", True)
    assert found["variants"][0]["offline"]["judge"] == "openai:some"
    agreed = report(path, offline=[f"A={b}", f"B={a}"])
    assert agreed["comparisons"][0]["disagreements"] == []


def offline_run(folder, found, questions="Why {}?"):
    """A run over twelve questions, of which the passages of `found` were retrieved."""
    gold = [
        {"id": f"c{n}", "question": questions.format(n), "relevant": [f"p{n}"]} for n in range(12)
    ]
    traces = [
        {"case_id": f"c{n}", "retrieved": [{"id": f"p{n}" if n in found else "x", "text": "t"}]}
        for n in range(12)
    ]
    misslink.evaluate(traces=traces, goldset=gold, judge="none", k=1, out=folder)
    return folder


@pytest.mark.slow
def test_runs_over_the_same_questions_are_compared_case_by_case(path, tmp_path):
    simulated(path, 300, (0.4, 0.7))
    a = offline_run(tmp_path / "a", range(6))
    b = offline_run(tmp_path / "b", range(5, 12))
    other = offline_run(tmp_path / "other", range(5, 12), questions="How {}?")

    def difference(run):
        found = report(path, offline=[f"A={a}", f"B={run}"])
        return found["comparisons"][0]["offline"]["recall@1"]["difference"]

    expected = compare_runs(
        [NamedRun(one.name, read_complete_run(one)) for one in (a, b)], metrics=["recall@1"]
    )
    told = expected["metrics"]["recall@1"]["difference"]
    assert difference(b) == {
        **difference(b),
        **{key: told[key] for key in ("value", "low", "high")},
    }
    assert difference(b)["n"] == 12
    assert difference(other)["method"] == "square and add"
    assert difference(other)["value"] == pytest.approx(difference(b)["value"])


def test_the_unit_is_the_user_and_not_the_request(path):
    """One user who is very loud does not make a difference."""
    exposures = [seen(n, f"u{n}", "AB"[n % 2]) for n in range(200)]
    exposures += [seen(n, "u1", "B") for n in range(200, 700)]
    feedback = [thumb(n, float(n % 4 < 2)) for n in range(200)]
    feedback += [thumb(n, 1.0) for n in range(200, 700)]
    found = report(rows(path, ENTRY, exposures, feedback))
    metric = found["comparisons"][0]["metrics"]["satisfaction"]
    assert metric["variant"]["value"] > 0.9
    assert metric["winner"] is None
    assert metric["variant"]["n"] == 100


def test_what_is_odd_is_counted_and_left_out(path):
    exposures = [
        *(seen(n, f"u{n}", "AB"[n % 2]) for n in range(10)),
        seen(10, "u0", "B"),  # in both
        seen(11, "u11", "A", mode="excluded"),
        seen(12, None, "A", mode="no_unit"),
        seen(13, "u13", "A", at=1.0),  # the clock went back
    ]
    feedback = [
        thumb(0, 0.0),
        thumb(0, 1.0),  # changed
        thumb(1, 1.0, at=5.0),  # before its request
        ("never seen", None, "thumbs", 1.0, None, 2000.0),
        thumb(11, 1.0),
        thumb(10, 1.0),
    ]
    found = report(rows(path, ENTRY, exposures, feedback))
    assert found["odd"] == {
        "units_in_several_variants": 1,
        "requests_after_move": 1,
        "requests_not_assigned": 2,
        "requests_without_feedback": 9,
        "feedback_to_unknown_request": 1,
        "feedback_of_unknown_users": 2,
        "feedback_left_out": 1,
        "feedback_changed_later": 1,
        "feedback_before_its_request": 1,
        "clock_went_back": 1,
    }
    assert len(found["notes"]) >= len(found["odd"])
    assert found["comparisons"][0]["metrics"]["satisfaction"]["control"]["value"] == 1.0


def test_one_variant_alone_and_no_request_at_all_are_nothing_to_compare(path, tmp_path):
    alone = report(rows(path, ENTRY, [seen(n, f"u{n}", "A") for n in range(5)]))
    assert alone["verdict"]["decision"] == "none"
    empty = report(rows(tmp_path / "e.sqlite", ENTRY, [], [("q", None, "thumbs", 1.0, None, 1.0)]))
    assert (empty["verdict"]["decision"], empty["from"]) == ("none", None)
    assert "No request has been logged yet." in empty["notes"]


def test_requests_before_the_ramp_are_the_pre_period(path):
    exposures, feedback = [], []
    for user in range(400):
        pleased = float(user % 4 < 2)
        for mode in (0.0, 1.0):  # before, and within
            number = len(exposures)
            variant = "A" if not mode else "AB"[user % 2]
            at = 1000.0 + mode * DAY + user
            exposures.append(seen(number, f"u{user}", variant, open_share=mode, at=at))
            feedback.append(thumb(number, pleased if (user + mode) % 20 else 1 - pleased, at + 1))
    found = report(rows(path, ENTRY, exposures, feedback))
    told = found["comparisons"][0]["metrics"]["satisfaction"]["cuped"]
    assert told["variance_reduction"] > 0.2
    assert (told["units_known"], told["units_missing"]) == (400, 0)
    assert found["odd"]["requests_before_ramp"] == 400
    assert "units_in_several_variants" not in found["odd"]


def test_a_file_of_the_past_is_found_by_the_apps_own_ids(path, tmp_path, monkeypatch):
    simulated(path, 200)
    past = tmp_path / "past.csv"
    lines = "".join(f"user-{n},{n % 7}\n" for n in range(0, 200, 2))
    past.write_text(f"unit,value\n{lines}", encoding="utf-8")
    with pytest.raises(InputError, match=SALT_ENV):
        report(path, pre=past)
    monkeypatch.setenv(SALT_ENV, SALT)
    told = report(path, pre=past)["comparisons"][0]["metrics"]["satisfaction"]["cuped"]
    assert told["units_known"] > 50
    assert told["units_missing"] > 50


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("unit,value\nuser-1,much\n", "line 2, field 'value'"),
        ("unit,value\nuser-1,1\nuser-1,2\n", "twice"),
        ("unit,value\nstranger,1\n", "None of these users"),
        ("user,value\nuser-1,1\n", "'unit'"),
        ("unit,age\nuser-1,1\n", "No column"),
        ("", "the file is empty"),
    ],
)
def test_a_broken_file_of_the_past_is_told(path, tmp_path, monkeypatch, text, said):
    monkeypatch.setenv(SALT_ENV, SALT)
    past = tmp_path / "past.csv"
    past.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        report(simulated(path, 20), pre=past)


def test_own_kinds_are_metrics_and_say_which_way_is_better(path):
    exposures = [seen(n, f"u{n}", "AB"[n % 2]) for n in range(400)]
    feedback = [thumb(n, 5.0 * (n % 2) + n % 3, kind="wait") for n in range(400)]
    rows(path, ENTRY, exposures, feedback)
    assert report(path)["verdict"]["decision"] == "ship"
    lower = report(path, lower_is_better=["wait"])
    assert lower["comparisons"][0]["metrics"]["wait"]["winner"] == "control"
    with pytest.raises(InputError, match="did you mean 'wait'"):
        report(path, lower_is_better=["wiat"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"control": "C"}, "--control 'C'"),
        ({"primary": "joy"}, "--primary 'joy'"),
        ({"guardrails": ["latency"]}, "NAME:at_most"),
        ({"guardrails": ["latency:at_most=-1"]}, "NAME:at_most"),
        ({"guardrails": ["latency:at_most=nan"]}, "NAME:at_most"),
        ({"guardrails": ["speed:at_most=1"]}, "known: latency"),
        ({"guardrails": ["satisfaction:at_most=1"]}, "is better"),
        ({"guardrails": ["cost:at_most=1", "cost:at_most=2"]}, "twice"),
        ({"offline": ["A"]}, "VARIANT=FOLDER"),
        ({"offline": ["C=x"]}, "not a variant"),
        ({"offline": ["A=nowhere"]}, "Cannot read the run"),
    ],
)
def test_wrong_options_are_told(path, options, said):
    with pytest.raises(InputError, match=said):
        report(simulated(path, 40), **options)


def test_shadows_are_held_against_their_requests_and_claim_no_user_metric(path):
    exposures = []
    for n in range(100):
        exposures.append(seen(2 * n, f"u{n % 20}", "A", retrieved='["a", "b"]'))
        outcome = "dropped" if n < 10 else "failed" if n < 28 else "ok"
        more = {"mode": "shadow", "of": f"q{2 * n}", "served": None, "outcome": outcome}
        latency = None if n < 10 else 1.5
        exposures.append(
            seen(2 * n + 1, f"u{n % 20}", "B", retrieved='["b", "c"]', **more)
            | {"latency_s": latency}
        )
    entry = plan_entry(Experiment("x", {"A": 1}, shadow={"B": 1.0}), SALT)
    found = report(rows(path, entry, exposures))
    shadow = found["shadows"][0]
    assert shadow["dropped"]["value"] == pytest.approx(0.1)
    assert shadow["errors"]["difference"]["value"] == pytest.approx(18 / 90)
    assert shadow["errors"]["difference"]["low"] > 0
    assert shadow["latency_s"]["difference"]["value"] == pytest.approx(0.5)
    assert shadow["overlap"]["value"] == pytest.approx(0.5)
    assert found["comparisons"] == []
    assert "no user metric" in found["verdict"]["sentence"]


def test_interleaved_lists_are_won_by_unit(path):
    exposures, feedback = [], []
    for n in range(40):
        more = {"mode": "interleaved", "retrieved": '["p", "q"]', "teams": '["A", "B"]'}
        exposures.append(seen(n, f"u{n // 2}", None, **more))
        if n < 36:
            chosen = "p" if n < 4 else "q"
            feedback.append((f"q{n}", None, "click", 1.0, chosen, 2000.0))
    found = report(rows(path, ENTRY, exposures, feedback))["interleaving"]
    assert found["units"]["wins"] == {"A": 2, "B": 16}
    assert found["queries"]["wins"] == {"A": 4, "B": 32}
    assert found["units"]["without_credit"] == 2
    by_hand = 2 * sum(math.comb(18, k) for k in range(3)) / 2**18
    assert found["units"]["p"] == pytest.approx(by_hand)


def ramped(path, better, *, linear=True):
    """Users come back while the variant grows from 2% to 50%, and all are ever more pleased."""
    chance = random.Random(6)
    place = {f"u{number}": chance.random() for number in range(1500)}
    exposures, feedback = [], []
    for number in range(6000):
        along = number / 6000
        share = 0.04 + 0.96 * (along if linear else along > 0.5)
        unit = chance.choice(list(place))
        variant = "B" if place[unit] < share / 2 else "A"
        exposures.append(seen(number, unit, variant, open_share=share))
        pleased = chance.random() < 0.2 + 0.5 * along + better * (variant == "B")
        feedback.append(thumb(number, float(pleased), 1000.5 + number))
    return rows(path, ENTRY, exposures, feedback)


@pytest.mark.slow
@pytest.mark.parametrize("linear", [True, False])
def test_a_trend_while_a_ramp_grows_is_no_difference(path, linear):
    found = report(ramped(path, 0.0, linear=linear))
    told = found["comparisons"][0]["metrics"]["satisfaction"]
    assert found["verdict"]["decision"] != "ship"
    assert told["fixed"]["difference"]["low"] < 0 < told["fixed"]["difference"]["high"]
    assert any("Requests are weighted" in note for note in found["notes"])


@pytest.mark.slow
def test_a_difference_while_a_ramp_grows_is_found_at_its_size(path):
    told = report(ramped(path, 0.2))["comparisons"][0]["metrics"]["satisfaction"]
    assert told["winner"] == "variant"
    assert told["fixed"]["difference"]["low"] < 0.2 < told["fixed"]["difference"]["high"]


def test_what_is_said_of_a_unit_has_the_weight_of_its_latest_request_by_then(path):
    exposures, feedback = [], []
    for n in range(200):
        share, at = (0.2, 1000.0) if n < 100 else (1.0, 5000.0)
        exposures.append(seen(n, f"u{n}", "AB"[n % 2], open_share=share, at=at + n))
        feedback.append((None, f"u{n}", "rated", float(n >= 100), None, at + n + 1))
    # All of the first come back, and say nothing.
    exposures += [seen(200 + n, f"u{n}", "AB"[n % 2], at=9000.0 + n) for n in range(100)]
    told = report(rows(path, ENTRY, exposures, feedback))["comparisons"][0]["metrics"]["rated"]
    # Under the first split B was planned to have 1 in 10, later 1 in 2.
    assert told["control"]["value"] == pytest.approx(0.5 / (0.5 + 0.1))
    assert told["variant"]["value"] == pytest.approx(0.5 / (0.5 + 0.9))


def test_of_two_better_variants_the_best_is_shipped(path):
    three = plan_entry(Experiment("x", {"A": 1, "B": 1, "C": 1}, control="A"), SALT)
    pleased = {"A": 2, "B": 5, "C": 8}
    exposures = [seen(n, f"u{n}", "ABC"[n % 3]) for n in range(1500)]
    feedback = [thumb(n, float(n // 3 % 10 < pleased["ABC"[n % 3]])) for n in range(1500)]
    found = report(rows(path, three, exposures, feedback))
    assert (found["verdict"]["decision"], found["verdict"]["variant"]) == ("ship", "C")


def test_readers_prefer_a_retriever_only_by_what_holds_at_any_time(path):
    exposures, feedback = [], []
    for n in range(30):
        more = {"mode": "interleaved", "retrieved": '["p", "q"]', "teams": '["A", "B"]'}
        exposures.append(seen(n, f"u{n}", None, **more))
        feedback.append((f"q{n}", None, "click", 1.0, "p" if n % 10 < 3 else "q", 2000.0))
    found = report(rows(path, ENTRY, exposures, feedback))
    assert (
        found["interleaving"]["units"]["p"] < 0.05 < found["interleaving"]["units"]["p_sequential"]
    )
    assert "neither retriever" in found["verdict"]["sentence"]
