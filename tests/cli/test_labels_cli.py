"""Human labels on the command line: from the run, from several files, and wrong ones."""

import json
import shutil
import sys
from contextlib import chdir
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "calibration"))

import misslink as package
from labelled import METRIC, label, table, verdict
from misslink.documents import calibrations_of, manifest_of
from misslink.io import read_run

TEXT = "The ferry leaves at seven from the old pier."
ANSWERS = ("The ferry leaves at seven.", "Dolphins rarely sing opera in Munich.")
SIZE = 24


def lines(path, rows):
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A gold set, traces, half of whose answers stand in the passage, and a run of them."""
    folder = tmp_path_factory.mktemp("given")
    gold = [
        {"id": f"c{at}", "question": f"When does ferry {at} leave?", "relevant": ["times"],
         "reference": "The ferry leaves at seven."}
        for at in range(SIZE)
    ]  # fmt: skip
    traces = [
        {"case_id": f"c{at}", "answer": ANSWERS[at % 2],
         "retrieved": [{"id": "times", "text": TEXT}]}
        for at in range(SIZE)
    ]  # fmt: skip
    lines(folder / "gold.jsonl", gold)
    lines(folder / "traces.jsonl", traces)
    with chdir(folder):
        package.evaluate(
            goldset=folder / "gold.jsonl",
            traces=folder / "traces.jsonl",
            embedding="none",
            cache=folder / "cache.sqlite",
            out="run",
        )
    return folder


@pytest.fixture
def run(given):
    """A copy of their run for each test."""
    return shutil.copytree(given / "run", Path("run"))


def labels(annotator="ada", metric=METRIC, wrong=(3,), cases=range(SIZE)):
    """Labels that agree with the judge but on these of twelve cases."""
    return [
        {**label(f"c{at}", (at % 2 == 0) != (at % 12 in wrong), annotator),
         "metric": metric}
        for at in cases
    ]  # fmt: skip


def test_without_labels_those_in_the_run_are_taken(misslink, run):
    code, out, err = misslink("calibrate", run)
    assert (code, out) == (2, "")
    assert "label its answers with  misslink annotate RUN, or name a file" in err
    (run / "labels").mkdir()
    lines(run / "labels" / "ada.jsonl", labels())
    code, out, err = misslink("calibrate", run, "--json")
    assert code == 0, err
    assert json.loads(out)["n"] == SIZE


def test_a_file_of_verdicts_has_no_labels_of_its_own(misslink):
    verdicts, _ = table(judge="openai:m")
    code, _, err = misslink("calibrate", "--verdicts", lines("v.jsonl", verdicts))
    assert code == 2
    assert "name a file of labels with --labels" in err


def test_a_file_of_each_annotator_is_taken(misslink, run):
    one, two = lines("a.jsonl", labels()), lines("b.jsonl", labels("bob", wrong=(5,)))
    code, out, err = misslink("calibrate", run, "--labels", one, "--labels", two, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["labels"] == 2 * SIZE
    assert document["human"]["annotators"] == 2
    again = lines("c.jsonl", labels(wrong=(5,)))
    code, _, err = misslink("calibrate", run, "--labels", one, "--labels", again)
    assert code == 2
    assert "ada labels this" in err


def test_the_documents_of_other_metrics_are_kept(misslink, run):
    first = lines("f.jsonl", labels())
    other = lines("c.jsonl", labels(metric="correctness"))
    for metric, file in (("correctness", other), (METRIC, first), ("correctness", other)):
        code, _, err = misslink("calibrate", run, "--labels", file, "--metric", metric)
        assert code == 0, err
    kept = read_run(run).calibration
    assert kept["metric"] == METRIC
    assert kept["others"]["correctness"]["n"] == SIZE


def test_labels_given_with_the_judge_in_view_are_counted(misslink, run):
    rows = [{**row, "judge_shown": at < 4} for at, row in enumerate(labels())]
    _, out, _ = misslink("calibrate", run, "--labels", lines("l.jsonl", rows), "--json")
    assert any(
        note.startswith("4 of 24 labels were given after the judge's verdict was shown")
        for note in json.loads(out)["notes"]
    )


@pytest.mark.slow
def test_links_by_an_earlier_calibration_are_told_with_the_way_to_the_new_one(
    misslink, run, given, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "1000")
    first = lines("a.jsonl", labels())
    code, out, _ = misslink("calibrate", run, "--labels", first)
    assert "failure modes and risks are not corrected by this yet" in out
    evaluate = (
        *("evaluate", "--goldset", given / "gold.jsonl", "--traces", given / "traces.jsonl"),
        *("--embedding", "none", "--cache", given / "cache.sqlite", "--out", "linked"),
    )
    code, _, err = misslink(*evaluate, "--calibration", run / "calibration.json")
    assert code == 0, err
    code, out, _ = misslink("calibrate", "linked", "--labels", first)
    assert "failure modes and risks" not in out  # by just this one
    again = lines("b.jsonl", labels("bob", wrong=(3, 5)))
    code, out, err = misslink("calibrate", "linked", "--labels", again)
    assert code == 0, err
    assert "failure modes and risks use an earlier calibration on a.jsonl of 20" in out
    assert "--calibration linked/calibration.json" in out
    linked = read_run("linked")
    stored = calibrations_of(linked)["faithfulness"]
    assert stored.linking_inputs != manifest_of(linked).calibration.linking_inputs


@pytest.mark.slow
def test_evaluate_prints_the_corrected_share_and_by_what(misslink, given):
    file = lines("l.jsonl", [*labels(), *labels(metric="correctness")])
    code, out, err = misslink(
        *("evaluate", "--goldset", given / "gold.jsonl", "--traces", given / "traces.jsonl"),
        *("--embedding", "none", "--cache", given / "cache.sqlite", "--out", "new"),
        *("--labels", file, "--verbose"),
    )
    assert code == 0, err
    assert "fully_faithful is corrected by 24 labels (prediction-powered)." in " ".join(out.split())


UNKNOWN = label("zebra", good=True)
FEW = labels(cases=range(3))
ONE_CLASS = labels(cases=range(0, SIZE, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "code", "said"),
    [
        ([UNKNOWN], 2, "none of its cases is in run: these labels belong to another run"),
        ([*labels(), UNKNOWN], 2, "there is no case 'zebra' in run"),
        (ONE_CLASS, 0, "Every labelled case (12) is good"),
        (FEW, 0, "3 cases with a label and a verdict: intervals are wide"),
        ([*labels(), *labels("bob")], 0, "if one file is a copy, their agreement means nothing"),
    ],
    ids=["another run", "an unknown case", "one class", "three labels", "a copy"],
)
def test_labels_that_say_little_are_told_and_what_can_be_computed_is(
    misslink, run, monkeypatch, rows, code, said
):
    monkeypatch.setenv("COLUMNS", "1000")
    found, out, err = misslink("calibrate", run, "--labels", lines("l.jsonl", rows), "--verbose")
    assert found == code, err
    assert said in " ".join((err if code else out).split())
    assert "Traceback" not in err
    assert bool(read_run(run).calibration) is not bool(code)


def test_failed_verdicts_and_impossible_probabilities_are_told_and_left_out(misslink):
    verdicts, said = table(judge="openai:m")
    verdicts[0] = {**verdict("c0", 0.9, judge="openai:m"), "probability": 1.7}
    failed = {"case_id": "c1", "metric": METRIC, "status": "failed", "reason": "unreadable"}
    verdicts[1] = {**failed, "judge": "openai:m"}
    code, out, err = misslink(
        "calibrate", "--verdicts", lines("v.jsonl", verdicts), "--labels",
        lines("l.jsonl", said), "--json",
    )  # fmt: skip
    assert code == 0, err
    document = json.loads(out)
    assert (document["n"], document["left_out"]) == (98, {"failed": 2})
    (note,) = [one for one in document["notes"] if "not counted" in one]
    assert "its probability of 1.7 is not between 0 and 1" in note
    assert "unreadable" in note
