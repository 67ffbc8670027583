"""Runs over the same cases, side by side: every test of every metric, corrected for how many."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from misslink.stats.clustered import clustered_difference, clustered_mean
from misslink.stats.effect import PairedT, cohens_dz, paired_t
from misslink.stats.mcnemar import mcnemar
from misslink.stats.means import mean
from misslink.stats.paired import Paired, detectable_after, holm, paired_difference
from misslink.stats.wilcoxon import SignedRank, wilcoxon
from misslink.types import Estimate

__all__ = ["side_by_side"]

SIGNIFICANT = 0.05  # of p, corrected: from where on a difference has a winner
_YES_NO = frozenset({0.0, 1.0})
_DEPENDENT = "cases of a cluster are not independent"

Values = Mapping[str, Sequence[float | None]]


def side_by_side(
    runs: Sequence[Values],
    *,
    seed: int = 0,
    lower_is_better: Collection[str] = (),
    clusters: Sequence[Hashable] | None = None,
) -> list[dict[str, dict[str, Any]]]:
    """Compare every further run with the first, metric by metric.

    Parameters
    ----------
    runs : sequence of mapping of str to sequence of float or None
        Of each run the same metrics, each with a value in [0, 1] for every case, in one order of
        the cases. None: the case has no value.
    seed : int
        Of the intervals and of the sign flips.
    lower_is_better : collection of str
        Metrics that are good when low.
    clusters : sequence of hashable or None
        Which cluster each case is of. None: the cases are independent.

    Returns
    -------
    list of dict
        For each run but the first, metric to a document with the keys that
        ``misslink compare --json`` has: ``n`` (cases with both values), ``a``, ``b`` and
        ``difference`` (b minus a; Estimates), ``p`` (sign flips), ``p_holm`` (over all metrics and
        runs), ``detectable`` (at the level that Holm leaves), ``winner`` ('a', 'b' or None),
        ``lower_is_better``, ``effect`` (Cohen's d_z), and uncorrected ``t_test``, ``wilcoxon`` and,
        of yes-or-no values, ``mcnemar``. With clusters these three say why there are none.

    Raises
    ------
    ValueError
        The runs have not the same metrics, or not values of the same cases.

    Examples
    --------
    >>> [found] = side_by_side([{"hit@5": [0, 0, 1, 0]}, {"hit@5": [1, 1, 1, 1]}])
    >>> found["hit@5"]["difference"]["value"], found["hit@5"]["p"], found["hit@5"]["winner"]
    (0.75, 0.25, None)
    """
    if any(list(run) != list(runs[0]) for run in runs[1:]):
        raise ValueError("the runs have different metrics")
    tested = [
        {name: _tested(runs[0][name], run[name], seed, clusters) for name in run}
        for run in runs[1:]
    ]
    corrected = holm([paired.p for row in tested for _, paired in row.values()])
    each = iter(corrected)
    return [
        {
            name: _decided(found, paired, next(each), corrected, lower=name in lower_is_better)
            for name, (found, paired) in row.items()
        }
        for row in tested
    ]


def _tested(
    a: Sequence[float | None],
    b: Sequence[float | None],
    seed: int,
    clusters: Sequence[Hashable] | None,
) -> tuple[dict[str, Any], Paired]:
    """Everything of one metric but what depends on the others, and the test behind it."""
    if clusters is None:
        paired = paired_difference(a, b, seed=seed)
    else:
        paired = clustered_difference(a, b, clusters, seed=seed)
    groups = range(len(a)) if clusters is None else clusters
    both = [
        (float(x), float(y), group)
        for x, y, group in zip(a, b, groups, strict=True)
        if x is not None and y is not None
    ]
    differences = [y - x for x, y, _ in both]
    grouped = None if clusters is None else [group for *_, group in both]
    found: dict[str, Any] = {
        "n": len(both),
        "a": _mean([x for x, _, _ in both], grouped, seed).model_dump(),
        "b": _mean([y for _, y, _ in both], grouped, seed).model_dump(),
        "difference": paired.difference.model_dump(),
        "p": paired.p,
        "effect": cohens_dz(differences).model_dump(),
        **_uncorrected(both, differences, independent=clusters is None),
    }
    return found, paired


def _uncorrected(
    both: Sequence[tuple[float, float, Hashable]],
    differences: Sequence[float],
    *,
    independent: bool,
) -> dict[str, Any]:
    """Return the tests that other tools make, for who wants to hold ours against them."""
    if not independent:
        return {
            "t_test": asdict(PairedT(None, None, 0, _DEPENDENT)),
            "wilcoxon": asdict(SignedRank(0.0, 0.0, None, None, 0, "none", _DEPENDENT)),
            "mcnemar": None,
        }
    test = None
    if both and all(x in _YES_NO and y in _YES_NO for x, y, _ in both):
        found = mcnemar(
            sum(each > 0 for each in differences), sum(each < 0 for each in differences)
        )
        test = {**asdict(found), "odds": found.odds.model_dump()}
    return {
        "t_test": asdict(paired_t(differences)),
        "wilcoxon": asdict(wilcoxon(differences)),
        "mcnemar": test,
    }


def _decided(
    found: Mapping[str, Any],
    paired: Paired,
    p_holm: float | None,
    corrected: Sequence[float | None],
    *,
    lower: bool,
) -> dict[str, Any]:
    """Add the corrected p-value, what could have been seen, and who is better beyond chance."""
    winner = None
    if p_holm is not None and p_holm < SIGNIFICANT:
        winner = "a" if (found["difference"]["value"] > 0) == lower else "b"
    return {
        **found,
        "p_holm": p_holm,
        "detectable": detectable_after(paired, corrected),
        "winner": winner,
        "lower_is_better": lower,
    }


def _mean(values: Sequence[float], clusters: Sequence[Hashable] | None, seed: int) -> Estimate:
    if not values:
        return Estimate.missing("no case has a value in both")
    if clusters is None:
        return mean(values, seed=seed)
    return clustered_mean(values, clusters, seed=seed)
