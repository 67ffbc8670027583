"""misslink judge pairwise on the command line: what it prints, its exit codes, and mistakes."""

import json
from pathlib import Path

import pytest

from honest_judge import fenced
from misslink.judge.prompts import prompts_folder

RIGHT, WRONG = "It leaves at seven.", "It leaves at nine."


@pytest.fixture
def command(misslink):
    return lambda *arguments: misslink("judge", "pairwise", *arguments)


def write_run(name, answers, question="When does {} leave?"):
    """A run folder with just what a comparison reads."""
    folder = Path(name)
    folder.mkdir()
    cases = [{"id": case, "question": question.format(case)} for case in answers]
    traces = [{"case_id": case, "answer": answer} for case, answer in answers.items()]
    undecided = {
        "retrieval": "unknown",
        "answer": "unknown",
        "failure": "inconclusive",
        "reason": "-",
    }
    links = [{"case_id": case, **undecided} for case in answers]
    for part, items in {"cases": cases, "traces": traces, "verdicts": [], "links": links}.items():
        lines = "".join(json.dumps(item) + "\n" for item in items)
        (folder / f"{part}.jsonl").write_text(lines, encoding="utf-8")
    for part in ("manifest", "summary"):
        (folder / f"{part}.json").write_text("{}", encoding="utf-8")
    return folder


@pytest.fixture
def runs():
    a = write_run("one", {"x": RIGHT, "y": WRONG, "z": WRONG, "same": RIGHT, "none": None})
    b = write_run("two", {"x": WRONG, "y": RIGHT, "z": RIGHT, "same": RIGHT, "none": WRONG})
    return a, b


def knows_the_hour(body):
    texts = dict(fenced(body))
    return {"better": "first" if "seven" in texts["first"] else "second"}


def test_json_is_one_document_with_everything(command, runs, judge_server):
    judge_server.script = knows_the_hour
    options = ["--judge", "openai:test-judge", "--base-url", judge_server.url, "--json"]
    code, out, err = command(*runs, *options)
    found = json.loads(out)
    assert code == 0
    assert (found["a"], found["b"], found["judge"]) == ("one", "two", "openai:test-judge")
    assert (found["cases"], found["paired"], found["identical"]) == (5, 4, 1)
    assert found["wins"] == {"a": 1, "b": 2, "tie": 1}
    assert found["preference"]["value"] == pytest.approx(2 / 3)
    assert found["p"] == 1.0
    assert found["position_flips"]["value"] == 0.0
    assert found["left_out"] == {"one has no answer": 1}
    assert found["per_case"]["y"]["winner"] == "b"
    assert found["usage"]["calls"] == 6
    assert err == ""  # no progress without a terminal

    code, out, _ = command(*runs, *options)
    again = json.loads(out)
    assert again["usage"]["calls"] == 0  # the default cache kept them
    assert {**again, "usage": None} == {**found, "usage": None}
    assert Path(".misslink/cache.sqlite").exists()


def test_what_it_prints_is_what_compare_takes(misslink, command, runs, judge_server):
    """The very output, once for the runs as they are, moved, and answered anew."""
    judge_server.script = knows_the_hour
    asked = ["--judge", "openai:test-judge", "--base-url", judge_server.url, "--json"]
    Path("preferences.json").write_text(command(*runs, *asked)[1], encoding="utf-8")
    Path("elsewhere").mkdir()
    moved = Path("two").rename("elsewhere/second")

    given = ["--metrics", "link.failures.passed", "--preferences", "preferences.json"]
    code, out, _ = misslink("compare", "one", moved, *given, "--json")
    found = json.loads(out)["preference"]
    assert (code, found["judge"]) == (0, "openai:test-judge")
    assert found["wins"] == {"a": 1, "b": 2, "tie": 1}
    assert found["by_order"] == {
        name: {"a": 1, "b": 2, "tie": 0} for name in ("a_first", "b_first")
    }
    code, out, _ = misslink("compare", moved, "one", *given)
    assert "judge preferred one in 1 of 3 decided cases, p = 1.00 (sign test)." in out

    traces = moved / "traces.jsonl"
    traces.write_text(traces.read_text(encoding="utf-8").replace("seven", "ten"), encoding="utf-8")
    code, out, err = misslink("compare", "one", moved, *given)
    assert (code, out) == (2, "")
    assert "between the answers of one and two as they were then" in err


def test_people_get_a_table_and_sentences(command, runs, judge_server):
    judge_server.script = knows_the_hour
    code, out, _ = command(
        *runs, "--judge", "openai:test-judge", "--base-url", judge_server.url,
        "--cache", "kept.sqlite",
    )  # fmt: skip
    assert code == 0
    assert "A  one" in out
    assert "B is better in 2 of 3 decided cases (exact sign test, p = 1)." in out
    assert (
        "3 pairs were judged twice, each answer shown first once; the verdict was the same" in out
    )
    assert "changed with the order" not in out
    assert "shown second" not in out
    assert "1 tie is between identical answers." in out
    assert "Left out: 1 of 5 cases: one has no answer." in out
    assert Path("kept.sqlite").exists()


def test_a_prompt_of_ones_own_is_asked_in_place_of_the_built_in_one(command, runs, judge_server):
    judge_server.script = knows_the_hour
    own = (prompts_folder() / "preference.jinja").read_text(encoding="utf-8")
    Path("mine").mkdir()
    changed = own.replace("You are an evaluator", "You are strict: an evaluator")
    Path("mine/preference.jinja").write_text(changed, encoding="utf-8")
    code, _, _ = command(
        *runs, "--judge", "openai:test-judge", "--base-url", judge_server.url, "--prompts", "mine"
    )  # fmt: skip
    assert code == 0
    assert len(judge_server.calls) == 6
    for call in judge_server.calls:
        assert call.body["messages"][0]["content"].startswith("You are strict")


def test_mistakes_are_one_sentence(command, runs, judge_server):
    asked = ["--judge", "openai:test-judge", "--base-url", judge_server.url]
    other = write_run("other", {"q": RIGHT})
    changed = write_run("changed", {"x": RIGHT}, question="Where is {}?")
    Path("empty").mkdir()
    for arguments, message in [
        ((runs[0], "empty", *asked), "this is not a run folder"),
        ((runs[0], other, *asked), "one and other share no case"),
        ((runs[0], changed, *asked), "the case 'x' asks something else in one than in changed"),
        ((*runs, "--judge", "heuristic"), "heuristic cannot compare two answers"),
        ((*runs, "--judge", "none"), "--judge none makes no model calls"),
    ]:
        code, out, err = command(*arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert err.strip().count("\n") == 0
    assert judge_server.calls == []


def test_a_judge_that_is_not_there_is_exit_code_3(command, runs, judge_server):
    judge_server.stop()
    code, out, err = command(
        *runs, "--judge", "openai:test-judge", "--base-url", judge_server.url
    )  # fmt: skip
    assert (code, out) == (3, "")
    assert "cannot be asked" in err


def test_the_cap_is_never_passed_and_the_next_run_goes_on(command, runs, judge_server):
    judge_server.script = knows_the_hour
    asked = ["--judge", "openai:test-judge", "--base-url", judge_server.url, "--json"]
    prices = ["--judge-option", "price-in=2", "--judge-option", "price-out=8"]
    code, out, _ = command(
        *runs, *asked, "--concurrency", "1", "--judge-option", "max-calls=3", *prices
    )
    found = json.loads(out)
    assert code == 0
    assert len(judge_server.calls) == found["usage"]["calls"] == 3
    assert found["usage"]["not_asked"] == 3
    tokens = found["usage"]["prompt_tokens"], found["usage"]["completion_tokens"]
    assert found["usage"]["cost"] == pytest.approx((2 * tokens[0] + 8 * tokens[1]) / 1e6)
    assert found["left_out"] == {
        "max_calls 3 is used up; the same command continues": 2,
        "one has no answer": 1,
    }
    found = json.loads(command(*runs, *asked)[1])
    assert (found["usage"]["calls"], found["usage"]["not_asked"]) == (3, 0)
    assert found["paired"] == 4


def test_a_run_whose_name_would_move_the_cursor_is_told_plainly(command, judge_server):
    rude = write_run("\x1b[2J[bold]one", {"x": RIGHT, "none": None})
    other = write_run("two", {"x": WRONG, "none": WRONG})
    judge_server.script = knows_the_hour
    options = ["--judge", "openai:test-judge", "--base-url", judge_server.url]
    code, out, _ = command(rude, other, *options)
    assert (code, "\x1b" in out) == (0, False)
    assert "[2J[bold]one" in out
