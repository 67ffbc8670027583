"""Caches merged by what was asked: nothing twice, nothing lost, nothing replaced."""

import asyncio
import sqlite3
import threading
from dataclasses import replace

import pytest

from honest_judge import small_ask
from kept_replies import keep, own
from misslink.errors import InputError
from misslink.judge.middleware import cache_admin as cache_merge
from misslink.judge.middleware import cache_admin as records
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.middleware.cache_admin import merge_caches
from misslink.judge.middleware.sqlite_store import CACHE_FORMAT
from misslink.types import Usage


def exported(path):
    return list(records.export_replies(path))


def counts(found, place=0):
    return tuple(
        found["sources"][place][name] for name in ("replies", "added", "already", "different")
    )


def test_replies_of_other_caches_come_with_all_that_was_kept_of_them(tmp_path):
    a, b, into = tmp_path / "a", tmp_path / "b", tmp_path / "into"
    keep(into, own("own:z"), 9)
    keep(a, own("own:a"), 1, 2)
    keep(b, own("own:b"), 3)
    keep(b, own("own:a"), 4)
    wanted = [row for path in (into, a, b) for row in exported(path)]
    found = merge_caches([a, str(b)], into)
    assert exported(into) == wanted
    assert found == {
        "cache": str(into),
        "sources": [
            {"from": str(a), "replies": 2, "added": 2, "already": 0, "different": 0},
            {"from": str(b), "replies": 2, "added": 2, "already": 0, "different": 0},
        ],
        "replies": 5,
    }


def test_a_merged_reply_spares_the_call(tmp_path):
    keep(tmp_path / "a", own(), 1, 2)
    merge_caches([tmp_path / "a"], tmp_path / "new" / "into")
    judge = own()
    replies = keep(tmp_path / "new" / "into", judge, 1, 2, 3)
    assert len(judge.asked) == 1
    assert [reply.from_cache for reply in replies] == [True, True, False]
    assert replies[0].probabilities == {"response": {"answers": 0.75}}
    assert replies[0].usage == Usage(prompt_tokens=7, completion_tokens=2)


def test_what_is_there_stays_and_what_differs_is_counted(tmp_path):
    a, into = tmp_path / "a", tmp_path / "into"
    keep(into, own(raw="the first"), 1, 2)
    keep(a, own(raw="the first"), 2)
    keep(a, own(raw="another"), 1, 3)
    before = exported(into)
    assert counts(merge_caches([a], into)) == (3, 1, 1, 1)
    assert exported(into)[:2] == before
    assert counts(merge_caches([a], into)) == (3, 0, 2, 1)
    assert len(exported(into)) == 3


def test_what_a_judge_found_out_comes_too_and_the_first_stays(tmp_path):
    a, b, into = tmp_path / "a", tmp_path / "b", tmp_path / "into"
    keep(a, own(abilities={"schema": True}), 1)
    keep(b, own(abilities={"schema": False}), 2)
    keep(into, own(), 3)
    merge_caches([a, b], into)
    judge = own()
    keep(into, judge, 3)
    assert judge.learned == [{"schema": True}]


@pytest.mark.slow
def test_a_folder_a_pattern_and_a_url_name_caches_and_the_target_is_none_of_them(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    for number in (10, 9):
        keep(tmp_path / f"worker-{number}.sqlite", own(), number)
    into = tmp_path / "into.sqlite"
    keep(into, own(), 1)
    (tmp_path / "notes.txt").write_text("no cache", encoding="utf-8")
    found = merge_caches([tmp_path], into)
    assert [one["from"].rpartition("/")[2] for one in found["sources"]] == [
        "worker-9.sqlite",
        "worker-10.sqlite",
    ]
    assert found["replies"] == 3
    assert counts(merge_caches([f"{tmp_path}/worker-1*.sqlite"], into)) == (1, 0, 1, 0)
    storage = fsspec.filesystem("memory")
    storage.pipe("/caches/w.sqlite", (tmp_path / "worker-9.sqlite").read_bytes())
    storage.pipe("/caches/broken.sqlite", b"no cache at all, and longer than a header is" * 40)
    stored = merge_caches(["memory://caches/w.sqlite"], tmp_path / "other")
    assert stored["sources"][0] == {
        "from": "memory://caches/w.sqlite",
        **dict.fromkeys(("replies", "added"), 1),
        **dict.fromkeys(("already", "different"), 0),
    }
    with pytest.raises(
        InputError, match=r"^memory:///caches/broken.sqlite: This file is not a response cache"
    ):
        merge_caches(["memory://caches"], into)
    storage.store.clear()


def test_replies_that_a_stored_cache_has_only_in_its_log_are_merged(tmp_path):
    """As of a worker that was killed, or runs still: SQLite keeps the newest in a file beside."""
    fsspec = pytest.importorskip("fsspec")
    kept = CachedJudge(own(), tmp_path / "a.sqlite")
    asyncio.run(kept.ask(small_ask(1)))
    storage = fsspec.filesystem("memory")
    for name in ("a.sqlite", "a.sqlite-wal"):
        storage.pipe(f"/caches/{name}", (tmp_path / name).read_bytes())
    asyncio.run(kept.close())
    assert counts(merge_caches(["memory://caches"], tmp_path / "into")) == (1, 1, 0, 0)
    storage.store.clear()


def break_(path, statement):
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA foreign_keys = 0")
        file.execute(statement)
    file.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "DELETE FROM judges",
            "this response cache is damaged: the judge of the reply .* is missing",
        ),
        (
            "DROP TABLE replies",
            "This response cache is damaged, a table is missing. .* leave it out",
        ),
        ("PRAGMA user_version = 99", ".*written by a newer misslink .* or leave it out"),
        (
            "PRAGMA application_id = 1",
            "This is another program's database. Leave it out",
        ),
    ],
)
def test_a_broken_cache_is_told_and_nothing_of_it_is_merged(tmp_path, statement, said):
    fine, broken, into = tmp_path / "fine", tmp_path / "broken", tmp_path / "into"
    keep(fine, own(), 1)
    keep(broken, own("own:b"), 1, 2, 3)
    break_(broken, statement)
    with pytest.raises(InputError, match=rf"broken: {said}"):
        merge_caches([broken], into)
    keep(into, own("own:z"), 9)
    with pytest.raises(InputError, match=rf"broken: {said}"):
        merge_caches([fine, broken], into)
    assert exported(into)[1:] == exported(fine)
    assert {row["judge"] for row in exported(into)} == {"own:z", "own:a"}


def test_what_is_no_cache_leaves_no_new_one_behind(tmp_path):
    into = tmp_path / "into"
    text = tmp_path / "text.sqlite"
    text.write_text("no cache " * 200, encoding="utf-8")
    for source, said in (
        (text, "This file is not a response cache"),
        (tmp_path / "none", "none: there is no such file"),
        (tmp_path / "*.db", "no file matches this pattern"),
    ):
        with pytest.raises(InputError, match=said):
            merge_caches([source], into)
    with pytest.raises(InputError, match="name the caches to merge"):
        merge_caches([], into)
    assert not into.exists()
    keep(into, own(), 1)
    with pytest.raises(InputError, match="into: this is the cache that is merged into"):
        merge_caches([into], into)


def test_a_run_may_write_to_the_cache_meanwhile(tmp_path):
    """One that holds the file just now is waited for, and neither loses a reply."""
    a, into = tmp_path / "a", tmp_path / "into"
    keep(a, own(), *range(40))
    keep(into, own("own:z"), 99)
    run = CachedJudge(own("own:z"), into)
    busy = CACHE_FORMAT.open(into)
    busy.execute("BEGIN IMMEDIATE")
    merging = threading.Thread(target=merge_caches, args=([a], into))
    merging.start()
    busy.execute("COMMIT")
    busy.close()

    async def ask():
        for n in range(20):
            await run.ask(small_ask(n))
        await run.close()

    asyncio.run(ask())
    merging.join()
    assert len(exported(into)) == 1 + 40 + 20


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 4, 5])
def test_a_merge_that_is_stopped_in_the_middle_goes_on(tmp_path, monkeypatch, count):
    """It is done in pieces, so that no run waits long; those that are done stay."""
    a, into = tmp_path / "a", tmp_path / "into"
    keep(a, own(), *range(count))
    monkeypatch.setattr(cache_merge, "_ROWS_PER_TRANSACTION", 2)
    insert, inserted = cache_merge._insert_reply, []

    def interrupt(*arguments):
        inserted.append(arguments)
        if len(inserted) == 3:
            raise KeyboardInterrupt
        return insert(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(cache_merge, "_insert_reply", interrupt)
        with pytest.raises(KeyboardInterrupt):
            merge_caches([a], into)
    assert exported(into) == exported(a)[:2]
    assert counts(merge_caches([a], into)) == (count, count - 2, 2, 0)
    assert exported(into) == exported(a)


def test_samples_of_one_question_are_replies_of_their_own(tmp_path):
    async def put():
        kept = CachedJudge(own(), tmp_path / "a")
        for repeat in range(3):
            await kept.ask(replace(small_ask(1), repeat=repeat))
        await kept.close()

    asyncio.run(put())
    keep(tmp_path / "into", own(), 1)
    assert counts(merge_caches([tmp_path / "a"], tmp_path / "into")) == (3, 2, 1, 0)
    assert [row["repeat"] for row in exported(tmp_path / "into")] == [0, 1, 2]
