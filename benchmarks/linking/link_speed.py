"""How fast a run is linked without a model call, and in how much memory.

    python benchmarks/linking/link_speed.py [--cases 10000] [--passages 10000] [--save FILE] [--write]

Made-up cases over a made-up corpus, read back from JSON as a run folder's are: passages of about
1,000 characters (every hundredth a near-duplicate), questions of words of the passage they need,
10 passages retrieved a case, one case in three a miss whose retriever was asked 30 deep, answers of
three claims. The corpus is as large as an index may be that `misslink evaluate` lists, and garbage
is collected as seldom as it does. Once with an embedding whose vectors are known, once without any.
With --save the links, the checklist and the summary go to a file, so that two versions can be
compared; with --write the table goes to benchmarks/linking/link_speed.md.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "builders"))

from made_up_cases import K, MadeUp, made_up
from misslink.embedding import Embedder
from misslink.garbage_collection import reduced_gc
from misslink.linking.association import summarize_association
from misslink.linking.checklist import build_checklist
from misslink.linking.miss_measurement import MissMeasurements, measure_misses
from misslink.linking.owners import link_case
from misslink.types import Link, Run

TARGET = Path(__file__).with_suffix(".md")
WIDTH = 384
LIMIT_S, LIMIT_MB = 10, 1024
STAGES = ("measure", "link", "checklist", "summarise")


class Known:
    """An embedding that costs next to nothing: what is measured is not the model."""

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors, each drawn by its text's length and beginning."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Draw a vector by the text."""
        seed = int.from_bytes(text[:32].encode(), "big") + len(text)
        drawn: list[float] = np.random.default_rng(seed).standard_normal(WIDTH).tolist()
        return drawn

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """As for documents."""
        return self.embed_documents(texts)


async def stages(made: MadeUp, *, with_embedding: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Link a made-up run: seconds of each stage, and what came of it."""
    spent: dict[str, tuple[float, float]] = {}

    async def timed(name: str, work: Coroutine[Any, Any, Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        found = await work
        spent[name] = time.perf_counter() - wall, time.process_time() - cpu
        return found

    embedder = Embedder(Known()) if with_embedding else None
    if embedder is not None:  # the model's own time is not linking's
        await embedder.documents([one.text for one in made.corpus])
        await embedder.queries([case.question for case in made.cases])
    before = _peak_mb()

    async def linked(measured: MissMeasurements) -> list[Link]:
        return [
            await link_case(
                case,
                trace,
                said,
                K,
                measured=measured,
            )
            for case, trace, said in zip(made.cases, made.traces, made.verdicts, strict=True)
        ]

    async def checked(measured: MissMeasurements) -> list[dict[str, Any]]:
        return build_checklist(made.cases, made.traces, measured, K, corpus=made.corpus)

    async def summarised(links: list[Link]) -> dict[str, Any]:
        verdicts = [verdict for of_case in made.verdicts for verdict in of_case.values()]
        run = Run(
            manifest={},
            cases=made.cases,
            traces=made.traces,
            verdicts=verdicts,
            links=links,
            summary={},
        )
        return summarize_association(run)

    measured = await timed(
        "measure", measure_misses(made.cases, made.traces, K, embedder=embedder, corpus=made.corpus)
    )
    links = await timed("link", linked(measured))
    listed = await timed("checklist", checked(measured))
    summary = await timed("summarise", summarised(links))
    if embedder is not None:
        embedder.close()
    peak = _peak_mb()
    came = {
        "links": [link.model_dump() for link in links],
        "checklist": listed,
        "summary": summary,
    }
    missed = sum(len(each) for each in measured.missed.values())
    return {"spent": spent, "misses": missed, "before": before, "peak": peak}, came


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure with and without an embedding, each in a process of its own for its peak memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--only", choices=("known", "none"))
    parser.add_argument("--save", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.only:
        made = made_up(options.cases, options.passages)
        with reduced_gc():  # as misslink.evaluate
            found, came = asyncio.run(stages(made, with_embedding=options.only == "known"))
        if options.save:
            options.save.write_text(json.dumps(came, default=str, indent=1))
        print(json.dumps(found))
        return
    rows = {}
    for kind in ("none", "known"):
        command = [sys.executable, __file__, "--only", kind]
        command += ["--cases", str(options.cases), "--passages", str(options.passages)]
        if options.save:
            command += ["--save", f"{options.save}.{kind}.json"]
        said = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
        rows[kind] = json.loads(said.stdout)
    table = report(rows, options.cases, options.passages)
    print(table)
    if options.write:
        TARGET.write_text(table, encoding="utf-8")


def report(rows: dict[str, Any], cases: int, passages: int) -> str:
    """Write the measurements as markdown."""
    where = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    today = dt.datetime.now(dt.UTC).date()
    lines = [
        "# Linking without a model call\n",
        f"Made by `python benchmarks/linking/link_speed.py --write` on {today}: {where}.\n",
        __doc__.partition("\n\n    python")[2].partition("\n\n")[2].partition("\nWith --save")[0]
        + "\nPeak MB is that of the whole process, cases, traces and corpus included (in brackets:"
        "\nbefore linking).\n",
        "| embedding | stage | cases | passages | misses | CPU s | wall s | peak MB |",
        "| --- | --- | --: | --: | --: | --: | --: | --: |",
    ]
    said = []
    for kind, found in rows.items():
        about = f"{cases:,} | {passages:,} | {found['misses']:,}"
        for stage in STAGES:
            wall, cpu = found["spent"][stage]
            lines.append(f"| {kind} | {stage} | {about} | {cpu:.2f} | {wall:.2f} | |")
        wall, cpu = map(sum, zip(*found["spent"].values(), strict=True))
        memory = f"{found['peak']:.0f} ({found['before']:.0f})"
        lines.append(f"| {kind} | **all** | {about} | {cpu:.2f} | {wall:.2f} | {memory} |")
        said.append(f"{wall:.1f} s and {found['peak']:.0f} MB with embedding '{kind}'")
    end = f"Target: under {LIMIT_S} s and {LIMIT_MB} MB; reached: {', '.join(said)}."
    return "\n".join([*lines, "", end]) + "\n"


if __name__ == "__main__":
    main()
