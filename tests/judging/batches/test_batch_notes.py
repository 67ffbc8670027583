"""What is out is noted before it goes, once among all processes, and forgotten when it is home."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sqlite3
import subprocess
import sys

import pytest

from honest_judge import small_ask
from misslink.errors import InputError
from misslink.judging.batches.notes import Notes, pending
from misslink.judging.protocol import Reply
from misslink.judging.wrappers.ledger_file import open_to_read
from misslink.judging.wrappers.replies import Replies


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def notes(path):
    opened = Notes(path, "{}", "openai:m")
    yield opened
    opened.close()


def test_what_is_about_to_go_is_found_by_its_keys(notes):
    noted = notes.intend("file-1", ["a", "b"])
    assert notes.row_of("a") == notes.row_of("b") == noted.row
    assert notes.row_of("c") is None
    assert (noted.file, noted.service_id, noted.questions) == ("file-1", None, 2)
    notes.name(noted.row, "batch_1")
    assert notes.read(noted.row) == dataclasses.replace(noted, service_id="batch_1")


def test_of_two_processes_only_the_first_submits_a_question(notes, path):
    first = notes.intend("file-1", ["a", "b"])
    other = Notes(path, "{}", "openai:m")
    assert other.intend("file-2", ["c", "b"]) is None
    assert other.row_of("c") is None  # all or nothing
    assert other.row_of("b") == first.row
    kept = Replies(path)
    kept.add("d", small_ask(1), Reply(None, "said"), identity="{}", judge="openai:m")
    kept.close()
    assert other.intend("file-3", ["c", "d"]) is None  # answered, which it shows now
    assert (other.kept("d", small_ask(1)).raw, other.kept("c", small_ask(1))) == ("said", None)
    other.close()


def test_every_submission_has_a_token_of_its_own(notes):
    tokens = {notes.intend("file", [key]).token for key in "abc"}
    assert len(tokens) == 3


def test_what_came_home_is_forgotten_and_what_did_not_stays(notes, path):
    noted = notes.intend("file", ["a", "b"])
    kept = Replies(path)
    kept.add("a", small_ask(1), Reply(None, "said"), identity="{}", judge="openai:m")
    notes.tidy()
    assert (notes.row_of("a"), notes.row_of("b")) == (None, noted.row)
    kept.add("b", small_ask(2), Reply(None, "said"), identity="{}", judge="openai:m")
    kept.close()
    notes.tidy()
    assert notes.read(noted.row) is None


def test_what_brought_nothing_is_free_to_be_asked_again(notes):
    first = notes.intend("file", ["a", "b", "c"])
    notes.release(first.row, ["a"])
    second = notes.intend("file", ["a"])
    notes.release(first.row, ["a"])  # it is out elsewhere by now
    assert notes.row_of("a") == second.row
    notes.keep_only(first.row, ["c", "unknown"])
    assert (notes.row_of("b"), notes.row_of("c")) == (None, first.row)
    assert notes.row_of("a") == second.row
    notes.drop(first.row)
    assert (notes.row_of("c"), notes.read(first.row)) == (None, None)


def test_who_is_dead_submits_nothing_any_more(notes):
    noted = notes.intend("file", ["a"])
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead = dataclasses.replace(noted, process=ended.pid)
    alive = dataclasses.replace(noted, process=os.getppid())
    assert not dead.in_hand
    assert alive.in_hand
    assert not dataclasses.replace(alive, created="2020-01-01T00:00:00+00:00").in_hand
    assert not noted.in_hand  # this process, under a number that another one had


def test_a_question_is_known_that_is_out_or_answered(notes, path):
    notes.intend("file", ["a"])
    kept = Replies(path)
    kept.add("b", small_ask(1), Reply(None, "said"), identity="{}", judge="openai:m")
    kept.close()
    assert [notes.knows(key) for key in "abc"] == [True, True, False]


def test_what_is_waited_for_is_listed(notes, path):
    assert pending(path) == []
    noted = notes.intend("file", ["a", "b"])
    notes.name(noted.row, "batch_1")
    listed = {"judge": "openai:m", "batch": "batch_1", "questions": 2, "waiting": 2}
    assert pending(path) == [{**listed, "created": noted.created}]
    kept = Replies(path)
    kept.add("a", small_ask(1), Reply(None, "said"), identity="{}", judge="openai:m")
    kept.close()
    assert [one["waiting"] for one in pending(path)] == [1]


def test_a_ledger_of_the_second_format_gets_a_place_for_batches(path):
    kept = Replies(path)
    kept.add("a", small_ask(1), Reply(None, "said"), identity="{}", judge="openai:m")
    kept.close()
    with sqlite3.connect(path) as file:
        file.executescript("DROP TABLE batched; DROP TABLE batches; PRAGMA user_version = 2")
    assert pending(path) == []  # read only: it stays as it is
    with contextlib.closing(open_to_read(path)) as file:  # and is not copied to be read
        assert file.execute("PRAGMA database_list").fetchone()[2] == str(path.resolve())
        assert file.execute("SELECT raw FROM replies").fetchone() == ("said",)
    with sqlite3.connect(path) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (2,)
    notes = Notes(path, "{}", "openai:m")
    assert notes.intend("file", ["b"]) is not None
    notes.close()
    again = Replies(path)
    assert again.get("a", small_ask(1)).raw == "said"
    again.close()


def test_what_is_no_ledger_is_told(tmp_path):
    (tmp_path / "text").write_text("no database " * 100, encoding="utf-8")
    with pytest.raises(InputError, match="this file is no ledger"):
        Notes(tmp_path / "text", "{}", "openai:m")
    with pytest.raises(InputError, match="there is no ledger here"):
        pending(tmp_path / "none")
