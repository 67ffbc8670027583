"""SQLite files: created once, migrated, refused when foreign, and errors in words."""

import contextlib
import os
import sqlite3
import threading
from dataclasses import replace

import pytest

from misslink.errors import InputError
from misslink.io.sqlite import SqliteFormat, SqliteLockedError, transaction

V1 = SqliteFormat(
    "note file",
    "choose another --notes",
    0x6D6C7400,
    1,
    ("CREATE TABLE IF NOT EXISTS notes (text TEXT)",),
    wait_s=0.05,
)


def write(path, kind=V1, text="a"):
    with contextlib.closing(kind.open(path)) as file:
        file.execute("INSERT INTO notes (text) VALUES (?)", (text,))


def texts(file):
    return [text for (text,) in file.execute("SELECT text FROM notes ORDER BY text")]


def test_a_file_is_created_with_its_folder_and_opened_again(tmp_path):
    path = tmp_path / "deep" / "notes.sqlite"
    write(path)
    write(path, text="b")
    with contextlib.closing(V1.open_read_only(path)) as file:
        assert texts(file) == ["a", "b"]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            file.execute("DELETE FROM notes")


@pytest.mark.parametrize(("version", "age"), [(2, "older"), (0, "newer")])
def test_a_file_of_another_version_is_refused(tmp_path, version, age):
    path = tmp_path / "notes.sqlite"
    write(path)
    other = SqliteFormat("note file", "stop", V1.application_id, version, V1.schema)
    for act in (other.open, other.open_read_only):
        with pytest.raises(InputError, match=rf"{age} misslink \(format 1"):
            act(path)


def test_many_processes_may_create_one_file(tmp_path):
    path = tmp_path / "notes.sqlite"
    kind = SqliteFormat("note file", "stop", 7, 1, V1.schema, wait_s=30)
    threads = [threading.Thread(target=write, args=(path, kind, str(n))) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts(kind.open_read_only(path)) == [str(n) for n in range(6)]


@pytest.mark.parametrize("read", [False, True])
def test_what_is_no_such_file_is_refused_and_unchanged(tmp_path, read):
    act = V1.open_read_only if read else V1.open
    foreign = tmp_path / "other.sqlite"
    with contextlib.closing(sqlite3.connect(foreign)) as file:
        file.execute("CREATE TABLE mine (x)")
    text = tmp_path / "thesis.txt"
    text.write_text("years of work" * 100, encoding="utf-8")
    for path in (foreign, text, tmp_path):
        before = None if path.is_dir() else path.read_bytes()
        with pytest.raises(InputError) as refused:
            act(path)
        assert refused.value.path == str(path)
        assert before is None or path.read_bytes() == before


def test_a_missing_file_is_not_created_for_reading(tmp_path):
    path = tmp_path / "notes.sqlite"
    for act in (V1.open_read_only, lambda path: V1.open(path, must_exist=True)):
        with pytest.raises(InputError, match="There is no note file here"):
            act(path)
    assert not path.exists()


def test_a_damaged_file_is_found_when_it_is_opened(tmp_path):
    path = tmp_path / "notes.sqlite"
    with contextlib.closing(V1.open(path)) as file:
        file.executemany("INSERT INTO notes VALUES (?)", [("x" * 500,)] * 200)
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 6] = b"\xff" * 4096 * 3
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        V1.open(path)


def test_another_writer_is_waited_for_and_then_reported(tmp_path):
    path = tmp_path / "notes.sqlite"
    write(path)
    with (
        contextlib.closing(V1.open(path)) as holder,
        transaction(holder),
        pytest.raises(SqliteLockedError, match="Another program is using the note file"),
    ):
        V1.open(path)


def test_a_long_wait_is_announced_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("misslink.io.sqlite._QUIET_WAIT_S", 0.01)
    path = tmp_path / "notes.sqlite"
    write(path)
    patient = replace(V1, wait_s=20.0)
    with (
        contextlib.closing(patient.open(path)) as holder,
        contextlib.closing(patient.open(path)) as file,
    ):
        for _ in range(2):
            holder.execute("BEGIN IMMEDIATE")
            release = threading.Timer(0.2, holder.execute, ("COMMIT",))
            release.start()
            with transaction(file):
                file.execute("INSERT INTO notes VALUES ('b')")
            release.join()
    assert caplog.messages == ["another program is using the note file; waiting for it up to 20 s"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_in_a_read_only_folder_can_be_read(tmp_path):
    path = tmp_path / "notes.sqlite"
    write(path)
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert texts(V1.open_read_only(path)) == ["a"]
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (sqlite3.OperationalError("database or disk is full"), "disk is full"),
        (sqlite3.OperationalError("no such table: notes"), "a table is missing"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "read-only"),
        (sqlite3.OperationalError("Could not decode to UTF-8 column 'raw'"), "is damaged"),
        (UnicodeDecodeError("utf-8", b"\xd5", 0, 1, "invalid"), "is damaged"),
        (sqlite3.DatabaseError("something new"), r"cannot be used \(something new\)"),
        (PermissionError(13, "Permission denied"), r"cannot be used \(Permission denied\)"),
    ],
)
def test_errors_say_what_is_wrong_and_what_else_to_do(error, words):
    with (
        pytest.raises(InputError, match=rf"{words}.*, or choose another --notes\.$"),
        V1.errors("notes.sqlite"),
    ):
        raise error


def test_a_transaction_is_whole_or_nothing():
    file = V1.open(None)
    with contextlib.suppress(ZeroDivisionError), transaction(file):
        file.execute("INSERT INTO notes VALUES ('a')")
        _ = 1 / 0
    assert texts(file) == []
