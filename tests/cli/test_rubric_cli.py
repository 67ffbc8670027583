"""A criterion of the user's own: judged in the same call, calibrated, and its mistakes."""

import itertools
import json
from pathlib import Path

import pytest

import misslink as package
from honest_judge import honest, wanted_schema
from judged_app import COMMAND, short_cases
from misslink.testing import ScriptedJudge, small_run

CASES = 8
FILE = 'question = "Is the answer\\n  polite?"\ngood = "polite"\nbad = "rude"\n'


def criterion(name="polite.toml", text=FILE):
    Path(name).write_text(text, encoding="utf-8")
    return f"rubric:{name}"


def grudging():
    """The honest judge, to which every second answer is rude."""
    calls = itertools.count()

    def answer(body):
        said = honest(body)
        if "criteria" in wanted_schema(body)["properties"]:
            met = ("yes", "no")[next(calls) % 2]
            said["criteria"] = [{"criterion": "polite", "met": met}]
        return said

    return answer


@pytest.fixture
def judged(evaluate, judge_server):
    """Cases judged by the criterion, too; the verdicts on it by case."""
    short_cases(CASES)
    judge_server.script = grudging()
    evaluate("--metric", criterion())
    lines = map(json.loads, Path("run/verdicts.jsonl").read_text(encoding="utf-8").splitlines())
    return {line["case_id"]: line for line in lines if line["metric"] == "polite"}


def test_a_criterion_is_judged_in_the_same_call(judged, judge_server):
    assert len(judge_server.calls) == CASES
    asked = judge_server.calls[0].body["messages"][0]["content"]
    assert asked.endswith("\n- polite: Is the answer polite?")
    assert {verdict["value"] for verdict in judged.values()} == {0.0, 1.0}
    assert all(verdict["label"] == (verdict["value"] == 1) for verdict in judged.values())


@pytest.mark.slow
def test_another_question_is_another_run_and_no_criterion_the_same_prompt_as_ever(
    judged, evaluate, judge_server
):
    with_one = next(iter(judged.values()))["prompt"]["sha256"]
    error = evaluate("--metric", criterion(text='question = "Is it short?"'), expect=2)
    assert "prompts" in error
    evaluate("--overwrite")
    (line, *_) = Path("run/verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["prompt"]["sha256"] not in (with_one, None)
    assert len(judge_server.calls) == 2 * CASES


def test_a_criterion_has_its_own_agreement(judged, misslink):
    rows = [f"{case},polite,{int(verdict['label'])},ada" for case, verdict in judged.items()]
    table = "\n".join(["case_id,metric,label,annotator", *rows, ""])
    Path("labels.csv").write_text(table, encoding="utf-8")
    command = ("calibrate", "run", "--labels", "labels.csv", "--json", "--metric")
    for metric in ("polite", "rubric:polite.toml"):
        code, out, err = misslink(*command, metric)
        assert code == 0, err
        document = json.loads(out)
        assert (document["metric"], document["n"]) == ("polite", CASES)
        assert document["agreement"]["kappa"]["value"] == 1


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        ("absent.toml", None, None),
        ("broken.toml", "question = Is it?", "line 1"),
        ("empty.yaml", "", "question"),
        ("blank.json", '{"question": " "}', "question"),
        ("more.yaml", "question: Is it?\nbest: 1\n", "best"),
        ("faithfulness.toml", 'question = "Is it?"', "faithfulness"),
        ("recall.toml", 'question = "Is it?"', "recall"),
        ("Two words.toml", 'question = "Is it?"', "lowercase"),
    ],
)
def test_a_bad_file_is_one_sentence(misslink, name, text, field):
    if text is not None:
        Path(name).write_text(text, encoding="utf-8")
    short_cases(1)
    code, out, err = misslink(*COMMAND, "--judge", "heuristic", "--metric", f"rubric:{name}")
    assert (code, out) == (2, "")
    assert name in err
    assert (field or name) in err
    assert "Traceback" not in err


@pytest.mark.parametrize("given", [["faithfulness"], ["rubric:polite.toml", "rubric:polite.toml"]])
def test_what_is_no_criterion_or_one_twice_is_refused(given):
    criterion()
    with pytest.raises(package.MisslinkError, match=r"polite|faithfulness"):
        small_run(metrics=given)


def test_in_python_a_criterion_is_an_object_and_the_heuristic_judge_skips_it():
    polite = package.Rubric("polite", "Is the answer polite?")
    run = small_run(judge=ScriptedJudge(), metrics=[polite])
    assert run.metrics["polite"].value == 1
    skipped = small_run(metrics=[polite])
    assert {v.status for v in skipped.verdicts if v.metric == "polite"} == {"skipped"}
    assert skipped.metrics["polite"].value is None


def test_a_decision_model_gives_the_probability_of_a_criterion(evaluate, judge_server):
    short_cases(2)
    evaluate("--judge", "openai-decisions:test-judge", "--metric", criterion())
    lines = map(json.loads, Path("run/verdicts.jsonl").read_text(encoding="utf-8").splitlines())
    polite = [line for line in lines if line["metric"] == "polite"]
    assert [line["status"] for line in polite] == ["scored"] * 2
    assert all(0 < line["probability"] < 1 for line in polite)


@pytest.mark.slow
def test_a_saved_run_is_judged_again_by_a_criterion(judged, misslink):
    again = ("rejudge", "run", "--judge", "openai:test-judge", "--metric", "rubric:polite.toml")
    code, out, err = misslink(*again, "--out", "again", "--json")
    assert code == 0, err
    assert json.loads(out)["rejudged"]["difference"]["polite"]["n"] == len(judged)
    code, out, err = misslink("rejudge", "run", "--judge", "heuristic", "--out", "no", "--json")
    assert code == 0, err
    assert "polite" not in json.loads(out)["coverage"]


@pytest.mark.slow
def test_an_audit_has_the_criterion_and_leaves_its_padding_out(judged, misslink, judge_server):
    judge_server.calls.clear()
    code, out, err = misslink("judge", "audit", "run", "--metric", "rubric:polite.toml", "--json")
    assert code == 0, err
    document = json.loads(out)
    (changes,) = document["metrics"].values()
    assert document["drawn_by"] == "polite"
    assert (changes["padding"]["n"], changes["again"]["n"]) == (0, len(judged))
    assert sum(changes["padding"]["left_out"].values()) == len(judged)
    assert document["prompts"]["examination"] == next(iter(judged.values()))["prompt"]["sha256"]
    assert len(judge_server.calls) < 4 * len(judged)  # the run's replies are in the cache
