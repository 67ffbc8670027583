"""Nodes, drivers and users that end a run in the middle: nothing is lost, nothing is paid twice."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import psutil
import pytest

import misslink
from ray_runs import said, write_towns

pytestmark = pytest.mark.slow
CONCURRENCY = 4
LONGEST_S = 300
COUNTING = """
from pathlib import Path
from plain import app as answer

def app(question):
    with Path("asked.txt").open("a") as file:
        file.write(question + "\\n")
    return answer(question)
"""


@pytest.fixture(autouse=True)
def towns(tmp_path, monkeypatch):
    """A folder of inputs as the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write_towns(tmp_path)
    (tmp_path / "counting.py").write_text(COUNTING, encoding="utf-8")
    return tmp_path


def start(server, *more):
    """The command in a process of its own, with a cluster of its own."""
    command = (
        "evaluate", "counting.py:app", "--goldset", "gold.jsonl", "--judge", "openai:test-judge",
        "--cache", "cache.sqlite", "--out", "run", "--concurrency", str(CONCURRENCY),
        "--engine", "ray", "--workers", "2", "--json", *more,
    )  # fmt: skip
    return subprocess.Popen(
        [Path(sys.executable).with_name("misslink"), *command],
        env={**os.environ, "OPENAI_BASE_URL": server.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kept():
    with sqlite3.connect("file:cache.sqlite?mode=ro", uri=True) as file:
        return file.execute("SELECT COUNT(*) FROM replies").fetchone()[0]


def paid_twice(server):
    """How many requests came that had come before, by all that they say."""
    said = Counter(json.dumps(call.body, sort_keys=True) for call in server.calls)
    return sum(said.values()) - len(said)


def at_call(number, act):
    """A script that acts when so many questions have come."""
    come = []
    lock = threading.Lock()

    def script(_):
        with lock:
            come.append(1)
            if len(come) != number:
                return
        act()

    return script


@pytest.fixture
def key(judge_server, monkeypatch):
    """The judge's key, which is in no file that Ray writes."""
    key = "sk-test-0123456789abcdef-only-here"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    judge_server.key = key
    before = set(Path("/tmp/ray").glob("session_*"))  # noqa: S108 (where Ray keeps its logs)
    yield key
    sessions = set(Path("/tmp/ray").glob("session_2*")) - before  # noqa: S108
    assert sessions
    written = [file for folder in sessions for file in folder.rglob("*") if file.is_file()]
    assert [str(file) for file in written if key.encode() in file.read_bytes()] == []


def test_a_killed_driver_leaves_no_process_and_the_same_command_goes_on(judge_server, key):
    found = {}

    def kill():
        found["processes"] = psutil.Process(process.pid).children(recursive=True)
        titles = {p: "".join(p.cmdline()) for p in found["processes"]}
        found["workers"] = [p for p, t in titles.items() if "ray::" in t and "Agent" not in t]
        process.send_signal(signal.SIGKILL)

    judge_server.script = at_call(5, kill)
    process = start(judge_server)
    _, told = process.communicate(timeout=LONGEST_S)
    assert process.returncode == -signal.SIGKILL, told
    assert len(found["workers"]) == 3  # the judge's process, too
    assert psutil.wait_procs(found["workers"], timeout=60)[1] == []
    paid = kept()
    assert 0 < paid <= len(judge_server.calls) <= paid + CONCURRENCY
    judge_server.script = None
    process = start(judge_server)
    printed, told = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, told
    document = json.loads(printed)
    assert document["judge"] == "openai:test-judge"
    assert key not in printed + told
    assert document["usage"]["from_cache"] == paid
    assert document["usage"]["calls"] + paid == kept()
    assert paid_twice(judge_server) <= CONCURRENCY  # what was out at that moment
    asked = Path("asked.txt").read_text(encoding="utf-8").splitlines()
    assert len(asked) == 12  # the kept traces are not asked for again
    # Ray's agents try for a minute to report their node's death.
    assert psutil.wait_procs(found["processes"], timeout=200)[1] == []


def test_ctrl_c_ends_with_the_usual_sentence_and_loses_nothing_that_was_paid(judge_server, key):
    judge_server.script = at_call(5, lambda: process.send_signal(signal.SIGINT))
    process = start(judge_server)
    printed, told = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 130
    assert printed == ""
    assert "misslink: interrupted; finished work is saved" in told
    assert "Traceback" not in told
    assert key not in told
    assert kept() == len(judge_server.calls)  # those in flight came home
    assert paid_twice(judge_server) == 0


@pytest.mark.usefixtures("imports_forgotten")
def test_a_run_whose_node_dies_says_what_it_would_have(two_nodes, judge_server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)

    def evaluate(out, **options):
        return misslink.evaluate(
            "counting.py:app", "gold.jsonl", judge="openai:test-judge", out=out,
            cache=f"{out}.sqlite", **options,
        )  # fmt: skip

    evaluate("local")
    node = two_nodes.add_node(num_cpus=2, object_store_memory=100 * 2**20)
    two_nodes.wait_for_nodes()
    judge_server.script = at_call(4, lambda: two_nodes.remove_node(node, allow_graceful=False))
    evaluate("ray", engine="ray", workers=6)
    assert node not in two_nodes.worker_nodes
    assert said("ray", usage=False) == said("local", usage=False)
