"""A run goes on, shard by shard, where it was ended; nothing is made twice, and nothing is lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import misslink
import misslink.pipeline.shards
from misslink.errors import InputError

CASES = 10
PARTS = ("cases", "traces", "verdicts", "links")
JUDGE = """
from misslink.judge.config import JudgeConfig
from misslink.judge.session import create_judge


class Counting:
    name = "counting"
    identity = {"judge": "counting"}

    def __init__(self):
        self.inner = create_judge("heuristic", JudgeConfig())

    async def ask(self, ask):
        with open("asked.txt", "a") as file:
            file.write(ask.key + "\\n")
        return await self.inner.ask(ask)

    async def close(self):
        pass
"""
RUN = """
import os, signal, sys
import misslink.engines.shard, misslink.pipeline.shards
misslink.engines.shard.SHARD_CASES = misslink.pipeline.shards.SHARD_CASES = 2
stage, last = sys.argv[1], int(sys.argv[2])

def progress(at, done, total):
    if at == stage and done == last:
        os.kill(os.getpid(), signal.SIGKILL)

misslink.evaluate(
    goldset="gold.jsonl", traces="traces.jsonl", judge="judge.py:Counting", cache=None,
    out="run", concurrency=1, progress=progress,
)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Ten cases, every second of them without the passage it needs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("misslink.pipeline.shards.SHARD_CASES", 2)
    monkeypatch.setattr("misslink.engines.shard.SHARD_CASES", 2)
    gold, traces = [], []
    for number in range(CASES):
        gold.append(
            misslink.Case(
                id=f"c{number}", question=f"How high is tower {number}?",
                relevant={f"p{number}": 1}, references=(f"Tower {number} is {number + 20} m high.",),
            )
        )  # fmt: skip
        shown = number if number % 2 else number + 100
        text = f"Tower {shown} is {shown + 20} m high."
        traces.append(
            misslink.Trace(
                case_id=f"c{number}", answer=f"Tower {number} is {number + 20} m high.",
                retrieved=(misslink.Passage(id=f"p{shown}", rank=1, text=text),),
            )
        )  # fmt: skip
    for name, items in (("gold", gold), ("traces", traces)):
        lines = "".join(item.model_dump_json(exclude_unset=True) + "\n" for item in items)
        Path(f"{name}.jsonl").write_text(lines, encoding="utf-8")
    Path("judge.py").write_text(JUDGE, encoding="utf-8")
    return tmp_path


def evaluate(out="run"):
    return misslink.evaluate(
        goldset="gold.jsonl", traces="traces.jsonl", judge="judge.py:Counting", cache=None,
        out=out, concurrency=1,
    )  # fmt: skip


def parts(out):
    return [Path(out, f"{name}.jsonl").read_bytes() for name in PARTS]


def test_a_concurrency_beyond_the_cases_makes_no_more_tasks(monkeypatch):
    """Found: ten thousand million filled the memory with tasks that had nothing to do."""
    made, turns = [], misslink.pipeline.shards.Turns
    monkeypatch.setattr(
        "misslink.pipeline.shards.Turns",
        lambda at_once, done: made.append(at_once) or turns(at_once, done),
    )
    run = misslink.evaluate(
        goldset="gold.jsonl", traces="traces.jsonl", judge="heuristic", cache=None,
        concurrency=10**10,
    )  # fmt: skip
    assert made == [CASES, CASES]
    assert len(run.links) == CASES


def asked():
    lines = Path("asked.txt").read_text(encoding="utf-8").splitlines()
    Path("asked.txt").unlink()
    return lines


def killed(stage, done):
    process = subprocess.run([sys.executable, "-c", RUN, stage, str(done)], check=False)
    assert process.returncode == -signal.SIGKILL
    assert not Path("run").exists()
    return asked()


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "done"), [("judge", 7), ("link", 7), ("link", CASES)])
def test_a_killed_run_goes_on_by_shards(stage, done):
    evaluate("whole")
    whole = asked()
    before = killed(stage, done)
    evaluate()
    again = asked() if Path("asked.txt").exists() else []
    assert parts("run") == parts("whole")
    assert set(before) | set(again) == set(whole)
    # At most one shard of two cases under way, and one that had begun, are asked about again.
    assert len(before) + len(again) <= len(whole) + 4 * len(whole) // CASES
    assert not Path(".run.misslink-partial").exists()


def stopped_at(done, stage="judge", out="run"):
    """A run in this process that its reader ends: what is written stays."""

    def progress(at, number, total):
        if at == stage and number == done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        misslink.evaluate(
            goldset="gold.jsonl", traces="traces.jsonl", judge="judge.py:Counting", cache=None,
            out=out, concurrency=1, progress=progress,
        )  # fmt: skip
    assert not Path(out).exists()
    return asked()


def test_what_was_judged_is_not_judged_again():
    evaluate("whole")
    whole = asked()
    before = stopped_at(7)
    evaluate()
    again = asked()
    assert parts("run") == parts("whole")
    assert set(before) | set(again) == set(whole)
    assert len(again) < len(whole)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["broken", "cut", "gone", "record"])
def test_a_damaged_shard_is_made_again(damage):
    evaluate("whole")
    asked()
    stopped_at(9)
    partial = Path(".run.misslink-partial")
    file, record = partial / "run" / "verdicts.jsonl", partial / "verdicts.shards"
    assert len(record.read_text().splitlines()) >= 3
    if damage == "broken":
        text = file.read_bytes()
        file.write_bytes(text[:300] + b"}" + text[301:])
    elif damage == "cut":
        os.truncate(file, file.stat().st_size // 2)
    elif damage == "gone":
        file.unlink()
    else:
        record.write_bytes(b"\xff nothing\n" + record.read_bytes())
    evaluate()
    assert parts("run") == parts("whole")


def test_a_shard_of_another_trace_is_made_again():
    stopped_at(9)
    lines = Path("traces.jsonl").read_text(encoding="utf-8").splitlines()
    lines[0] = lines[0].replace("Tower 0 is 20", "Tower 0 is 77")
    Path("traces.jsonl").write_text("\n".join(lines), encoding="utf-8")
    evaluate()
    run = asked()
    evaluate("whole")
    assert len(run) == len(asked())
    assert parts("run") == parts("whole")


def test_a_disk_that_fills_up_is_a_sentence_and_the_run_goes_on(monkeypatch):
    evaluate("whole")
    whole = asked()
    real = misslink.parts.PartWriter.add_shard

    def add_shard(self, key, items, *, whole):
        if len(self._lines) == 2:
            self._file.close()
            self._file = Path("/dev/full").open("w+b", buffering=0)  # noqa: SIM115
        real(self, key, items, whole=whole)

    with monkeypatch.context() as patch:
        patch.setattr("misslink.parts.PartWriter.add_shard", add_shard)
        with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
            evaluate()
    assert not Path("run").exists()
    before = asked()
    evaluate()
    again = asked()
    assert parts("run") == parts("whole")
    assert set(before) | set(again) == set(whole)
    assert len(again) < len(whole)
