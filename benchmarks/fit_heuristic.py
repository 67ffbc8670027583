"""Fit the heuristic judges on human labels, and measure them honestly.

    python benchmarks/fit_heuristic.py ../shared/data [--check]    # about two minutes

Reads faithfulness/ragtruth_qa_dev.jsonl (RAGTruth QA; Niu et al., ACL 2024, MIT), writes
src/misslink/judge/backends/heuristic/coefficients.json and prints what cross-validation says. BEGIN is only
measured on.
With --check nothing is written: it ends with 1 where the committed file would change.

An answer is unfaithful where people marked a span of it; P(faithful) is the minimum of its claims'
P(supported). The weights come from a ridge logistic regression over sentences (bad: a marked span
overlaps it); a logistic fit of the answers' labels on their worst sentence then scales them, so
that the minimum is a probability; the cut maximises the F1 that these probabilities expect.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from misslink.judge.backends.heuristic.abstention import claim_spans, declines
from misslink.judge.backends.heuristic.judge import LogisticFit, SentenceSimilarity
from misslink.judge.backends.heuristic.matching import FEATURES, ClaimMatch, MatchingContext

TARGET = (
    Path(__file__).parents[1]
    / "src"
    / "misslink"
    / "judge"
    / "backends"
    / "heuristic"
    / "coefficients.json"
)
SEED, REPEATS, FOLDS = 20261121, 10, 6
RIDGE = 1.0
MORE_FEATURES: dict[str, tuple[str, ...]] = {"heuristic": (), "heuristic:minilm": ("distance",)}
DIGITS = 3
Array = NDArray[Any]


@dataclass(frozen=True)
class Item:
    """An answer with its human label, and its claims held against its passages."""

    group: str
    bad: bool
    matches: tuple[ClaimMatch, ...]
    more: tuple[tuple[float, ...], ...]
    bad_claims: tuple[bool, ...]

    @property
    def rows(self) -> list[tuple[float, ...]]:
        """The features of every claim."""
        return [(*m.features, *extra) for m, extra in zip(self.matches, self.more, strict=True)]

    def faithful(self, fit: LogisticFit) -> float:
        """P(faithful); 1 where the answer claims nothing."""
        held = zip(self.matches, self.more, strict=True)
        return min((fit.probability(match, extra) for match, extra in held), default=1.0)


def read(path: Path, similarity: SentenceSimilarity | None) -> list[Item]:
    """Hold every answer of the file against its passages."""
    items = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        answer = row["answer"]
        bad = row.get("human_hallucinated", row.get("human_label") != "Fully attributable")
        context = MatchingContext(
            row["contexts"], row.get("question") or row.get("previous_turn") or ""
        )
        spans = [] if declines(answer) else claim_spans(answer)
        texts = [answer[start:end] for start, end in spans]
        more: list[tuple[float, ...]] = [()] * len(texts)
        if similarity is not None:
            held = [sentence.text for sentence in context.sentences]
            more = [(1 - cosine,) for cosine in similarity.nearest(texts, held)]
        marked = [
            any(s["start"] < end and s["end"] > start for s in row.get("spans", ()))
            for start, end in spans
        ]
        matches = tuple(context.match(text) for text in texts)
        group = row.get("source_id", row["id"])
        items.append(Item(group, bad, matches, tuple(more), tuple(marked)))
    return items


def fit(name: str, features: tuple[str, ...], items: list[Item]) -> LogisticFit:
    """Fit weights, scale and cut."""
    rows = np.array([row for item in items for row in item.rows])
    marked = np.array([bad for item in items for bad in item.bad_claims], dtype=float)
    spread = rows.std(axis=0)
    weights = doubts(rows / spread, marked) / spread
    some = [item for item in items if item.matches]
    worst = np.array([max(weights @ np.array(row) for row in item.rows) for item in some])
    labels = np.array([item.bad for item in some], dtype=float)
    intercept, scale = logistic(worst[:, None], labels, ridge=0)
    rounded = {f: round(float(scale * w), DIGITS) for f, w in zip(features, weights, strict=True)}
    uncut = LogisticFit(name, round(float(-intercept), DIGITS), rounded, 0.0, {})
    cut = best_cut(1 - np.array([item.faithful(uncut) for item in items]))
    return LogisticFit(name, uncut.intercept, rounded, round(cut, DIGITS), {})


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


def cross_validate(name: str, features: tuple[str, ...], items: list[Item]) -> dict[str, Any]:
    """Repeated, grouped by question; weights, scale and cut are all fitted within."""
    rng = np.random.default_rng(SEED)
    groups = np.array([item.group for item in items])
    bad = np.array([item.bad for item in items])
    aurocs, f1s, flags = [], [], []
    for _ in range(REPEATS):
        doubt, flagged = np.zeros(len(items)), np.zeros(len(items), dtype=bool)
        for fold in np.array_split(rng.permutation(np.unique(groups)), FOLDS):
            inside = np.isin(groups, fold)
            train = [item for item, held in zip(items, inside, strict=True) if not held]
            fitted = fit(name, features, train)
            for i in np.flatnonzero(inside):
                probability = items[i].faithful(fitted)
                doubt[i], flagged[i] = 1 - probability, probability < fitted.cut
        aurocs.append(auroc(bad, doubt))
        f1s.append(f1(bad, flagged))
        flags.append(flagged.mean())
    return {
        "answers": len(items),
        "unfaithful": int(bad.sum()),
        "auroc": round(float(np.mean(aurocs)), 3),
        "auroc_sd": round(float(np.std(aurocs)), 3),
        "f1": round(float(np.mean(f1s)), 3),
        "f1_sd": round(float(np.std(f1s)), 3),
        "flagged": round(float(np.mean(flags)), 3),
    }


def measure(name: str, data: Path) -> dict[str, Any]:
    """Fit one judge on all labels and measure it by cross-validation."""
    extra = MORE_FEATURES[name]
    similarity = SentenceSimilarity() if extra else None
    features = (*FEATURES, *extra)
    items = read(data / "faithfulness" / "ragtruth_qa_dev.jsonl", similarity)
    fitted = fit(name, features, items)
    figures = cross_validate(name, features, items)
    begin = [
        item
        for item in read(data / "faithfulness" / "begin_dev.jsonl", similarity)
        if item.matches  # a reply that claims nothing has no verdict
    ]
    bad = np.array([item.bad for item in begin])
    doubt = np.array([1 - item.faithful(fitted) for item in begin])
    figures["begin_auroc"] = round(auroc(bad, doubt), 3)
    figures["begin_answers"] = len(begin)
    figures["note"] = (
        f"heuristic; AUROC {figures['auroc']:.2f}, F1 {figures['f1']:.2f} "
        "on RAGTruth QA (dev, cross-validated)"
    )
    return {
        "intercept": fitted.intercept,
        "weights": dict(fitted.weights),
        "cut": fitted.cut,
        "figures": figures,
    }


def build(data: Path) -> str:
    """Fit and measure both judges; return the content of coefficients.json."""
    judges = {name: measure(name, data) for name in MORE_FEATURES}
    return json.dumps({"version": 1, "judges": judges}, indent=2) + "\n"


def main(arguments: list[str]) -> int:
    """Write the coefficients, or check that they would stay as they are."""
    folders = [argument for argument in arguments if not argument.startswith("-")]
    content = build(Path(folders[0] if folders else "../shared/data"))
    print(content)
    if "--check" in arguments:
        return int(content != TARGET.read_text(encoding="utf-8"))
    TARGET.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
