"""How fast recorded traces are read, and in how much memory.

python benchmarks/trace_reading.py [--n 100000]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

WORDS = [f"word{n}" for n in range(5_000)]
PASSAGES, WORDS_OF_PASSAGE = 5, 40  # about 2 kB a trace


def main() -> None:
    """Read each form in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--read", type=Path)
    asked = parser.parse_args()
    if asked.read:
        read(asked.read)
        return
    print("form      traces   bytes each   seconds   traces a second   memory")
    with tempfile.TemporaryDirectory() as folder:
        for form in ("misslink", "ragas"):
            path = Path(folder) / f"{form}.jsonl"
            with path.open("w", encoding="utf-8") as file:
                file.writelines(f"{json.dumps(row)}\n" for row in rows(form, asked.n))
            command = [sys.executable, __file__, "--read", str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
            n, seconds, memory = map(float, done.stdout.split())
            size = path.stat().st_size / n
            print(
                f"{form:9} {n:7,.0f} {size:12,.0f} {seconds:9.1f} {n / seconds:17,.0f}"
                f" {memory / 1e6:6,.0f} MB"
            )


def rows(form: str, n: int) -> Iterator[dict[str, object]]:
    """Traces of made-up words, none with a passage of another."""
    draw = random.Random(0)  # noqa: S311
    for index in range(n):
        texts = [" ".join(draw.choices(WORDS, k=WORDS_OF_PASSAGE)) for _ in range(PASSAGES)]
        question = f"Question {index}: {' '.join(draw.choices(WORDS, k=8))}?"
        answer = " ".join(draw.choices(WORDS, k=25))
        if form == "ragas":
            yield {"user_input": question, "retrieved_contexts": texts, "response": answer}
        else:
            passages = [{"id": f"{index}-{k}", "text": text} for k, text in enumerate(texts)]
            yield {
                "case_id": str(index), "question": question, "retrieved": passages,
                "answer": answer,
            }  # fmt: skip


def read(path: Path) -> None:
    """Print the traces, the seconds of CPU and the peak memory of this process."""
    from misslink.engines.local import reduced_gc
    from misslink.io.trace_formats import read_recording

    began = time.process_time()
    with reduced_gc():  # as in an evaluation
        recording = read_recording(path)
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(len(recording.traces), seconds, peak)


if __name__ == "__main__":
    main()
