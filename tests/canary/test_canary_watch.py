"""Runs at whole intervals, one watcher a series."""

import subprocess
import sys

import pytest

from misslink.canary.cli import lock_series, parse_interval, repeat_runs
from misslink.errors import InputError


class Clock:
    """A clock that only sleeping and running move."""

    def __init__(self):
        self.now = 1000.0

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def begun(lengths, every):
    """When runs of these lengths begin, and what was announced."""
    clock, starts, told = Clock(), [], []
    left = list(lengths)

    def once():
        starts.append(clock.now)
        clock.now += left.pop(0)

    repeat_runs(once, every, clock=clock, announce=told.append, times=len(lengths))
    return starts, told


def test_runs_begin_at_whole_intervals_and_the_next_is_announced():
    starts, told = begun([3, 0, 59, 1], 60)
    assert starts == [1000, 1060, 1120, 1180]
    assert told == starts[1:]


def test_a_long_run_is_not_made_up_for():
    starts, _ = begun([130, 1, 1], 60)
    assert starts == [1000, 1180, 1240]


def test_an_interrupt_between_two_runs_ends_them():
    class Interrupted(Clock):
        def sleep(self, seconds):
            raise KeyboardInterrupt

    done = []
    with pytest.raises(KeyboardInterrupt):
        repeat_runs(lambda: done.append(1), 60, clock=Interrupted(), announce=lambda _: None)
    assert done == [1]


@pytest.mark.parametrize("interval", ["", "1", "h", "-1h", "0s", "0.5s", "1w", "1h30m", "nan s"])
def test_what_is_no_interval_is_refused(interval):
    with pytest.raises(InputError, match="is not an interval"):
        parse_interval(interval)


HOLD = """
import sys
from pathlib import Path
from misslink.canary.cli import lock_series
with lock_series(Path(sys.argv[1]), "main"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_watch_of_a_series_is_refused_until_the_first_ends(tmp_path):
    path = tmp_path / "new" / "canary.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match="Another process already watches 'main'"):
            lock_series(path, "main").__enter__()
        with lock_series(path, "other"):
            pass
        process.kill()  # however it ends, the lock ends with it
    with lock_series(path, "main"):
        pass
