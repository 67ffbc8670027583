"""Rank metrics against the peers: CPU seconds, peak extra memory, and the same values.

    python benchmarks/rank_metrics.py [--peers PYTHON] [--queries 1000 10000 100000] [--repeats 3]
        [--timeout 400] [--keep FILE] [--write]

Made-up qrels (8 judged documents a query, graded 0 to 2, 5 of them retrieved) and a run of 100
documents a query, 14 metrics of every query and their means. Every measurement is a process of its
own, the libraries take turns, and the least CPU time of the repeats counts. Turning lists, scored
dicts or pandas frames into what a library reads is part of it; importing the library and a first
run on ten queries (in which numba compiles) are not, and stand in the column 'start'. The values of
every query agree to 1e-9 between all libraries, or the benchmark fails. PYTHON is an interpreter
that has ranx, pytrec-eval-terrier and ir-measures (extra 'bench'). FILE keeps each measurement as a
line and what it holds counts too, so that a long benchmark is done in parts. --write makes
benchmarks/rank_metrics.md, and with it the lines between the markers of README.md.
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
from itertools import chain
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_suffix(".md")
README = Path(__file__).parents[1] / "README.md"
MARK = "<!-- rank metrics -->"
SEED = 20261122
DEPTH, COLLECTION = 100, 5_000_000
FORMS = ("lists", "scored dicts", "frames")
LIBRARIES = ("misslink", "pytrec_eval", "ir_measures", "ranx")
PACKAGES = {"pytrec_eval": "pytrec-eval-terrier", "ir_measures": "ir-measures"}
OURS = [
    *("hit@1", "hit@10", "mrr", "recall@10", "recall@100", "precision@5", "precision@10"),
    *("ndcg@5", "ndcg@10", "ndcg@100", "map", "map@10", "r-precision", "bpref"),
]
TREC = [
    *("success_1", "success_10", "recip_rank", "recall_10", "recall_100", "P_5", "P_10"),
    *("ndcg_cut_5", "ndcg_cut_10", "ndcg_cut_100", "map", "map_cut_10", "Rprec", "bpref"),
]
IR = [
    *("Success@1", "Success@10", "RR", "R@10", "R@100", "P@5", "P@10"),
    *("nDCG@5", "nDCG@10", "nDCG@100", "AP", "AP@10", "Rprec", "Bpref"),
]
RANX = [
    *("hit_rate@1", "hit_rate@10", "mrr", "recall@10", "recall@100", "precision@5"),
    *("precision@10", "ndcg@5", "ndcg@10", "ndcg@100", "map", "map@10", "r-precision"),
]  # its bpref divides otherwise than trec_eval's, so it computes 13
Scores = tuple[list[str], dict[str, float], Callable[[str, int], float]]


def made_up(queries: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Draw qrels and a run, documents best first, no two scores of a query equal."""
    draw = random.Random(SEED)  # noqa: S311
    qrels, run = {}, {}
    for number in range(queries):
        found = draw.sample(range(COLLECTION), DEPTH + 3)
        documents = [f"doc{each}" for each in found[:DEPTH]]
        run[f"q{number}"] = {name: float(DEPTH - at) for at, name in enumerate(documents)}
        judged = [*draw.sample(documents, 5), *(f"doc{each}" for each in found[DEPTH:])]
        grades = [2, 1, *draw.choices((0, 1, 2), k=6)]
        qrels[f"q{number}"] = dict(zip(judged, grades, strict=True))
    return qrels, run


def in_form(form: str, qrels: dict[str, Any], run: dict[str, Any]) -> tuple[Any, Any]:
    """Turn both into the form that is given to a library."""
    if form == "scored dicts":
        return qrels, run
    if form == "lists":
        return qrels, {query: list(documents) for query, documents in run.items()}
    import pandas as pd

    def frame(mapping: dict[str, dict[str, Any]], number: str) -> Any:
        return pd.DataFrame(
            {
                "query_id": [query for query, each in mapping.items() for _ in each],
                "doc_id": list(chain.from_iterable(mapping.values())),
                number: [own for each in mapping.values() for own in each.values()],
            }
        )

    return frame(qrels, "relevance"), frame(run, "score")


def as_dicts(form: str, qrels: Any, run: Any) -> tuple[Any, Any]:
    """What the peers read, made as fast as plain Python does it."""
    if form == "lists":
        return qrels, {
            query: {name: float(-at) for at, name in enumerate(names)}
            for query, names in run.items()
        }
    if form == "frames":
        both = []
        for frame, number in ((qrels, "relevance"), (run, "score")):
            made: dict[str, dict[str, Any]] = {}
            columns = (frame[name].tolist() for name in ("query_id", "doc_id", number))
            for query, document, own in zip(*columns, strict=True):
                made.setdefault(query, {})[document] = own
            both.append(made)
        return both[0], both[1]
    return qrels, run


def misslink(_: str, qrels: Any, run: Any) -> Scores:
    """Ours."""
    from misslink.retrieval.ranking import rank

    scores = rank(qrels, run, OURS)
    place = {query: at for at, query in enumerate(scores.queries)}
    means = {name: mean for name, mean in scores.means().items() if mean is not None}
    return OURS, means, lambda query, at: float(scores.of(OURS[at])[0][place[query]])


def pytrec_eval(form: str, qrels: Any, run: Any) -> Scores:
    """pytrec-eval-terrier, its means by NumPy."""
    import numpy as np
    import pytrec_eval as library

    qrels, run = as_dicts(form, qrels, run)
    found = library.RelevanceEvaluator(qrels, set(TREC)).evaluate(run)
    means = {
        own: float(np.mean([each[name] for each in found.values()]))
        for own, name in zip(OURS, TREC, strict=True)
    }
    return OURS, means, lambda query, at: float(found[query][TREC[at]])


def ir_measures(form: str, qrels: Any, run: Any) -> Scores:
    """ir-measures; it reads frames as they are."""
    import ir_measures as library

    if form == "lists":
        qrels, run = as_dicts(form, qrels, run)
    measures = [library.parse_measure(name) for name in IR]
    means, values = library.calc(measures, qrels, run)
    by_name: dict[tuple[str, str], float] = {
        (each.query_id, str(each.measure)): each.value for each in values
    }
    own = {name: means[measure] for name, measure in zip(OURS, measures, strict=True)}
    return OURS, own, lambda query, at: by_name[query, str(measures[at])]


def ranx(form: str, qrels: Any, run: Any) -> Scores:
    """ranx; it reads frames as they are."""
    import ranx as library

    if form == "frames":  # it takes text of no other type than object
        text = {"query_id": object, "doc_id": object}
        judged = library.Qrels.from_df(qrels.astype(text), "query_id", "doc_id", "relevance")
        ranked = library.Run.from_df(run.astype(text), "query_id", "doc_id", "score")
    else:
        qrels, run = as_dicts(form, qrels, run)
        judged, ranked = library.Qrels(qrels), library.Run(run)
    means = library.evaluate(judged, ranked, RANX)
    scores = ranked.scores
    names = OURS[: len(RANX)]
    own = {name: float(means[theirs]) for name, theirs in zip(names, RANX, strict=True)}
    return names, own, lambda query, at: float(scores[RANX[at]][query])


def one(library: str, form: str, queries: int, save: Path) -> None:
    """Measure once, in this process."""
    compute: Callable[..., Scores] = globals()[library]
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
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.one:
        library, form, queries, save = options.one
        one(library, form, int(queries), Path(save))
        return
    table: dict[tuple[int, str, str], dict[str, float]] = {}
    if options.keep and options.keep.exists():
        for line in options.keep.read_text().splitlines():
            enter(table, *json.loads(line))
    for queries in options.queries:
        late: set[tuple[str, str]] = set()
        for _ in range(options.repeats):
            for form in FORMS:
                turn(table, queries, form, late, options)
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
        enter(table, [queries, form, library], cost)
        line = json.dumps([[queries, form, library], cost])
        print(line, file=sys.stderr, flush=True)
        if options.keep:
            with options.keep.open("a") as file:
                file.write(line + "\n")


def enter(
    table: dict[tuple[int, str, str], dict[str, float]], key: list[Any], cost: dict[str, float]
) -> None:
    """Keep the least of each cost."""
    queries, form, library = key
    known = table.setdefault((queries, form, library), cost)
    table[queries, form, library] = {name: min(known[name], cost[name]) for name in cost}


def written(table: dict[tuple[int, str, str], dict[str, float]], options: Any) -> None:
    """Print the table, and put it into the page and the README where asked."""
    lines = [
        "| queries | from | " + " | ".join(LIBRARIES) + " |",
        "| --: | --- |" + " --: |" * len(LIBRARIES),
    ]
    for queries in options.queries:
        for form in FORMS:
            cells = []
            for library in LIBRARIES:
                cost = table.get((queries, form, library))
                late = f"none in {options.timeout} s"
                cells.append(f"{cost['cpu']:.2f} s, {cost['extra']:.0f} MB" if cost else late)
            lines.append(f"| {queries:,} | {form} | " + " | ".join(cells) + " |")
    ask = "import importlib.metadata as m, sys; print(*map(m.version, sys.argv[1:]))"
    packages = [PACKAGES.get(name, name) for name in LIBRARIES[1:]]
    said = subprocess.run(  # noqa: S603
        [options.peers, "-c", ask, *packages], check=True, capture_output=True, text=True
    )
    versions = ", ".join(
        f"{name} {own}" for name, own in zip(packages, said.stdout.split(), strict=True)
    )
    start = {
        library: min((cost["start"] for key, cost in table.items() if key[2] == library), default=0)
        for library in LIBRARIES
    }
    starts = ", ".join(f"{name} {spent:.1f} s" for name, spent in start.items())
    where = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    about = __doc__.partition("[--write]\n\n")[2].partition(" PYTHON is")[0]
    made = (
        f"Made by `python benchmarks/rank_metrics.py --write` on {dt.datetime.now(dt.UTC).date()}"
    )
    page = "\n".join(
        [
            "# Rank metrics against the peers\n",
            f"{made}: {where}, misslink {version('misslink')}, {versions}.\n",
            about.replace("are not, and stand in the column 'start'.", "are not (see below)."),
            "\nCPU seconds and peak extra memory:\n",
            *lines,
            f"\nImport and first run: {starts}.",
            "ranx computes 13 of the 14 metrics: its bpref is another than trec_eval's.\n",
        ]
    )
    print(page)
    if options.write:
        TARGET.write_text(page, encoding="utf-8")
        readme = README.read_text(encoding="utf-8")
        if readme.count(MARK) == 2:
            before, _, after = readme.split(MARK)
            README.write_text(
                before + MARK + "\n" + "\n".join(lines) + "\n" + MARK + after, encoding="utf-8"
            )


if __name__ == "__main__":
    main()
