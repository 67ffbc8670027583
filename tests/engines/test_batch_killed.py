"""kill -9 at every step of a batch, then the same call: nothing is submitted or paid twice."""

import os
import signal
from multiprocessing.connection import wait
from pathlib import Path

import pytest

import warm_program
from batch_server import BatchServer
from judge_faults import Reset
from killed_runs import kept, parts, write_inputs

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX's")

CALL = """
import logging, sys
import misslink
from misslink.engines.batch import BatchEngine
from misslink.judge.batch.queue import BatchTiming

logging.basicConfig(level=logging.WARNING)
misslink.evaluate(
    goldset="gold.jsonl", traces="traces.jsonl", judge="openai:test-judge",
    cache="cache.sqlite", out="run", engine=BatchEngine(BatchTiming(0, 0, 0)),
    judge_config=misslink.JudgeConfig(base_url=sys.argv[1], api_key="k"),
)
"""
CASES = 60
STEPS = {  # when the signal is sent: before or after a request is carried out, and which
    "before the upload": ("meddle", "POST", "/v1/files"),
    "after the upload": ("late", "POST", "/v1/files"),
    "before it is made": ("meddle", "POST", "/v1/batches"),
    "after it is made, untold": ("late", "POST", "/v1/batches"),
    "looking": ("late", "GET", "/v1/batches/batch_0"),
    "before it is read": ("meddle", "GET", "/content"),
}


def kill(process):
    process.kill()
    wait([process.sentinel])  # the test's own thread joins it


class Killer:
    """Kills the process, once, at a step; `half` sends it the first half of a file before."""

    def __init__(self, server, step):
        self.process = None
        when, self._method, self._path = STEPS.get(step, ("meddle", "GET", "/content"))
        self._server, self._half = server, step not in STEPS
        setattr(server, when, self)

    def __call__(self, method, path):
        if self.process is None or (method, path[-len(self._path) :]) != (self._method, self._path):
            return None
        process, self.process = self.process, None
        if self._half:
            content = self._server.files[path.split("/")[3]]
            return 200, {}, self._pieces(process, content)
        kill(process)
        raise Reset

    def _pieces(self, process, content):
        yield content[: len(content) // 2]
        while kept(Path(self.folder)) < 10:  # until some of it is in the cache
            if not process.is_alive():
                raise AssertionError("it ended by itself")
        kill(process)
        yield content[len(content) // 2 :]


def run(folder, server, killer=None):
    """The call in its own process; whether it came to its end."""
    process = warm_program.start(["-c", CALL, server.url], folder, "python", OPENAI_API_KEY="k")
    if killer is not None:
        killer.folder, killer.process = folder, process
    code, told = warm_program.finish(process, folder)
    assert code in (0, -signal.SIGKILL), told
    return code == 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folder of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed") / "whole"
    write_inputs(folder, CASES)
    with BatchServer() as server:
        assert run(folder, server)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("step", [*STEPS, "in the middle of reading"])
def test_a_run_killed_at_any_step_goes_on_as_if_it_had_not_been(tmp_path, step, undisturbed):
    with BatchServer() as server:
        write_inputs(tmp_path / "killed", CASES)
        assert not run(tmp_path / "killed", server, Killer(server, step))
        assert run(tmp_path / "killed", server)
        assert len(server.batches) == 1
        assert set(server.asked.values()) == {1}
        assert len(server.calls) == 1
    assert kept(tmp_path / "killed") == kept(undisturbed) == CASES
    expected, _ = parts(undisturbed / "run")
    found, _ = parts(tmp_path / "killed" / "run")
    for name in ("verdicts.jsonl", "links.jsonl", "cases.jsonl", "traces.jsonl"):
        assert found[name] == expected[name], name
