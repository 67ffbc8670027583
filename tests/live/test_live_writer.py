"""Everything is written, by whoever, whatever becomes of the file; and requests never wait."""

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from misslink.errors import InputError
from misslink.live import Experiment, LiveLog, read_live
from misslink.live.log_store import plan_entry

ENTRY = plan_entry(Experiment("writing", {"A": 1, "B": 1}), "salt")


def row(name, **others):
    return {
        "id": name,
        "mode": "assigned",
        "outcome": "ok",
        "open_share": 1.0,
        "at": 1.0,
        "variant": "A",
        "served": "A",
        **others,
    }


def write(log, names):
    for name in names:
        log.exposure(ENTRY, row(name))


def ids(path):
    return [exposure.id for exposure in read_live(path).exposures]


def test_what_many_threads_write_is_all_there(path):
    log = LiveLog(path)
    threads = [
        threading.Thread(target=write, args=(log, [f"{n}-{i}" for i in range(50)]))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.close()
    assert sorted(ids(path)) == sorted(f"{n}-{i}" for n in range(8) for i in range(50))


def test_flush_has_written_when_it_returns_and_close_may_be_followed_by_more(path):
    log = LiveLog(path, every_s=60)
    write(log, ["a"])
    assert log.flush()
    assert ids(path) == ["a"]
    assert log.close()
    write(log, ["b"])
    assert log.close()
    assert ids(path) == ["a", "b"]


@pytest.mark.slow
def test_two_processes_write_one_log(path):
    code = (
        "import sys\n"
        "from misslink.live import Experiment, LiveLog\n"
        "from misslink.live.log_store import plan_entry\n"
        "log, entry = LiveLog(sys.argv[1], every_s=0.001), "
        "plan_entry(Experiment('writing', {'A': 1, 'B': 1}), 'salt')\n"
        "for i in range(200):\n"
        "    log.exposure(entry, dict(id=f'{sys.argv[2]}-{i}', mode='assigned', outcome='ok',"
        " open_share=1.0, at=1.0))\n"  # and no close: the end of the program writes it
    )
    running = [subprocess.Popen([sys.executable, "-c", code, path, name]) for name in "ab"]
    assert [one.wait(60) for one in running] == [0, 0]
    live = read_live(path)
    expected = sorted(f"{name}-{i}" for name in "ab" for i in range(200))
    assert sorted(exposure.id for exposure in live.exposures) == expected
    assert len(live.plans) == 1


def test_a_killed_process_loses_nothing_that_was_flushed(path):
    code = (
        "import os, signal, sys\n"
        "from misslink.live import Experiment, LiveLog\n"
        "from misslink.live.log_store import plan_entry\n"
        "log, entry = LiveLog(sys.argv[1], every_s=60), "
        "plan_entry(Experiment('writing', {'A': 1, 'B': 1}), 'salt')\n"
        "row = dict(mode='assigned', outcome='ok', open_share=1.0, at=1.0)\n"
        "log.exposure(entry, {**row, 'id': 'kept'})\n"
        "assert log.flush()\n"
        "log.exposure(entry, {**row, 'id': 'in memory'})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert ids(path) == ["kept"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_worker_writes_its_own_rows_and_not_its_parents_again(path):
    log = LiveLog(path, every_s=60)
    write(log, ["parent"])
    child = os.fork()
    if not child:
        write(log, ["child"])
        os._exit(0 if log.close() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert log.close()
    assert sorted(ids(path)) == ["child", "parent"]


def test_a_deleted_file_is_begun_anew(path, caplog):
    log = LiveLog(path)
    write(log, ["gone"])
    assert log.flush()
    path.unlink()
    write(log, ["a", "b"])
    assert log.close()
    assert ids(path) == ["a", "b"]
    assert "deleted or replaced" in caplog.text


def test_a_locked_file_is_waited_for_and_told_once(path, caplog, monkeypatch):
    monkeypatch.setattr("misslink.live.log_store._BUSY_S", 0.01)
    monkeypatch.setattr("misslink.live.log_store._RETRY_S", 0.01)
    log = LiveLog(path, every_s=0.001)
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    write(log, ["a", "b"])
    while log.trouble is None:  # until the writer has tried, however busy the machine is
        assert not log.flush(timeout_s=0.2)
    assert "Another program is using" in log.trouble
    assert log.waiting == 2
    held.execute("ROLLBACK")
    held.close()
    assert log.flush()
    assert log.trouble is None
    assert log.close()
    assert ids(path) == ["a", "b"]
    assert caplog.text.count("cannot be written, rows wait") == 1


def test_a_file_that_becomes_read_only_keeps_rows_waiting(path, monkeypatch):
    monkeypatch.setattr("misslink.live.log_store._RETRY_S", 0.01)
    log = LiveLog(path, every_s=0.001)
    write(log, ["a"])
    assert log.close()
    connected = sqlite3.connect

    def read_only(*given, **options):
        file = connected(*given, **options)
        file.execute("PRAGMA query_only = 1")  # root may write to any file
        return file

    monkeypatch.setattr(sqlite3, "connect", read_only)
    write(log, ["b"])
    while log.trouble is None:  # until the writer has tried, however busy the machine is
        assert not log.flush(timeout_s=0.2)
    assert "read-only" in log.trouble
    monkeypatch.setattr(sqlite3, "connect", connected)
    assert log.close()
    assert ids(path) == ["a", "b"]


def test_what_does_not_fit_in_memory_is_given_up_and_counted_in_the_file(path, monkeypatch):
    monkeypatch.setattr("misslink.live.log_store._BUSY_S", 0.01)
    monkeypatch.setattr("misslink.live.log_store._RETRY_S", 0.01)
    log = LiveLog(path, every_s=0.001, most_waiting=3)
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    write(log, "abcde")
    assert (log.waiting, log.given_up) == (3, 2)
    held.execute("ROLLBACK")
    held.close()
    assert log.close()
    live = read_live(path)
    assert ([exposure.id for exposure in live.exposures], live.lost) == (["a", "b", "c"], 2)


def test_a_row_that_cannot_be_kept_does_not_hold_the_others_up(path):
    log = LiveLog(path)
    log.exposure(ENTRY, row("bad", prompt_tokens=2**70))
    log.exposure(ENTRY, row("worse", mode=None))
    log.exposure(ENTRY, row("hostile \ud800", error="\ud800'; DROP TABLE exposures"))
    write(log, ["good"])
    assert log.close()
    live = read_live(path)
    assert [exposure.id for exposure in live.exposures] == ["hostile ?", "good"]
    assert (live.lost, log.given_up) == (2, 2)


def test_an_id_given_twice_keeps_both_rows(path):
    log = LiveLog(path)
    write(log, ["same", "same"])
    assert log.close()
    first, second = ids(path)
    assert first == "same"
    assert second.startswith("same#")


def test_a_changed_split_is_a_new_plan_and_a_return_to_the_old_one_another(path):
    log = LiveLog(path)
    splits = [{"A": 9, "B": 1}, {"A": 9, "B": 1}, {"A": 1, "B": 1}, {"A": 9, "B": 1}]
    for number, split in enumerate(splits):
        log.exposure(plan_entry(Experiment("plans", split), "salt"), row(str(number)))
        log.close()
    live = read_live(path)
    assert [plan.split["B"] for plan in live.plans] == [0.1, 0.5, 0.1]
    assert [live.planned(exposure)["B"] for exposure in live.exposures] == pytest.approx(
        [0.1, 0.1, 0.5, 0.1]
    )
    assert live.variants[1].planned == 0.1


def test_the_salt_is_not_in_the_file_and_another_one_shows(path):
    log = LiveLog(path)
    for salt in ("a very secret salt", "another"):
        log.exposure(plan_entry(Experiment("salts", {"A": 1, "B": 1}), salt), row(salt[:3]))
        log.close()
    plans = read_live(path).plans
    assert all(plan.is_salted for plan in plans)
    assert plans[0].salt_check != plans[1].salt_check
    assert b"secret" not in path.read_bytes()


def test_a_wrong_file_is_refused_before_the_first_request(tmp_path):
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE mine (x)")
    text = tmp_path / "text"
    text.write_text("no database at all, and long enough to be looked at" * 20)
    newer = tmp_path / "newer.sqlite"
    LiveLog(newer).close()
    with sqlite3.connect(newer) as file:
        file.execute("PRAGMA user_version = 99")
    for wrong, said in [
        (tmp_path, "folder"),
        (other, "another program's"),
        (text, "not a live log"),
        (newer, "newer misslink"),
        (text / "inside.sqlite", "inside.sqlite"),
    ]:
        with pytest.raises(InputError) as refused:
            LiveLog(wrong)
        assert said in str(refused.value)
        assert str(wrong) in str(refused.value)


def test_a_file_locked_at_the_start_does_not_keep_the_app_from_starting(path, caplog):
    LiveLog(path).close()
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("BEGIN EXCLUSIVE")
    with caplog.at_level(logging.WARNING):
        log = LiveLog(path)
    held.close()
    write(log, ["a"])
    assert log.close()
    assert ids(path) == ["a"]
