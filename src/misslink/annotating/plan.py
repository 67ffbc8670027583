"""An order of cases that spends labels well, with sampling weights that are exactly known.

Cases are sorted into strata by the judge's score and by category. Within a stratum the order is
random, so whoever labels the first n of the whole order has labelled a simple random sample of
every stratum, and each label stands for (cases of the stratum) / (labelled ones) cases.

Strata near the judge's threshold, where either label is likely, are drawn from more often: by
Neyman's rule in proportion to sqrt(q (1 - q)), q being the score with the threshold moved to one
half. `random_share` of the labels go to the strata by size alone, so that none is ever left out.

References
----------
Neyman (1934), On the two different aspects of the representative method. Cochran (1977), Sampling
techniques, chapter 5. Balinski and Young (1982), Fair representation (Webster's divisors).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from misslink.annotating.questions import metrics_of
from misslink.calibration.judged import of_run
from misslink.errors import InputError
from misslink.files.label_plan import Plan, Planned, Stratum
from misslink.types import Run

__all__ = ["make_plan", "planned_metrics"]

_FEWEST = 5  # cases of a stratum
_MOST_STRATA = 16  # so that each has a label after so many
_FLOOR = 0.05  # of q, and of 1 - q: no judge is surer than that before anybody looked
_HALF = 0.5
_LEVELS = ("clearly below", "just below", "just above", "clearly above", "without a score")
_NO_SCORE = len(_LEVELS) - 1  # the level of cases without a verdict
_UNSORTED = "all cases"


@dataclass
class _Group:
    """Cases that are to be a stratum."""

    level: int
    names: set[str]
    cases: list[str] = field(default_factory=list)
    levels: set[int] = field(default_factory=set)


def make_plan(
    run: Run, metrics: Sequence[str], *, seed: int = 0, random_share: float = 0.2
) -> Plan:
    """Draw the order in which the answers of a run are labelled.

    Parameters
    ----------
    run : Run
        Without a verdict of the first metric the order is random within categories.
    metrics : sequence of str
        What is asked, at least one; strata go by the judge's score of the first.
    seed : int
    random_share : float
        In [0, 1]: 1 draws from all strata alike, 0 by uncertainty alone.

    Returns
    -------
    Plan
        Of all cases that can be asked about; the beginning of it, however long, has of each
        stratum what the stratum's rate allots it, by less than one case where there is room.

    Raises
    ------
    ValueError
        The share is no share.
    """
    import numpy as np

    if not 0 <= random_share <= 1:
        raise ValueError("the random share is not from 0 to 1")
    asked = planned_metrics(run, metrics)
    scores, threshold = _scores(run, metrics[0])
    groups = _merged(_groups(run, asked, scores, threshold), len(asked))
    rates = _rates(groups, scores, threshold, random_share)
    draw = np.random.default_rng(seed)
    turns: list[tuple[bool, float, int, str]] = []
    for place, (group, rate) in enumerate(zip(groups, rates, strict=True)):
        cases = [str(case) for case in draw.permutation(sorted(group.cases))]
        share = len(cases) * rate
        # Webster's divisors allot by share; the first of each stratum comes before any second.
        turns += [(bool(n), (n + _HALF) / share, place, case) for n, case in enumerate(cases)]
    return Plan(
        cases=tuple(Planned(case, place, asked[case]) for _, _, place, case in sorted(turns)),
        strata=tuple(
            Stratum(_name(group, threshold), group.level, len(group.cases), round(rate, 4))
            for group, rate in zip(groups, rates, strict=True)
        ),
        seed=seed,
        random_share=random_share,
        by=metrics[0] if scores else None,
        threshold=threshold,
    )


def planned_metrics(run: Run, metrics: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What is asked of each case of a run that can be asked about, by case, in the run's order."""
    traces = {trace.case_id: trace for trace in run.traces}
    asked = {case.id: metrics_of(case, traces.get(case.id), metrics) for case in run.cases}
    return {case_id: names for case_id, names in asked.items() if names}


def _scores(run: Run, metric: str) -> tuple[dict[str, float], float | None]:
    """The judge's score of each case, and its cut; nothing where it gave none."""
    try:
        verdicts = of_run(run, metric, "the run")
    except InputError:  # no verdict of it
        return {}, None
    found = {case_id: one.score for case_id, one in verdicts.items.items()}
    scores = {case_id: score for case_id, score in found.items() if score is not None}
    return scores, verdicts.own_cut()[0] if scores else None


def _groups(
    run: Run, asked: Mapping[str, object], scores: Mapping[str, float], threshold: float | None
) -> list[_Group]:
    """All cells of level and category, by level, then by category."""
    level_of = _levels({case: score for case, score in scores.items() if case in asked}, threshold)
    cells: dict[tuple[int, str], _Group] = {}
    for case in run.cases:
        if case.id in asked:
            level, category = level_of.get(case.id, _NO_SCORE), case.category or ""
            cell = cells.setdefault((level, category), _Group(level, {category}, levels={level}))
            cell.cases.append(case.id)
    return [cells[key] for key in sorted(cells)]


def _levels(scores: Mapping[str, float], threshold: float | None) -> dict[str, int]:
    """Each side of the threshold cut into its far and its near half; same scores stay together."""
    found = {}
    for good in (False, True):
        side = {
            c: s for c, s in scores.items() if threshold is not None and (s >= threshold) == good
        }
        ranked = sorted(side.values(), reverse=good)  # what is farthest from the threshold first
        for case, score in side.items():
            middle = ranked[(len(ranked) - 1) // 2]
            far = score >= middle if good else score <= middle
            found[case] = (3 if far else 2) if good else (0 if far else 1)
    return found


def _merged(groups: list[_Group], cases: int) -> list[_Group]:
    """Put small groups in with a neighbour, one of the same level if there is one."""
    least = max(_FEWEST, math.ceil(cases / _MOST_STRATA))
    left = dict(enumerate(groups))
    sizes: dict[int, list[tuple[int, int]]] = {}  # of each level's groups, with their places
    for place, group in left.items():
        heapq.heappush(sizes.setdefault(group.level, []), (len(group.cases), place))
    while len(left) > 1:
        (size, place), level = min((heap[0], level) for level, heap in sizes.items() if heap)
        if size >= least:
            break
        heapq.heappop(sizes[level])
        group = left.pop(place)
        _, (_, near), level = min(
            (abs(level - group.level), heap[0], level) for level, heap in sizes.items() if heap
        )
        other = left[near]
        other.cases += group.cases
        other.names |= group.names
        other.levels |= group.levels
        heapq.heapreplace(sizes[level], (len(other.cases), near))
    return sorted(left.values(), key=lambda group: (group.level, sorted(group.names)))


def _rates(
    groups: Sequence[_Group],
    scores: Mapping[str, float],
    threshold: float | None,
    random_share: float,
) -> list[float]:
    """How often each stratum is drawn from, as a multiple of its share of the cases."""
    spreads = [
        math.sqrt(
            sum(_variance(scores.get(case), threshold) for case in group.cases) / len(group.cases)
        )
        for group in groups
    ]
    sizes = [len(group.cases) for group in groups]
    mean = sum(n * s for n, s in zip(sizes, spreads, strict=True)) / max(sum(sizes), 1)
    return [random_share + (1 - random_share) * spread / mean for spread in spreads]


def _variance(score: float | None, threshold: float | None) -> float:
    """Variance of the label that the score, taken at its word, leaves.

    A case without a score is given the least: its label tells nothing of the judge.
    """
    if score is None or threshold is None:
        good = 0.0
    elif score < threshold:
        good = _HALF * score / threshold
    else:
        good = _HALF if threshold >= 1 else _HALF + _HALF * (score - threshold) / (1 - threshold)
    good = min(max(good, _FLOOR), 1 - _FLOOR)
    return good * (1 - good)


def _name(group: _Group, threshold: float | None) -> str:
    """What the cases of a stratum have in common."""
    where = " or ".join(_LEVELS[level] for level in sorted(group.levels))
    if threshold is None:
        where = ""
    elif group.levels != {_NO_SCORE}:
        where = f"{where} (threshold {threshold:.3g})"
    categories = ", ".join(sorted(name for name in group.names if name))
    return "; ".join(filter(None, (where, categories))) or _UNSORTED
