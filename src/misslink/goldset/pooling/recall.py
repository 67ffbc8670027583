"""Recall of the retrievers of a pool, estimated from a stratified sample."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from misslink.goldset.pooling.pool import GradingPool, PoolItem
from misslink.stats import mean
from misslink.types import Estimate

TOTAL_METHOD = "horvitz-thompson, mover of clopper-pearson"


class SampledCell(NamedTuple):
    """A stratum of one question: `labelled` of its `size` passages are a labelled sample."""

    size: int
    labelled: int
    relevant: float


RankBand = Sequence[SampledCell]  # the strata of all questions at the same rank


def _band_total(band: RankBand) -> tuple[float, float, float]:
    """The Horvitz-Thompson total of a band, each relevant passage with its weight; its interval.

    Clopper and Pearson's interval of the share at Kish's effective sample size, with a finite
    population correction.
    """
    from scipy.stats import beta

    size, labelled, relevant = np.array(band, dtype=float).T
    passages = float(size.sum())
    expected = float((relevant * size / labelled).sum())
    effective = passages**2 / float((size**2 / labelled).sum())  # Kish's effective sample size
    share = min(expected / passages, 1.0)
    hits, misses = share * effective, max((1 - share) * effective, 0.0)
    low = float(beta.ppf(0.025, hits, misses + 1)) if hits > 0 else 0.0
    high = float(beta.isf(0.025, hits + 1, misses)) if misses > 0 else 1.0
    unknown = math.sqrt(1 - float(labelled.sum()) / passages)
    return (
        expected,
        passages * (share - (share - low) * unknown),
        passages * (share + (high - share) * unknown),
    )


def group_into_bands(cells: Iterable[tuple[int, SampledCell]]) -> list[RankBand]:
    """Put strata together by the place of their band, near ones first."""
    bands: dict[int, list[SampledCell]] = {}
    for place, cell in cells:
        bands.setdefault(place, []).append(cell)
    return [bands[place] for place in sorted(bands)]


def project_draws(bands: Sequence[RankBand], times: int) -> list[RankBand]:
    """Return the bands as they would be with so many times the labels and the same shares.

    >>> project_draws([[SampledCell(100, 10, 1), SampledCell(15, 10, 0)]], 4)[0]
    [SampledCell(size=100, labelled=40, relevant=4.0), SampledCell(size=15, labelled=15, relevant=0.0)]
    """
    more: list[RankBand] = []
    for band in bands:
        labels = [min(cell.size, cell.labelled * times) for cell in band]
        more.append(
            [
                SampledCell(cell.size, labelled, cell.relevant * labelled / cell.labelled)
                for cell, labelled in zip(band, labels, strict=True)
            ]
        )
    return more


def estimate_total(
    bands: Sequence[RankBand], extremes: Sequence[Sequence[RankBand]] = ()
) -> Estimate:
    """Estimate how many relevant passages there are in partly labelled bands (Horvitz-Thompson).

    The interval covers those of `extremes`, too: the bands as they would be if every disputed
    passage were not relevant, and if every one were.

    References
    ----------
    Horvitz and Thompson (1952), A generalization of sampling without replacement. Korn and Graubard
    (1998), Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data. Zou and Donner (2008), Construction of confidence limits about
    effect measures.

    Examples
    --------
    >>> total = estimate_total([[SampledCell(100, 10, 1)], [SampledCell(1000, 10, 0)]])
    >>> total.value, round(total.low, 1), round(total.high)
    (10.0, 1.0, 319)
    """
    estimates = [_estimate_bands(each) for each in (bands, *extremes)]
    value, *_ = estimates[0]
    return Estimate(
        value=value,
        low=min(low for _, low, _ in estimates),
        high=max(high for _, _, high in estimates),
        n=sum(cell.labelled for band in bands for cell in band),
        method=TOTAL_METHOD,
    )


def _estimate_bands(bands: Sequence[RankBand]) -> tuple[float, float, float]:
    """The total of bands whose grades are all settled, and its interval."""
    totals = [_band_total(band) for band in bands]
    cells = [cell for band in bands for cell in band]
    value = sum(expected for expected, _, _ in totals)
    # Method of variance estimates recovery: a sample without relevant passages has variance 0, so
    # the usual Horvitz-Thompson interval is too short (benchmarks/goldset/pooled_recall_coverage.py).
    below = sum((expected - low) ** 2 for expected, low, _ in totals)
    above = sum((high - expected) ** 2 for expected, _, high in totals)
    relevant = float(sum(cell.relevant for cell in cells))
    unlabelled = sum(cell.size - cell.labelled for cell in cells)
    return (
        value,
        min(max(value - math.sqrt(below), relevant), value),
        min(value + math.sqrt(above), unlabelled + relevant),
    )


_POOLED_INDEX = 1  # among the strata of a question
_USUAL_CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
_MORE_DRAWS = (4, 16)  # factors for which the narrower interval is estimated
_NOT_SAMPLED = "nothing outside the pool was drawn, so its relevant passages are unknown"

Rankings = Mapping[str, tuple[str, ...]]


class Relevance(NamedTuple):
    """How likely a graded passage is relevant, and what its votes allow at least and at most."""

    share: float
    least: float
    most: float

    @classmethod
    def of_votes(cls, votes: Sequence[int], level: int) -> Relevance:
        """Return the relevance of a passage; one grade settles it, and so do votes that agree.

        >>> Relevance.of_votes([0, 2], 1), Relevance.of_votes([1, 2], 1)
        (Relevance(share=0.5, least=0.0, most=1.0), Relevance(share=1.0, least=1.0, most=1.0))
        """
        relevant = [float(grade >= level) for grade in votes]
        return cls(sum(relevant) / len(relevant), min(relevant), max(relevant))


def recall_cutoffs(depth: int) -> list[int]:
    """Return the usual cutoffs down to the depth of the pool, and the depth.

    >>> recall_cutoffs(12)
    [1, 3, 5, 10, 12]
    """
    return sorted({*(k for k in _USUAL_CUTOFFS if k <= depth), depth})


def estimate_recall(
    pool: GradingPool,
    grades: Mapping[str, int],
    votes: Mapping[str, Sequence[int]] = MappingProxyType({}),
    *,
    relevance_level: int = 1,
) -> dict[str, Any]:
    """Estimate the share of all relevant passages that each retriever returns, by cutoff.

    Parameters
    ----------
    pool : GradingPool
    grades : mapping of str to int
        By item.
    votes : mapping of str to sequence of int
        The annotators' grades of disputed items. Such an item counts by the share of its votes
        that are relevant, and every interval covers both outcomes of all of them.
    relevance_level : int
    """
    graded = {item: Relevance.of_votes([grade], relevance_level) for item, grade in grades.items()}
    disputed = {
        item: Relevance.of_votes(several, relevance_level)
        for item, several in votes.items()
        if item not in grades
    }
    shares = graded | disputed
    items: dict[str, list[PoolItem]] = {case.id: [] for case in pool.goldset.cases}
    for item in pool.items:
        items[item.case_id].append(item)
    left_out: dict[str, str] = {}
    cells: list[list[tuple[int, SampledCell]]] = [[], [], []]  # by share, at least, at most
    relevant: dict[str, set[str]] = {}  # all known relevant passages
    inside: dict[str, set[str]] = {}  # those in the pool or in the gold set
    open_: dict[str, dict[str, Relevance]] = {}  # disputed ones in the pool
    for case_id, several in items.items():
        if problem := _incomplete_reason(pool, case_id, several, shares):
            left_out[case_id] = problem
            continue
        drawn = {i.passage_id: grades[i.item] for i in several if i.item in grades}
        pooled = [item for item in several if item.stratum == _POOLED_INDEX]
        judged = {i.passage_id: grades[i.item] for i in pooled if i.item in grades}
        open_[case_id] = {i.passage_id: disputed[i.item] for i in pooled if i.item in disputed}
        labelled = {
            name
            for name, grade in (pool.gold_grades[case_id] | judged).items()
            if grade >= relevance_level
        }
        inside[case_id] = labelled
        relevant[case_id] = labelled | {n for n, grade in drawn.items() if grade >= relevance_level}
        for index, stratum in enumerate(pool.strata[case_id]):
            if index > _POOLED_INDEX and stratum.drawn:  # skipped items count as not drawn
                drawn_shares = [
                    shares[i.item] for i in several if i.stratum == index and i.item in shares
                ]
                for outcome, count in zip(
                    cells, map(sum, zip(*drawn_shares, strict=True)), strict=True
                ):
                    cell = SampledCell(stratum.size, len(drawn_shares), count)
                    outcome.append((index, cell))
    outside = _relevant_outside(pool, list(relevant), cells)
    return {
        "questions": len(relevant),
        "left_out": left_out,
        "disputed": sum(item.item in disputed for case in relevant for item in items[case]),
        "relevance_level": relevance_level,
        "relevant": sum(map(len, relevant.values())),
        "outside": outside,
        "sample": _sample_summary(cells, outside),
        "retrievers": {
            name: {
                f"recall@{k}": {
                    "estimated": _recall_estimate(rankings, inside, open_, outside, k),
                    "of_judged": _recall_of_judged(rankings, relevant, k),
                }
                for k in recall_cutoffs(pool.depth)
            }
            for name, rankings in pool.rankings.items()
        },
    }


def _incomplete_reason(
    pool: GradingPool, case_id: str, items: list[PoolItem], grades: Mapping[str, Relevance]
) -> str | None:
    """Why a question does not count yet; None if it does."""
    pooled = [item.item in grades for item in items if item.stratum == _POOLED_INDEX]
    if not all(pooled):
        return f"{pooled.count(False)} of {len(pooled)} pooled passages have no resolved grade"
    labelled = {item.stratum for item in items if item.item in grades}
    for index, stratum in enumerate(pool.strata[case_id]):
        if index > _POOLED_INDEX and stratum.drawn and index not in labelled:
            return f"no passage drawn from ranks {stratum.name} has a resolved grade"
    return None


def _relevant_outside(
    pool: GradingPool, counted: list[str], cells: list[list[tuple[int, SampledCell]]]
) -> Estimate:
    if not counted:
        return Estimate.missing("no question is completely labelled", method=TOTAL_METHOD)
    bands = (
        stratum for case_id in counted for stratum in pool.strata[case_id][_POOLED_INDEX + 1 :]
    )
    if any(band.size and not band.drawn for band in bands):
        return Estimate.missing(_NOT_SAMPLED, method=TOTAL_METHOD)
    by_share, *extremes = map(group_into_bands, cells)
    return estimate_total(by_share, extremes)


def _sample_summary(
    outcomes: list[list[tuple[int, SampledCell]]], outside: Estimate
) -> dict[str, Any] | None:
    """The sample behind the estimate outside the pool; None without one.

    ``labelled`` of ``passages``, ``relevant`` of them; ``weight``: the largest weight of one;
    ``more``: the interval of ``times`` as many draws with the same shares.
    """
    cells = outcomes[0]
    if outside.value is None or not cells:
        return None
    bands = list(map(group_into_bands, outcomes))
    more = []
    for times in _MORE_DRAWS:
        by_share, *extremes = (project_draws(each, times) for each in bands)
        more.append((times, estimate_total(by_share, extremes)))
    return {
        "passages": sum(cell.size for _, cell in cells),
        "labelled": outside.n,
        "relevant": sum(cell.relevant for _, cell in cells),
        "weight": max(cell.size / cell.labelled for _, cell in cells),
        "more": [{"times": times, "low": total.low, "high": total.high} for times, total in more],
    }


def _recall_estimate(
    rankings: Rankings,
    inside: Mapping[str, set[str]],
    disputed: Mapping[str, Mapping[str, Relevance]],
    outside: Estimate,
    k: int,
) -> Estimate:
    labelled = sum(map(len, inside.values()))
    n = labelled + outside.n
    if outside.value is None or outside.low is None or outside.high is None:
        return Estimate.missing(outside.reason or _NOT_SAMPLED, n=n, method=TOTAL_METHOD)
    top = {case: set(rankings.get(case, ())[:k]) for case in inside}
    hits = sum(len(names & top[case]) for case, names in inside.items())
    open_ = [
        (name in top[case], relevance)
        for case, by_name in disputed.items()
        for name, relevance in by_name.items()
    ]
    ranked, missed = (
        [relevance for is_ranked, relevance in open_ if is_ranked is wanted]
        for wanted in (True, False)
    )
    found = hits + sum(relevance.share for relevance in ranked)
    others = labelled - hits + sum(relevance.share for relevance in missed)
    total = found + others + outside.value
    if total <= 0:
        return Estimate.missing("nothing relevant was found", n=n, method=TOTAL_METHOD)
    # The ends: of the disputed passages only those that it does not rank are relevant, or only
    # those that it does.
    least_found, most_found = (
        hits + sum(getattr(relevance, end) for relevance in ranked) for end in ("least", "most")
    )
    most_others, least_others = (
        labelled - hits + sum(getattr(relevance, end) for relevance in missed)
        for end in ("most", "least")
    )
    unranked = sum(case_id not in rankings for case_id in inside)
    return Estimate(
        value=found / total,
        # Where nothing is known to be relevant, the ends have no denominator.
        low=least_found / (least_found + most_others + outside.high or total),
        high=most_found / (most_found + least_others + outside.low or total),
        n=n + len(open_),
        method=TOTAL_METHOD,
        reason=f"{unranked} questions without a ranking count as 0" if unranked else None,
    )


def _recall_of_judged(rankings: Rankings, relevant: Mapping[str, set[str]], k: int) -> Estimate:
    shares = [
        len(names & set(rankings.get(case_id, ())[:k])) / len(names)
        for case_id, names in relevant.items()
        if names
    ]
    if not shares:
        return Estimate.missing("no question has a known relevant passage")
    return mean(shares)
