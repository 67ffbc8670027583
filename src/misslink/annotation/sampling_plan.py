"""Draw a stratified labelling order with known sampling weights."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from misslink.annotation.questions import case_metrics
from misslink.calibration.verdicts import verdicts_from_run
from misslink.errors import InputError
from misslink.io.label_folder import LabelPlan, PlanCase, PlanStratum
from misslink.types import Run

_MIN_STRATUM = 5  # cases of a stratum
_MAX_STRATA = 16  # so that each has a label after so many
_FLOOR = 0.05  # least probability of either label; no judge is surer than that
_HALF = 0.5
_LEVELS = ("clearly below", "just below", "just above", "clearly above", "without a score")
_NO_SCORE = len(_LEVELS) - 1  # the level of cases without a verdict
_ALL_CASES = "all cases"


@dataclass
class _StratumGroup:
    """Cases of a future stratum."""

    level: int
    names: set[str]
    cases: list[str] = field(default_factory=list)
    levels: set[int] = field(default_factory=set)


def draw_plan(
    run: Run, metrics: Sequence[str], *, seed: int = 0, random_share: float = 0.2
) -> LabelPlan:
    """Draw the order in which the answers of a run are labelled.

    Parameters
    ----------
    run : Run
        Without verdicts of the first metric the order is random within categories.
    metrics : sequence of str
        Metrics to label, at least one; strata use the judge's score of the first.
    seed : int
    random_share : float
        In [0, 1]: 1 draws all strata alike, 0 by uncertainty alone.

    Returns
    -------
    LabelPlan
        All cases that can be labelled. Every prefix has each stratum's share to within one case.

    Raises
    ------
    ValueError
        The share is outside [0, 1].
    """
    import numpy as np

    if not 0 <= random_share <= 1:
        raise ValueError("the random share is not from 0 to 1")
    items = planned_metrics(run, metrics)
    scores, threshold = _judge_scores(run, metrics[0])
    groups = _merge_small_groups(_level_groups(run, items, scores, threshold), len(items))
    rates = _sampling_rates(groups, scores, threshold, random_share)
    draw = np.random.default_rng(seed)
    turns: list[tuple[bool, float, int, str]] = []
    for place, (group, rate) in enumerate(zip(groups, rates, strict=True)):
        cases = [str(case) for case in draw.permutation(sorted(group.cases))]
        share = len(cases) * rate
        # Webster's divisors allot by share; the first of each stratum comes before any second.
        turns += [(bool(n), (n + _HALF) / share, place, case) for n, case in enumerate(cases)]
    return LabelPlan(
        cases=tuple(PlanCase(case, place, items[case]) for _, _, place, case in sorted(turns)),
        strata=tuple(
            PlanStratum(
                _stratum_name(group, threshold), group.level, len(group.cases), round(rate, 4)
            )
            for group, rate in zip(groups, rates, strict=True)
        ),
        seed=seed,
        random_share=random_share,
        by=metrics[0] if scores else None,
        threshold=threshold,
    )


def planned_metrics(run: Run, metrics: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The metrics to label of each case that can be labelled."""
    traces = {trace.case_id: trace for trace in run.traces}
    planned = {case.id: case_metrics(case, traces.get(case.id), metrics) for case in run.cases}
    return {case_id: names for case_id, names in planned.items() if names}


def _judge_scores(run: Run, metric: str) -> tuple[dict[str, float], float | None]:
    """The judge's score of each case, and its threshold."""
    try:
        verdicts = verdicts_from_run(run, metric, "the run")
    except InputError:  # no verdict of it
        return {}, None
    items = verdicts.items.items()
    scores = {case_id: item.score for case_id, item in items if item.score is not None}
    return scores, verdicts.decision_threshold()[0] if scores else None


def _level_groups(
    run: Run, items: Mapping[str, object], scores: Mapping[str, float], threshold: float | None
) -> list[_StratumGroup]:
    """All cells of level and category, by level, then by category."""
    level_of = _score_levels(
        {case: score for case, score in scores.items() if case in items}, threshold
    )
    cells: dict[tuple[int, str], _StratumGroup] = {}
    for case in run.cases:
        if case.id in items:
            level, category = level_of.get(case.id, _NO_SCORE), case.category or ""
            cell = cells.setdefault(
                (level, category), _StratumGroup(level, {category}, levels={level})
            )
            cell.cases.append(case.id)
    return [cells[key] for key in sorted(cells)]


def _score_levels(scores: Mapping[str, float], threshold: float | None) -> dict[str, int]:
    """Each side of the threshold cut into its far and its near half; same scores stay together."""
    levels = {}
    for good in (False, True):
        side = {
            c: s for c, s in scores.items() if threshold is not None and (s >= threshold) == good
        }
        ranked = sorted(side.values(), reverse=good)  # what is farthest from the threshold first
        for case, score in side.items():
            middle = ranked[(len(ranked) - 1) // 2]
            far = score >= middle if good else score <= middle
            levels[case] = (3 if far else 2) if good else (0 if far else 1)
    return levels


def _merge_small_groups(groups: list[_StratumGroup], cases: int) -> list[_StratumGroup]:
    """Merge small groups with a neighbor, of the same level if possible."""
    least = max(_MIN_STRATUM, math.ceil(cases / _MAX_STRATA))
    remaining = dict(enumerate(groups))
    sizes: dict[int, list[tuple[int, int]]] = {}  # of each level's groups, with their places
    for place, group in remaining.items():
        heapq.heappush(sizes.setdefault(group.level, []), (len(group.cases), place))
    while len(remaining) > 1:
        (size, place), level = min((heap[0], level) for level, heap in sizes.items() if heap)
        if size >= least:
            break
        heapq.heappop(sizes[level])
        group = remaining.pop(place)
        _, (_, near), level = min(
            (abs(level - group.level), heap[0], level) for level, heap in sizes.items() if heap
        )
        other = remaining[near]
        other.cases += group.cases
        other.names |= group.names
        other.levels |= group.levels
        heapq.heapreplace(sizes[level], (len(other.cases), near))
    return sorted(remaining.values(), key=lambda group: (group.level, sorted(group.names)))


def _sampling_rates(
    groups: Sequence[_StratumGroup],
    scores: Mapping[str, float],
    threshold: float | None,
    random_share: float,
) -> list[float]:
    """The sampling rate of each stratum, as a multiple of its share of the cases."""
    spreads = [
        math.sqrt(
            sum(_label_variance(scores.get(case), threshold) for case in group.cases)
            / len(group.cases)
        )
        for group in groups
    ]
    sizes = [len(group.cases) for group in groups]
    mean = sum(n * s for n, s in zip(sizes, spreads, strict=True)) / max(sum(sizes), 1)
    return [random_share + (1 - random_share) * spread / mean for spread in spreads]


def _label_variance(score: float | None, threshold: float | None) -> float:
    """Variance of the label given the score; the least without a score."""
    if score is None or threshold is None:
        good = 0.0
    elif score < threshold:
        good = _HALF * score / threshold
    else:
        good = _HALF if threshold >= 1 else _HALF + _HALF * (score - threshold) / (1 - threshold)
    good = min(max(good, _FLOOR), 1 - _FLOOR)
    return good * (1 - good)


def _stratum_name(group: _StratumGroup, threshold: float | None) -> str:
    """What the cases of a stratum have in common."""
    where = " or ".join(_LEVELS[level] for level in sorted(group.levels))
    if threshold is None:
        where = ""
    elif group.levels != {_NO_SCORE}:
        where = f"{where} (threshold {threshold:.3g})"
    categories = ", ".join(sorted(name for name in group.names if name))
    return "; ".join(filter(None, (where, categories))) or _ALL_CASES
