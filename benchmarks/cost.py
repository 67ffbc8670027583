"""What misslink costs, now and at commit 24c0066, beside the limits and the best other tool.

    python benchmarks/cost.py [--cases 2000] [--traces 600] [--write]

Both sources do the same work in turns on this machine (`cpu_budget.py` has the commands); a number
is the median of CPU seconds. The stages are those of `scale.py`: made-up cases whose judge is a
program, in CPU ms a case. What is not measured here is taken from its own page. With --write the
table goes to benchmarks/cost.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from cpu_budget import HERE, ROOT, STARTED, commands, extract, python_path, spent

TARGET = Path(__file__).with_suffix(".md")
EARLIER = "24c0066cb103cdaac400676eda09bcb4f48da53a"
ROUNDS, CHUNKS = 2, 5_000
RENAMED = {"earlier": {"heuristic": "embedded"}}
STAGES = ("reading", "level 1", "judge", "link", "writing")
# By the work: the unit, and the most that it may cost.
STAGE_LIMITS = {"judge": 1.5, "link": 0.5, "writing": 1.3, "whole": 3.6}
FULL_LIMITS = {"judge": 0.5}
OBJECTS = """
import json, sys
from pathlib import Path
import scale
print(json.dumps(scale.one(Path(sys.argv[1]))))
"""
FILES = """
import sys
from pathlib import Path
import scale
scale.made_up_files(Path(sys.argv[1]), int(sys.argv[2]))
"""
# Of 60 words of each chunk 48 are those of a template.
TEMPLATE = f"""
import random, time
from misslink.text.near_duplicates import flag_duplicates
draw = random.Random(3)
words = ["".join(draw.choices("bdfglmnprstvz", k=6)) for _ in range(5_000)]
head = " ".join(draw.choices(words, k=48))
texts = [head + " " + " ".join(draw.choices(words, k=12)) for _ in range({CHUNKS})]
start = time.process_time()
flag_duplicates(texts)
print(time.process_time() - start)
"""


class Row(NamedTuple):
    """A line of the table; a number that is not known is None."""

    work: str
    now: float | None
    earlier: float | None = None
    peer: str = ""
    limit: float | None = None

    @property
    def cells(self) -> list[str]:
        """The line as it is printed."""
        met = "" if self.limit is None or self.now is None else _yes(self.now <= self.limit)
        numbers = ("" if each is None else f"{each:.2f}" for each in (self.now, self.earlier))
        return [self.work, *numbers, self.peer, f"{self.limit or '':}", met]


def _yes(met: bool) -> str:
    return "yes" if met else "no"


def budget_rows(sources: dict[str, Path], cases: int, folder: Path) -> list[Row]:
    """The commands of the budget."""
    of, out = {}, {name: folder / f"budget-{name}" / "out" for name in sources}
    for name, source in sources.items():  # each with files of its own format
        for count in (STARTED, cases):
            (out[name].parent / str(count)).mkdir(parents=True)
            _python(source, FILES, str(out[name].parent / str(count)), str(count))
        of[name] = commands(out[name], cases)
        spent(source, of[name][f"evaluate {cases}, full cache"], out[name])
    rows = []
    for command in of["now"]:
        seconds: dict[str, list[float]] = {name: [] for name in sources}
        for _ in range(ROUNDS):
            for name, source in sources.items():
                line = [RENAMED.get(name, {}).get(part, part) for part in of[name][command]]
                seconds[name].append(spent(source, line, out[name]))
        medians = [statistics.median(each) for each in seconds.values()]
        rows.append(Row(f"{command}, CPU s", *medians, limit=1.4 if "start" in command else None))
    return rows


def stage_rows(sources: dict[str, Path], cases: int, folder: Path) -> list[Row]:
    """The stages with an empty and with a full cache, and the objects of the run."""
    told: dict[str, list[dict[str, Any]]] = {}
    for name, source in sources.items():
        own = folder / f"stages-{name}"
        own.mkdir()
        _python(source, FILES, str(own), str(cases))
        told[name] = [json.loads(_python(source, OBJECTS, str(own))) for _ in ("empty", "full")]
    rows = []
    for at, (cache, limits) in enumerate((("empty", STAGE_LIMITS), ("full", FULL_LIMITS))):
        costs = [[1000 * cpu / cases for cpu in each[at]["cpu"]] for each in told.values()]
        for stage, now, earlier in zip(
            (*STAGES, "whole"), *([*cost, sum(cost)] for cost in costs), strict=True
        ):
            work = f"{stage}, cache {cache}, CPU ms a case"
            rows.append(Row(work, now, earlier, limit=limits.get(stage)))
    kilobytes = told["now"][1]["objects"] / 1024
    return [*rows, Row("objects of a run in memory, kB a case", kilobytes, limit=35)]


def page_rows() -> list[Row]:
    """What other pages have measured."""
    page = (HERE / "judge" / "judge_throughput.md").read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in page.splitlines() if " | 32 | " in line]
    a_call = {row[0]: float(row[9]) for row in cells}
    bare = a_call["openai client alone"]
    peer = min(
        (
            name
            for name in a_call
            if name not in {"openai client alone", "misslink"} and not name.startswith("misslink")
        ),
        key=a_call.__getitem__,
    )
    wall = {row[0]: float(row[7]) for row in cells}
    fastest = f"{wall[peer]:.2f} ({peer})"
    ratio = f"{a_call[peer] / bare:.2f} ({peer})"
    return [
        Row(
            "client CPU a judge call at 32, over the bare client's",
            a_call["misslink"] / bare,
            peer=ratio,
            limit=1.5,
        ),
        Row("wall time at 32, over the ideal", wall["misslink"], peer=fastest, limit=1.15),
        *_rank_rows(),
    ]


def _rank_rows() -> list[Row]:
    page = (HERE / "retrieval" / "rank_metrics.md").read_text(encoding="utf-8")
    line = re.compile(r"^\| 100,000 \| ([a-zA-Z ]+) \| ([\d.]+) s.*? \| ([\d.]+) s", re.MULTILINE)
    return [
        Row(
            f"rank metrics of 100,000 queries, {form}, CPU s",
            float(own),
            peer=f"{peer} (pytrec_eval)",
        )
        for form, own, peer in line.findall(page)
    ]


def _python(source: Path, code: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": python_path(source), "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or each run would compile what changed
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, *arguments],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.splitlines()[-1] if done.stdout else ""


def text(rows: list[Row], cases: int) -> str:
    """The page."""
    load = os.getloadavg()[2]
    made = (
        f"Made by `python benchmarks/cost.py --write` on {dt.datetime.now(dt.UTC).date()}: "
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}; load "
        f"of the machine by other work {load:.0f}, so that the ratio of two columns says more than either."
    )
    about = (
        "Both sources do the same work in turns. The stages are those of [scale](pipeline/scale.md), of "
        f"{cases:,} made-up cases whose judge is a program. Rows without a number at 24c0066 and those of "
        "other tools are from [judge_throughput](judge/judge_throughput.md) and [rank_metrics](retrieval/rank_metrics.md), "
        "measured when these pages say."
    )
    head = ["work", "now", "24c0066", "best other tool", "limit", "met"]
    lines = [head, ["---", *["--:"] * 5], *(row.cells for row in rows)]
    table = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join(["# What it costs", "", made, "", about, "", *table, ""])


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--traces", type=int, default=600, help="of the commands")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        earlier = extract(EARLIER, folder / "earlier")
        if earlier is None:
            sys.exit(f"this clone lacks the commit {EARLIER}")
        sources = {"now": ROOT, "earlier": earlier}
        rows = budget_rows(sources, options.traces, folder)
        rows += stage_rows(sources, options.cases, folder)
        chunks = float(_python(ROOT, TEMPLATE))
        rows.append(Row(f"near-duplicates of {CHUNKS:,} templated chunks, CPU s", chunks, limit=20))
    page = text([*rows, *page_rows()], options.cases)
    sys.stdout.write(page)
    if options.write:
        TARGET.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
