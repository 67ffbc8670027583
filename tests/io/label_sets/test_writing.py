"""An imported set on disk: whole or not at all, and nobody's file lost."""

import pytest

from misslink.errors import InputError
from misslink.io import read_goldset
from misslink.io.label_sets import ImportedLabelSet
from misslink.io.label_sets import importer as writing
from misslink.io.label_sets.importer import CALIBRATE_COMMAND, write_label_set
from misslink.io.labels import read_labels
from misslink.io.trace_formats import read_recording
from misslink.types import Case, Trace


def made(label=1, **more):
    parts = {
        "title": "A set",
        "source": "a paper",
        "licence": "MIT",
        "labels": [
            {"case_id": "é1", "metric": "faithfulness", "label": label, "annotator": "ann"},
            {"case_id": "é1", "metric": "faithfulness", "label": 0.25, "annotator": "bob"},
        ],
        "goldsets": {"goldset.jsonl": [Case(id="é1", question="why\u2028not?")]},
        "traces": {"traces.jsonl": [Trace(case_id="é1", answer="so")]},
        "commands": [CALIBRATE_COMMAND],
        "left_out": {"another split or task": 1200, "nothing": 0},
    }
    return ImportedLabelSet(**(parts | more))


def test_what_is_written_is_read_again(tmp_path):
    document = write_label_set(made(), "mine", tmp_path / "set")
    folder = tmp_path / "set"
    assert read_goldset(folder / "goldset.jsonl").cases[0].question == "why\u2028not?"
    assert read_recording(folder / "traces.jsonl").traces["é1"].answer == "so"
    assert [label.value for label in read_labels(folder / "labels.jsonl").items] == [1, 0.25]
    assert document["labels"] == {"faithfulness": {"n": 2, "good": 1, "annotators": 2}}
    assert document["files"] == sorted(each.name for each in folder.iterdir())
    assert document["left_out"] == {"another split or task": 1200}


def test_the_readme_says_what_it_is_and_what_comes_next(tmp_path):
    write_label_set(made(), "mine", tmp_path / "my set")
    text = (tmp_path / "my set" / "README.md").read_text(encoding="utf-8")
    assert "From a paper. Licence: MIT." in text
    assert "| faithfulness | 2 | 1 | 2 |" in text
    assert "1,200 left out" in text
    assert f"'{tmp_path}/my set'-run --labels '{tmp_path}/my set'/labels.jsonl" in text


def test_a_folder_that_holds_something_is_refused_and_stays(tmp_path):
    write_label_set(made(), "mine", tmp_path / "set")
    before = (tmp_path / "set" / "labels.jsonl").read_bytes()
    with pytest.raises(InputError, match="is not empty; choose another --out, or add --over"):
        write_label_set(made(label=0), "mine", tmp_path / "set")
    assert (tmp_path / "set" / "labels.jsonl").read_bytes() == before


def test_overwriting_replaces_its_own_files_and_keeps_the_rest(tmp_path):
    folder = tmp_path / "set"
    write_label_set(made(verdicts=[{"case_id": "é1"}]), "mine", folder)
    (folder / "labels").mkdir()
    (folder / "labels" / "ann.jsonl").write_text("a person's work", encoding="utf-8")
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    write_label_set(made(label=0), "mine", folder, overwrite=True)
    assert read_labels(folder / "labels.jsonl").items[0].value == 0
    assert not (folder / "verdicts.jsonl").exists()  # of the set before
    assert (folder / "labels" / "ann.jsonl").read_text(encoding="utf-8") == "a person's work"
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert [each.name for each in tmp_path.iterdir()] == ["set"]


def test_a_swap_that_was_killed_is_ended_by_the_next_one(tmp_path):
    folder = tmp_path / "set"
    write_label_set(made(), "mine", folder)
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    folder.rename(tmp_path / ".set.misslink-old")  # as a kill between the two renames leaves it
    with pytest.raises(InputError, match="is not empty"):
        write_label_set(made(label=0), "mine", folder)
    assert read_labels(folder / "labels.jsonl").items[0].value == 1
    assert (folder / "notes.txt").exists()


def test_a_failure_on_the_way_leaves_what_was_there(tmp_path, monkeypatch):
    folder = tmp_path / "set"
    write_label_set(made(), "mine", folder)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "_format_readme", full)  # a fault that no test can bring about
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
        write_label_set(made(label=0), "mine", folder, overwrite=True)
    assert read_labels(folder / "labels.jsonl").items[0].value == 1
    assert [each.name for each in tmp_path.iterdir()] == ["set"]


def test_a_file_or_the_working_folder_is_no_place_for_it(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="this is a file"):
        write_label_set(made(), "mine", tmp_path / "file")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="needs its own folder"):
        write_label_set(made(), "mine", tmp_path)
