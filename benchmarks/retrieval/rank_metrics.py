"""Rank metrics against the peers: CPU seconds, peak extra memory, and the same values.

    python benchmarks/retrieval/rank_metrics.py [--peers PYTHON] [--queries 1000 10000 100000] [--repeats 3]
        [--timeout 400] [--curve 100] [--keep FILE] [--write]

Made-up qrels (8 judged documents a query, graded 0 to 2, 5 of them retrieved) and a run of 100
documents a query, 14 metrics of every query and their means. Every measurement is a process of its
own, the libraries take turns; the least CPU time and the most memory of repeats count. Turning
lists, scored dicts, pandas frames or files into what a library reads is part of it; importing the library
and a first run on ten queries (in which numba compiles) are not, and stand in the column 'start'.
The values of every query agree to 1e-9 between all libraries, or the benchmark fails. A library
that gives no result within the time limit, or was not measured, has none. PYTHON is an
interpreter that has ranx, pytrec-eval-terrier and ir-measures (extra 'bench'). FILE keeps each
measurement as a line and what it holds counts too, so that a long benchmark is done in parts.
--write makes benchmarks/retrieval/rank_metrics.md, and with it the lines between the markers of README.md.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime as dt
import gc
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import rank_metrics_libraries as libraries
from rank_metrics_libraries import CURVE, FORMS, OURS, SEED, Scores, in_form, made_up

TARGET = Path(__file__).with_suffix(".md")
README = Path(__file__).parents[2] / "README.md"
MARKS = "<!-- rank metrics -->", "<!-- /rank metrics -->"
LIBRARIES = ("misslink", "pytrec_eval", "ir_measures", "ranx")
PACKAGES = {"pytrec_eval": "pytrec-eval-terrier", "ir_measures": "ir-measures"}


def one(library: str, form: str, queries: int, save: Path) -> None:
    """Measure once, in this process."""
    compute: Callable[..., Scores] = getattr(libraries, library)
    start = time.process_time()
    compute(form, *in_form(form, *made_up(10)))
    warm = time.process_time() - start
    qrels, run = in_form(form, *made_up(queries))
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what making the data left free is no room for the library
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of making the data
    start = time.process_time()
    names, means, value = compute(form, qrels, run)
    spent = time.process_time() - start
    extra = _memory("VmHWM") - before
    asked = random.Random(SEED).sample(range(queries), min(queries, 2_000))  # noqa: S311
    values = {f"q{n}": [value(f"q{n}", at) for at in range(len(names))] for n in asked}
    save.write_text(json.dumps({"means": means, "values": values}))
    print(json.dumps({"cpu": spent, "extra": extra, "start": warm}))


def _memory(what: str) -> float:
    """Resident or peak memory of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"the system does not tell {what}")


def measured(python: str, library: str, form: str, queries: int, timeout: int) -> Any:
    """Measure in a process of its own; None where it took too long."""
    with tempfile.TemporaryDirectory() as folder:
        save = Path(folder) / "values.json"
        command = [python, __file__, "--one", library, form, str(queries), str(save)]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            said = subprocess.run(  # noqa: S603
                command,
                check=True,
                capture_output=True,
                text=True,
                timeout=timeout,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            return None
        except subprocess.CalledProcessError as problem:
            raise SystemExit(f"{library}, {form}: {problem.stderr[-2000:]}") from None
        return json.loads(said.stdout.splitlines()[-1]), json.loads(save.read_text())


def agree(ours: dict[str, Any], theirs: dict[str, Any], library: str) -> None:
    """Compare all means and values that both have."""
    for name, mean in theirs["means"].items():
        assert abs(mean - ours["means"][name]) < 1e-9, (library, name)
    for query, values in theirs["values"].items():
        for at, value in enumerate(values):
            assert abs(value - ours["values"][query][at]) < 1e-9, (library, query, OURS[at])


def main() -> None:
    """Measure all, in turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", nargs=4, metavar=("LIBRARY", "FORM", "QUERIES", "FILE"))
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--queries", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=int, default=400)
    parser.add_argument("--curve", type=int, default=100, help="cut-offs of the curve; 0: none")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.one:
        library, form, queries, save = options.one
        one(library, form, int(queries), Path(save))
        return
    if not Path(options.peers).is_file():
        parser.error(f"--peers {options.peers} is no interpreter")
    table: dict[tuple[int, str, str], dict[str, float]] = {}
    if options.keep and options.keep.exists():
        for line in options.keep.read_text().splitlines():
            enter(table, *json.loads(line))
    for queries in options.queries:
        late: set[tuple[str, str]] = set()
        for _ in range(options.repeats):
            for form in FORMS:
                turn(table, queries, form, late, options)
            for cutoffs in (1, options.curve) if options.curve else ():
                curve(table, queries, cutoffs, options)
    written(table, options)


def turn(
    table: dict[tuple[int, str, str], dict[str, float]],
    queries: int,
    form: str,
    late: set[tuple[str, str]],
    options: Any,
) -> None:
    """Let every library have its turn, and compare what they say."""
    ours: dict[str, Any] = {}
    for library in LIBRARIES:
        if (form, library) in late:
            continue
        python = sys.executable if library == "misslink" else options.peers
        found = measured(python, library, form, queries, options.timeout)
        if found is None:
            late.add((form, library))
            continue
        cost, values = found
        ours = ours or values
        agree(ours, values, library)
        keep(table, [queries, form, library], cost, options)


def curve(
    table: dict[tuple[int, str, str], dict[str, float]], queries: int, cutoffs: int, options: Any
) -> None:
    """Let ours compute a metric at every cut-off from 1, from a frame."""
    form = f"{CURVE}{cutoffs}"
    found = measured(sys.executable, "misslink", form, queries, options.timeout)
    if found is not None:
        keep(table, [queries, form, "misslink"], found[0], options)


def keep(
    table: dict[tuple[int, str, str], dict[str, float]],
    key: list[Any],
    cost: dict[str, float],
    options: Any,
) -> None:
    """Enter a measurement, and write it down where asked."""
    enter(table, key, cost)
    line = json.dumps([key, cost])
    print(line, file=sys.stderr, flush=True)
    if options.keep:
        with options.keep.open("a") as file:
            file.write(line + "\n")


def enter(
    table: dict[tuple[int, str, str], dict[str, float]], key: list[Any], cost: dict[str, float]
) -> None:
    """Keep the least time and the most memory."""
    queries, form, library = key
    known = table.setdefault((queries, form, library), cost)
    table[queries, form, library] = {
        name: (max if name == "extra" else min)(known[name], cost[name]) for name in cost
    }


def written(table: dict[tuple[int, str, str], dict[str, float]], options: Any) -> None:
    """Print the table, and put it into the page and the README where asked."""
    lines = rows(table, options)
    start: dict[str, float] = {}
    for (_, _, library), cost in table.items():
        start[library] = min(start.get(library, cost["start"]), cost["start"])
    starts = ", ".join(f"{name} {start[name]:.1f} s" for name in LIBRARIES if name in start)
    where = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    about = __doc__.partition("[--write]\n\n")[2].partition(" PYTHON is")[0]
    made = f"Made by `python benchmarks/retrieval/rank_metrics.py --write` on {dt.datetime.now(dt.UTC).date()}"
    page = "\n".join(
        [
            "# Rank metrics against the peers\n",
            f"{made}: {where}, misslink {version('misslink')}, {versions(options.peers)}.\n",
            about.replace("are not, and stand in the column 'start'.", "are not (see below)."),
            "\nCPU seconds and peak extra memory:\n",
            *lines,
            f"\nImport and first run: {starts}.",
            "ranx computes 13 of the 14 metrics: its bpref is another than trec_eval's.\n",
            *curve_lines(table, options),
        ]
    )
    print(page)
    if options.write:
        TARGET.write_text(page, encoding="utf-8")
        readme = README.read_text(encoding="utf-8")
        before, start_mark, rest = readme.partition(MARKS[0])
        _, end_mark, after = rest.partition(MARKS[1])
        if start_mark and end_mark:
            shown = "\n".join(["", *lines, ""])
            README.write_text(before + start_mark + shown + end_mark + after, encoding="utf-8")


def rows(table: dict[tuple[int, str, str], dict[str, float]], options: Any) -> list[str]:
    """The table's lines."""
    lines = [
        "| queries | from | " + " | ".join(LIBRARIES) + " |",
        "| --: | --- |" + " --: |" * len(LIBRARIES),
    ]
    for queries in options.queries:
        for form in FORMS:
            cells = []
            for library in LIBRARIES:
                cost = table.get((queries, form, library))
                said = f"{cost['cpu']:.2f} s, {max(cost['extra'], 0):.0f} MB" if cost else "none"
                cells.append(said)
            lines.append(f"| {queries:,} | {form} | " + " | ".join(cells) + " |")
    return lines


def curve_lines(table: dict[tuple[int, str, str], dict[str, float]], options: Any) -> list[str]:
    """What every cut-off at once costs beyond a single one."""
    lines = [
        f"Ours from frames: recall@1 alone, and recall@k at every k from 1 to {options.curve}.\n",
        f"| queries | k = 1 | k = 1 to {options.curve} |",
        "| --: | --: | --: |",
    ]
    found = []
    for queries in options.queries:
        forms = (f"{CURVE}{cutoffs}" for cutoffs in (1, options.curve))
        costs = [table.get((queries, form, "misslink")) for form in forms]
        if all(costs):
            told = " | ".join(f"{cost['cpu']:.2f} s" for cost in costs if cost)
            found.append(f"| {queries:,} | {told} |")
    return [*lines, *found, ""] if found else []


def versions(python: str) -> str:
    """The peers and their versions."""
    ask = "import importlib.metadata as m, sys; print(*map(m.version, sys.argv[1:]))"
    packages = [PACKAGES.get(name, name) for name in LIBRARIES[1:]]
    said = subprocess.run(  # noqa: S603
        [python, "-c", ask, *packages], check=True, capture_output=True, text=True
    )
    return ", ".join(
        f"{name} {own}" for name, own in zip(packages, said.stdout.split(), strict=True)
    )


if __name__ == "__main__":
    main()
