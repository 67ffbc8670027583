"""Compare several runs over the same cases, with every test of every metric."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from misslink.stats import paired_tests
from misslink.stats.clustered import clustered_difference, clustered_mean
from misslink.stats.intervals import LEVEL, mean
from misslink.types import Estimate, Reason

SIGNIFICANCE_LEVEL = 0.05  # of p, corrected: below it a difference has a winner

MetricValues = Mapping[str, Sequence[float | None]]


def compare_paired_runs(
    runs: Sequence[MetricValues],
    *,
    seed: int = 0,
    lower_is_better: Collection[str] = (),
    clusters: Sequence[Hashable] | None = None,
    families: Mapping[str, str] | None = None,
) -> list[dict[str, dict[str, Any]]]:
    """Compare every further run with the first, metric by metric.

    Parameters
    ----------
    runs : sequence of mapping of str to sequence of float or None
        The same metrics for each run, with a value in [0, 1] for every case, in one order of the
        cases. None: the case has no value.
    seed : int
        Random seed of the intervals and of the sign flips.
    lower_is_better : collection of str
        Metrics for which a low value is good.
    clusters : sequence of hashable or None
        The cluster of each case. None: the cases are independent.
    families : mapping of str to str or None
        The family of each metric, within which Holm's procedure corrects. None: all are one.

    Returns
    -------
    list of dict
        For each run but the first, metric to a document with the keys that
        ``misslink compare --json`` has: ``n`` (cases with both values), ``a``, ``b`` and
        ``difference`` (b minus a; Estimates), ``p`` (sign flips), ``p_holm`` (over all metrics of
        a family and all runs), ``detectable`` (at the level that Holm leaves), ``winner`` ('a', 'b' or None),
        ``lower_is_better``, ``effect`` (Cohen's d_z), and uncorrected ``t_test``, ``wilcoxon`` and,
        of yes-or-no values, ``mcnemar``. With clusters these three give the reason for none.

    Raises
    ------
    ValueError
        The runs differ in their metrics or cases.

    Examples
    --------
    >>> [compared] = compare_paired_runs([{"hit@5": [0, 0, 1, 0]}, {"hit@5": [1, 1, 1, 1]}])
    >>> hit = compared["hit@5"]
    >>> hit["difference"]["value"], hit["p"], hit["winner"]
    (0.75, 0.25, None)
    """
    if any(list(run) != list(runs[0]) for run in runs[1:]):
        raise ValueError("the runs have different metrics")
    tested = [
        {name: _test_metric(runs[0][name], run[name], seed, clusters) for name in run}
        for run in runs[1:]
    ]
    by_family: dict[str, list[tuple[str, dict[str, Any], paired_tests.PairedComparison]]] = {}
    for row in tested:
        for name, test in row.items():
            by_family.setdefault((families or {}).get(name, ""), []).append((name, *test))
    for members in by_family.values():
        corrected = paired_tests.holm([paired.p for *_, paired in members])
        for (name, document, paired), p_holm in zip(members, corrected, strict=True):
            lower, winner = name in lower_is_better, None
            if p_holm is not None and p_holm < SIGNIFICANCE_LEVEL:
                winner = "a" if (document["difference"]["value"] > 0) == lower else "b"
            document |= {
                "p_holm": p_holm,
                "detectable": paired_tests.detectable_after_holm(paired, corrected),
                "winner": winner,
                "lower_is_better": lower,
            }
    return [{name: document for name, (document, _) in row.items()} for row in tested]


def paired_test(
    a: Sequence[float | None],
    b: Sequence[float | None],
    clusters: Sequence[Hashable] | None,
    *,
    seed: int = 0,
    level: float = LEVEL,
) -> paired_tests.PairedComparison:
    """Compare two runs over the cases with both values, by cluster where there are some."""
    if clusters is None:
        return paired_tests.paired_difference(a, b, seed=seed, level=level)
    return clustered_difference(a, b, clusters, seed=seed, level=level)


def _test_metric(
    a: Sequence[float | None],
    b: Sequence[float | None],
    seed: int,
    clusters: Sequence[Hashable] | None,
) -> tuple[dict[str, Any], paired_tests.PairedComparison]:
    """The document of one metric, without what depends on the others, and its test."""
    paired = paired_test(a, b, clusters, seed=seed)
    both = [
        (float(x), float(y), group)
        for x, y, group in zip(a, b, clusters or range(len(a)), strict=True)
        if x is not None and y is not None
    ]
    differences = [y - x for x, y, _ in both]

    def run_mean(values: list[float]) -> dict[str, object]:
        if not values:
            estimate = Estimate.missing(Reason(code="no_shared_value"))
        elif clusters is None:
            estimate = mean(values, seed=seed)
        else:
            estimate = clustered_mean(values, [group for *_, group in both], seed=seed)
        return estimate.model_dump()

    t_test, wilcoxon, mcnemar = (
        paired_tests.paired_t(differences),
        paired_tests.wilcoxon_test(differences),
        None,
    )
    if clusters is not None:
        reason = str(Reason(code="dependent_cases"))
        t_test = paired_tests.PairedTTest(None, None, 0, reason)
        wilcoxon = paired_tests.SignedRankTest(0.0, 0.0, None, None, 0, "none", reason)
    elif both and all(x in {0.0, 1.0} and y in {0.0, 1.0} for x, y, _ in both):
        test = paired_tests.mcnemar_test(
            sum(d > 0 for d in differences), sum(d < 0 for d in differences)
        )
        mcnemar = {**asdict(test), "odds": test.odds.model_dump()}
    document = {
        "n": len(both),
        "a": run_mean([x for x, _, _ in both]),
        "b": run_mean([y for _, y, _ in both]),
        "difference": paired.difference.model_dump(),
        "p": paired.p,
        "effect": paired_tests.cohens_dz(differences).model_dump(),
        "t_test": asdict(t_test),
        "wilcoxon": asdict(wilcoxon),
        "mcnemar": mcnemar,
    }
    return document, paired
