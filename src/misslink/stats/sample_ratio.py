"""Whether units came in the shares that were planned; where not, no other figure is to be read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

__all__ = ["BROKEN_BELOW", "SampleRatio", "Stratum", "sample_ratio", "sequential_ratio"]

BROKEN_BELOW = 0.001
# The alternatives that are mixed over: by how much one variant's odds are off, in logarithms. The
# middles of 200 equal parts of a normal distribution that a share near a half would have after
# 100 units. None of them is the plan itself.
_TILTS = tuple(NormalDist(0.0, 0.2).inv_cdf((part + 0.5) / 200) for part in range(200))
_ROWS = 10_000  # strata that are reckoned with at once
_TWO = 2


@dataclass(frozen=True)
class Stratum:
    """Units that came while one plan was in force.

    Parameters
    ----------
    planned : mapping of str to float
        Shares, adding up to 1.
    observed : mapping of str to int
        Units first seen in each variant; one that is missing had none.
    """

    planned: Mapping[str, float]
    observed: Mapping[str, int]


@dataclass(frozen=True)
class SampleRatio:
    """What the counts say of the plan.

    Parameters
    ----------
    p : float or None
        Of one look. None: no unit, or fewer than two variants were planned.
    p_sequential : float or None
        Valid however often it is looked at.
    method : str
        ``exact binomial`` (two variants, one plan), ``chi-square``, ``impossible`` (units in a
        variant that nobody was to get), or ``none``.
    expected : mapping of str to float
        Units that the plan led to expect.
    """

    p: float | None
    p_sequential: float | None
    method: str
    expected: Mapping[str, float]

    @property
    def is_broken(self) -> bool:
        """Whether nothing else of the experiment can be trusted.

        By the p-value of one look, which sees a fault sooner: of sound experiments that are looked
        at on each of 90 days about 1 in 80 is called broken (simulated, two equal variants).
        """
        return self.p is not None and self.p < BROKEN_BELOW


def sample_ratio(strata: Sequence[Stratum]) -> SampleRatio:
    """Test the counts of units against the planned split, which may have changed on the way.

    Parameters
    ----------
    strata : sequence of Stratum
        None or empty ones are fine.

    Returns
    -------
    SampleRatio
        Where the split changed, the differences from what each plan led to expect are added up,
        and so are their variances.

    Raises
    ------
    ValueError
        Shares are below 0 or do not add up to 1, or a count is below 0.

    References
    ----------
    Fabijan et al. (2019), Diagnosing sample ratio mismatch in online controlled experiments.

    Examples
    --------
    >>> found = sample_ratio([Stratum({"A": 0.5, "B": 0.5}, {"A": 821, "B": 1000})])
    >>> found.is_broken, round(found.p, 6), found.method
    (True, 3e-05, 'exact binomial')
    """
    names = list(dict.fromkeys(name for one in strata for name in (*one.planned, *one.observed)))
    for one in strata:
        _must_be_counts(one)
    filled = [one for one in strata if sum(one.observed.values())]
    expected = {
        name: math.fsum(one.planned.get(name, 0.0) * sum(one.observed.values()) for one in filled)
        for name in names
    }
    for one in filled:
        if any(count and not one.planned.get(name) for name, count in one.observed.items()):
            return SampleRatio(0.0, 0.0, "impossible", expected)
    told = [one for one in filled if sum(share > 0 for share in one.planned.values()) >= _TWO]
    if not told:
        return SampleRatio(None, None, "none", expected)
    return SampleRatio(*_tested(told, names), expected)


def sequential_ratio(strata: Sequence[Stratum]) -> float:
    """How much likelier the counts are under some other split than under the plans, in logarithms.

    A mixture over one variant's odds being so many times the planned, the same in all strata, so
    that a ramp that grew evenly, with a plan for nearly every unit, does not hide it: its inverse
    is an always-valid p-value.

    References
    ----------
    Lindon and Malek (2022), Anytime-valid inference for multinomial count data (a mixture over
    splits around the plan).
    """
    import numpy as np

    names = list(dict.fromkeys(n for one in strata for n, share in one.planned.items() if share))
    if len(names) < _TWO:
        return 0.0
    planned = np.array([[one.planned.get(name, 0.0) for name in names] for one in strata])
    counts = np.array([[one.observed.get(name, 0) for name in names] for one in strata])
    totals = counts.sum(axis=1)
    tilted = range(len(names) if len(names) > _TWO else 1)  # of two, one speaks for the other
    tilts = np.array(_TILTS)
    ratios = np.multiply.outer(counts.sum(axis=0)[: len(tilted)], tilts)
    for start in range(0, len(counts), _ROWS):
        part = slice(start, start + _ROWS)
        for place in tilted:
            evened = np.log1p(np.multiply.outer(planned[part, place], np.expm1(tilts)))
            ratios[place] -= totals[part] @ evened
    most = float(ratios.max())
    return most + math.log(float(np.exp(ratios - most).mean()))


def _tested(strata: Sequence[Stratum], names: Sequence[str]) -> tuple[float, float, str]:
    always = math.exp(-max(0.0, sequential_ratio(strata)))
    live = [name for name in names if any(one.planned.get(name) for one in strata)]
    if (
        len(live) == _TWO
        and len({one.planned[live[0]] for one in strata if live[0] in one.planned}) == 1
    ):
        from scipy.stats import binomtest

        count = sum(one.observed.get(live[0], 0) for one in strata)
        total = sum(sum(one.observed.values()) for one in strata)
        share = strata[0].planned[live[0]]
        return float(binomtest(count, total, share).pvalue), always, "exact binomial"
    return _chi_square(strata, live), always, "chi-square"


def _chi_square(strata: Sequence[Stratum], names: Sequence[str]) -> float:
    """By the summed multinomial covariance; with one plan it is Pearson's."""
    import numpy as np
    from scipy.special import chdtrc

    shares = np.array([[one.planned.get(name, 0.0) for name in names] for one in strata])
    counts = np.array([[one.observed.get(name, 0) for name in names] for one in strata])
    totals = counts.sum(axis=1)
    gap = counts.sum(axis=0) - totals @ shares
    covariance = np.diag(totals @ shares) - shares.T @ (totals[:, None] * shares)
    statistic = float(gap @ np.linalg.pinv(covariance) @ gap)
    return float(chdtrc(int(np.linalg.matrix_rank(covariance)), statistic))


def _must_be_counts(stratum: Stratum) -> None:
    shares = stratum.planned.values()
    if any(share < 0 for share in shares) or abs(math.fsum(shares) - 1) > 1e-6:  # noqa: PLR2004
        raise ValueError(f"the planned shares {dict(stratum.planned)} do not add up to 1")
    if any(count < 0 for count in stratum.observed.values()):
        raise ValueError("units are counted from 0")
