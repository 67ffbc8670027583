"""Calls of an optimizer until it finds the best instructions: with feedback, and by score alone.

    python benchmarks/api/optimizer_feedback.py [--write]    # two minutes; needs dspy and gepa

The app, its questions and the model that proposes instructions are those of examples/optimizers:
made up, so that the best instructions are known. A call is one answer that the app gives and the
metric scores. Both arms have the same score; only the text differs.
"""

from __future__ import annotations

import contextlib
import io
import logging
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "optimizers"))

import dspy
import with_dspy
import with_gepa
from ferry_desk import PASSAGES, START, is_best, questions, run_case
from hold_out import confirm

import misslink

PAGE = Path(__file__).with_suffix(".md")
SEEDS = 20
ABOUT = f"""Calls until the best instructions are found, {SEEDS} seeds a row (`python benchmarks/api/optimizer_feedback.py --write`). App and models are made
up ([examples](../../examples/optimizers)). Both rows of an optimizer have the score of `misslink.feedback`, the second also its text. The
model that proposes edits draws among 10: all of them by the score alone, those that the text names otherwise. So the figures say what the
text is worth to a model that understands it, and not what a language model makes of it.

Not blind: the score was changed while this example was built. At first a failed answer had credit for supported claims and stated facts
alone. With that score both optimizers found the best instructions in 13 of 20 runs by the score, and in 9 of 20 with the text. Since then
a needed fact also earns credit for each stage from index to answer that it passed. Every row below has this score, with and without the
text. So an app for which the score was not made may gain less."""
ASKED = questions()
TRAIN, HELD_OUT = ASKED[:13], ASKED[13:]


class Found(NamedTuple):
    """The calls until the best candidate was found, and the candidate."""

    calls: int
    instructions: dict[str, str]


def remembered() -> Callable[[dict[str, Any]], Any]:
    """`misslink.feedback`, which computes an equal case once: the calls count, not their time."""
    known: dict[str, Any] = {}

    def feedback(case: dict[str, Any]) -> Any:
        key = f"{case['id']} {case['prompt']} {case['answer']}"
        if key not in known:
            known[key] = misslink.feedback(case, corpus=PASSAGES, cache=None)
        return known[key]

    return feedback


FEEDBACK = remembered()


def by_gepa(seed: int, *, text: bool) -> Found:
    """One run of gepa.optimize_anything."""

    def metric(candidate: dict[str, str], example: dict[str, Any]) -> Any:
        found = FEEDBACK(run_case(example, candidate))
        return (found["score"], {"Feedback": found["text"]}) if text else found["score"]

    result = with_gepa.optimize(TRAIN, metric, seed)
    return Found(result.discovery_eval_counts[result.best_idx], result.best_candidate)


def by_dspy(seed: int, *, text: bool) -> Found:
    """One run of dspy.GEPA."""

    def metric(gold: Any, pred: Any, *_: Any, **__: Any) -> Any:
        found = FEEDBACK({**gold, **pred})
        score = found["score"]
        return dspy.Prediction(score=score, feedback=found["text"]) if text else score

    program = with_dspy.optimize(TRAIN, metric, seed)
    result = program.detailed_results
    after = {name: part.signature.instructions for name, part in program.named_predictors()}
    return Found(result.discovery_eval_counts[result.best_idx], after)


def row(optimizer: str, run: Callable[..., Found], *, text: bool) -> tuple[str, float]:
    """One row of the table, and its median."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = [run(seed, text=text) for seed in range(SEEDS)]
        confirmed = sum(confirm(START, each.instructions, HELD_OUT) for each in found)
    calls = sorted(each.calls for each in found)
    best = sum(is_best(each.instructions) for each in found)
    told = "score and text" if text else "score"
    middle = statistics.median(calls)
    shown = f"{middle:.0f} | {calls[0]} to {calls[-1]} | {best} of {SEEDS} | {confirmed} of {SEEDS}"
    return f"| {optimizer} | {told} | {shown} |", middle


def main() -> None:
    """Print the table."""
    logging.disable(logging.CRITICAL)
    rows, ratios = [], []
    for optimizer, run in (("gepa.optimize_anything", by_gepa), ("dspy.GEPA", by_dspy)):
        (scored, alone), (told, helped) = (row(optimizer, run, text=text) for text in (False, True))
        rows += [scored, told]
        ratios.append(f"{helped / alone:.0%} with {optimizer}")
    text = "\n".join(
        (
            "# Feedback for optimizers",
            "",
            ABOUT,
            "",
            "| optimizer | metric returns | calls, median | range | best found | hold-out confirms |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            f"Calls with the text, of those with the score alone: {', '.join(ratios)}.",
            "",
        )
    )
    sys.stdout.write(text)
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
