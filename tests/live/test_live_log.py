"""A live log is read as of one moment, and what is wrong with it is said."""

import sqlite3

import pytest

from misslink.errors import InputError
from misslink.live import Experiment, LiveLog, RequestOptions, Router, read_live
from misslink.live.log_store import plan_entry


def log_with(path, *names):
    log = LiveLog(path)
    for name in names:
        router = Router(
            {"A": str.lower, "B": str.upper},
            Experiment(name, {"A": 1, "B": 3}, control="A"),
            log=log,
            requests=RequestOptions(salt="s"),
        )
        router.invoke(f"Asked of {name}", {"configurable": {"user_id": "ann"}})
        router.feedback("thumbs", 1, unit="ann")
    log.close()
    return path


def changed(path, statement):
    with sqlite3.connect(path) as file:
        file.execute(statement)
    file.close()
    return path


def test_one_experiment_is_read_without_its_name_and_of_several_one_is_named(path):
    log_with(path, "one")
    live = read_live(path)
    assert (live.experiment, live.control, live.lost) == ("one", "A", 0)
    assert [(v.name, v.planned, v.is_control) for v in live.variants] == [
        ("A", 0.25, True),
        ("B", 0.75, False),
    ]
    log_with(path, "two")
    assert len(read_live(path, "two").exposures) == len(read_live(path, "two").feedback) == 1
    with pytest.raises(InputError, match="one, two; choose one with --experiment"):
        read_live(path)
    with pytest.raises(InputError, match="did you mean 'two'"):
        read_live(path, "tow")


def test_feedback_to_a_request_has_the_requests_unit(path):
    log = LiveLog(path)
    entry = plan_entry(Experiment("x", {"A": 1, "B": 1}), "s")
    known = {"mode": "assigned", "outcome": "ok", "open_share": 1.0, "at": 5.0}
    log.exposure(entry, {**known, "id": "r1", "unit": "u1"})
    log.feedback(entry, ("r1", None, "thumbs", 1.0, None, 6.0))
    log.feedback(entry, ("never seen", None, "thumbs", 0.0, None, 4.0))
    log.close()
    assert [(one.exposure, one.unit, one.at) for one in read_live(path).feedback] == [
        ("r1", "u1", 6.0),
        ("never seen", None, 4.0),
    ]


def test_a_log_is_read_while_it_is_written(path):
    log_with(path, "one")
    writing = sqlite3.connect(path, isolation_level=None)
    writing.execute("BEGIN IMMEDIATE")
    writing.execute("DELETE FROM exposures")
    assert len(read_live(path).exposures) == 1
    writing.close()


def test_a_log_that_is_held_by_another_program_is_told(path):
    log_with(path, "one")
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("PRAGMA locking_mode = EXCLUSIVE")
    held.execute("BEGIN EXCLUSIVE")
    held.execute("DELETE FROM losses")
    with pytest.raises(InputError, match="Another program is using"):
        read_live(path, busy_s=0.01)
    held.close()


def test_an_empty_log_and_one_that_is_not_there_are_told(path):
    with pytest.raises(InputError, match="There is no live log here"):
        read_live(path)
    LiveLog(path).close()
    with pytest.raises(InputError, match="contains no experiment yet"):
        read_live(path)
    with pytest.raises(InputError, match="folder"):
        read_live(path.parent)
    empty = path.with_name("empty")
    empty.touch()
    with pytest.raises(InputError, match="empty file"):
        read_live(empty)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE plans SET split = '[1'", "plan 1"),
        ("UPDATE plans SET split = '{\"B\": 1}'", "control is not in the split"),
        ("UPDATE plans SET ramp = '[[1, 7]]'", "ramp is 7, "),
        ("UPDATE exposures SET retrieved = '{'", "exposure"),
        ("UPDATE exposures SET retrieved = '[1]'", "retrieved is 1, "),
        ("UPDATE exposures SET mode = 'guessed'", "guessed"),
        ("UPDATE exposures SET outcome = 'fine'", "fine"),
        ("UPDATE exposures SET at = 'noon'", "at is 'noon'"),
        ("UPDATE feedback SET value = 'good'", "feedback"),
        ("DROP TABLE feedback", "damaged"),
        ("PRAGMA user_version = 2", "newer misslink (format 2"),
        ("PRAGMA application_id = 1", "another program's database"),
    ],
)
def test_a_damaged_or_foreign_log_is_told_with_its_place(path, statement, said):
    changed(log_with(path, "one"), statement)
    with pytest.raises(InputError) as refused:
        read_live(path)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_cut_short_is_told(path):
    log_with(path, "one")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(InputError, match="damaged"):
        read_live(path)
