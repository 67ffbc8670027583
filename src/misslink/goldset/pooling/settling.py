"""People's grades of a pool made one, and how far people agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from misslink.files.label_folder import journals
from misslink.files.label_journal import Entry, read_journal, standing
from misslink.files.labels import ADJUDICATED
from misslink.goldset.pooling.folder import METRIC, Pool, labels_of
from misslink.stats import cohen_kappa, krippendorff_alpha, percent_agreement
from misslink.types import Estimate

__all__ = ["GRADES", "Graded", "Settled", "agreement", "graded_by", "kappa_of", "read_grades",
           "settled"]  # fmt: skip

GRADES = ("not relevant", "relevant", "highly relevant")  # by grade, from 0
_PAIR = 2

Graded = Mapping[str, Mapping[str, int | None]]  # annotator -> item -> grade; None: skipped


@dataclass(frozen=True)
class Settled:
    """What counts as the grade of each item.

    Parameters
    ----------
    grades : mapping of str to int
        By item.
    queue : tuple of mapping
        What people disagree on and nobody settled: the item, who said what, and whether the
        majority decides meanwhile. Undecided ones first.
    """

    grades: Mapping[str, int]
    queue: tuple[Mapping[str, Any], ...]


def read_grades(folder: Path, pool: Pool) -> Graded:
    """Read what everybody said of a pool's items, and the adjudicator under 'adjudicated'.

    Raises
    ------
    InputError
        A file of labels is damaged.
    """
    wanted = {item.item for item in pool.items}
    return {
        name: graded_by(standing(read_journal(path).entries).values(), wanted)
        for name, path in journals(labels_of(folder)).items()
    }


def graded_by(entries: Iterable[Entry], wanted: Iterable[str]) -> dict[str, int | None]:
    """Return the grades among one person's labels that stand, by item."""
    known = set(wanted)
    return {
        entry.case_id: entry.grade
        for entry in entries
        if entry.metric == METRIC and entry.claim is None and entry.case_id in known
    }


def settled(graded: Graded) -> Settled:
    """Make one grade of several: the adjudicated one, else that of more than half.

    Parameters
    ----------
    graded : mapping
        By annotator and item; skipped ones do not count.

    Returns
    -------
    Settled
        An item on which no grade has more than half is not settled.
    """
    said: dict[str, dict[str, int]] = {}
    for name, grades in graded.items():
        for item, grade in grades.items():
            if grade is not None:
                said.setdefault(item, {})[name] = grade
    found: dict[str, int] = {}
    queue: list[dict[str, Any]] = []
    for item, theirs in said.items():
        votes = Counter(grade for name, grade in theirs.items() if name != ADJUDICATED)
        if ADJUDICATED in theirs:
            found[item] = theirs[ADJUDICATED]
            continue
        ((grade, times),) = votes.most_common(1)
        decided = 2 * times > votes.total()
        if decided:
            found[item] = grade
        if len(votes) > 1:
            queue.append({"item": item, "grades": dict(sorted(theirs.items())), "settled": decided})
    return Settled(found, tuple(sorted(queue, key=lambda one: bool(one["settled"]))))


def agreement(graded: Graded, items: int, *, seed: int = 0) -> dict[str, Any]:
    """How far people agree on the grades.

    Parameters
    ----------
    graded : mapping
        By annotator and item.
    items : int
        How many there are to grade.
    seed : int

    Returns
    -------
    dict
        ``alpha`` (Krippendorff, ordinal), ``kappa`` (Cohen, quadratic weights) of two people,
        ``percent``; ``pairs`` with the kappa of each two; ``each`` by name how many were labelled,
        skipped and are missing. Missing estimates where nobody graded what another did.
    """
    people = {name: of for name, of in sorted(graded.items()) if name != ADJUDICATED and of}
    rows: dict[str, list[int | None]] = {}
    for of in people.values():
        rows |= {item: [] for item in of if item not in rows}
    for item, row in rows.items():
        row += [of.get(item) for of in people.values()]
    both = [row for row in rows.values() if sum(grade is not None for grade in row) >= _PAIR]
    if both:
        alpha = krippendorff_alpha(both, metric="ordinal", seed=seed)
        percent = percent_agreement(both, seed=seed)
    else:
        why = "one person labelled" if len(people) == 1 else "nobody graded what another did"
        alpha = percent = Estimate.missing(f"{why}, so people's agreement is not known")
    pairs = [
        {"a": a, "b": b, "kappa": kappa_of(people[a], people[b], seed=seed)}
        for a, b in combinations(people, _PAIR)
    ]
    if len(pairs) == 1:
        kappa = pairs[0]["kappa"]
    else:
        kappa = Estimate.missing(
            "kappa is of two people; see the pairs" if pairs else "it takes two people"
        )
    return {
        "annotators": len(people),
        "alpha": alpha,
        "kappa": kappa,
        "percent": percent,
        "pairs": pairs,
        "each": {
            name: {
                "labelled": sum(grade is not None for grade in of.values()),
                "skipped": sum(grade is None for grade in of.values()),
                "missing": items - len(of),
            }
            for name, of in people.items()
        },
    }


def kappa_of(
    first: Mapping[str, int | None], second: Mapping[str, int | None], *, seed: int = 0
) -> Estimate:
    """Cohen's kappa with quadratic weights of two who graded the same items.

    Missing where there is no item that both graded.
    """
    return cohen_kappa(_table(first, second), weights="quadratic", seed=seed)


def _table(first: Mapping[str, int | None], second: Mapping[str, int | None]) -> list[list[int]]:
    """Counts over all grades, so that a grade that nobody gave keeps its distance."""
    table = [[0] * len(GRADES) for _ in GRADES]
    for item, grade in first.items():
        other = second.get(item)
        if grade is not None and other is not None:
            table[grade][other] += 1
    return table
