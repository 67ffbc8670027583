"""misslink cache merge: what it prints, its exit codes, and one sentence for a mistake."""

from __future__ import annotations

import json

from kept_replies import keep, own
from misslink.judge.middleware.cache import DEFAULT_CACHE


def test_merging_prints_lines_for_people_or_one_document(misslink, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    keep(a, own(), 1, 2)
    keep(b, own(raw="another"), 2, 3)
    code, out, err = misslink("cache", "merge", a, b)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{a}: 2 replies, 2 added",
        f"{b}: 2 replies, 1 added, 1 left out: there is another reply to the same question",
        f"{DEFAULT_CACHE}: 3 replies",
    ]
    code, out, err = misslink("cache", "merge", a, "--cache", tmp_path / "into", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "cache": str(tmp_path / "into"),
        "sources": [{"from": str(a), "replies": 2, "added": 2, "already": 0, "different": 0}],
        "replies": 2,
    }
    assert "2 replies, 0 added, 2 were there already" in misslink("cache", "merge", a)[1]


def test_a_mistake_is_one_sentence(misslink, tmp_path):
    for arguments, said in (
        (["none"], "none: there is no such file"),
        ([tmp_path], "this folder holds no file that ends in .sqlite, .sqlite3, .db"),
        (["gss://b/l"], "no storage is called 'gss'; did you mean 'gs'?"),
        ([], "Missing argument"),
    ):
        code, out, err = misslink("cache", "merge", *arguments)
        assert (code, out) == (2, "")
        assert said in err
        assert "Traceback" not in err
    assert not DEFAULT_CACHE.exists()
