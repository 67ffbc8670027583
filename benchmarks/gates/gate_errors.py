"""How often `misslink gate` fails a change that loses nothing, its margin, or twice its margin.

    python benchmarks/gates/gate_errors.py            # prints the table, some minutes
    python benchmarks/gates/gate_errors.py --write    # also into gate_errors.md

Two runs of the same questions are drawn with a known mean loss and put through `decide_gates`, with
the retrieval of every question measured by misslink itself.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from misslink.gates.baseline_diff import GateBaseline
from misslink.gates.criteria import Gate, ShipCriteria
from misslink.gates.decision import decide_gates
from misslink.stats import proportion
from misslink.types import Case, Estimate, Passage, Run, Trace

SEED = 18
ROUNDS = 400
MARGIN = 0.03
LOSSES = {"none": 0.0, "the margin": MARGIN, "twice the margin": 2 * MARGIN}
QUESTIONS = (100, 300)
TESTS: tuple[Literal["value", "paired"], ...] = ("value", "paired")
PARTS = 4  # relevant passages of a question: recall is 0, 0.25, ..., 1
RIGHT, GAINED = 0.8, 0.2  # share of passages retrieved before; of the others, share retrieved now
FAMILY = 5  # gates of one criteria file
PAGE = Path(__file__).with_suffix(".md")
MARKS = "<!-- error rates -->", "<!-- /error rates -->"


def draw_runs(
    n: int, loss: float, rng: np.random.Generator, *, graded: bool = False
) -> tuple[Run, Run]:
    """A baseline and a run of `n` questions in each of FAMILY categories, with this mean loss."""
    shape = (n, PARTS if graded else 1)
    before = rng.random(shape) < RIGHT
    lost = rng.random(shape) < ((1 - RIGHT) * GAINED + loss) / RIGHT
    gained = rng.random(shape) < GAINED
    after = np.where(before, ~lost, gained)
    gold = [Passage(id=f"gold{part}", text="Gold.", rank=1) for part in range(shape[1])]
    cases = tuple(
        Case(
            id=str(place),
            question="?",
            relevant=[passage.id for passage in gold],
            category=str(place % FAMILY),
        )
        for place in range(n)
    )

    def run_of(retrieved: np.ndarray, name: str) -> Run:
        traces = tuple(
            Trace(
                case_id=str(place),
                retrieved=[
                    passage.model_copy(update={"rank": rank})
                    for rank, passage in enumerate(itertools.compress(gold, row), start=1)
                ],
                answer="",
            )
            for place, row in enumerate(retrieved)
        )
        manifest = {"judge": "none", "k": PARTS, "seed": 0, "created": name}
        return Run(manifest=manifest, cases=cases, traces=traces, verdicts=(), links=(), summary={})

    return run_of(before, "before"), run_of(after, "after")


def count_failures(
    n: int,
    loss: float,
    *,
    graded: bool = False,
    family: int = 1,
    rounds: int = ROUNDS,
    seed: int = SEED,
) -> dict[str, int]:
    """In how many of the rounds any gate fails, by its test.

    Parameters
    ----------
    n : int
        Questions.
    loss : float
        Mean loss of the run.
    graded : bool
        Whether recall is a multiple of a quarter, else 0 or 1.
    family : int
        Number of gates of each test; several are on one category each, so they are independent.
    rounds, seed : int
    """
    rng = np.random.default_rng([seed, n, round(1000 * loss), family, graded])
    gates = [
        Gate(
            name=f"{test} {part}",
            metric=f"recall@{PARTS}",
            regression_max=MARGIN,
            regression_test=test,
            category=str(part) if family > 1 else None,
        )
        for test, part in itertools.product(TESTS, range(family))
    ]
    criteria = ShipCriteria("c", Path("c.yaml"), tuple(gates), {gate.name: None for gate in gates})
    failures = dict.fromkeys(TESTS, 0)
    for _ in range(rounds):
        before, after = draw_runs(n, loss, rng, graded=graded)
        baseline = GateBaseline(Path("baseline"), before, before.summary)
        decision = decide_gates(after, criteria, baseline)
        for test in {outcome.gate.regression_test for outcome in decision.failed}:
            failures[test] += 1
    return failures


def table() -> Iterator[str]:
    """The rows of the page, as they are done."""
    yield f"| gates | questions | test | {' | '.join(f'loss: {name}' for name in LOSSES)} |"
    yield "| --- | --: | --- | --: | --: | --: |"
    settings = [(n, graded, 1) for graded in (False, True) for n in QUESTIONS]
    for n, graded, family in [*settings, (FAMILY * 100, False, FAMILY)]:
        label = "1, recall in quarters" if graded else "1, recall 0 or 1"
        if family > 1:
            label = f"{FAMILY}, on 100 questions each; any fails"
        counts = [count_failures(n, loss, graded=graded, family=family) for loss in LOSSES.values()]
        for test in TESTS:
            cells = [_percent(proportion(count[test], ROUNDS)) for count in counts]
            yield f"| {label} | {n:,} | {test} | {' | '.join(cells)} |"


def _percent(share: Estimate) -> str:
    value, low, high = (round(100 * (x or 0)) for x in (share.value, share.low, share.high))
    return f"{value}% [{low}, {high}]"


def main(arguments: list[str]) -> None:
    """Print the table, and write it into the page."""
    lines = []
    for line in table():
        print(line, flush=True)
        lines.append(line)
    if "--write" in arguments:
        text = PAGE.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARKS[0])
        _, _, tail = rest.partition(MARKS[1])
        PAGE.write_text(
            "\n".join([f"{head}{MARKS[0]}", *lines, f"{MARKS[1]}{tail}"]), encoding="utf-8"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
