from __future__ import annotations

import os
import resource
import sqlite3

import pytest

from misslink.errors import InputError
from misslink.judging.wrappers.replies import Replies


def open_and_close(path):
    Replies(path).close()


def test_a_ledger_from_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "l"
    open_and_close(path)
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match=r"newer misslink \(format 99"):
        open_and_close(path)


def test_a_folder_is_no_ledger(tmp_path):
    with pytest.raises(InputError, match="this is a folder"):
        open_and_close(tmp_path)


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, not a ledger at all\n" * 50)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"notes.txt: this file is no ledger"):
        open_and_close(path)
    assert path.read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "app.sqlite"
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE users (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="another program's database"):
        open_and_close(path)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="folder cannot be made"):
        open_and_close(tmp_path / "file" / "ledger.sqlite")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only files")
def test_a_read_only_ledger_is_refused(tmp_path):
    path = tmp_path / "l"
    open_and_close(path)
    path.chmod(0o400)
    with pytest.raises(InputError, match="make it writable"):
        open_and_close(path)


def test_a_full_disk_is_found_before_anything_is_asked(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))  # no file may grow at all
    try:
        with pytest.raises(InputError, match="disk"):
            open_and_close(tmp_path / "l")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
