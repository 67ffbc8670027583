"""Fit the heuristic judge on human labels, and measure it on others.

    python benchmarks/judge/fit_heuristic.py [../shared/data] [--check]    # a minute

Fits on answers and sentences with human labels: faithfulness/ragtruth_qa_dev.jsonl (RAGTruth QA; Niu
et al., ACL 2024, MIT) and, of claim_support, mtrag_human (IBM), ab_stanford_gensearch, ab_hagrid and
ab_attrscore_gensearch; their checksums are below. It writes src/misslink/matching/coefficients.json,
then measures the judge on faithfulness/ragtruth_qa_test.jsonl, to which nothing is fitted and by which
nothing is chosen, and writes figures.json beside it, with the version of the rules that it measured.
With --check nothing is written: it ends with 1 where a file would change.

An answer is unfaithful where people marked a span of it or called it so; P(faithful) is the minimum
of its claims' P(supported). The weights come from a ridge logistic regression over sentences (bad: a
marked span overlaps it, or the answer has no spans and is bad); a logistic fit of the RAGTruth answers'
labels on their worst sentence then scales them, so that the minimum is a probability; the cut maximises
the F1 that these probabilities expect. They are multiplied by the cap: the lower share of good answers
among those that the judge is surest of, of the two sets that nobody balanced.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from misslink.matching import Passages, claim_spans, declines, rules_version
from misslink.matching.claim_matching import FEATURES, ClaimMatch
from misslink.matching.support import LogisticFit

TARGET = Path(__file__).parents[2] / "src" / "misslink" / "matching"
RIDGE = 1.0
SCALED_ON = "faithfulness/ragtruth_qa_dev.jsonl"
CHECKSUMS = {  # SHA-256, the first 16 digits
    SCALED_ON: "f45186eb9f4fcf2b",
    "claim_support/mtrag_human.jsonl.gz": "1effd6665b02b29b",
    "claim_support/ab_stanford_gensearch.jsonl.gz": "528cdf3b89205ae6",
    "claim_support/ab_hagrid.jsonl.gz": "16adb9c7a7d8ea11",
    "claim_support/ab_attrscore_gensearch.jsonl.gz": "a582fb4b8dd29339",
}
MEASURED_ON = "faithfulness/ragtruth_qa_test.jsonl"
NATURAL = SCALED_ON, "claim_support/mtrag_human.jsonl.gz"  # as many are bad as a real app has
SURE = 0.9
DIGITS = 3
Array = NDArray[Any]


@dataclass(frozen=True)
class Item:
    """An answer with its human label, and its claims matched with its passages."""

    group: str
    bad: bool
    matches: tuple[ClaimMatch, ...]
    bad_claims: tuple[bool, ...]

    @property
    def rows(self) -> list[tuple[float, ...]]:
        """The features of every claim."""
        return [match.features for match in self.matches]

    def faithful(self, fit: LogisticFit) -> float:
        """P(faithful); 1 where the answer claims nothing."""
        return min(
            (fit.probability(m.features, refused=m.refusal is not None) for m in self.matches),
            default=1.0,
        )


def read(path: Path) -> list[Item]:
    """Match every answer of a file with its passages."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [_item(json.loads(line)) for line in lines]


def _item(row: dict[str, Any]) -> Item:
    answer = row.get("answer") or row["claim"]
    group = row.get("source_id") or row.get("meta", {}).get("group") or row["id"]
    question = row.get("question") or row.get("previous_turn") or ""
    context = Passages(row.get("contexts") or row["evidence"], question)
    if "human_hallucinated" in row:
        bad = row["human_hallucinated"]
    elif "human_label" in row:
        bad = row["human_label"] != "Fully attributable"
    else:
        bad = row["label"] != "supported"
    spans = [] if declines(answer) else claim_spans(answer)
    marks = row.get("spans", [{"start": 0, "end": len(answer)}] if bad else [])
    marked = (any(s["start"] < end and s["end"] > start for s in marks) for start, end in spans)
    matches = tuple(context.match(answer[s:e], alone=len(spans) == 1) for s, e in spans)
    return Item(group, bad, matches, tuple(marked))


def read_training(data: Path) -> dict[str, list[Item]]:
    """The answers that the judge is fitted on, by file."""
    for name, checksum in CHECKSUMS.items():
        found = hashlib.sha256((data / name).read_bytes()).hexdigest()[:16]
        assert found == checksum, f"{name} is another file than the one fitted on: {found}"
    return {name: read(data / name) for name in CHECKSUMS}


def fit(sets: Mapping[str, list[Item]]) -> LogisticFit:
    """Fit weights, scale, cut and cap."""
    every = [item for items in sets.values() for item in items]
    rows = np.array([row for item in every for row in item.rows])
    marked = np.array([bad for item in every for bad in item.bad_claims], dtype=float)
    spread = rows.std(axis=0)
    weights = doubts(rows / spread, marked) / spread
    items = sets[SCALED_ON]
    some = [item for item in items if item.matches]
    worst = np.array([max(weights @ np.array(row) for row in item.rows) for item in some])
    labels = np.array([item.bad for item in some], dtype=float)
    intercept, scale = logistic(worst[:, None], labels, ridge=0)
    rounded = {f: round(float(scale * w), DIGITS) for f, w in zip(FEATURES, weights, strict=True)}
    free = LogisticFit(round(float(-intercept), DIGITS), rounded, 0.0, 1.0)
    cap = best_cap([sets[name] for name in NATURAL], free)
    cut = best_cut(1 - np.array([item.faithful(free) for item in items]))
    return replace(free, cut=round(cap * cut, DIGITS), cap=round(cap, DIGITS))


def best_cap(sets: Sequence[list[Item]], fitted: LogisticFit) -> float:
    """The lowest share of good answers, of all sets, among those that are surest."""
    return min(
        float(np.mean([not item.bad for item in items if item.faithful(fitted) >= SURE]))
        for items in sets
    )


def doubts(rows: Array, labels: Array) -> Array:
    """Weights of a ridge logistic fit, none below 0: no feature may relieve doubt."""
    weights = np.zeros(rows.shape[1])
    kept = np.arange(rows.shape[1])
    while True:
        found = logistic(rows[:, kept], labels, ridge=RIDGE)[1:]
        if (found >= 0).all():
            weights[kept] = found
            return weights
        kept = np.delete(kept, found.argmin())


def best_cut(unfaithful: Array) -> float:
    """The cut of P(faithful) that maximises the F1 which the probabilities themselves expect."""
    ordered = np.sort(unfaithful)[::-1]
    expected = 2 * np.cumsum(ordered) / (np.arange(1, len(ordered) + 1) + ordered.sum())
    last = int(np.argmax(expected))
    return float(1 - (ordered[last] + ordered[min(last + 1, len(ordered) - 1)]) / 2)


def logistic(rows: Array, labels: Array, *, ridge: float) -> Array:
    """Newton's method; the intercept comes first and is not penalised."""
    design = np.column_stack([np.ones(len(rows)), rows - rows.mean(axis=0)])
    penalty = ridge * np.eye(design.shape[1])
    penalty[0, 0] = 0
    beta = np.zeros(design.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ beta))
        gradient = design.T @ (p - labels) + penalty @ beta
        step = np.linalg.solve((design.T * (p * (1 - p))) @ design + penalty, gradient)
        beta -= step
        if np.abs(step).max() < 1e-12:
            break
    beta[0] -= rows.mean(axis=0) @ beta[1:]
    return beta


def auroc(bad: Array, doubt: Array) -> float:
    """Mann and Whitney's U, ties counting half."""
    ranks = rankdata(doubt)
    n, m = bad.sum(), (~bad).sum()
    return float((ranks[bad].sum() - n * (n + 1) / 2) / (n * m))


def f1(bad: Array, flagged: Array) -> float:
    """F1 of finding the bad ones."""
    return float(2 * (bad & flagged).sum() / (bad.sum() + flagged.sum()))


def measure(path: Path, fitted: LogisticFit) -> dict[str, Any]:
    """Measure a fit on answers that nothing was chosen on."""
    items = read(path)
    bad = np.array([item.bad for item in items])
    faithful = np.array([item.faithful(fitted) for item in items])
    flagged = faithful < fitted.cut
    right = (bad == flagged).mean()
    chance = bad.mean() * flagged.mean() + (1 - bad.mean()) * (1 - flagged.mean())
    found = int((bad & flagged).sum())
    return {
        "rules": rules_version(),
        "fit": fitted.version,
        "answers": len(items),
        "unfaithful": int(bad.sum()),
        "auroc": round(auroc(bad, 1 - faithful), 3),
        "f1": round(f1(bad, flagged), 3),
        "kappa": round(float((right - chance) / (1 - chance)), 3),
        "precision": round(found / int(flagged.sum()), 3),
        "recall": round(found / int(bad.sum()), 3),
    }


def build(data: Path) -> dict[str, str]:
    """Fit and measure; return the contents of the two files by name."""
    fitted = fit(read_training(data))
    coefficients = {
        "intercept": fitted.intercept,
        "weights": dict(fitted.weights),
        "cut": fitted.cut,
        "cap": fitted.cap,
    }
    return {
        "coefficients.json": json.dumps(coefficients, indent=2) + "\n",
        "figures.json": json.dumps(measure(data / MEASURED_ON, fitted), indent=2) + "\n",
    }


def main() -> int:
    """Write the files, or check that they would stay as they are."""
    parser = argparse.ArgumentParser(description="Fit the heuristic judge.")
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data"))
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    built = build(given.data)
    changed = 0
    for name, content in built.items():
        print(content)
        changed |= content != (TARGET / name).read_text(encoding="utf-8")
        if not given.check:
            (TARGET / name).write_text(content, encoding="utf-8")
    return changed if given.check else 0


if __name__ == "__main__":
    sys.exit(main())
