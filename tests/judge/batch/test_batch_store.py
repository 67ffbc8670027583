"""What is out is noted before it goes, once among all processes, and forgotten when it is home."""

import dataclasses
import os
import subprocess
import sys

import pytest

from honest_judge import small_ask
from misslink.judge.batch.service import BatchStore, pending_batches
from misslink.judge.middleware.sqlite_store import CacheStore
from misslink.judge.protocol import Reply


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache.sqlite"


@pytest.fixture
def notes(path):
    opened = BatchStore(path, "{}", "openai:m")
    yield opened
    opened.close()


def test_what_is_about_to_go_is_found_by_its_keys(notes):
    noted = notes.reserve("file-1", ["a", "b"])
    assert notes.row_of("a") == notes.row_of("b") == noted.row
    assert notes.row_of("c") is None
    assert (noted.file, noted.service_id, noted.questions) == ("file-1", None, 2)
    notes.set_service_id(noted.row, "batch_1")
    assert notes.read(noted.row) == dataclasses.replace(noted, service_id="batch_1")


def test_of_two_processes_only_the_first_submits_a_question(notes, path):
    first = notes.reserve("file-1", ["a", "b"])
    other = BatchStore(path, "{}", "openai:m")
    assert other.reserve("file-2", ["c", "b"]) is None
    assert other.row_of("c") is None  # all or nothing
    assert other.row_of("b") == first.row
    kept = CacheStore(path)
    kept.put("d", small_ask(1), Reply(None, "said"), identity="{}", judge="openai:m")
    kept.close()
    assert other.reserve("file-3", ["c", "d"]) is None  # answered, which it shows now
    assert (other.get("d", small_ask(1)).raw, other.get("c", small_ask(1))) == (
        "said",
        None,
    )
    other.close()


def test_what_came_home_is_forgotten_and_what_did_not_stays(notes, path):
    noted = notes.reserve("file", ["a", "b"])
    kept = CacheStore(path)
    kept.put("a", small_ask(1), Reply(None, "said"), identity="{}", judge="openai:m")
    notes.prune()
    assert (notes.row_of("a"), notes.row_of("b")) == (None, noted.row)
    kept.put("b", small_ask(2), Reply(None, "said"), identity="{}", judge="openai:m")
    kept.close()
    notes.prune()
    assert notes.read(noted.row) is None


def test_what_brought_nothing_is_free_to_be_asked_again(notes):
    first = notes.reserve("file", ["a", "b", "c"])
    notes.remove(first.row, "a")
    second = notes.reserve("file", ["a"])
    notes.remove(first.row, "a")  # it is out elsewhere by now
    assert notes.row_of("a") == second.row
    notes.retain(first.row, ["c", "unknown"])
    assert (notes.row_of("b"), notes.row_of("c")) == (None, first.row)
    assert notes.row_of("a") == second.row
    notes.drop(first.row)
    assert (notes.row_of("c"), notes.read(first.row)) == (None, None)


def test_who_is_dead_submits_nothing_any_more(notes):
    noted = notes.reserve("file", ["a"])
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead = dataclasses.replace(noted, process=ended.pid)
    alive = dataclasses.replace(noted, process=os.getppid())
    assert not dead.in_submission
    assert alive.in_submission
    assert not dataclasses.replace(alive, created="2020-01-01T00:00:00+00:00").in_submission
    assert not noted.in_submission  # this process, under a number that another one had


def test_a_question_is_known_that_is_out_or_answered(notes, path):
    notes.reserve("file", ["a"])
    kept = CacheStore(path)
    kept.put("b", small_ask(1), Reply(None, "said"), identity="{}", judge="openai:m")
    kept.close()
    assert [notes.knows(key) for key in "abc"] == [True, True, False]


def test_what_is_waited_for_is_listed(notes, path):
    assert pending_batches(path) == []
    noted = notes.reserve("file", ["a", "b"])
    notes.set_service_id(noted.row, "batch_1")
    listed = {"judge": "openai:m", "batch": "batch_1", "questions": 2, "waiting": 2}
    assert pending_batches(path) == [{**listed, "created": noted.created}]
    kept = CacheStore(path)
    kept.put("a", small_ask(1), Reply(None, "said"), identity="{}", judge="openai:m")
    kept.close()
    assert [one["waiting"] for one in pending_batches(path)] == [1]
