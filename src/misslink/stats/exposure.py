"""Risks of a bad answer by how much of what a case needs was in the prompt, corrected by labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from misslink.stats import association, intervals
from misslink.stats.clustered import (
    CLUSTERED_METHOD,
    ONE_CLUSTER,
    cluster_draws,
    clustered_score_test,
)
from misslink.types import Estimate, Reason

_ROUNDING = 1e-9
_JEFFREYS = 0.5  # cases added to the judge's right and wrong calls
_TINY = 1e-12
_MIN_UNCUT = 0.01  # share of draws; of 10,000, each end is the third from outside
_PERMUTATIONS = 9_999
EXPOSURES = ("none", "some", "all")  # of what a case needs, in the prompt
_ALL = EXPOSURES.index("all")
MIN_LABELS = 10  # at an exposure; benchmarks/stats/association_coverage.py looks at no fewer
MAX_FACTOR = 20  # from one end of a risk ratio's interval to the other
_GROUP_NAMES = (*EXPOSURES, "none or some")


def exposure_trend(cases: ExposedCases, *, seed: int = 0) -> association.TrendTest:
    """Test whether the share of bad answers has a linear trend over none, some and all.

    Where clusters have several cases, by `clustered_score_test`; else by `trend_test`.
    """
    test = association.trend_test(cases.table())
    if test.p is None or len(set(cases.clusters)) == len(cases.clusters):
        return test
    x, y = np.array(cases.exposure, dtype=float), np.array(cases.bad, dtype=float)
    scores = ((x - x.mean()) * (y - y.mean()))[:, np.newaxis]
    p = clustered_score_test(scores, cases.clusters, seed=seed)
    return replace(test, p=p, method=CLUSTERED_METHOD)


def drop_wide_ratio(ratio: Estimate) -> Estimate:
    """Return a risk ratio, missing if its interval has no end or spans more than a factor of 20."""
    if ratio.value is None or (ratio.low and ratio.high and ratio.high <= MAX_FACTOR * ratio.low):
        return ratio
    return Estimate.missing(
        Reason(code="wide_ratio", factor=MAX_FACTOR), n=ratio.n, method=ratio.method
    )


@dataclass(frozen=True)
class ExposedCases:
    """Judged cases by exposure: how much of what each needed was in the prompt.

    Parameters
    ----------
    exposure : sequence of {0, 1, 2}
        None, some, or all of it, one a case.
    bad : sequence of float
        Whether the judge calls the answer bad, or the chance that it is, in [0, 1].
    clusters : sequence of hashable
        Cases of a cluster vary together.
    """

    exposure: Sequence[int]
    bad: Sequence[float]
    clusters: Sequence[Hashable]

    def table(self) -> list[tuple[int, int]]:
        """Count bad answers and all answers at none, some and all; `bad` is 0 or 1."""
        n = Counter(self.exposure)
        bad = Counter(
            level for level, is_bad in zip(self.exposure, self.bad, strict=True) if is_bad
        )
        return [(bad[level], n[level]) for level in range(len(EXPOSURES))]

    def compared_with_all(self, exposed: Collection[int]) -> list[tuple[int, Hashable]]:
        """The cases at the levels `exposed` and at all; empty where there are none at either.

        Each is its cell of the 2 x 2 table (exposed and bad, exposed and good, all and bad, all and
        good) and its cluster.
        """
        rows = [
            (2 * (level == _ALL) + (not is_bad), cluster)
            for level, is_bad, cluster in zip(self.exposure, self.bad, self.clusters, strict=True)
            if level == _ALL or level in exposed
        ]
        return rows if len({cell // 2 for cell, _ in rows}) == 2 else []


def exposure_risks(cases: ExposedCases, *, seed: int = 0) -> dict[str, Estimate]:
    """Return the risk of a bad answer at each exposure, and how the risks differ.

    Parameters
    ----------
    cases : ExposedCases
        ``bad`` is 0 or 1.
    seed : int
        Random seed of the draws.

    Returns
    -------
    dict of str to Estimate
        ``risk_given_none``, ``risk_given_some``, ``risk_given_all``; ``risk_difference`` and
        ``risk_ratio`` of none and all; ``attributable_fraction``, 1 - P(bad | all) / P(bad). If
        any cluster has two cases, all of them by the Bayesian bootstrap of clusters.

    Examples
    --------
    >>> risks = exposure_risks(ExposedCases([0, 0, 1, 2, 2], [1, 1, 1, 0, 1], range(5)))
    >>> risks["risk_difference"].value, risks["attributable_fraction"].value
    (0.5, 0.375)
    """
    if len(set(cases.clusters)) < len(cases.clusters):
        groups = _powered_groups(cases, cases.bad, None, seed)
        return _compare_groups(groups, "cluster bootstrap", cases)
    none, some, all_ = table = cases.table()
    bad, n = none[0] + some[0], none[1] + some[1]
    return {
        **{
            f"risk_given_{name}": intervals.proportion(*count)
            for name, count in zip(EXPOSURES, table, strict=True)
        },
        "risk_difference": association.risk_difference(*none, *all_),
        "risk_ratio": drop_wide_ratio(association.risk_ratio(*none, *all_)),
        "attributable_fraction": association.attributable_fraction(
            bad, n - bad, all_[0], all_[1] - all_[0], seed=seed
        ),
    }


@dataclass(frozen=True)
class PooledRisks:
    """Risks of cases that are only compared within their stratum.

    ``estimates`` by name; ``p`` of the test that all strata have the same difference, and its method.
    """

    estimates: Mapping[str, Estimate]
    p: float | None
    method: str


def pooled_exposure_risks(strata: Sequence[ExposedCases], *, seed: int = 0) -> PooledRisks:
    """Compare none with all within each stratum, and pool (Mantel-Haenszel).

    ``attributable_fraction`` takes some together with none, as that of `exposure_risks` does.
    """
    tables, places, clusters = compared = _stack_tables(strata, {0})
    exposed = _stack_tables(strata, {0, 1})
    pooled = _pool_tables(*compared, seed)
    fraction = pooled if exposed == compared else _pool_tables(*exposed, seed)
    if len(set(clusters)) < len(clusters):
        p = association.clustered_heterogeneity_test(places, clusters, seed=seed)
        method = CLUSTERED_METHOD
    else:
        p = association.heterogeneity_test(tables, seed=seed)
        method = "cochran's q, parametric bootstrap"
    estimates = {
        "risk_difference": pooled.risk_difference,
        "risk_ratio": drop_wide_ratio(pooled.risk_ratio),
        "attributable_fraction": fraction.attributable_fraction,
    }
    return PooledRisks(estimates, p, method)


def _stack_tables(
    strata: Sequence[ExposedCases], exposed: Collection[int]
) -> tuple[list[association.TwoByTwo], list[int], list[Hashable]]:
    """The tables of the strata that can be compared; the cell, counted through, and cluster of each case."""
    compared = [rows for cases in strata if (rows := cases.compared_with_all(exposed))]
    counts = [Counter(cell for cell, _ in rows) for rows in compared]
    return (
        [(count[0], count[1], count[2], count[3]) for count in counts],
        [4 * place + cell for place, rows in enumerate(compared) for cell, _ in rows],
        [cluster for rows in compared for _, cluster in rows],
    )


def _pool_tables(
    tables: Sequence[association.TwoByTwo],
    places: Sequence[int],
    clusters: Sequence[Hashable],
    seed: int,
) -> association.PooledAssociation:
    if len(set(clusters)) < len(clusters):
        return association.clustered_mantel_haenszel(tables, places, clusters, seed=seed)
    return association.mantel_haenszel(tables, seed=seed)


def powered_exposure_risks(
    cases: ExposedCases,
    labels: Sequence[float | None],
    *,
    weights: Sequence[float] | None = None,
    seed: int = 0,
) -> dict[str, Estimate]:
    """Return what `exposure_risks` does, by labels and verdicts together at each exposure.

    Parameters
    ----------
    cases : ExposedCases
    labels : sequence of float or None
        Whether annotators call the answer bad, in [0, 1]. None: not labelled.
    weights : sequence of float or None
        One over the chance of being labelled, one a case. None: all alike.
    seed : int
        Random seed of the draws.

    Returns
    -------
    dict of str to Estimate
        Prediction-powered at each exposure by itself and cut to [0, 1], so that the judge may err
        otherwise after misses than after hits. Missing with fewer than 10 labels at an exposure,
        unless all of its cases are labelled.

    Notes
    -----
    The intervals hold the middle 95% of draws of the Bayesian bootstrap of clusters. A bad and a
    good label with an average verdict are added at each exposure, each as 0.75 clusters of average
    size, and the draws are spread as Student's t of the labelled clusters is.
    ``benchmarks/stats/association_coverage.md`` measures the coverage.

    References
    ----------
    Angelopoulos, Duchi and Zrnic (2023), PPI++: efficient prediction-powered inference. Rubin
    (1981), The Bayesian bootstrap. Hesterberg (2015), What teachers should know about the
    bootstrap.
    """
    groups = _powered_groups(cases, labels, weights, seed)
    return _compare_groups(groups, "ppi++, cluster bootstrap", cases)


def rated_exposure_risks(
    cases: ExposedCases, rates: Mapping[str, Mapping[str, Estimate]], *, seed: int = 0
) -> dict[str, Estimate]:
    """Return what `exposure_risks` does, corrected by the judge's error rates at each exposure.

    Parameters
    ----------
    cases : ExposedCases
        ``bad`` is 0 or 1, by the judge.
    rates : mapping of str to mapping of str to Estimate
        By exposure the judge's ``sensitivity`` (the share of good answers that it calls good) and
        ``specificity``, measured on other cases, each with its n.
    seed : int
        Random seed of the draws.

    Returns
    -------
    dict of str to Estimate
        A risk is (share called bad - (1 - sensitivity)) / (sensitivity + specificity - 1), cut to
        [0, 1], with the middle 95% of draws of the share and of both rates (Jeffreys posteriors).
        Missing at an exposure with fewer than 10 labels, without one of either kind, or where the
        rates are no better than chance.

    References
    ----------
    Rogan and Gladen (1978), Estimating prevalence from the results of a screening test.
    """
    called = _powered_groups(cases, cases.bad, None, seed)
    generator = np.random.default_rng(seed)
    values, drawn, lacking = called.values.copy(), called.drawn.copy(), list(called.lacking)
    for level, name in enumerate(EXPOSURES):
        if not called.sizes[level]:
            continue
        judge = [
            (rate.value, rate.n)
            for kind in ("sensitivity", "specificity")
            if (rate := rates.get(name, {}).get(kind)) and rate.value is not None
        ]
        gain = sum(share for share, _ in judge) - 1
        # One label of a kind will do: the width of the interval says how little that is.
        if len(judge) < 2 or sum(n for _, n in judge) < MIN_LABELS or gain <= 0:
            lacking[level] = Reason(code="judge_unmeasured", exposure=name, needed=MIN_LABELS)
            continue
        sensitivity, specificity = (
            generator.beta(n * share + _JEFFREYS, n * (1 - share) + _JEFFREYS, len(drawn))
            for share, n in judge
        )
        values[level] = np.clip((values[level] - 1 + judge[0][0]) / gain, 0, 1)
        drawn[:, level] += sensitivity - 1
        drawn[:, level] /= np.maximum(sensitivity + specificity - 1, _ROUNDING)
    exposed = called.drawn_sizes[:, :2] * (called.sizes[:2] > 0)
    drawn[:, 3] = (exposed * drawn[:, :2]).sum(axis=1) / np.maximum(exposed.sum(axis=1), _TINY)
    values[3] = values[:2] @ called.sizes[:2] / max(called.sizes[3], 1)
    lacking[3] = lacking[0] or lacking[1]
    groups = replace(called, values=values, drawn=drawn, lacking=lacking)
    return _compare_groups(groups, method="rogan-gladen by exposure", cases=cases)


@dataclass(frozen=True)
class _Groups:
    """The risks of none, some and all, and for the fraction that of none and some together.

    ``sizes`` are cases and ``n`` those with a label; ``drawn`` has the draws of ``values``, uncut, and
    ``drawn_sizes`` those of the sizes; ``lacking`` says why a risk is not known.
    """

    sizes: NDArray[np.int64]
    n: NDArray[np.int64]
    values: intervals.Floats
    drawn: intervals.Floats
    drawn_sizes: intervals.Floats
    lacking: Sequence[Reason | None]


def _powered_groups(
    cases: ExposedCases, labels: Sequence[float | None], weights: Sequence[float] | None, seed: int
) -> _Groups:
    level = np.array(cases.exposure, dtype=int)
    member = np.stack([level == 0, level == 1, level == 2, level < 2], axis=1) * 1.0
    known = np.array([label is not None for label in labels], dtype=float)
    w = known if weights is None else known * np.array(weights, dtype=float)
    y, f = np.array([label or 0.0 for label in labels]), np.array(cases.bad, dtype=float)
    base = np.stack([w, w * y, w * f, np.ones(len(f)), f], axis=1)
    # In an order of their own, so that rounding is the same in any order of the cases.
    order = np.lexsort((*base.T, level))
    base, member, w, y, f, known = (each[order] for each in (base, member, w, y, f, known))
    clusters = [cases.clusters[place] for place in order]
    labelled, sum_y, sum_f, n, all_f = base.T @ member
    labelled, n = np.where(labelled, labelled, 1), np.where(n, n, 1)  # empty: no estimate below
    slope = (w * y * f) @ member / labelled - sum_y * sum_f / labelled**2
    spread = (f**2) @ member / n - (all_f / n) ** 2
    slope = np.where(spread > _ROUNDING, slope / np.maximum(spread, _ROUNDING), 0.0)
    generator = np.random.default_rng(seed)
    rows = (member[:, :, np.newaxis] * base[:, np.newaxis, :]).reshape(len(f), -1)
    drawn = cluster_draws(rows, clusters, generator).reshape(-1, *member.T.shape[:1], 5)
    columns = (w[:, np.newaxis] * member).T
    units = np.array(  # clusters with a label at this exposure
        [len({c for c, x in zip(clusters, column, strict=True) if x}) for column in columns]
    )
    extra = (labelled / np.maximum(units, 1))[:, np.newaxis] * generator.standard_gamma(
        association.CELL_PRIOR, (len(drawn), len(units), 2)
    )
    both = extra.sum(axis=2)
    drawn += np.stack([both, extra[..., 1], both * all_f / n, both, both * all_f / n], axis=2)
    drawn = np.moveaxis(np.maximum(drawn, _TINY), 2, 0)
    risks = drawn[1] / drawn[0] + slope * (drawn[4] / drawn[3] - drawn[2] / drawn[0])
    centre = np.median(risks, axis=0)
    # The mean and, where a label is missing, the slope take a degree of freedom each.
    fitted = 1 if known.all() else 2
    size, counts = member.sum(axis=0).astype(int), (known @ member).astype(int)
    return _Groups(
        sizes=size,
        n=counts,
        values=np.clip(sum_y / labelled + slope * (all_f / n - sum_f / labelled), 0, 1),
        drawn=centre + (risks - centre) * [_small_sample_factor(each, fitted) for each in units],
        drawn_sizes=drawn[3],
        lacking=[
            Reason(code="few_labels_at_exposure", exposure=name, n=int(count), needed=MIN_LABELS)
            if count < min(MIN_LABELS, cases_of)
            else None
            for name, count, cases_of in zip(_GROUP_NAMES, counts, size, strict=True)
        ],
    )


def _small_sample_factor(units: int, fitted: int) -> float:
    """By how much Student's interval is wider than the normal one with the variance over `units`."""
    freedom = max(units - fitted, 1)
    short = math.sqrt(max(units, 1) / freedom)
    return short * intervals.student_quantile(intervals.LEVEL, freedom) / intervals.critical_value()


def _compare_groups(groups: _Groups, method: str, cases: ExposedCases) -> dict[str, Estimate]:
    """The risks and how they differ; the last group is that of the fraction."""
    none, _, all_, exposed = groups.values
    drawn = np.clip(groups.drawn, 0, 1).T
    uncut = ((groups.drawn >= 0) & (groups.drawn <= 1)).T
    share = groups.sizes[3] / max(groups.sizes[2] + groups.sizes[3], 1)
    drawn_share = groups.drawn_sizes[:, 3] / groups.drawn_sizes[:, 2:].sum(axis=1)
    overall = share * exposed + (1 - share) * all_
    drawn_overall = np.maximum(drawn_share * drawn[3] + (1 - drawn_share) * drawn[2], _TINY)
    no_ratio = [] if all_ else [Reason(code="no_bad_with_all")]
    no_bad = [] if overall else [Reason(code="no_bad_answer")]
    lacks = [
        [Reason(code="no_case_at_exposure", exposure=name)] if not size else [why] if why else []
        for name, size, why in zip(_GROUP_NAMES, groups.sizes, groups.lacking, strict=True)
    ]
    if not groups.sizes[3]:
        lacks[3] = [Reason(code="nothing_missed")]
    measures = {
        f"risk_given_{name}": (groups.values[place], drawn[place], (place,), lacks[place])
        for place, name in enumerate(EXPOSURES)
    } | {
        "risk_difference": (none - all_, drawn[0] - drawn[2], (0, 2), lacks[0] + lacks[2]),
        "risk_ratio": (
            *(none / (all_ or 1.0), drawn[0] / np.maximum(drawn[2], _TINY), (0, 2)),
            lacks[0] + lacks[2] + no_ratio,
        ),
        "attributable_fraction": (
            *(1 - all_ / (overall or 1.0), 1 - drawn[2] / drawn_overall, (2, 3)),
            lacks[2] + lacks[3] + no_bad,
        ),
    }
    estimates = {}
    for name, (value, draws, places, reasons) in measures.items():
        n = int(sum(groups.n[place] for place in places))
        if reasons:
            estimates[name] = Estimate.missing(reasons[0], n=n, method=method)
            continue
        # By all draws a risk cut to 0 would seem certain, by the uncut ones a small one too high.
        kept = uncut[list(places)].all(axis=0)
        ends = [*intervals.quantiles(draws, 0.95)]
        if not kept.all() and kept.mean() > _MIN_UNCUT:
            ends += intervals.quantiles(draws[kept], 0.95)
        estimates[name] = intervals.interval_estimate(
            float(value), min(ends), max(ends), n=n, method=method
        )
    if estimates["risk_difference"].value is not None:
        estimates["risk_difference"] = _uncut_difference(groups, estimates)
    if len(set(cases.clusters)) == 1 < len(cases.clusters):
        return {
            name: intervals.without_interval(risk.value, ONE_CLUSTER, n=risk.n, method=method)
            if risk.value is not None
            else risk
            for name, risk in estimates.items()
        }
    return {**estimates, "risk_ratio": drop_wide_ratio(estimates["risk_ratio"])}


def _uncut_difference(groups: _Groups, estimates: Mapping[str, Estimate]) -> Estimate:
    """The difference of none and all with ends from those of both risks, uncut.

    Of two risks that are hardly known, cut to [0, 1], the difference would seem better known.
    """
    ends = []
    for place in (0, 2):
        risk, value = estimates[f"risk_given_{EXPOSURES[place]}"], float(groups.values[place])
        low, high = intervals.quantiles(groups.drawn[:, place], 0.95)
        ends.append((value, min(low, risk.low or 0.0), max(high, risk.high or 0.0)))
    none, (all_, low, high) = ends
    difference = intervals.square_and_add(none, (-all_, -high, -low))
    crude = estimates["risk_difference"]
    return intervals.interval_estimate(
        *difference, n=crude.n, method=crude.method, bounds=(-1.0, 1.0)
    )


def permutation_test(
    groups: Sequence[Hashable],
    outcomes: Sequence[bool],
    strata: Sequence[Hashable],
    clusters: Sequence[Hashable] = (),
    *,
    seed: int = 0,
) -> float:
    """Return the p-value of the test that, within strata, the outcome is alike in all groups.

    Parameters
    ----------
    groups, outcomes, strata : sequence, one a case
    clusters : sequence of hashable, one a case
        Cases of a cluster vary together; () if none do.
    seed : int
        Random seed of the permutations.

    Returns
    -------
    float
        In (0, 1], of 9,999 permutations of the groups within strata. The statistic is Pearson's chi
        squared, added up over the strata. Where clusters have several cases, the larger of it and of
        that of `clustered_score_test`, which alone rejects too often where errors are few.

    Examples
    --------
    >>> permutation_test([0] * 10 + [1] * 10, [True] * 10 + [False] * 10, [0] * 20) < 0.001
    True
    """
    generator = np.random.default_rng(seed)
    statistic = np.zeros(_PERMUTATIONS + 1)
    ordered = sorted(zip(strata, groups, outcomes, strict=True), key=repr)
    for stratum in dict.fromkeys(strata):
        members = [(group, outcome) for each, group, outcome in ordered if each == stratum]
        good = np.array([outcome for _, outcome in members], dtype=float)
        share = good.mean()
        if not 0 < share < 1:
            continue
        shuffled = generator.permuted(np.tile(good, (_PERMUTATIONS, 1)), axis=1)
        drawn = np.concatenate([good[np.newaxis], shuffled])
        for group in {group for group, _ in members}:
            inside = np.array([each == group for each, _ in members])
            size = inside.sum()
            statistic += (
                (drawn[:, inside].sum(axis=1) - size * share) ** 2 / size / (share - share**2)
            )
    p = float((statistic >= statistic[0] - _ROUNDING).mean())
    if len(set(clusters)) == len(clusters):
        return p
    is_good, columns = np.array(outcomes, dtype=float), []
    for stratum, group in dict.fromkeys(zip(strata, groups, strict=True)):
        inside = np.array([each == stratum for each in strata])
        member = inside * np.array([each == group for each in groups])
        around = is_good - is_good[inside].mean()
        columns.append((member - member[inside].mean()) * around * inside)
    return max(p, clustered_score_test(np.stack(columns, axis=1), clusters, seed=seed))
