"""The cache's file: what comes back, what is refused, and damage in single replies."""

import asyncio
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fake_judge import FakeJudge, answer_to
from honest_judge import small_ask
from misslink.errors import InputError
from misslink.io.sqlite import SqliteFormat
from misslink.judge.middleware import cache_admin as records
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.middleware.sqlite_store import CacheStore
from misslink.judge.protocol import Reply
from misslink.types import Usage

OPEN = """
import sys
from pathlib import Path
from misslink.errors import InputError
from misslink.judge.middleware.sqlite_store import CacheStore
folder, *names = sys.argv[1:]
for name in names:
    try:
        CacheStore(Path(folder) / name).close()
    except InputError as refusal:
        print(refusal)
    else:
        print("opened")
"""


def open_and_close(path):
    CacheStore(path).close()


def answer():
    return small_ask(1).schema(claims=(), passages=(), response="answers")


def fill(path, count):
    """A response cache of so many replies."""
    kept = CacheStore(path)
    for n in range(count):
        reply = Reply(answer(), f"said {n} " * 200)
        assert kept.put(f"key {n}", small_ask(n), reply, identity="{}", judge="j")
    kept.close()


def test_a_reply_comes_back_as_it_was_kept(tmp_path):
    kept = CacheStore(tmp_path / "l")
    reply = Reply(
        answer(),
        "raw \x00 \u00e9",
        Usage(prompt_tokens=7),
        {"response": {"answers": 0.9, "evades": 0.1}},
        judge="somebody",
    )
    assert kept.get("k", small_ask(1)) is None
    assert not kept.has("k")
    assert kept.put("k", small_ask(1), reply, identity="{}", judge="j")
    back = kept.get("k", small_ask(1))
    assert back.from_cache
    for part in ("parsed", "raw", "usage", "probabilities", "problem", "judge"):
        assert getattr(back, part) == getattr(reply, part)
    assert kept.has("k")
    kept.close()


def test_of_two_replies_under_one_key_the_first_is_kept(tmp_path):
    ours, theirs = CacheStore(tmp_path / "l"), CacheStore(tmp_path / "l")
    ask = small_ask(1)
    assert theirs.put("k", ask, Reply(None, "first"), identity="{}", judge="j")
    assert not ours.put("k", ask, Reply(None, "second"), identity="{}", judge="j")
    assert ours.get("k", ask).raw == "first"
    ours.close()
    theirs.close()


def test_what_a_judge_can_is_kept_with_its_replies_only(tmp_path):
    kept = CacheStore(tmp_path / "l")
    kept.save_abilities("{}", '{"seed": true}')
    assert kept.abilities("{}") is None  # nothing of this judge is kept
    kept.put("k", small_ask(1), Reply(None, "said"), identity="{}", judge="j")
    assert kept.abilities("{}") is None
    kept.save_abilities("{}", '{"seed": true}')
    assert kept.abilities("{}") == {"seed": True}
    assert kept.abilities("other") is None
    kept.close()


@pytest.mark.parametrize(("version", "age"), [(4, "an older"), (99, "a newer")])
def test_a_cache_of_another_format_is_refused(tmp_path, version, age):
    path = tmp_path / "l"
    open_and_close(path)
    with sqlite3.connect(path) as file:
        file.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(InputError, match=rf"by {age} misslink \(format {version}"):
        open_and_close(path)


def test_a_path_that_looks_like_an_address_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    open_and_close(Path("file:l?mode=memory"))
    assert (tmp_path / "file:l?mode=memory").is_file()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_damage_in_the_middle_is_found_on_opening(tmp_path, share):
    path = tmp_path / "l"
    fill(path, 60)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(int(size * share) // 4096 * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(InputError, match="damaged"):
        open_and_close(path)


def test_a_cache_that_is_held_for_a_moment_is_waited_for(tmp_path):
    path = tmp_path / "l"
    open_and_close(path)
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.2, holder.execute, ("COMMIT",))
    release.start()
    open_and_close(path)
    release.join()
    holder.close()


@pytest.fixture
def on_a_medium(tmp_path):
    """Open response caches on a file system of its own: what opening says; root can be refused there.

    It is mounted in a name space of its own, so nothing of it is left and nobody else sees it.
    """
    unshare = shutil.which("unshare")
    folder = tmp_path / "medium"
    folder.mkdir()

    def run(options, *lines):
        script = " && ".join([f'mount -t tmpfs -o {options} tmpfs "$1"', *lines])
        command = [unshare, "-Urm", "sh", "-c", script, "sh", str(folder), sys.executable, OPEN]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
    probe = [unshare, "-Urm", *mount]
    if unshare is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount a file system of their own")
    return run


@pytest.mark.slow
def test_a_read_only_medium_is_refused(on_a_medium):
    make, read_only = '"$2" -c "$3" "$1" l', 'mount -o remount,ro "$1"'
    said = on_a_medium("size=1m", make, read_only, '"$2" -c "$3" "$1" l other new/l')
    made, again, other, new = said.stdout.splitlines()
    assert made == "opened"
    assert "Make it and its folder readable and writable, or choose" in again
    assert "cannot be opened. Make it and its folder readable and writable, or" in other
    assert "cannot be used (Read-only file system)" in new
    assert said.stderr == ""


@pytest.mark.slow
def test_a_full_medium_is_found_before_anything_is_asked(on_a_medium):
    fill = '! head -c 2000000 /dev/zero > "$1/rest" 2>/dev/null'
    said = on_a_medium("size=64k", fill, '"$2" -c "$3" "$1" l')
    assert "the disk" in said.stdout
    assert "Make room, or choose another --cache" in said.stdout
    assert said.stderr == ""


def test_a_disk_that_takes_nothing_more_is_found_before_anything_is_asked(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))  # no file may grow at all
    try:
        with pytest.raises(InputError, match="disk"):
            open_and_close(tmp_path / "l")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


SAID = Reply(
    answer_to(small_ask(1), response="answers"),
    "said",
    Usage(prompt_tokens=7),
    {"response": {"answers": 1.0}},
)


@pytest.fixture
def damaged(tmp_path):
    """Make a response cache of two replies, and change it by an SQL statement."""

    def make(change, *values):
        path = tmp_path / "l"

        async def put():
            kept = CachedJudge(FakeJudge(SAID, abilities={"seed": True}), path)
            for n in (1, 2):
                await kept.ask(small_ask(n))
            await kept.close()

        asyncio.run(put())
        with sqlite3.connect(path) as file:
            file.execute(change, values)
        file.close()
        return path

    return make


def opened(path, act, judge=None):
    async def use():
        kept = CachedJudge(judge or FakeJudge(SAID), path)
        try:
            found = act(kept)
            return await found if asyncio.iscoroutine(found) else found
        finally:
            await kept.close()

    return asyncio.run(use())


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE replies SET probabilities = '{' WHERE rowid = 1",
        """UPDATE replies SET probabilities = '{"response": {"answers": 0.5}}' WHERE rowid = 1""",
        "UPDATE replies SET parsed = replace(parsed, 'answers', 'evades') WHERE rowid = 1",
        "UPDATE replies SET parsed = NULL WHERE rowid = 1",
        "UPDATE replies SET raw = 'other words' WHERE rowid = 1",
        "UPDATE replies SET prompt_tokens = 8 WHERE rowid = 1",
    ],
)
def test_a_reply_that_is_not_what_was_stored_is_asked_for_again(damaged, change, caplog):
    path = damaged(change)
    judge = FakeJudge(SAID)
    reply = opened(path, lambda kept: kept.ask(small_ask(1)), judge)
    assert (reply.parsed, reply.raw, reply.usage) == (SAID.parsed, SAID.raw, SAID.usage)
    assert reply.probabilities == SAID.probabilities
    assert not reply.from_cache
    assert opened(path, lambda kept: kept.ask(small_ask(2))).from_cache
    assert "damaged; misslink asks its question again" in caplog.text


def test_a_reply_under_the_key_of_another_question_is_not_used(damaged):
    path = damaged("UPDATE opened SET at = at")
    with sqlite3.connect(path) as file:
        first, second = (row[0] for row in file.execute("SELECT key FROM replies"))
        file.execute("DELETE FROM replies WHERE key = ?", (second,))
        file.execute("UPDATE replies SET key = ? WHERE key = ?", (second, first))
    assert not opened(path, lambda kept: kept.ask(small_ask(2))).from_cache


@pytest.mark.parametrize("abilities", ["{", "[1]", "null"])
def test_damaged_abilities_are_found_out_again(damaged, abilities):
    path = damaged("UPDATE judges SET abilities = ?", abilities)
    judge = FakeJudge(SAID, abilities={"seed": True})
    opened(path, lambda kept: kept.ask(small_ask(3)), judge)
    assert judge.learned == []
    later = FakeJudge(SAID)
    opened(path, lambda kept: kept.has_replies(), later)
    assert later.learned == [{"seed": True}]


DAMAGE = {
    "the answer": "UPDATE replies SET parsed = '{' WHERE rowid = 2",
    "the probabilities": "UPDATE replies SET probabilities = '{' WHERE rowid = 2",
    "the messages": "UPDATE replies SET messages = '[{' WHERE rowid = 2",
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_an_export_comes_to_what_is_damaged_and_names_it(damaged, change):
    path = damaged(change)
    rows = records.export_replies(path)
    assert next(rows)["raw"] == "said"
    with pytest.raises(InputError, match=r"damaged: the reply \w{12} or its question") as refusal:
        next(rows)
    assert refusal.value.path == str(path)


@pytest.mark.parametrize(
    "look", [records.cache_stats, lambda path: list(records.export_replies(path))]
)
def test_what_a_killed_run_left_beside_a_cache_is_not_lost_on_a_read_only_medium(
    damaged, monkeypatch, look
):
    """There SQLite reads the file alone, as if the replies beside it had never come."""
    path = damaged("UPDATE replies SET raw = 'said'")
    connection = SqliteFormat._connection

    def on_a_medium(self, where, *more):
        if "mode=rw" in where:
            raise sqlite3.OperationalError("unable to open database file")
        return connection(self, where, *more)

    monkeypatch.setattr(SqliteFormat, "_connection", on_a_medium)
    log = path.with_name("l-wal")
    log.touch()
    assert look(path)
    log.write_bytes(b"a log")
    with pytest.raises(InputError, match="newest rows are in l-wal"):
        look(path)


def test_an_owner_that_expired_shares_no_claim_with_the_next(tmp_path):
    path = tmp_path / "c"
    late, punctual = CacheStore(path), CacheStore(path)
    assert late.claim("a")
    with sqlite3.connect(path) as file:
        file.execute("UPDATE claims SET expires = 0")
    assert punctual.claim("a")
    late.lease()
    assert not late.claim("a")
    late.release("a")
    assert not late.claim("a")
    late.close()
    punctual.close()
