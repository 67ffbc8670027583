"""How fast recorded traces are read, and a corpus is searched for claims without labels.

    python benchmarks/io/trace_input.py [--traces 100000] [--passages 100000] [--write]

Made-up traces of about 2 kB (question, five passages, answer) as misslink's own and as ragas' JSON
Lines, each read in a process of its own. Then 10,000 claims of 5,000 cases, and their questions, are
searched in a corpus of passages of 60 words, whose words are as frequent as Zipf's law says: by BM25,
and by BM25 and stored vectors of 384 numbers. The claims are embedded by a function that costs
nothing. CPU seconds, which other work on the machine moves least; peak memory is that of the process.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TARGET = Path(__file__).with_suffix(".md")
CASES, CLAIMS, DIMENSIONS = 5_000, 10_000, 384


def write_traces(kind: str, count: int, path: Path) -> None:
    """Write traces of one format."""
    rng = random.Random(0)  # noqa: S311
    words = [f"word{number}" for number in range(3_000)]
    passages = [(f"p{n}", " ".join(rng.choices(words, k=40))) for n in range(20_000)]
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            question, answer = (" ".join(rng.choices(words, k=k)) for k in (10, 30))
            found = rng.sample(passages, 5)
            row: dict[str, object] = {
                "user_input": question,
                "retrieved_contexts": [text for _, text in found],
                "response": answer,
            }
            if kind == "misslink":
                retrieved = [{"id": name, "text": text} for name, text in found]
                row = {"case_id": f"c{number}", "question": question, "answer": answer}
                row["retrieved"] = retrieved
            file.write(f"{json.dumps(row)}\n")


def measure_reading(path: Path) -> tuple[int, float]:
    """Return the traces of a file, and the CPU seconds of reading it."""
    from misslink.io.trace_formats import read_recording

    began = time.process_time()
    count = len(read_recording(path).traces)
    return count, time.process_time() - began


class MadeUpEmbedding:
    """Vectors that depend on nothing but the length of a text."""

    model = "made up"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    embed_queries = embed_documents

    def embed_query(self, text: str) -> list[float]:
        return [1.0 + len(text) % (n + 2) for n in range(DIMENSIONS)]


def measure_search(passage_count: int, *, vectors: bool) -> tuple[int, float]:
    """Return the number of claims, and the CPU seconds of reading vectors, indexing and searching."""
    from misslink.embedding import Embedder
    from misslink.linking.miss_measurement import measure_misses
    from misslink.pipeline.links import CorpusContext
    from misslink.types import Case, Passage, Trace

    numbers = np.random.default_rng(0).zipf(1.3, size=passage_count * 60) % 50_000
    texts = [" ".join(f"w{n}" for n in row) for row in numbers.reshape(-1, 60)]
    corpus = [Passage(id=f"p{n}", text=text, rank=n) for n, text in enumerate(texts, 1)]
    trace = Trace(case_id="c", retrieved=tuple(corpus[:5]), answer="w1")
    questions = [" ".join(text.split()[12:20]) for text in texts[:CASES]]
    claims = [" ".join(text.split()[:12]) for text in texts[:CLAIMS]]

    async def search(folder: str) -> float:
        file = Path(folder) / "vectors.sqlite"
        if vectors:
            embedder = Embedder(MadeUpEmbedding(), cache=file)
            await embedder.documents(texts)
            embedder.close()
        embedder = Embedder(MadeUpEmbedding(), cache=file)  # as the next run opens it
        began = time.process_time()
        cases = [Case(id="c", question="w1")]
        measured = await measure_misses(cases, [trace], 5, embedder=None, corpus=corpus)
        context = CorpusContext(embedder if vectors else None, tuple(corpus))
        measured = await context.prepare_search(measured, [*questions, *claims])
        if bool(measured.nearest) != vectors:
            raise AssertionError("the vectors were not used")
        for number, question in enumerate(questions):
            measured.search([question, *claims[number::CASES]], trace, 5)
        seconds = time.process_time() - began
        embedder.close()
        return seconds

    with tempfile.TemporaryDirectory() as folder:
        return CLAIMS, asyncio.run(search(folder))


def run_alone(*arguments: str) -> tuple[int, float, int]:
    """Run one measurement in a process of its own; also its peak memory in MB."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, __file__, *arguments], capture_output=True, text=True, check=True
    )
    count, seconds, memory = json.loads(done.stdout.splitlines()[-1])
    return count, seconds, memory


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--search", choices=("words", "both"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read or given.search:
        both = given.search == "both"
        result = (
            measure_reading(given.read)
            if given.read
            else measure_search(given.passages, vectors=both)
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps([*result, peak]))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("misslink", "ragas"):
            path = Path(folder) / f"{kind}.jsonl"
            write_traces(kind, given.traces, path)
            size = path.stat().st_size / given.traces
            rows.append(
                (f"read {kind} traces of {size:,.0f} bytes", *run_alone("--read", str(path)))
            )
    for kind, by in (("words", "BM25"), ("both", "BM25 and stored vectors")):
        search = f"search {given.passages:,} passages for claims by {by}, indexing included"
        rows.append((search, *run_alone("--search", kind, "--passages", str(given.passages))))
    day = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    machine = f"{platform.machine()}, Python {platform.python_version()}, 2 cores"
    lines = [
        "# Reading traces, and searching a corpus for claims",
        "",
        f"Made by `python benchmarks/io/trace_input.py --write` on {day}: {machine}.",
        "",
        "| what | number | CPU s | a CPU second | peak MB |",
        "|---|--:|--:|--:|--:|",
        *(
            f"| {what} | {count:,} | {seconds:.1f} | {count / seconds:,.0f} | {peak:,} |"
            for what, count, seconds, peak in rows
        ),
        "",
        f"Each of the {CASES:,} cases also has its question searched for. Embedding the questions and claims with a",
        "real model is not counted.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if given.write:
        TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
