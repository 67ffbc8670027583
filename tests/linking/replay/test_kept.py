"""Generations on disk: used again, also after a process was killed while it wrote."""

from __future__ import annotations

import pytest

from misslink.errors import InputError
from misslink.linking.replay.cache import ReplayCache
from misslink.types import Passage, Trace

TRACE = Trace(case_id="a", retrieved=(Passage(id="p", text="Ünï\u2028code.", rank=1),), answer="A")


def test_what_was_kept_is_found_by_another_process(tmp_path):
    ReplayCache(tmp_path / "r.jsonl").put("key", TRACE, intervention="first")
    kept = ReplayCache(tmp_path / "r.jsonl")
    assert kept.get("key") == TRACE
    assert kept.get("other") is None


def test_half_a_line_is_passed_over_and_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "r.jsonl"
    ReplayCache(path).put("one", TRACE, intervention="")
    ReplayCache(path).put("two", TRACE, intervention="")
    path.write_bytes(path.read_bytes()[:-30])
    kept = ReplayCache(path)
    assert (kept.get("one"), kept.get("two")) == (TRACE, None)
    kept.put("three", TRACE, intervention="")
    kept.close()
    again = ReplayCache(path)
    assert [again.get(key) is not None for key in ("one", "two", "three")] == [True, False, True]


@pytest.mark.parametrize(
    "line", ["[1]", "{}", '{"key": "x", "trace": {"wrong": 1}}', "3", '{"key": []}']
)
def test_lines_of_anybody_else_are_passed_over(tmp_path, line):
    (tmp_path / "r.jsonl").write_text(line + "\n", encoding="utf-8")
    assert ReplayCache(tmp_path / "r.jsonl").get("x") is None


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.*cannot be written"):
        ReplayCache(tmp_path / "nowhere" / "r.jsonl")


def test_a_file_that_goes_away_meanwhile_is_told(tmp_path):
    path = tmp_path / "r.jsonl"
    kept = ReplayCache(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match=r"r.jsonl: it cannot be written \(it was removed\)"):
        kept.put("key", TRACE, intervention="")


def test_a_file_that_is_moved_meanwhile_goes_on_being_written(tmp_path):
    (tmp_path / "run").mkdir()
    kept = ReplayCache(tmp_path / "run" / "r.jsonl")
    (tmp_path / "run").rename(tmp_path / "old")
    kept.put("key", TRACE, intervention="")
    kept.close()
    assert ReplayCache(tmp_path / "old" / "r.jsonl").get("key") == TRACE


def test_the_file_is_one_processs_at_a_time(tmp_path):
    kept = ReplayCache(tmp_path / "r.jsonl")
    with pytest.raises(InputError, match="another misslink is replaying this run; wait for it"):
        ReplayCache(tmp_path / "r.jsonl")
    kept.close()
    ReplayCache(tmp_path / "r.jsonl").close()


def test_without_a_path_it_keeps_in_memory():
    kept = ReplayCache(None)
    kept.put("key", TRACE, intervention="")
    assert kept.get("key") == TRACE
