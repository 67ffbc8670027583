"""evaluate(labels=...): judged, held against people and linked by that in one go."""

import json
from pathlib import Path

import pytest

import misslink
from misslink.calibration import calibrate, verdicts_from_run
from misslink.calibration.stored_calibration import merge_calibration
from misslink.errors import InputError
from misslink.io import read_run
from misslink.io.labels import read_labels
from misslink.io.manifest import answer_hash

METRICS = ("faithfulness", "correctness")
TEXT = "The ferry leaves at seven from the old pier."
GOOD, BAD = "The ferry leaves at seven.", "Dolphins rarely sing opera in Munich."
SIZE = 24


def gold():
    return [
        {"id": f"c{at}", "question": f"When does ferry {at} leave?", "relevant": ["times"],
         "reference": "The ferry leaves at seven."}
        for at in range(SIZE)
    ]  # fmt: skip


def traces():
    """Half of the answers stand in the passage and half in none."""
    passage = {"id": "times", "text": TEXT}
    return [
        {"case_id": f"c{at}", "answer": BAD if at % 2 else GOOD, "retrieved": [passage]}
        for at in range(SIZE)
    ]


def labels(metrics=METRICS, cases=range(SIZE)):
    """People agree with the judge but on one case in twelve."""
    return [
        {
            "case_id": f"c{at}",
            "metric": metric,
            "label": int((at % 2 == 0) != (at % 12 == 3)),
            "annotator": "ada",
        }
        for metric in metrics
        for at in cases
    ]


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def evaluated(**options):
    return misslink.evaluate(goldset=gold(), traces=traces(), embedding="none", **options)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache") / "cache.sqlite"


@pytest.fixture(scope="module")
def in_one_go(tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp("one-go")
    return evaluated(labels=lines(folder / "l.jsonl", labels()), cache=cache, out=folder / "run")


@pytest.fixture(scope="module")
def without_labels(cache):
    return evaluated(cache=cache)


def without(document, *names):
    return {name: value for name, value in document.items() if name not in names}


@pytest.mark.slow
def test_it_is_evaluate_calibrate_and_evaluate_again(tmp_path, cache, in_one_go, without_labels):
    first = without_labels
    kept = None
    for metric in METRICS:
        read = read_labels(labels())
        judged = verdicts_from_run(first, metric, "run", read.cases)
        document = calibrate(judged, read).document()
        kept = merge_calibration(kept, document)
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(kept), encoding="utf-8")
    by_steps = evaluated(calibration=path, cache=cache)
    assert by_steps.summary["corrected"].keys() == {"fully_faithful", "correct"}
    assert by_steps.links == in_one_go.links
    same = ("corrected", "link", "generation", "answer", "slices", "coverage")
    for name in same:
        assert by_steps.summary[name] == in_one_go.summary[name], name
    assert by_steps.manifest["calibration"] == in_one_go.manifest["calibration"]
    told = ("created", "verdicts_from", "labels_from")
    mine, theirs = in_one_go.calibration, by_steps.calibration
    assert without(mine, *told, "others") == without(theirs, *told, "others")
    for one in (mine, theirs):
        assert one["others"].keys() == {"correctness"}


@pytest.mark.slow
def test_the_links_go_by_it_and_the_run_keeps_it(in_one_go):
    assert in_one_go.manifest["calibration"]["metric"] == "faithfulness"
    assert in_one_go.calibration["by_exposure"]["all"]["sensitivity"]["n"] > 0
    assert in_one_go.summary["corrected"]["fully_faithful"]["by"] == "prediction-powered"
    assert in_one_go.summary["corrected"]["fully_faithful"]["own"]
    assert read_run(in_one_go.summary["run"]).calibration == in_one_go.calibration


@pytest.mark.slow
def test_a_run_of_other_labels_is_another_run(tmp_path, cache):
    given = {"cache": cache, "out": tmp_path / "run"}
    evaluated(labels=lines(tmp_path / "l.jsonl", labels()), **given)
    evaluated(labels=lines(tmp_path / "copy.jsonl", labels()), **given)  # the same labels
    with pytest.raises(InputError, match="has a run of other inputs"):
        evaluated(labels=labels(cases=range(SIZE - 1)), **given)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "note"),
    [
        (labels(("faithfulness",), range(3)), "are not enough for a calibration"),
        (labels(("faithfulness",), range(0, SIZE, 2)), "are not enough for a calibration"),
        (labels(("correctness",)), "There are no labels of faithfulness"),
    ],
    ids=["three labels", "one class", "another metric"],
)
def test_what_labels_cannot_carry_is_told_and_the_run_is_made(
    caplog, cache, without_labels, said, note
):
    run = evaluated(labels=said, cache=cache)
    assert any(note in warning["message"] for warning in run.summary["warnings"])
    assert any(note in one for one in caplog.messages)
    assert run.manifest["calibration"] is None
    assert run.links == without_labels.links
    assert run.calibration["n"] == len(said)  # what can be said of them is kept


def test_labels_of_cases_that_were_not_evaluated_leave_the_run_uncalibrated(cache):
    run = evaluated(labels=labels(cases=[1]), cache=cache, only=["c0"])
    assert run.calibration is None
    assert {
        "code": "labels",
        "message": "Labels: No case that was evaluated is labelled.",
    } in (run.summary["warnings"])


STRANGER = {"case_id": "zebra", "metric": "faithfulness", "label": 1, "annotator": "ada"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"labels": [STRANGER]}, "belong to another run"),
        ({"labels": [*labels(), STRANGER]}, "there is no case 'zebra'"),
        ({"labels": labels(("taste",))}, "there is no metric 'taste'"),
        ({"labels": labels(), "judge": "none"}, "labels calibrate a judge"),
        ({"labels": labels(), "calibration": Path("c.json")}, "not both"),
    ],
)
def test_labels_that_cannot_be_meant_stop_it_before_anything_is_asked(tmp_path, options, said):
    cache = tmp_path / "cache.sqlite"
    with pytest.raises(InputError, match=said):
        evaluated(cache=cache, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_labels_of_unknown_cases_are_left_out_where_that_is_said(cache, in_one_go):
    run = evaluated(labels=[*labels(), STRANGER], known_only=True, cache=cache)
    assert run.links == in_one_go.links


def test_labels_of_a_misspelt_metric_are_refused_before_the_app_is_called(tmp_path):
    rows = [*labels(), *({**row, "metric": "corectness"} for row in labels(("correctness",)))]
    with pytest.raises(InputError, match=r"there is no metric 'corectness'; did you mean 'corr"):
        evaluated(labels=lines(tmp_path / "l.jsonl", rows), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_labels_of_other_answers_do_not_correct_a_run(tmp_path, cache):
    """Found: labels of an earlier app's answers corrected the run of another."""
    answers = [answer_hash(trace["answer"]) for trace in traces()]
    hashed = [{**row, "answer_hash": answers[int(row["case_id"][1:])]} for row in labels()]
    own = evaluated(labels=lines(tmp_path / "own.jsonl", hashed), cache=cache)
    assert own.calibration["n"] == SIZE
    assert not any("which answer" in w["message"] for w in own.summary["warnings"])
    other = [{**row, "answer_hash": answer_hash("Another.")} for row in hashed]
    run = evaluated(labels=lines(tmp_path / "other.jsonl", other), cache=cache)
    assert run.calibration is None
    told = [w["message"] for w in run.summary["warnings"] if w["code"] == "labels"]
    assert any("labels are of other answers" in message for message in told)
    part = evaluated(labels=lines(tmp_path / "p.jsonl", hashed[:-4] + other[-4:]), cache=cache)
    told = [w["message"] for w in part.summary["warnings"] if w["code"] == "labels"]
    assert "Labels: 4 labels of correctness left out: of other answers." in told


def test_labels_without_hashes_are_warned_of_once(in_one_go):
    told = [w["message"] for w in in_one_go.summary["warnings"] if w["code"] == "labels"]
    assert sum("do not say which answer they are of" in message for message in told) == 1
