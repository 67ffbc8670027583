"""Labels know which answer they are of: those of other answers calibrate nothing."""

import csv
import json

import pytest

from json_values import as_json
from labelled import held, label, table, verdict
from labelled_runs import label_all, put, run_of
from misslink.annotation import AnnotationSession, export_labels
from misslink.calibration import calibrate, verdicts_from_run
from misslink.calibration.inter_annotator import load_labels
from misslink.errors import InputError
from misslink.io.label_sets.importer import ImportedLabelSet, write_label_set
from misslink.io.labels import read_labels
from misslink.io.manifest import answer_hash
from misslink.types import Case, Trace

calibrate = as_json(calibrate)

SIZE = 60
SCORES = [0.9 if n % 2 else 0.1 for n in range(SIZE)]
UNVERIFIED = "do not say which answer they are of"


def run(answer="Answer {}."):
    return run_of(SCORES, answers=[answer.format(n) for n in range(SIZE)])


def labels_of(answer="Answer {}.", cases=range(SIZE)):
    return [label(f"c{n}", bool(n % 2), answer_hash=answer_hash(answer.format(n))) for n in cases]


def calibrated(run, labels):
    read = read_labels(labels)
    return calibrate(verdicts_from_run(run, "faithfulness", "reports/today", read.cases), read)


def test_labels_of_other_answers_are_refused_if_all_are():
    """Found: n = 60, exit 0, and they corrected the next run."""
    with pytest.raises(InputError, match="all 60 labels are of other answers than those of rep"):
        calibrated(run(), labels_of("An older answer {}."))


def test_labels_of_other_answers_are_left_out_and_counted():
    rows = labels_of(cases=range(40)) + labels_of("An older answer {}.", cases=range(40, SIZE))
    document = calibrated(run(), rows)
    assert (document["n"], document["labels"], document["labels_of_other_answers"]) == (40, 40, 20)
    assert "Labels of other answers left out: 20." in document["notes"]
    assert not any(UNVERIFIED in note for note in document["notes"])


def test_without_hashes_there_is_one_warning():
    plain = [{name: row[name] for name in row if name != "answer_hash"} for row in labels_of()]
    document = calibrated(run(), plain)
    assert document["n"] == document["unverified_labels"] == SIZE
    assert sum(UNVERIFIED in note for note in document["notes"]) == 1


@pytest.mark.slow
def test_verdicts_of_a_file_know_their_answers_too():
    verdicts, labels = table()
    with_answers = [{**row, "answer": f"Of {row['case_id']}."} for row in verdicts]
    hashed = [{**row, "answer_hash": answer_hash(f"Of {row['case_id']}.")} for row in labels]
    assert held(with_answers, hashed)["unverified_labels"] == 0
    by_hash = [{**row, "answer_hash": answer_hash(f"Of {row['case_id']}.")} for row in verdicts]
    assert held(by_hash, hashed)["unverified_labels"] == 0
    assert held(verdicts, hashed)["unverified_labels"] == len(labels), "nothing can be compared"
    hashed[0]["answer_hash"] = answer_hash("Another.")
    assert held(with_answers, hashed)["labels_of_other_answers"] == 1
    assert held([verdict("c0", 0.9)], hashed[:1])["n"] == 1


def test_one_file_may_hold_the_labels_of_two_answers_to_a_question(tmp_path):
    now, before = labels_of(), labels_of("An older answer {}.")
    for row in before:
        row["label"] = 1 - row["label"]
    document = calibrated(run(), before + now)
    assert (document["n"], document["labels_of_other_answers"]) == (SIZE, SIZE)
    assert document["agreement"]["kappa"]["value"] == 1
    paths = []
    for name, rows in (("before", before), ("now", now)):
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    labels = load_labels(paths)
    verdicts = verdicts_from_run(run(), "faithfulness", "today", labels.cases)
    assert calibrate(verdicts, labels)["n"] == SIZE


@pytest.mark.parametrize("value", ["abc", "f" * 63, 5, True])
def test_what_is_no_hash_is_refused(value):
    with pytest.raises(InputError, match="no SHA-256 of an answer"):
        read_labels([label("c0", good=True, answer_hash=value)])
    capital = [label("c0", good=True, answer_hash="AB" * 32)]
    assert read_labels(capital).items[0].answer_hash == "ab" * 32


@pytest.fixture
def labelled(tmp_path):
    """A run folder whose answers ada labelled."""
    folder = put(tmp_path / "run", run())
    with AnnotationSession(folder) as desk:
        label_all(desk, "ada", lambda case_id: int(case_id[1:]) % 2)
    return folder


@pytest.mark.slow
def test_every_label_file_has_the_hash(labelled, tmp_path):
    """Found: annotate --export dropped what was labelled."""
    hashes = {f"c{n}": answer_hash(f"Answer {n}.") for n in range(SIZE)}
    paths = [tmp_path / f"labels.{form}" for form in ("csv", "jsonl")]
    for path in paths:
        export_labels(labelled, path)
    table, lines = (path.read_text(encoding="utf-8").splitlines() for path in paths)
    for rows in (csv.DictReader(table), map(json.loads, lines)):
        assert {row["case_id"]: row["answer_hash"] for row in rows} == hashes
    copied = tmp_path / "copied" / "ada.jsonl"
    copied.parent.mkdir()
    copied.write_bytes((labelled / "labels" / "ada.jsonl").read_bytes())
    for source in (*paths, copied.parent, labelled / "labels"):
        assert {item.case_id: item.answer_hash for item in read_labels(source).items} == hashes
        assert calibrated(run(), source)["n"] == SIZE
        with pytest.raises(InputError, match="labels are of other answers"):
            calibrated(run("Another {}."), source)


def test_labels_of_before_are_exported_with_the_hash_of_the_answer_they_are_of(labelled, tmp_path):
    journal = labelled / "labels" / "ada.jsonl"
    rows = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    old = [{name: row[name] for name in row if name != "answer_hash"} for row in rows]
    journal.write_text("".join(json.dumps(row) + "\n" for row in old), encoding="utf-8")
    export_labels(labelled, tmp_path / "labels.jsonl")
    assert all(item.answer_hash for item in read_labels(tmp_path / "labels.jsonl").items)


def test_an_imported_label_set_has_the_hash_where_a_case_has_one_answer(tmp_path):
    def written(name, **traces):
        labels = [{"case_id": "q", "metric": "faithfulness", "label": 1, "annotator": "team"}]
        imported = ImportedLabelSet(
            "A set",
            "a paper",
            "free",
            labels,
            goldsets={"goldset.jsonl": [Case(id="q", question="Which?")]},
            traces={
                f"{file}.jsonl": [Trace(case_id="q", answer=answer)]
                for file, answer in traces.items()
            },
        )
        write_label_set(imported, "own", tmp_path / name)
        return read_labels(tmp_path / name / "labels.jsonl").items[0].answer_hash

    assert written("one", traces="This one.") == answer_hash("This one.")
    assert written("two", traces_a="This one.", traces_b="That one.") is None
