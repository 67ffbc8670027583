"""Whether planted threads through the failures of 1,000 cases are found, and how many false ones.

    python benchmarks/report/failure_threads.py            # 40 runs, seconds
    python benchmarks/report/failure_threads.py --write    # the table replaces failure_threads.md

Cases are invented: ten kinds of traits, of which each case has one value. In most runs two values
are planted: cases with them fail with another probability than the rest.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from misslink.report.failure_threads import FailureThread, Trait, find_threads

PAGE = Path(__file__).with_suffix(".md")
CASES, REPEATS, KINDS = 1_000, 40, 10
BASE = 0.1
PLANTED = (0.0, 0.2, 0.3, 0.4, 0.6)  # added to the share of failures


def made_up(added: float, seed: int) -> tuple[tuple[FailureThread, ...], set[Trait], float]:
    """The threads that are found, those that were planted, and seconds."""
    draw = random.Random(f"{added} {seed}")  # noqa: S311
    sizes = [draw.randint(4, 25) for _ in range(KINDS)]
    traits = {
        number: frozenset(
            (f"kind {kind}", f"value {draw.randrange(size)}") for kind, size in enumerate(sizes)
        )
        for number in range(1, CASES + 1)
    }
    kinds = draw.sample(range(KINDS), 2)
    planted = {(f"kind {kind}", f"value {draw.randrange(sizes[kind])}") for kind in kinds}
    failed = {
        number: draw.random() < BASE + (added if own & planted else 0)
        for number, own in traits.items()
    }
    start = time.perf_counter()
    found = find_threads(traits, failed)
    return found, planted if added else set(), time.perf_counter() - start


def row(added: float) -> str:
    """One row of the table."""
    hits = shown = false = total = 0
    slowest = 0.0
    for seed in range(REPEATS):
        found, planted, seconds = made_up(added, seed)
        traits = {(thread.kind, thread.value) for thread in found}
        hits, total = hits + len(traits & planted), total + len(planted)
        shown, false = shown + len(traits), false + len(traits - planted)
        slowest = max(slowest, seconds)
    share = f"{hits / total:.0%} of {total}" if total else "none planted"
    wrong = f"{false} of {shown}"
    return f"| {BASE + added:.0%} | {share} | {wrong} | {slowest:.2f} s |"


INTRODUCTION = (
    f"{REPEATS} runs a row, each of {CASES:,} invented cases with {KINDS} traits of 4 to 25 values "
    f"(`python benchmarks/report/failure_threads.py --write`). {BASE:.0%} of the cases fail; in cases with "
    "one of two planted values more do. In the first row nothing is planted."
)


def main() -> None:
    lines = [
        "# What failures share",
        "",
        INTRODUCTION,
        "",
        "| failures with a planted value | planted found | false of those shown | slowest |",
        "|---|---|---|---|",
        *map(row, PLANTED),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
