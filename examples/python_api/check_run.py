"""Evaluate the ferry example, compare two cutoffs, and gate the run: all from Python."""

from __future__ import annotations

from pathlib import Path

import misslink
from misslink.examples import load_example

CRITERIA = """
gates:
  - {name: retrieval_recall_at_2, threshold: 0.5}
  - {metric: link.owners.retriever, at_most: 0.4}
"""


def describe(name: str, estimate: misslink.Estimate) -> str:
    """One line on a metric: value, interval and n, or why there is none."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return f"{name}: not measured: {estimate.reason}"
    return (
        f"{name}: {estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}], n = {estimate.n}"
    )


def to_fix(run: misslink.Run, owner: str) -> list[misslink.Link]:
    """Failed cases of an owner, such as the retriever."""
    return [link for link in run.links if link.failed and link.owner == owner]


def main(folder: Path) -> bool:
    """Return whether the run passes its gates."""
    example = load_example("ferry")
    misslink.evaluate(**example, out=folder / "wide", k=2, cache=None)
    narrow = misslink.evaluate(
        **example,
        out=folder / "narrow",
        k=1,
        cache=None,
        judge_config=misslink.JudgeConfig(max_calls=1000),
    )
    wide = misslink.Run.read(folder / "wide")
    for name in ("recall@2", "faithfulness"):
        print(describe(name, wide.metrics[name]))
    for link in to_fix(wide, "retriever"):
        print(f"{link.case_id}: {link.failure}: {link.reason}")
    compared = misslink.compare(wide, narrow)
    change = compared.metrics["mrr"].difference
    print(describe("change of mrr", change))
    compared.html(folder / "compared.html")
    criteria = folder / "ship-criteria.yaml"
    criteria.write_text(CRITERIA, encoding="utf-8")
    decision = misslink.gate(wide, criteria)
    print(decision.text())
    return decision.passed


if __name__ == "__main__":
    raise SystemExit(0 if main(Path("reports")) else 1)
