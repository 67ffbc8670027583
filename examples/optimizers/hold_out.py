"""Compare instructions before and after on questions that the optimizer has not seen."""

from __future__ import annotations

from typing import Any

from ferry_desk import PASSAGES, run_case

import misslink


def confirm(before: dict[str, str], after: dict[str, str], questions: list[dict[str, Any]]) -> bool:
    """Print the share of answers that pass, and return whether the gain is more than chance."""
    runs = [_evaluate(instructions, questions) for instructions in (before, after)]
    passed = misslink.compare(*runs).passed  # of each run, and the paired test
    shares = [f"{passed[run]['value']:.0%}" for run in ("a", "b")]
    gained = passed["winner"] == "b"
    print(f"Hold-out, {passed['n']} questions: {shares[0]} pass before, {shares[1]} after.")
    print("Confirmed." if gained else f"Not confirmed (p = {passed['p']:.2g}): keep what you have.")
    return gained


def _evaluate(instructions: dict[str, str], questions: list[dict[str, Any]]) -> misslink.Run:
    cases = [run_case(asked, instructions) for asked in questions]
    traces = [
        {"case_id": c["id"], **{name: c[name] for name in ("retrieved", "prompt", "answer")}}
        for c in cases
    ]
    return misslink.evaluate(
        goldset=questions, traces=traces, corpus=PASSAGES, embedding="none", cache=None
    )
