"""Whether a gold set asks what people ask: its categories and tags held against query logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.files.goldset import GoldSet
from misslink.goldset.checking.finding import Finding
from misslink.goldset.checking.grounds import Grounds
from misslink.goldset.checking.nearest import nearest
from misslink.stats import holm, proportion
from misslink.text import fold
from misslink.types import Case

__all__ = ["Comparison", "balance", "chi_square", "permuted"]

_DRAWS = 10_000
_LEVEL = 0.05
_FAR = 0.1  # of the cases would have to be of another category: less is no reason to write any
_MOST_VALUES = 30  # of a tag; with more it names things, and makes no strata
_SAID = 0.5  # of the cases must say it
_SHOWN = 3
_FEWEST = 2


@dataclass(frozen=True)
class Comparison:
    """Counts of one axis, such as 'category', by value, and how those of the log were found."""

    axis: str
    how: str
    gold: Mapping[str, int]
    log: Mapping[str, int]
    unassigned: int = 0


def balance(gold: GoldSet, grounds: Grounds) -> Sequence[Finding]:
    """Find categories and tags whose shares are others than in the log.

    The distance is the total variation: the share of the cases that would have to be of another
    value. It is a warning from 10 % on, where a permutation test (chi-square statistic, 10,000
    draws, corrected by Holm for the number of axes) is below 5 %. The log's categories are those
    of its column, where they are the gold set's; else, as for tags, each request has those of the
    nearest gold question. Requests are counted as often as they were made and taken as independent:
    where few people ask much, p is too small, and the distance has to speak. No text of the log is
    told.
    """
    if grounds.log is None:
        return []
    compared = list(_compared(gold, grounds))
    ps = holm([permuted(one.gold, one.log, seed=grounds.seed) for one in compared])
    found = []
    for one, p in zip(compared, ps, strict=True):
        apart = distance(one.gold, one.log)
        if p is not None and p < _LEVEL and apart is not None and apart >= _FAR:
            found.append(_told(one, apart, p))
    return found


def distance(one: Mapping[str, int], other: Mapping[str, int]) -> float | None:
    """Total variation distance of two counts, in [0, 1]; None where one of them is empty."""
    total, others = sum(one.values()), sum(other.values())
    if not total or not others:
        return None
    values = one.keys() | other.keys()
    return sum(abs(one.get(v, 0) / total - other.get(v, 0) / others) for v in values) / 2


def chi_square(one: Mapping[str, int], other: Mapping[str, int]) -> float | None:
    """Pearson's statistic that two counts are of one distribution; None where one is empty."""
    total, others = sum(one.values()), sum(other.values())
    if not total or not others:
        return None
    found = 0.0
    for value in one.keys() | other.keys():
        both = one.get(value, 0) + other.get(value, 0)
        if both:
            expected = both * total / (total + others)
            rest = both - expected
            found += (one.get(value, 0) - expected) ** 2 * (1 / expected + 1 / rest)
    return found


def permuted(
    one: Mapping[str, int], other: Mapping[str, int], *, seed: int = 0, draws: int = _DRAWS
) -> float | None:
    """P-value of `chi_square` over permutations of who is whose.

    None where one of them is empty, or all have one value.

    References
    ----------
    Phipson and Smyth (2010), Permutation p-values should never be zero.
    """
    import numpy as np

    values = sorted(v for v in one.keys() | other.keys() if one.get(v, 0) + other.get(v, 0))
    observed = chi_square(one, other)
    if observed is None or len(values) < _FEWEST:
        return None
    pooled = np.array([one.get(v, 0) + other.get(v, 0) for v in values])
    total, whole = sum(one.values()), int(pooled.sum())
    random = np.random.default_rng(seed)
    drawn = random.multivariate_hypergeometric(pooled, total, size=draws, method="marginals")
    expected = pooled * (total / whole)
    statistics = ((drawn - expected) ** 2 * (1 / expected + 1 / (pooled - expected))).sum(axis=1)
    reached = int((statistics >= observed * (1 - 1e-9)).sum())
    return (reached + 1) / (draws + 1)


def _compared(gold: GoldSet, grounds: Grounds) -> Iterator[Comparison]:
    log = grounds.log
    if log is None:
        return
    cases = sorted(gold.cases, key=lambda case: case.id)
    said: dict[str, dict[str, str]] = {}
    categories = {case.id: case.category for case in cases if case.category}
    if categories:
        said["category"] = categories
    for tag in sorted({name for case in cases for name in case.tags}):
        said[f"tag {tag}"] = {case.id: case.tags[tag] for case in cases if tag in case.tags}
    usable = {
        axis: values
        for axis, values in said.items()
        if len(values) >= _SAID * len(cases) and len(set(values.values())) <= _MOST_VALUES
    }
    given = _by_column(usable.get("category", {}), grounds)
    if given is not None:
        yield given
        del usable["category"]
    if any(len(set(values.values())) >= _FEWEST for values in usable.values()):
        yield from _by_nearest(cases, usable, grounds)


def _by_column(categories: Mapping[str, str], grounds: Grounds) -> Comparison | None:
    """The log's own categories, where at least one of them is one of the gold set's."""
    if grounds.log is None or not categories:
        return None
    names = {fold(name): name for name in sorted(categories.values())}
    given = [fold(one.category) for one in grounds.log.requests if one.category]
    if not set(given) & set(names):
        return None
    column = grounds.log.columns.get("category", "category")
    return Comparison(
        "category",
        f"its column '{column}'",
        Counter(categories.values()),
        Counter(names.get(name, name) for name in given),
        len(grounds.log.requests) - len(given),
    )


def _by_nearest(
    cases: Sequence[Case], said: Mapping[str, Mapping[str, str]], grounds: Grounds
) -> Iterator[Comparison]:
    if grounds.log is None:
        return
    asked = Counter(request.question for request in grounds.log.requests)
    where = nearest(list(asked), [case.question for case in cases], grounds.vectors)
    by = "by words" if grounds.vectors is None else f"by {grounds.vectors.model}"
    for axis, values in said.items():
        counts: Counter[str] = Counter()
        lost = 0
        for question, count in asked.items():
            at = where[question]
            value = None if at is None else values.get(cases[at].id)
            if value is None:
                lost += count
            else:
                counts[value] += count
        yield Comparison(
            axis, f"the nearest gold question ({by})", Counter(values.values()), counts, lost
        )


def _told(one: Comparison, apart: float, p: float) -> Finding:
    rows = _rows(one)
    shown = "; ".join(
        f"'{row['value']}' {row['gold']['value']:.0%} here, {row['log']['value']:.0%} there"
        for row in rows[:_SHOWN]
    )
    few = [row["value"] for row in rows if row["gold"]["value"] < row["log"]["value"]][:_SHOWN]
    return Finding(
        "balance",
        "warning",
        f"{one.axis} is out of balance with the log: {apart:.0%} of the cases would have to be "
        f"others (p = {p:.2g}, as if every request were independent of the others): {shown}; the "
        f"log's are by {one.how}",
        f"add cases of {', '.join(map(repr, few))}, or weigh slices when you report one number",
        (),
        {
            "axis": one.axis,
            "by": one.how,
            "total_variation": apart,
            "p": p,
            "assumed": "requests are independent of each other",
            "n": {"gold": sum(one.gold.values()), "log": sum(one.log.values())},
            "unassigned": one.unassigned,
            "values": rows,
        },
    )


def _rows(one: Comparison) -> list[dict[str, Any]]:
    """Each value with its shares, those that are furthest apart first."""
    totals = sum(one.gold.values()), sum(one.log.values())
    rows = [
        {
            "value": value,
            "gold": proportion(one.gold.get(value, 0), totals[0]).model_dump(),
            "log": proportion(one.log.get(value, 0), totals[1]).model_dump(),
        }
        for value in one.gold.keys() | one.log.keys()
    ]
    return sorted(rows, key=lambda r: (-abs(r["gold"]["value"] - r["log"]["value"]), r["value"]))
