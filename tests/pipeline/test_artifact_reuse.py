"""A run evaluated again into the same folder keeps what is still true of its judge."""

import html
import json
import shutil
from pathlib import Path

import pytest

import misslink
from misslink.calibration import calibrate, verdicts_from_run
from misslink.calibration.stored_calibration import merge_calibration
from misslink.io import read_run
from misslink.io.labels import read_labels

METRICS = ("faithfulness", "correctness")
TEXT = "The ferry leaves at seven from the old pier."
GOOD, BAD = "The ferry leaves at seven.", "Dolphins rarely sing opera in Munich."
SIZE = 40


def evaluated(out, cache, bad=2, **options):
    """Every `bad`-th answer is wrong; the retriever finds the passage always."""
    gold = [
        {"id": f"c{at}", "question": f"When does ferry {at} leave?", "relevant": ["times"],
         "reference": GOOD}
        for at in range(SIZE)
    ]  # fmt: skip
    passage = {"id": "times", "text": TEXT}
    traces = [
        {"case_id": f"c{at}", "answer": GOOD if at % bad else BAD, "retrieved": [passage]}
        for at in range(SIZE)
    ]
    given = {"embedding": "none", "cache": cache, "out": out, "overwrite": True}
    return misslink.evaluate(goldset=gold, traces=traces, **given, **options)


def people(metric):
    return [
        {"case_id": f"c{at}", "metric": metric, "label": int(at % 2 != 0), "annotator": "ada"}
        for at in range(SIZE)
    ]


def kept(out):
    """Calibrate the run in `out` on both metrics, and audit it, as the commands do."""
    run, held = read_run(out), None
    for metric in METRICS:
        held = merge_calibration(
            held,
            calibrate(
                verdicts_from_run(run, metric, "run", {case.id for case in run.cases}),
                read_labels(people(metric)),
            ).document(),
        )
    audit = {"judge": run.manifest["judge"], "metrics": {"faithfulness": {"again": {"n": 3}}}}
    put(out, calibration=held, audit=audit)
    (out / "labels").mkdir(exist_ok=True)
    (out / "labels" / "ada.jsonl").write_text("", encoding="utf-8")
    return held, audit


def put(out, **documents):
    for name, document in documents.items():
        Path(out / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A folder with a run, its cache, its calibration and its audit, and these two."""
    folder = tmp_path_factory.mktemp("first")
    evaluated(folder / "run", folder / "cache.sqlite")
    return folder, kept(folder / "run")


@pytest.fixture
def place(first, tmp_path):
    """A copy of them for each test."""
    shutil.copytree(first[0], tmp_path, dirs_exist_ok=True)
    return tmp_path / "run", tmp_path / "cache.sqlite"


@pytest.fixture
def documents(first):
    return first[1]


@pytest.mark.slow
def test_the_same_verdicts_keep_their_calibrations_and_their_audit(place, documents, caplog):
    calibration, audit = documents
    again = evaluated(*place)
    assert (again.calibration, again.audit) == (calibration, audit)
    on_disk = read_run(place[0])
    assert (on_disk.calibration, on_disk.audit) == (calibration, audit)
    assert on_disk.summary["corrected"]["fully_faithful"]["own"]
    assert on_disk.manifest["calibration"] is None, "the links are not made with it"
    assert not [one for one in caplog.messages if "are not reused" in one]


@pytest.mark.slow
def test_other_answers_keep_neither_and_one_warning_says_how_to_make_them_anew(place, caplog):
    again = evaluated(*place, bad=3)
    assert (again.calibration, again.audit) == (None, None)
    assert not (place[0] / "calibration.json").exists()
    assert (place[0] / "labels" / "ada.jsonl").exists()
    said, audited = [one for one in caplog.messages if "are not reused" in one]
    run = place[0]
    assert audited.endswith(f"misslink judge audit {run}")
    assert said.endswith(f"misslink calibrate {run} --metric correctness")
    assert f"misslink calibrate {run} --metric faithfulness  and" in said


@pytest.mark.slow
def test_a_calibration_holds_by_metric(place, documents, caplog):
    """That of verdicts which are others now goes, and that of the same ones stays."""
    calibration, audit = documents
    put(place[0], calibration={**calibration, "verdicts_sha256": "0" * 64})
    again = evaluated(*place)
    assert again.calibration == {**calibration["others"]["correctness"], "others": {}}
    assert again.audit == audit
    (said,) = [one for one in caplog.messages if "are not reused" in one]
    assert said.endswith("--metric faithfulness")


def test_a_run_with_labels_of_its_own_keeps_its_own_and_the_other_metrics(place, documents):
    calibration, audit = documents
    again = evaluated(*place, labels=people("faithfulness")[:30])
    assert again.calibration["n"] == 30
    assert again.calibration["others"] == calibration["others"]
    assert again.audit == audit


def test_what_cannot_be_read_is_told_and_the_run_is_made(place, caplog):
    (place[0] / "verdicts.jsonl").write_text("{", encoding="utf-8")
    assert evaluated(*place).calibration is None
    assert any("cannot be read, and are not reused" in one for one in caplog.messages)


@pytest.mark.slow
def test_scores_that_have_moved_since_are_warned_of_and_kept(place, tmp_path, caplog):
    path = place[0] / "calibration.json"
    same = evaluated(tmp_path / "same", place[1], calibration=path)
    assert same.summary["drift"] == {}
    moved = evaluated(tmp_path / "moved", place[1], bad=20, calibration=path)
    found = moved.summary["drift"]["faithfulness"]
    assert found["p"] < 0.01
    assert found["sentence"] in caplog.messages
    page = moved.html(tmp_path / "r.html").read_text(encoding="utf-8")
    assert found["sentence"] in html.unescape(page)
