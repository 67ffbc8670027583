"""Files written whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from misslink.errors import InputError
from misslink.io.atomic import atomic_write


def test_the_folder_is_made_and_what_was_there_is_replaced(tmp_path):
    path = tmp_path / "new" / "page.html"
    assert atomic_write("one", path) == path
    assert atomic_write("two \u2212", path).read_text(encoding="utf-8") == "two \u2212"
    assert [entry.name for entry in path.parent.iterdir()] == ["page.html"]


def test_a_disk_that_is_full_costs_nothing_that_was_there(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    atomic_write("one", path)

    def full(part, content):
        part.open("wb").close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match=r"page\.html: it cannot be written \(No space"):
        atomic_write("two", path)
    assert path.read_text(encoding="utf-8") == "one"
    assert len(list(tmp_path.iterdir())) == 1


def test_what_lies_under_the_temporary_name_is_not_written_through(tmp_path):
    path, mine = tmp_path / "page.html", tmp_path / "thesis.txt"
    mine.write_text("years of work", encoding="utf-8")
    part = tmp_path / f".page.html.{os.getpid()}.part"
    part.symlink_to(mine)
    atomic_write("one", path)
    assert (mine.read_text("utf-8"), path.read_text("utf-8")) == ("years of work", "one")
    part.mkdir()
    with pytest.raises(InputError, match="it cannot be written"):
        atomic_write("two", path)


def test_a_pipe_or_a_device_is_written_to_and_stays(tmp_path):
    """Found: as root, `gate --junit /dev/null` made a plain file of the device of all programs."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    atomic_write("one", pipe)
    assert os.read(reader, 10) == b"one"
    os.close(reader)
    assert pipe.is_fifo()
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InputError, match=r"this is a folder; give another path$"):
        atomic_write("one", tmp_path)


def test_a_name_that_no_disk_takes_is_told(tmp_path):
    with pytest.raises(InputError, match=r"it cannot be written \(File name too long\); give ano"):
        atomic_write("one", tmp_path / ("x" * 5000))


def test_what_a_killed_process_left_half_written_goes_and_that_of_a_running_one_stays(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    dead, running = tmp_path / f".page.{process.pid}.part", tmp_path / f".page.{os.getppid()}.part"
    for left in (dead, running):
        left.write_text("half", encoding="utf-8")
    atomic_write("whole", tmp_path / "page")
    assert {file.name for file in tmp_path.iterdir()} == {"page", running.name}
