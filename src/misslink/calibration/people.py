"""What people agree on: their labels made one, how far they agree, and what to settle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from misslink.files.labels import ADJUDICATED, Label
from misslink.stats import cohen_kappa, cross_table, krippendorff_alpha, mean, percent_agreement
from misslink.types import Estimate

__all__ = ["Gold", "People", "agreement", "settled"]

_COPY = 20  # labels in common of which none differs: people seldom manage that
_PAIR = 2
_GRADES = 50  # of a graded label; alpha takes no more than 100

Item = tuple[str, int | None]  # a case, and a claim of it or None


@dataclass(frozen=True)
class Gold:
    """What counts as the truth of one item.

    Parameters
    ----------
    good : bool
    share : float
        Mean label in [0, 1]; of an adjudicated item its label.
    weight : float or None
        One over the chance of being labelled.
    """

    good: bool
    share: float
    weight: float | None = None


@dataclass(frozen=True)
class People:
    """Settled labels by item, and what is left to settle.

    Parameters
    ----------
    gold : mapping of (case, claim) to Gold
    queue : sequence of mapping
        Items on which people disagree: who said what, and whether the majority settled it.
    tied : mapping of (case, claim) to (float or None)
        Items without a truth, with their weights.
    """

    gold: Mapping[Item, Gold]
    queue: tuple[Mapping[str, Any], ...]
    tied: Mapping[Item, float | None] = field(default_factory=dict)

    @property
    def unsettled(self) -> int:
        """Items that are tied, and so have no truth."""
        return sum(not entry["settled"] for entry in self.queue)


def settled(labels: Iterable[Label]) -> People:
    """Make one label of several: the adjudicated one, else that of the majority.

    Parameters
    ----------
    labels : iterable of Label
        Of one metric. A label of one half and more is good.

    Returns
    -------
    People
        A tie has no truth: it is left out, and stands in the queue first.
    """
    of_item = _by_item(labels)
    gold: dict[Item, Gold] = {}
    tied: dict[Item, float | None] = {}
    queue = []
    for item, said in of_item.items():
        adjudicated = said.get(ADJUDICATED)
        votes = [label.good for name, label in said.items() if name != ADJUDICATED]
        weight = next(iter(said.values())).weight
        good = sum(votes)
        tie = adjudicated is None and 2 * good == len(votes)
        if adjudicated is not None:
            gold[item] = Gold(adjudicated.good, adjudicated.value, weight)
        elif not tie:
            share = sum(label.value for label in said.values()) / len(said)
            gold[item] = Gold(2 * good > len(votes), share, weight)
        else:
            tied[item] = weight
        if 0 < good < len(votes) and adjudicated is None:
            case_id, claim = item
            words = {name: label.value for name, label in sorted(said.items())}
            queue.append({"case_id": case_id, "claim": claim, "labels": words, "settled": not tie})
    return People(gold, tuple(sorted(queue, key=lambda entry: entry["settled"])), tied)


def agreement(labels: Iterable[Label], judge: Mapping[Item, bool], seed: int) -> dict[str, Any]:
    """How far people agree with each other, and the judge with each of them, on the same items.

    Parameters
    ----------
    labels : iterable of Label
        Of one metric.
    judge : mapping of (case, claim) to bool
        What the judge calls each item.
    seed : int

    Returns
    -------
    dict
        ``annotators``, ``alpha``, ``alpha_ordinal`` (of graded labels), ``percent``, ``kappa`` (of
        two people), ``alpha_with_judge`` (the judge as one more person, over the same items), and
        ``each``: by name how many ``labels``, agreement with ``others`` and with the ``judge``.
    """
    of_item = {
        item: {name: label for name, label in said.items() if name != ADJUDICATED}
        for item, said in _by_item(labels).items()
    }
    names = sorted({name for said in of_item.values() for name in said})
    document: dict[str, Any] = {"annotators": len(names)}
    both = {item: said for item, said in of_item.items() if len(said) >= _PAIR}
    if not both:
        alone = "one person labelled" if len(names) == 1 else "nobody labelled what another did"
        nothing = Estimate.missing(f"{alone}, so people's agreement is not known")
        document |= dict.fromkeys(("alpha", "percent", "kappa", "alpha_with_judge"), nothing)
    else:
        calls = _ratings(both.values(), names)
        document["alpha"] = krippendorff_alpha(calls, seed=seed)
        graded = any(0 < label.value < 1 for said in both.values() for label in said.values())
        if graded:
            values = [[_grade(said.get(name)) for name in names] for said in both.values()]
            document["alpha_ordinal"] = krippendorff_alpha(values, metric="ordinal", seed=seed)
        document["percent"] = percent_agreement(calls, seed=seed)
        document["kappa"] = _kappa(both.values(), names, seed)
        joined = [[*row, _call(judge.get(item))] for item, row in zip(both, calls, strict=True)]
        document["alpha_with_judge"] = krippendorff_alpha(joined, seed=seed)
    document["each"] = {name: _each(name, of_item, judge, seed) for name in names}
    document["copies"] = _copies(of_item.values())
    return document


def _by_item(labels: Iterable[Label]) -> dict[Item, dict[str, Label]]:
    found: dict[Item, dict[str, Label]] = {}
    for label in labels:
        annotator = label.annotator
        name = ADJUDICATED if annotator.casefold() == ADJUDICATED else annotator
        found.setdefault((label.case_id, label.claim), {})[name] = label
    return found


def _ratings(
    items: Iterable[Mapping[str, Label]], names: Sequence[str]
) -> list[list[float | None]]:
    return [[_call(said[name].good if name in said else None) for name in names] for said in items]


def _call(good: bool | None) -> float | None:
    return None if good is None else float(good)


def _grade(label: Label | None) -> float | None:
    return None if label is None else round(label.value * _GRADES) / _GRADES


def _kappa(items: Iterable[Mapping[str, Label]], names: Sequence[str], seed: int) -> Estimate:
    if len(names) != _PAIR:
        return Estimate.missing(f"{len(names)} people labelled; kappa is of two")
    first, second = zip(*_ratings(items, names), strict=True)
    return cohen_kappa(cross_table(first, second)[1], seed=seed)


def _each(
    name: str,
    items: Mapping[Item, Mapping[str, Label]],
    judge: Mapping[Item, bool],
    seed: int,
) -> dict[str, Any]:
    """How often one person agrees with the others, and with the judge."""
    own = {item: said[name].good for item, said in items.items() if name in said}
    others = [
        sum(label.good == good for other, label in items[item].items() if other != name)
        / (len(items[item]) - 1)
        for item, good in own.items()
        if len(items[item]) >= _PAIR
    ]
    pairs = [(good, judge[item]) for item, good in own.items() if item in judge]
    said, called = zip(*pairs, strict=True) if pairs else ((), ())
    return {
        "labels": len(own),
        "good": sum(own.values()),
        "others": mean(others, seed=seed)
        if others
        else Estimate.missing("nobody else labelled these"),
        "judge": mean([float(a == b) for a, b in pairs], seed=seed)
        if pairs
        else Estimate.missing("the judge gave no verdict of these"),
        "judge_kappa": cohen_kappa(cross_table(said, called)[1], seed=seed)
        if pairs
        else Estimate.missing("the judge gave no verdict of these"),
    }


def _copies(items: Iterable[Mapping[str, Label]]) -> list[dict[str, Any]]:
    """Pairs of people who never differ, though both labels occur."""
    shared: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for said in items:
        for pair in combinations(sorted(said), _PAIR):
            shared.setdefault((pair[0], pair[1]), []).append(
                (said[pair[0]].value, said[pair[1]].value)
            )
    found = []
    for (first, second), values in sorted(shared.items()):
        varied = len({value for pair in values for value in pair}) > 1
        if len(values) >= _COPY and varied and all(a == b for a, b in values):
            found.append({"annotators": [first, second], "labels": len(values)})
    return found
