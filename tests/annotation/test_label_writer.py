import csv
import os
import subprocess
import sys
import unicodedata

import pytest

from labelled_runs import label_all, put, run_of
from misslink.annotation import AnnotationSession, export_labels
from misslink.annotation.label_writer import (
    LabelWriter,
    UnchangedFolder,
    UnsavedError,
    validate_annotator,
)
from misslink.errors import InputError
from misslink.io.label_folder import JournalEntry, read_journal
from misslink.io.labels import read_labels


def said(case_id="a", label=1.0, event="label", **more):
    return JournalEntry(event, case_id, "faithfulness", "ada", label=label, at="now", **more)


def test_a_label_is_on_disk_when_keep_returns(tmp_path):
    with LabelWriter(tmp_path / "labels", "ada") as keeper:
        keeper.save(said(comment="caf\u00e9 \u2028\nline"))
        assert read_journal(keeper.path).entries == (said(comment="caf\u00e9 \u2028\nline"),)


def test_labels_of_an_earlier_session_hold_and_undone_ones_do_not(tmp_path):
    with LabelWriter(tmp_path, "ada") as keeper:
        keeper.save(said(), said("b", 0.0), said("b", 1.0), said("b", None, "undone"))
    with LabelWriter(tmp_path, "ada") as again:
        labels = {item[0]: entry.label for item, entry in again.labels.items()}
    assert labels == {"a": 1.0, "b": 0.0}


def test_a_line_that_a_kill_cut_is_told_and_the_file_goes_on(tmp_path):
    with LabelWriter(tmp_path, "ada") as keeper:
        keeper.save(said())
    with keeper.path.open("ab") as file:
        file.write(b'{"case_id": "b", "met')
    with LabelWriter(tmp_path, "ada") as again:
        assert "incomplete" in again.notes[0]
        again.save(said("c"))
    assert [entry.case_id for entry in read_journal(keeper.path).entries] == ["a", "c"]


def test_a_last_line_without_its_end_is_whole(tmp_path):
    (tmp_path / "ada.jsonl").write_text(said().line(), encoding="utf-8")
    with LabelWriter(tmp_path, "ada") as keeper:
        assert keeper.notes == ()
        keeper.save(said("b"))
    assert len(read_journal(tmp_path / "ada.jsonl").entries) == 2


def test_a_broken_line_in_the_middle_is_named_and_nothing_is_lost(tmp_path):
    path = tmp_path / "ada.jsonl"
    path.write_text(f"{said().line()}\nrubbish\n{said('b').line()}\n", encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"ada.jsonl, line 2: this is not JSON; fix this line"):
        LabelWriter(tmp_path, "ada")
    assert path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such lock there")
def test_a_second_process_is_told_and_may_come_when_the_first_has_ended(tmp_path):
    code = (
        "import sys; from pathlib import Path; from misslink.annotation.label_writer import LabelWriter\n"
        "try:\n    LabelWriter(Path(sys.argv[1]), 'ada').close()\n"
        "except Exception as error:\n    print(error)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with LabelWriter(tmp_path, "ada") as keeper:
        keeper.save(said())
        other = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "another misslink annotate has this open" in other.stdout
    with LabelWriter(tmp_path, "ada") as keeper:
        assert len(keeper.labels) == 1


def test_an_annotator_without_a_label_leaves_no_file(tmp_path):
    with LabelWriter(tmp_path, "ada"):
        assert (tmp_path / "ada.jsonl").exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full disk to be had")  # noqa: PTH110
def test_a_full_disk_is_told_and_nothing_counts_as_kept(tmp_path):
    (tmp_path / "ada.jsonl").symlink_to("/dev/full")
    keeper = LabelWriter.__new__(LabelWriter)  # a device has no lines to read
    keeper.path, keeper.annotator, keeper.entries = tmp_path / "ada.jsonl", "ada", []
    with (tmp_path / "ada.jsonl").open("ab", buffering=0) as file:
        keeper._file = file
        with pytest.raises(UnsavedError, match="could not be saved"):
            keeper.save(said())
    assert keeper.entries == []


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "..", "../x", "a/b", "a\\b", ".hidden", "-x", "a  b", "x" * 41, "dot.", "z\n",
     "a\tb", "a\u00a0b", "a\u200db", "a\u202eb", "\u0301a", "a\u3164", "a\ufe0f", "a\ud800", "a:b",
     "a\u2044b", "\u00b2"],
)  # fmt: skip
def test_a_name_that_is_no_files_is_refused(name):
    with pytest.raises(InputError, match="a name is 1 to 40"):
        validate_annotator(name)


def test_names_that_may_be(tmp_path):
    for name in ("ada", "Ada_2", "a.b-c", "7", "x" * 40, "Zo\u00eb M\u00fcller", "\u674e\u96f7",
                 "\u0410\u043d\u043d\u0430 2",
                 "\u0639\u0644\u064a", "\u0939\u093f\u0928\u094d\u0926\u0940"):  # fmt: skip
        assert validate_annotator(name) == name
    assert validate_annotator(" Zoe\u0308 ") == "Zo\u00eb"
    with pytest.raises(InputError, match="reserved for --adjudicate"):
        validate_annotator("\uff21djudicated")
    for name in ("Con", "lpt1.x"):
        with pytest.raises(InputError, match="not a valid file name on Windows"):
            validate_annotator(name)
    with pytest.raises(InputError, match="reserved for --adjudicate"):
        validate_annotator("Adjudicated")
    with LabelWriter(tmp_path, "ada") as keeper:
        keeper.save(said())
        with pytest.raises(InputError, match="there are labels of 'ada' already"):
            LabelWriter(tmp_path, "ADA")


def test_a_name_in_another_script_is_a_file_that_is_read_again(tmp_path):
    name = "\u0410\u043d\u043d\u0430 \u00eb"
    with LabelWriter(tmp_path, name) as keeper:
        keeper.save(JournalEntry("label", "a", "faithfulness", name, label=1.0, at="now"))
        for other in (name.upper(), name.replace("\u00eb", "\u00cb")):
            with pytest.raises(InputError, match="there are labels of"):
                LabelWriter(tmp_path, other)
    decomposed = tmp_path / f"{unicodedata.normalize('NFD', name)}.jsonl"  # as some disks keep it
    keeper.path.rename(decomposed)
    assert {label.annotator for label in read_labels(tmp_path).items} == {name}


def test_another_run_in_the_folder_is_told(tmp_path):
    manifest = tmp_path / "manifest.json"
    manifest.write_text("{}", encoding="utf-8")
    same = UnchangedFolder(tmp_path)
    same.check()
    manifest.write_text('{"created": "later"}', encoding="utf-8")
    with pytest.raises(InputError, match="evaluated again since"):
        same.check()
    manifest.unlink()
    with pytest.raises(UnsavedError, match="try again"):
        same.check()


def test_half_a_line_that_could_not_be_cut_off_is_cut_before_the_next(tmp_path, monkeypatch):
    """A label behind half a line would make a line of both that nobody can read."""

    class Broken:
        """A disk that takes ten bytes, and then neither more nor a cut."""

        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, data):
            self.file.write(data[:10])
            raise OSError(5, "broken")

        def truncate(self, size):
            raise OSError(5, "broken")

    with LabelWriter(tmp_path, "ada") as keeper:
        keeper.save(said())
        whole = keeper._file
        monkeypatch.setattr(keeper, "_file", Broken(whole))
        for _ in range(2):
            with pytest.raises(UnsavedError, match="could not be saved"):
                keeper.save(said())
        monkeypatch.setattr(keeper, "_file", whole)
        keeper.save(said())
    assert len(read_journal(tmp_path / "ada.jsonl").entries) == 2


METRIC = "faithfulness"


@pytest.fixture
def folder(tmp_path):
    folder = put(tmp_path / "run", run_of([n / 40 for n in range(40)]))
    with AnnotationSession(folder) as desk:
        label_all(desk, "ada", lambda case: int(case[-1] in "02468"), upto=15)
        label_all(desk, "bob", lambda case: None if case[-1] == "1" else 1, upto=6)
        desk.label("bob", 0, METRIC, 1, 0, '=1+1, "quoted"\r\n\u2028end')
        desk.reveal("bob", 20)
        desk.label("bob", 20, METRIC, None, 1, "")
    return folder


def read(path):
    return {
        (one.case_id, one.claim, one.annotator): (
            one.value, one.weight, one.judge_shown,
            one.comment.replace("\r\n", "\n").removeprefix("'"),  # that a formula is given in CSV
        )
        for one in read_labels(path).items
    }  # fmt: skip


@pytest.mark.parametrize("name", ["all.csv", "all.jsonl", "ALL.CSV"])
def test_an_export_is_read_again_as_the_folder_is(folder, tmp_path, name):
    count = export_labels(folder, tmp_path / name)
    said = read(folder / "labels")
    assert count == len(said)
    assert read(tmp_path / name) == said
    assert sum(shown for _, _, shown, _ in said.values()) == 2  # revealed, or already labelled
    assert len({weight for _, weight, _, _ in said.values()}) > 1


def test_where_it_cannot_go_is_told(folder, tmp_path):
    with pytest.raises(InputError, match=r"exported as .csv or .jsonl"):
        export_labels(folder, tmp_path / "all.xlsx")
    with pytest.raises(InputError, match="folder of the labels"):
        export_labels(folder, folder / "labels" / "all.jsonl")
    with pytest.raises(InputError, match="this run has no labels"):
        export_labels(put(tmp_path / "other", run_of([0.5])), tmp_path / "all.csv")


@pytest.mark.parametrize("comment", ["=1+1", "@SUM(A1)", "\t=1", "bare\rreturn", "two\nlines"])
def test_a_comment_is_one_cell_and_no_formula(tmp_path, comment):
    folder = put(tmp_path / "run", run_of([n / 9 for n in range(10)]))
    with AnnotationSession(folder) as desk:
        desk.label("ada", 0, METRIC, None, 1, comment)
        desk.label("ada", 1, METRIC, None, 0, "plain")
    export_labels(folder, tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="", encoding="utf-8") as file:
        cells = [row["comment"] for row in csv.DictReader(file)]
    runs = comment[0] in "=@\t"
    assert cells == [f"'{comment}" if runs else comment, "plain"]
    assert len(read_labels(tmp_path / "all.csv").items) == 2
