"""Fit the heuristic judge on human labels.

    python benchmarks/fit_heuristic.py ../shared/data [--held-out FILE] [--check]    # a minute

Fits on faithfulness/ragtruth_qa_dev.jsonl (RAGTruth QA; Niu et al., ACL 2024, MIT) and on
claim_support/mtrag_human.jsonl.gz (mt-RAG, IBM, Apache-2.0), whole answers of RAG apps, and writes
src/misslink/matching/coefficients.json. Features and rules were chosen on these and
on the sentences of ab_hagrid, ab_stanford_gensearch and ab_attrscore_gensearch in claim_support.

Nothing that was used for a choice is a figure of accuracy. ``--held-out`` names answers that were
not, in the format of ragtruth_qa_dev.jsonl; their figures are stored with the version of the fit that
they are of. Without it the stored ones stay. With --check nothing is written: it ends with 1 where
the committed file would change.

An answer is unfaithful where people marked a span of it or called it so; P(faithful) is the minimum
of its claims' P(supported). The weights come from a ridge logistic regression over sentences (bad: a
marked span overlaps it, or the answer has no spans and is bad); a logistic fit of the answers' labels
on their worst sentence then scales them, so that the minimum is a probability; the cut maximises the
F1 that these probabilities expect.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from misslink.matching.abstention import claim_spans, declines
from misslink.matching.claim_matching import FEATURES, ClaimMatch, MatchingContext
from misslink.matching.support import LogisticFit

TARGET = Path(__file__).parents[1] / "src" / "misslink" / "matching" / "coefficients.json"
RIDGE = 1.0
FITTED_ON = (
    Path("faithfulness", "ragtruth_qa_dev.jsonl"),
    Path("claim_support", "mtrag_human.jsonl.gz"),
)
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
        return min(map(fit.probability, self.matches), default=1.0)


def read(path: Path) -> list[Item]:
    """Match every answer of a file with its passages."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [_item(json.loads(line)) for line in lines]


def _item(row: dict[str, Any]) -> Item:
    answer = row.get("answer") or row["claim"]
    group = row.get("source_id") or row.get("meta", {}).get("group") or row["id"]
    question = row.get("question") or row.get("previous_turn") or ""
    context = MatchingContext(row.get("contexts") or row["evidence"], question)
    if "human_hallucinated" in row:
        bad = row["human_hallucinated"]
    elif "human_label" in row:
        bad = row["human_label"] != "Fully attributable"
    else:
        bad = row["label"] != "supported"
    spans = [] if declines(answer) else claim_spans(answer)
    marks = row.get("spans", [{"start": 0, "end": len(answer)}] if bad else [])
    marked = (any(s["start"] < end and s["end"] > start for s in marks) for start, end in spans)
    matches = tuple(context.match(answer[start:end]) for start, end in spans)
    return Item(group, bad, matches, tuple(marked))


def read_training(data: Path) -> list[Item]:
    """The answers that the judge is fitted on."""
    return [item for path in FITTED_ON for item in read(data / path)]


def fit(items: list[Item]) -> LogisticFit:
    """Fit weights, scale and cut."""
    rows = np.array([row for item in items for row in item.rows])
    marked = np.array([bad for item in items for bad in item.bad_claims], dtype=float)
    spread = rows.std(axis=0)
    weights = doubts(rows / spread, marked) / spread
    some = [item for item in items if item.matches]
    worst = np.array([max(weights @ np.array(row) for row in item.rows) for item in some])
    labels = np.array([item.bad for item in some], dtype=float)
    intercept, scale = logistic(worst[:, None], labels, ridge=0)
    rounded = {f: round(float(scale * w), DIGITS) for f, w in zip(FEATURES, weights, strict=True)}
    uncut = LogisticFit(round(float(-intercept), DIGITS), rounded, 0.0, {})
    cut = best_cut(1 - np.array([item.faithful(uncut) for item in items]))
    return LogisticFit(uncut.intercept, rounded, round(cut, DIGITS), {})


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


def held_out(path: Path, fitted: LogisticFit) -> dict[str, Any]:
    """Measure a fit on answers that nothing was chosen on."""
    items = read(path)
    bad = np.array([item.bad for item in items])
    faithful = np.array([item.faithful(fitted) for item in items])
    flagged = faithful < fitted.cut
    right = (bad == flagged).mean()
    chance = bad.mean() * flagged.mean() + (1 - bad.mean()) * (1 - flagged.mean())
    found = int((bad & flagged).sum())
    return {
        "fit": fitted.version,
        "answers": len(items),
        "unfaithful": int(bad.sum()),
        "auroc": round(auroc(bad, 1 - faithful), 2),
        "f1": round(f1(bad, flagged), 2),
        "kappa": round(float((right - chance) / (1 - chance)), 2),
        "precision": round(found / int(flagged.sum()), 2),
        "recall": round(found / int(bad.sum()), 2),
    }


def build(data: Path, held_out_file: Path | None = None) -> str:
    """Fit, and measure if there are held-out answers; return the content of coefficients.json."""
    fitted = fit(read_training(data))
    stored = json.loads(TARGET.read_text(encoding="utf-8"))["judges"]["heuristic"]["figures"]
    figures = held_out(held_out_file, fitted) if held_out_file else stored
    judge = {
        "intercept": fitted.intercept,
        "weights": dict(fitted.weights),
        "cut": fitted.cut,
        "figures": figures,
    }
    return json.dumps({"version": 2, "judges": {"heuristic": judge}}, indent=2) + "\n"


def main() -> int:
    """Write the coefficients, or check that they would stay as they are."""
    parser = argparse.ArgumentParser(description="Fit the heuristic judge.")
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data"))
    parser.add_argument("--held-out", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    content = build(given.data, given.held_out)
    print(content)
    if given.check:
        return int(content != TARGET.read_text(encoding="utf-8"))
    TARGET.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
