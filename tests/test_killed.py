"""kill -9 at any moment, then the same command: nothing is asked twice, nothing comes out other."""

import random
import signal
import threading

import pytest

import warm_program
from judge_server import JudgeServer
from killed_runs import kept, parts, write_inputs

CONCURRENCY = 4
COMMAND = (
    "evaluate", "--goldset", "gold.jsonl", "--traces", "traces.jsonl",
    "--judge", "openai:test-judge", "--cache", "cache.sqlite",
    "--out", "run",
)  # fmt: skip


def start(folder, server, concurrency=CONCURRENCY):
    """The command, in its own process."""
    return warm_program.start(
        [*COMMAND, "--concurrency", str(concurrency)], folder,
        OPENAI_BASE_URL=server.url, OPENAI_API_KEY="",
    )  # fmt: skip


def finish(folder, server):
    code, told = warm_program.finish(start(folder, server), folder)
    assert code == 0, told


class Killer:
    """A script that answers honestly, and kills `process` at its `left`-th question from now."""

    def __init__(self):
        self.process = None
        self.left = None
        self.late = None
        self._lock = threading.Lock()

    def __call__(self, _):
        with self._lock:
            if self.left is None:
                return
            self.left -= 1
            if self.left:
                return
        if self.late is None:
            self.process.kill()
        else:  # perhaps while the reply is read, stored, used or while the report is written
            threading.Timer(self.late, self.process.kill).start()


def killed(server, killer, folder, moments, concurrency=CONCURRENCY):
    """Start and kill the command at each moment; check that each time little was lost.

    A moment is the question at which, or so many seconds after which, the signal is sent.
    """
    lost = 0
    before, asked = kept(folder), len(server.calls)
    for kill, (question, late) in enumerate(moments, 1):
        killer.process, killer.late, killer.left = None, late, None
        process = killer.process = start(folder, server, concurrency)
        killer.left = question
        code, told = warm_program.finish(process, folder)
        assert code in (0, -signal.SIGKILL), told
        server.wait_until_left()
        now_kept, now_asked = kept(folder), len(server.calls)
        lost += now_asked - asked - (now_kept - before)
        before, asked = now_kept, now_asked
        assert 0 <= lost <= kill * concurrency  # in flight when it was killed
    return lost


def compare(tmp_path, moments, count):
    killer = Killer()
    with JudgeServer(killer) as server:
        for name in ("undisturbed", "killed"):
            write_inputs(tmp_path / name, count)
        finish(tmp_path / "undisturbed", server)
        needed = len(server.calls)
        assert needed == count
        lost = killed(server, killer, tmp_path / "killed", moments)
        killer.left = None
        finish(tmp_path / "killed", server)
        assert kept(tmp_path / "killed") == kept(tmp_path / "undisturbed") == needed
        assert len(server.calls) == 2 * needed + lost  # nothing on disk was asked again
    expected, spent = parts(tmp_path / "undisturbed" / "run")
    found, spent_last = parts(tmp_path / "killed" / "run")
    assert spent["calls"] == needed
    assert spent_last["calls"] + spent_last["from_cache"] == needed
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name] == expected[name], name
    assert sorted(p.name for p in (tmp_path / "killed").iterdir() if p.name.startswith(".")) == []


@pytest.mark.slow
def test_a_run_killed_twice_ends_as_if_it_had_not_been(tmp_path):
    compare(tmp_path, [(7, None), (9, 0.002)], 40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [50, 51])  # two halves, so that both cores have one
def test_a_run_killed_at_8_moments_ends_as_if_it_had_not_been(tmp_path, seed):
    draw = random.Random(seed)
    moments = [
        (draw.randint(1, 9), draw.choice([None, None, draw.uniform(0, 0.05), draw.uniform(0, 2)]))
        for _ in range(8)
    ]
    compare(tmp_path, moments, 150)
