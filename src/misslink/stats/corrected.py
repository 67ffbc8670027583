"""The 2 x 2 table as it would be if the judge made no mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from misslink.stats.attributable import DRAWS, PRIOR
from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Corrected", "corrected"]

_METHOD = "rogan-gladen"
_JEFFREYS = 0.5  # cases added to a judge's right and wrong words
_CHANCE = 1.0  # sensitivity + specificity of a judge that says nothing
_FEWEST = 0.01  # share of draws that need no cut: of 20,000, the ends are the fifth from outside
_TAILS = (0.025, 0.975)
_NAMES = (
    "risk_given_miss",
    "risk_given_hit",
    "risk_difference",
    "risk_ratio",
    "attributable_fraction",
)


@dataclass(frozen=True)
class Corrected:
    """The numbers of the table by name, and what a reader must be warned of or None."""

    estimates: dict[str, Estimate]
    warning: str | None


def corrected(
    miss_bad: int,
    miss_good: int,
    hit_bad: int,
    hit_good: int,
    *,
    sensitivity: Estimate,
    specificity: Estimate,
    seed: int = 0,
    draws: int = DRAWS,
) -> Corrected:
    """Correct a judge's 2 x 2 table for how often it errs, by the same rates in both rows.

    Parameters
    ----------
    miss_bad, miss_good, hit_bad, hit_good : int
        Cases, good or bad by the judge.
    sensitivity, specificity : Estimate
        Of the judge against people: the share of truly good answers that it calls good, and of
        truly bad ones that it calls bad, each with the n it was measured on.
    seed : int
        Of the draws.
    draws : int
        How many.

    Returns
    -------
    Corrected
        risk_given_miss, risk_given_hit, risk_difference, risk_ratio, attributable_fraction. A
        row's value is (share called bad - (1 - sensitivity)) / (sensitivity + specificity - 1),
        cut to [0, 1]. The intervals hold the middle 95 % of 20,000 draws of the cells, the
        sensitivity and the specificity from their posteriors, each corrected and cut likewise (a
        judge no better than chance is not drawn), and the middle 95 % of those that need no cut:
        by the first alone a risk cut to 0 would seem certain, by the second a small one too high
        (``benchmarks/interval_coverage.py``). Missing where the judge was not measured, is no
        better than chance, or hardly any draw goes without a cut.

    Raises
    ------
    ValueError
        A count is negative.

    References
    ----------
    Rogan and Gladen (1978), Estimating prevalence from the results of a screening test. Lang and
    Reiczigel (2014), Confidence limits for prevalence of disease adjusted for estimated
    sensitivity and specificity. Gelman and Carpenter (2020), Bayesian analysis of tests with
    unknown specificity and sensitivity.

    Examples
    --------
    >>> judge = {"sensitivity": Estimate(value=0.9, low=0.8, high=0.95, n=100, method="wilson"),
    ...          "specificity": Estimate(value=0.8, low=0.7, high=0.87, n=80, method="wilson")}
    >>> found = corrected(12, 9, 10, 67, **judge).estimates["risk_given_miss"]
    >>> round(12 / 21, 2), round(found.value, 2)
    (0.57, 0.67)
    """
    cells = (miss_bad, miss_good, hit_bad, hit_good)
    if min(cells) < 0:
        raise ValueError(f"a count is negative: {cells}")
    if sensitivity.value is None or specificity.value is None:
        named = "sensitivity" if sensitivity.value is None else "specificity"
        reason = f"the judge's {named} was not measured"
        return Corrected(_all_missing(cells, reason), None)
    youden = sensitivity.value + specificity.value - _CHANCE
    if youden <= 0:
        reason = (
            f"the judge's sensitivity of {sensitivity.value:.2f} and specificity of "
            f"{specificity.value:.2f} are no better than chance"
        )
        said = f"{reason[0].upper()}{reason[1:]}, so its table cannot be corrected."
        return Corrected(_all_missing(cells, reason), said)
    drawn, possible = _drawn(cells, sensitivity, specificity, seed, draws)
    if possible.sum() < _FEWEST * draws:
        reason = "the judge calls fewer answers bad, or more, than its measured errors allow"
        return Corrected(
            _all_missing(cells, reason),
            "The table and the judge's measured errors contradict each other, so it is not "
            "corrected: were the labels made on answers like these?",
        )
    misses, hits = miss_bad + miss_good, hit_bad + hit_good
    plain = {
        name: (bad / n - (1 - sensitivity.value)) / youden if n else None
        for name, bad, n in (("miss", miss_bad, misses), ("hit", hit_bad, hits))
    }
    outside = [name for name, risk in plain.items() if risk is not None and not 0 <= risk <= 1]
    warning = None
    if outside:
        warning = (
            f"Corrected, the risk given a {' and a '.join(outside)} would lie outside of 0 to 1; "
            "it is cut there, and the judge's error may differ from what was measured."
        )
    cut = {name: None if risk is None else min(max(risk, 0), 1) for name, risk in plain.items()}
    return Corrected(_estimates(cut["miss"], cut["hit"], (misses, hits), drawn, possible), warning)


def _drawn(
    cells: tuple[int, int, int, int],
    sensitivity: Estimate,
    specificity: Estimate,
    seed: int,
    draws: int,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Draws of the share of misses and of both true risks, and which needed no cut."""
    import numpy as np

    generator = np.random.default_rng(seed)
    table = generator.standard_gamma(np.array(cells) + PRIOR, (draws, 4))
    misses, hits = table[:, 0] + table[:, 1], table[:, 2] + table[:, 3]
    right = [
        generator.beta(good + _JEFFREYS, measured.n - good + _JEFFREYS, draws)
        for measured in (sensitivity, specificity)
        for good in ((measured.value or 0.0) * measured.n,)
    ]
    youden = right[0] + right[1] - _CHANCE
    better = youden > 0
    risks = [
        (bad / n - (1 - right[0]))[better] / youden[better]
        for bad, n in ((table[:, 0], misses), (table[:, 2], hits))
    ]
    possible = np.ones(int(better.sum()), dtype=bool)
    for risk, size in zip(risks, (sum(cells[:2]), sum(cells[2:])), strict=True):
        if size:  # an empty row contradicts nothing
            possible &= (risk >= 0) & (risk <= 1)
    share = (misses / (misses + hits))[better]
    return np.stack([share, *(np.clip(risk, 0, 1) for risk in risks)]), possible


def _estimates(
    miss: float | None,
    hit: float | None,
    sizes: tuple[int, int],
    drawn: NDArray[np.float64],
    possible: NDArray[np.bool_],
) -> dict[str, Estimate]:
    import numpy as np

    misses, hits = sizes
    n = misses + hits
    share, after_miss, after_hit = drawn
    overall = share * after_miss + (1 - share) * after_hit
    bad = misses * (miss or 0.0) + hits * (hit or 0.0)
    no_miss = [] if misses else ["no case with a miss"]
    no_hit = [] if hits else ["no case with a hit"]
    no_ratio = [] if hit else ["corrected, no hit is bad, so there is no ratio"]
    no_bad = [] if bad else ["corrected, no bad answer to attribute"]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios, fractions = after_miss / after_hit, 1 - after_hit / overall
    p, q = miss or 0.0, hit or 0.0
    found = {  # value, draws, cases, why there is none
        "risk_given_miss": (p, after_miss, misses, no_miss),
        "risk_given_hit": (q, after_hit, hits, no_hit),
        "risk_difference": (p - q, after_miss - after_hit, n, no_miss + no_hit),
        "risk_ratio": (p / (q or 1.0), ratios, n, no_miss + no_hit + no_ratio),
        "attributable_fraction": (1 - q * n / (bad or 1.0), fractions, n, no_hit + no_bad),
    }
    return {
        name: Estimate.missing(reasons[0], n=size, method=_METHOD)
        if reasons
        else _estimate(value, draws, possible, size)
        for name, (value, draws, size, reasons) in found.items()
    }


def _estimate(
    value: float, drawn: NDArray[np.float64], possible: NDArray[np.bool_], n: int
) -> Estimate:
    """The value with the outer ones of the ends of all draws and of the possible ones."""
    import numpy as np

    low = high = value
    for draws in (drawn, drawn[possible]):
        known = np.sort(draws[~np.isnan(draws)])  # 0 / 0 where a draw has no bad answer at all
        if len(known):
            low, high = (
                pick(end, float(known[round(tail * (len(known) - 1))]))
                for pick, end, tail in ((min, low, _TAILS[0]), (max, high, _TAILS[1]))
            )
    if np.isinf(high):
        reason = "no upper end: by the judge's error there may be no bad hit at all"
        return Estimate(value=value, low=low, high=None, n=n, method=_METHOD, reason=reason)
    return Estimate(value=value, low=low, high=high, n=n, method=_METHOD)


def _all_missing(cells: tuple[int, int, int, int], reason: str) -> dict[str, Estimate]:
    return dict.fromkeys(_NAMES, Estimate.missing(reason, n=sum(cells), method=_METHOD))
