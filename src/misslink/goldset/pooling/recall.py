"""What a labelled pool says of its retrievers: recall, and what none of them brought."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from misslink.goldset.pooling.drawing import POOLED
from misslink.goldset.pooling.folder import Pool, PoolItem
from misslink.goldset.pooling.totals import METHOD, Cell, banded, drawn_more, total
from misslink.stats import mean
from misslink.types import Estimate

__all__ = ["cutoffs", "estimates"]

_POOLED = 1  # place among the strata
_USUAL = (1, 3, 5, 10, 20, 50, 100)
_MORE = (4, 16)  # times as many draws, of which it is told how far they narrow the interval
_NOT_SAMPLED = "nothing outside the pool was drawn, so it is not known what is relevant there"


def cutoffs(depth: int) -> list[int]:
    """At which ranks recall is told: the usual ones down to the depth, and the depth.

    >>> cutoffs(12)
    [1, 3, 5, 10, 12]
    """
    return sorted({*(k for k in _USUAL if k <= depth), depth})


def estimates(pool: Pool, grades: Mapping[str, int], *, relevance_level: int = 1) -> dict[str, Any]:
    """Estimate how much of what is relevant each retriever brings.

    Parameters
    ----------
    pool : Pool
    grades : mapping of str to int
        The settled grade of each item, as far as there is one.
    relevance_level : int
        Grade from which a passage is relevant, from 1.

    Returns
    -------
    dict
        ``questions`` that count: those whose pooled passages all have a grade, and of each of
        whose bands one at least has; ``left_out`` the others, with the reason. ``relevant`` how
        many relevant passages are known of them; ``outside`` an estimate of how many more there
        are that no retriever brought and the gold set does not list; ``sample`` on how much that
        rests, and how far more draws would narrow it (see `_sample`). ``retrievers``: by name, for
        each cutoff ``recall@k``, the relevant passages that it found of all questions over all
        that there are, estimated, and ``of_judged``, the mean over questions of the share of the
        known ones, as `misslink retrieval` tells it of a gold set that lists ids alone; that is
        too high as far as some are unknown.

    Notes
    -----
    The value of recall is a ratio whose denominator is estimated by Horvitz and Thompson; it falls
    as the denominator grows, so the ends of the denominator's interval are the ends of its own.
    The interval is about these questions: it tells what labelling the whole corpus would give.
    """
    by_case: dict[str, list[PoolItem]] = {}
    for item in pool.items:
        by_case.setdefault(item.case_id, []).append(item)
    left_out: dict[str, str] = {}
    counted, cells = [], []
    found: dict[str, set[str]] = {}
    graded: dict[str, set[str]] = {}
    for case in pool.goldset.cases:
        items = by_case.get(case.id, [])
        problem = _unfinished(pool, case.id, items, grades)
        if problem:
            left_out[case.id] = problem
            continue
        counted.append(case.id)
        known = pool.known[case.id]
        pooled = {i.passage_id: grades[i.item] for i in items if i.stratum == _POOLED}
        graded[case.id] = {
            name for name, grade in (known | pooled).items() if grade >= relevance_level
        }
        sampled = _cells(pool, case.id, items, grades, relevance_level)
        cells += sampled
        found[case.id] = graded[case.id] | {
            i.passage_id for i in items if grades.get(i.item, -1) >= relevance_level
        }
    inside = sum(map(len, graded.values()))
    outside = _outside(pool, counted, cells)
    return {
        "questions": len(counted),
        "left_out": left_out,
        "relevance_level": relevance_level,
        "relevant": sum(map(len, found.values())),
        "outside": outside,
        "sample": _sample(cells, outside),
        "retrievers": {
            name: {
                f"recall@{k}": {
                    "estimated": _recall(
                        _hits(ranking, graded, k), inside, outside, _unseen(ranking, counted)
                    ),
                    "of_judged": _of_judged(ranking, found, k),
                }
                for k in cutoffs(pool.depth)
            }
            for name, ranking in pool.rankings.items()
        },
    }


def _unfinished(
    pool: Pool, case_id: str, items: list[PoolItem], grades: Mapping[str, int]
) -> str | None:
    """Why a question does not count yet; None where it does."""
    inside = [item.item in grades for item in items if item.stratum == _POOLED]
    if not all(inside):
        return f"{inside.count(False)} of {len(inside)} pooled passages without a settled grade"
    labelled = {item.stratum for item in items if item.item in grades}
    for place, stratum in enumerate(pool.strata[case_id]):
        if place > _POOLED and stratum.drawn and place not in labelled:
            return f"no passage drawn from ranks {stratum.name} has a settled grade"
    return None


def _cells(
    pool: Pool, case_id: str, items: list[PoolItem], grades: Mapping[str, int], level: int
) -> list[tuple[int, Cell]]:
    """The sampled strata of a question; what of them was skipped counts as not drawn."""
    found = []
    for place, stratum in enumerate(pool.strata[case_id]):
        if place <= _POOLED or not stratum.drawn:
            continue
        given = [grades[i.item] for i in items if i.stratum == place and i.item in grades]
        relevant = sum(grade >= level for grade in given)
        found.append((place, Cell(stratum.size, len(given), relevant)))
    return found


def _outside(pool: Pool, counted: list[str], cells: list[tuple[int, Cell]]) -> Estimate:
    if not counted:
        return Estimate.missing("no question is labelled to the end", method=METHOD)
    unsampled = any(
        stratum.name != POOLED and not stratum.drawn and stratum.size and place > _POOLED
        for case_id in counted
        for place, stratum in enumerate(pool.strata[case_id])
    )
    if unsampled:
        return Estimate.missing(_NOT_SAMPLED, method=METHOD)
    return total(banded(cells))


def _sample(cells: list[tuple[int, Cell]], outside: Estimate) -> dict[str, Any] | None:
    """On what the estimate outside the pool rests; None where there is none.

    ``labelled`` passages of ``passages``, ``relevant`` of them; ``weight``, for how many the one
    stands that stands for most; ``more``: the interval that ``times`` as many draws would give, as
    far as there are so many, if the same shares of them were relevant.
    """
    if outside.value is None or not cells:
        return None
    bands = banded(cells)
    more = [(times, total(drawn_more(bands, times))) for times in _MORE]
    return {
        "passages": sum(band.size for band in bands),
        "labelled": outside.n,
        "relevant": sum(band.relevant for band in bands),
        "weight": max(cell.size / cell.labelled for _, cell in cells),
        "more": [{"times": times, "low": one.low, "high": one.high} for times, one in more],
    }


def _hits(ranking: Mapping[str, tuple[str, ...]], relevant: Mapping[str, set[str]], k: int) -> int:
    return sum(
        len(names & set(ranking.get(case_id, ())[:k])) for case_id, names in relevant.items()
    )


def _unseen(ranking: Mapping[str, tuple[str, ...]], counted: list[str]) -> int:
    return sum(case_id not in ranking for case_id in counted)


def _recall(hits: int, inside: int, outside: Estimate, unseen: int) -> Estimate:
    """Hits over all that is relevant; ``n``: the known ones in the pool, and what was drawn."""
    n = inside + outside.n
    if outside.value is None or outside.low is None or outside.high is None:
        return Estimate.missing(outside.reason or _NOT_SAMPLED, n=n, method=METHOD)
    if inside + outside.value <= 0:
        return Estimate.missing("nothing relevant was found", n=n, method=METHOD)
    lowest = inside + outside.low
    if lowest <= 0:  # and so there are no hits
        lowest = inside + outside.value
    reason = f"{unseen} questions that it was not asked count as 0" if unseen else None
    return Estimate(
        value=hits / (inside + outside.value),
        low=hits / (inside + outside.high),
        high=hits / lowest,
        n=n,
        method=METHOD,
        reason=reason,
    )


def _of_judged(
    ranking: Mapping[str, tuple[str, ...]], found: Mapping[str, set[str]], k: int
) -> Estimate:
    shares = [
        len(names & set(ranking.get(case_id, ())[:k])) / len(names)
        for case_id, names in found.items()
        if names
    ]
    if not shares:
        return Estimate.missing("no question has a relevant passage that is known")
    return mean(shares)
