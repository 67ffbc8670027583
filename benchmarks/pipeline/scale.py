"""A whole run as it grows: time by stage, and memory, of 10,000 and 100,000 cases.

    python benchmarks/pipeline/scale.py [--cases 10000 100000] [--judge heuristic] [--write]

Made-up cases (those of `made_up_run.py`: five passages of about 1,000 characters of a corpus of
4,000, answers of five sentences, one reference answer, one case in three a miss) as files of a gold
set and of traces. First they are evaluated with an empty cache by a judge that is a program and
looks each sentence up in the passages; then, in a process of its own whose figures these are, once
more with the cache full, so that what is measured is misslink alone: reading, rank metrics,
judging, linking, estimates, run folder and page. A stage's time runs from its first case to that of
the next stage, and 'writing' is what comes after linking: estimates, map, files, page. With --write
the table goes to benchmarks/pipeline/scale.md, and its figures to scale.json; --judge heuristic takes the
judge without a model in the program's place, and its table is printed only.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

sys.path.append(str(Path(__file__).parents[1] / "builders"))

from made_up_run import made_up_files
from misslink import evaluate
from misslink.parts import light_items
from program_judge import Program

TARGET = Path(__file__).with_suffix(".md")
STAGES = ("reading", "level 1", "judge", "link", "writing")
MB = 2**20


def one(folder: Path, judge: str = "program") -> dict[str, Any]:
    """Evaluate the files of a folder in this process; seconds of CPU and wall by stage."""
    begun = {"reading": _now()}

    def progress(stage: str, done: int, total: int) -> None:
        if stage not in begun:
            begun[stage] = _now()
        if stage == "link" and done == total:
            begun["writing"] = _now()

    run = evaluate(
        goldset=folder / "gold.jsonl",
        traces=folder / "traces.jsonl",
        judge=Program() if judge == "program" else judge,
        cache=folder / "cache.sqlite",
        out=folder / "run",
        embedding="none",
        progress=progress,
    )
    begun["end"] = _now()
    marks = [begun[stage] for stage in (*STAGES, "end")]
    usage, parts = run.summary["usage"], (run.cases, run.traces, run.verdicts, run.links)
    return {
        "cpu": [after[0] - before[0] for before, after in itertools.pairwise(marks)],
        "wall": [after[1] - before[1] for before, after in itertools.pairwise(marks)],
        "peaks": [mark[2] for mark in marks[1:]],
        "calls": usage["calls"],
        "from_cache": usage["from_cache"],
        "tokens": [usage["prompt_tokens"], usage["completion_tokens"]],
        "cache": (folder / "cache.sqlite").stat().st_size / MB,
        "run": sum(file.stat().st_size for file in (folder / "run").iterdir()) / MB,
        "objects": _object_bytes(*map(light_items, parts)) / len(run.cases),
    }


def _object_bytes(*parts: object) -> int:
    """Bytes of the objects of a run that are held, each counted once."""
    waiting, counted, total = list(parts), set[int](), 0
    while waiting:
        item = waiting.pop()
        if id(item) in counted:
            continue
        counted.add(id(item))
        total += sys.getsizeof(item)
        if isinstance(item, BaseModel):
            waiting += (item.__dict__, item.model_fields_set)
        elif isinstance(item, dict):
            waiting += (*item, *item.values())
        elif isinstance(item, tuple | list | set):
            waiting += item
    return total


def _now() -> tuple[float, float, float]:
    """CPU seconds, wall seconds, and the most memory so far in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return time.process_time(), time.monotonic(), peak


def measured(cases: int, judge: str) -> dict[str, Any]:
    """Fill the cache, then measure with it full, each in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made_up_files(folder, cases)
        for _ in ("filling", "measured"):
            command = [sys.executable, __file__, "--one", name, "--judge", judge]
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
            row: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
            if not row["from_cache"]:
                filled = row
        assert row["calls"] == 0, "the cache was not full"
        first = {"wall": sum(filled["wall"]), "cpu": sum(filled["cpu"])}
        told = {name: filled[name] for name in ("calls", "tokens")}
        return {**row, "cases": cases, "cores": os.cpu_count(), "filling": {**first, **told}}


def text(rows: list[dict[str, Any]]) -> str:
    """The page, from what was measured."""
    table = {
        "": [f"{row['cases']:,} cases" for row in rows],
        "---": ["--:" for _ in rows],
        **{
            f"{stage}, CPU s": [f"{row['cpu'][at]:.1f}" for row in rows]
            for at, stage in enumerate(STAGES)
        },
        "all of it, CPU s": [f"{sum(row['cpu']):.1f}" for row in rows],
        "all of it, wall s": [f"{sum(row['wall']):.1f}" for row in rows],
        "CPU ms a case": [f"{1000 * sum(row['cpu']) / row['cases']:.2f}" for row in rows],
        **{
            f"peak memory after {stage}, MB": [f"{row['peaks'][at]:,.0f}" for row in rows]
            for at, stage in enumerate(STAGES)
        },
        "at the end, kB a case": [f"{1024 * row['peaks'][-1] / row['cases']:.0f}" for row in rows],
        "cache, MB": [f"{row['cache']:,.0f}" for row in rows],
        "run folder, MB": [f"{row['run']:,.0f}" for row in rows],
        "with an empty cache, CPU s": [f"{row['filling']['cpu']:.1f}" for row in rows],
    }
    meaning = (__doc__ or "").split("\n\n", 2)[2].split(" With --write")[0].strip()
    today = dt.datetime.now().astimezone().date()
    made = (
        f"Made by `python benchmarks/pipeline/scale.py --write` on {today}: {os.cpu_count()} cores "
        f"({platform.machine()}), Python {platform.python_version()}."
    )
    lines = [f"| {name} | {' | '.join(cells)} |" for name, cells in table.items()]
    return "\n".join(["# A whole run as it grows", "", made, "", meaning, "", *lines, ""])


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--one", type=Path)
    parser.add_argument("--judge", choices=("program", "heuristic"), default="program")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.one:
        sys.stdout.write(json.dumps(one(options.one, options.judge)) + "\n")
        return
    rows = [measured(cases, options.judge) for cases in options.cases]
    page = text(rows)
    sys.stdout.write(page)
    if options.write and options.judge == "program":
        TARGET.write_text(page, encoding="utf-8")
        # For docs/make_scale.py.
        TARGET.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
