"""Shards that are evaluated as tasks of a cluster come out as here, whatever becomes of workers."""

from pathlib import Path

import pytest

import misslink
from misslink.errors import EngineUnreachableError
from ray_runs import said

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("two_nodes", "imports_forgotten")]
PARTS = ("cases", "traces", "verdicts", "links")
# In place of the workers: they die while they link, so many times.
DYING = """
import os, signal
from pathlib import Path
from misslink.engines.ray.worker import RayWorker

class Dying(RayWorker):
    async def evaluate(self, sent, known):
        if sent.measured is not None and len(list(Path(FOLDER).glob("died-*"))) < TIMES:
            Path(FOLDER, f"died-{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().evaluate(sent, known)
"""


@pytest.fixture(autouse=True)
def towers(tmp_path, monkeypatch):
    """Twelve cases, every second of them without the passage that it needs; shards of five."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("misslink.pipeline.shards.SHARD_CASES", 5)
    gold, traces = [], []
    for number in range(12):
        shown = number if number % 2 else number + 100
        text = f"Tower {shown} is {shown + 20} m high."
        answer = f"Tower {number} is {number + 20} m high."
        question = f"How high is tower {number}?"
        relevant, references = {f"p{number}": 1}, (answer,)
        case = misslink.Case(
            id=f"c{number}", question=question, relevant=relevant, references=references
        )
        found = (misslink.Passage(id=f"p{shown}", rank=1, text=text),)
        gold.append(case)
        traces.append(misslink.Trace(case_id=case.id, answer=answer, retrieved=found))
    for name, items in (("gold", gold), ("traces", traces)):
        lines = "".join(item.model_dump_json(exclude_unset=True) + "\n" for item in items)
        Path(f"{name}.jsonl").write_text(lines, encoding="utf-8")


def evaluate(engine, out=None, **options):
    return misslink.evaluate(
        goldset="gold.jsonl", traces="traces.jsonl", judge="heuristic", out=out or engine,
        cache=f"{out or engine}.sqlite", engine=engine,
        workers=2 if engine == "ray" else None, **options,
    )  # fmt: skip


def parts(out):
    return [Path(out, f"{name}.jsonl").read_bytes() for name in PARTS]


def dying(monkeypatch, folder, times):
    namespace = {"__name__": "__main__", "FOLDER": str(folder), "TIMES": times}
    exec(DYING, namespace)  # noqa: S102 (so that it is sent by value)
    monkeypatch.setattr("misslink.engines.ray.engine.RayWorker", namespace["Dying"])


def test_a_worker_that_dies_while_it_links_changes_nothing(tmp_path, monkeypatch):
    evaluate("local")
    dying(monkeypatch, tmp_path, 2)
    evaluate("ray")
    assert len(list(tmp_path.glob("died-*"))) == 2
    assert parts("ray") == parts("local")
    assert said("ray") == said("local")


def test_a_shard_that_kills_every_worker_ends_the_run_and_what_is_judged_stays(
    tmp_path, monkeypatch
):
    evaluate("local")
    with monkeypatch.context() as patch:
        dying(patch, tmp_path, 99)
        with pytest.raises(EngineUnreachableError, match=r"cases 'c\d+' to 'c\d+'"):
            evaluate("ray")
    assert not Path("ray").exists()
    record = Path(".ray.misslink-partial", "verdicts.shards").read_text(encoding="utf-8")
    assert len(record.splitlines()) == 3
    Path("ray.sqlite").unlink()
    run = evaluate("ray")
    assert run.summary["usage"]["calls"] == 0
    assert parts("ray") == parts("local")
