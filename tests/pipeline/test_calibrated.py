"""A calibration reaches the numbers, the links and the manifest of a run."""

import json
from pathlib import Path

import pytest

import misslink
from misslink.calibration import calibrate, verdicts_from_run
from misslink.errors import InputError
from misslink.io import read_run
from misslink.io.labels import read_labels
from misslink.judge.prompts import Prompts

HARBOUR = Path(__file__).parents[2] / "examples" / "harbour"


def rate(value):
    return {"value": value, "low": value, "high": value, "n": 80, "method": "wilson"}


@pytest.mark.slow
def test_the_risks_are_corrected_on_every_judged_case_of_the_table(tmp_path):
    agreement = {"sensitivity": rate(0.9), "specificity": rate(0.8)}
    document = {"metric": "faithfulness", "threshold": 0.5, "agreement": agreement}
    document |= {"reasons": ["kept as it was given"], "others": {}}
    (tmp_path / "calibration.json").write_text(json.dumps(document), encoding="utf-8")
    run = misslink.evaluate(
        f"{HARBOUR / 'app.py'}:chain",
        HARBOUR / "goldset.jsonl",
        k=2,
        cache=None,
        calibration=tmp_path / "calibration.json",
        out=tmp_path / "run",
    )
    link = run.summary["link"]
    code = link["corrected"]["risk_given_all"]["reason_code"]["code"]
    assert code == "judge_unmeasured", "the calibration does not tell the exposures apart"
    assert run.manifest["calibration"]["metric"] == "faithfulness"
    assert run.calibration == document
    assert read_run(tmp_path / "run").calibration == document


GOLD = [{"id": "ferry", "question": "When does the ferry leave?", "relevant": ["times"]}]


def app_that_counts():
    """An app, and the questions that it was asked."""
    asked = []

    def app(question):
        asked.append(question)
        passage = {"id": "times", "text": "The ferry leaves at seven."}
        return {"answer": "It leaves at seven.", "retrieved": [passage]}

    return app, asked


def recorded(folder, **changes):
    """A calibration of the judge `heuristic` as it is now, but for what is changed."""
    prompts = Prompts.from_spec(None)
    agreement = {"sensitivity": rate(0.9), "specificity": rate(0.8)}
    document = {"metric": "faithfulness", "threshold": 0.5, "agreement": agreement}
    document |= {"judge": "heuristic", "judge_identity": {}}
    document["prompts"] = {"examination": prompts.load("examination").ref.sha256}
    path = folder / "calibration.json"
    path.write_text(json.dumps(document | changes), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"judge": "openai:m"}, "of the judge openai:m, and heuristic is asked"),
        ({"prompts": {"examination": "0" * 64}}, "the prompt 'examination' is not the one"),
    ],
)
def test_a_calibration_of_another_judge_or_prompt_stops_before_anything_is_asked(
    tmp_path, changes, said
):
    app, asked = app_that_counts()
    path = recorded(tmp_path, **changes)
    given = {"judge": "heuristic", "cache": None, "calibration": path, "out": tmp_path / "run"}
    with pytest.raises(InputError, match=said):
        misslink.evaluate(app, GOLD, **given)
    assert asked == []
    assert not (tmp_path / "run").exists()


def test_a_calibration_of_this_judge_is_taken_without_a_word(tmp_path, caplog):
    app, asked = app_that_counts()
    path = recorded(tmp_path)
    run = misslink.evaluate(app, GOLD, judge="heuristic", cache=None, calibration=path)
    assert asked == [GOLD[0]["question"]]
    assert run.manifest["calibration"]["threshold"] == 0.5
    assert [one for one in caplog.messages if "calibration.json" in one] == []


def test_drift_of_the_judge_and_an_old_calibration_are_warned_of(tmp_path, caplog):
    app, asked = app_that_counts()
    path = recorded(
        tmp_path,
        judge_identity={"judge_identity.rules": "those of before"},
        created="2020-01-01T00:00:00+00:00",
    )
    misslink.evaluate(app, GOLD, judge="heuristic", cache=None, calibration=path)
    drift, age = [one for one in caplog.messages if "calibration.json" in one]
    assert "rules was those of before when the judge was calibrated" in drift
    assert "days old; the judge may have drifted since" in age
    assert len(asked) == 1


def test_without_a_judge_there_is_nobody_that_a_calibration_could_be_of(tmp_path):
    app, asked = app_that_counts()
    path = recorded(tmp_path, judge="openai:m")
    misslink.evaluate(app, GOLD, judge="none", cache=None, calibration=path)
    assert len(asked) == 1


def test_what_calibrate_keeps_in_a_run_is_taken_by_the_next_run_of_its_judge(tmp_path, caplog):
    """The recorded identity is the one that a run compares with, name for name."""
    app, _ = app_that_counts()
    run = misslink.evaluate(app, GOLD, judge="heuristic", cache=None)
    verdicts = verdicts_from_run(run, "faithfulness", "run", {"ferry"})
    labels = [{"case_id": "ferry", "metric": "faithfulness", "label": 1, "annotator": "ada"}]
    document = calibrate(verdicts, read_labels(labels)).document()
    assert document["judge_identity"], "else nothing is compared"
    document["verdict"] = "caution"  # one label earns no better, of which a run warns
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    misslink.evaluate(app, GOLD, judge="heuristic", cache=None, calibration=path)
    assert [one for one in caplog.messages if "calibration.json" in one] == []
