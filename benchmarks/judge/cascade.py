"""When the heuristic judge is sure, and how many calls of another judge that saves.

    python benchmarks/judge/cascade.py [../shared/data] [--write | --check]    # about a minute

Reads faithfulness/ragtruth_qa_dev.jsonl (RAGTruth QA; Niu et al., ACL 2024, MIT). With --write it
writes src/misslink/judge/middleware/cascade.json, with --check it ends with 1 where that file
would change.

The rule: on either side the band ends where the heuristic judge, among the answers beyond that
point, agrees with people in at least 95% (cross-validated, grouped by question, at least 20
answers a side); a side where it never does is never decided. 95%, for no judge with published
figures on this set agrees that often, so what is taken from them is not decided worse. How often
the rule keeps its word is measured by choosing the band anew within each fold's training part.

The other judge is NOT run here. Its decisions are computed from its published precision and recall
on RAGTruth's QA task: it flags each unfaithful answer with probability R, and each faithful one
with the rate that gives precision P at this set's share of unfaithful answers, regardless of how
sure the heuristic judge is.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fit_heuristic import SCALED_ON, Array, Item, fit, read_training
from misslink.matching import load_fit
from misslink.stats.intervals import critical_value, wilson_interval

HERE = Path(__file__).parents[2] / "src" / "misslink" / "judge"
SEED, REPEATS, FOLDS = 20261121, 10, 6
TARGET = HERE / "middleware" / "cascade.json"
WANTED = 0.95
LEAST = 20  # answers a side; fewer say nothing
AUDIT = 0.05
DIGITS = 3
Ends = tuple[float | None, float | None]  # low and high
Others = Mapping[str, list[Item]]  # fitted on, and never decided on
# Niu et al. (2024), table of response-level detection on the QA task: precision, recall.
PUBLISHED = {
    "GPT-4-turbo, prompted": (0.332, 0.906),
    "Llama-2-13B, fine-tuned": (0.616, 0.763),
}


@dataclass(frozen=True)
class Dear:
    """A judge known by its published figures."""

    name: str
    recall: float
    false_alarms: float

    def measure(self, bad: Array, cleared: Array, flagged: Array) -> tuple[float, float, float]:
        """Expected agreement with people, F1 and recall where the cheap judge decides some."""
        rest = ~(cleared | flagged)
        hits = (bad & flagged).sum() + self.recall * (bad & rest).sum()
        alarms = (~bad & flagged).sum() + self.false_alarms * (~bad & rest).sum()
        missed = bad.sum() - hits
        f1 = 2 * hits / (2 * hits + missed + alarms)
        return 1 - (missed + alarms) / bad.size, f1, hits / bad.sum()


def folds(items: list[Item], rng: np.random.Generator) -> Iterator[Array]:
    """Masks of the folds, whole questions each."""
    groups = np.array([item.group for item in items])
    for fold in np.array_split(rng.permutation(np.unique(groups)), FOLDS):
        yield np.isin(groups, fold)


def out_of_fold(items: list[Item], more: Others, seed: int) -> Array:
    """P(faithful) of each item by a fit that has not seen its question."""
    found = np.zeros(len(items))
    for inside in folds(items, np.random.default_rng(seed)):
        train = [item for item, held in zip(items, inside, strict=True) if not held]
        fitted = fit({SCALED_ON: train, **more})
        for i in np.flatnonzero(inside):
            found[i] = items[i].faithful(fitted)
    return found


def choose(bad: Array, faithful: Array, wanted: float = WANTED) -> Ends:
    """The band: the lowest `high` and the highest `low` beyond which `wanted` is reached.

    Parameters
    ----------
    bad : array of bool, shape (answers,)
    faithful : array of float, shape (repetitions, answers)
    wanted : float
        Share of answers beyond an end that people judge the same way.
    """
    repeated, flat, least = np.tile(bad, len(faithful)), faithful.ravel(), LEAST * len(faithful)
    high, low = reach(flat, ~repeated, wanted, least), reach(-flat, repeated, wanted, least)
    scale = 10**DIGITS  # rounded away from the band's middle, so that the rule still holds
    return (
        None if low is None else math.floor(-low * scale) / scale,
        None if high is None else math.ceil(high * scale) / scale,
    )


def reach(sureness: Array, right: Array, wanted: float, least: int) -> float | None:
    """The lowest sureness from which on at least `least` are decided and `wanted` of them right."""
    order = np.argsort(-sureness, kind="stable")
    ordered = sureness[order]
    count = np.arange(1, order.size + 1)
    whole = np.append(ordered[1:] != ordered[:-1], True)  # equals are decided together
    enough = whole & (count >= least) & (np.cumsum(right[order]) / count >= wanted)
    return float(ordered[np.flatnonzero(enough)[-1]]) if enough.any() else None


def decide(faithful: Array, ends: Ends) -> tuple[Array, Array]:
    """Which answers are cleared and which flagged."""
    low, high = ends
    none = np.zeros(faithful.shape, dtype=bool)
    return (
        none if high is None else faithful >= high,
        none if low is None else faithful <= low,
    )


def keeps_its_word(items: list[Item], more: Others) -> dict[str, Any]:
    """Share decided and agreement there, the band being chosen without the fold it is used on."""
    bad = np.array([item.bad for item in items])
    shares, agreements = [], []
    for repeat in range(REPEATS):
        decided, right = np.zeros(len(items), dtype=bool), np.zeros(len(items), dtype=bool)
        for inside in folds(items, np.random.default_rng(SEED + repeat)):
            train = [item for item, held in zip(items, inside, strict=True) if not held]
            within = out_of_fold(train, more, SEED + repeat)
            ends = choose(bad[~inside], within[None, :])
            fitted = fit({SCALED_ON: train, **more})
            cleared, flagged = decide(np.array([item.faithful(fitted) for item in items]), ends)
            decided |= inside & (cleared | flagged)
            right |= inside & ((cleared & ~bad) | (flagged & bad))
        shares.append(decided.mean())
        agreements.append(right[decided].mean() if decided.any() else math.nan)
    return {
        "share_decided": round(float(np.mean(shares)), DIGITS),
        "share_decided_sd": round(float(np.std(shares)), DIGITS),
        "agreement": round(float(np.nanmean(agreements)), DIGITS),
        "agreement_sd": round(float(np.nanstd(agreements)), DIGITS),
    }


def dears(bad: Array) -> list[Dear]:
    """The published judges, with the rate of false alarms that their precision means here."""
    return [
        Dear(name, recall, recall * bad.sum() * (1 - precision) / precision / (~bad).sum())
        for name, (precision, recall) in PUBLISHED.items()
    ]


def equal(bad: Array, faithful: Array, dear: Dear) -> float:
    """The largest share cleared by the cheap judge at no less agreement and F1 than `dear` alone.

    In the mean over the repetitions of cross-validation.
    """
    nobody = np.zeros(bad.shape, dtype=bool)
    agreement, f1, _ = dear.measure(bad, nobody, nobody)
    best = 0.0
    for high in np.unique(np.round(faithful, 2)):
        cleared = faithful >= high
        found = np.array([dear.measure(bad, each, nobody) for each in cleared]).mean(axis=0)
        if found[0] >= agreement and found[1] >= f1:
            best = max(best, float(cleared.mean()))
    return best


def measure(data: Path) -> dict[str, Any]:
    """Choose the band of one judge, measure it, and print the tables."""
    name = "heuristic"
    more = read_training(data)
    items = more.pop(SCALED_ON)
    items = [item for item in items if item.matches]  # without claims nothing is decided
    bad = np.array([item.bad for item in items])
    faithful = np.array([out_of_fold(items, more, SEED + repeat) for repeat in range(REPEATS)])
    print(f"\n{name}: {len(items)} answers, {bad.sum()} unfaithful; P(faithful) cross-validated")
    print("  wanted   band                  decided by it   agreement with people there [95%]")
    for wanted in (0.90, 0.925, WANTED, 0.975):
        print_band(bad, faithful, wanted)
    ends = choose(bad, faithful)
    held = keeps_its_word(items, more)
    print(
        f"  chosen within each fold's training part instead: decided {held['share_decided']:.1%}, "
        f"agreement {held['agreement']:.1%} (sd {held['agreement_sd']:.1%} over repetitions)"
    )
    print("\n  with another judge (COMPUTED from its published precision and recall, not run)")
    print(
        "    judge                     alone: agreement, F1   cascade: agreement, F1   calls saved"
    )
    for dear in dears(bad):
        print_dear(bad, faithful, ends, dear)
    committed = load_fit()
    cleared, flagged = decide(faithful, ends)
    return {
        "band": dict(zip(("low", "high"), ends, strict=True)),
        "coefficients": {
            "intercept": committed.intercept,
            "weights": dict(committed.weights),
            "cut": committed.cut,
        },
        "figures": {
            "answers": len(items),
            "unfaithful": int(bad.sum()),
            "wanted": WANTED,
            "share_decided": round(float((cleared | flagged).mean()), DIGITS),
            "agreement": round(float(agreement_of(bad, cleared, flagged)), DIGITS),
            "chosen_within_folds": held,
        },
    }


def agreement_of(bad: Array, cleared: Array, flagged: Array) -> float:
    """Share of what is decided that people judge the same way."""
    return float(((cleared & ~bad) | (flagged & bad)).sum() / (cleared | flagged).sum())


def print_band(bad: Array, faithful: Array, wanted: float) -> None:
    """One line: where the band ends, what is decided beyond it, and how well."""
    ends = choose(bad, faithful, wanted)
    cleared, flagged = decide(faithful, ends)
    decided = cleared | flagged
    low, high = ("never" if end is None else f"{end:.3f}" for end in ends)
    text = f"{f'  {wanted:6.1%}   low {low}, high {high}':34}"
    if not decided.any():
        print(f"{text}nothing")
        return
    share = agreement_of(bad, cleared, flagged)
    ends_of_it = wilson_interval(share, decided.sum() / len(faithful), critical_value(0.95))
    text += f"{decided.mean():8.1%}        {share:.1%} [{ends_of_it[0]:.1%}, {ends_of_it[1]:.1%}]"
    print(text)


def print_dear(bad: Array, faithful: Array, ends: Ends, dear: Dear) -> None:
    """One line: the other judge alone, in the cascade, and what is saved."""
    nobody = np.zeros(bad.shape, dtype=bool)
    alone = dear.measure(bad, nobody, nobody)
    decided = [decide(each, ends) for each in faithful]
    both = np.array([dear.measure(bad, *each) for each in decided]).mean(axis=0)
    share = float(np.mean([cleared | flagged for cleared, flagged in decided]))
    print(
        f"    {dear.name:24}  {alone[0]:.1%}, {alone[1]:.3f}, {alone[2]:.1%}"
        f"            {both[0]:.1%}, {both[1]:.3f}, {both[2]:.1%}"
        f"              {share * (1 - AUDIT):.1%}"
    )
    most = equal(bad, faithful, dear)
    print(
        f"      at no less agreement and F1 than alone up to {most * (1 - AUDIT):.1%} of the calls "
        f"are saved (an audit of {AUDIT:.0%} included)"
    )


def main(arguments: list[str]) -> int:
    """Print the tables; write the bands, or check that they would stay as they are."""
    folders = [argument for argument in arguments if not argument.startswith("-")]
    data = Path(folders[0] if folders else "../shared/data")
    judges = {"heuristic": measure(data)}
    made = "benchmarks/judge/cascade.py --write, on RAGTruth QA (dev), cross-validated by question"
    content = json.dumps({"version": 1, "made_by": made, "judges": judges}, indent=2) + "\n"
    if "--check" in arguments:
        return int(content != TARGET.read_text(encoding="utf-8"))
    if "--write" in arguments:
        TARGET.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
