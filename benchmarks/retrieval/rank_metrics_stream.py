"""A run of many queries streamed from parquet: CPU seconds and memory, by the number of queries.

    python benchmarks/retrieval/rank_metrics_stream.py [--queries 100000 1000000 10000000] [--write]

Made-up runs of 10 documents a query, 3 judged documents a query of which 2 are retrieved; qrels and
run are parquet files, the rows of a query together. Each size is a process of its own: two metrics
of every query and their means. 'qrels' is the memory that the judgements take once they are read,
'run' what reading the run and keeping the values takes on top at its peak; with --write the table
goes to benchmarks/retrieval/rank_metrics_stream.md.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime as dt
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).with_suffix(".md")
SEED, DEPTH, JUDGED, PIECE = 20261122, 10, 3, 100_000
METRICS = ["ndcg@10", "recall@10"]


def made_up(folder: Path, queries: int) -> None:
    """Write qrels.parquet and run.parquet, some queries at a time."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    draw = np.random.default_rng(SEED)

    def ids(prefix: str, numbers: Any) -> Any:
        return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")

    def table(first: int, count: int, documents: Any, name: str, numbers: Any) -> Any:
        query = np.repeat(np.arange(first, first + count), documents.shape[1])
        return pa.table(
            {
                "query_id": ids("query-", query),
                "doc_id": ids("document-", documents.ravel()),
                name: pa.array(numbers),
            }
        )

    writers: dict[str, Any] = {}
    for first in range(0, queries, PIECE):
        count = min(PIECE, queries - first)
        # Steps of their own keep the documents of a query apart.
        found = draw.integers(0, 10**7, (count, 1)) + np.cumsum(
            draw.integers(1, 10**5, (count, DEPTH + 1)), axis=1
        )
        judged = found[:, [1, 4, DEPTH]]
        parts = {
            "run": table(
                first, count, found[:, :DEPTH], "score", np.tile(-1.0 * np.arange(DEPTH), count)
            ),
            "qrels": table(first, count, judged, "relevance", draw.integers(0, 3, judged.size)),
        }
        for name, part in parts.items():
            if name not in writers:
                writers[name] = pq.ParquetWriter(folder / f"{name}.parquet", part.schema)
            writers[name].write_table(part)
    for writer in writers.values():
        writer.close()


def one(folder: Path) -> dict[str, float]:
    """Score the run, in this process."""
    import pyarrow as pa

    from misslink.retrieval.evaluate import evaluate_run
    from misslink.retrieval.readers import open_qrels

    evaluate_run({"q": ["a"]}, {"q": ["a"]}, METRICS)
    start, empty = time.process_time(), _memory("VmRSS")
    judged = open_qrels(folder / "qrels.parquet")
    read = time.process_time()
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    kept = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    scores = evaluate_run(judged, folder / "run.parquet", METRICS)
    assert scores.counts["missing_from_run"] == 0
    means = scores.means()
    assert 0 < (means["recall@10"] or 0) < 1
    return {
        "qrels_cpu": read - start,
        "run_cpu": time.process_time() - read,
        "qrels": kept - empty,
        "run": _memory("VmHWM") - kept,
        "file": (folder / "run.parquet").stat().st_size / 2**20,
    }


def _memory(what: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"the system does not tell {what}")


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--one", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one)))
        return
    lines = [
        "| queries | rows | on disk, MB | qrels, CPU s | run, CPU s | qrels, MB | run, MB |",
        "| --: | --: | --: | --: | --: | --: | --: |",
    ]
    for queries in options.queries:
        with tempfile.TemporaryDirectory() as folder:
            made_up(Path(folder), queries)
            command = [sys.executable, __file__, "--one", folder]
            said = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
        cost = json.loads(said.stdout)
        lines.append(
            f"| {queries:,} | {queries * DEPTH:,} | {cost['file']:.0f} | {cost['qrels_cpu']:.1f} | "
            f"{cost['run_cpu']:.1f} | {cost['qrels']:.0f} | {cost['run']:.0f} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    where = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    made = "Made by `python benchmarks/retrieval/rank_metrics_stream.py --write` on "
    made += str(dt.datetime.now(dt.UTC).date())
    about = __doc__.partition("[--write]\n\n")[2].partition("; with --write")[0]
    page = "\n".join(
        ["# A run streamed from parquet\n", f"{made}: {where}.\n", f"{about}.\n", *lines]
    )
    print(page)
    if options.write:
        TARGET.write_text(page + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
